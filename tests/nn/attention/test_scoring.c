/* Scoring functions: each against its definition, what they must be by the literature, and bad input. */
#include <stdlib.h>

#include "scorings.h"

#include <rapt/optim.h>

#include "../../text_stream.h"

/* Scores of queries and keys whose leading axes broadcast to (2, 3), against the definition of each pair. */
static void expect_definition(const scoring_case *c, rapt_dtype dtype, rapt_tensor *queries, rapt_tensor *keys)
{
    RAPT_SCOPE;
    int64_t query_size = rapt_size(queries, -1), key_size = rapt_size(keys, -1);
    int64_t query_count = rapt_size(queries, -2), key_count = rapt_size(keys, -2);
    rapt_scoring *scoring = scoring_of(c, query_size, key_size, dtype);
    rapt_tensor *scores = rapt_score(scoring, queries, keys);
    cr_assert_not_null(scores, "%s: %s", c->name, rapt_error());
    expect_shape(scores, RAPT_SHAPE(2, 3, query_count, key_count));
    cr_expect_eq(rapt_get_dtype(scores), dtype);
    const double *score = values_of(scores);
    const double *query = values_of(rapt_expand(queries, RAPT_SHAPE(2, 3, query_count, query_size)));
    const double *key = values_of(rapt_expand(keys, RAPT_SHAPE(2, 3, key_count, key_size)));
    parameter_list parameters = parameters_of(scoring);
    cr_expect_eq(parameters.count, c->parameters, "%s", c->name);
    scored_pair pair = {.query_size = query_size, .key_size = key_size};
    for (int p = 0; p < parameters.count; p++) pair.parameters[p] = values_of(parameters.tensors[p]);
    for (int64_t at = 0; at < rapt_count(scores); at++) {
        pair.i = at / key_count % query_count, pair.j = at % key_count;
        pair.query = query + at / key_count * query_size;
        pair.key = key + (at / key_count / query_count * key_count + pair.j) * key_size;
        double expected = c->define(&pair), error = fabs(score[at] - expected);
        cr_expect(error <= (dtype == RAPT_FLOAT64 ? 1e-14 : 3e-6) * (1 + fabs(expected)), "%s, %s: %.17g, not %.17g",
                  c->name, rapt_dtype_name(dtype), score[at], expected);
    }
    rapt_module_free(&scoring->module);
}

Test(scoring, each_is_its_definition)
{
    for (int i = 0; i < scoring_case_count; i++)
        for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) {
            RAPT_SCOPE;
            const scoring_case *c = &scoring_cases[i];
            rapt_seed((uint64_t)i);
            rapt_tensor *queries = rapt_randn(dtype, RAPT_SHAPE(2, 3, 4, 5));
            for (int64_t key_size = c->one_size ? 5 : 2; key_size <= 7; key_size += 5) {
                rapt_tensor *keys = rapt_randn(dtype, RAPT_SHAPE(2, 3, 6, key_size));
                expect_definition(c, dtype, queries, keys);
                expect_definition(c, dtype, rapt_randn(dtype, RAPT_SHAPE(2, 1, 4, 5)), rapt_select(keys, 0, 0));
                rapt_tensor *turned = rapt_transpose(rapt_randn(dtype, RAPT_SHAPE(2, 1, key_size, 6)), -1, -2);
                expect_definition(c, dtype, rapt_slice(queries, -2, 0, 4, 2), turned);
                if (c->one_size) break;
            }
        }
    expect_no_error();
}

Test(scoring, of_rank_2_and_of_nothing)
{
    for (int i = 0; i < scoring_case_count; i++) {
        RAPT_SCOPE;
        rapt_scoring *scoring = scoring_of(&scoring_cases[i], 3, 3, RAPT_FLOAT32);
        rapt_tensor *queries = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(4, 3)),
                    *keys = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(5, 3));
        expect_shape(rapt_score(scoring, queries, keys), RAPT_SHAPE(4, 5));
        expect_shape(rapt_score(scoring, rapt_slice(queries, 0, 0, 0, 1), keys), RAPT_SHAPE(0, 5));
        expect_shape(rapt_score(scoring, queries, rapt_slice(keys, 0, 0, 0, 1)), RAPT_SHAPE(4, 0));
        rapt_module_free(&scoring->module);
    }
    expect_no_error();
}

