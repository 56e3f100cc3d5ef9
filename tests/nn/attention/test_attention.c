/* Scaled dot product and additive attention: golden numbers, masks, weights, derivatives. */
#include "modules.h"

static rapt_tensor *length(int64_t only)
{
    return rapt_from(RAPT_INT64, RAPT_SHAPE(1), &only);
}

/* q[i][j] = sin(0.1·(4i + j)) (2 x 4), k[i][j] = cos(0.1·(4i + j)) (3 x 4), v[i][j] = 2i + j (3 x 2) */
typedef struct example {
    rapt_tensor *queries, *keys, *values;
} example;

static example example_new(void)
{
    rapt_tensor *tenths = rapt_mul_scalar(rapt_arange(RAPT_FLOAT64, 0, 12, 1), 0.1);
    return (example){rapt_reshape(rapt_sin(rapt_slice(tenths, 0, 0, 8, 1)), RAPT_SHAPE(1, 2, 4)),
                     rapt_reshape(rapt_cos(tenths), RAPT_SHAPE(1, 3, 4)),
                     rapt_reshape(rapt_arange(RAPT_FLOAT64, 0, 6, 1), RAPT_SHAPE(1, 3, 2))};
}

static void expect_example(rapt_attention *attention, int64_t valid, const double expected[4])
{
    example e = example_new();
    rapt_tensor *y =
        rapt_attention_forward(attention, e.queries, e.keys, e.values, RAPT_MASK(.valid_lengths = length(valid)));
    expect_shape(y, RAPT_SHAPE(1, 2, 2));
    expect_values("golden", y, 4, expected, 1e-8);
}

Test(attention, scaled_dot_product_golden)
{
    RAPT_SCOPE;
    rapt_attention *attention = rapt_dot_product_attention_new(0);
    expect_example(attention, 3, (double[]){1.90966951, 2.90966951, 1.71924134, 2.71924134});
    expect_example(attention, 2, (double[]){0.97531556, 1.97531556, 0.92585565, 1.92585565});
    expect_example(attention, 1, (double[]){0, 1, 0, 1});
    expect_example(attention, 0, (double[]){0, 0, 0, 0});
    rapt_module_free(&attention->module);
    expect_no_error();
}

Test(attention, additive_golden)
{
    RAPT_SCOPE;
    rapt_attention *attention = in_float64(rapt_additive_attention_new(4, 4, 2, 0));
    expect_parameter(attention, "W_q.weight", RAPT_SHAPE(2, 4));
    expect_parameter(attention, "W_k.weight", RAPT_SHAPE(2, 4));
    expect_parameter(attention, "w_v.weight", RAPT_SHAPE(1, 2));
    cr_expect_eq(rapt_module_parameter_count(&attention->module), 18, "no bias");
    set_values(attention, "W_q.weight", (double[]){1, 0, 0, 0, 0, 1, 0, 0});
    set_values(attention, "W_k.weight", (double[]){1, 0, 0, 0, 0, 1, 0, 0});
    set_values(attention, "w_v.weight", (double[]){1, -1});
    expect_example(attention, 3, (double[]){2.01433852, 3.01433852, 2.00797641, 3.00797641});
    expect_example(attention, 2, (double[]){1.00574827, 2.00574827, 1.00303778, 2.00303778});
    expect_example(attention, 0, (double[]){0, 0, 0, 0});
    rapt_module_free(&attention->module);
    expect_no_error();
}

/* values 0 … 39 as (1, 10, 4), for both items */
static rapt_tensor *forty_values(rapt_dtype dtype)
{
    rapt_tensor *values = rapt_reshape(rapt_arange(dtype, 0, 40, 1), RAPT_SHAPE(1, 10, 4));
    return rapt_expand(values, RAPT_SHAPE(2, 10, 4));
}

