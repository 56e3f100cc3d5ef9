/* What ops do where mathematics leaves a choice: ties, kinks, NaN, infinities, division by 0, nothing to attend to. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include <rapt.h>

#include "expect.h"
#include "number_row.h"

static rapt_tensor *integers(rapt_dtype dtype, int count, const double *values)
{
    return rapt_cast(row(count, values), dtype);
}

Test(op_conventions, ties_share_the_gradient)
{
    RAPT_SCOPE;
    rapt_tensor *a = ROW(1, 2, 3), *b = ROW(1, 3, 2), *c = ROW(1, 2, 3), *d = ROW(1, 3, 2), *x = ROW(4, 1, 4, 4),
                *y = ROW(0, 0, 7);
    backward(rapt_maximum(a, b));
    EXPECT(rapt_gradient(a), 0.5, 0, 1);
    EXPECT(rapt_gradient(b), 0.5, 1, 0);
    backward(rapt_minimum(c, d));
    EXPECT(rapt_gradient(c), 0.5, 1, 0);
    EXPECT(rapt_gradient(d), 0.5, 0, 1);
    backward(rapt_max(x, RAPT_ALL_AXES, false));
    EXPECT(rapt_gradient(x), 1.0 / 3, 0, 1.0 / 3, 1.0 / 3);
    backward(rapt_min(y, RAPT_ALL_AXES, false));
    EXPECT(rapt_gradient(y), 0.5, 0.5, 0);
}

Test(op_conventions, kinks_have_gradient_0)
{
    RAPT_SCOPE;
    rapt_tensor *x = ROW(-1, 0, 2), *y = ROW(-1, 0, 2), *z = ROW(-3, -1, 0, 1, 3), *w = ROW(0, 0.5);
    backward(rapt_relu(x));
    EXPECT(rapt_gradient(x), 0, 0, 1);
    backward(rapt_abs(y));
    EXPECT(rapt_gradient(y), -1, 0, 1);
    backward(rapt_clamp(z, -1, 1));
    EXPECT(rapt_gradient(z), 0, 1, 1, 1, 0);
    backward(rapt_pow_scalar(w, 0));
    EXPECT(rapt_gradient(w), 0, 0);
}

/* Of products with a zero, and with two, what is multiplied with them. */
Test(op_conventions, products_with_zeros)
{
    RAPT_SCOPE;
    rapt_tensor *x = ROW(2, 0, 3), *y = ROW(2, 0, 3, 0), *z = ROW(2, 0, 3), *w = ROW(0, 5, 0);
    backward(rapt_prod(x, RAPT_ALL_AXES, false));
    EXPECT(rapt_gradient(x), 0, 6, 0);
    backward(rapt_prod(y, RAPT_ALL_AXES, false));
    EXPECT(rapt_gradient(y), 0, 0, 0, 0);
    backward(rapt_cumprod(z, 0)); /* x + xy + xyz */
    EXPECT(rapt_gradient(z), 1, 2 + 6, 0);
    backward(rapt_cumprod(w, 0));
    EXPECT(rapt_gradient(w), 1 + 5, 0, 0);
}

Test(op_conventions, norms_overflow_only_where_their_result_does)
{
    RAPT_SCOPE;
    EXPECT(rapt_norm(ROW(1e200, 1e200), 3, RAPT_ALL_AXES, false), 1.2599210498948732e200);
    EXPECT(rapt_norm(ROW(1e-200, 0, -1e-200), 3, RAPT_ALL_AXES, false), 1.2599210498948732e-200);
    EXPECT(rapt_norm(ROW(DBL_MAX, 0), 0.5, RAPT_ALL_AXES, false), DBL_MAX);
    EXPECT(rapt_norm(ROW(1e-200, 1e300, 1e-200), -2, RAPT_ALL_AXES, false), 0.7071067811865475e-200);
    EXPECT(rapt_norm(ROW(0, 3), -2, RAPT_ALL_AXES, false), 0);
}

