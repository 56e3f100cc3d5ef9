/* Masks by rule: prefix, windows to one side, blocks, documents, places of queries. What each lets a query see, that
 * attention under it is attention under the matrix that says the same, and that there is no such matrix. */
#include "fused_dot.h"
#include "integers.h"
#include "mask_rules.h"
#include "masked_layer.h"

/* A mask, and a text for each query: "110" is what it sees of three keys. */
typedef struct table {
    rapt_mask mask;
    const char *rows[5];
} table;

#define INTEGERS(...) int64_of(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (const int64_t[]){__VA_ARGS__})

static void expect_table(const table *t, int number)
{
    int64_t queries = 0, keys = (int64_t)strlen(t->rows[0]);
    while (queries < 5 && t->rows[queries]) queries++;
    rapt_tensor *scores = rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(2, queries, keys));
    rapt_tensor *seen = rapt_mask_seen(&t->mask, scores);
    cr_assert_not_null(seen, "table %d: %s", number, rapt_error());
    seen = rapt_contiguous(rapt_expand(seen, RAPT_SHAPE(2, queries, keys)));
    const bool *at = rapt_data(seen);
    for (int64_t row = 0; row < 2 * queries; row++)
        for (int64_t j = 0; j < keys; j++, at++)
            cr_expect_eq(*at, t->rows[row % queries][j] == '1', "table %d: query %d, key %d", number,
                         (int)(row % queries), (int)j);
}

Test(mask_rules, tables)
{
    RAPT_SCOPE;
    const int64_t most = INT64_MAX, least = INT64_MIN;
    rapt_tensor *documents = INTEGERS(-4, -4, 0, 7), *last = INTEGERS(1, most, most);
    const table tables[] = {
        {{.causal = true, .prefix_lengths = INTEGERS(2)}, {"1100", "1100", "1110", "1111"}},
        {{.causal = true, .prefix_lengths = INTEGERS(9, 9)}, {"111", "111"}},
        {{.causal = true, .prefix_lengths = doubles(RAPT_SHAPE(1), (double[]){(double)NAN})}, {"10", "11"}},
        {{.causal = true, .prefix_lengths = INTEGERS(3), .window = 2}, {"1100", "1110", "0110", "0011"}},
        {{.window_left = 1}, {"1111", "0111", "0011"}},
        {{.window_left = 2, .window_right = 1}, {"1000", "1100", "0110", "0011"}},
        {{.window_right = 2}, {"1100", "1110", "1111"}},
        {{.window_left = 1, .window_right = 3, .offset = 1}, {"01110", "00111", "00011", "00001", "00000"}},
        {{.window_left = most, .window_right = most}, {"111", "111"}},
        {{.window_left = most, .window_right = most, .offset = least}, {"000", "000"}},
        {{.window_right = 1, .offset = most}, {"111", "111"}},
        {{.dilation = 2, .offset = most}, {"010", "010"}}, /* no place is farther */
        {{.block = 2}, {"11000", "11000", "00110", "00110", "00001"}},
        {{.block = 2, .blocks_before = 1}, {"11000", "11000", "11110", "11110", "00111"}},
        {{.block = 3, .offset = -1}, {"0000", "1110", "1110", "1110", "0001"}},
        {{.block = 2, .causal = true, .offset = 1}, {"1100", "0010", "0011"}},
        {{.block = most, .blocks_before = most, .offset = least}, {"000", "000"}},
        {{.block = most, .blocks_before = most, .offset = most}, {"111", "111"}},
        {{.documents = documents}, {"1100", "1100", "0010", "0001", "0000"}},
        {{.documents = documents, .causal = true, .offset = 1}, {"1100", "0010", "0001", "0000"}},
        {{.documents = documents, .offset = -1}, {"0000", "1100"}},
        {{.documents = last}, {"100", "011", "011"}},
        {{.documents = last, .query_places = INTEGERS(most, 2, least)}, {"000", "011", "000"}},
        {{.query_places = INTEGERS(3, 0, 1), .causal = true, .offset = 5}, {"1111", "1000", "1100"}},
        {{.query_places = INTEGERS(2, -1), .window = 2}, {"0111", "1000"}},
        {{.query_places = INTEGERS(2, 0)}, {"111", "111"}},
        {{.dilation = 2, .window_left = 4, .window_right = 1}, {"10000", "01000", "10100", "01010", "00101"}},
        {{.dilation = 3, .offset = -1}, {"0010010", "1001001", "0100100"}},
        {{.dilation = most, .query_places = INTEGERS(1, most, least)}, {"010", "100", "000"}},
        {{.dilation = most, .query_places = INTEGERS(least + 2)},
         {"0100000000000000000000000000000000000000000000000000000000000000000000"}},
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) expect_table(&tables[i], (int)i);
    expect_no_error();
}

