/* Derivatives of attention: against a closed form, against differences, and without memory. */
#include "modules.h"

/* If keys are values, d attention / dq is their covariance under the weights, times the scale: no differences
 * needed. */
static void check_covariance(rapt_scoring *scoring, bool is_scaled)
{
    RAPT_SCOPE;
    rapt_seed(4);
    enum { keys_count = 5, size = 3 };
    const double scale = is_scaled ? 1 / sqrt(size) : 1;
    rapt_attention *attention = rapt_attention_new(scoring, 0);
    attention->keep_weights = true;
    rapt_tensor *q = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(1, 1, size)));
    rapt_tensor *k = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(1, keys_count, size));
    rapt_tensor *y = rapt_attention_forward(attention, q, k, k, NULL);
    const double *mean = values_of(y), *key = values_of(k), *weight = values_of(attention->weights);
    for (int out = 0; out < size; out++) {
        rapt_tensor *root = rapt_select(rapt_reshape(y, RAPT_SHAPE(size)), 0, out), *gradient;
        cr_assert(rapt_gradients(1, &root, NULL, 1, &q, &gradient, RAPT_RETAIN_GRAPH), "%s", rapt_error());
        double covariance[size] = {0};
        for (int i = 0; i < keys_count; i++)
            for (int j = 0; j < size; j++)
                covariance[j] += scale * weight[i] * (key[i * size + out] - mean[out]) * (key[i * size + j] - mean[j]);
        expect_values("covariance", gradient, size, covariance, 2e-15);
    }
    rapt_module_free(&attention->module);
    expect_no_error();
}

Test(attention_gradients, gradient_of_the_query_is_a_covariance)
{
    check_covariance(rapt_dot_product_scoring_new(), false);
    check_covariance(rapt_scaled_dot_product_scoring_new(), true);
}

typedef struct subject {
    rapt_attention *attention;
    rapt_tensor *lengths;
} subject;

static rapt_tensor *call(rapt_tensor *const *inputs, void *context)
{
    const subject *s = context;
    return rapt_attention_forward(s->attention, inputs[0], inputs[1], inputs[2],
                                  RAPT_MASK(.valid_lengths = s->lengths));
}

static rapt_tensor *leaf(int64_t a, int64_t b, int64_t c)
{
    return rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(a, b, c)));
}

/* With lengths (B) and (B, Q), some of them 0, and without; first and second order. */
static void check_gradients(rapt_attention *attention, int64_t query_size)
{
    for (int variant = 0; variant < 6; variant++) {
        RAPT_SCOPE;
        rapt_seed(20);
        const int64_t matrix[] = {2, 0, 1, 3};
        subject s = {attention, variant / 2 == 0   ? NULL
                                : variant / 2 == 1 ? lengths_of(0, 2)
                                                   : rapt_from(RAPT_INT64, RAPT_SHAPE(2, 2), matrix)};
        rapt_tensor *inputs[] = {leaf(2, 2, query_size), leaf(2, 3, 2), leaf(2, 3, 2)};
        rapt_gradcheck_options options = {.context = &s, .second_order = variant % 2};
        rapt_gradcheck_result result = rapt_module_gradcheck(&attention->module, call, 3, inputs, &options);
        cr_expect(result.passed, "variant %d: %s", variant, result.message);
        cr_expect_gt(result.checked, 8 * 8);
    }
    expect_no_error();
}

Test(attention_gradients, gradcheck)
{
    rapt_attention *dot = rapt_dot_product_attention_new(0),
                   *additive = in_float64(rapt_additive_attention_new(3, 2, 4, 0));
    check_gradients(dot, 2);
    check_gradients(additive, 3);
    rapt_module_free(&dot->module);
    rapt_module_free(&additive->module);
}

/* A mask of all fields for (2, 2, 3) scores, −∞ among its biases. */
static rapt_mask full_mask(void)
{
    const double low = -(double)INFINITY;
    return (rapt_mask){.valid_lengths = lengths_of(2, 1),
                       .causal = true,
                       .offset = 1,
                       .window = 3,
                       .seen = rapt_from(RAPT_BOOL, RAPT_SHAPE(3), (bool[]){true, true, false}),
                       .bias = doubles(RAPT_SHAPE(2, 3), (double[]){0.5, low, 0, 0, 1, 0}),
                       .relative_bias = doubles(RAPT_SHAPE(5), (double[]){low, 1, 2, 3, 4})};
}