Test(op_conventions, gradients_of_norms_at_0)
{
    static const double orders[] = {0, 0.5, 1, 1.5, 2, 3, INFINITY};
    for (int i = 0; i < 7; i++) {
        RAPT_SCOPE;
        rapt_tensor *x = ROW(0, 0), *y = ROW(0, -3), *first = NULL;
        backward(rapt_norm(x, orders[i], RAPT_ALL_AXES, false));
        EXPECT(rapt_gradient(x), 0, 0);
        backward(rapt_norm(y, orders[i], RAPT_ALL_AXES, false));
        EXPECT(rapt_gradient(y), 0, orders[i] == 0 ? 0 : -1);
        if (orders[i] != 2) continue;
        cr_expect(rapt_gradients(1, (rapt_tensor *[]){rapt_norm(x, 2, RAPT_ALL_AXES, false)}, NULL, 1, &x, &first,
                                 RAPT_CREATE_GRAPH));
        rapt_clear_gradient(x);
        backward(first);
        EXPECT(rapt_gradient(x), 0, 0);
    }
    RAPT_SCOPE;
    rapt_tensor *equal = ROW(4, 4, 4);
    backward(rapt_std(equal, RAPT_ALL_AXES, false, 1));
    EXPECT(rapt_gradient(equal), 0, 0, 0);
}

/* Of several with one index the last is there, and has the gradient. */
Test(op_conventions, the_last_of_a_scatter_stays)
{
    RAPT_SCOPE;
    rapt_tensor *x = ROW(1, 2, 3), *source = ROW(10, 20, 30);
    rapt_tensor *indices = rapt_from(RAPT_INT64, RAPT_SHAPE(3), (const int64_t[]){2, 0, 2});
    rapt_tensor *y = rapt_scatter(x, 0, indices, source);
    EXPECT(y, 20, 2, 30);
    backward(rapt_mul(y, ROW(5, 6, 7)));
    EXPECT(rapt_gradient(x), 0, 6, 0);
    EXPECT(rapt_gradient(source), 0, 5, 7);
}

Test(op_conventions, not_a_number_is_passed_on)
{
    RAPT_SCOPE;
    rapt_tensor *a = ROW(NAN, 1, NAN), *b = ROW(1, NAN, NAN);
    EXPECT(rapt_maximum(a, b), NAN, NAN, NAN);
    EXPECT(rapt_minimum(a, b), NAN, NAN, NAN);
    EXPECT(rapt_relu(a), NAN, 1, NAN);
    EXPECT(rapt_clamp(a, 0, 5), NAN, 1, NAN);
    EXPECT(rapt_reshape(rapt_max(a, RAPT_ALL_AXES, false), RAPT_SHAPE(1)), NAN);
    EXPECT(rapt_equal(a, a), 0, 1, 0);
    EXPECT(rapt_not_equal(a, b), 1, 1, 1);
    EXPECT(rapt_argmax(ROW(5, NAN, 9, NAN), 0, true), 1);
    EXPECT(rapt_argmax(ROW(5, 9, 9, 1), 0, true), 1);
    EXPECT(rapt_argmin(ROW(5, NAN, -9, NAN), 0, true), 1);
    EXPECT(rapt_argmin(ROW(5, 1, 9, 1), 0, true), 1);
    EXPECT(rapt_cast(ROW(NAN, 1e30, -1e30, 2.9, -2.9), RAPT_INT32), 0, INT32_MAX, INT32_MIN, 2, -2);
}

Test(op_conventions, integers)
{
    RAPT_SCOPE;
    rapt_tensor *a = integers(RAPT_INT64, 4, (double[]){7, -7, 7, -7}),
                *b = integers(RAPT_INT64, 4, (double[]){2, 2, -2, -2});
    EXPECT(rapt_div(a, b), 3, -4, -4, 3);
    cr_expect_null(rapt_div(a, integers(RAPT_INT64, 4, (double[]){1, 1, 0, 1})));
    expect_error(RAPT_ERROR_VALUE, "div: an integer is divided by 0 (element 2");
    EXPECT(rapt_div(ROW(1, -1, 0), ROW(0, 0, 0)), INFINITY, -INFINITY, NAN);
    cr_expect_null(rapt_add_scalar(a, 0.5));
    expect_error(RAPT_ERROR_VALUE, "add_scalar: 0.5");
    cr_expect_null(rapt_mul_scalar(integers(RAPT_UINT8, 1, (double[]){1}), 256));
    expect_error(RAPT_ERROR_VALUE, "mul_scalar: 256");
    cr_expect_eq(rapt_item(rapt_sum(rapt_full(RAPT_UINT8, RAPT_SHAPE(1000), 200), RAPT_ALL_AXES, false)), 200000);
    rapt_tensor *large = rapt_from(RAPT_INT64, RAPT_SHAPE(2), (const int64_t[]){INT64_C(1) << 53, 1});
    const int64_t *sum = rapt_data(rapt_sum(large, RAPT_ALL_AXES, false));
    cr_expect(sum && *sum == (INT64_C(1) << 53) + 1, "integers are not summed as floats");
}