/* Equal keys share the weight, whatever the parameters: the mean of the first 2 and the first 6 values. */
Test(attention, equal_keys_give_the_mean)
{
    static const double expected[] = {2, 3, 4, 5, 10, 11, 12, 13};
    for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) {
        RAPT_SCOPE;
        rapt_attention *dot = rapt_dot_product_attention_new(0.5),
                       *additive = rapt_additive_attention_new(20, 2, 8, 0.1);
        rapt_tensor *keys = rapt_ones(dtype, RAPT_SHAPE(2, 10, 2));
        cr_expect(rapt_module_cast(&additive->module, dtype));
        rapt_module_train(&dot->module, false);
        rapt_module_train(&additive->module, false);
        double tolerance = dtype == RAPT_FLOAT64 ? 1e-14 : 1e-6;
        rapt_tensor *y = rapt_attention_forward(dot, rapt_randn(dtype, RAPT_SHAPE(2, 1, 2)), keys, forty_values(dtype),
                                                RAPT_MASK(.valid_lengths = lengths_of(2, 6)));
        expect_shape(y, RAPT_SHAPE(2, 1, 4));
        expect_values("dot product", y, 8, expected, tolerance);
        y = rapt_attention_forward(additive, rapt_randn(dtype, RAPT_SHAPE(2, 1, 20)), keys, forty_values(dtype),
                                   RAPT_MASK(.valid_lengths = lengths_of(2, 6)));
        expect_shape(y, RAPT_SHAPE(2, 1, 4));
        expect_values("additive", y, 8, expected, tolerance);
        rapt_module_free(&dot->module);
        rapt_module_free(&additive->module);
    }
    expect_no_error();
}

Test(attention, weights_are_nonzero_only_where_allowed)
{
    RAPT_SCOPE;
    rapt_seed(1);
    rapt_attention *attention = rapt_dot_product_attention_new(0.5);
    rapt_tensor *queries = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, 1, 2)),
                *keys = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, 10, 2));
    cr_expect(rapt_attention_forward(attention, queries, keys, forty_values(RAPT_FLOAT32),
                                     RAPT_MASK(.valid_lengths = lengths_of(2, 6))));
    cr_expect_null(attention->weights, "not asked for");
    attention->keep_weights = true;
    for (int training = 0; training < 2; training++) {
        RAPT_SCOPE;
        rapt_module_train(&attention->module, training);
        cr_expect(rapt_attention_forward(attention, rapt_require_gradient(queries), keys, forty_values(RAPT_FLOAT32),
                                         RAPT_MASK(.valid_lengths = lengths_of(2, 6))));
        expect_shape(attention->weights, RAPT_SHAPE(2, 1, 10));
        cr_expect(rapt_requires_gradient(attention->weights));
        const double *weights = values_of(attention->weights);
        double sums[2] = {0};
        for (int i = 0; i < 20; i++) {
            cr_expect((weights[i] > 0) == (i % 10 < (i < 10 ? 2 : 6)), "weight %d is %g (before dropout)", i,
                      weights[i]);
            sums[i / 10] += weights[i];
        }
        cr_expect(fabs(sums[0] - 1) < 1e-6 && fabs(sums[1] - 1) < 1e-6);
    }
    cr_expect_eq(rapt_count(attention->weights), 20, "the layer's own, beyond the scope");
    rapt_module_free(&attention->module);
    expect_no_error();
}

Test(attention, dropout_only_in_training)
{
    RAPT_SCOPE;
    rapt_seed(2);
    rapt_attention *attention = rapt_dot_product_attention_new(0.5);
    rapt_tensor *queries = rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(1, 1, 2)),
                *keys = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(1, 4096, 2));
    rapt_tensor *values = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(1, 4096, 1));
    double y = rapt_item(rapt_attention_forward(attention, queries, keys, values, NULL));
    cr_expect(y != 1 && fabs(y - 1) < 5 / 64.0, "kept weights are scaled up: %g", y);
    rapt_module_train(&attention->module, false);
    expect_values("evaluation", rapt_attention_forward(attention, queries, keys, values, NULL), 1, (double[]){1},
                  1e-14);
    rapt_module_free(&attention->module);
    expect_no_error();
}

/* It is a field, which may be set between calls. */
Test(attention, dropout_is_looked_at_in_each_call)
{
    RAPT_SCOPE;
    const double bad[] = {2, -0.5, 1.5, (double)NAN};
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 3, 4));
    for (int i = 0; i < 16; i++) {
        rapt_attention *attention = i & 1 ? rapt_additive_attention_new(4, 4, 3, 0) : rapt_dot_product_attention_new(0);
        attention->dropout = bad[i / 4];
        attention->plain = i & 2;
        cr_expect_null(rapt_attention_forward(attention, x, x, x, NULL));
        expect_error(RAPT_ERROR_VALUE, "Attention: dropout");
        cr_expect_null(rapt_attention_pool(attention, x, x, x, NULL));
        expect_error(RAPT_ERROR_VALUE, "0 to 1 expected");
        rapt_module_free(&attention->module);
    }
}

