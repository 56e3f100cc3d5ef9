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

static double start_of(const rapt_schedule *s)
{
    return rapt_or_default(s->start, s->kind == RAPT_SCHEDULE_ONE_CYCLE ? 1. / 25 : 1);
}

static double final_of(const rapt_schedule *s)
{
    return rapt_or_default(s->final, s->kind == RAPT_SCHEDULE_ONE_CYCLE ? start_of(s) / 1e4 : 0);
}

static bool good_cosine(const rapt_schedule *s)
{
    const double final = final_of(s);
    return (s->total > s->warm_up && final >= 0 && isfinite(final)) ||
           rapt_fail(RAPT_ERROR_VALUE, "schedule",
                     "total %lld and final %g; a total above the warm-up of %lld, a final factor from 0 on expected",
                     (long long)s->total, final, (long long)s->warm_up);
}

/* final + (1 − final)·(1 + cos(π·(t − warm-up) / (total − warm-up))) / 2 */
static double cosine(const rapt_schedule *s, double t)
{
    const double pi = acos(-1.0), warm_up = (double)s->warm_up, total = (double)s->total, final = final_of(s);
    return t >= total ? final : final + (1 - final) * (1 + cos(pi * (t - warm_up) / (total - warm_up))) / 2;
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

static bool good_linear(const rapt_schedule *s)
{
    const double start = start_of(s), final = final_of(s);
    return (s->total > s->warm_up && final >= 0 && isfinite(final) && start >= 0 && isfinite(start)) ||
           rapt_fail(RAPT_ERROR_VALUE, "schedule",
                     "total %lld, start %g and final %g; a total above the warm-up of %lld, factors from 0 on expected",
                     (long long)s->total, start, final, (long long)s->warm_up);
}

/* start + (final − start)·(t − warm-up) / (total − warm-up) */
static double linear(const rapt_schedule *s, double t)
{
    const double warm_up = (double)s->warm_up, part = fmin(1, (t - warm_up) / ((double)s->total - warm_up));
    return start_of(s) + (final_of(s) - start_of(s)) * part;
}

/* From one number to another, where part goes from 0 to 1. */
static double on_curve(rapt_schedule_curve curve, double from, double to, double part)
{
    const double pi = acos(-1.0);
    switch (curve) {
    case RAPT_CURVE_COSINE:
        return to + (from - to) / 2 * (1 + cos(pi * part));
    case RAPT_CURVE_ONE_MINUS_SQUARE_ROOT:
        return from + (to - from) * sqrt(part);
    default:
        return from + (to - from) * part;
    }
}

static bool good_curve(const rapt_schedule *s)
{
    return (size_t)s->curve <= RAPT_CURVE_ONE_MINUS_SQUARE_ROOT ||
           rapt_fail(RAPT_ERROR_VALUE, "schedule", "%d is not a kind of curve", (int)s->curve);
}

/* The steps of the rise, PyTorch's pct_start·total_steps, which need not be whole. */
static double rise_of(const rapt_schedule *s)
{
    return s->warm_up > 0 ? (double)s->warm_up : 0.3 * (double)s->total;
}

static bool good_one_cycle(const rapt_schedule *s)
{
    const double rise = rise_of(s), start = start_of(s), end = final_of(s);
    if (!good_curve(s)) return false;
    return (rise > 1 && rise < (double)s->total && start >= 0 && isfinite(start) && end >= 0 && isfinite(end)) ||
           rapt_fail(RAPT_ERROR_VALUE, "schedule",
                     "total %lld, warm-up of %g steps, start %g and final %g; a warm-up of more than 1 step and below "
                     "the total, factors from 0 on expected",
                     (long long)s->total, rise, start, end);
}

/* start → 1 over the steps 0 … rise − 1, 1 → final over rise − 1 … total − 1 */
static double one_cycle(const rapt_schedule *s, double t)
{
    const rapt_schedule_curve curve = s->curve == RAPT_CURVE_DEFAULT ? RAPT_CURVE_COSINE : s->curve;
    const double peak = rise_of(s) - 1, last = (double)s->total - 1;
    if (t <= peak) return on_curve(curve, start_of(s), 1, t / peak);
    return on_curve(curve, 1, final_of(s), fmin(1, (t - peak) / (last - peak)));
}

static bool good_stable(const rapt_schedule *s)
{
    const double final = final_of(s);
    if (!good_curve(s)) return false;
    return (s->decay > 0 && s->total >= s->warm_up && s->decay <= s->total - s->warm_up && final >= 0 &&
            isfinite(final)) ||
           rapt_fail(RAPT_ERROR_VALUE, "schedule",
                     "total %lld, decay %lld and final %g; a decay of 1 step or more between the warm-up of %lld and "
                     "the total, a final factor from 0 on expected",
                     (long long)s->total, (long long)s->decay, final, (long long)s->warm_up);
}

/* 1, from total − decay on down to final */
static double stable(const rapt_schedule *s, double t)
{
    const double part = (t - (double)(s->total - s->decay)) / (double)s->decay;
    return part <= 0 ? 1 : on_curve(s->curve, 1, final_of(s), fmin(1, part));
}

/* By kind: what it demands of the numbers, and its curve behind the warm-up. */
static const struct {
    bool (*good)(const rapt_schedule *s);
    double (*factor)(const rapt_schedule *s, double t);
    bool rises; /* in its own way, not in the warm-up of the others */
} kinds[] = {
    [RAPT_SCHEDULE_CONSTANT] = {.good = good_always, .factor = constant},
    [RAPT_SCHEDULE_STEP] = {.good = good_step, .factor = step},
    [RAPT_SCHEDULE_COSINE] = {.good = good_cosine, .factor = cosine},
    [RAPT_SCHEDULE_INVERSE_SQUARE_ROOT] = {.good = good_inverse_square_root, .factor = inverse_square_root},
    [RAPT_SCHEDULE_LINEAR] = {.good = good_linear, .factor = linear},
    [RAPT_SCHEDULE_ONE_CYCLE] = {.good = good_one_cycle, .factor = one_cycle, .rises = true},
    [RAPT_SCHEDULE_WARM_UP_STABLE_DECAY] = {.good = good_stable, .factor = stable},
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
    const bool warms_up = !kinds[schedule->kind].rises && t < schedule->warm_up;
    return warms_up ? ((double)t + 1) / (double)schedule->warm_up : kinds[schedule->kind].factor(schedule, (double)t);
}

double rapt_schedule_chain_factor(int count, const rapt_schedule *schedules, const int64_t *milestones, int64_t t)
{
    const char *op = "schedule_chain";
    if (count < 1) return rapt_fail(RAPT_ERROR_VALUE, op, "%d schedules; 1 or more expected", count), NAN;
    if (!schedules || (count > 1 && !milestones))
        return rapt_fail_null(op, schedules ? "milestones" : "schedules"), NAN;
    int now = 0;
    for (int i = 0; i < count - 1; i++) {
        const int64_t before = i > 0 ? milestones[i - 1] : 0;
        if (milestones[i] <= before)
            return rapt_fail(RAPT_ERROR_VALUE, op, "milestone %d is step %lld; one after step %lld expected", i,
                             (long long)milestones[i], (long long)before),
                   NAN;
        if (t >= milestones[i]) now = i + 1;
    }
    for (int i = 0; i < count; i++)
        if (!check(&schedules[i], 0)) return NAN;
    return rapt_schedule_factor(&schedules[now], now > 0 ? t - milestones[now - 1] : t);
}
