/* Masks: what each field lets a query see, alone and with the others; biases by place and by relative position; bad
 * masks. */
#include <stdlib.h>

#include "modules.h"

#include "nn/padding.h"

/* The mask's answer for scores of that shape, expanded to it. */
static rapt_tensor *seen_by(const rapt_mask *mask, int rank, const int64_t *shape)
{
    rapt_tensor *seen = rapt_mask_seen(mask, rapt_zeros(RAPT_FLOAT64, rank, shape));
    cr_assert_not_null(seen, "%s", rapt_error());
    cr_assert_eq(rapt_get_dtype(seen), RAPT_BOOL);
    return rapt_contiguous(rapt_expand(seen, rank, shape));
}

/* One text for each query, "110": what it sees of the keys; all items alike. */
static void expect_table(const char *what, const rapt_mask *mask, int64_t batch, int64_t queries,
                         const char *const *rows)
{
    RAPT_SCOPE;
    int64_t keys = (int64_t)strlen(rows[0]);
    rapt_tensor *seen = seen_by(mask, RAPT_SHAPE(batch, queries, keys));
    const bool *at = rapt_data(seen);
    for (int64_t row = 0; row < batch * queries; row++)
        for (int64_t j = 0; j < keys; j++, at++)
            cr_expect_eq(*at, rows[row % queries][j] == '1', "%s: query %lld, key %lld", what,
                         (long long)(row % queries), (long long)j);
    expect_no_error();
}
#define ROWS(...) ((const char *const[]){__VA_ARGS__})

Test(mask, nothing_set_sees_everything)
{
    expect_table("NULL", NULL, 2, 2, ROWS("111", "111"));
    expect_table("empty", RAPT_MASK(.offset = 3), 2, 2, ROWS("111", "111"));
}

Test(mask, causal)
{
    expect_table("square", RAPT_MASK(.causal = true), 2, 4, ROWS("1000", "1100", "1110", "1111"));
    expect_table("wide", RAPT_MASK(.causal = true), 1, 2, ROWS("1000", "1100"));
    expect_table("tall", RAPT_MASK(.causal = true), 1, 4, ROWS("10", "11", "11", "11"));
    expect_table("two cached keys", RAPT_MASK(.causal = true, .offset = 2), 1, 3, ROWS("11100", "11110", "11111"));
    expect_table("one query more", RAPT_MASK(.causal = true, .offset = 4), 1, 1, ROWS("11111"));
    expect_table("before all keys", RAPT_MASK(.causal = true, .offset = -2), 1, 4, ROWS("000", "000", "100", "110"));
}

Test(mask, window)
{
    expect_table("1", RAPT_MASK(.window = 1), 2, 3, ROWS("100", "010", "001"));
    expect_table("2", RAPT_MASK(.window = 2), 1, 4, ROWS("1100", "1110", "0111", "0011"));
    expect_table("2, causal", RAPT_MASK(.window = 2, .causal = true), 1, 4, ROWS("1000", "1100", "0110", "0011"));
    expect_table("2, offset 3", RAPT_MASK(.window = 2, .offset = 3), 1, 2, ROWS("00111", "00011"));
    expect_table("3, causal, offset 2", RAPT_MASK(.window = 3, .causal = true, .offset = 2), 1, 3,
                 ROWS("11100", "01110", "00111"));
    expect_table("behind all keys", RAPT_MASK(.window = 2, .offset = 5), 1, 2, ROWS("000", "000"));
}

Test(mask, numbers_at_the_ends_of_int64)
{
    const int64_t most = INT64_MAX, least = INT64_MIN;
    expect_table("wide window", RAPT_MASK(.window = most), 1, 2, ROWS("111", "111"));
    expect_table("far ahead", RAPT_MASK(.causal = true, .offset = most), 1, 2, ROWS("111", "111"));
    expect_table("far behind", RAPT_MASK(.causal = true, .offset = least), 1, 2, ROWS("000", "000"));
    expect_table("window far ahead", RAPT_MASK(.window = 5, .offset = most), 1, 2, ROWS("000", "000"));
    expect_table("window far behind", RAPT_MASK(.window = 5, .offset = least), 1, 2, ROWS("000", "000"));
    RAPT_SCOPE;
    rapt_tensor *table = doubles(RAPT_SHAPE(3), (double[]){1, 2, 3});
    expect_values("relative positions", rapt_by_relative_position(table, 2, 2, most, false), 4, (double[]){1, 1, 1, 1},
                  0);
    expect_values("relative positions", rapt_by_relative_position(table, 2, 2, least, false), 4, (double[]){3, 3, 3, 3},
                  0);
}