Test(attention, products_of_ones_are_four)
{
    RAPT_SCOPE;
    rapt_tensor *product =
        rapt_matmul(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 4)), rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 4, 6)));
    expect_shape(product, RAPT_SHAPE(2, 3, 6));
    cr_expect(same_bits(product, rapt_full(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 6), 4)));
    rapt_tensor *tenths = rapt_mul_scalar(rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2, 1, 10)), 0.1);
    rapt_tensor *numbers = rapt_reshape(rapt_arange(RAPT_FLOAT64, 0, 20, 1), RAPT_SHAPE(2, 10, 1));
    expect_values("a mean as a product", rapt_matmul(tenths, numbers), 2, (double[]){4.5, 14.5}, 1e-15);
    expect_no_error();
}

/* Scores of normal queries and keys have variance 1, whatever their size: 10⁶ draws, within 1 %. */
Test(attention, scaled_scores_have_variance_one)
{
    RAPT_SCOPE;
    rapt_seed(3);
    rapt_scoring *scoring = rapt_scaled_dot_product_scoring_new();
    cr_expect_null(scoring->prepare);
    rapt_tensor *queries = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(1000000, 1, 12)),
                *keys = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(1000000, 1, 12));
    rapt_tensor *scores = scoring->score(scoring, queries, keys);
    double variance = rapt_item(rapt_var(rapt_cast(scores, RAPT_FLOAT64), RAPT_ALL_AXES, false, 1));
    cr_expect(fabs(variance - 1) < 0.01, "%g", variance);
    rapt_module_free(&scoring->module);
    expect_no_error();
}

Test(attention, scores_below_the_usual_mask_and_nan_keys)
{
    RAPT_SCOPE;
    rapt_attention *attention = rapt_dot_product_attention_new(0);
    attention->keep_weights = true;
    rapt_tensor *queries = doubles(RAPT_SHAPE(1, 1, 1), (double[]){1}),
                *values = doubles(RAPT_SHAPE(1, 3, 1), (double[]){1, 2, 3});
    rapt_tensor *keys = doubles(RAPT_SHAPE(1, 3, 1), (double[]){-2e6, -2e6, (double)NAN});
    rapt_tensor *y = rapt_attention_forward(attention, queries, keys, values, RAPT_MASK(.valid_lengths = length(2)));
    expect_values("weights", attention->weights, 3, (double[]){0.5, 0.5, 0}, 1e-15);
    expect_values("y", y, 1, (double[]){1.5}, 1e-15);
    rapt_module_free(&attention->module);
    expect_no_error();
}

/* Distances as scores: softmax(−½‖q − k‖²) = softmax(q·k − ½‖k‖²), a scoring function of our own. */
static rapt_tensor *score_distance(rapt_scoring *scoring, rapt_tensor *queries, rapt_tensor *keys)
{
    (void)scoring;
    rapt_tensor *difference = rapt_sub(rapt_unsqueeze(queries, 2), rapt_unsqueeze(keys, 1));
    return rapt_mul_scalar(rapt_sum(rapt_mul(difference, difference), RAPT_AXES(-1), false), -0.5);
}

static rapt_tensor *score_product(rapt_scoring *scoring, rapt_tensor *queries, rapt_tensor *keys)
{
    (void)scoring;
    rapt_tensor *squares = rapt_unsqueeze(rapt_sum(rapt_mul(keys, keys), RAPT_AXES(-1), false), 1);
    return rapt_sub(rapt_matmul(queries, rapt_transpose(keys, 1, 2)), rapt_mul_scalar(squares, 0.5));
}

Test(attention, own_scoring_functions)
{
    RAPT_SCOPE;
    static const rapt_module_class kind = {.name = "Own"};
    example e = example_new();
    rapt_tensor *results[2];
    for (int i = 0; i < 2; i++) {
        rapt_scoring *scoring = rapt_module_new(sizeof *scoring, &kind);
        scoring->score = i ? score_product : score_distance;
        rapt_attention *attention = rapt_attention_new(scoring, 0);
        results[i] = rapt_attention_forward(attention, e.queries, e.keys, e.values, NULL);
        rapt_module_free(&attention->module);
    }
    expect_values("distance", results[0], 4, values_of(results[1]), 1e-14);
    expect_no_error();
}

