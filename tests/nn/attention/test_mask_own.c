/* Masks of one's own: attention under them is attention under the rule or matrix that says the same, whole tiles are
 * passed over, nothing as large as the scores is stored, and all that goes beside other masks goes beside them. */
#include <stdatomic.h>

#include "attention_memory.h"
#include "masked_layer.h"

enum { width, holes };

/* Keys less than a width before the query, with each seventh left out where there are holes. */
static bool shows(const rapt_mask_tile *tile, int64_t place, int64_t key)
{
    const bool in_window = key <= place && place - key < tile->numbers[width];
    return in_window && (!tile->numbers[holes] || (place + key) % 7 != 0);
}

static void see_window(const rapt_mask_tile *tile, uint8_t *seen)
{
    for (int64_t i = 0; i < tile->rows; i++)
        for (int64_t c = 0; c < tile->columns; c++) *seen++ = shows(tile, tile->queries[i], tile->first_key + c);
}

static rapt_tile_seen judge_window(const rapt_mask_tile *tile)
{
    const int64_t most = tile->numbers[width];
    if (tile->first_key > tile->highest_query || tile->lowest_query - tile->last_key >= most) return RAPT_NONE_SEEN;
    const bool inside = tile->last_key <= tile->lowest_query && tile->highest_query - tile->first_key < most;
    return inside && !tile->numbers[holes] ? RAPT_ALL_SEEN : RAPT_SOME_SEEN;
}

static rapt_mask window_of_own(int64_t most, bool has_holes)
{
    return (rapt_mask){.rule = {.judge = judge_window, .see = see_window, .numbers = {most, has_holes}}};
}

/* A window is a range of each query: all is as if it were built in, to the bit. */
Test(mask_own, a_window_is_the_built_in_one_bit_for_bit)
{
    for (int heads = 1; heads <= 4; heads += 3)
        for (int plain = 0; plain < 2; plain++) {
            RAPT_SCOPE;
            subject s = new_subject(RAPT_FLOAT32, heads, heads > 1 ? 2 : 1, 300, 300, 8);
            s.attention->plain = plain;
            s.mask = window_of_own(70, false);
            const outcome own = differentiate(&s);
            s.mask = (rapt_mask){.causal = true, .window = 70};
            const outcome built_in = differentiate(&s);
            expect_same_bits("a window", &own, &built_in);
            rapt_module_free(&s.attention->module);
        }
    expect_no_error();
}

static atomic_llong places_asked;

static void see_and_count(const rapt_mask_tile *tile, uint8_t *seen)
{
    atomic_fetch_add(&places_asked, tile->rows * tile->columns);
    see_window(tile, seen);
}

/* Of 2 · 2048 · 2048 places few are asked about, forward and backward. */
Test(mask_own, whole_tiles_are_not_asked_about)
{
    RAPT_SCOPE;
    enum { many = 2048 };
    subject s = new_subject(RAPT_FLOAT32, 1, 1, many, many, 8);
    s.mask = window_of_own(200, false);
    s.mask.rule.see = see_and_count;
    differentiate(&s);
    cr_expect(places_asked > 0 && places_asked < many * many / 4, "%lld places", (long long)places_asked);
    places_asked = 0;
    s.mask.rule.judge = NULL;
    differentiate(&s);
    cr_expect(places_asked > many * many / 2, "%lld places without a judge", (long long)places_asked);
    rapt_module_free(&s.attention->module);
}

static rapt_attention *of_family(int family)
{
    rapt_seed(2);
    return family == 0   ? rapt_dot_product_attention_new(0.2)
           : family == 1 ? rapt_additive_attention_new(8, 8, 6, 0.2)
           : family == 2 ? rapt_attention_new(rapt_gaussian_scoring_new(1.5, false), 0.2)
           : family == 3 ? rapt_attention_new(rapt_gaussian_scoring_new(1.5, true), 0.2)
                         : rapt_attention_new(rapt_cosine_scoring_new(1, true), 0.2);
}

/* --- how often each place is asked about --- */

enum { batch = 2, heads = 4, queries = 70, keys = 150, size = 8 };
enum { late, with_gaps, with_blind, nothing, up_to_the_query, ways };

static atomic_int times_asked[batch][heads][queries][keys];

static bool shows_by_way(int64_t way, int64_t head, int64_t query, int64_t key)
{
    switch (way) {
    case late:
        return key > 70 && query % 3 != 0 && (key + head) % 2 == 0;
    case with_gaps:
        return (query * 7 + key * 3 + head * 5) % 11 == 0 && query % 5 != 0;
    case with_blind:
        return key % 2 == 0 && query % 16 != 3 && (head != 1 || query >= 20);
    case up_to_the_query:
        return key <= query;
    default:
        return false;
    }
}

static void see_by_way(const rapt_mask_tile *tile, uint8_t *seen)
{
    for (int64_t i = 0; i < tile->rows; i++)
        for (int64_t c = 0; c < tile->columns; c++) {
            const int64_t query = tile->queries[i], key = tile->first_key + c;
            atomic_fetch_add(&times_asked[tile->item][tile->head][query][key], 1);
            *seen++ = shows_by_way(tile->numbers[0], tile->head, query, key);
        }
}