/* The sum of size products of N(0, 1) numbers has variance size; scaled, 1 (Vaswani et al. 2017, 3.2.1). */
Test(scoring, variance_of_dot_products)
{
    enum { pairs = 1000000, at_once = 50000, size = 16 };
    rapt_seed(1);
    rapt_scoring *dot = rapt_dot_product_scoring_new(), *scaled = rapt_scaled_dot_product_scoring_new();
    double squares[2] = {0};
    for (int done = 0; done < pairs; done += at_once) {
        RAPT_SCOPE;
        rapt_tensor *queries = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(at_once, 1, size)),
                    *keys = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(at_once, 1, size));
        for (int i = 0; i < 2; i++) {
            rapt_tensor *scores = rapt_score(i ? scaled : dot, queries, keys);
            squares[i] += rapt_item(rapt_sum(rapt_mul(scores, scores), RAPT_ALL_AXES, false));
        }
    }
    cr_expect(fabs(squares[0] / pairs / size - 1) < 0.01, "%g", squares[0] / pairs);
    cr_expect(fabs(squares[1] / pairs - 1) < 0.01, "%g", squares[1] / pairs);
    rapt_module_free(&dot->module);
    rapt_module_free(&scaled->module);
    expect_no_error();
}

/* −½ ‖q − k‖² = qᵀk − ½ ‖k‖² − ½ ‖q‖². */
Test(scoring, gaussian_is_a_dot_product_less_the_lengths)
{
    RAPT_SCOPE;
    rapt_seed(2);
    rapt_tensor *queries = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, 30, 8)),
                *keys = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, 40, 8));
    rapt_scoring *gaussian = rapt_gaussian_scoring_new(1, false), *dot = rapt_dot_product_scoring_new();
    const double *direct = values_of(rapt_score(gaussian, queries, keys));
    rapt_tensor *halves[] = {rapt_mul_scalar(rapt_mul(queries, queries), 0.5),
                             rapt_mul_scalar(rapt_mul(keys, keys), 0.5)};
    rapt_tensor *less = rapt_sub(rapt_score(dot, queries, keys), rapt_sum(halves[0], RAPT_AXES(-1), true));
    less = rapt_sub(less, rapt_transpose(rapt_sum(halves[1], RAPT_AXES(-1), true), 1, 2));
    expect_values("from the dot product", less, 2 * 30 * 40, direct, 1e-6);
    rapt_module_free(&gaussian->module);
    rapt_module_free(&dot->module);
    expect_no_error();
}

/* Vectors close to one another and far from 0, where the form above would have no digit left. */
Test(scoring, distances_of_near_vectors_keep_their_digits)
{
    RAPT_SCOPE;
    rapt_scoring *gaussian = rapt_gaussian_scoring_new(1, false);
    rapt_tensor *far = rapt_full(RAPT_FLOAT32, RAPT_SHAPE(1, 2, 2), 4096);
    rapt_tensor *queries = rapt_add_scalar(far, 0.25), *keys = far;
    queries = rapt_require_gradient(rapt_clone(queries));
    keys = rapt_require_gradient(rapt_clone(keys));
    rapt_tensor *scores = rapt_score(gaussian, queries, keys);
    expect_values("−½ · 2 · ¼²", scores, 4, (double[]){-0.0625, -0.0625, -0.0625, -0.0625}, 0);
    cr_expect(rapt_backward(rapt_sum(scores, RAPT_ALL_AXES, false)));
    expect_values("−Σ (q − k)", rapt_gradient(queries), 4, (double[]){-0.5, -0.5, -0.5, -0.5}, 0);
    expect_values("Σ (q − k)", rapt_gradient(keys), 4, (double[]){0.5, 0.5, 0.5, 0.5}, 0);
    rapt_module_free(&gaussian->module);
    expect_no_error();
}

Test(scoring, distances_do_not_depend_on_the_number_of_keys)
{
    for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) {
        RAPT_SCOPE;
        rapt_seed(3);
        rapt_scoring *gaussian = rapt_gaussian_scoring_new(1, false);
        rapt_tensor *queries = rapt_randn(dtype, RAPT_SHAPE(3, 19)), *keys = rapt_randn(dtype, RAPT_SHAPE(100, 19));
        rapt_tensor *all = rapt_score(gaussian, queries, keys);
        for (int64_t count = 1; count < 100; count += 7) {
            RAPT_SCOPE;
            rapt_tensor *some = rapt_score(gaussian, queries, rapt_slice(keys, 0, 0, count, 1));
            cr_expect(same_bits(some, rapt_contiguous(rapt_slice(all, 1, 0, count, 1))), "%lld keys", (long long)count);
        }
        rapt_module_free(&gaussian->module);
    }
    expect_no_error();
}

