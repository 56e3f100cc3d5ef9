/* Attention's weights as part of the graph: gradients of losses that read them, whatever else is read. */
#include "fused_dot.h"

#include <rapt/derivatives.h>
#include <rapt/runtime.h>

enum { scaled_dot, gaussian, additive, families };
enum { of_pooled = 1, of_weights = 2 };

static rapt_attention *attention_of(int family, int64_t size, double dropout)
{
    rapt_seed(11);
    rapt_attention *attention = family == additive
                                    ? rapt_additive_attention_new(size, size, 7, dropout)
                                    : rapt_attention_new(family == gaussian ? rapt_gaussian_scoring_new(2, false)
                                                                            : rapt_scaled_dot_product_scoring_new(),
                                                         dropout);
    cr_assert_not_null(attention, "%s", rapt_error());
    attention->keep_weights = true;
    return attention;
}

typedef struct asked {
    rapt_attention *attention;
    rapt_mask mask;
    int reads; /* of_pooled, of_weights or both */
} asked;

static rapt_tensor *flat(rapt_tensor *x)
{
    return rapt_reshape(x, RAPT_SHAPE(rapt_count(x)));
}

static rapt_tensor *read(rapt_tensor *const *inputs, void *context)
{
    const asked *a = context;
    rapt_tensor *pooled = rapt_attention_forward(a->attention, inputs[0], inputs[1], inputs[2], &a->mask);
    if (!pooled) return NULL;
    rapt_tensor *results[] = {flat(pooled), flat(a->attention->weights)};
    return a->reads == of_pooled ? results[0] : a->reads == of_weights ? results[1] : rapt_concat(2, results, 0);
}

enum { softmax, constant_sink, learned_sinks, sigmoid, normalizers };

static void normalize_by(rapt_attention *attention, int which, int64_t heads)
{
    if (which == constant_sink) attention->sink = 0.3;
    if (which == learned_sinks) cr_assert(rapt_fill_normal(rapt_attention_learn_sinks(attention, heads), 0, 1));
    if (which == sigmoid) cr_assert(rapt_attention_learn_sigmoid(attention, heads, -1), "%s", rapt_error());
    in_float64(attention);
}

/* Few queries go another way than many; heads in groups; every mask hides something. By all parameters too. */
static void check_gradients(int family, bool second_order)
{
    for (int kind = 0; kind < 4 * normalizers; kind++) {
        RAPT_SCOPE;
        const int64_t queries = kind % 2 ? 2 : 5, heads = kind / 2 % 2 ? 4 : 2, keys = 6;
        asked a = {.attention = attention_of(family, 3, kind % 4 == 3 ? 0.3 : 0),
                   .reads = kind % 3 ? of_pooled | of_weights : of_weights};
        if (kind % 4 == 1) a.mask = (rapt_mask){.causal = true, .offset = 2, .valid_lengths = lengths_of(6, 4)};
        if (kind % 4 == 2)
            a.mask = (rapt_mask){.seen = rapt_less(rapt_rand(RAPT_FLOAT32, RAPT_SHAPE(queries, keys)),
                                                   rapt_scalar(RAPT_FLOAT32, 0.7)),
                                 .bias = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(heads, queries, keys))};
        normalize_by(a.attention, kind / 4, heads);
        rapt_tensor *values = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 2, keys, 2));
        if (a.reads != of_weights) rapt_require_gradient(values);
        rapt_tensor *inputs[] = {leaf(RAPT_FLOAT64, RAPT_SHAPE(2, heads, queries, 3)),
                                 leaf(RAPT_FLOAT64, RAPT_SHAPE(2, 2, keys, 3)), values};
        const rapt_gradcheck_options options = {.context = &a,
                                                .second_order = second_order,
                                                .random_projection = kind > 3};
        const rapt_gradcheck_result r = rapt_module_gradcheck(&a.attention->module, read, 3, inputs, &options);
        cr_expect(r.passed, "family %d, kind %d: %s", family, kind, r.message);
        cr_expect_gt(r.checked, kind > 3 ? 0 : second_order ? 50 : 500);
        rapt_module_free(&a.attention->module);
    }
    expect_no_error();
}

Test(weights_gradient, gradcheck)
{
    for (int family = 0; family < families; family++) check_gradients(family, false);
}