Test(mask, lengths)
{
    RAPT_SCOPE;
    rapt_tensor *lengths = doubles(RAPT_SHAPE(1, 4), (double[]){0, 1.5, (double)NAN, -1}),
                *more = doubles(RAPT_SHAPE(1, 4), (double[]){3, 2.0000001, (double)INFINITY, 1e300});
    expect_table("few", RAPT_MASK(.valid_lengths = lengths), 1, 4, ROWS("000", "110", "000", "000"));
    expect_table("many", RAPT_MASK(.valid_lengths = more), 1, 4, ROWS("111", "111", "111", "111"));
    const double first[] = {-INFINITY, 0.5, NAN, INFINITY};
    const char *const seen[] = {"111", "011", "000", "000"};
    for (int i = 0; i < 4; i++)
        expect_table("first keys", RAPT_MASK(.first_keys = doubles(RAPT_SHAPE(1), &first[i])), 1, 1, &seen[i]);
}

/* The definition, with every field, one place at a time. */
typedef struct example {
    rapt_mask mask;
    int64_t shape[4]; /* of the scores */
} example;

static bool is_seen(const example *e, const int64_t at[4])
{
    const rapt_mask *m = &e->mask;
    int64_t item = at[0], i = at[2], j = at[3], place = i + m->offset, last_axes[] = {i, j};
    int64_t position = j - place < -2 ? -2 : j - place > 2 ? 2 : j - place;
    bool seen = true;
    if (m->valid_lengths) seen = seen && (double)j < rapt_at(m->valid_lengths, (int64_t[]){item, i});
    if (m->causal) seen = seen && j <= place;
    if (m->window) seen = seen && llabs(place - j) < m->window;
    if (m->seen) seen = seen && rapt_at(m->seen, (int64_t[]){item, 0, i, j}) != 0;
    if (m->bias) seen = seen && rapt_at(m->bias, last_axes) > (double)-INFINITY;
    if (m->relative_bias)
        seen = seen && rapt_at(m->relative_bias, (int64_t[]){at[1], 0, 2 + position}) > (double)-INFINITY;
    return seen;
}

/* Random numbers, of which the smaller ones become −∞. */
static rapt_tensor *some_infinite(int rank, const int64_t *shape)
{
    rapt_tensor *numbers = rapt_randn(RAPT_FLOAT64, rank, shape);
    return rapt_where(rapt_less(numbers, rapt_scalar(RAPT_FLOAT64, -1)), rapt_scalar(RAPT_FLOAT64, -(double)INFINITY),
                      numbers);
}

/* A mask that sets the fields of the bits of `fields`. */
static example make_example(int fields)
{
    example e = {.shape = {2, 3, 4, 5}, .mask = {.offset = 1}};
    if (fields & 1) e.mask.valid_lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(2, 4), (int64_t[]){5, 0, 3, 4, 2, 5, 1, 4});
    e.mask.causal = fields & 2;
    if (fields & 4) e.mask.window = 3;
    if (fields & 8)
        e.mask.seen = rapt_less(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 1, 4, 5)), rapt_scalar(RAPT_FLOAT64, 0.6));
    if (fields & 16) e.mask.bias = some_infinite(RAPT_SHAPE(4, 5));
    if (fields & 32) e.mask.relative_bias = some_infinite(RAPT_SHAPE(3, 1, 5));
    return e;
}

