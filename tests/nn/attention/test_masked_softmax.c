/* Softmax over the keys that a mask leaves: golden numbers, lengths of all kinds, rows without a key, the book's
 * −10⁶. */
#include "modules.h"

/* What scores 0.1·i give: a row depends on its length only. */
static const double golden[5][4] = {{0, 0, 0, 0},
                                    {1, 0, 0, 0},
                                    {0.47502081, 0.52497919, 0, 0},
                                    {0.30060961, 0.33222499, 0.36716540, 0},
                                    {0.21383822, 0.23632778, 0.26118259, 0.28865141}};

static rapt_tensor *tenths(rapt_dtype dtype)
{
    rapt_tensor *scores = rapt_mul_scalar(rapt_arange(RAPT_FLOAT64, 0, 16, 1), 0.1);
    return rapt_cast(rapt_reshape(scores, RAPT_SHAPE(2, 2, 4)), dtype);
}

static void expect_rows(const char *what, rapt_dtype dtype, rapt_tensor *lengths, const int rows[4])
{
    double expected[16];
    for (int i = 0; i < 16; i++) expected[i] = golden[rows[i / 4]][i % 4];
    rapt_tensor *weights = rapt_masked_softmax(tenths(dtype), RAPT_MASK(.valid_lengths = lengths));
    expect_shape(weights, RAPT_SHAPE(2, 2, 4));
    expect_values(what, weights, 16, expected, dtype == RAPT_FLOAT64 ? 1e-8 : 1e-7);
    const double *values = values_of(weights);
    for (int i = 0; i < 16; i++)
        cr_expect((values[i] == 0) == (i % 4 >= rows[i / 4]), "%s: masked weights are 0, others not", what);
}

Test(masked_softmax, golden_numbers)
{
    for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) {
        RAPT_SCOPE;
        const int64_t one_each[] = {2, 3}, matrix[] = {1, 3, 2, 4}, all[] = {4, 100};
        expect_rows("NULL", dtype, NULL, (int[]){4, 4, 4, 4});
        expect_rows("[2, 3]", dtype, rapt_from(RAPT_INT64, RAPT_SHAPE(2), one_each), (int[]){2, 2, 3, 3});
        expect_rows("[[1, 3], [2, 4]]", dtype, rapt_from(RAPT_INT64, RAPT_SHAPE(2, 2), matrix), (int[]){1, 3, 2, 4});
        expect_rows("[4, 100]", dtype, rapt_from(RAPT_INT64, RAPT_SHAPE(2), all), (int[]){4, 4, 4, 4});
    }
    expect_no_error();
}

/* Keep key j iff j < length, so 1.5 keeps two; every number type, and views. */
Test(masked_softmax, lengths_of_any_type)
{
    RAPT_SCOPE;
    rapt_tensor *lengths = doubles(RAPT_SHAPE(2, 2), (double[]){1, 3, 2, 4});
    for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_UINT8; dtype++)
        expect_rows(rapt_dtype_name(dtype), RAPT_FLOAT64, rapt_cast(lengths, dtype), (int[]){1, 3, 2, 4});
    expect_rows("bool", RAPT_FLOAT64, rapt_from(RAPT_BOOL, RAPT_SHAPE(2), (bool[]){true, false}), (int[]){1, 1, 0, 0});
    expect_rows("transposed", RAPT_FLOAT64, rapt_transpose(lengths, 0, 1), (int[]){1, 2, 3, 4});
    const double parts[] = {0.5, 1.5, 3.0000001, 2.9999999};
    expect_rows("fractions", RAPT_FLOAT64, doubles(RAPT_SHAPE(2, 2), parts), (int[]){1, 2, 4, 3});
    const double odd[] = {-3, -0.0, (double)INFINITY, (double)NAN};
    expect_rows("odd numbers", RAPT_FLOAT64, doubles(RAPT_SHAPE(2, 2), odd), (int[]){0, 0, 4, 0});
    expect_no_error();
}

