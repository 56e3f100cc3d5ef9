/* Derivatives of scoring functions: against differences, against closed forms, and where there is none. */
#include "scorings.h"

static rapt_tensor *call_score(rapt_tensor *const *inputs, void *context)
{
    return rapt_score(context, inputs[0], inputs[1]);
}

/* First and second order in queries, keys and parameters. Keys of one item are asked by the queries of three. */
Test(scoring_gradients, gradcheck)
{
    for (int i = 0; i < scoring_case_count; i++)
        for (int second = 0; second < 2; second++) {
            RAPT_SCOPE;
            const scoring_case *c = &scoring_cases[i];
            rapt_seed(100 + (uint64_t)i);
            int64_t key_size = c->one_size ? 3 : 2;
            rapt_scoring *scoring = scoring_of(c, 3, key_size, RAPT_FLOAT64);
            rapt_tensor *inputs[] = {rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(3, 2, 3))),
                                     rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(1, 4, key_size)))};
            rapt_gradcheck_options options = {.context = scoring, .second_order = second};
            rapt_gradcheck_result result = rapt_module_gradcheck(&scoring->module, call_score, 2, inputs, &options);
            cr_expect(result.passed, "%s, order %d: %s", c->name, second + 1, result.message);
            cr_expect_gt(result.checked, 100);
            rapt_tensor *sum = rapt_sum(call_score(inputs, scoring), RAPT_ALL_AXES, false), *gradients[2];
            cr_assert(rapt_gradients(1, &sum, NULL, 2, inputs, gradients, 0) && gradients[0] && gradients[1]);
            const double slope = rapt_item(rapt_max(rapt_abs(gradients[0]), RAPT_ALL_AXES, false));
            cr_expect_eq(slope == 0, c->is_flat, "%s: %g", c->name, slope);
            rapt_module_free(&scoring->module);
        }
    expect_no_error();
}

/* d Σ g qᵀMk / dM = Σ g q kᵀ */
Test(scoring_gradients, of_the_bilinear_matrix)
{
    RAPT_SCOPE;
    rapt_seed(7);
    enum { batch = 2, queries = 3, keys = 4, query_size = 2, key_size = 5 };
    rapt_scoring *bilinear = rapt_bilinear_scoring_new(query_size, key_size);
    cr_assert(rapt_module_cast(&bilinear->module, RAPT_FLOAT64));
    rapt_tensor *q = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(batch, queries, query_size));
    rapt_tensor *k = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(batch, keys, key_size));
    rapt_tensor *g = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(batch, queries, keys)), *scores = rapt_score(bilinear, q, k);
    cr_assert(rapt_backward_from(1, &scores, &g, 0), "%s", rapt_error());
    const double *query = values_of(q), *key = values_of(k), *weight = values_of(g);
    double expected[query_size * key_size] = {0};
    for (int b = 0; b < batch; b++)
        for (int i = 0; i < queries; i++)
            for (int j = 0; j < keys; j++)
                for (int e = 0; e < query_size * key_size; e++)
                    expected[e] += weight[(b * queries + i) * keys + j] *
                                   query[(b * queries + i) * query_size + e / key_size] *
                                   key[(b * keys + j) * key_size + e % key_size];
    expect_values("Σ g q kᵀ", rapt_gradient(rapt_module_find(&bilinear->module, "M")), query_size * key_size, expected,
                  1e-14);
    rapt_module_free(&bilinear->module);
    expect_no_error();
}

/* A query that is a key: distance 0, where the triangular kernel has a peak and no derivative. */
Test(scoring_gradients, at_distance_0)
{
    for (int shape = RAPT_REGRESSION_KERNEL_GAUSSIAN; shape <= RAPT_REGRESSION_KERNEL_EPANECHNIKOV; shape++) {
        RAPT_SCOPE;
        rapt_regression_kernel which = (rapt_regression_kernel)shape;
        bool learns = which == RAPT_REGRESSION_KERNEL_GAUSSIAN || which == RAPT_REGRESSION_KERNEL_EPANECHNIKOV;
        rapt_scoring *kernel = rapt_regression_kernel_scoring_new(which, 2, learns);
        rapt_tensor *query = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 3))),
                    *key = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 3)));
        rapt_tensor *score = rapt_score(kernel, query, key);
        expect_values("at distance 0", score, 1, (double[]){1}, 0);
        if (learns) {
            cr_expect(rapt_backward(score), "%s", rapt_error());
            expect_values("query", rapt_gradient(query), 3, (double[]){0, 0, 0}, 0);
            expect_values("key", rapt_gradient(key), 3, (double[]){0, 0, 0}, 0);
            expect_values("width", rapt_gradient(rapt_module_find(&kernel->module, "width")), 1, (double[]){0}, 0);
        }
        rapt_module_free(&kernel->module);
    }
    expect_no_error();
}