/* A subject whose mask is drawn, and the same with the matrix that says what it does. */
static subject with_matrix(const subject *s, rapt_mask *by_rule, uint64_t seed)
{
    const int64_t batch = rapt_size(s->queries, 0), queries = rapt_size(s->queries, 2), keys = rapt_size(s->keys, 2);
    uint64_t state = seed;
    *by_rule = (rapt_mask){.causal = draw_chance(&state, 50), .offset = draw_below(&state, 5) - 1};
    draw_rules(&state, batch, queries, keys, false, by_rule);
    const int64_t heads = rapt_size(s->queries, 1), rows = batch * heads * queries;
    rapt_tensor *seen = rapt_zeros(RAPT_BOOL, RAPT_SHAPE(batch, heads, queries, keys));
    bool *at = rapt_data_for_writing(seen);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t j = 0; j < keys; j++)
            *at++ = rules_show(by_rule, row / queries / heads, row / queries % heads, row % queries, j, keys);
    subject matrix = *s;
    matrix.mask = (rapt_mask){.seen = seen};
    return matrix;
}

static void compare_with_matrices(rapt_attention *attention, int64_t heads, int64_t groups)
{
    for (int plain = 0; plain < 2; plain++)
        for (uint64_t seed = 0; seed < 120; seed++) {
            RAPT_SCOPE;
            const int64_t queries = (int64_t)seed % 3 == 0 ? 90 : 7, keys = seed % 2 == 0 ? 70 : 300;
            subject s = new_subject(RAPT_FLOAT64, heads, groups, queries, keys, 6);
            rapt_module_free(&s.attention->module);
            s.attention = attention;
            attention->plain = plain;
            subject matrix = with_matrix(&s, &s.mask, seed * 7 + 1);
            const outcome a = differentiate(&matrix), b = differentiate(&s);
            if (largest_of(a.tensors[0]) == 0)
                expect_same_bits("nothing seen", &a, &b);
            else
                expect_near("a mask by rule", &a, &b, 1e-13);
        }
    rapt_module_free(&attention->module);
    expect_no_error();
}

static void see_ends(const rapt_mask_tile *tile, uint8_t *seen)
{
    for (int64_t i = 0; i < tile->rows; i++)
        for (int64_t j = tile->first_key; j <= tile->last_key; j++) *seen++ = j < 100 || j >= 300;
}

/* What lies between is asked about too, where each query has begun to see and all of the first keys are seen. */
Test(mask_rules, holes_far_from_the_first_key)
{
    RAPT_SCOPE;
    rapt_tensor *seen =
        rapt_mask_seen(RAPT_MASK(.rule = {.see = see_ends}), rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(1, 3, 400)));
    seen = rapt_contiguous(rapt_expand(seen, RAPT_SHAPE(1, 3, 400)));
    const bool *at = rapt_data(seen);
    for (int n = 0; n < 3 * 400; n++) cr_expect_eq(at[n], n % 400 < 100 || n % 400 >= 300, "place %d", n);
    expect_no_error();
}

