/* Early stopping and plateaus; the plateaus' factors are those of PyTorch 2.6's ReduceLROnPlateau. */
#include "expect.h"

#include <math.h>

#include <rapt/watch.h>

Test(watch, stops_after_more_than_patience_values)
{
    rapt_watch watch = {.patience = 2};
    const double values[] = {3, 2, 2, 2.5, 1, 1, (double)NAN, 1};
    const bool best[] = {true, true, false, false, true, false, false, false};
    for (int i = 0; i < 8; i++) {
        cr_expect_eq(rapt_watch_take(&watch, values[i]), best[i], "value %d", i);
        cr_expect_eq(rapt_watch_is_over(&watch), i == 7, "value %d", i);
    }
    cr_expect_eq(watch.best, 1);
    cr_expect_eq(watch.best_at, 5);
    cr_expect_eq(watch.values, 8);
    expect_no_error();
}

Test(watch, thresholds_and_directions)
{
    rapt_watch higher = {.maximize = true, .threshold = 0.1}, lower = {.absolute = true, .threshold = 0.5};
    cr_expect_not(rapt_watch_take(&higher, (double)NAN));
    cr_expect(rapt_watch_take(&higher, 10));
    cr_expect_not(rapt_watch_take(&higher, 10.9));
    cr_expect(rapt_watch_take(&higher, 11.1));
    cr_expect(rapt_watch_take(&lower, 1));
    cr_expect_not(rapt_watch_take(&lower, 0.6));
    cr_expect(rapt_watch_take(&lower, 0.4));
    expect_no_error();
}

/* A part of a negative value is as far from it as of the positive one. */
Test(watch, negative_values)
{
    rapt_watch lower = {.threshold = 0.1}, higher = {.threshold = 0.01, .maximize = true};
    const double down[] = {-1, -0.95, -1.05, -1.11, -1.2}, up[] = {-100, -100.5, -99.5, -98.9, -98};
    const bool best[] = {true, false, false, true, false};
    for (int i = 0; i < 5; i++) {
        cr_expect_eq(rapt_watch_take(&lower, down[i]), best[i], "%g", down[i]);
        cr_expect_eq(rapt_watch_take(&higher, up[i]), best[i], "%g", up[i]);
    }
    cr_expect_eq(lower.best, -1.11);
    cr_expect_eq(higher.best, -98.9);
    expect_no_error();
}

/* A first evaluation may overflow. */
Test(watch, what_is_finite_is_better_than_infinity)
{
    for (int absolute = 0; absolute < 2; absolute++)
        for (int part = 0; part < 3; part++) {
            rapt_watch lower = {.absolute = absolute, .threshold = part}, higher = lower;
            higher.maximize = true;
            cr_expect(rapt_watch_take(&lower, INFINITY) && rapt_watch_take(&higher, -INFINITY));
            cr_expect_not(rapt_watch_take(&lower, INFINITY) || rapt_watch_take(&higher, -INFINITY));
            cr_expect(rapt_watch_take(&lower, 1e300), "threshold %d", part);
            cr_expect(rapt_watch_take(&higher, -1e300), "threshold %d", part);
            cr_expect_eq(lower.best, 1e300);
            cr_expect_eq(higher.best, -1e300);
        }
    expect_no_error();
}

static void expect_factors(rapt_plateau plateau, const double *expected)
{
    const double values[] = {5, 4, 4, 3.9999, 4, 4, 4, 3, 3, 3, 3, (double)NAN, 3, 2, 2, 2, 2, 2, 2};
    for (int i = 0; i < 19; i++) {
        const double factor = rapt_plateau_factor(&plateau, values[i]);
        cr_expect_float_eq(factor, expected[i], 1e-15, "value %d: %g, not %g", i, factor, expected[i]);
    }
    expect_no_error();
}

Test(watch, plateau)
{
    expect_factors((rapt_plateau){.watch = {.patience = 1, .threshold = 1e-4}, .cut = 0.5, .cool_down = 2},
                   (double[]){1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.125, 0.125,
                              0.125, 0.125});
    expect_factors((rapt_plateau){.watch = {.maximize = true, .absolute = true, .patience = 2, .threshold = 0.5},
                                  .least = 0.003},
                   (double[]){1, 1, 1, 0.1, 0.1, 0.1, 0.01, 0.01, 0.01, 0.003, 0.003, 0.003, 0.003, 0.003, 0.003, 0.003,
                              0.003, 0.003, 0.003});
}

Test(watch, counts_do_not_overflow)
{
    rapt_plateau plateau = {.cuts = INT64_MAX, .watch = {.best = 1, .values = 1, .best_at = 1}};
    cr_expect_eq(rapt_plateau_factor(&plateau, 2), 0);
    cr_expect_eq(plateau.cuts, INT64_MAX);
}

Test(watch, bad_arguments)
{
    cr_expect_not(rapt_watch_take(NULL, 1));
    expect_error(RAPT_ERROR_NULL, "watch is NULL");
    cr_expect_not(rapt_watch_is_over(NULL));
    expect_error(RAPT_ERROR_NULL, "watch is NULL");
    cr_expect_not(rapt_watch_take(&(rapt_watch){.patience = -1}, 1));
    expect_error(RAPT_ERROR_VALUE, "patience -1");
    cr_expect_not(rapt_watch_take(&(rapt_watch){.threshold = (double)NAN}, 1));
    expect_error(RAPT_ERROR_VALUE, "threshold");
    cr_expect(isnan(rapt_plateau_factor(NULL, 1)));
    expect_error(RAPT_ERROR_NULL, "plateau is NULL");
    rapt_plateau plateau = {.cut = 1};
    cr_expect(isnan(rapt_plateau_factor(&plateau, 1)));
    expect_error(RAPT_ERROR_VALUE, "cut 1");
    cr_expect_eq(plateau.watch.values, 0);
    cr_expect(isnan(rapt_plateau_factor(&(rapt_plateau){.least = 2}, 1)));
    expect_error(RAPT_ERROR_VALUE, "least 2");
}