/* A number beside a tensor is one of its dtype, or an error. */
Test(op_conventions, numbers_beside_tensors)
{
    RAPT_SCOPE;
    rapt_tensor *whole = integers(RAPT_INT64, 3, (double[]){-1, 2, 5}),
                *bits = integers(RAPT_BOOL, 2, (double[]){0, 1});
    EXPECT(rapt_less_scalar(whole, 2), 1, 0, 0);
    EXPECT(rapt_greater_equal_scalar(whole, 2), 0, 1, 1);
    EXPECT(rapt_maximum_scalar(whole, 2), 2, 2, 5);
    EXPECT(rapt_equal_scalar(bits, 1), 0, 1);
    EXPECT(rapt_equal_scalar(rapt_cast(ROW(0.1, 0.2), RAPT_FLOAT32), 0.1), 1, 0);
    EXPECT(rapt_not_equal_scalar(ROW(NAN, 1), NAN), 1, 1);
    rapt_tensor *large = rapt_from(RAPT_INT64, RAPT_SHAPE(1), (const int64_t[]){(INT64_C(1) << 53) + 1});
    EXPECT(rapt_greater_scalar(large, 0x1p53), 1);
    cr_expect_null(rapt_less_scalar(whole, 2.5));
    expect_error(RAPT_ERROR_VALUE, "less_scalar: 2.5 is not a number of type int64");
    cr_expect_null(rapt_greater_scalar(integers(RAPT_UINT8, 1, (double[]){1}), 300));
    expect_error(RAPT_ERROR_VALUE, "greater_scalar: 300 is not a number of type uint8");
    cr_expect_null(rapt_equal_scalar(bits, 2));
    expect_error(RAPT_ERROR_VALUE, "equal_scalar: 2 is not a number of type bool");
    cr_expect_null(rapt_minimum_scalar(whole, NAN));
    expect_error(RAPT_ERROR_VALUE, "minimum_scalar: nan");
    cr_expect_null(rapt_masked_fill(whole, integers(RAPT_BOOL, 3, (double[]){1, 0, 1}), 0.5));
    expect_error(RAPT_ERROR_VALUE, "masked_fill: 0.5 is not a number of type int64");
    cr_expect_null(rapt_pad(integers(RAPT_UINT8, 1, (double[]){1}), 0, 1, 0, 256.7));
    expect_error(RAPT_ERROR_VALUE, "pad: 256.7 is not a number of type uint8");
    cr_expect_null(rapt_pad(whole, 0, 0, 1, NAN));
    expect_error(RAPT_ERROR_VALUE, "pad: nan is not a number of type int64");
    EXPECT(rapt_pad(whole, 0, 0, 1, -3), -1, 2, 5, -3);
    cr_expect_null(rapt_masked_fill(whole, whole, 1));
    expect_error(RAPT_ERROR_DTYPE, "masked_fill: the mask is int64; bool expected");
    cr_expect_null(rapt_masked_fill(whole, rapt_ones(RAPT_BOOL, RAPT_SHAPE(2, 3)), 1));
    expect_error(RAPT_ERROR_SHAPE, "masked_fill: a mask of shape [2, 3] does not broadcast to x of shape [3]");

    rapt_tensor *x = ROW(1, 2, 3), *y = ROW(1, 2, NAN);
    backward(rapt_maximum_scalar(x, 2));
    EXPECT(rapt_gradient(x), 0, 0.5, 1);
    backward(rapt_masked_fill(y, rapt_greater_scalar(ROW(0, 1, 1), 0), 7));
    EXPECT(rapt_gradient(y), 1, 0, 0);
}