Test(weights_gradient, gradcheck_of_second_order)
{
    for (int family = 0; family < families; family++) check_gradients(family, true);
}

/* Scores 0 and s: the weight p of the second has the slope p (1 − p) by s, whatever dropout does to the pooled
 * values. */
Test(weights_gradient, of_two_keys_is_known)
{
    for (int dropout = 0; dropout < 2; dropout++)
        for (int plain = 0; plain < 2; plain++) {
            RAPT_SCOPE;
            rapt_attention *attention = rapt_attention_new(rapt_dot_product_scoring_new(), 0.5 * dropout);
            attention->keep_weights = true;
            attention->plain = plain;
            rapt_tensor *query = rapt_require_gradient(doubles(RAPT_SHAPE(1, 1, 1), (double[]){0.7}));
            rapt_tensor *keys = doubles(RAPT_SHAPE(1, 2, 1), (double[]){0, 1});
            cr_assert(rapt_attention_forward(attention, query, keys, keys, NULL), "%s", rapt_error());
            const double p = 1 / (1 + exp(-0.7));
            expect_values("weights", attention->weights, 2, (double[]){1 - p, p}, 1e-15);
            cr_assert(rapt_backward(rapt_sum(rapt_slice(attention->weights, 2, 1, 2, 1), RAPT_ALL_AXES, false)));
            expect_values("gradient", rapt_gradient(query), 1, (double[]){p * (1 - p)}, 1e-15);
            rapt_module_free(&attention->module);
        }
    expect_no_error();
}

/* Gradients of queries, keys and values (NULL where nothing depends on them) from drawn ones of what is read. */
static void differentiate_reads(rapt_attention *attention, rapt_tensor *const *in, const rapt_mask *mask, int reads,
                                bool spoils, rapt_tensor *gradients[3])
{
    rapt_seed(4);
    rapt_tensor *pooled = rapt_attention_forward(attention, in[0], in[1], in[2], mask), *weights = attention->weights;
    cr_assert_not_null(pooled, "%s", rapt_error());
    rapt_tensor *roots[2], *from[2];
    int count = 0;
    if (reads & of_weights) {
        roots[count] = weights;
        from[count] = rapt_randn(rapt_get_dtype(weights), rapt_rank(weights), rapt_shape(weights));
        if (spoils) /* at keys that are not seen */
            from[count] = rapt_where(rapt_mask_seen(mask, weights), from[count],
                                     rapt_full(rapt_get_dtype(weights), 0, NULL, (double)NAN));
        count++;
    }
    if (reads & of_pooled) {
        roots[count] = pooled;
        from[count++] = rapt_randn(rapt_get_dtype(pooled), rapt_rank(pooled), rapt_shape(pooled));
    }
    cr_assert(rapt_gradients(count, roots, from, 3, in, gradients, 0), "%s", rapt_error());
    for (int i = 0; i < 3; i++)
        if (gradients[i]) gradients[i] = rapt_contiguous(gradients[i]);
}

Test(weights_gradient, any_number_of_threads_gives_the_same_bits)
{
    static const int64_t shapes[][4] = {{1, 1, 1, 1500}, {1, 1, 300, 600}, {6, 2, 90, 130}, {8, 1, 4, 900}};
    for (int i = 0; i < families * 4; i++) {
        RAPT_SCOPE;
        const int64_t *s = shapes[i / families], size = 16;
        rapt_attention *attention = attention_of(i % families, size, i % 2 ? 0.2 : 0);
        rapt_tensor *in[] = {leaf(RAPT_FLOAT32, RAPT_SHAPE(2, s[0], s[2], size)),
                             leaf(RAPT_FLOAT32, RAPT_SHAPE(2, s[1], s[3], size)),
                             leaf(RAPT_FLOAT32, RAPT_SHAPE(2, s[1], s[3], size))};
        rapt_tensor *one[3], *many[3];
        for (int threads = 1; threads <= 4; threads++) {
            cr_assert(rapt_set_threads(threads));
            differentiate_reads(attention, in, NULL, of_pooled | of_weights, false, threads == 1 ? one : many);
            for (int k = 0; k < 3 && threads > 1; k++) cr_expect(same_bits(one[k], many[k]), "case %d, %d", i, k);
        }
        rapt_module_free(&attention->module);
    }
    expect_no_error();
}

