/* Learning-rate schedules, at numbers computed by hand. */
#include "expect.h"

#include <math.h>

#include <rapt/schedule.h>

static void expect_factors(rapt_schedule schedule, int count, const int64_t *steps, const double *expected)
{
    for (int i = 0; i < count; i++) {
        double factor = rapt_schedule_factor(&schedule, steps[i]);
        cr_expect_float_eq(factor, expected[i], 1e-15, "step %lld: %.17g, not %.17g", (long long)steps[i], factor,
                           expected[i]);
    }
    expect_no_error();
}

#define STEPS(...)                                                                                                     \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])                                       \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define FACTORS(...)                                                                                                   \
    (const double[])                                                                                                   \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

Test(schedule, constant)
{
    expect_factors((rapt_schedule){0}, STEPS(0, 1, 1000000), FACTORS(1, 1, 1));
    expect_factors((rapt_schedule){.warm_up = 4}, STEPS(0, 1, 2, 3, 4, 5), FACTORS(0.25, 0.5, 0.75, 1, 1, 1));
}

Test(schedule, step)
{
    rapt_schedule schedule = {.kind = RAPT_SCHEDULE_STEP, .period = 3};
    expect_factors(schedule, STEPS(0, 2, 3, 5, 6), FACTORS(1, 1, 0.1, 0.1, 0.01));
    schedule.factor = 0.5, schedule.warm_up = 2;
    expect_factors(schedule, STEPS(0, 1, 2, 4, 5, 8), FACTORS(0.5, 1, 1, 1, 0.5, 0.25));
    schedule.factor = RAPT_ZERO;
    expect_factors(schedule, STEPS(4, 5), FACTORS(1, 0));
}

/* cos(π/4) = √½, cos(π/2) = 0 */
Test(schedule, cosine)
{
    rapt_schedule schedule = {.kind = RAPT_SCHEDULE_COSINE, .warm_up = 2, .total = 10};
    expect_factors(schedule, STEPS(0, 1, 2, 4, 6, 10, 11, INT64_MAX),
                   FACTORS(0.5, 1, 1, 0.85355339059327376, 0.5, 0, 0, 0));
    schedule.final = 0.2;
    expect_factors(schedule, STEPS(2, 6, 10, 99), FACTORS(1, 0.6, 0.2, 0.2));
}

Test(schedule, inverse_square_root)
{
    rapt_schedule schedule = {.kind = RAPT_SCHEDULE_INVERSE_SQUARE_ROOT, .warm_up = 4};
    expect_factors(schedule, STEPS(0, 3, 4, 16, 400), FACTORS(0.25, 1, 1, 0.5, 0.1));
}

static void expect_refusal(const rapt_schedule *schedule, int64_t step, rapt_error_code code, const char *part)
{
    cr_expect(isnan(rapt_schedule_factor(schedule, step)), "%s", part);
    expect_error(code, part);
}

Test(schedule, bad_arguments)
{
    expect_refusal(NULL, 0, RAPT_ERROR_NULL, "schedule is NULL");
    expect_refusal(&(rapt_schedule){0}, -1, RAPT_ERROR_VALUE, "step -1");
    expect_refusal(&(rapt_schedule){.warm_up = -2}, 0, RAPT_ERROR_VALUE, "warm-up of -2");
    expect_refusal(&(rapt_schedule){.kind = (rapt_schedule_kind)9}, 0, RAPT_ERROR_VALUE, "9 is not a kind");
    expect_refusal(&(rapt_schedule){.kind = (rapt_schedule_kind)-1}, 0, RAPT_ERROR_VALUE, "not a kind");
    expect_refusal(&(rapt_schedule){.kind = RAPT_SCHEDULE_STEP}, 0, RAPT_ERROR_VALUE, "period 0");
    expect_refusal(&(rapt_schedule){.kind = RAPT_SCHEDULE_STEP, .period = 1, .factor = (double)NAN}, 0,
                   RAPT_ERROR_VALUE, "factor");
    expect_refusal(&(rapt_schedule){.kind = RAPT_SCHEDULE_COSINE, .warm_up = 5, .total = 5}, 0, RAPT_ERROR_VALUE,
                   "total 5");
    expect_refusal(&(rapt_schedule){.kind = RAPT_SCHEDULE_COSINE, .total = 5, .final = -1}, 0, RAPT_ERROR_VALUE,
                   "final -1");
    expect_refusal(&(rapt_schedule){.kind = RAPT_SCHEDULE_INVERSE_SQUARE_ROOT}, 0, RAPT_ERROR_VALUE, "warm-up");
}