/* What is not taken has no part in the gradient; PyTorch's values. */
Test(op_conventions, slopes_that_are_infinite)
{
    RAPT_SCOPE;
    rapt_tensor *x = ROW(2, -1), *y = ROW(2, -1);
    EXPECT(rapt_leaky_relu(x, INFINITY), 2, -INFINITY);
    backward(rapt_leaky_relu(x, INFINITY));
    EXPECT(rapt_gradient(x), 1, INFINITY);
    EXPECT(rapt_elu(y, INFINITY), 2, -INFINITY);
    backward(rapt_elu(y, INFINITY));
    EXPECT(rapt_gradient(y), 1, INFINITY);
}

Test(op_conventions, means_of_integers)
{
    RAPT_SCOPE;
    rapt_tensor *right =
        rapt_equal(integers(RAPT_INT64, 4, (double[]){1, 2, 3, 4}), integers(RAPT_INT64, 4, (double[]){1, 2, 0, 4}));
    rapt_tensor *share = rapt_mean(right, RAPT_ALL_AXES, false);
    cr_expect_eq(rapt_get_dtype(share), RAPT_FLOAT32);
    cr_expect_eq(rapt_item(share), 0.75);
    rapt_tensor *large = rapt_full(RAPT_INT64, RAPT_SHAPE(3), 0x1p62);
    cr_expect_eq(rapt_item(rapt_mean(large, RAPT_ALL_AXES, false)), 0x1p62, "no sum wraps around");
    cr_expect(isnan(rapt_item(rapt_mean(rapt_zeros(RAPT_BOOL, RAPT_SHAPE(0)), RAPT_ALL_AXES, false))));
}

/* As in PyTorch. */
Test(op_conventions, slopes_of_not_a_number)
{
    RAPT_SCOPE;
    rapt_tensor *x[] = {ROW(NAN, -1), ROW(NAN, 0.5), ROW(NAN, 3), ROW(NAN, 2)};
    backward(rapt_abs(x[0]));
    EXPECT(rapt_gradient(x[0]), 0, -1);
    backward(rapt_clamp(x[1], 0, 1));
    EXPECT(rapt_gradient(x[1]), 0, 1);
    backward(rapt_l1_loss(x[2], ROW(1, 1), RAPT_REDUCE_SUM));
    EXPECT(rapt_gradient(x[2]), 0, 1);
    backward(rapt_pow(x[3], ROW(0, 0)));
    EXPECT(rapt_gradient(x[3]), 0, 0);
}

/* Huber's loss is a parabola where |d| < delta, and straight from there on. */
Test(op_conventions, huber_bends_inside)
{
    RAPT_SCOPE;
    rapt_tensor *x = ROW(-2, -1.5, 0, 1.5, 2), *zero = ROW(0, 0, 0, 0, 0), *slope, *bend;
    rapt_tensor *loss = rapt_huber_loss(x, zero, 1.5, RAPT_REDUCE_SUM);
    cr_expect(rapt_gradients(1, &loss, NULL, 1, &x, &slope, RAPT_CREATE_GRAPH));
    EXPECT(slope, -1.5, -1.5, 0, 1.5, 1.5);
    rapt_tensor *sum = rapt_sum(slope, RAPT_ALL_AXES, false);
    cr_expect(rapt_gradients(1, &sum, NULL, 1, &x, &bend, 0));
    EXPECT(bend, 0, 0, 1, 0, 0);
}

Test(op_conventions, powers_of_0)
{
    RAPT_SCOPE;
    rapt_tensor *a = ROW(0, 0, 0, 2), *b = ROW(0, 1, 2, 0);
    rapt_tensor *y = rapt_pow(a, b);
    EXPECT(y, 1, 0, 0, 1);
    backward(y);
    EXPECT(rapt_gradient(a), 0, 1, 0, 0);
    EXPECT(rapt_gradient(b), 0, 0, 0, log(2));
}

