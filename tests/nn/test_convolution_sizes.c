/* Convolutions of images large enough that their parts are packed, against sums one by one: of small whole numbers,
 * which every order of adding gives exactly. */
#include "expect.h"

#include <rapt/autograd.h>

#include <math.h>

typedef struct size_case {
    int64_t items, channels, height, width, out, size[2];
    rapt_convolution how;
} size_case;

static const size_case cases[] = {
    {8, 40, 11, 13, 36, {3, 2}, {.padding = {1, 1}}},
    {8, 70, 9, 8, 33, {3, 3}, {.padding = {1, 1}}}, /* two blocks of terms forward and back */
    {2, 8, 40, 37, 300, {1, 1}, {.groups = 1}},     /* two blocks of terms of dx */
    {3, 48, 19, 17, 48, {3, 3}, {.stride = {2, 2}, .padding = {1, 0}, .groups = 2}},
    {4, 24, 20, 22, 20, {5, 3}, {.dilation = {2, 3}, .padding = {4, 3}}},
    {16, 64, 5, 7, 17, {2, 2}, {.stride = {1, 3}}},
    {1, 33, 30, 31, 18, {3, 3}, {.padding = {2, 2}}},
    {1, 64, 6, 6, 64, {3, 3}, {.padding = {1, 1}}}, /* too few parts */
    {5, 3, 28, 28, 6, {5, 5}, {.padding = {2, 2}}}, /* too few channels */
    {2, 512, 3, 12, 32, {3, 1}, {.padding = {1, 0}}},
    /* few channels a group, without columns */
    {3, 8, 17, 21, 8, {3, 3}, {.padding = {1, 1}, .groups = 8}},
    {2, 6, 16, 15, 12, {3, 5}, {.stride = {2, 2}, .padding = {1, 2}, .groups = 6}},
    {2, 4, 14, 19, 8, {2, 3}, {.stride = {3, 1}, .padding = {1, 1}, .dilation = {2, 3}, .groups = 2}},
    {20, 1, 12, 13, 4, {5, 5}, {.stride = {1, 2}, .padding = {4, 0}, .dilation = {1, 2}}},
    {2, 3, 9, 33, 3, {1, 2}, {.stride = {2, 3}, .groups = 3}}, /* planes that no window sees */
    {3, 4, 1, 70, 4, {1, 7}, {.padding = {0, 3}, .groups = 2}},
    {1, 2, 1, 1, 2, {3, 3}, {.padding = {1, 1}, .groups = 2}},
    {2, 2, 8, 8, 2, {3, 3}, {.padding = {30, 30}, .groups = 2}}, /* more padding than image */
};

static rapt_tensor *numbers(rapt_dtype dtype, int rank, const int64_t *shape)
{
    return rapt_cast(rapt_randint(-3, 4, rank, shape), dtype);
}

static rapt_tensor *wide(rapt_tensor *x)
{
    return rapt_contiguous(rapt_cast(x, RAPT_FLOAT64));
}

typedef struct sums {
    const double *x, *weight, *bias, *g;
    double *y, *dx, *dweight;
} sums;

/* All that one place of an output has to do with. */
static void add_window(const size_case *c, const sums *s, int64_t b, int64_t o, int64_t i, int64_t j, int64_t place)
{
    const int64_t groups = c->how.groups ? c->how.groups : 1, in = c->channels / groups;
    double sum = s->bias[o];
    for (int64_t k = 0; k < in * c->size[0] * c->size[1]; k++) {
        const int64_t channel = o / (c->out / groups) * in + k / (c->size[0] * c->size[1]);
        int64_t at[2] = {i, j}, tap[2] = {k / c->size[1] % c->size[0], k % c->size[1]};
        for (int axis = 0; axis < 2; axis++)
            at[axis] = at[axis] * (c->how.stride[axis] ? c->how.stride[axis] : 1) - c->how.padding[axis] +
                       tap[axis] * (c->how.dilation[axis] ? c->how.dilation[axis] : 1);
        if (at[0] < 0 || at[0] >= c->height || at[1] < 0 || at[1] >= c->width) continue;
        const int64_t pixel = ((b * c->channels + channel) * c->height + at[0]) * c->width + at[1];
        const int64_t number = o * in * c->size[0] * c->size[1] + k;
        sum += s->x[pixel] * s->weight[number];
        s->dx[pixel] += s->g[place] * s->weight[number];
        s->dweight[number] += s->g[place] * s->x[pixel];
    }
    s->y[place] = sum;
}

static void expect_same(const char *what, int number, rapt_dtype dtype, rapt_tensor *got, rapt_tensor *expected)
{
    cr_assert(got && rapt_count(got) == rapt_count(expected), "%s of case %d: %s", what, number, rapt_error());
    const double *a = rapt_data(wide(got)), *b = rapt_data(expected);
    for (int64_t i = 0; i < rapt_count(expected); i++)
        cr_assert_eq(a[i], b[i], "%s of case %d, %s: element %lld is %g, not %g", what, number, rapt_dtype_name(dtype),
                     (long long)i, a[i], b[i]);
}