Test(mask_rules, dot_products_are_those_of_the_matrix)
{
    compare_with_matrices(rapt_dot_product_attention_new(0), 4, 2);
}

Test(mask_rules, additive_scores_are_those_of_the_matrix)
{
    rapt_seed(1);
    compare_with_matrices(in_float64(rapt_additive_attention_new(6, 6, 5, 0)), 2, 2);
}

Test(mask_rules, steps_of_a_cache_are_the_whole)
{
    RAPT_SCOPE;
    const rapt_mask masks[] = {{.causal = true, .prefix_lengths = INTEGERS(1, 0)},
                               {.causal = true, .window_left = 4},
                               {.causal = true, .block = 5, .blocks_before = 1}};
    expect_steps_are_the_whole(masks, sizeof masks / sizeof *masks);
}

/* Queries in another order, told their places, give the same rows in that order, rotary positions or not. */
Test(mask_rules, queries_may_stand_anywhere)
{
    RAPT_SCOPE;
    const rapt_mask masks[] = {{.causal = true}, {.window = 3}, {.block = 4}, {.causal = true, .window_left = 2}};
    rapt_tensor *places = INTEGERS(7, 0, 11, 3, 3), *x = masked_rows();
    for (size_t i = 0; i < 2 * sizeof masks / sizeof *masks; i++) {
        rapt_multi_head_attention *m = masked_layer(i % 2);
        rapt_mask mask = masks[i / 2];
        rapt_tensor *whole = rapt_multi_head_attention_forward(m, x, x, x, &mask, NULL);
        mask.query_places = i % 4 < 2 ? places : rapt_cast(rapt_expand(places, RAPT_SHAPE(2, 5)), RAPT_INT32);
        rapt_tensor *some = rapt_multi_head_attention_forward(m, rapt_index_select(x, 1, places), x, x, &mask, NULL);
        expect_values("rows", some, 2 * 5 * masked_hidden, values_of(rapt_index_select(whole, 1, places)), 1e-12);
        rapt_module_free(&m->module);
    }
    expect_no_error();
}

/* 16,384 queries of as many keys: scores would be 2 GiB. */
Test(mask_rules, nothing_as_large_as_the_scores_is_stored)
{
    RAPT_SCOPE;
    enum { many = 16384 };
    rapt_tensor *documents = rapt_zeros(RAPT_INT64, RAPT_SHAPE(many));
    int64_t *document = rapt_data_for_writing(documents);
    for (int64_t j = 0; j < many; j++) document[j] = j / 300;
    const rapt_mask masks[] = {
        {.causal = true, .prefix_lengths = INTEGERS(400), .window_left = 300},
        {.window_left = 100, .window_right = 200},
        {.block = 128, .blocks_before = 1, .causal = true},
        {.documents = documents},
        {.query_places = rapt_flip(rapt_arange(RAPT_INT64, 0, many, 1), RAPT_AXES(0)), .window = 100},
    };
    rapt_set_threads(2);
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        RAPT_SCOPE;
        subject s = new_subject(RAPT_FLOAT32, 1, 1, many, many, 8);
        s.mask = masks[i];
        const int64_t before = live_bytes();
        rapt_memory_reset_peak();
        differentiate(&s);
        const int64_t extra = rapt_memory_get_statistics().peak_bytes - before, scores = 2LL * many * many * 4;
        cr_expect(extra < scores / 64, "mask %zu: %lld bytes; the scores are %lld", i, (long long)extra,
                  (long long)scores);
        rapt_module_free(&s.attention->module);
    }
    expect_no_error();
}