Test(attention, in_two_parts)
{
    RAPT_SCOPE;
    example e = example_new();
    rapt_attention *attention = in_float64(rapt_additive_attention_new(4, 4, 5, 0));
    rapt_tensor *prepared = rapt_attention_prepare(attention, e.keys, NULL);
    expect_shape(prepared, RAPT_SHAPE(1, 3, 5));
    cr_expect(
        same_bits(rapt_attention_forward(attention, e.queries, e.keys, e.values, RAPT_MASK(.valid_lengths = length(2))),
                  rapt_attention_pool(attention, e.queries, prepared, e.values,
                                      RAPT_MASK(.valid_lengths = length(2)))));
    rapt_tensor *undefined = rapt_clone(e.keys);
    cr_assert(rapt_fill(rapt_slice(undefined, 1, 1, 2, 1), (double)NAN));
    const double *numbers = rapt_data(rapt_attention_prepare(attention, undefined, NULL)), *good = rapt_data(prepared);
    for (int n = 0; n < 15; n++) cr_expect(n / 5 == 1 ? isnan(numbers[n]) : numbers[n] == good[n], "number %d", n);
    rapt_module_free(&attention->module);
    attention = rapt_dot_product_attention_new(0);
    cr_expect_eq(rapt_attention_prepare(attention, e.keys, NULL), e.keys);
    rapt_module_free(&attention->module);
    expect_no_error();
}

Test(attention, in_two_parts_without_a_query)
{
    RAPT_SCOPE;
    rapt_tensor *queries = rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(1, 0, 4)),
                *keys = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(1, 3, 4)),
                *bias = rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(0, 3)), *seen = rapt_zeros(RAPT_BOOL, RAPT_SHAPE(0, 3));
    const rapt_mask masks[] = {{.bias = bias}, {.seen = seen}};
    rapt_attention *attention = in_float64(rapt_additive_attention_new(4, 4, 5, 0));
    for (int i = 0; i < 2; i++) {
        rapt_tensor *prepared = rapt_attention_prepare(attention, keys, &masks[i]);
        expect_shape(rapt_attention_pool(attention, queries, prepared, keys, &masks[i]), RAPT_SHAPE(1, 0, 4));
    }
    rapt_module_free(&attention->module);
    expect_no_error();
}

Test(attention, errors)
{
    RAPT_SCOPE;
    const int64_t before = live_bytes();
    const double bad[] = {-0.1, 1.5, (double)NAN};
    for (int i = 0; i < 3; i++) {
        cr_expect_null(rapt_additive_attention_new(2, 2, 2, bad[i]), "and its scoring function is freed");
        expect_error(RAPT_ERROR_VALUE, "0 to 1 expected");
    }
    cr_expect_null(rapt_attention_new(NULL, 0));
    expect_error(RAPT_ERROR_NULL, "Attention");
    cr_expect_null(rapt_additive_attention_new(2, -1, 2, 0));
    expect_error(RAPT_ERROR_VALUE, "-1");
    cr_expect_eq(live_bytes(), before);

    example e = example_new();
    rapt_attention *dot = rapt_dot_product_attention_new(0);
    rapt_tensor *matrix = rapt_select(e.keys, 0, 0), *wide = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(1, 3, 5));
    cr_expect_null(rapt_attention_forward(NULL, e.queries, e.keys, e.values, NULL));
    expect_error(RAPT_ERROR_NULL, "the layer");
    cr_expect_null(rapt_attention_pool(NULL, e.queries, e.keys, e.values, NULL));
    expect_error(RAPT_ERROR_NULL, "the layer");
    cr_expect_null(rapt_attention_forward(dot, NULL, e.keys, e.values, NULL));
    expect_error(RAPT_ERROR_NULL, "queries");
    cr_expect_null(rapt_attention_forward(dot, e.queries, NULL, e.values, NULL));
    expect_error(RAPT_ERROR_NULL, "keys");
    cr_expect_null(rapt_attention_forward(dot, e.queries, e.keys, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "values");
    cr_expect_null(rapt_attention_forward(dot, e.queries, matrix, e.values, NULL));
    expect_error(RAPT_ERROR_SHAPE, "keys of shape (B, length, size) expected, not float64 [3, 4]");
    cr_expect_null(rapt_attention_forward(dot, e.queries, wide, e.values, NULL));
    expect_error(RAPT_ERROR_SHAPE, "3, 5]");
    cr_expect_null(rapt_attention_forward(dot, e.queries, e.keys, rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(1, 4, 2)), NULL));
    expect_error(RAPT_ERROR_SHAPE, "[1, 4, 2]");
    cr_expect_null(
        rapt_attention_forward(dot, e.queries, e.keys, e.values, RAPT_MASK(.valid_lengths = lengths_of(1, 1))));
    expect_error(RAPT_ERROR_SHAPE, "valid lengths");
    cr_expect_null(rapt_attention_forward(dot, e.queries, rapt_cast(e.keys, RAPT_FLOAT32), e.values, NULL));
    expect_error(RAPT_ERROR_DTYPE, "float32");
    rapt_module_free(&dot->module);
}
