/* Fused additive attention against the plain way, and against what is known: large arguments, padding, threads,
 * weights. */
#include "fused.h"

enum { random_cases = 2000, random_parts = 2 };

static rapt_scoring *draw_additive(drawn *d, double scales[2])
{
    scales[0] = scales[1] = 0.5;
    return rapt_additive_scoring_new(d->query_size, d->key_size, draw_length(&d->state, 150));
}

Test(fused_additive, random_part_1)
{
    run_drawn_cases(random_cases, 0, random_parts, draw_additive);
}

Test(fused_additive, second_derivatives)
{
    compare_second_derivatives(200, draw_additive);
}

Test(fused_additive, random_part_2)
{
    run_drawn_cases(random_cases, 1, random_parts, draw_additive);
}

/* One example: additive attention, its inputs, and its results. */
typedef struct example {
    rapt_attention *attention;
    rapt_tensor *inputs[3], *gradient;
} example;

static example new_example(rapt_dtype dtype, int64_t queries, int64_t keys, int64_t hidden, double dropout)
{
    const int64_t batch = 2, size = 5, value_size = 7;
    example e = {.attention = rapt_additive_attention_new(size, size, hidden, dropout)};
    cr_assert(e.attention && rapt_module_cast(&e.attention->module, dtype), "%s", rapt_error());
    e.inputs[0] = rapt_require_gradient(rapt_randn(dtype, RAPT_SHAPE(batch, queries, size)));
    e.inputs[1] = rapt_require_gradient(rapt_randn(dtype, RAPT_SHAPE(batch, keys, size)));
    e.inputs[2] = rapt_require_gradient(rapt_randn(dtype, RAPT_SHAPE(batch, keys, value_size)));
    e.gradient = rapt_randn(dtype, RAPT_SHAPE(batch, queries, value_size));
    return e;
}

enum { result_count = 7 }; /* pooled values, gradients of three inputs and three parameters */

static void run(const example *e, const rapt_mask *mask, rapt_tensor **results)
{
    const parameter_list list = parameters_of(e->attention);
    rapt_tensor *wanted[result_count - 1];
    memcpy(wanted, e->inputs, sizeof e->inputs);
    memcpy(wanted + 3, list.tensors, 3 * sizeof *wanted);
    results[0] = rapt_attention_forward(e->attention, e->inputs[0], e->inputs[1], e->inputs[2], mask);
    cr_assert(rapt_gradients(1, results, &e->gradient, result_count - 1, wanted, results + 1, 0), "%s", rapt_error());
}

static void expect_same_bits(rapt_tensor *const *a, rapt_tensor *const *b, const char *what)
{
    for (int i = 0; i < result_count; i++) cr_expect(same_bits(a[i], b[i]), "result %d: %s", i, what);
}

/* Enough for several pieces of everything that work is cut into. */
Test(fused_additive, number_of_threads_changes_no_bit)
{
    const int64_t shapes[][3] = {{150, 300, 150}, {1, 3000, 30}, {3, 5, 300}};
    for (int i = 0; i < 3; i++) {
        RAPT_SCOPE;
        rapt_seed(3);
        example e = new_example(RAPT_FLOAT32, shapes[i][0], shapes[i][1], shapes[i][2], 0.2);
        rapt_tensor *results[4][result_count];
        for (int threads = 1; threads <= 4; threads++) {
            cr_assert(rapt_set_threads(threads));
            rapt_seed(4);
            run(&e, RAPT_MASK(.causal = true, .offset = shapes[i][1]), results[threads - 1]);
            expect_same_bits(results[0], results[threads - 1], "differs by threads");
        }
        rapt_module_free(&e.attention->module);
    }
}

/* The rule is by shape: 40 queries and 40 keys with 3 hidden units keep no weights, with 40 units they do. */
Test(fused_additive, asking_for_weights_changes_no_bit)
{
    const int64_t hidden[] = {3, 40};
    for (int i = 0; i < 2; i++) {
        RAPT_SCOPE;
        rapt_tensor *results[2][result_count], *plain;
        example e = new_example(RAPT_FLOAT64, 40, 40, hidden[i], 0);
        run(&e, NULL, results[0]);
        e.attention->keep_weights = true;
        run(&e, NULL, results[1]);
        expect_same_bits(results[0], results[1], "differs by asking for weights");
        rapt_tensor *weights = rapt_clone(e.attention->weights);
        e.attention->plain = true;
        plain = rapt_attention_forward(e.attention, e.inputs[0], e.inputs[1], e.inputs[2], NULL);
        expect_values("weights", weights, rapt_count(weights), values_of(e.attention->weights), 1e-13);
        expect_values("pooled", results[0][0], rapt_count(plain), values_of(plain), 1e-13);
        rapt_module_free(&e.attention->module);
    }
}