Test(mask_rules, errors)
{
    RAPT_SCOPE;
    rapt_tensor *scores = rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(2, 3, 4));
    rapt_tensor *three = INTEGERS(0, 1, 2), *four = INTEGERS(0, 1, 1, 2),
                *floats = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(4));
    rapt_tensor *falls = rapt_from(RAPT_INT64, RAPT_SHAPE(2, 4), (int64_t[]){0, 1, 2, 3, 0, 5, 4, 6});
    const struct {
        rapt_mask mask;
        rapt_error_code code;
        const char *part;
    } bad[] = {
        {{.window_left = -1}, RAPT_ERROR_VALUE, "the mask's window_left is -1; 0 or more expected"},
        {{.window_right = -2}, RAPT_ERROR_VALUE, "the mask's window_right is -2; 0 or more expected"},
        {{.block = -3}, RAPT_ERROR_VALUE, "the mask's block is -3; 0 or more expected"},
        {{.block = 1, .blocks_before = -1}, RAPT_ERROR_VALUE, "the mask's blocks_before is -1; 0 or more expected"},
        {{.blocks_before = 1}, RAPT_ERROR_VALUE, "the mask has blocks_before, but no block"},
        {{.prefix_lengths = three}, RAPT_ERROR_VALUE, "the mask has prefix_lengths, but is not causal"},
        {{.prefix_lengths = three, .causal = true},
         RAPT_ERROR_SHAPE,
         "prefix lengths (B) or (1) expected for scores [2, 3, 4], not [3]"},
        {{.documents = floats}, RAPT_ERROR_DTYPE, "the mask's documents are float32; int64 or int32 expected"},
        {{.documents = three},
         RAPT_ERROR_SHAPE,
         "documents (K), (1, K) or (B, K) expected for scores [2, 3, 4], not [3]"},
        {{.documents = falls},
         RAPT_ERROR_VALUE,
         "the mask's documents fall from 5 to 4 at key 2 of item 1; one document after the other expected"},
        {{.query_places = floats}, RAPT_ERROR_DTYPE, "the mask's query_places are float32; int64 or int32 expected"},
        {{.query_places = four},
         RAPT_ERROR_SHAPE,
         "query_places (Q), (1, Q) or (B, Q) expected for scores [2, 3, 4], not [4]"},
        {{.query_places = rapt_scalar(RAPT_INT64, 1)}, RAPT_ERROR_SHAPE, "not []"},
        {{.dilation = -2}, RAPT_ERROR_VALUE, "the mask's dilation is -2; 0 or more expected"},
        {{.rule = {.judge = judge_rule}},
         RAPT_ERROR_NULL,
         "the mask's rule has a function for tiles, but see for places is NULL"},
        {{.rule = {.captured = {three}}}, RAPT_ERROR_NULL, "the mask's rule captures a tensor, but has no function"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_expect_null(rapt_mask_seen(&bad[i].mask, scores), "case %zu", i);
        expect_error(bad[i].code, bad[i].part);
    }
}

/* What a mask says of each item it then says of none. */
Test(mask_rules, an_empty_batch)
{
    RAPT_SCOPE;
    rapt_attention *attention = rapt_dot_product_attention_new(0);
    rapt_tensor *x = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(0, 5, 4)), *by_key = rapt_zeros(RAPT_INT64, RAPT_SHAPE(0, 5)),
                *by_item = rapt_zeros(RAPT_INT64, RAPT_SHAPE(0));
    const rapt_mask masks[] = {
        {.documents = by_key},
        {.causal = true, .prefix_lengths = by_item},
        {.causal = true, .query_places = by_key},
        {.causal = true, .valid_lengths = by_item, .first_keys = by_item},
        {.dilation = 2, .query_places = by_key},
        {.relative_bias = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(3)), .query_places = by_key},
    };
    for (int i = 0; i < 12; i++) {
        attention->plain = i & 1;
        rapt_tensor *y = rapt_attention_forward(attention, x, x, x, &masks[i / 2]);
        cr_assert_not_null(y, "mask %d: %s", i / 2, rapt_error());
        expect_shape(y, RAPT_SHAPE(0, 5, 4));
        expect_no_error();
    }
    rapt_module_free(&attention->module);
}