Test(masked_softmax, row_without_keys_is_zero_and_has_zero_gradient)
{
    for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) {
        RAPT_SCOPE;
        rapt_tensor *lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(2, 2), (int64_t[]){0, 3, 2, 0});
        expect_rows("[[0, 3], [2, 0]]", dtype, lengths, (int[]){0, 3, 2, 0});
        rapt_tensor *scores = rapt_require_gradient(tenths(dtype));
        rapt_tensor *weights = rapt_masked_softmax(scores, RAPT_MASK(.valid_lengths = lengths));
        cr_expect(rapt_backward(rapt_sum(rapt_mul(weights, tenths(dtype)), RAPT_ALL_AXES, false)), "%s", rapt_error());
        const double *gradient = values_of(rapt_gradient(scores));
        for (int i = 0; i < 16; i++) {
            const int length[] = {0, 3, 2, 0};
            cr_expect((gradient[i] == 0) == (i % 4 >= length[i / 4]) || i == 5, "element %d: %g", i, gradient[i]);
        }
    }
    expect_no_error();
}

/* In masked places anything may stand. */
Test(masked_softmax, what_is_masked_never_matters)
{
    RAPT_SCOPE;
    rapt_tensor *lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(1, 3), (int64_t[]){2, 0, 3});
    const double nan = (double)NAN, infinity = (double)INFINITY;
    rapt_tensor *scores = rapt_require_gradient(
        doubles(RAPT_SHAPE(1, 3, 3), (double[]){1, 1, nan, nan, infinity, 1e300, -2e6, -2e6, -2e6}));
    rapt_tensor *weights = rapt_masked_softmax(scores, RAPT_MASK(.valid_lengths = lengths));
    expect_values("weights", weights, 9, (double[]){0.5, 0.5, 0, 0, 0, 0, 1.0 / 3, 1.0 / 3, 1.0 / 3}, 1e-15);
    rapt_tensor *g = doubles(RAPT_SHAPE(1, 3, 3), (double[]){1, 3, nan, nan, nan, nan, 0, 3, 6});
    cr_expect(rapt_backward_from(1, &weights, &g, 0));
    expect_values("gradient", rapt_gradient(scores), 9, (double[]){-0.5, 0.5, 0, 0, 0, 0, -1, 0, 1}, 1e-15);
    rapt_tensor *low = rapt_masked_softmax(doubles(RAPT_SHAPE(1, 1, 2), (double[]){-2e6, 0}),
                                           RAPT_MASK(.valid_lengths = rapt_ones(RAPT_INT64, RAPT_SHAPE(1))));
    expect_values("a score below -1e6 wins over a masked one", low, 2, (double[]){1, 0}, 0);
    rapt_tensor *large = rapt_masked_softmax(doubles(RAPT_SHAPE(1, 1, 2), (double[]){1e300, 1e300}), NULL);
    expect_values("large scores", large, 2, (double[]){0.5, 0.5}, 1e-15);
    expect_no_error();
}

/* As the book does it: −10⁶ is written over the scores of masked keys, with all that follows from it. */
Test(masked_softmax, filled_with_a_million)
{
    static const int64_t valid[] = {1, 3, 0, 4};
    for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) {
        RAPT_SCOPE;
        rapt_tensor *lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(2, 2), valid);
        const rapt_mask mask = {.valid_lengths = lengths, .fills_million = true};
        rapt_tensor *scores = rapt_require_gradient(tenths(dtype)), *weights = rapt_masked_softmax(scores, &mask);
        double expected[16] = {0};
        for (int i = 0; i < 16; i++) expected[i] = i / 4 == 2 ? 0.25 : golden[valid[i / 4]][i % 4];
        expect_values("weights", weights, 16, expected, dtype == RAPT_FLOAT64 ? 1e-8 : 1e-7);
        cr_expect(rapt_backward(rapt_sum(rapt_mul(weights, tenths(dtype)), RAPT_ALL_AXES, false)), "%s", rapt_error());
        const double *gradient = values_of(rapt_gradient(scores));
        for (int i = 0; i < 16; i++)
            cr_expect(gradient[i] == 0 || i % 4 < valid[i / 4], "element %d: %g", i, gradient[i]);
    }
    RAPT_SCOPE;
    rapt_tensor *one = rapt_ones(RAPT_INT64, RAPT_SHAPE(1)), *zero = rapt_zeros(RAPT_INT64, RAPT_SHAPE(1));
    rapt_tensor *low = doubles(RAPT_SHAPE(1, 1, 2), (double[]){-2e6, (double)NAN}),
                *far = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(1, 1, 4), (float[]){0, 0.01F, 5, 80});
    expect_values("a score below -1e6 loses to a masked one, which may be NaN",
                  rapt_masked_softmax(low, RAPT_MASK(.valid_lengths = one, .fills_million = true)), 2, (double[]){0, 1},
                  0);
    expect_values("written over the scores, not added to them",
                  rapt_masked_softmax(far, RAPT_MASK(.valid_lengths = zero, .fills_million = true)), 4,
                  (double[]){0.25, 0.25, 0.25, 0.25}, 0);
    rapt_tensor *all = rapt_masked_softmax(far, RAPT_MASK(.fills_million = true));
    cr_expect(same_bits(all, rapt_softmax(far, -1)), "nothing is masked");
    expect_no_error();
}

