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

/* From here on the numbers are PyTorch 2.6's. */
Test(schedule, linear)
{
    rapt_schedule schedule = {.kind = RAPT_SCHEDULE_LINEAR, .start = 0.25, .final = 0.75, .total = 4};
    expect_factors(schedule, STEPS(0, 1, 2, 3, 4, 5), FACTORS(0.25, 0.375, 0.5, 0.625, 0.75, 0.75));
    schedule = (rapt_schedule){.kind = RAPT_SCHEDULE_LINEAR, .warm_up = 2, .total = 6};
    expect_factors(schedule, STEPS(0, 1, 2, 3, 6, 7), FACTORS(0.5, 1, 1, 0.75, 0, 0));
    schedule.start = RAPT_ZERO, schedule.final = 1;
    expect_factors(schedule, STEPS(2, 4, 6), FACTORS(0, 0.5, 1));
    schedule.start = 0, schedule.final = RAPT_ZERO;
    expect_factors(schedule, STEPS(2, 4, 6), FACTORS(1, 0.5, 0));
    schedule = (rapt_schedule){.kind = RAPT_SCHEDULE_COSINE, .total = 4, .final = RAPT_ZERO};
    expect_factors(schedule, STEPS(0, 4), FACTORS(1, 0));
    schedule = (rapt_schedule){.kind = RAPT_SCHEDULE_WARM_UP_STABLE_DECAY, .total = 4, .decay = 2, .final = RAPT_ZERO};
    expect_factors(schedule, STEPS(0, 3, 4), FACTORS(1, 0.5, 0));
}

Test(schedule, one_cycle)
{
    rapt_schedule schedule = {.kind = RAPT_SCHEDULE_ONE_CYCLE, .total = 10};
    expect_factors(schedule, STEPS(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10),
                   FACTORS(0.040000000000000036, 0.52, 1.0, 0.9504846320134737, 0.8117456539497631, 0.6112620219362893,
                           0.38874197806371075, 0.18825834605023697, 0.049519367986526286, 4e-06, 4e-06));
    schedule = (rapt_schedule){.kind = RAPT_SCHEDULE_ONE_CYCLE,
                               .total = 8,
                               .warm_up = 4,
                               .start = 0.1,
                               .final = 0.02,
                               .curve = RAPT_CURVE_LINEAR};
    expect_factors(schedule, STEPS(0, 1, 2, 3, 4, 5, 6, 7),
                   FACTORS(0.1, 0.4, 0.7, 1.0, 0.755, 0.51, 0.265, 0.020000000000000018));
}

/* By hand; √¼ = ½ */
Test(schedule, warm_up_stable_decay)
{
    rapt_schedule schedule = {.kind = RAPT_SCHEDULE_WARM_UP_STABLE_DECAY, .warm_up = 2, .total = 12, .decay = 4};
    expect_factors(schedule, STEPS(0, 1, 2, 8, 9, 10, 12, 99), FACTORS(0.5, 1, 1, 1, 0.75, 0.5, 0, 0));
    schedule.final = 0.2, schedule.curve = RAPT_CURVE_ONE_MINUS_SQUARE_ROOT;
    expect_factors(schedule, STEPS(8, 9, 12), FACTORS(1, 0.6, 0.2));
    schedule.curve = RAPT_CURVE_COSINE;
    expect_factors(schedule, STEPS(8, 10, 12), FACTORS(1, 0.6, 0.2));
}

Test(schedule, chain)
{
    const rapt_schedule links[] = {{.kind = RAPT_SCHEDULE_LINEAR, .start = 0.1, .final = 1, .total = 3},
                                   {.kind = RAPT_SCHEDULE_COSINE, .total = 4},
                                   {.kind = RAPT_SCHEDULE_STEP, .period = 2, .factor = 0.5}};
    const int64_t milestones[] = {3, 6};
    const double expected[] = {0.1, 0.4, 0.7, 1.0, 0.8535533905932737, 0.5, 1.0, 1.0, 0.5, 0.5, 0.25, 0.25};
    for (int step = 0; step < 12; step++)
        cr_expect_float_eq(rapt_schedule_chain_factor(3, links, milestones, step), expected[step], 1e-15, "step %d",
                           step);
    cr_expect_eq(rapt_schedule_chain_factor(1, links, NULL, 1), rapt_schedule_factor(links, 1));
    expect_no_error();
    cr_expect(isnan(rapt_schedule_chain_factor(0, links, milestones, 0)));
    expect_error(RAPT_ERROR_VALUE, "0 schedules");
    cr_expect(isnan(rapt_schedule_chain_factor(2, NULL, milestones, 0)));
    expect_error(RAPT_ERROR_NULL, "schedules is NULL");
    cr_expect(isnan(rapt_schedule_chain_factor(2, links, NULL, 0)));
    expect_error(RAPT_ERROR_NULL, "milestones is NULL");
    cr_expect(isnan(rapt_schedule_chain_factor(3, links, (int64_t[]){3, 3}, 0)));
    expect_error(RAPT_ERROR_VALUE, "milestone 1 is step 3; one after step 3");
    cr_expect(isnan(rapt_schedule_chain_factor(3, links, milestones, -1)));
    expect_error(RAPT_ERROR_VALUE, "step -1");
    const rapt_schedule unready[] = {{.kind = RAPT_SCHEDULE_CONSTANT}, {.kind = RAPT_SCHEDULE_COSINE}};
    cr_expect(isnan(rapt_schedule_chain_factor(2, unready, milestones, 0)), "not at the milestone only");
    expect_error(RAPT_ERROR_VALUE, "total 0");
    cr_expect(isnan(rapt_schedule_chain_factor(2, (rapt_schedule[]){unready[1], unready[0]}, milestones, 5)));
    expect_error(RAPT_ERROR_VALUE, "total 0");
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
    expect_refusal(&(rapt_schedule){.kind = RAPT_SCHEDULE_LINEAR, .warm_up = 5, .total = 5}, 0, RAPT_ERROR_VALUE,
                   "total 5");
    expect_refusal(&(rapt_schedule){.kind = RAPT_SCHEDULE_ONE_CYCLE, .total = 3}, 0, RAPT_ERROR_VALUE,
                   "warm-up of 0.9 steps");
    expect_refusal(&(rapt_schedule){.kind = RAPT_SCHEDULE_ONE_CYCLE, .total = 9, .curve = (rapt_schedule_curve)7}, 0,
                   RAPT_ERROR_VALUE, "7 is not a kind of curve");
    expect_refusal(&(rapt_schedule){.kind = RAPT_SCHEDULE_WARM_UP_STABLE_DECAY, .total = 9}, 0, RAPT_ERROR_VALUE,
                   "decay 0");
    expect_refusal(&(rapt_schedule){.kind = RAPT_SCHEDULE_WARM_UP_STABLE_DECAY, .warm_up = 6, .total = 9, .decay = 4},
                   0, RAPT_ERROR_VALUE, "decay 4");
}