/* For each item, key and group: does any query of any of its heads see it? */
static void expect_any(const example *e, const bool *seen, int64_t groups)
{
    rapt_resolved_mask resolved;
    rapt_tensor *any;
    cr_assert(rapt_resolve_mask("test", &e->mask, RAPT_FLOAT64, 2, 3, 4, 5, &resolved), "%s", rapt_error());
    cr_assert(rapt_find_seen_keys(&resolved, groups, &any), "%s", rapt_error());
    if (any) expect_shape(any, RAPT_SHAPE(2, groups, 5, 1));
    for (int64_t b = 0; b < 2; b++)
        for (int64_t g = 0; g < groups; g++)
            for (int64_t j = 0; j < 5; j++) {
                bool expected = false;
                for (int64_t h = g * 3 / groups; h < (g + 1) * 3 / groups; h++)
                    for (int64_t i = 0; i < 4; i++) expected = expected || seen[((b * 3 + h) * 4 + i) * 5 + j];
                bool got = !any || rapt_at(any, (int64_t[]){b, g, j, 0}) != 0;
                cr_expect_eq(got, expected, "item %d, group %d of %d, key %d", (int)b, (int)g, (int)groups, (int)j);
            }
}

Test(mask, all_fields_together)
{
    rapt_seed(5);
    for (int fields = 0; fields < 64; fields++) {
        RAPT_SCOPE;
        const example e = make_example(fields);
        const bool *seen = rapt_data(seen_by(&e.mask, 4, e.shape));
        int64_t at[4];
        for (int64_t place = 0; place < 2 * 3 * 4 * 5; place++) {
            int64_t rest = place;
            for (int axis = 3; axis >= 0; rest /= e.shape[axis--]) at[axis] = rest % e.shape[axis];
            cr_expect_eq(seen[place], is_seen(&e, at), "fields %d, place %lld", fields, (long long)place);
        }
        expect_any(&e, seen, 1);
        expect_any(&e, seen, 3);
    }
    expect_no_error();
}

/* Scores of the book's pictures: all of n², and the triangle of n(n + 1)/2. */
Test(mask, numbers_of_places)
{
    RAPT_SCOPE;
    for (int64_t n = 1; n < 40; n += 7) {
        rapt_tensor *all = seen_by(NULL, RAPT_SHAPE(1, n, n)),
                    *triangle = seen_by(RAPT_MASK(.causal = true), RAPT_SHAPE(1, n, n));
        cr_expect_eq((int64_t)rapt_item(rapt_sum(all, RAPT_ALL_AXES, false)), n * n);
        cr_expect_eq((int64_t)rapt_item(rapt_sum(triangle, RAPT_ALL_AXES, false)), n * (n + 1) / 2);
    }
    expect_no_error();
}

/* A mask of rank 3 is one for each item where scores have no heads, and one for each head where they have. */
Test(mask, axes_of_heads)
{
    RAPT_SCOPE;
    rapt_tensor *two = rapt_reshape(rapt_from(RAPT_BOOL, RAPT_SHAPE(2), (bool[]){true, false}), RAPT_SHAPE(2, 1, 1));
    rapt_tensor *items = seen_by(RAPT_MASK(.seen = two), RAPT_SHAPE(2, 1, 2)),
                *heads = seen_by(RAPT_MASK(.seen = two), RAPT_SHAPE(2, 2, 1, 1));
    expect_values("items", items, 4, (double[]){1, 1, 0, 0}, 0);
    expect_values("heads", heads, 4, (double[]){1, 0, 1, 0}, 0);
    expect_no_error();
}

Test(mask, biases_are_added)
{
    RAPT_SCOPE;
    rapt_tensor *scores = rapt_reshape(rapt_arange(RAPT_FLOAT64, 0, 6, 1), RAPT_SHAPE(1, 2, 3)),
                *bias = doubles(RAPT_SHAPE(3), (double[]){10, 20, 30}),
                *by_position = doubles(RAPT_SHAPE(3), (double[]){100, 200, 300});
    cr_expect_eq(rapt_mask_add_biases(NULL, scores), scores);
    cr_expect_eq(rapt_mask_add_biases(RAPT_MASK(.causal = true), scores), scores);
    expect_values("by place", rapt_mask_add_biases(RAPT_MASK(.bias = bias), scores), 6,
                  (double[]){10, 21, 32, 13, 24, 35}, 0);
    rapt_mask mask = {.bias = bias, .relative_bias = by_position, .offset = 1};
    /* j − i − 1 is −1, 0, 1 for query 0 and −2, −1, 0 for query 1 */
    expect_values("by place and relative position", rapt_mask_add_biases(&mask, scores), 6,
                  (double[]){110, 221, 332, 113, 124, 235}, 0);
    expect_no_error();
}

