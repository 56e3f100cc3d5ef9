/* Normalisers: what each makes of scores, and what all of them owe to a mask. */
#include "modules.h"

static double weigh_softmax(const double *scores, const bool *seen, int keys, int key)
{
    double total = 0;
    for (int j = 0; j < keys; j++) total += seen[j] ? exp(scores[j]) : 0;
    return exp(scores[key]) / total;
}

static double weigh_sum(const double *scores, const bool *seen, int keys, int key)
{
    double total = 0;
    for (int j = 0; j < keys; j++) total += seen[j] ? scores[j] : 0;
    return total == 0 ? 0 : scores[key] / total;
}

static double weigh_none(const double *scores, const bool *seen, int keys, int key)
{
    (void)seen, (void)keys;
    return scores[key];
}

static double weigh_sigmoid(const double *scores, const bool *seen, int keys, int key)
{
    (void)seen, (void)keys;
    return 1 / (1 + exp(-scores[key]));
}

static double weigh_hard(const double *scores, const bool *seen, int keys, int key)
{
    for (int j = 0; j < keys; j++)
        if (seen[j] && (scores[j] > scores[key] || (scores[j] == scores[key] && j < key))) return 0;
    return 1;
}

static double weigh_uniform(const double *scores, const bool *seen, int keys, int key)
{
    int total = 0;
    (void)scores, (void)key;
    for (int j = 0; j < keys; j++) total += seen[j];
    return 1.0 / total;
}

/* Σ max(a − t, 0)ᵖ, which falls with t, is 1 at the threshold t: found by halving. */
static double weigh_sparse(const double *scores, const bool *seen, int keys, int key, double factor, double power)
{
    double low = -1e6, high = 1e6;
    for (int step = 0; step < 200; step++) {
        const double middle = low + (high - low) / 2;
        double total = 0;
        for (int j = 0; j < keys; j++) total += seen[j] ? pow(fmax(factor * scores[j] - middle, 0), power) : 0;
        *(total > 1 ? &low : &high) = middle;
    }
    return pow(fmax(factor * scores[key] - low, 0), power);
}

static double weigh_sparsemax(const double *scores, const bool *seen, int keys, int key)
{
    return weigh_sparse(scores, seen, keys, key, 1, 1);
}

static double weigh_entmax15(const double *scores, const bool *seen, int keys, int key)
{
    return weigh_sparse(scores, seen, keys, key, 0.5, 2);
}

enum { softmax, sigmoid, sparsemax, entmax15, sum, none, hard, uniform, count };

/* weigh is the weight of a key that is seen. */
static const struct {
    const char *name;
    rapt_normalizer *normalize;
    double (*weigh)(const double *scores, const bool *seen, int keys, int key);
} normalizers[count] = {[softmax] = {"softmax", rapt_masked_softmax, weigh_softmax},
                        [sigmoid] = {"sigmoid", rapt_masked_sigmoid, weigh_sigmoid},
                        [sparsemax] = {"sparsemax", rapt_masked_sparsemax, weigh_sparsemax},
                        [entmax15] = {"entmax15", rapt_masked_entmax15, weigh_entmax15},
                        [sum] = {"sum", rapt_masked_sum, weigh_sum},
                        [none] = {"none", rapt_masked_none, weigh_none},
                        [hard] = {"hard", rapt_masked_hard, weigh_hard},
                        [uniform] = {"uniform", rapt_masked_uniform, weigh_uniform}};

enum { batch = 2, heads = 3, queries = 4, keys = 5, all = batch * heads * queries * keys };
static const int64_t shape[] = {batch, heads, queries, keys};

/* Scores about 1, so that none of the sums is near 0. */
static rapt_tensor *random_scores(rapt_dtype dtype)
{
    return rapt_cast(rapt_exp(rapt_mul_scalar(rapt_randn(RAPT_FLOAT64, 4, shape), 0.3)), dtype);
}

/* Lengths with a 0 among them, causality, and bytes that differ by head. */
static rapt_mask random_mask(void)
{
    rapt_tensor *bytes =
        rapt_less(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(heads, queries, keys)), rapt_scalar(RAPT_FLOAT64, 0.7));
    return (rapt_mask){.valid_lengths =
                           rapt_from(RAPT_INT64, RAPT_SHAPE(batch, queries), (int64_t[]){5, 0, 3, 4, 2, 5, 1, 4}),
                       .causal = true,
                       .offset = 1,
                       .seen = bytes};
}

static const bool *seen_by(const rapt_mask *mask)
{
    const rapt_tensor *scores = rapt_zeros(RAPT_FLOAT64, 4, shape);
    return rapt_data(rapt_contiguous(rapt_expand(rapt_mask_seen(mask, scores), 4, shape)));
}

