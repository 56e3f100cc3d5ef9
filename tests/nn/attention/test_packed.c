/* Attention of packed sequences gives what the padded batch gives, sequence by sequence: bit for bit in float64. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include <rapt/nn.h>
#include <rapt/runtime.h>

#include "../../draw.h"
#include "../../expect.h"
#include "../../integers.h"
#include "../../mask_rules.h"
#include "../../score_modifications.h"

enum { most_sequences = 40, all_cases = 400, most_learned = 2 };
enum { at_queries, at_keys, at_values, at_bias, input_count };

typedef enum family { scaled_dot, gaussian, additive, bilinear, cosine, relative, family_count } family;

/* A call that is drawn: its sizes and its mask. */
typedef struct drawn {
    uint64_t state;
    rapt_dtype dtype;
    family scoring;
    int64_t batch, heads, groups, size, value_size, reach; /* heads 0: none */
    int64_t queries[most_sequences], keys[most_sequences], longest_queries, longest_keys;
    bool is_self, has_lengths;
    double dropout;
    int modification; /* of the scores; −1: none */
    rapt_mask mask;
    int64_t lengths[most_sequences];
} drawn;

static void draw_lengths(drawn *d, int64_t most)
{
    for (int64_t b = 0; b < d->batch; b++) {
        d->queries[b] = draw_chance(&d->state, 20) ? 0 : draw_below(&d->state, most) + 1;
        d->keys[b] = d->is_self ? d->queries[b] : draw_chance(&d->state, 10) ? 0 : draw_below(&d->state, most) + 1;
        if (d->queries[b] > d->longest_queries) d->longest_queries = d->queries[b];
        if (d->keys[b] > d->longest_keys) d->longest_keys = d->keys[b];
        d->lengths[b] = draw_below(&d->state, d->keys[b] + 2);
    }
}

static drawn draw_call(uint64_t seed)
{
    static const int64_t longest[] = {1, 4, 9, 20, 70, 150, 600};
    drawn d = {.state = seed};
    uint64_t *state = &d.state;
    d.scoring = (family)draw_below(state, family_count);
    d.batch = draw_chance(state, 10) ? most_sequences : draw_below(state, 5) + 1;
    d.heads = draw_chance(state, 25) ? 0 : draw_below(state, 4) + 1;
    d.groups = d.heads == 4 && draw_chance(state, 50) ? 2 : d.heads > 0 && draw_chance(state, 20) ? 1 : d.heads;
    d.size = draw_below(state, 20) + 1;
    d.value_size = draw_below(state, 20) + 1;
    d.is_self = draw_chance(state, 50);
    draw_lengths(&d, longest[draw_below(state, d.batch > 5 ? 4 : 7)]);
    d.dropout = draw_chance(state, 20) ? 0.3 : 0;
    d.has_lengths = draw_chance(state, 30);
    d.mask.causal = draw_chance(state, 40);
    d.mask.window = draw_chance(state, 30) ? draw_below(state, 9) + 1 : 0;
    d.mask.offset = draw_chance(state, 30) ? draw_below(state, 7) - 3 : 0;
    d.reach = draw_chance(state, 40) ? draw_below(state, 4) : -1;
    d.modification = draw_chance(state, 50) ? (int)draw_below(state, own_count + library_count) : -1;
    draw_rules(state, d.batch, d.longest_queries, d.longest_keys, true, &d.mask);
    return d;
}

static rapt_attention *attention_of(const drawn *d)
{
    rapt_scoring *scoring = d->scoring == scaled_dot ? rapt_scaled_dot_product_scoring_new()
                            : d->scoring == gaussian ? rapt_gaussian_scoring_new(1.5, false)
                            : d->scoring == additive ? rapt_additive_scoring_new(d->size, d->size, 11)
                            : d->scoring == bilinear ? rapt_bilinear_scoring_new(d->size, d->size)
                            : d->scoring == cosine   ? rapt_cosine_scoring_new(0.5, false)
                                                     : rapt_relative_scoring_new(d->size, 0, 2);
    rapt_attention *attention = rapt_attention_new(scoring, d->dropout);
    const int64_t heads = d->heads > 0 ? d->heads : 1;
    if (d->modification >= own_count)
        rapt_attention_modify(attention, "modification", library_new(d->modification - own_count, d->batch, heads));
    else if (d->modification >= 0)
        rapt_attention_modify(attention, "modification", own_new(d->modification, d->batch, heads));
    cr_assert(attention && rapt_module_cast(&attention->module, d->dtype), "%s", rapt_error());
    return attention;
}