Test(op_conventions, exponentials_do_not_overflow)
{
    RAPT_SCOPE;
    rapt_tensor *x = ROW(1000, 1000, -1000), *y = ROW(-INFINITY, 0), *none = ROW(-INFINITY, -INFINITY),
                *z = ROW(800, -800);
    EXPECT(rapt_softmax(x, 0), 0.5, 0.5, 0);
    EXPECT(rapt_log_softmax(x, 0), -log(2), -log(2), -2000 - log(2));
    EXPECT(rapt_logsumexp(x, RAPT_AXES(0), true), 1000 + log(2));
    EXPECT(rapt_softmax(y, 0), 0, 1);
    EXPECT(rapt_logsumexp(none, RAPT_AXES(0), true), -INFINITY);
    backward(rapt_logsumexp(none, RAPT_AXES(0), true));
    EXPECT(rapt_gradient(none), 0, 0);
    EXPECT(rapt_sigmoid(z), 1, 0);
    EXPECT(rapt_silu(z), 800, 0);
    EXPECT(rapt_bce_with_logits(z, ROW(0, 0), RAPT_REDUCE_NONE), 800, 0);
    EXPECT(rapt_bce_with_logits(z, ROW(1, 1), RAPT_REDUCE_NONE), 0, 800);
    EXPECT(rapt_kl_div(ROW(-1, -2), ROW(0, 1), RAPT_REDUCE_NONE), 0, 2);
    EXPECT(rapt_cross_entropy(rapt_reshape(x, RAPT_SHAPE(1, 3)), integers(RAPT_INT64, 1, (double[]){2}),
                              &(rapt_cross_entropy_options){.reduction = RAPT_REDUCE_NONE}),
           2000 + log(2));
}

/* No square or sum on the way to a number overflows. */
Test(op_conventions, rows_of_the_largest_numbers)
{
    static const double largest[] = {[RAPT_FLOAT32] = (double)FLT_MAX, [RAPT_FLOAT64] = DBL_MAX};
    for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) {
        RAPT_SCOPE;
        const double l = largest[dtype], tolerance = dtype == RAPT_FLOAT32 ? 1e-6 : 1e-14;
        const double centered[] = {sqrt(0.5), sqrt(0.5), -sqrt(2)}, plain[] = {1, 1, -1};
        rapt_tensor *x = rapt_require_gradient(rapt_detach(rapt_cast(ROW(l, l, -l), dtype))), *g;
        for (int k = 0; k < 2; k++) {
            rapt_tensor *y = k == 0 ? rapt_layer_normalize(x, NULL, NULL, 1e-5) : rapt_rms_normalize(x, NULL, 1e-5);
            rapt_tensor *start = rapt_cast(ROW(1, 2, 4), dtype);
            for (int64_t i = 0; i < 3; i++)
                cr_expect_float_eq(rapt_at(y, &i), k == 0 ? centered[i] : plain[i], tolerance);
            cr_expect(rapt_gradients(1, &y, &start, 1, &x, &g, 0));
            for (int64_t i = 0; i < 3; i++) cr_expect_lt(fabs(rapt_at(g, &i)), 8 / l, "gradient %g", rapt_at(g, &i));
        }
    }
    rapt_tensor *x = rapt_full(RAPT_FLOAT32, RAPT_SHAPE(3), (double)FLT_MAX);
    cr_expect_eq(rapt_item(rapt_mean(x, RAPT_ALL_AXES, false)), (double)FLT_MAX);
    EXPECT(rapt_bce_with_logits(ROW(INFINITY, -INFINITY), ROW(0, 1), RAPT_REDUCE_NONE), INFINITY, INFINITY);
}

Test(op_conventions, nothing_to_average)
{
    RAPT_SCOPE;
    rapt_tensor *logits = rapt_require_gradient(rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2, 3)));
    rapt_cross_entropy_options ignoring = {.has_ignore_index = true, .ignore_index = -100};
    rapt_cross_entropy_options half = {.ignore_index = 3};
    rapt_tensor *targets = rapt_full(RAPT_INT64, RAPT_SHAPE(2), -100);
    rapt_tensor *loss = rapt_cross_entropy(logits, targets, &ignoring);
    cr_expect_eq(rapt_item(loss), 0);
    backward(loss);
    EXPECT(rapt_reshape(rapt_gradient(logits), RAPT_SHAPE(6)), 0, 0, 0, 0, 0, 0);
    cr_expect_eq(rapt_item(rapt_nll_loss(logits, targets, &ignoring)), 0);
    rapt_tensor *no_classes = rapt_require_gradient(rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(2, 0)));
    cr_expect_eq(rapt_item(rapt_cross_entropy(no_classes, targets, &ignoring)), 0);
    loss = rapt_nll_loss(no_classes, targets, &ignoring);
    cr_expect_eq(rapt_item(loss), 0);
    backward(loss);
    cr_expect_null(rapt_cross_entropy(logits, targets, &half));
    cr_expect(rapt_error() && strstr(rapt_error(), "ignore_index is 3, and has_ignore_index is false"));
    rapt_clear_error();
    cr_expect(isnan(rapt_item(rapt_mean(rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(0)), RAPT_ALL_AXES, false))));
    cr_expect_eq(rapt_item(rapt_sum(rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(0)), RAPT_ALL_AXES, false)), 0);
}