/* Figures that are exact: u = 0, ½, 1, 2. */
Test(scoring, kernels_of_known_distances)
{
    RAPT_SCOPE;
    static const double expected[][4] = {[RAPT_REGRESSION_KERNEL_GAUSSIAN] = {1, 0.88249690258459546,
                                                                              0.60653065971263342, 0.1353352832366127},
                                         [RAPT_REGRESSION_KERNEL_BOXCAR] = {1, 1, 0, 0},
                                         [RAPT_REGRESSION_KERNEL_CONSTANT] = {1, 1, 1, 1},
                                         [RAPT_REGRESSION_KERNEL_EPANECHNIKOV] = {1, 0.5, 0, 0}};
    rapt_tensor *query = doubles(RAPT_SHAPE(1, 2), (double[]){3, 5}),
                *keys = doubles(RAPT_SHAPE(4, 2), (double[]){3, 5, 0, 1, 9, 13, -9, -11});
    for (int shape = RAPT_REGRESSION_KERNEL_GAUSSIAN; shape <= RAPT_REGRESSION_KERNEL_EPANECHNIKOV; shape++) {
        rapt_scoring *kernel = rapt_regression_kernel_scoring_new((rapt_regression_kernel)shape, 10, false);
        expect_values("kernel", rapt_score(kernel, query, keys), 4, expected[shape], 1e-16);
        rapt_module_free(&kernel->module);
    }
    expect_no_error();
}

/* A zero vector is at right angles to all. Lengths whose square is no float any more do not matter. */
Test(scoring, cosine_of_any_length)
{
    RAPT_SCOPE;
    rapt_scoring *cosine = rapt_cosine_scoring_new(1, false);
    rapt_tensor *queries =
        rapt_from(RAPT_FLOAT32, RAPT_SHAPE(4, 2), (float[]){0, 0, 3e-30F, 4e-30F, 3e30F, 4e30F, 3, 4});
    rapt_tensor *keys = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(3, 2), (float[]){2e-30F, 0, 0, 0, 0, -1e25F});
    rapt_require_gradient(queries);
    rapt_require_gradient(keys);
    rapt_tensor *scores = rapt_score(cosine, queries, keys);
    expect_values("cosines", scores, 12, (double[]){0, 0, 0, 0.6, 0, -0.8, 0.6, 0, -0.8, 0.6, 0, -0.8}, 1e-7);
    cr_expect(rapt_backward(rapt_sum(scores, RAPT_ALL_AXES, false)));
    const double *gradient = values_of(rapt_gradient(queries)), *key_gradient = values_of(rapt_gradient(keys));
    cr_expect(gradient[0] == 0 && gradient[1] == 0 && key_gradient[2] == 0 && key_gradient[3] == 0);
    for (int i = 0; i < 8; i++) cr_expect(isfinite(gradient[i]) && (i >= 6 || isfinite(key_gradient[i])));
    rapt_module_free(&cosine->module);
    expect_no_error();
}

/* M with ones on the diagonal, (rows, columns), times the factor. */
static rapt_scoring *with_diagonal(int64_t rows, int64_t columns, double factor)
{
    rapt_scoring *bilinear = rapt_bilinear_scoring_new(rows, columns);
    double matrix[8 * 8] = {0};
    for (int64_t i = 0; i < rows && i < columns; i++) matrix[i * columns + i] = factor;
    set_values(bilinear, "M", matrix);
    return bilinear;
}

static rapt_tensor *integers(int64_t batch, int64_t count, int64_t size)
{
    rapt_tensor *drawn = rapt_rand(RAPT_FLOAT32, RAPT_SHAPE(batch, count, size));
    return rapt_add_scalar(rapt_cast(rapt_cast(rapt_mul_scalar(drawn, 17), RAPT_INT64), RAPT_FLOAT32), -8);
}

/* In integers nothing rounds, so all bits must be equal. */
Test(scoring, bilinear_contains_the_dot_product_and_the_padding)
{
    RAPT_SCOPE;
    rapt_seed(4);
    rapt_scoring *bilinear[] = {with_diagonal(4, 4, 1), with_diagonal(2, 4, 0.5), with_diagonal(4, 3, 0.5)};
    rapt_scoring *dot = rapt_dot_product_scoring_new(), *padded = rapt_padded_dot_product_scoring_new();
    const int64_t sizes[3][2] = {{4, 4}, {2, 4}, {4, 3}};
    for (int i = 0; i < 3; i++) {
        rapt_tensor *queries = integers(2, 5, sizes[i][0]), *keys = integers(2, 6, sizes[i][1]);
        cr_expect(same_bits(rapt_score(bilinear[i], queries, keys), rapt_score(i ? padded : dot, queries, keys)),
                  "sizes %lld and %lld", (long long)sizes[i][0], (long long)sizes[i][1]);
        rapt_module_free(&bilinear[i]->module);
    }
    rapt_module_free(&dot->module);
    rapt_module_free(&padded->module);
    expect_no_error();
}