static void check(int number, rapt_dtype dtype)
{
    RAPT_SCOPE;
    const size_case *c = &cases[number];
    const int64_t groups = c->how.groups ? c->how.groups : 1;
    rapt_tensor *x = rapt_require_gradient(numbers(dtype, RAPT_SHAPE(c->items, c->channels, c->height, c->width)));
    rapt_tensor *weight =
        rapt_require_gradient(numbers(dtype, RAPT_SHAPE(c->out, c->channels / groups, c->size[0], c->size[1])));
    rapt_tensor *bias = numbers(dtype, RAPT_SHAPE(c->out)), *y = rapt_conv2d(x, weight, bias, &c->how);
    cr_assert(y, "%s", rapt_error());
    rapt_tensor *g = numbers(dtype, rapt_rank(y), rapt_shape(y));
    cr_assert(rapt_backward_from(1, &y, &g, 0), "%s", rapt_error());
    RAPT_NO_GRADIENT;
    rapt_tensor *expected = rapt_zeros(RAPT_FLOAT64, rapt_rank(y), rapt_shape(y)),
                *dx = rapt_zeros(RAPT_FLOAT64, rapt_rank(x), rapt_shape(x)),
                *dweight = rapt_zeros(RAPT_FLOAT64, rapt_rank(weight), rapt_shape(weight));
    const sums s = {rapt_data(wide(x)),
                    rapt_data(wide(weight)),
                    rapt_data(wide(bias)),
                    rapt_data(wide(g)),
                    rapt_data_for_writing(expected),
                    rapt_data_for_writing(dx),
                    rapt_data_for_writing(dweight)};
    const int64_t *shape = rapt_shape(y);
    for (int64_t place = 0; place < rapt_count(y); place++)
        add_window(c, &s, place / (shape[1] * shape[2] * shape[3]), place / (shape[2] * shape[3]) % shape[1],
                   place / shape[3] % shape[2], place % shape[3], place);
    expect_same("y", number, dtype, y, expected);
    expect_same("dx", number, dtype, rapt_gradient(x), dx);
    expect_same("dweight", number, dtype, rapt_gradient(weight), dweight);
    expect_no_error();
}

Test(convolution_sizes, sums_are_those_of_all_windows)
{
    rapt_seed(3);
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        check(i, RAPT_FLOAT32);
        check(i, RAPT_FLOAT64);
    }
}

/* y and dx of one item of a batch, by itself. */
static rapt_tensor *alone(rapt_tensor *batch, int64_t item)
{
    return rapt_contiguous(rapt_slice(batch, 0, item, item + 1, 1));
}

static void expect_bits(const char *what, rapt_tensor *a, rapt_tensor *b)
{
    const size_t bytes = (size_t)rapt_count(b) * rapt_dtype_size(rapt_get_dtype(b));
    cr_expect(rapt_count(a) == rapt_count(b) && memcmp(rapt_data(a), rapt_data(b), bytes) == 0, "%s", what);
}

static void expect_bits_alone(const rapt_convolution *how)
{
    RAPT_SCOPE;
    const int64_t out = how->groups ? 70 : 36, in = how->groups ? 1 : 70;
    rapt_seed(5);
    rapt_tensor *x = rapt_require_gradient(rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(20, 70, 24, 25))),
                *weight = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(out, in, 3, 3)), *y = rapt_conv2d(x, weight, NULL, how);
    rapt_tensor *g = rapt_randn_like(y);
    cr_assert(rapt_backward_from(1, &y, &g, 0), "%s", rapt_error());
    for (int64_t item = 0; item < 20; item += 19) {
        rapt_tensor *one = rapt_require_gradient(rapt_detach(alone(x, item))), *its_g = alone(g, item);
        rapt_tensor *its_y = rapt_conv2d(one, weight, NULL, how);
        cr_assert(rapt_backward_from(1, &its_y, &its_g, 0), "%s", rapt_error());
        expect_bits("y", its_y, alone(y, item));
        expect_bits("dx", rapt_gradient(one), alone(rapt_gradient(x), item));
    }
    expect_no_error();
}

Test(convolution_sizes, an_item_has_the_bits_that_it_has_alone)
{
    expect_bits_alone(&(const rapt_convolution){.padding = {1, 1}});
    expect_bits_alone(&(const rapt_convolution){.padding = {1, 1}, .groups = 70});
}

/* What no window sees of x and of the weight together does not reach dx or dweight, whatever it is. */
Test(convolution_sizes, an_infinity_reaches_what_it_is_multiplied_with)
{
    RAPT_SCOPE;
    const rapt_convolution padded = {.padding = {1, 1}, .groups = 2};
    rapt_tensor *x = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 2, 4, 4))),
                *weight = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 1, 3, 3)));
    ((float *)rapt_data_for_writing(x))[3] = INFINITY;      /* at the right: not seen by taps at the left */
    ((float *)rapt_data_for_writing(weight))[2] = INFINITY; /* at the top and right: never sees the lowest row */
    rapt_tensor *y = rapt_conv2d(x, weight, NULL, &padded), *g = rapt_ones_like(y);
    cr_assert(rapt_backward_from(1, &y, &g, 0), "%s", rapt_error());
    const float *dx = rapt_data(rapt_gradient(x)), *dweight = rapt_data(rapt_gradient(weight));
    for (int i = 0; i < 32; i++)
        cr_expect(!isnan(dx[i]) && (isinf(dx[i]) != 0) == (i < 12 && i % 4 > 0), "dx[%d] is %g", i, (double)dx[i]);
    for (int i = 0; i < 18; i++) {
        const bool meets = i < 6 && i % 3 > 0;
        cr_expect(!isnan(dweight[i]) && (isinf(dweight[i]) != 0) == meets, "dweight[%d] is %g", i, (double)dweight[i]);
    }
    expect_no_error();
}