/* x, and the value where nothing is seen. */
static rapt_tensor *with_hidden(const rapt_mask *mask, rapt_tensor *x, double value)
{
    return rapt_where(rapt_mask_seen(mask, x), x, rapt_scalar(rapt_get_dtype(x), value));
}

Test(normalizers, follow_their_definitions)
{
    for (int trial = 0; trial < 2 * count; trial++) {
        RAPT_SCOPE;
        rapt_seed(7);
        const int which = trial / 2;
        const rapt_mask mask = random_mask();
        const bool *seen = seen_by(&mask);
        rapt_tensor *scores = random_scores(trial % 2 ? RAPT_FLOAT32 : RAPT_FLOAT64);
        rapt_tensor *weights = normalizers[which].normalize(scores, &mask);
        const double *score = values_of(scores);
        double expected[all] = {0};
        for (int i = 0; i < all; i++) {
            int row = i / keys * keys;
            if (seen[i]) expected[i] = normalizers[which].weigh(score + row, seen + row, keys, i - row);
        }
        expect_shape(weights, 4, shape);
        expect_values(normalizers[which].name, weights, all, expected, trial % 2 ? 1e-6 : 1e-15);
        const double *weight = values_of(weights);
        for (int i = 0; i < all; i++)
            cr_expect(seen[i] || weight[i] == 0, "%s: element %d", normalizers[which].name, i);
    }
    expect_no_error();
}

/* d <cotangent, weights> / d scores, as a function of the mask's hidden places in both. */
static rapt_tensor *gradient_of(rapt_normalizer *normalize, const rapt_mask *mask, rapt_tensor *scores,
                                rapt_tensor *cotangent, rapt_tensor **weights)
{
    rapt_tensor *gradient = NULL;
    scores = rapt_require_gradient(scores);
    *weights = normalize(scores, mask);
    cr_assert(rapt_gradients(1, weights, &cotangent, 1, &scores, &gradient, 0), "%s", rapt_error());
    cr_assert_not_null(gradient);
    return gradient;
}

/* NaN in hidden scores, and in the gradients of hidden weights, changes no bit. */
Test(normalizers, never_read_what_is_hidden)
{
    for (int which = 0; which < count; which++) {
        RAPT_SCOPE;
        rapt_seed(8);
        const rapt_mask mask = random_mask();
        rapt_tensor *scores = random_scores(RAPT_FLOAT64), *cotangent = rapt_randn(RAPT_FLOAT64, 4, shape), *weights[2];
        rapt_tensor *clean = gradient_of(normalizers[which].normalize, &mask, with_hidden(&mask, scores, 0),
                                         with_hidden(&mask, cotangent, 0), &weights[0]);
        rapt_tensor *dirty = gradient_of(normalizers[which].normalize, &mask, with_hidden(&mask, scores, (double)NAN),
                                         with_hidden(&mask, cotangent, (double)NAN), &weights[1]);
        cr_expect(same_bits(weights[0], weights[1]), "%s: weights", normalizers[which].name);
        expect_values(normalizers[which].name, dirty, all, values_of(clean), 0);
        const bool *seen = seen_by(&mask);
        const double *gradient = values_of(dirty);
        for (int i = 0; i < all; i++)
            cr_expect(seen[i] || gradient[i] == 0, "%s: element %d", normalizers[which].name, i);
    }
    expect_no_error();
}

typedef struct subject {
    rapt_normalizer *normalize;
    rapt_mask mask;
} subject;

static rapt_tensor *call(rapt_tensor *const *inputs, void *context)
{
    subject s = *(const subject *)context;
    s.mask.bias = inputs[1];
    s.mask.relative_bias = inputs[2];
    return s.normalize(inputs[0], &s.mask);
}

Test(normalizers, gradcheck)
{
    for (int trial = 0; trial < 2 * count; trial++) {
        RAPT_SCOPE;
        rapt_seed(9);
        subject s = {normalizers[trial / 2].normalize, random_mask()};
        rapt_tensor *inputs[] = {rapt_require_gradient(random_scores(RAPT_FLOAT64)),
                                 rapt_require_gradient(
                                     rapt_mul_scalar(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(queries, keys)), 0.1)),
                                 rapt_require_gradient(
                                     rapt_mul_scalar(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(heads, 1, 3)), 0.1))};
        rapt_gradcheck_options options = {.context = &s, .second_order = trial % 2};
        rapt_gradcheck_result result = rapt_gradcheck(normalizers[trial / 2].name, call, 3, inputs, &options);
        cr_expect(result.passed, "%s", result.message);
    }
    expect_no_error();
}