Test(mask, by_relative_position)
{
    RAPT_SCOPE;
    rapt_tensor *table = doubles(RAPT_SHAPE(2, 3), (double[]){1, 2, 3, 4, 5, 6});
    expect_values("a table for each of 2", rapt_by_relative_position(table, 2, 4, 0, false), 16,
                  (double[]){2, 3, 3, 3, 1, 2, 3, 3, 5, 6, 6, 6, 4, 5, 6, 6}, 0);
    expect_values("a row for each query", rapt_by_relative_position(table, 2, 4, 1, true), 8,
                  (double[]){1, 2, 3, 3, 4, 4, 5, 6}, 0);
    expect_values("reach 0", rapt_by_relative_position(doubles(RAPT_SHAPE(1), (double[]){7}), 1, 3, 9, false), 3,
                  (double[]){7, 7, 7}, 0);
    expect_shape(rapt_by_relative_position(table, 0, 4, 0, false), RAPT_SHAPE(2, 0, 4));
    expect_shape(rapt_by_relative_position(table, 2, 0, 0, true), RAPT_SHAPE(2, 0));
    expect_no_error();
}

static rapt_tensor *call_table(rapt_tensor *const *inputs, void *context)
{
    rapt_tensor *table = rapt_by_relative_position(inputs[0], 3, 4, 1, *(const bool *)context);
    return rapt_mul(table, table);
}

Test(mask, gradient_by_relative_position)
{
    for (int variant = 0; variant < 4; variant++) {
        RAPT_SCOPE;
        rapt_seed(6);
        bool by_query = variant & 1;
        rapt_tensor *table = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 3, 5)));
        rapt_gradcheck_options options = {.context = &by_query, .second_order = variant & 2};
        rapt_gradcheck_result result = rapt_gradcheck("by_relative_position", call_table, 1, &table, &options);
        cr_expect(result.passed, "%s", result.message);
    }
    expect_no_error();
}

/* What no query sees becomes 0 where it stands, and has no gradient. */
Test(mask, hidden_keys_are_replaced)
{
    RAPT_SCOPE;
    rapt_resolved_mask resolved;
    rapt_tensor *any, *lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){1, 2});
    cr_assert(rapt_resolve_mask("test", RAPT_MASK(.valid_lengths = lengths), RAPT_FLOAT64, 2, 1, 3, 2, &resolved));
    cr_assert(rapt_find_seen_keys(&resolved, 1, &any));
    rapt_tensor *keys = rapt_require_gradient(doubles(RAPT_SHAPE(2, 2, 1), (double[]){1, (double)NAN, 3, 4}));
    rapt_tensor *hidden = rapt_hide_rows(keys, any);
    expect_values("keys", hidden, 4, (double[]){1, 0, 3, 4}, 0);
    cr_expect(rapt_backward(rapt_sum(rapt_mul(hidden, hidden), RAPT_ALL_AXES, false)));
    expect_values("gradient", rapt_gradient(keys), 4, (double[]){2, 0, 6, 8}, 0);
    cr_assert(rapt_resolve_mask("test", RAPT_MASK(.causal = true), RAPT_FLOAT64, 2, 1, 2, 2, &resolved));
    cr_expect(rapt_find_seen_keys(&resolved, 1, &any));
    cr_expect_null(any, "the last query sees all");
    cr_expect_eq(rapt_hide_rows(keys, any), keys);
    const rapt_mask odd_and_even = {.valid_lengths = lengths_of(2, 4), .dilation = 2, .offset = 1};
    cr_assert(rapt_resolve_mask("test", &odd_and_even, RAPT_FLOAT64, 2, 1, 3, 4, &resolved));
    cr_assert(rapt_find_seen_keys(&resolved, 1, &any));
    expect_values("by a rule and lengths", any, 8, (double[]){1, 1, 0, 0, 1, 1, 1, 1}, 0);
    expect_no_error();
}