/* The second derivative of the triangular kernel at distance 0 is 0 as well, not NaN. */
Test(scoring_gradients, second_order_at_distance_0)
{
    RAPT_SCOPE;
    rapt_scoring *kernel = rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_EPANECHNIKOV, 2, false);
    rapt_tensor *query = rapt_require_gradient(rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(1, 3))),
                *keys = doubles(RAPT_SHAPE(2, 3), (double[]){1, 1, 1, 1, 1, 2}), *gradient, *second;
    rapt_tensor *score = rapt_sum(rapt_score(kernel, query, keys), RAPT_ALL_AXES, false);
    cr_assert(rapt_gradients(1, &score, NULL, 1, &query, &gradient, RAPT_CREATE_GRAPH), "%s", rapt_error());
    expect_values("gradient", gradient, 3, (double[]){0, 0, 0.5}, 1e-15);
    rapt_tensor *sum = rapt_sum(gradient, RAPT_ALL_AXES, false);
    cr_assert(rapt_gradients(1, &sum, NULL, 1, &query, &second, 0), "%s", rapt_error());
    expect_values("second", second, 3, (double[]){-0.5, -0.5, 0}, 1e-15); /* −½ of the second key, at distance 1 */
    rapt_module_free(&kernel->module);
    expect_no_error();
}

/* The gradients of three queries and three keys where query number `at` is `far` and not asked. */
static void differentiate_beside(float far, int at, bool plain, float *gradients)
{
    RAPT_SCOPE;
    rapt_attention *attention = rapt_attention_new(rapt_gaussian_scoring_new(1, false), 0);
    attention->plain = plain;
    float queries[] = {0.3F, 0.5F, 0.25F}, asked[] = {1, 1, 1};
    queries[at] = far;
    asked[at] = 0;
    rapt_tensor *q = rapt_require_gradient(rapt_from(RAPT_FLOAT32, RAPT_SHAPE(1, 3, 1), queries)),
                *k = rapt_require_gradient(rapt_from(RAPT_FLOAT32, RAPT_SHAPE(1, 3, 1), (float[]){0.1F, 0.3F, 0.8F})),
                *v = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(1, 3, 1), (float[]){1, 2, -1}),
                *pooled = rapt_attention_forward(attention, q, k, v, NULL),
                *g = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(1, 3, 1), asked);
    cr_assert(rapt_backward_from(1, &pooled, &g, 0), "%s", rapt_error());
    memcpy(gradients, rapt_data(rapt_gradient(q)), 3 * sizeof *gradients);
    memcpy(gradients + 3, rapt_data(rapt_gradient(k)), 3 * sizeof *gradients);
    rapt_module_free(&attention->module);
}

/* One query far from the others costs their gradients and the keys' no digits, whichever it is. One that is not finite
 * reaches the keys' alone. */
Test(scoring_gradients, beside_a_far_query)
{
    const float far[] = {1e4F, -1e7F, 1e19F, NAN, INFINITY};
    for (int plain = 0; plain < 2; plain++)
        for (int at = 0; at < 3; at++)
            for (size_t f = 0; f < sizeof far / sizeof *far; f++) {
                float expected[6], gradients[6];
                differentiate_beside(0.1F, at, plain, expected);
                differentiate_beside(far[f], at, plain, gradients);
                for (int i = 0; i < (isfinite(far[f]) ? 6 : 3); i++)
                    cr_expect(i == at || fabsf(gradients[i] - expected[i]) <= 1e-6F,
                              "plain %d, query %d %g: %d is %g, not %g", plain, at, (double)far[f], i,
                              (double)gradients[i], (double)expected[i]);
            }
    expect_no_error();
}

/* dwidth of float32 is float64's wherever queries and keys stand, also beside one that is far from the others. */
Test(scoring_gradients, of_a_width_far_from_0)
{
    for (int plain = 0; plain < 2; plain++)
        for (int heads = 0; heads < 2; heads++)
            for (double from = 0; from < 2e4; from += 1e4) {
                double slopes[2];
                for (int dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) {
                    RAPT_SCOPE;
                    rapt_seed(1);
                    rapt_attention *attention = rapt_attention_new(rapt_gaussian_scoring_new(1, true), 0);
                    attention->plain = plain;
                    cr_assert(rapt_module_cast(&attention->module, (rapt_dtype)dtype));
                    rapt_tensor *inputs[4];
                    for (int i = 0; i < 4; i++) {
                        rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, 6, 1));
                        if (i < 2) x = rapt_add_scalar(x, from);
                        if (i == 0) rapt_set_at(x, (int64_t[]){0, 0, 0}, from + 1e6);
                        inputs[i] = rapt_cast(heads ? rapt_reshape(x, RAPT_SHAPE(2, 2, 3, 1)) : x, (rapt_dtype)dtype);
                    }
                    rapt_tensor *pooled = rapt_attention_forward(attention, inputs[0], inputs[1], inputs[2], NULL);
                    rapt_tensor *loss = rapt_sum(rapt_mul(pooled, inputs[3]), RAPT_ALL_AXES, false);
                    cr_assert(rapt_backward(loss), "%s", rapt_error());
                    slopes[dtype] = rapt_item(rapt_gradient(rapt_module_find(&attention->module, "width")));
                    rapt_module_free(&attention->module);
                }
                cr_expect(fabs(slopes[0] - slopes[1]) <= 1e-5 * fabs(slopes[1]),
                          "plain %d, heads %d, from %g: %.9g, not %.9g", plain, heads, from, slopes[0], slopes[1]);
            }
    expect_no_error();
}
