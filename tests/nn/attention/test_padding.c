/* Padding: a call resolves its mask once, and one place says who keeps out what no query sees. The linker puts the two
 * functions below in the place of the library's, which they count and call. */
#include <criterion/criterion.h>

#include <rapt.h>

#include "nn/padding.h"

bool __real_rapt_resolve_mask(const char *op, const rapt_mask *mask, rapt_dtype dtype, int64_t batch, int64_t heads,
                              int64_t queries, int64_t keys, rapt_resolved_mask *resolved);
bool __wrap_rapt_resolve_mask(const char *op, const rapt_mask *mask, rapt_dtype dtype, int64_t batch, int64_t heads,
                              int64_t queries, int64_t keys, rapt_resolved_mask *resolved);
bool __real_rapt_resolve_mask_for(const char *op, const rapt_mask *mask, const rapt_tensor *scores,
                                  rapt_resolved_mask *resolved);
bool __wrap_rapt_resolve_mask_for(const char *op, const rapt_mask *mask, const rapt_tensor *scores,
                                  rapt_resolved_mask *resolved);

static int resolutions;

bool __wrap_rapt_resolve_mask(const char *op, const rapt_mask *mask, rapt_dtype dtype, int64_t batch, int64_t heads,
                              int64_t queries, int64_t keys, rapt_resolved_mask *resolved)
{
    resolutions++;
    return __real_rapt_resolve_mask(op, mask, dtype, batch, heads, queries, keys, resolved);
}

bool __wrap_rapt_resolve_mask_for(const char *op, const rapt_mask *mask, const rapt_tensor *scores,
                                  rapt_resolved_mask *resolved)
{
    resolutions++;
    return __real_rapt_resolve_mask_for(op, mask, scores, resolved);
}

/* How often forward and backward of multi-head attention resolve a mask of lengths. */
static int count_resolutions(rapt_attention *pooling, bool asks_itself)
{
    RAPT_SCOPE;
    rapt_multi_head_attention *attention =
        rapt_multi_head_attention_new(&(rapt_multi_head_attention_config){.hidden = 8, .heads = 2, .pooling = pooling});
    rapt_tensor *queries = rapt_require_gradient(rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 8)));
    rapt_tensor *keys = rapt_require_gradient(rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, 5, 8)));
    rapt_tensor *lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){2, 3});
    if (asks_itself) keys = queries;
    resolutions = 0;
    rapt_tensor *y = rapt_multi_head_attention_forward(attention, queries, keys, keys,
                                                       RAPT_MASK(.causal = true, .valid_lengths = lengths), NULL);
    cr_assert(rapt_backward(rapt_sum(y, RAPT_ALL_AXES, false)), "%s", rapt_error());
    const int count = resolutions;
    rapt_module_free(&attention->module);
    return count;
}

Test(padding, multi_head_attention_resolves_its_mask_once)
{
    rapt_normalizer *const normalizers[] = {rapt_masked_softmax, rapt_masked_sum,     rapt_masked_none,
                                            rapt_masked_hard,    rapt_masked_uniform, rapt_masked_sparsemax,
                                            rapt_masked_entmax15};
    for (int asks_itself = 0; asks_itself < 2; asks_itself++) {
        cr_expect_eq(count_resolutions(rapt_dot_product_attention_new(0.1), asks_itself), 1);
        cr_expect_eq(count_resolutions(rapt_additive_attention_new(4, 4, 6, 0.1), asks_itself), 1);
        cr_expect_eq(count_resolutions(rapt_attention_new(rapt_gaussian_scoring_new(1, true), 0), asks_itself), 1);
        cr_expect_eq(count_resolutions(rapt_attention_new(rapt_relative_scoring_new(4, 0, 2), 0), asks_itself), 1);
        for (int i = 0; i < 5; i++) {
            rapt_attention *plain = rapt_dot_product_attention_new(0);
            plain->plain = true;
            plain->normalizer = normalizers[i];
            cr_expect_eq(count_resolutions(plain, asks_itself), 1, "normaliser %d", i);
        }
    }
}

/* What the library cannot know of it, a normaliser of one's own finds out of the mask. */
static rapt_tensor *own_normalizer(rapt_tensor *scores, const rapt_mask *mask)
{
    cr_expect(mask->causal && mask->valid_lengths);
    return rapt_masked_softmax(scores, mask);
}

Test(padding, a_normaliser_of_ones_own_gets_the_mask)
{
    rapt_attention *pooling = rapt_dot_product_attention_new(0);
    pooling->normalizer = own_normalizer;
    cr_expect_eq(count_resolutions(pooling, false), 2);
}