/* Rows of all lengths that the kernel takes its different paths for, cut at all places, with bytes of all layouts: each
 * against softmax of what is left, taken out and put together. */
Test(masked_softmax, parts_of_rows)
{
    for (int trial = 0; trial < 240; trial++) {
        RAPT_SCOPE;
        rapt_seed((uint64_t)trial);
        const rapt_dtype dtype = trial % 2 ? RAPT_FLOAT32 : RAPT_FLOAT64;
        const int64_t n = (int64_t[]){1, 7, 32, 67, 256, 301}[trial / 2 % 6];
        rapt_tensor *scores = rapt_randn(dtype, RAPT_SHAPE(2, 3, n)), *bytes[4] = {NULL};
        rapt_tensor *random = rapt_greater(rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, 3, n)), rapt_scalar(RAPT_FLOAT32, 0));
        bytes[1] = random;
        bytes[2] = rapt_slice(random, -1, 0, 1, 1);
        bytes[3] = rapt_transpose(rapt_contiguous(rapt_transpose(random, 0, 2)), 0, 2);
        rapt_mask mask = {.seen = bytes[trial / 12 % 4], .window = n / 3 + 1, .offset = n / 2};
        rapt_tensor *seen = rapt_expand(rapt_mask_seen(&mask, scores), RAPT_SHAPE(2, 3, n)),
                    *weights = rapt_masked_softmax(scores, &mask);
        const double *weight = values_of(weights), *score = values_of(scores), *in = values_of(seen);
        for (int64_t row = 0; row < 6; row++) {
            double total = 0;
            for (int64_t j = row * n; j < (row + 1) * n; j++) total += in[j] != 0 ? exp(score[j]) : 0;
            for (int64_t j = row * n; j < (row + 1) * n; j++) {
                double expected = in[j] != 0 ? exp(score[j]) / total : 0;
                cr_assert(fabs(weight[j] - expected) <= (trial % 2 ? 1e-6 : 1e-14) * expected,
                          "trial %d, element %lld: %.17g, not %.17g", trial, (long long)j, weight[j], expected);
            }
        }
    }
    expect_no_error();
}

Test(masked_softmax, rows_sum_to_one)
{
    RAPT_SCOPE;
    rapt_seed(2);
    for (int64_t n = 1; n < 3000; n = 3 * n + 1) {
        rapt_tensor *weights = rapt_masked_softmax(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(4, 5, n)), NULL);
        const double *sums = values_of(rapt_sum(weights, RAPT_AXES(-1), false));
        for (int i = 0; i < 20; i++) cr_expect(fabs(sums[i] - 1) <= 2 * (double)n * 0x1p-52, "%lld", (long long)n);
    }
    expect_no_error();
}

/* Of Gaussian kernels whose width goes to 0, softmax of their logarithms leaves the nearest key. */
Test(masked_softmax, a_narrow_kernel_finds_the_nearest_key)
{
    RAPT_SCOPE;
    rapt_tensor *at = rapt_reshape(rapt_linspace(RAPT_FLOAT64, 0, 5, 50), RAPT_SHAPE(1, 50, 1));
    rapt_tensor *distances = rapt_sub(at, rapt_add_scalar(rapt_arange(RAPT_FLOAT64, 0, 5, 0.125), 0.01));
    rapt_tensor *scores = rapt_mul_scalar(rapt_mul(distances, distances), -0.5 / 1e-6);
    rapt_tensor *nearest = rapt_argmax(rapt_neg(rapt_abs(distances)), -1, false);
    expect_values("weights", rapt_masked_softmax(scores, NULL), 50 * 40,
                  values_of(rapt_one_hot(nearest, 40, RAPT_FLOAT64)), 1e-12);
    expect_no_error();
}

