/* Softmax and its logarithm along another axis than the last one, of numbers far from 0 and of such as are not
 * ordinary: what they are of the same rows along the last axis. */
#include "expect.h"

#include <rapt/autograd.h>

#include <math.h>

typedef rapt_tensor *function(rapt_tensor *x, int axis);

enum { length = 37, rows = 150 };

/* Of each row: far below 0, far above it, only −∞, with −∞, ∞ or NaN among others. */
static double number(int64_t i, int64_t row)
{
    const double small = (double)((i * 31 + row * 17) % 23) / 5;
    const bool is_place = (i + row) % 7 == 3;
    switch (row % 6) {
    case 0:
        return small - 1e4;
    case 1:
        return small + 1e4;
    case 2:
        return -INFINITY;
    case 3:
        return is_place ? -INFINITY : small - 500;
    case 4:
        return is_place ? INFINITY : small;
    default:
        return is_place ? NAN : small;
    }
}

static void expect_like_last(const char *name, function *apply, rapt_dtype dtype)
{
    RAPT_SCOPE;
    double numbers[length * rows];
    for (int64_t i = 0; i < length * rows; i++) numbers[i] = number(i / rows, i % rows);
    rapt_tensor *x = rapt_cast(rapt_from(RAPT_FLOAT64, RAPT_SHAPE(length, rows), numbers), dtype);
    x = rapt_require_gradient(rapt_detach(x));
    rapt_tensor *y[] = {apply(x, 0), rapt_transpose(apply(rapt_transpose(x, 0, 1), 1), 0, 1)}, *dx[2];
    rapt_tensor *g = rapt_cast(rapt_randint(-2, 3, RAPT_SHAPE(length, rows)), dtype);
    cr_assert(y[0] && y[1], "%s", rapt_error());
    for (int k = 0; k < 2; k++) cr_assert(rapt_gradients(1, &y[k], &g, 1, &x, &dx[k], 0), "%s", rapt_error());
    for (int64_t i = 0; i < length * rows; i++) {
        const int64_t at[] = {i / rows, i % rows};
        const double a = rapt_at(y[0], at), b = rapt_at(y[1], at), da = rapt_at(dx[0], at), db = rapt_at(dx[1], at);
        const double near = dtype == RAPT_FLOAT64 ? 1e-11 : 2e-3; /* x is 1e4, the logarithm's digits as many */
        cr_assert(isnan(a) == isnan(b) && (isnan(a) || a == b || fabs(a - b) < near), "%s, row %lld: %g, not %g", name,
                  (long long)at[1], a, b);
        cr_assert(isnan(da) == isnan(db) && (isnan(da) || da == db || fabs(da - db) < near),
                  "gradient of %s, row %lld: %g, not %g", name, (long long)at[1], da, db);
        if (at[1] % 6 < 2) cr_assert(isfinite(a) && isfinite(da), "%s, row %lld: %g", name, (long long)at[1], a);
    }
    expect_no_error();
}

Test(softmax_along, of_numbers_far_from_0_and_not_ordinary_ones)
{
    for (int dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) {
        expect_like_last("softmax", rapt_softmax, (rapt_dtype)dtype);
        expect_like_last("log_softmax", rapt_log_softmax, (rapt_dtype)dtype);
    }
}