/* (B, longest, heads, size) with heads or without, as attention takes it: (B, heads, longest, size). */
static rapt_tensor *random_rows(const drawn *d, int64_t heads, int64_t length, int64_t size)
{
    if (d->heads == 0) return rapt_randn(d->dtype, RAPT_SHAPE(d->batch, length, size));
    return rapt_randn(d->dtype, RAPT_SHAPE(d->batch, length, heads, size));
}

static rapt_tensor *with_heads(rapt_tensor *x)
{
    return rapt_rank(x) == 4 ? rapt_permute(x, RAPT_AXES(0, 2, 1, 3)) : x;
}

static rapt_tensor *rows_with_heads(rapt_tensor *x)
{
    return rapt_rank(x) == 3 ? rapt_permute(x, RAPT_AXES(1, 0, 2)) : x;
}

/* The bytes of two tensors, read row by row; where they differ, how much at most. */
static void expect_same(const drawn *d, const char *what, rapt_tensor *got, rapt_tensor *expected, double allowed)
{
    cr_assert(got && expected, "%s: %s", what, rapt_error());
    got = rapt_contiguous(rapt_cast(got, RAPT_FLOAT64));
    expected = rapt_contiguous(rapt_cast(expected, RAPT_FLOAT64));
    cr_assert_eq(rapt_count(got), rapt_count(expected), "%s", what);
    const double *a = rapt_data(got), *b = rapt_data(expected);
    double worst = 0, largest = 1;
    for (int64_t i = 0; i < rapt_count(got); i++) {
        const double error = fabs(a[i] - b[i]);
        if (!(error <= worst)) worst = error;
        largest = fmax(largest, fabs(b[i]));
    }
    cr_expect(worst <= allowed * largest, "%s of scoring %d is %g off: %d sequences, longest %d and %d, %d heads in %d",
              what, (int)d->scoring, worst, (int)d->batch, (int)d->longest_queries, (int)d->longest_keys, (int)d->heads,
              (int)d->groups);
}

typedef struct results {
    rapt_tensor *out, *gradients[input_count], *learned[most_learned]; /* learned: by the modification */
} results;

static const char *const learned_names[] = {"modification.first", "modification.second", "modification.weight",
                                            "modification.temperature", "modification.width"};
enum { name_count = sizeof learned_names / sizeof *learned_names };

/* Runs and differentiates; the gradient of the output is given. */
static results run(rapt_attention *attention, rapt_tensor *const inputs[input_count], bool packed, rapt_mask mask,
                   rapt_tensor *gradient)
{
    results r = {0};
    rapt_tensor *leaves[input_count];
    for (int i = 0; i < input_count; i++) leaves[i] = inputs[i] ? rapt_require_gradient(rapt_clone(inputs[i])) : NULL;
    if (leaves[at_bias]) mask.relative_bias = leaves[at_bias];
    rapt_tensor *(*view)(rapt_tensor *) = packed ? rows_with_heads : with_heads;
    rapt_seed(3);
    r.out = rapt_attention_forward(attention, view(leaves[at_queries]), view(leaves[at_keys]), view(leaves[at_values]),
                                   &mask);
    cr_assert(r.out, "%s", rapt_error());
    r.out = view(r.out);
    rapt_tensor *roots[] = {r.out};
    cr_assert(rapt_backward_from(1, roots, &gradient, 0), "%s", rapt_error());
    for (int i = 0; i < input_count; i++) r.gradients[i] = leaves[i] ? rapt_gradient(leaves[i]) : NULL;
    for (int i = 0, count = 0; i < name_count; i++) {
        rapt_tensor *parameter = rapt_module_find(&attention->module, learned_names[i]);
        rapt_tensor *of_it = parameter ? rapt_gradient(parameter) : NULL;
        if (of_it) r.learned[count++] = rapt_clone(of_it);
        if (of_it) rapt_clear_gradient(parameter);
    }
    return r;
}