/* One forward and backward after `failures` blocks; true when they succeed. */
static bool run_without_memory(rapt_attention *attention, rapt_tensor *const *inputs, const rapt_mask *mask,
                               rapt_tensor *parameter, int64_t failures)
{
    RAPT_SCOPE;
    rapt_tensor *gradient;
    rapt_memory_fail_after(failures);
    rapt_tensor *y = rapt_attention_forward(attention, inputs[0], inputs[1], inputs[2], mask);
    if (y) expect_no_error();
    rapt_tensor *root = rapt_sum(y, RAPT_ALL_AXES, false);
    bool done = root && rapt_gradients(1, &root, NULL, 1, &parameter, &gradient, 0);
    rapt_memory_fail_after(-1);
    if (!done) expect_error(RAPT_ERROR_MEMORY, "no memory");
    cr_expect_not_null(attention->weights, "the weights are the last ones that there were");
    return done;
}

/* Bytes that are alive when the layer keeps weights that are in no graph. */
static int64_t bytes_without_graph(rapt_attention *attention, rapt_tensor *const *inputs, const rapt_mask *mask)
{
    {
        RAPT_SCOPE;
        RAPT_NO_GRADIENT;
        cr_assert(rapt_attention_forward(attention, inputs[0], inputs[1], inputs[2], mask), "%s", rapt_error());
    }
    return live_bytes();
}

Test(attention_gradients, forward_and_backward_without_memory)
{
    rapt_normalizer *const normalizers[] = {rapt_masked_softmax, rapt_masked_sum,     rapt_masked_none,
                                            rapt_masked_hard,    rapt_masked_uniform, rapt_masked_sparsemax,
                                            rapt_masked_entmax15};
    for (int trial = 0; trial < 14; trial++) {
        RAPT_SCOPE;
        rapt_tensor *inputs[] = {leaf(2, 2, 4), leaf(2, 3, 4), leaf(2, 3, 2)};
        rapt_attention *attention = in_float64(rapt_additive_attention_new(4, 4, 3, 0.5));
        attention->keep_weights = true;
        attention->plain = trial % 2;
        attention->normalizer = normalizers[trial / 2];
        const rapt_mask mask = full_mask();
        rapt_tensor *parameter = rapt_module_find(&attention->module, "W_k.weight");
        cr_assert(run_without_memory(attention, inputs, &mask, parameter, -1));
        const int64_t before = bytes_without_graph(attention, inputs, &mask);
        int64_t failures = 0;
        while (!run_without_memory(attention, inputs, &mask, parameter, failures)) {
            const int64_t now = bytes_without_graph(attention, inputs, &mask);
            cr_expect(now == before, "%lld bytes leak after failure %lld", (long long)(now - before),
                      (long long)failures);
            failures++;
        }
        cr_expect_gt(failures, 20);
        rapt_module_free(&attention->module);
    }
    expect_no_error();
}

/* --- a bias that changes in place between forward and backward, as by a step of an optimizer --- */

enum { by_place, by_position, bias_kinds };

static rapt_tensor *attend(rapt_attention *attention, rapt_tensor *x, rapt_tensor *bias, int kind)
{
    const rapt_mask mask = {.bias = kind == by_place ? bias : NULL, .relative_bias = kind == by_place ? NULL : bias};
    return rapt_sum(rapt_attention_forward(attention, x, x, x, &mask), RAPT_ALL_AXES, false);
}

static void check_changed_bias(rapt_attention *attention)
{
    for (int kind = 0; kind < bias_kinds; kind++) {
        RAPT_SCOPE;
        rapt_tensor *x = leaf(1, 3, 4);
        rapt_tensor *bias = rapt_require_gradient(rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(1, 3, kind == by_place ? 3 : 5)));
        rapt_tensor *loss = attend(attention, x, bias, kind), *later = attend(attention, x, bias, kind);
        cr_assert(rapt_backward(loss), "%s", rapt_error());
        cr_assert(rapt_fill(bias, 1));
        cr_expect_not(rapt_backward(later));
        expect_error(RAPT_ERROR_GRAPH, "was changed in place after the op ran");
    }
    rapt_module_free(&attention->module);
}

Test(attention_gradients, a_bias_changed_in_place_is_an_error)
{
    rapt_attention *dot = rapt_dot_product_attention_new(0), *additive = rapt_additive_attention_new(4, 4, 8, 0);
    cr_assert(rapt_module_cast(&additive->module, RAPT_FLOAT64));
    check_changed_bias(dot);
    check_changed_bias(additive);
}
