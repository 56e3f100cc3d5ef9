/* Pools of numbers that are not ordinary, in rows of as many windows as are worked on at once and of fewer. */
#include "expect.h"

#include <rapt/autograd.h>

#include <math.h>
#include <string.h>

/* A few of these have long runs of one, so that whole windows have it. */
static double draw(int64_t i)
{
    static const double numbers[] = {-INFINITY, NAN, INFINITY, 0, -0.0, -1, 2, -3};
    return (i / 5 + i * i) % 3 ? -INFINITY : numbers[(i * 7 + i / 11) % 8];
}

/* The first of equals, and NaN before all; as by definition. */
static int64_t largest_of(const double *x, int64_t count, int64_t start, const rapt_pool *pool)
{
    int64_t best = -1;
    for (int64_t k = 0; k < pool->size[0]; k++) {
        const int64_t at = start + k * pool->dilation[0];
        if (at < 0 || at >= count) continue;
        if (best < 0 || x[at] > x[best] || (isnan(x[at]) && !isnan(x[best]))) best = at;
    }
    return best;
}

static void check_row(rapt_dtype dtype, int64_t count, const rapt_pool *pool)
{
    RAPT_SCOPE;
    double x[600], dx[600] = {0};
    for (int64_t i = 0; i < count; i++) x[i] = draw(i + count);
    rapt_tensor *row = rapt_from(RAPT_FLOAT64, RAPT_SHAPE(1, 1, count), x);
    row = rapt_require_gradient(rapt_detach(rapt_contiguous(rapt_cast(row, dtype))));
    rapt_tensor *y = rapt_max_pool1d(row, pool);
    cr_assert(y, "%s", rapt_error());
    rapt_tensor *g = rapt_add_scalar(rapt_cast(rapt_randint(0, 3, 3, rapt_shape(y)), dtype), 1);
    cr_assert(rapt_backward_from(1, &y, &g, 0), "%s", rapt_error());
    for (int64_t i = 0; i < rapt_count(y); i++) {
        const int64_t place = largest_of(x, count, i * pool->stride[0] - pool->padding[0], pool);
        const double got = rapt_at(y, (int64_t[]){0, 0, i});
        cr_expect(isnan(x[place]) ? isnan(got) : got == x[place] && signbit(got) == signbit(x[place]),
                  "window %lld of %lld numbers is %g, not %g", (long long)i, (long long)count, got, x[place]);
        dx[place] += rapt_at(g, (int64_t[]){0, 0, i});
    }
    for (int64_t i = 0; i < count; i++)
        cr_expect_eq(rapt_at(rapt_gradient(row), (int64_t[]){0, 0, i}), dx[i], "gradient %lld of %lld", (long long)i,
                     (long long)count);
    expect_no_error();
}

Test(pool_numbers, of_not_a_number_and_infinities)
{
    static const rapt_pool pools[] = {{.size = {3}, .stride = {1}, .dilation = {1}, .padding = {1}},
                                      {.size = {4}, .stride = {2}, .dilation = {1}},
                                      {.size = {3}, .stride = {3}, .dilation = {2}, .padding = {1}},
                                      {.size = {1}, .stride = {1}, .dilation = {1}}};
    for (int dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++)
        for (int i = 0; i < 4; i++)
            for (int64_t count = 7; count < 600; count += count < 30 ? 1 : 97)
                check_row((rapt_dtype)dtype, count, &pools[i]);
}

/* A window of one number sees that number, whatever its dilation is. */
Test(pool_numbers, of_windows_of_one_number)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_reshape(rapt_arange(RAPT_FLOAT32, 0, 12, 1), RAPT_SHAPE(1, 1, 12));
    for (int64_t back = 0; back < 20; back++) {
        rapt_tensor *y = rapt_max_pool1d(x, &(rapt_pool){.size = {1}, .stride = {1}, .dilation = {INT64_MAX - back}});
        cr_assert(y, "%s", rapt_error());
        cr_expect(memcmp(rapt_data(y), rapt_data(x), 12 * sizeof(float)) == 0);
    }
    expect_no_error();
}