/* Nothing is made for a mask under which each query sees something: what may be hidden is NULL then. */
Test(mask, queries_that_see_nothing_are_found)
{
    RAPT_SCOPE;
    rapt_resolved_mask resolved;
    rapt_tensor *seeing, *lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(2, 3), (int64_t[]){1, 0, 2, 0, 0, 1}),
                         *bytes = rapt_ones(RAPT_BOOL, RAPT_SHAPE(2, 2, 3, 2));
    cr_assert(rapt_fill(rapt_slice(rapt_select(bytes, 1, 1), -1, 0, 1, 1), 0)); /* key 0 of head 1 */
    const rapt_mask mask = {.valid_lengths = lengths}, by_head = {.valid_lengths = lengths, .seen = bytes};
    cr_assert(rapt_resolve_mask("test", &mask, RAPT_FLOAT64, 2, 2, 3, 2, &resolved));
    cr_assert(rapt_find_seeing_queries(&resolved, true, &seeing));
    expect_shape(seeing, RAPT_SHAPE(2, 1, 3, 1));
    expect_values("of all heads", seeing, 6, (double[]){1, 0, 1, 0, 0, 1}, 0);
    cr_assert(rapt_resolve_mask("test", &by_head, RAPT_FLOAT64, 2, 2, 3, 2, &resolved));
    cr_assert(rapt_find_seeing_queries(&resolved, true, &seeing));
    expect_shape(seeing, RAPT_SHAPE(2, 2, 3, 1));
    expect_values("by head", seeing, 12, (double[]){1, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0}, 0);
    cr_assert(rapt_find_seeing_queries(&resolved, false, &seeing));
    expect_values("of any head", seeing, 6, (double[]){1, 0, 1, 0, 0, 1}, 0);
    const rapt_mask seeing_all[] = {{.causal = true}, {.valid_lengths = lengths_of(1, 2)}, {.seen = bytes}, {0}};
    for (size_t i = 0; i < sizeof seeing_all / sizeof *seeing_all; i++) {
        cr_assert(rapt_resolve_mask("test", &seeing_all[i], RAPT_FLOAT64, 2, 2, 3, 2, &resolved));
        cr_assert(rapt_find_seeing_queries(&resolved, true, &seeing));
        cr_expect_null(seeing, "mask %zu", i);
    }
    expect_no_error();
}