/* Which of 64 keys (of size 6) belongs to a query (of size 3)? The query is a few numbers of its key, in another
 * order. */
static double retrieval_loss(rapt_scoring *scoring, double factor, int64_t steps)
{
    enum { count = 64 };
    RAPT_SCOPE;
    rapt_seed(5);
    rapt_tensor *keys = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(count, 6));
    rapt_tensor *order = rapt_from(RAPT_INT64, RAPT_SHAPE(3), (int64_t[]){4, 0, 3});
    rapt_tensor *noise = rapt_mul_scalar(rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(count, 3)), 0.1);
    rapt_tensor *queries = rapt_add(rapt_index_select(keys, 1, order), noise);
    rapt_optimizer *adam = steps ? rapt_adam_new(&scoring->module, &(rapt_adam_config){.learning_rate = 0.05}) : NULL;
    double loss = 0;
    for (int64_t step = 0; step <= steps; step++) {
        RAPT_SCOPE;
        rapt_tensor *scores = rapt_mul_scalar(rapt_score(scoring, queries, keys), factor);
        rapt_tensor *mean = rapt_cross_entropy(scores, rapt_arange(RAPT_INT64, 0, count, 1), NULL);
        loss = rapt_item(mean);
        if (step < steps) cr_assert(rapt_backward(mean) && rapt_optimizer_step(adam), "%s", rapt_error());
    }
    rapt_optimizer_free(adam);
    rapt_module_free(&scoring->module);
    return loss;
}

Test(scoring, a_learned_matrix_beats_the_padding)
{
    double padded = (double)INFINITY;
    for (double factor = 0.01; factor < 100; factor *= 2)
        padded = fmin(padded, retrieval_loss(rapt_padded_dot_product_scoring_new(), factor, 0));
    double learned = retrieval_loss(rapt_bilinear_scoring_new(3, 6), 1, 200);
    cr_expect(learned < padded - 1, "learned M: %g; padding at its best factor: %g", learned, padded);
    expect_no_error();
}

Test(scoring, modules_tell_what_they_are)
{
    rapt_scoring *scorings[] = {rapt_cosine_scoring_new(0.25, true), rapt_gaussian_scoring_new(2, false),
                                rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_EPANECHNIKOV, 3, true),
                                rapt_bilinear_scoring_new(3, 4), rapt_relative_scoring_new(4, 5, 6)};
    static const char *const expected[] = {"Cosine(temperature 0.25 at first, learned)  1 parameters",
                                           "Gaussian(width 2)  0 parameters",
                                           "RegressionKernel(Epanechnikov, width 3 at first, learned)  1 parameters",
                                           "Bilinear(3 x 4)  12 parameters",
                                           "Relative(4, reach 6, values)  117 parameters"};
    for (int i = 0; i < 5; i++) {
        FILE *stream = open_text();
        rapt_module_print(&scorings[i]->module, stream);
        char *text = close_text(stream);
        cr_expect_not_null(strstr(text, expected[i]), "%s", text);
        free(text);
    }
    expect_parameter(scorings[0], "temperature", RAPT_SHAPE(1));
    expect_parameter(scorings[2], "width", RAPT_SHAPE(1));
    expect_parameter(scorings[3], "M", RAPT_SHAPE(3, 4));
    expect_parameter(scorings[4], "key_table", RAPT_SHAPE(13, 4));
    expect_parameter(scorings[4], "value_table", RAPT_SHAPE(13, 5));
    cr_expect_eq(scorings[4]->relative_values, rapt_module_find(&scorings[4]->module, "value_table"));
    for (int i = 0; i < 5; i++) rapt_module_free(&scorings[i]->module);
    expect_no_error();
}

/* A width whose square is no float32: all weight goes to the key that is the query, fused and plain. */
Test(scoring, of_a_tiny_width)
{
    for (int plain = 0; plain < 2; plain++) {
        RAPT_SCOPE;
        rapt_attention *attention = rapt_attention_new(rapt_gaussian_scoring_new(1e-20, false), 0);
        attention->plain = plain;
        rapt_tensor *query = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(1, 1, 1), (float[]){0.5F}),
                    *keys = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(1, 3, 1), (float[]){1, 0.5F, -0.02F}),
                    *values = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(1, 3, 1), (float[]){2, 1, 4});
        expect_values(plain ? "plain" : "fused", rapt_attention_forward(attention, query, keys, values, NULL), 1,
                      (double[]){1}, 0);
        rapt_module_free(&attention->module);
    }
    expect_no_error();
}