/* The most of any place, which begin anew. */
static int take_most_asked(void)
{
    int most = 0;
    atomic_int *asked = &times_asked[0][0][0][0];
    for (int64_t i = 0; i < batch * heads * queries * keys; i++) {
        const int times = atomic_exchange(&asked[i], 0);
        if (times > most) most = times;
    }
    return most;
}

static rapt_tensor *draw_leaf(bool has_heads, int64_t length)
{
    return has_heads ? leaf(RAPT_FLOAT32, RAPT_SHAPE(batch, heads, length, size))
                     : leaf(RAPT_FLOAT32, RAPT_SHAPE(batch, length, heads * size));
}

enum { by_itself, in_layer, in_layer_of_itself, uses };
enum { with_weights = 1, with_nan = 2, beside_a_matrix = 4, same_for_heads = 8, kinds = 16 };

/* How often a place may be asked about in forward where not every query sees a range. */
static int most_in_forward(int use, int with)
{
    return 5 + (use == by_itself ? 0 : 2) + (with & with_weights ? 2 : 0) + (with & with_nan ? 2 : 0);
}

static void expect_seldom_asked(int family, int use, int with, const rapt_mask *mask, const char *name)
{
    RAPT_SCOPE;
    rapt_attention *attention = of_family(family);
    rapt_module *module = &attention->module;
    const bool is_whole = mask->rule.numbers[0] >= nothing;
    attention->keep_weights = with & with_weights;
    rapt_tensor *q = draw_leaf(use == by_itself, queries), *k = draw_leaf(use == by_itself, keys), *y;
    if (use == in_layer_of_itself) k = q;
    rapt_tensor *v = with & with_nan ? rapt_clone(k) : k;
    if (with & with_nan) rapt_fill(rapt_slice(v, -2, -1, INT64_MAX, 1), NAN);
    if (use == by_itself) {
        y = rapt_attention_forward(attention, q, k, v, mask);
    } else {
        rapt_multi_head_attention_config config = {.hidden = size * heads, .heads = heads, .pooling = attention};
        rapt_multi_head_attention *layer = rapt_multi_head_attention_new(&config);
        y = rapt_multi_head_attention_forward(layer, q, k, v, mask, NULL);
        module = &layer->module;
    }
    cr_assert_not_null(y, "%s", rapt_error());
    const int forward = take_most_asked();
    cr_assert(rapt_backward(rapt_sum(y, RAPT_ALL_AXES, false)), "%s", rapt_error());
    const int backward = take_most_asked(), most = is_whole ? 1 : most_in_forward(use, with);
    cr_expect(forward > 0 && forward <= most, "%s: %d times in forward", name, forward);
    cr_expect_leq(backward, is_whole ? 0 : 2, "%s: %d times in backward", name, backward);
    rapt_module_free(module);
}

/* The numbers that mask.h tells. */
Test(mask_own, no_place_is_asked_about_too_often)
{
    RAPT_SCOPE;
    enum { families = 5 };
    rapt_tensor *numbers = rapt_rand(RAPT_FLOAT32, RAPT_SHAPE(batch, heads, queries, 1)),
                *bytes = rapt_less(numbers, rapt_scalar(RAPT_FLOAT32, 0.6));
    for (int n = 0; n < ways * uses * families * kinds; n++) {
        char name[80];
        const int way = n % ways, use = n / ways % uses, family = n / ways / uses % families,
                  with = n / ways / uses / families;
        rapt_mask mask = {.rule = {.see = see_by_way, .numbers = {way}, .same_for_heads = with & same_for_heads}};
        if (with & beside_a_matrix) mask.seen = bytes;
        snprintf(name, sizeof name, "way %d, use %d, attention %d, with %d", way, use, family, with);
        expect_seldom_asked(family, use, with, &mask, name);
    }
    expect_no_error();
}

static rapt_tile_seen say_all(const rapt_mask_tile *tile)
{
    return tile->last_key < 64 ? RAPT_ALL_SEEN : tile->first_key >= 64 ? RAPT_NONE_SEEN : RAPT_SOME_SEEN;
}

/* Where the two contradict each other, the judge of tiles wins, in all ways. */
Test(mask_own, the_judge_of_tiles_wins)
{
    RAPT_SCOPE;
    for (int plain = 0; plain < 2; plain++) {
        subject s = new_subject(RAPT_FLOAT64, 2, 2, 40, 150, 8);
        s.attention->plain = plain;
        s.mask = (rapt_mask){.rule = {.judge = say_all, .see = see_window}};
        const outcome own = differentiate(&s);
        s.mask = (rapt_mask){.valid_lengths = rapt_full(RAPT_INT64, RAPT_SHAPE(rapt_size(s.queries, 0)), 64)};
        const outcome lengths = differentiate(&s);
        expect_same_bits("what the judge says", &own, &lengths);
        rapt_module_free(&s.attention->module);
    }
}