static rapt_padding padding_of(rapt_pooling *pooling, const rapt_mask *mask, bool is_hidden, bool prepares)
{
    pooling->mask = *mask;
    pooling->resolved.padding_is_zero = is_hidden;
    return rapt_padding_of(pooling, prepares);
}

Test(padding, one_function_says_who_keeps_it_out)
{
    rapt_attention *dot = rapt_dot_product_attention_new(0), *additive = rapt_additive_attention_new(4, 4, 6, 0);
    rapt_pooling pooling = {.attention = dot};
    const rapt_mask *causal = RAPT_MASK(.causal = true), *million = RAPT_MASK(.fills_million = true);
    cr_expect_eq(padding_of(&pooling, causal, false, true), RAPT_PADDING_NOT_READ);
    cr_expect_eq(padding_of(&pooling, causal, true, true), RAPT_PADDING_IS_ZERO);
    cr_expect_eq(padding_of(&pooling, million, false, true), RAPT_PADDING_IS_READ);
    dot->plain = true;
    cr_expect_eq(padding_of(&pooling, causal, false, true), RAPT_PADDING_TO_HIDE);
    cr_expect_eq(padding_of(&pooling, causal, false, false), RAPT_PADDING_TO_HIDE);
    pooling.attention = additive; /* whose fused way prepares keys */
    cr_expect_eq(padding_of(&pooling, causal, false, true), RAPT_PADDING_TO_HIDE);
    cr_expect_eq(padding_of(&pooling, causal, false, false), RAPT_PADDING_NOT_READ);
    rapt_module_free(&dot->module);
    rapt_module_free(&additive->module);
}

Test(padding, inputs_that_are_queries_too_stay)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 3, 2)),
                *other = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 3, 2));
    rapt_tensor *lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(1), (int64_t[]){2}), *queries = x, *keys = x,
                *values = other;
    rapt_resolved_mask mask;
    cr_assert(rapt_resolve_mask("test", RAPT_MASK(.valid_lengths = lengths), RAPT_FLOAT32, 1, 1, 3, 3, &mask));
    cr_assert(rapt_hide_padding_of_inputs(&mask, &queries, &keys, &values));
    cr_expect_eq(queries, x);
    cr_expect_eq(keys, x);
    cr_expect_float_eq(rapt_at(values, (int64_t[]){0, 1, 0}), 1, 0);
    cr_expect_float_eq(rapt_at(values, (int64_t[]){0, 2, 0}), 0, 0);
    cr_expect_not(mask.padding_is_zero);
    cr_expect(mask.blind_is_zero, "there are none");
    keys = values = other;
    cr_assert(rapt_hide_padding_of_inputs(&mask, &queries, &keys, &values));
    cr_expect_eq(queries, x);
    cr_expect_eq(keys, values);
    cr_expect_float_eq(rapt_at(keys, (int64_t[]){0, 2, 1}), 0, 0);
    cr_expect(mask.padding_is_zero);
}

/* Queries 0 and 1 see nothing, key 0 is seen by query 2 and key 2 by none: of one tensor only row 1 is not read. */
Test(padding, inputs_that_are_queries_too_are_hidden_where_they_neither_see_nor_are_seen)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 3, 1)), *queries = x, *keys = x, *values = x;
    rapt_resolved_mask mask;
    cr_assert(rapt_resolve_mask("test", RAPT_MASK(.causal = true, .offset = -2), RAPT_FLOAT32, 1, 1, 3, 3, &mask));
    cr_assert(rapt_hide_padding_of_inputs(&mask, &queries, &keys, &values));
    cr_expect_eq(queries, keys);
    cr_expect_eq(queries, values);
    for (int64_t row = 0; row < 3; row++)
        cr_expect_float_eq(rapt_at(queries, (int64_t[]){0, row, 0}), row != 1, 0, "row %d", (int)row);
    cr_expect_not(mask.padding_is_zero);
    cr_expect_not(mask.blind_is_zero, "query 0 is read as a key");
    keys = values = rapt_clone(x);
    queries = x;
    cr_assert(rapt_hide_padding_of_inputs(&mask, &queries, &keys, &values));
    for (int64_t row = 0; row < 3; row++) {
        cr_expect_float_eq(rapt_at(queries, (int64_t[]){0, row, 0}), row == 2, 0, "query %d", (int)row);
        cr_expect_float_eq(rapt_at(keys, (int64_t[]){0, row, 0}), row == 0, 0, "key %d", (int)row);
    }
    cr_expect(mask.padding_is_zero && mask.blind_is_zero);
}