/* Behind a sequence is no document of its own. */
static void end_documents(const drawn *d, rapt_tensor *documents)
{
    for (int64_t b = 0; documents && b < d->batch; b++)
        rapt_fill(rapt_slice(rapt_slice(documents, 0, b, b + 1, 1), 1, d->keys[b], d->longest_keys, 1), 1e6);
}

/* (B, longest) → (rows) */
static rapt_tensor *pack_integers(rapt_tensor *padded, rapt_tensor *starts)
{
    return padded ? rapt_squeeze(rapt_pack(rapt_unsqueeze(padded, -1), starts), -1) : NULL;
}

static void compare(drawn *d, bool plain, double allowed)
{
    static const char *const names[] = {"d queries", "d keys", "d values", "d relative bias"};
    RAPT_SCOPE;
    rapt_seed(d->state);
    rapt_attention *attention = attention_of(d);
    attention->plain = plain;
    rapt_tensor *starts = rapt_packing_starts(int64_of(d->batch, d->queries)),
                *key_starts = rapt_packing_starts(int64_of(d->batch, d->keys));
    rapt_tensor *padded[input_count] = {random_rows(d, d->heads, d->longest_queries, d->size),
                                        random_rows(d, d->groups, d->longest_keys, d->size),
                                        random_rows(d, d->groups, d->longest_keys, d->value_size)};
    rapt_tensor *packed[input_count] = {rapt_pack(padded[at_queries], starts), rapt_pack(padded[at_keys], key_starts),
                                        rapt_pack(padded[at_values], key_starts)};
    if (d->reach >= 0)
        padded[at_bias] = packed[at_bias] = d->heads > 0
                                                ? rapt_randn(d->dtype, RAPT_SHAPE(d->heads, 1, 2 * d->reach + 1))
                                                : rapt_randn(d->dtype, RAPT_SHAPE(2 * d->reach + 1));
    rapt_mask packed_mask = d->mask, padded_mask = d->mask;
    int64_t shorter[most_sequences];
    for (int64_t b = 0; b < d->batch; b++)
        shorter[b] = d->has_lengths && d->lengths[b] < d->keys[b] ? d->lengths[b] : d->keys[b];
    padded_mask.valid_lengths = int64_of(d->batch, shorter);
    packed_mask.valid_lengths = d->has_lengths ? int64_of(d->batch, d->lengths) : NULL;
    packed_mask.starts = starts;
    packed_mask.key_starts = d->is_self ? NULL : key_starts;
    end_documents(d, padded_mask.documents);
    packed_mask.documents = pack_integers(d->mask.documents, key_starts);
    packed_mask.query_places = pack_integers(d->mask.query_places, starts);
    rapt_tensor *gradient = rapt_pack(random_rows(d, d->heads, d->longest_queries, d->value_size), starts);
    const results expected =
        run(attention, padded, false, padded_mask, rapt_unpack(gradient, starts, d->longest_queries, 0));
    const results got = run(attention, packed, true, packed_mask, gradient);
    expect_same(d, "output", got.out, rapt_pack(expected.out, starts), allowed);
    /* keys that several heads read add the heads' rows up in blocks, which begin elsewhere in the padded batch */
    const double shared = d->groups < d->heads ? fmax(allowed, 1e-14) : allowed;
    for (int i = 0; i < at_bias; i++)
        expect_same(d, names[i], got.gradients[i],
                    rapt_pack(expected.gradients[i], i == at_queries ? starts : key_starts),
                    i == at_queries ? allowed : shared);
    if (d->reach >= 0)
        expect_same(d, names[at_bias], got.gradients[at_bias], expected.gradients[at_bias], fmax(allowed, 1e-14));
    for (int i = 0; i < most_learned && expected.learned[i]; i++)
        expect_same(d, "d of what a modification learns", got.learned[i], expected.learned[i], fmax(allowed, 1e-12));
    rapt_module_free(&attention->module);
}

/* Products of matrices with other numbers of rows may add in another order. */
static bool has_products(const drawn *d)
{
    return d->scoring == additive || d->scoring == bilinear || d->scoring == relative;
}