/* Where exponentials would overflow, tanh is ±1 or, where the two sides cancel, what is left of them. */
static void expect_large_arguments(rapt_dtype dtype, double tolerance)
{
    RAPT_SCOPE;
    const double arguments[] = {1000, -1000, 500, 43, 30, 0.5};
    enum { count = sizeof arguments / sizeof *arguments };
    rapt_attention *attention = rapt_additive_attention_new(1, 1, 3, 0);
    cr_assert(rapt_module_cast(&attention->module, dtype));
    const double ones[] = {1, 1, 1}, last[] = {2, -0.5, 0.25};
    set_values(attention, "W_q.weight", ones);
    set_values(attention, "W_k.weight", ones);
    set_values(attention, "w_v.weight", last);
    double keys[count], values[count];
    for (int j = 0; j < count; j++) keys[j] = 0.25 - arguments[j], values[j] = j;
    rapt_tensor *q = rapt_cast(doubles(RAPT_SHAPE(1, count, 1), arguments), dtype),
                *k = rapt_cast(doubles(RAPT_SHAPE(1, count, 1), keys), dtype),
                *v = rapt_cast(doubles(RAPT_SHAPE(1, count, 1), values), dtype);
    attention->keep_weights = true;
    rapt_tensor *pooled = rapt_attention_forward(attention, q, k, v, NULL);
    cr_assert(pooled, "%s", rapt_error());
    double expected[count][count], results[count];
    for (int i = 0; i < count; i++) {
        double sum = 0;
        for (int j = 0; j < count; j++) sum += expected[i][j] = exp(1.75 * tanh(arguments[i] + keys[j]));
        results[i] = 0;
        for (int j = 0; j < count; j++) results[i] += (expected[i][j] /= sum) * j;
    }
    expect_values("weights", attention->weights, count * count, &expected[0][0], tolerance);
    expect_values("pooled", pooled, count, results, tolerance);
    rapt_module_free(&attention->module);
}

Test(fused_additive, large_arguments_are_exact)
{
    expect_large_arguments(RAPT_FLOAT64, 1e-14);
    expect_large_arguments(RAPT_FLOAT32, 1e-6);
}

/* Scores of ±10⁴: the weights hang on differences of scores, which only their sizes round. */
Test(fused_additive, large_scores_are_exact)
{
    RAPT_SCOPE;
    rapt_attention *attention = rapt_additive_attention_new(1, 1, 2, 0);
    set_values(attention, "W_q.weight", (const double[]){1, 1});
    set_values(attention, "W_k.weight", (const double[]){20, 0});
    set_values(attention, "w_v.weight", (const double[]){8192, 8});
    /* tanh(±20) is ±1 in float32 and tanh(0) is 0 */
    rapt_tensor *q = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(1, 1, 1), (const float[]){0}),
                *k = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(1, 4, 1), (const float[]){-1, 1, 1, 0}),
                *v = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(1, 4, 2), (const float[]){7, 8, 1, 2, 3, 4, 5, 6});
    rapt_tensor *pooled = rapt_attention_forward(attention, q, k, v, NULL);
    expect_values("pooled", pooled, 2, (const double[]){2, 3}, 0);
    rapt_module_free(&attention->module);
}

Test(fused_additive, padding_is_not_read)
{
    RAPT_SCOPE;
    example e = new_example(RAPT_FLOAT32, 20, 37, 33, 0);
    const int64_t lengths[] = {21, 0};
    rapt_tensor *mask_lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(2), lengths), *results[2][result_count];
    run(&e, RAPT_MASK(.valid_lengths = mask_lengths), results[0]);
    for (int i = 1; i < 3; i++) {
        float *data = rapt_data_for_writing(e.inputs[i]);
        const int64_t size = rapt_size(e.inputs[i], 2);
        for (int64_t item = 0; item < 2; item++)
            for (int64_t at = lengths[item] * size; at < 37 * size; at++) data[item * 37 * size + at] = NAN;
    }
    run(&e, RAPT_MASK(.valid_lengths = mask_lengths), results[1]);
    expect_same_bits(results[0], results[1], "padding was read");
    const double *pooled = values_of(rapt_select(results[0][0], 0, 1)),
                 *gradient = values_of(rapt_select(results[0][1], 0, 1));
    for (int i = 0; i < 20 * 7; i++) cr_expect_eq(pooled[i], 0);
    for (int i = 0; i < 20 * 5; i++) cr_expect_eq(gradient[i], 0);
    rapt_module_free(&e.attention->module);
}

static rapt_tensor *pool(rapt_tensor *const *inputs, void *context)
{
    return rapt_attention_forward(context, inputs[0], inputs[1], inputs[2], RAPT_MASK(.window = 3));
}