/* Keys and values that no query sees, and gradients of weights that no query sees, may be anything. */
Test(weights_gradient, what_is_not_seen_changes_nothing)
{
    for (int kind = 0; kind < families * 8; kind++) {
        RAPT_SCOPE;
        const bool plain = kind / families % 2, few = kind / families / 2 % 2, masked = kind / families / 4;
        rapt_attention *attention = in_float64(attention_of(kind % families, 5, 0));
        attention->plain = plain;
        rapt_tensor *in[] = {leaf(RAPT_FLOAT64, RAPT_SHAPE(2, 2, few ? 2 : 20, 5)),
                             leaf(RAPT_FLOAT64, RAPT_SHAPE(2, 1, 30, 5)), leaf(RAPT_FLOAT64, RAPT_SHAPE(2, 1, 30, 4))};
        rapt_tensor *spoilt[] = {in[0], in[1], in[2]}, *clean[3], *dirty[3];
        const rapt_mask mask = {.valid_lengths = lengths_of(17, 0), .causal = masked, .offset = 9};
        for (int i = 1; i < 3; i++) {
            rapt_tensor *copy = rapt_clone(rapt_detach(in[i]));
            rapt_fill(rapt_slice(copy, 2, 17, 30, 1), (double)NAN);
            spoilt[i] = rapt_require_gradient(copy);
        }
        differentiate_reads(attention, in, &mask, of_pooled | of_weights, false, clean);
        differentiate_reads(attention, spoilt, &mask, of_pooled | of_weights, true, dirty);
        for (int i = 0; i < 3; i++) cr_expect(same_bits(clean[i], dirty[i]), "kind %d, %d", kind, i);
        rapt_module_free(&attention->module);
    }
    expect_no_error();
}

Test(weights_gradient, nothing_comes_from_values_where_only_weights_are_read)
{
    for (int kind = 0; kind < families * 4; kind++) {
        RAPT_SCOPE;
        const bool few = kind / families % 2;
        rapt_attention *attention = in_float64(attention_of(kind % families, 5, 0.1));
        attention->plain = kind / families / 2;
        rapt_tensor *in[] = {leaf(RAPT_FLOAT64, RAPT_SHAPE(2, few ? 2 : 20, 5)),
                             leaf(RAPT_FLOAT64, RAPT_SHAPE(2, 30, 5)), leaf(RAPT_FLOAT64, RAPT_SHAPE(2, 30, 4))};
        rapt_tensor *clean[3], *dirty[3];
        differentiate_reads(attention, in, NULL, of_weights, false, clean);
        in[2] = rapt_require_gradient(rapt_full(RAPT_FLOAT64, RAPT_SHAPE(2, 30, 4), (double)INFINITY));
        differentiate_reads(attention, in, NULL, of_weights, false, dirty);
        cr_expect(!clean[2] && !dirty[2]);
        for (int i = 0; i < 2; i++) cr_expect(same_bits(clean[i], dirty[i]), "kind %d, %d", kind, i);
        rapt_module_free(&attention->module);
    }
    expect_no_error();
}

/* A query that sees one key has weight 1 there, and no gradient, not even a rounding error. */
Test(weights_gradient, of_one_key_is_zero)
{
    for (int kind = 0; kind < 2 * families; kind++) {
        RAPT_SCOPE;
        rapt_attention *attention = attention_of(kind % families, 33, 0);
        const int64_t queries = kind / families ? 3 : 9;
        rapt_tensor *in[] = {leaf(RAPT_FLOAT32, RAPT_SHAPE(2, queries, 33)),
                             leaf(RAPT_FLOAT32, RAPT_SHAPE(2, queries, 33)),
                             leaf(RAPT_FLOAT32, RAPT_SHAPE(2, queries, 33))};
        rapt_tensor *gradients[3];
        differentiate_reads(attention, in, RAPT_MASK(.window = 1), of_weights, false, gradients);
        for (int i = 0; i < 2; i++) cr_expect(largest_of(gradients[i]) == 0, "kind %d", kind);
        rapt_module_free(&attention->module);
    }
}

