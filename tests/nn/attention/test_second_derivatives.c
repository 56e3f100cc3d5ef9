/* Second derivatives of fused attention at its edges: padding full of NaN, rows that see nothing, no rows at all,
 * packed sequences, no memory, many threads. That they are right is checked where fused attention is. */
#include "modules.h"

#include <rapt/runtime.h>

enum { batch = 3, query_count = 4, key_count = 6, size = 5, value_size = 2, input_count = 3 };
enum { scaled_dot, gaussian, additive, families };

static rapt_attention *attention_of(int family, double dropout)
{
    rapt_seed(11);
    return in_float64(family == additive
                          ? rapt_additive_attention_new(size, size, 7, dropout)
                          : rapt_attention_new(family == gaussian ? rapt_gaussian_scoring_new(2, false)
                                                                  : rapt_scaled_dot_product_scoring_new(),
                                               dropout));
}

/* The gradient that first order starts from, and by it and by the inputs those of <first gradients, random>. */
typedef struct second {
    rapt_tensor *of[1 + input_count];
} second;

static bool differentiate(rapt_attention *attention, rapt_tensor *const *in, const rapt_mask *mask, second *s)
{
    rapt_seed(5);
    rapt_tensor *pooled = rapt_attention_forward(attention, in[0], in[1], in[2], mask), *first[input_count];
    if (!pooled) return false;
    rapt_tensor *from = rapt_randn(RAPT_FLOAT64, rapt_rank(pooled), rapt_shape(pooled));
    if (!from || !rapt_require_gradient(from)) return false;
    if (!rapt_gradients(1, &pooled, &from, input_count, in, first, RAPT_CREATE_GRAPH)) return false;
    rapt_tensor *random[input_count], *wanted[] = {from, in[0], in[1], in[2]};
    for (int i = 0; i < input_count; i++)
        if (!(random[i] = rapt_randn(RAPT_FLOAT64, rapt_rank(in[i]), rapt_shape(in[i])))) return false;
    return rapt_gradients(input_count, first, random, 1 + input_count, wanted, s->of, 0);
}

static void draw_inputs(rapt_tensor *in[input_count])
{
    rapt_seed(12);
    in[0] = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(batch, query_count, size)));
    in[1] = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(batch, key_count, size)));
    in[2] = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(batch, key_count, value_size)));
}

/* The same inputs, with NaN in keys and values from the end of each item's length on. */
static void spoil(rapt_tensor *const *in, rapt_tensor *spoilt[input_count], const int64_t *lengths)
{
    for (int i = 0; i < input_count; i++) {
        rapt_tensor *copy = rapt_clone(rapt_detach(in[i]));
        for (int64_t item = 0; i > 0 && item < batch; item++)
            if (lengths[item] < key_count)
                cr_assert(rapt_fill(rapt_slice(rapt_select(copy, 0, item), 0, lengths[item], key_count, 1), NAN));
        spoilt[i] = rapt_require_gradient(copy);
    }
}

static void expect_zeros(const char *what, rapt_tensor *x)
{
    const double *values = values_of(x);
    for (int64_t i = 0; i < rapt_count(x); i++) cr_assert_eq(values[i], 0, "%s: %g", what, values[i]);
}

Test(second_derivatives, nothing_comes_from_padding_nor_goes_there)
{
    const int64_t lengths[batch] = {4, 0, 6};
    for (int family = 0; family < families; family++)
        for (int masked = 0; masked < 3; masked++) {
            RAPT_SCOPE;
            rapt_attention *attention = attention_of(family, masked == 1 ? 0.4 : 0);
            rapt_tensor *in[input_count], *spoilt[input_count];
            draw_inputs(in);
            spoil(in, spoilt, lengths);
            rapt_mask mask = {.valid_lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(batch), lengths),
                              .causal = masked == 1};
            if (masked == 2) { /* every query of its own */
                mask.seen = rapt_less(rapt_rand(RAPT_FLOAT32, RAPT_SHAPE(1, query_count, key_count)),
                                      rapt_scalar(RAPT_FLOAT32, 0.6));
                mask.bias = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(query_count, key_count));
            }
            second clean, dirty;
            cr_assert(differentiate(attention, in, &mask, &clean), "%s", rapt_error());
            cr_assert(differentiate(attention, spoilt, &mask, &dirty), "%s", rapt_error());
            for (int i = 0; i < 1 + input_count; i++) {
                cr_assert(clean.of[i] && dirty.of[i], "family %d, %d", family, i);
                expect_values("with NaN", dirty.of[i], rapt_count(clean.of[i]), values_of(clean.of[i]), 1e-15);
                expect_zeros("an item that sees nothing", rapt_select(dirty.of[i], 0, 1));
                if (i >= 2) expect_zeros("padding", rapt_slice(rapt_select(dirty.of[i], 0, 0), 0, 4, 6, 1));
            }
            rapt_module_free(&attention->module);
        }
    expect_no_error();
}

