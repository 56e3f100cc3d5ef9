/* Tensors of one axis written in place, and what is expected of their elements. */
#ifndef RAPT_TESTS_NUMBER_ROW_H
#define RAPT_TESTS_NUMBER_ROW_H

#include <criterion/criterion.h>
#include <math.h>

#include <rapt.h>

static inline rapt_tensor *row(int count, const double *values)
{
    const int64_t shape[] = {count};
    return rapt_require_gradient(rapt_from(RAPT_FLOAT64, 1, shape, values));
}
#define ROW(...) row((int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (double[]){__VA_ARGS__})

static inline void expect_row(const rapt_tensor *got, int count, const double *expected)
{
    cr_assert(got, "%s", rapt_error());
    cr_assert_eq(rapt_count(got), count);
    for (int64_t i = 0; i < count; i++) {
        double value = rapt_at(got, &i);
        cr_expect(fabs(value - expected[i]) <= 1e-14 * (1 + fabs(expected[i])) || value == expected[i] ||
                      (isnan(value) && isnan(expected[i])),
                  "element %d is %.17g, expected %.17g", (int)i, value, expected[i]);
    }
}
#define EXPECT(got, ...)                                                                                               \
    expect_row(got, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (double[]){__VA_ARGS__})

static inline void backward(rapt_tensor *y)
{
    cr_expect(rapt_backward(rapt_sum(y, RAPT_ALL_AXES, false)), "%s", rapt_error());
}

#endif