/* −∞ in a bias hides a key; a row of nothing else gives zeros, and zero gradients of both orders. */
Test(normalizers, infinite_biases)
{
    const double low = -(double)INFINITY;
    for (int which = 0; which < count; which++) {
        RAPT_SCOPE;
        rapt_tensor *scores = rapt_require_gradient(doubles(RAPT_SHAPE(1, 2, 3), (double[]){1, 3, 2, 1, 3, 2})),
                    *gradient, *second;
        rapt_tensor *bias = doubles(RAPT_SHAPE(2, 3), (double[]){0, low, 0, low, low, low});
        rapt_tensor *weights = normalizers[which].normalize(scores, RAPT_MASK(.bias = bias));
        rapt_tensor *as_bytes =
            normalizers[which].normalize(scores, RAPT_MASK(.seen = rapt_from(RAPT_BOOL, RAPT_SHAPE(2, 3),
                                                                             (bool[]){1, 0, 1, 0, 0, 0})));
        cr_assert(weights && as_bytes, "%s", rapt_error());
        cr_expect(same_bits(weights, as_bytes), "%s", normalizers[which].name);
        rapt_tensor *total = rapt_sum(rapt_mul(weights, scores), RAPT_ALL_AXES, false);
        cr_assert(rapt_gradients(1, &total, NULL, 1, &scores, &gradient, RAPT_CREATE_GRAPH), "%s", rapt_error());
        rapt_tensor *squares = rapt_sum(rapt_mul(gradient, gradient), RAPT_ALL_AXES, false);
        cr_assert(rapt_gradients(1, &squares, NULL, 1, &scores, &second, 0), "%s", rapt_error());
        const double *orders[] = {values_of(gradient), second ? values_of(second) : values_of(gradient)};
        for (int i = 0; i < 12; i++) {
            double value = orders[i / 6][i % 6];
            cr_expect(i % 6 == 0 || i % 6 == 2 ? isfinite(value) : value == 0, "%s: order %d, element %d: %g",
                      normalizers[which].name, i / 6 + 1, i % 6, value);
        }
    }
    expect_no_error();
}

/* Kernel regression: weights of a row sum to 1; a constant kernel gives the mean; where no key is near, zeros. */
Test(normalizers, sum_is_kernel_regression)
{
    enum { points = 40, places = 50 };
    RAPT_SCOPE;
    rapt_seed(10);
    rapt_tensor *x = rapt_mul_scalar(rapt_arange(RAPT_FLOAT32, 0, points, 1), 5.0 / points),
                *y = rapt_reshape(rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(points)), RAPT_SHAPE(1, points, 1)),
                *at = rapt_reshape(rapt_arange(RAPT_FLOAT32, 0, places, 1), RAPT_SHAPE(1, places, 1));
    rapt_tensor *distances = rapt_abs(rapt_sub(rapt_mul_scalar(at, 0.2), x)); /* up to 9.8, where there are no points */
    rapt_tensor *gaussian = rapt_masked_sum(rapt_exp(rapt_mul_scalar(rapt_mul(distances, distances), -0.5)), NULL);
    const double *sums = values_of(rapt_sum(gaussian, RAPT_AXES(-1), false));
    for (int i = 0; i < places; i++) cr_expect(fabs(sums[i] - 1) < 1e-6, "place %d: %g", i, sums[i]);
    rapt_tensor *constant = rapt_masked_sum(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, places, points)), NULL);
    const double *means = values_of(rapt_matmul(constant, y)), mean = rapt_item(rapt_mean(y, RAPT_ALL_AXES, false));
    for (int i = 0; i < places; i++) cr_expect(fabs(means[i] - mean) < 1e-6, "place %d: %g, not %g", i, means[i], mean);

    rapt_tensor *near = rapt_cast(rapt_less(distances, rapt_scalar(RAPT_FLOAT32, 1)), RAPT_FLOAT32);
    rapt_tensor *boxcar = rapt_require_gradient(near), *weights = rapt_masked_sum(boxcar, NULL), *gradient, *second;
    const double *box_sums = values_of(rapt_sum(weights, RAPT_AXES(-1), false));
    for (int i = 0; i < places; i++)
        cr_expect(fabs(box_sums[i] - (0.2 * i < 5.875)) < 1e-6, "place %d: %g", i, box_sums[i]);
    rapt_tensor *loss = rapt_sum(rapt_mul(rapt_matmul(weights, y), rapt_matmul(weights, y)), RAPT_ALL_AXES, false);
    cr_assert(rapt_gradients(1, &loss, NULL, 1, &boxcar, &gradient, RAPT_CREATE_GRAPH), "%s", rapt_error());
    rapt_tensor *squares = rapt_sum(rapt_mul(gradient, gradient), RAPT_ALL_AXES, false);
    cr_assert(rapt_gradients(1, &squares, NULL, 1, &boxcar, &second, 0), "%s", rapt_error());
    const double *first_order = values_of(gradient), *second_order = values_of(second);
    for (int i = 0; i < places * points; i++) {
        bool far = 0.2 * (i / points) > 5.9;
        cr_expect(far ? first_order[i] == 0 && second_order[i] == 0
                      : isfinite(first_order[i]) && isfinite(second_order[i]));
    }
    expect_no_error();
}