static void compare_all(int first, rapt_dtype dtype, bool plain)
{
    for (int i = first; i < all_cases; i += 2) {
        RAPT_SCOPE;
        drawn d = draw_call((uint64_t)i + 1);
        d.dtype = dtype;
        if (plain && d.longest_queries > 70) continue;
        /* of the padded batch, rows behind a sequence may see earlier keys, or have holes: the others' sums then begin
         * elsewhere */
        const rapt_mask *m = &d.mask;
        const bool other_order = plain || has_products(&d) || m->rule.see || m->dilation > 1 || m->query_places;
        compare(&d, plain, dtype == RAPT_FLOAT32 ? 2e-5 : other_order ? 1e-13 : 0);
        cr_assert_null(rapt_error(), "case %d: %s", i, rapt_error());
    }
}

Test(packed, fused_equals_padded_bit_for_bit_in_float64_even_cases)
{
    compare_all(0, RAPT_FLOAT64, false);
}

Test(packed, fused_equals_padded_bit_for_bit_in_float64_odd_cases)
{
    compare_all(1, RAPT_FLOAT64, false);
}

Test(packed, fused_equals_padded_within_rounding_in_float32)
{
    compare_all(0, RAPT_FLOAT32, false);
}

/* What belongs to no sequence, or is seen by no query of its own, may hold NaN. */
Test(packed, keys_that_no_query_sees_are_not_read)
{
    static const int64_t queries[] = {3, 0, 2}, keys[] = {4, 3, 5}, lengths[] = {2, 3, 5};
    for (int scoring = 0; scoring < family_count; scoring++)
        for (int plain = 0; plain < 2; plain++) {
            RAPT_SCOPE;
            rapt_seed(7);
            drawn d = {.modification = -1, .scoring = (family)scoring, .dtype = RAPT_FLOAT64, .size = 5, .batch = 3};
            rapt_attention *attention = attention_of(&d);
            attention->plain = plain;
            rapt_mask mask = {.starts = rapt_packing_starts(int64_of(3, queries)),
                              .key_starts = rapt_packing_starts(int64_of(3, keys)),
                              .valid_lengths = int64_of(3, lengths)};
            rapt_tensor *good = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(12, 5)), *bad = rapt_clone(good);
            rapt_fill(rapt_slice(bad, 0, 2, 7, 1), NAN); /* two keys of sequence 0, all of sequence 1 */
            rapt_tensor *in[2][input_count] = {{rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(5, 5)), good, good}};
            in[1][at_queries] = in[0][at_queries];
            in[1][at_keys] = in[1][at_values] = bad;
            rapt_tensor *gradient = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(5, 5));
            const results expected = run(attention, in[0], true, mask, gradient),
                          got = run(attention, in[1], true, mask, gradient);
            expect_same(&d, "output", got.out, expected.out, 0);
            for (int i = 0; i < at_bias; i++) expect_same(&d, "a gradient", got.gradients[i], expected.gradients[i], 0);
            rapt_tensor *prepared = rapt_attention_prepare(attention, bad, &mask);
            expect_same(&d, "pooled", rapt_attention_pool(attention, in[0][at_queries], prepared, bad, &mask),
                        expected.out, 0);
            rapt_module_free(&attention->module);
        }
}

Test(packed, weights_are_those_of_the_padded_batch_and_change_no_bit)
{
    RAPT_SCOPE;
    static const int64_t lengths[] = {3, 0, 5};
    drawn d = {.modification = -1, .scoring = scaled_dot, .dtype = RAPT_FLOAT64, .dropout = 0.5};
    rapt_attention *attention = attention_of(&d);
    rapt_tensor *x = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 8, 4));
    const rapt_mask mask = {.starts = rapt_packing_starts(int64_of(3, lengths)), .causal = true};
    rapt_seed(5);
    rapt_tensor *without = rapt_attention_forward(attention, x, x, x, &mask);
    attention->keep_weights = true;
    rapt_seed(5);
    rapt_tensor *with = rapt_attention_forward(attention, x, x, x, &mask);
    expect_same(&d, "output", with, without, 0);
    cr_assert_eq(rapt_rank(attention->weights), 4);
    cr_expect_eq(rapt_size(attention->weights, 0), 3);
    cr_expect_eq(rapt_size(attention->weights, 2), 5);
    cr_expect_float_eq(rapt_at(attention->weights, (int64_t[]){0, 1, 0, 0}), 1, 1e-15);
    cr_expect_eq(rapt_at(attention->weights, (int64_t[]){1, 1, 0, 0}), 0);
    rapt_module_free(&attention->module);
}