/* Sequences of a padded batch one behind the other, under the same dropout. */
Test(second_derivatives, packed_sequences_have_those_of_the_padded_batch)
{
    const int64_t lengths[batch] = {3, 0, 4};
    for (int family = 0; family < families; family++)
        for (int dropout = 0; dropout < 2; dropout++) {
            RAPT_SCOPE;
            rapt_attention *attention = attention_of(family, 0.4 * dropout);
            rapt_tensor *starts = rapt_packing_starts(rapt_from(RAPT_INT64, RAPT_SHAPE(batch), lengths)), *twice[2];
            rapt_tensor *x = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(7, size)));
            rapt_tensor *random = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(7, size));
            rapt_tensor *bias = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(5)));
            for (int padded = 0; padded < 2; padded++) {
                rapt_tensor *first, *seen_by = rapt_zeros(RAPT_INT64, RAPT_SHAPE(batch, 4)), *in = x;
                for (int64_t i = 0; i < batch; i++)
                    cr_assert(
                        rapt_fill(rapt_slice(rapt_select(seen_by, 0, i), 0, 0, lengths[i], 1), (double)lengths[i]));
                rapt_mask mask = {.starts = starts, .causal = true, .relative_bias = bias};
                if (padded) {
                    mask.starts = NULL;
                    mask.valid_lengths = seen_by;
                    in = rapt_unpack(x, starts, 0, 0);
                }
                rapt_seed(5);
                rapt_tensor *pooled = rapt_attention_forward(attention, in, in, in, &mask);
                rapt_tensor *root = rapt_sum(rapt_mul(pooled, pooled), RAPT_ALL_AXES, false);
                cr_assert(rapt_gradients(1, &root, NULL, 1, &x, &first, RAPT_CREATE_GRAPH), "%s", rapt_error());
                cr_assert(rapt_gradients(1, &first, &random, 1, &bias, &twice[padded], RAPT_RETAIN_GRAPH));
                rapt_tensor *by_bias = twice[padded];
                cr_assert(rapt_gradients(1, &first, &random, 1, &x, &twice[padded], 0), "%s", rapt_error());
                twice[padded] =
                    rapt_concat(2, (rapt_tensor *[]){rapt_reshape(twice[padded], RAPT_SHAPE(7 * size)), by_bias}, 0);
            }
            expect_values("packed", twice[0], rapt_count(twice[1]), values_of(twice[1]), 1e-12);
            rapt_module_free(&attention->module);
        }
    expect_no_error();
}

Test(second_derivatives, of_nothing)
{
    const int64_t sizes[][3] = {{0, 2, 3}, {2, 0, 3}, {2, 3, 0}};
    for (int family = 0; family < families; family++)
        for (size_t i = 0; i < 3; i++) {
            RAPT_SCOPE;
            const int64_t *n = sizes[i];
            rapt_attention *attention = attention_of(family, 0.5);
            rapt_tensor *in[] = {rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(n[0], n[1], size))),
                                 rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(n[0], n[2], size))),
                                 rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(n[0], n[2], value_size)))};
            second s;
            cr_expect(differentiate(attention, in, NULL, &s), "%zu: %s", i, rapt_error());
            for (int k = 0; k < 1 + input_count; k++)
                if (s.of[k]) expect_zeros("nothing", s.of[k]);
            rapt_module_free(&attention->module);
        }
    for (int family = 0; family < families; family++)
        for (int64_t sequences = 0; sequences < 3; sequences++) {
            RAPT_SCOPE;
            rapt_attention *attention = attention_of(family, 0);
            rapt_tensor *x = rapt_require_gradient(rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(0, size))), *first, *again;
            rapt_tensor *starts = rapt_zeros(RAPT_INT64, RAPT_SHAPE(sequences + 1));
            rapt_tensor *out = rapt_attention_forward(attention, x, x, x, RAPT_MASK(.starts = starts));
            rapt_tensor *root = rapt_sum(out, RAPT_ALL_AXES, false);
            cr_assert(rapt_gradients(1, &root, NULL, 1, &x, &first, RAPT_CREATE_GRAPH), "%s", rapt_error());
            root = rapt_sum(first, RAPT_ALL_AXES, false);
            cr_expect(rapt_gradients(1, &root, NULL, 1, &x, &again, 0), "%s", rapt_error());
            rapt_module_free(&attention->module);
        }
    expect_no_error();
}

Test(second_derivatives, the_number_of_threads_changes_no_bit)
{
    for (int family = 0; family < families; family++) {
        RAPT_SCOPE;
        rapt_attention *attention = attention_of(family, 0.2);
        rapt_tensor *in[input_count];
        for (int i = 0; i < input_count; i++)
            in[i] = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(4, 90, i == 2 ? 30 : size)));
        second one, many;
        for (int threads = 1; threads <= 4; threads++) {
            cr_assert(rapt_set_threads(threads));
            cr_assert(differentiate(attention, in, RAPT_MASK(.causal = true), threads == 1 ? &one : &many));
            for (int i = 0; i < 1 + input_count && threads > 1; i++)
                cr_expect(same_bits(rapt_contiguous(one.of[i]), rapt_contiguous(many.of[i])), "family %d", family);
        }
        rapt_module_free(&attention->module);
    }
    expect_no_error();
}

Test(second_derivatives, without_memory)
{
    for (int family = 0; family < families; family++) {
        rapt_attention *attention = attention_of(family, 0.2);
        rapt_scope outer = rapt_scope_begin();
        rapt_tensor *in[input_count];
        draw_inputs(in);
        const rapt_mask mask = {.valid_lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(batch), (int64_t[]){4, 0, 6})};
        const int64_t before = live_bytes();
        int64_t failures = 0;
        for (bool done = false; !done; failures++) {
            const rapt_random_state random = rapt_random_get_state();
            {
                RAPT_SCOPE;
                second s;
                rapt_memory_fail_after(failures);
                done = differentiate(attention, in, &mask, &s);
                rapt_memory_fail_after(-1);
                if (!done) expect_error(RAPT_ERROR_MEMORY, "no memory");
            }
            rapt_random_set_state(random);
            cr_assert_eq(live_bytes(), before, "bytes leak after failure %lld", (long long)failures);
        }
        cr_expect_gt(failures, 100);
        rapt_scope_end(outer);
        rapt_module_free(&attention->module);
    }
    expect_no_error();
}