Test(mask_own, the_number_of_threads_changes_no_bit)
{
    for (int family = 0; family < 3; family++) {
        RAPT_SCOPE;
        subject s = new_subject(RAPT_FLOAT32, 4, 2, 200, 230, 8);
        rapt_module_free(&s.attention->module);
        s.attention = of_family(family);
        s.mask = window_of_own(90, true);
        outcome first = {{NULL}};
        for (int threads = 1; threads <= 4; threads++) {
            rapt_set_threads(threads);
            rapt_seed(5);
            const outcome o = differentiate(&s);
            if (threads == 1) first = o;
            expect_same_bits("on more threads", &first, &o);
        }
        rapt_module_free(&s.attention->module);
    }
    expect_no_error();
}

/* Derivatives of second order go by the definition, which asks the rule as the fused way does. */
Test(mask_own, derivatives_of_second_order)
{
    for (int family = 0; family < 3; family++) {
        RAPT_SCOPE;
        subject s = new_subject(RAPT_FLOAT64, 2, 2, 5, 9, 4);
        rapt_module_free(&s.attention->module);
        s.attention = family == 1 ? in_float64(rapt_additive_attention_new(4, 4, 3, 0)) : of_family(family);
        s.attention->dropout = 0;
        s.mask = window_of_own(4, true);
        s.mask.offset = 3;
        rapt_tensor *second[2][3];
        for (int plain = 0; plain < 2; plain++) {
            s.attention->plain = plain;
            rapt_tensor *out = pool(&s), *in[] = {s.queries, s.keys, s.values}, *first[3];
            out = rapt_sum(rapt_mul(out, rapt_sin(out)), RAPT_ALL_AXES, false);
            cr_assert(rapt_gradients(1, &out, NULL, 3, in, first, RAPT_CREATE_GRAPH), "%s", rapt_error());
            rapt_tensor *root = rapt_sum(rapt_mul(first[0], first[0]), RAPT_ALL_AXES, false);
            cr_assert(rapt_gradients(1, &root, NULL, 3, in, second[plain], 0), "%s", rapt_error());
        }
        for (int i = 0; i < 3; i++)
            cr_expect_leq(largest_of(rapt_sub(second[0][i], second[1][i])), 1e-12 * (1 + largest_of(second[0][i])));
        rapt_module_free(&s.attention->module);
    }
    expect_no_error();
}

Test(mask_own, steps_of_a_cache_are_the_whole)
{
    const rapt_mask masks[] = {window_of_own(5, false),
                               window_of_own(9, true),
                               {.causal = true, .window = 8, .dilation = 3}};
    expect_steps_are_the_whole(masks, sizeof masks / sizeof *masks);
}

/* 16,384 queries of as many keys: scores would be 1 GiB. */
static void expect_little_memory(rapt_attention *attention, const rapt_mask *mask)
{
    RAPT_SCOPE;
    enum { many = 16384 };
    subject s = new_subject(RAPT_FLOAT32, 1, 1, many, many, 8);
    rapt_module_free(&s.attention->module);
    s.attention = attention;
    s.mask = *mask;
    expect_less_than_a_byte_for(16, &s);
    rapt_module_free(&attention->module);
}

Test(mask_own, nothing_as_large_as_the_scores_is_stored)
{
    const rapt_mask masks[] = {window_of_own(300, false),
                               window_of_own(300, true),
                               {.window = 400, .dilation = 5, .causal = true}};
    rapt_set_threads(2);
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        expect_little_memory(rapt_dot_product_attention_new(0), &masks[i]);
        if (i == 1) expect_little_memory(rapt_additive_attention_new(8, 8, 4, 0), &masks[i]);
    }
    expect_no_error();
}

static void see_table(const rapt_mask_tile *tile, uint8_t *seen)
{
    const int64_t *table = tile->captured[1];
    for (int64_t i = 0; i < tile->rows; i++)
        for (int64_t c = 0; c < tile->columns; c++) *seen++ = table[tile->first_key + c] <= tile->queries[i];
}

/* A captured tensor may be released once attention was called, but not changed before backward. */
Test(mask_own, captured_tensors_live_until_backward)
{
    RAPT_SCOPE;
    subject s = new_subject(RAPT_FLOAT32, 1, 1, 4, 4, 8);
    rapt_tensor *table = rapt_from(RAPT_INT64, RAPT_SHAPE(4), (int64_t[]){0, 3, 1, 2});
    s.mask = (rapt_mask){.rule = {.see = see_table, .captured = {NULL, table}}};
    rapt_tensor *out = pool(&s), *root = rapt_sum(out, RAPT_ALL_AXES, false), *in[] = {s.queries}, *gradient[1];
    cr_assert(root && rapt_gradients(1, &root, NULL, 1, in, gradient, RAPT_RETAIN_GRAPH), "%s", rapt_error());
    cr_assert(rapt_fill(table, 0));
    cr_expect_not(rapt_gradients(1, &root, NULL, 1, in, gradient, 0));
    expect_error(RAPT_ERROR_GRAPH, "changed in place");
    rapt_module_free(&s.attention->module);
}