/* Masked keys have no influence, whatever they hold; a row without keys is zeros, and so is its gradient. */
Test(op_conventions, masked_softmax)
{
    RAPT_SCOPE;
    const double values[] = {1, 2, NAN, 3, INFINITY, NAN, NAN, NAN, NAN};
    rapt_tensor *scores = rapt_require_gradient(rapt_from(RAPT_FLOAT64, RAPT_SHAPE(3, 1, 3), values));
    rapt_tensor *weights = rapt_masked_softmax(scores, RAPT_MASK(.valid_lengths = ROW(2, 0.5, 0)));
    double p = 1 / (1 + exp(1));
    EXPECT(rapt_reshape(weights, RAPT_SHAPE(9)), p, 1 - p, 0, 1, 0, 0, 0, 0, 0);
    const double start[] = {1, 0, 5, 1, 1, 1, 1, 1, 1};
    rapt_tensor *cotangent = rapt_from(RAPT_FLOAT64, RAPT_SHAPE(3, 1, 3), start);
    cr_expect(rapt_backward_from(1, &weights, &cotangent, 0), "%s", rapt_error());
    EXPECT(rapt_reshape(rapt_gradient(scores), RAPT_SHAPE(9)), p * (1 - p), -p * (1 - p), 0, 0, 0, 0, 0, 0, 0);
}

Test(op_conventions, dropout)
{
    RAPT_SCOPE;
    enum { count = 100000 };
    rapt_seed(5);
    rapt_tensor *x = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(count)));
    rapt_tensor *y = rapt_drop(x, 0.2), *again = rapt_drop(x, 0.2);
    const float *a = rapt_data(y), *b = rapt_data(again);
    int dropped = 0, both = 0;
    for (int i = 0; i < count; i++) {
        cr_assert(a[i] == 0 || a[i] == 1.25F);
        dropped += a[i] == 0;
        both += a[i] == 0 && b[i] == 0;
    }
    cr_expect(abs(dropped - 20000) < 700 && abs(both - 4000) < 330, "%d dropped, %d of them twice", dropped, both);
    backward(y);
    const float *gradient = rapt_data(rapt_gradient(x));
    for (int i = 0; i < count; i++) cr_assert_eq(gradient[i], a[i], "backward drops others than forward");
}

/* A gradient that no cache holds is written past them, from whatever place a row begins at. */
Test(op_conventions, rows_that_nobody_chose_have_no_gradient)
{
    RAPT_SCOPE;
    enum { rows = 260000, size = 33, chosen = 3, twice = 7 };
    rapt_tensor *table = rapt_require_gradient(rapt_full(RAPT_FLOAT32, RAPT_SHAPE(rows, size), (double)NAN));
    backward(rapt_embed(table, rapt_from(RAPT_INT64, RAPT_SHAPE(3), (int64_t[]){twice, chosen, twice})));
    const float *gradient = rapt_data(rapt_gradient(table));
    int64_t wrong = 0;
    for (int64_t i = 0; i < rows * size; i++) {
        const int64_t row = i / size;
        wrong += gradient[i] != (float)((row == chosen) + 2 * (row == twice));
    }
    cr_expect_eq(wrong, 0);
}

Test(op_conventions, reshape_shares_memory_where_strides_allow)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_slice(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(4, 6)), 1, 0, 3, 1), *y;
    const int64_t shapes[][3] = {{4, 3, 1}, {1, 4, 3}, {2, 2, 3}, {4, 1, 3}};
    for (int i = 0; i < 4; i++) {
        cr_assert(y = rapt_reshape(x, 3, shapes[i]), "%s", rapt_error());
        cr_expect(rapt_data(y) == rapt_data(x), "shape %d", i);
    }
    cr_expect(rapt_data(rapt_reshape(x, RAPT_SHAPE(2, 6))) != rapt_data(x));
}