Test(mask, errors)
{
    RAPT_SCOPE;
    rapt_tensor *scores = rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(2, 3, 4)),
                *heads = rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(2, 5, 3, 4));
    rapt_tensor *three = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(3)), *single = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(4)),
                *bytes = rapt_ones(RAPT_BOOL, RAPT_SHAPE(3, 3)), *even = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(4));
    const struct {
        rapt_mask mask;
        rapt_error_code code;
        const char *part;
    } bad[] = {
        {{.valid_lengths = three},
         RAPT_ERROR_SHAPE,
         "valid lengths (B) or (B, Q) expected for scores [2, 3, 4], not [3]"},
        {{.window = -1}, RAPT_ERROR_VALUE, "the mask's window is -1; 0 or more expected"},
        {{.seen = even}, RAPT_ERROR_DTYPE, "the mask's seen is float64; bool expected"},
        {{.seen = bytes}, RAPT_ERROR_SHAPE, "the mask's seen [3, 3] does not broadcast to the scores [2, 3, 4]"},
        {{.seen = rapt_ones(RAPT_BOOL, RAPT_SHAPE(1, 1, 1, 1, 4))}, RAPT_ERROR_SHAPE, "[1, 1, 1, 1, 4]"},
        {{.bias = single}, RAPT_ERROR_DTYPE, "the mask's bias is float32; float64 expected"},
        {{.bias = three}, RAPT_ERROR_SHAPE, "the mask's bias [3] does not broadcast"},
        {{.relative_bias = single}, RAPT_ERROR_DTYPE, "the mask's relative_bias is float32"},
        {{.relative_bias = even}, RAPT_ERROR_SHAPE, "an odd number of relative positions"},
        {{.relative_bias = rapt_scalar(RAPT_FLOAT64, 1)}, RAPT_ERROR_SHAPE, "an odd number of relative positions"},
        {{.relative_bias = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2, 3))}, RAPT_ERROR_SHAPE, "relative_bias [2, 3]"},
        {{.valid_lengths = rapt_ones(RAPT_INT64, RAPT_SHAPE(2, 4))}, RAPT_ERROR_SHAPE, "not [2, 4]"},
        {{.valid_lengths = rapt_ones(RAPT_INT64, RAPT_SHAPE(2, 3, 1))}, RAPT_ERROR_SHAPE, "not [2, 3, 1]"},
        {{.first_keys = three}, RAPT_ERROR_SHAPE, "first keys (B) expected for scores [2, 3, 4], not [3]"},
        {{.first_keys = rapt_ones(RAPT_INT64, RAPT_SHAPE(2, 3))}, RAPT_ERROR_SHAPE, "first keys (B) expected"},
        {{.causal = true, .prefix_lengths = three}, RAPT_ERROR_SHAPE, "prefix lengths (B) or (1) expected"},
        {{.causal = true, .prefix_lengths = rapt_ones(RAPT_INT64, RAPT_SHAPE(2, 1))}, RAPT_ERROR_SHAPE, "not [2, 1]"},
        {{.documents = rapt_ones(RAPT_INT64, RAPT_SHAPE(3, 4))}, RAPT_ERROR_SHAPE, "documents (K), (1, K) or (B, K)"},
        {{.documents = rapt_ones(RAPT_INT64, RAPT_SHAPE(1, 1, 4))}, RAPT_ERROR_SHAPE, "not [1, 1, 4]"},
        {{.documents = even}, RAPT_ERROR_DTYPE, "the mask's documents are float64; int64 or int32 expected"},
        {{.seen = rapt_ones(RAPT_BOOL, RAPT_SHAPE(2, 4))}, RAPT_ERROR_SHAPE, "for all queries has the shape (B, 1, K)"},
        {{.seen = rapt_ones(RAPT_BOOL, RAPT_SHAPE(2, 3))}, RAPT_ERROR_SHAPE, "to the scores [2, 3, 4]"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_expect_null(rapt_mask_seen(&bad[i].mask, scores), "case %zu", i);
        expect_error(bad[i].code, bad[i].part);
    }
    cr_expect_null(rapt_mask_seen(RAPT_MASK(.seen = bytes), heads));
    expect_error(RAPT_ERROR_SHAPE, "mask_seen: the mask's seen [3, 3] does not broadcast to the scores [2, 5, 3, 4]");
    cr_expect_null(rapt_mask_seen(NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "scores");
    cr_expect_null(rapt_mask_add_biases(RAPT_MASK(.bias = three), scores));
    expect_error(RAPT_ERROR_SHAPE, "mask_add_biases: the mask's bias");
    cr_expect_null(rapt_by_relative_position(NULL, 1, 1, 0, false));
    expect_error(RAPT_ERROR_NULL, "by_relative_position: table");
    cr_expect_null(rapt_by_relative_position(even, 1, 1, 0, false));
    expect_error(RAPT_ERROR_SHAPE, "table (..., 2R + 1) expected, not [4]");
    cr_expect_null(rapt_by_relative_position(rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2, 3)), 3, 1, 0, true));
    expect_error(RAPT_ERROR_SHAPE, "table (..., 3, 2R + 1) expected, not [2, 3]");
    cr_expect_null(rapt_by_relative_position(three, 1, -1, 0, false));
    expect_error(RAPT_ERROR_VALUE, "1 queries and -1 keys");
    cr_expect_null(rapt_mask_add_biases(NULL, NULL));
    rapt_clear_error();
}