/* A query that is blind for one head alone, or seen as a key, stays as it is. */
Test(padding, inputs_that_are_read_otherwise_are_hidden_later)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 2, 1)), *other = rapt_clone(x),
                *seen = rapt_ones(RAPT_BOOL, RAPT_SHAPE(1, 2, 2, 2)), *queries = x, *keys = other, *values = other;
    rapt_tensor *lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(1, 2), (int64_t[]){0, 2});
    rapt_resolved_mask mask;
    cr_assert(rapt_fill(rapt_select(rapt_select(seen, 1, 0), 1, 0), 0)); /* query 0 of head 0 */
    cr_assert(rapt_resolve_mask("test", RAPT_MASK(.seen = seen), RAPT_FLOAT32, 1, 2, 2, 2, &mask));
    cr_assert(rapt_hide_padding_of_inputs(&mask, &queries, &keys, &values));
    cr_expect_eq(queries, x);
    cr_expect_not(mask.blind_is_zero);
    keys = values = x;
    cr_assert(rapt_resolve_mask("test", RAPT_MASK(.valid_lengths = lengths), RAPT_FLOAT32, 1, 2, 2, 2, &mask));
    cr_assert(rapt_hide_padding_of_inputs(&mask, &queries, &keys, &values));
    cr_expect_eq(queries, x);
    cr_expect_not(mask.blind_is_zero);
}

/* --- queries that see nothing --- */

enum { batch = 2, heads = 3, queries = 150, keys = 200, layouts = 7 };

/* bool, broadcasts to (batch, heads, queries, keys): few places are seen, and the last layout's many; in memory the
 * keys lie side by side, or the queries, or neither of them. */
static rapt_tensor *draw_seen(int layout)
{
    const int64_t shapes[layouts][4] = {{batch, heads, queries, keys},     {batch, heads, keys, queries},
                                        {batch, heads, keys, queries * 2}, {queries, keys, batch, heads},
                                        {batch, 1, keys, queries},         {1, heads, queries, 1},
                                        {batch, heads, keys, queries}};
    rapt_tensor *number = rapt_rand(RAPT_FLOAT32, 4, shapes[layout]),
                *seen = rapt_less(number, rapt_scalar(RAPT_FLOAT32, layout < 5 ? 0.005 : 0.5));
    if (layout == 2) seen = rapt_slice(seen, 3, 0, 2 * queries, 2);
    if (layout == 3) return rapt_permute(seen, RAPT_AXES(2, 3, 0, 1));
    return layout == 0 || layout == 5 ? seen : rapt_transpose(seen, 2, 3);
}

/* Of queries of each head or of any: what the whole matrix says. */
static void expect_found(const rapt_mask *mask, const char *name)
{
    rapt_resolved_mask resolved;
    rapt_tensor *scores = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(batch, heads, queries, keys)),
                *sees = rapt_any(rapt_mask_seen(mask, scores), RAPT_AXES(3), true), *found;
    cr_assert(sees && rapt_resolve_mask("test", mask, RAPT_FLOAT32, batch, heads, queries, keys, &resolved), "%s",
              rapt_error());
    for (int by_head = 1; by_head >= 0; by_head--) {
        if (!by_head) sees = rapt_any(sees, RAPT_AXES(1), true);
        cr_assert(rapt_find_seeing_queries(&resolved, by_head, &found), "%s", rapt_error());
        rapt_tensor *all = rapt_all(sees, RAPT_ALL_AXES, false);
        cr_expect_eq(found == NULL, rapt_item(all) != 0, "%s: %s", name, by_head ? "each head" : "any head");
        if (!found) continue;
        rapt_tensor *same = rapt_all(rapt_equal(found, sees), RAPT_ALL_AXES, false);
        cr_expect(rapt_item(same) != 0, "%s: %s", name, by_head ? "each head" : "any head");
    }
}

Test(padding, queries_that_see_nothing_are_found_however_the_mask_lies_in_memory)
{
    rapt_seed(6);
    for (int layout = 0; layout < layouts; layout++) {
        RAPT_SCOPE;
        rapt_tensor *lengths = rapt_randint(0, keys + 1, RAPT_SHAPE(batch, queries));
        rapt_mask masks[] = {{.causal = true, .offset = 3}, {.valid_lengths = lengths}, {.window_left = 70}, {0}};
        for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
            char name[40];
            snprintf(name, sizeof name, "layout %d, mask %zu", layout, i);
            masks[i].seen = draw_seen(layout);
            expect_found(&masks[i], name);
        }
    }
}