Test(weights_gradient, packed_sequences_have_that_of_the_padded_batch)
{
    for (int family = 0; family < families; family++) {
        RAPT_SCOPE;
        rapt_attention *attention = in_float64(attention_of(family, 4, 0.3));
        rapt_tensor *starts = rapt_packing_starts(rapt_from(RAPT_INT64, RAPT_SHAPE(3), (int64_t[]){3, 0, 5}));
        rapt_tensor *x = leaf(RAPT_FLOAT64, RAPT_SHAPE(8, 4)), *gradients[2];
        for (int padded = 0; padded < 2; padded++) {
            rapt_tensor *in = padded ? rapt_unpack(x, starts, 0, 0) : x;
            rapt_mask mask = {.causal = true};
            if (padded)
                mask.valid_lengths =
                    rapt_from(RAPT_INT64, RAPT_SHAPE(3, 5), (int64_t[]){3, 3, 3, 0, 0, 0, 0, 0, 0, 0, 5, 5, 5, 5, 5});
            else
                mask.starts = starts;
            rapt_seed(3);
            cr_assert(rapt_attention_forward(attention, in, in, in, &mask), "%s", rapt_error());
            rapt_tensor *weights = attention->weights;
            rapt_tensor *from = rapt_sin(rapt_reshape(rapt_arange(RAPT_FLOAT64, 0, 75, 1), RAPT_SHAPE(3, 5, 5)));
            cr_assert(rapt_gradients(1, &weights, &from, 1, &x, &gradients[padded], 0), "%s", rapt_error());
        }
        cr_expect_gt(largest_of(gradients[1]), 1e-3);
        expect_values("packed", gradients[0], rapt_count(x), values_of(gradients[1]), 1e-13);
        rapt_module_free(&attention->module);
    }
    expect_no_error();
}

Test(weights_gradient, forward_mode_goes_the_way_of_differences)
{
    for (int family = 0; family < families; family++) {
        RAPT_SCOPE;
        rapt_attention *attention = in_float64(attention_of(family, 4, 0));
        rapt_tensor *in[] = {leaf(RAPT_FLOAT64, RAPT_SHAPE(2, 3, 4)), leaf(RAPT_FLOAT64, RAPT_SHAPE(2, 6, 4))};
        rapt_tensor *tangents[] = {rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 3, 4)),
                                   rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 6, 4))};
        rapt_tensor *moved, *at[5];
        const double step = 1e-3;
        cr_assert(rapt_attention_forward(attention, in[0], in[1], in[1], NULL), "%s", rapt_error());
        cr_assert(rapt_jvp(1, (rapt_tensor *[]){attention->weights}, 2, in, tangents, &moved, 0), "%s", rapt_error());
        for (int k = -2; k <= 2; k++) { /* (f(−2) − 8 f(−1) + 8 f(1) − f(2)) / 12 */
            rapt_tensor *q = rapt_add(in[0], rapt_mul_scalar(tangents[0], k * step)),
                        *keys = rapt_add(in[1], rapt_mul_scalar(tangents[1], k * step));
            cr_assert(rapt_attention_forward(attention, q, keys, keys, NULL), "%s", rapt_error());
            at[k + 2] = rapt_detach(attention->weights);
        }
        rapt_tensor *near = rapt_mul_scalar(rapt_sub(at[3], at[1]), 8), *far = rapt_sub(at[4], at[0]);
        rapt_tensor *differences = rapt_mul_scalar(rapt_sub(near, far), 1 / (12 * step));
        expect_values("jvp", moved, rapt_count(moved), values_of(differences), 1e-9);
        rapt_module_free(&attention->module);
    }
    expect_no_error();
}

/* --- what is kept --- */