static rapt_tensor *call(rapt_tensor *const *inputs, void *context)
{
    return rapt_masked_softmax(inputs[0], context);
}

/* With hidden places that have a NaN in the scores and in what comes back to the weights. */
Test(masked_softmax, second_derivatives_do_not_read_what_is_hidden)
{
    RAPT_SCOPE;
    rapt_seed(3);
    rapt_tensor *bytes = rapt_greater(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 3, 4, 6)), rapt_scalar(RAPT_FLOAT64, -1));
    rapt_mask mask = {.window = 4, .offset = 1, .seen = bytes};
    rapt_tensor *scores = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 3, 4, 6)));
    rapt_gradcheck_options options = {.context = &mask, .second_order = true};
    rapt_gradcheck_result result = rapt_gradcheck("masked_softmax", call, 1, &scores, &options);
    cr_expect(result.passed, "%s", result.message);

    rapt_tensor *results[2];
    for (int i = 0; i < 2; i++) {
        rapt_tensor *seen = rapt_mask_seen(&mask, scores), *fill = rapt_scalar(RAPT_FLOAT64, i ? (double)NAN : 0),
                    *first;
        rapt_tensor *x = rapt_require_gradient(rapt_detach(rapt_where(seen, scores, fill)));
        rapt_tensor *weights = rapt_masked_softmax(x, &mask), *cotangent = rapt_where(seen, rapt_exp(weights), fill);
        cr_assert(rapt_gradients(1, &weights, &cotangent, 1, &x, &first, RAPT_CREATE_GRAPH), "%s", rapt_error());
        rapt_tensor *u = rapt_where(seen, rapt_sin(rapt_detach(scores)), fill);
        cr_assert(rapt_gradients(1, &first, &u, 1, &x, &results[i], 0), "%s", rapt_error());
    }
    expect_values("second derivative", results[1], 144, values_of(results[0]), 0);
    expect_no_error();
}

Test(masked_softmax, empty_axes)
{
    RAPT_SCOPE;
    expect_shape(rapt_masked_softmax(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(0, 2, 3)), NULL), RAPT_SHAPE(0, 2, 3));
    expect_shape(rapt_masked_softmax(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 0, 3)),
                                     RAPT_MASK(.valid_lengths = rapt_ones(RAPT_INT64, RAPT_SHAPE(2)))),
                 RAPT_SHAPE(2, 0, 3));
    expect_shape(rapt_masked_softmax(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 0)), NULL), RAPT_SHAPE(2, 3, 0));
    expect_no_error();
}

Test(masked_softmax, errors)
{
    RAPT_SCOPE;
    rapt_tensor *scores = tenths(RAPT_FLOAT32);
    const struct {
        int rank;
        int64_t shape[3];
    } bad[] = {{1, {3}}, {1, {1}}, {2, {2, 3}}, {2, {1, 2}}, {2, {2, 1}}, {3, {2, 2, 4}}, {0, {0}}};
    for (int i = 0; i < 7; i++) {
        cr_expect_null(
            rapt_masked_softmax(scores, RAPT_MASK(.valid_lengths = rapt_ones(RAPT_INT64, bad[i].rank, bad[i].shape))));
        expect_error(RAPT_ERROR_SHAPE, "masked_softmax: valid lengths (B) or (B, Q) expected for scores [2, 2, 4]");
    }
    cr_expect_null(rapt_masked_softmax(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 4)), NULL));
    expect_error(RAPT_ERROR_SHAPE, "scores (B, Q, K) or (B, heads, Q, K) expected, not [2, 4]");
    cr_expect_null(rapt_masked_softmax(rapt_ones(RAPT_INT64, RAPT_SHAPE(2, 2, 4)), NULL));
    expect_error(RAPT_ERROR_DTYPE, "int64");
    cr_expect_null(rapt_masked_softmax(NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "masked_softmax");
}
