/* Learning-rate schedules: a linear rise in the warm-up, then the curve of the kind. */
#include <rapt/schedule.h>

#include <math.h>

#include "core.h"
#include "tensor/core.h"

static bool good_always(const rapt_schedule *s)
{
    (void)s;
    return true;
}

static double constant(const rapt_schedule *s, double t)
{
    (void)s, (void)t;
    return 1;
}

static double step_factor(const rapt_schedule *s)
{
    return rapt_or_default(s->factor, 0.1);
}

static bool good_step(const rapt_schedule *s)
{
    return (s->period > 0 && step_factor(s) >= 0 && isfinite(s->factor)) ||
           rapt_fail(RAPT_ERROR_VALUE, "schedule",
                     "period %lld and factor %g; a period of 1 or more, a factor from 0 on expected",
                     (long long)s->period, s->factor);
}

/* factor ^ ⌊(t − warm-up) / period⌋ */
static double step(const rapt_schedule *s, double t)
{
    return pow(step_factor(s), floor((t - (double)s->warm_up) / (double)s->period));
}

static bool good_cosine(const rapt_schedule *s)
{
    return (s->total > s->warm_up && s->final >= 0 && isfinite(s->final)) ||
           rapt_fail(RAPT_ERROR_VALUE, "schedule",
                     "total %lld and final %g; a total above the warm-up of %lld, a final factor from 0 on expected",
                     (long long)s->total, s->final, (long long)s->warm_up);
}

/* final + (1 − final)·(1 + cos(π·(t − warm-up) / (total − warm-up))) / 2 */
static double cosine(const rapt_schedule *s, double t)
{
    const double pi = acos(-1.0), warm_up = (double)s->warm_up, total = (double)s->total;
    return t >= total ? s->final : s->final + (1 - s->final) * (1 + cos(pi * (t - warm_up) / (total - warm_up))) / 2;
}

static bool good_inverse_square_root(const rapt_schedule *s)
{
    return s->warm_up > 0 ||
           rapt_fail(RAPT_ERROR_VALUE, "schedule", "the inverse square root needs a warm-up of 1 step or more");
}

/* √(warm-up / t) */
static double inverse_square_root(const rapt_schedule *s, double t)
{
    return sqrt((double)s->warm_up / t);
}

/* By kind: what it demands of the numbers, and its curve behind the warm-up. */
static const struct {
    bool (*good)(const rapt_schedule *s);
    double (*factor)(const rapt_schedule *s, double t);
} kinds[] = {
    [RAPT_SCHEDULE_CONSTANT] = {good_always, constant},
    [RAPT_SCHEDULE_STEP] = {good_step, step},
    [RAPT_SCHEDULE_COSINE] = {good_cosine, cosine},
    [RAPT_SCHEDULE_INVERSE_SQUARE_ROOT] = {good_inverse_square_root, inverse_square_root},
};

static bool check(const rapt_schedule *s, int64_t t)
{
    const char *op = "schedule";
    if (!s) return rapt_fail_null(op, "schedule");
    if ((size_t)s->kind >= sizeof kinds / sizeof *kinds)
        return rapt_fail(RAPT_ERROR_VALUE, op, "%d is not a kind of schedule", (int)s->kind);
    if (t < 0) return rapt_fail(RAPT_ERROR_VALUE, op, "step %lld; 0 or more expected", (long long)t);
    if (s->warm_up < 0)
        return rapt_fail(RAPT_ERROR_VALUE, op, "a warm-up of %lld steps; 0 or more expected", (long long)s->warm_up);
    return kinds[s->kind].good(s);
}

double rapt_schedule_factor(const rapt_schedule *schedule, int64_t t)
{
    if (!check(schedule, t)) return NAN;
    if (t < schedule->warm_up) return ((double)t + 1) / (double)schedule->warm_up;
    return kinds[schedule->kind].factor(schedule, (double)t);
}