/* Bytes that are alive after three steps whose weights somebody keeps, as they are or outside the graph. */
static int64_t bytes_of_steps(int family, bool detaches)
{
    enum { steps = 3 };
    rapt_attention *attention = attention_of(family, 64, 0);
    rapt_tensor *kept[steps];
    rapt_scope outer = rapt_scope_begin();
    rapt_tensor *x = leaf(RAPT_FLOAT32, RAPT_SHAPE(2, 64, 64));
    for (int step = 0; step < steps; step++) {
        RAPT_SCOPE;
        rapt_tensor *y = rapt_attention_forward(attention, x, x, x, NULL);
        kept[step] = rapt_retain(detaches ? rapt_detach(attention->weights) : attention->weights);
        cr_assert(rapt_backward(rapt_sum(rapt_mul(y, y), RAPT_ALL_AXES, false)), "%s", rapt_error());
    }
    const int64_t bytes = live_bytes();
    for (int step = 0; step < steps; step++) rapt_release(kept[step]);
    rapt_scope_end(outer);
    rapt_module_free(&attention->module);
    return bytes;
}

Test(weights_gradient, weights_that_are_kept_hold_no_tensors_after_backward)
{
    for (int family = 0; family < families; family++) {
        const int64_t detached = bytes_of_steps(family, true), kept = bytes_of_steps(family, false);
        cr_expect_lt(kept - detached, 2 * 64 * 64 * 4 / 4, "%lld and %lld bytes", (long long)kept, (long long)detached);
    }
    expect_no_error();
}

Test(weights_gradient, nothing_is_recorded_where_no_gradient_is_wanted)
{
    RAPT_SCOPE;
    rapt_attention *attention = attention_of(scaled_dot, 4, 0);
    rapt_tensor *x = leaf(RAPT_FLOAT32, RAPT_SHAPE(2, 8, 4));
    {
        RAPT_NO_GRADIENT;
        cr_assert(rapt_attention_forward(attention, x, x, x, NULL));
    }
    cr_expect_not(rapt_requires_gradient(attention->weights));
    cr_expect_not(rapt_backward(rapt_sum(attention->weights, RAPT_ALL_AXES, false)));
    expect_error(RAPT_ERROR_GRAPH, "");
    rapt_module_free(&attention->module);
}

Test(weights_gradient, wrong_use_is_told)
{
    for (int family = 0; family < families; family++) {
        RAPT_SCOPE;
        rapt_attention *attention = attention_of(family, 4, 0);
        rapt_tensor *x = leaf(RAPT_FLOAT32, RAPT_SHAPE(2, 8, 4));
        rapt_tensor *y = rapt_attention_forward(attention, x, x, x, NULL);
        cr_assert(rapt_backward(rapt_sum(y, RAPT_ALL_AXES, false)), "%s", rapt_error());
        cr_expect_not(rapt_backward(rapt_sum(rapt_mul(attention->weights, attention->weights), RAPT_ALL_AXES, false)));
        expect_error(RAPT_ERROR_GRAPH, "was freed by an earlier backward");
        y = rapt_attention_forward(attention, x, x, x, NULL);
        rapt_tensor *wrong = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 8, 7));
        cr_expect_not(rapt_backward_from(1, (rapt_tensor *[]){attention->weights}, &wrong, 0));
        expect_error(RAPT_ERROR_SHAPE, "[2, 8, 7]");
        rapt_module_free(&attention->module);
    }
}

Test(weights_gradient, without_memory)
{
    for (int family = 0; family < families; family++) {
        rapt_attention *attention = attention_of(family, 4, 0.2);
        rapt_scope outer = rapt_scope_begin();
        rapt_tensor *x = leaf(RAPT_FLOAT32, RAPT_SHAPE(2, 8, 4));
        cr_assert(rapt_attention_forward(attention, x, x, x, NULL));
        int64_t failures = 0;
        for (bool done = false; !done; failures++) {
            {
                RAPT_SCOPE;
                rapt_tensor *gradient;
                rapt_memory_fail_after(failures);
                rapt_tensor *y = rapt_attention_forward(attention, x, x, x, NULL);
                rapt_tensor *root =
                    y ? rapt_add(rapt_sum(rapt_mul(attention->weights, attention->weights), RAPT_ALL_AXES, false),
                                 rapt_sum(y, RAPT_ALL_AXES, false))
                      : NULL;
                done = root && rapt_gradients(1, &root, NULL, 1, &x, &gradient, 0);
                rapt_memory_fail_after(-1);
                if (!done) expect_error(RAPT_ERROR_MEMORY, "no memory");
            }
        }
        cr_expect_gt(failures, 20);
        rapt_scope_end(outer);
        rapt_module_free(&attention->module);
    }
    expect_no_error();
}