/* The four cases of the book's queries and keys: uniform weights are average pooling, one-hot ones a look-up. */
Test(normalizers, average_pooling_and_look_up)
{
    RAPT_SCOPE;
    rapt_seed(11);
    rapt_tensor *scores = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(1, 3, 8)),
                *values = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(1, 8, 5)),
                *integers = rapt_reshape(rapt_arange(RAPT_FLOAT32, 0, 40, 1), RAPT_SHAPE(1, 8, 5));
    rapt_tensor *average = rapt_masked_uniform(scores, NULL), *one_hot = rapt_masked_hard(scores, NULL);
    rapt_tensor *exact = rapt_mean(integers, RAPT_AXES(1), true), *mean = rapt_mean(values, RAPT_AXES(1), true);
    for (int64_t i = 0; i < 3; i++) {
        rapt_tensor *row = rapt_slice(rapt_matmul(average, integers), 1, i, i + 1, 1);
        expect_values("a mean that is exact", row, 5, values_of(exact), 0);
        expect_values("a mean", rapt_slice(rapt_matmul(average, values), 1, i, i + 1, 1), 5, values_of(mean), 1e-6);
        int64_t chosen = (int64_t)rapt_at(rapt_argmax(scores, -1, false), (int64_t[]){0, i});
        expect_values("a row", rapt_slice(rapt_matmul(one_hot, values), 1, i, i + 1, 1), 5,
                      values_of(rapt_slice(values, 1, chosen, chosen + 1, 1)), 0);
    }
    expect_no_error();
}

Test(normalizers, the_hardest_rows)
{
    RAPT_SCOPE;
    const double low = -(double)INFINITY, nan = (double)NAN;
    rapt_tensor *scores = doubles(RAPT_SHAPE(1, 4, 3), (double[]){2, 5, 5, low, low, low, 9, low, low, 1, nan, 3});
    rapt_tensor *hides_first = rapt_from(RAPT_BOOL, RAPT_SHAPE(3), (bool[]){false, true, true});
    expect_values("hard", rapt_masked_hard(scores, NULL), 12, (double[]){0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0}, 0);
    expect_values("hard", rapt_masked_hard(scores, RAPT_MASK(.seen = hides_first)), 12,
                  (double[]){0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0}, 0);
    rapt_tensor *empty = rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(2, 3, 0));
    for (int which = 0; which < count; which++) {
        expect_shape(normalizers[which].normalize(empty, NULL), RAPT_SHAPE(2, 3, 0));
        expect_shape(normalizers[which].normalize(rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(0, 3, 2)), NULL),
                     RAPT_SHAPE(0, 3, 2));
    }
    expect_no_error();
}

Test(normalizers, errors)
{
    RAPT_SCOPE;
    rapt_tensor *scores = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2, 3, 4));
    for (int which = 0; which < count; which++) {
        rapt_normalizer *normalize = normalizers[which].normalize;
        cr_expect_null(normalize(NULL, NULL));
        expect_error(RAPT_ERROR_NULL, "scores is NULL");
        cr_expect_null(normalize(rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(3, 4)), NULL));
        expect_error(RAPT_ERROR_SHAPE, "scores (B, Q, K) or (B, heads, Q, K) expected, not [3, 4]");
        cr_expect_null(normalize(rapt_ones(RAPT_INT64, RAPT_SHAPE(2, 3, 4)), NULL));
        expect_error(RAPT_ERROR_DTYPE, "scores are int64");
        cr_expect_null(normalize(scores, RAPT_MASK(.bias = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(3)))));
        expect_error(RAPT_ERROR_SHAPE, normalizers[which].name);
        if (which == softmax) continue;
        cr_expect_null(normalize(scores, RAPT_MASK(.fills_million = true)));
        expect_error(RAPT_ERROR_VALUE, "fills_million is for rapt_masked_softmax only");
    }
}