Test(fused_additive, gradients_are_those_of_finite_differences)
{
    RAPT_SCOPE;
    example e = new_example(RAPT_FLOAT64, 4, 6, 19, 0);
    rapt_tensor *inputs[6];
    memcpy(inputs, e.inputs, sizeof e.inputs);
    const parameter_list list = parameters_of(e.attention);
    memcpy(inputs + 3, list.tensors, 3 * sizeof *inputs);
    const rapt_gradcheck_result result =
        rapt_gradcheck("fused additive", pool, 6, inputs, &(rapt_gradcheck_options){.context = e.attention});
    cr_expect(result.passed, "%s", result.message);
    rapt_module_free(&e.attention->module);
}

/* A decoder's steps: prepared once, asked one by one, the keys' gradient summed over the steps. */
Test(fused_additive, prepared_keys_serve_many_steps)
{
    RAPT_SCOPE;
    enum { steps = 5 };
    example e = new_example(RAPT_FLOAT64, steps, 11, 21, 0);
    rapt_tensor *whole[result_count], *parts[steps], *results[result_count], *wanted[result_count - 1];
    const parameter_list list = parameters_of(e.attention);
    memcpy(wanted, e.inputs, sizeof e.inputs);
    memcpy(wanted + 3, list.tensors, 3 * sizeof *wanted);
    run(&e, NULL, whole);
    rapt_tensor *prepared = rapt_attention_prepare(e.attention, e.inputs[1], NULL);
    for (int t = 0; t < steps; t++)
        parts[t] =
            rapt_attention_pool(e.attention, rapt_slice(e.inputs[0], 1, t, t + 1, 1), prepared, e.inputs[2], NULL);
    results[0] = rapt_concat(steps, parts, 1);
    cr_assert(rapt_gradients(1, results, &e.gradient, result_count - 1, wanted, results + 1, 0), "%s", rapt_error());
    for (int i = 0; i < result_count; i++)
        expect_values("steps", results[i], rapt_count(whole[i]), values_of(whole[i]), 1e-13);
    rapt_module_free(&e.attention->module);
}

/* A decoder's loop: the next query is the last answer. Gradients of the first query, of keys as prepared, of values,
 * of W_q and of w_v, with the keys and values two tensors or one. */
enum { decoder_steps = 6, decoder_size = 37, decoder_gradients = 5 };

typedef struct decoder {
    rapt_attention *attention;
    rapt_tensor *query, *keys, *values, *lengths;
    int flags;
} decoder;

static decoder new_decoder(rapt_dtype dtype, int64_t length, bool one_tensor)
{
    const int64_t batch = 3;
    rapt_seed(5);
    decoder d = {.attention = rapt_additive_attention_new(decoder_size, decoder_size, decoder_size, 0)};
    cr_assert(d.attention && rapt_module_cast(&d.attention->module, dtype), "%s", rapt_error());
    d.query = rapt_require_gradient(rapt_randn(dtype, RAPT_SHAPE(batch, 1, decoder_size)));
    d.keys = rapt_require_gradient(rapt_randn(dtype, RAPT_SHAPE(batch, length, decoder_size)));
    d.values = one_tensor ? d.keys : rapt_require_gradient(rapt_randn(dtype, RAPT_SHAPE(batch, length, decoder_size)));
    d.lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(3), (const int64_t[]){length, length / 2 + 1, 1});
    return d;
}

/* W_k is left out: `keys` are taken as projected ones. */
static rapt_tensor *decode(const decoder *d)
{
    rapt_tensor *query = d->query;
    for (int t = 0; t < decoder_steps; t++)
        query = rapt_attention_pool(d->attention, query, d->keys, d->values, RAPT_MASK(.valid_lengths = d->lengths));
    cr_assert(query, "%s", rapt_error());
    return rapt_sum(rapt_mul(query, query), RAPT_ALL_AXES, false);
}

static void run_decoder(const decoder *d, rapt_tensor *root, rapt_tensor **gradients)
{
    const parameter_list list = parameters_of(d->attention); /* W_k, W_q, w_v */
    rapt_tensor *wanted[] = {d->query, d->keys, d->values, list.tensors[1], list.tensors[2]};
    cr_assert(rapt_gradients(1, &root, NULL, decoder_gradients, wanted, gradients, d->flags), "%s", rapt_error());
}

Test(fused_additive, gradients_of_a_decoder_are_those_of_the_plain_way)
{
    const int64_t lengths[] = {11, 300};
    for (int i = 0; i < 4; i++) {
        RAPT_SCOPE;
        rapt_tensor *fused[decoder_gradients], *plain[decoder_gradients];
        decoder d = new_decoder(RAPT_FLOAT64, lengths[i / 2], i % 2);
        run_decoder(&d, decode(&d), fused);
        d.attention->plain = true;
        run_decoder(&d, decode(&d), plain);
        for (int k = 0; k < decoder_gradients; k++)
            expect_values(i % 2 ? "one tensor" : "two tensors", fused[k], rapt_count(plain[k]), values_of(plain[k]),
                          1e-12);
        rapt_module_free(&d.attention->module);
    }
}