Test(packed, the_number_of_threads_changes_no_bit)
{
    for (int i = 0; i < 60; i++) {
        RAPT_SCOPE;
        drawn d = draw_call((uint64_t)i + 1);
        d.modification = i % 2 ? soft_cap + own_count : -1;
        d.dtype = RAPT_FLOAT32;
        rapt_seed((uint64_t)i);
        rapt_attention *attention = attention_of(&d);
        const int64_t all = 700;
        rapt_tensor *lengths = int64_of(d.batch, d.queries), *starts = rapt_packing_starts(lengths);
        const int64_t rows = (int64_t)rapt_item(rapt_sum(lengths, RAPT_ALL_AXES, false));
        rapt_tensor *in[input_count] = {rapt_randn(d.dtype, RAPT_SHAPE(rows, d.size)),
                                        rapt_randn(d.dtype, RAPT_SHAPE(rows, d.size)),
                                        rapt_randn(d.dtype, RAPT_SHAPE(rows, d.value_size))};
        rapt_tensor *gradient = rapt_randn(d.dtype, RAPT_SHAPE(rows, d.value_size));
        rapt_mask mask = d.mask;
        mask.starts = starts;
        mask.documents = mask.query_places = NULL; /* they are those of a padded batch */
        results first = {0};
        for (int threads = 1; threads <= 4 && rows < all; threads++) {
            rapt_set_threads(threads);
            const results r = run(attention, in, true, mask, gradient);
            if (threads == 1) first = r;
            expect_same(&d, "output", r.out, first.out, 0);
            for (int k = 0; k < at_bias; k++) expect_same(&d, "a gradient", r.gradients[k], first.gradients[k], 0);
        }
        rapt_module_free(&attention->module);
    }
}

Test(packed, thousands_of_sequences_of_one_row)
{
    RAPT_SCOPE;
    enum { count = 5000 };
    rapt_attention *attention = rapt_dot_product_attention_new(0);
    rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, count, 8));
    rapt_tensor *starts = rapt_arange(RAPT_INT64, 0, count + 1, 1);
    drawn d = {.modification = -1, .scoring = scaled_dot};
    expect_same(&d, "output", rapt_attention_forward(attention, x, x, x, RAPT_MASK(.starts = starts)), x, 1e-6);
    rapt_module_free(&attention->module);
}

static rapt_tensor *forward_causally(rapt_tensor *const *in, void *context)
{
    return rapt_attention_forward(context, in[0], in[1], in[2],
                                  RAPT_MASK(.starts = in[3], .key_starts = in[4], .causal = true));
}

Test(packed, gradients_and_second_derivatives_hold)
{
    static const int64_t queries[] = {2, 0, 3}, keys[] = {3, 1, 2};
    for (int scoring = 0; scoring < family_count; scoring++)
        for (int plain = 0; plain < 2; plain++) {
            RAPT_SCOPE;
            rapt_seed(2);
            drawn d = {.modification = -1, .scoring = (family)scoring, .dtype = RAPT_FLOAT64, .size = 3};
            rapt_attention *attention = attention_of(&d);
            attention->plain = plain;
            rapt_tensor *in[] = {rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(5, 3)), rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(6, 3)),
                                 rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(6, 2)), rapt_packing_starts(int64_of(3, queries)),
                                 rapt_packing_starts(int64_of(3, keys))};
            for (int i = 0; i < 3; i++) rapt_require_gradient(in[i]);
            for (int order = 0; order < 2; order++) {
                const rapt_gradcheck_options options = {.context = attention, .second_order = order == 1};
                const rapt_gradcheck_result result =
                    rapt_module_gradcheck(&attention->module, forward_causally, 5, in, &options);
                cr_expect(result.passed, "scoring %d, order %d: %s", scoring, order + 1, result.message);
            }
            rapt_module_free(&attention->module);
        }
}

Test(packed, plain_equals_padded)
{
    compare_all(0, RAPT_FLOAT64, true);
}