Test(fused_additive, a_decoder_gives_the_same_bits_again_and_on_any_number_of_threads)
{
    for (int one_tensor = 0; one_tensor < 2; one_tensor++) {
        RAPT_SCOPE;
        rapt_tensor *gradients[4][decoder_gradients];
        decoder d = new_decoder(RAPT_FLOAT32, 300, one_tensor);
        d.flags = RAPT_RETAIN_GRAPH;
        rapt_tensor *root = decode(&d);
        for (int run = 0; run < 4; run++) {
            cr_assert(rapt_set_threads(run / 2 * 3 + 1));
            run_decoder(&d, root, gradients[run]);
            for (int k = 0; k < decoder_gradients; k++)
                cr_expect(same_bits(gradients[0][k], gradients[run][k]), "gradient %d in run %d", k, run);
        }
        rapt_module_free(&d.attention->module);
    }
}

/* What the keys carry along holds only while they are as they were. */
Test(fused_additive, prepared_keys_may_change)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    example e = new_example(RAPT_FLOAT64, 2, 6, 9, 0);
    rapt_tensor *prepared = rapt_attention_prepare(e.attention, e.inputs[1], NULL);
    cr_assert(rapt_fill(prepared, 0));
    rapt_tensor *pooled = rapt_attention_pool(e.attention, e.inputs[0], prepared, e.inputs[2], NULL);
    rapt_tensor *mean = rapt_expand(rapt_mean(e.inputs[2], RAPT_AXES(1), true), RAPT_SHAPE(2, 2, 7));
    expect_values("mean", pooled, 2 * 2 * 7, values_of(mean), 1e-14);
    rapt_module_free(&e.attention->module);
}

/* Neither the scores nor anything that has hidden units for each pair is ever there. */
Test(fused_additive, memory_does_not_grow_with_pairs)
{
    RAPT_SCOPE;
    enum { length = 3000, hidden = 8 };
    example e = new_example(RAPT_FLOAT32, length, length, hidden, 0);
    rapt_tensor *results[result_count];
    const int64_t before = live_bytes();
    rapt_memory_reset_peak();
    run(&e, NULL, results);
    const int64_t peak = rapt_memory_get_statistics().peak_bytes - before, scores = 2 * (int64_t)length * length * 4;
    cr_expect_lt(peak, scores / 8, "%lld bytes", (long long)peak);
    rapt_module_free(&e.attention->module);
}

Test(fused_additive, bad_input_is_an_error)
{
    RAPT_SCOPE;
    example e = new_example(RAPT_FLOAT32, 2, 3, 4, 0);
    rapt_tensor *wide = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, 2, 6)), *other = rapt_cast(e.inputs[2], RAPT_FLOAT64);
    cr_expect_null(rapt_attention_forward(e.attention, wide, e.inputs[1], e.inputs[2], NULL));
    expect_error(RAPT_ERROR_SHAPE, "[2, 2, 6]");
    cr_expect_null(rapt_attention_forward(e.attention, e.inputs[0], e.inputs[1], other, NULL));
    expect_error(RAPT_ERROR_DTYPE, "float64");
    rapt_module_free(&e.attention->module);
}

Test(fused_additive, no_heads_have_gradients_of_nothing)
{
    RAPT_SCOPE;
    for (int plain = 0; plain < 2; plain++) {
        rapt_attention *attention = rapt_additive_attention_new(4, 4, 3, 0);
        attention->plain = plain;
        rapt_tensor *queries = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 0, 2, 4))),
                    *keys = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 0, 3, 4)));
        rapt_tensor *pooled = rapt_attention_forward(attention, queries, keys, keys, NULL);
        cr_assert(rapt_backward(rapt_sum(pooled, RAPT_ALL_AXES, false)), "%s", rapt_error());
        cr_expect(rapt_gradient(queries) && rapt_count(rapt_gradient(queries)) == 0);
        cr_expect(rapt_gradient(keys) && rapt_size(rapt_gradient(keys), 2) == 3);
        rapt_tensor_list *list = rapt_module_list(&attention->module, RAPT_PARAMETERS);
        for (int i = 0; i < list->count; i++) {
            rapt_tensor *gradient = rapt_gradient(list->tensors[i]);
            cr_assert_not_null(gradient, "%s", list->names[i]);
            const double *values = values_of(gradient);
            for (int64_t k = 0; k < rapt_count(gradient); k++) cr_expect_eq(values[k], 0, "%s", list->names[i]);
        }
        rapt_tensor_list_free(list);
        rapt_module_free(&attention->module);
    }
    expect_no_error();
}
