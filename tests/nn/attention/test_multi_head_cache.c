/* Multi-head attention with the keys and values of earlier steps kept: the same as all at once. */
#include "integers.h"
#include "multi_head_reference.h"

enum { batch = 2, length = 37, hidden = 12, heads = 6 };

static rapt_tensor *part(rapt_tensor *x, int64_t start, int64_t stop)
{
    return rapt_slice(x, 1, start, stop, 1);
}

static const config layouts[] = {
    {.hidden = hidden, .heads = heads, .bias = true},
    {.hidden = hidden, .heads = heads, .groups = 2, .value_hidden = 18},
    {.hidden = hidden, .heads = heads, .groups = 1, .bias = true},
};
enum { layout_count = 3, mask_count = 4 };

/* The layer, drawn; of the layout, with rotary positions or not, with additive scores or not. */
static rapt_multi_head_attention *make(int layout, bool rotary, bool additive, rapt_dtype dtype)
{
    config c = layouts[layout];
    if (rotary) c.rotary = rapt_rotary_new();
    if (additive) c.pooling = rapt_additive_attention_new(hidden / heads, hidden / heads, 3, 0);
    return multi_head(&c, dtype);
}

static rapt_mask mask_of(int kind, rapt_tensor *by_position)
{
    const rapt_mask masks[mask_count] = {
        {.causal = true},
        {.causal = true, .window = 5},
        {.causal = true, .relative_bias = by_position},
        {.causal = true, .window = 11, .relative_bias = by_position},
    };
    return masks[kind];
}

/* Steps of any length, one product for the queries, keys and values of each. */
static void expect_steps(rapt_multi_head_attention *m, const rapt_mask *mask, rapt_tensor *x, int64_t step,
                         double tolerance)
{
    rapt_tensor *all = rapt_multi_head_attention_forward(m, x, x, x, mask, NULL);
    rapt_attention_cache cache = {0};
    for (int64_t start = 0; start < length; start += step) {
        RAPT_SCOPE;
        int64_t stop = start + step < length ? start + step : length;
        rapt_tensor *now = part(x, start, stop);
        rapt_tensor *y = rapt_multi_head_attention_forward(m, now, now, now, mask, &cache);
        cr_assert_not_null(y, "%s", rapt_error());
        cr_expect_eq(cache.length, stop);
        expect_values("step", y, rapt_count(y), values_of(part(all, start, stop)), tolerance);
    }
    rapt_attention_cache_clear(&cache);
    cr_expect(!cache.keys && !cache.values && cache.length == 0);
}

Test(multi_head_cache, steps_are_the_whole)
{
    RAPT_NO_GRADIENT;
    rapt_seed(1);
    const int64_t before = live_bytes();
    for (int variant = 0; variant < 2 * 2 * 2 * layout_count; variant++) {
        RAPT_SCOPE;
        const rapt_dtype dtype = variant & 1 ? RAPT_FLOAT64 : RAPT_FLOAT32;
        rapt_multi_head_attention *m = make(variant / 8, variant & 2, variant & 4, dtype);
        rapt_alibi *alibi = rapt_alibi_new(heads);
        rapt_tensor *x = rapt_randn(dtype, RAPT_SHAPE(batch, length, hidden));
        for (int kind = 0; kind < mask_count; kind++) {
            const rapt_mask mask = mask_of(kind, rapt_alibi_forward(alibi, dtype, 20));
            for (int64_t step = 1; step <= length; step *= 6)
                expect_steps(m, &mask, x, step, dtype == RAPT_FLOAT64 ? 1e-14 : 1e-6);
        }
        rapt_module_free(&m->module);
        rapt_module_free(&alibi->module);
    }
    cr_expect_eq(live_bytes(), before);
    expect_no_error();
}

/* The queries come one by one, but without a mask each sees all that is there: its own step's key is the last. */
Test(multi_head_cache, without_a_mask_all_that_is_held_is_seen)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_attention *shaw = rapt_attention_new(rapt_relative_scoring_new(2, 2, 4), 0);
    rapt_multi_head_attention *relative =
        multi_head(&(config){.hidden = hidden, .heads = heads, .pooling = shaw}, RAPT_FLOAT64);
    rapt_multi_head_attention *both[] = {make(0, true, false, RAPT_FLOAT64), relative};
    for (int i = 0; i < 2; i++) {
        draw_parameters(both[i]);
        rapt_tensor *x = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(batch, length, hidden));
        rapt_tensor *all = rapt_multi_head_attention_forward(both[i], x, x, x, RAPT_MASK(.causal = true), NULL);
        rapt_attention_cache cache = {0};
        for (int64_t t = 0; t < length; t++) {
            rapt_tensor *now = part(x, t, t + 1);
            rapt_tensor *y = rapt_multi_head_attention_forward(both[i], now, now, now, NULL, &cache);
            expect_values("step", y, rapt_count(y), values_of(part(all, t, t + 1)), 1e-13);
        }
        rapt_attention_cache_clear(&cache);
        rapt_module_free(&both[i]->module);
    }
    expect_no_error();
}

/* Items of different lengths, the shorter padded at the end of the prompt. */
Test(multi_head_cache, lengths_count_all_that_is_held)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_multi_head_attention *m = make(0, false, false, RAPT_FLOAT64);
    rapt_tensor *memory = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(batch, 5, hidden));
    rapt_tensor *more = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(batch, 2, hidden)), *parts[] = {memory, more};
    rapt_tensor *query = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(batch, 1, hidden)), *whole = rapt_concat(2, parts, 1);
    const rapt_mask mask = {.valid_lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(batch), (int64_t[]){6, 3})};
    rapt_attention_cache cache = {0};
    cr_assert_not_null(rapt_multi_head_attention_forward(m, query, memory, memory, &mask, &cache));
    rapt_tensor *y = rapt_multi_head_attention_forward(m, query, more, more, &mask, &cache);
    rapt_tensor *expected = rapt_multi_head_attention_forward(m, query, whole, whole, &mask, NULL);
    expect_values("lengths", y, rapt_count(y), values_of(expected), 1e-14);
    rapt_attention_cache_clear(&cache);
    rapt_module_free(&m->module);
    expect_no_error();
}

/* An encoder's output is projected once and asked again and again. */
Test(multi_head_cache, memory_is_projected_once)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    for (int layout = 0; layout < layout_count; layout++) {
        rapt_multi_head_attention *m = make(layout, false, layout == 2, RAPT_FLOAT32);
        rapt_tensor *memory = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(batch, length, hidden));
        const rapt_mask mask = {.valid_lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(batch), (int64_t[]){5, 30})};
        rapt_attention_cache cache = {0};
        for (int64_t t = 0; t < 4; t++) {
            rapt_tensor *query = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(batch, 2, hidden)), *given = t ? NULL : memory;
            rapt_tensor *y = rapt_multi_head_attention_forward(m, query, given, given, &mask, &cache);
            rapt_tensor *expected = rapt_multi_head_attention_forward(m, query, memory, memory, &mask, NULL);
            expect_values("memory", y, rapt_count(y), values_of(expected), 1e-6);
            cr_expect_eq(cache.length, length);
            cr_expect_eq(rapt_size(cache.keys, 2), length, "exactly what is needed");
        }
        rapt_attention_cache_clear(&cache);
        rapt_module_free(&m->module);
    }
    expect_no_error();
}

/* Few buffers for many steps, and no memory from the system once they are known. */
Test(multi_head_cache, grows_by_doubling)
{
    RAPT_NO_GRADIENT;
    rapt_multi_head_attention *m = make(1, true, false, RAPT_FLOAT32);
    rapt_attention_cache cache = {0};
    const rapt_tensor *buffer = NULL;
    int64_t buffers = 0, allocations = 0;
    for (int round = 0; round < 3; round++) {
        for (int64_t t = 0; t < 1000; t++) {
            RAPT_SCOPE;
            rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(batch, 1, hidden));
            cr_assert_not_null(rapt_multi_head_attention_forward(m, x, x, x, NULL, &cache));
            buffers += cache.keys != buffer;
            buffer = cache.keys;
        }
        cr_expect_eq(rapt_size(cache.keys, 2), 1024);
        cr_expect_eq(rapt_size(cache.values, 2), 1024);
        expect_shape(cache.values, RAPT_SHAPE(batch, 2, 1024, 3));
        rapt_attention_cache_clear(&cache);
        buffer = NULL;
        const int64_t now = rapt_memory_get_statistics().system_allocations;
        if (round == 2) cr_expect_eq(now, allocations);
        allocations = now;
    }
    cr_expect_eq(buffers, 3 * 7, "16, 32, … 1024: %lld buffers", (long long)buffers);
    rapt_module_free(&m->module);
    expect_no_error();
}

/* As beams do: items are copied, dropped and reordered between steps. */
static void select_items(void)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_seed(2);
    rapt_multi_head_attention *m = make(0, true, false, RAPT_FLOAT64);
    rapt_tensor *x = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(batch, 6, hidden)), *start = part(x, 0, 5);
    rapt_tensor *rows = rapt_from(RAPT_INT64, RAPT_SHAPE(3), (int64_t[]){1, 1, 0}),
                *chosen = rapt_index_select(x, 0, rows);
    rapt_attention_cache cache = {0};
    cr_expect(rapt_attention_cache_select(&cache, rows), "nothing to choose from an empty cache");
    cr_assert_not_null(rapt_multi_head_attention_forward(m, start, start, start, NULL, &cache));
    cr_expect(rapt_attention_cache_select(&cache, rows));
    cr_expect(cache.length == 5 && rapt_size(cache.keys, 0) == 3);
    rapt_tensor *last = part(chosen, 5, 6);
    rapt_tensor *y = rapt_multi_head_attention_forward(m, last, last, last, NULL, &cache);
    rapt_tensor *all = rapt_multi_head_attention_forward(m, chosen, chosen, chosen, RAPT_MASK(.causal = true), NULL);
    expect_values("chosen", y, rapt_count(y), values_of(part(all, 5, 6)), 1e-13);

    const rapt_tensor *keys = cache.keys;
    cr_expect(!rapt_attention_cache_select(&cache, rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){0, 3})));
    expect_error(RAPT_ERROR_VALUE, "3");
    cr_expect(!rapt_attention_cache_select(&cache, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2))));
    expect_error(RAPT_ERROR_DTYPE, "float32");
    cr_expect(!rapt_attention_cache_select(&cache, NULL));
    expect_error(RAPT_ERROR_NULL, "rows");
    cr_expect(!rapt_attention_cache_select(NULL, rows));
    expect_error(RAPT_ERROR_NULL, "cache");
    cr_expect(cache.keys == keys && cache.length == 6, "as it was");
    rapt_attention_cache_clear(&cache);
    rapt_attention_cache_clear(NULL);
    rapt_module_free(&m->module);
    expect_no_error();
}

Test(multi_head_cache, select_chooses_items)
{
    const int64_t before = live_bytes();
    select_items();
    cr_expect_eq(live_bytes(), before);
}

Test(multi_head_cache, errors_leave_the_cache_as_it_was)
{
    RAPT_SCOPE;
    rapt_multi_head_attention *m = make(0, false, false, RAPT_FLOAT32);
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(batch, 3, hidden)),
                *three = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3, 3, hidden));
    rapt_attention_cache cache = {0};
    cr_expect_null(rapt_multi_head_attention_forward(m, x, x, x, NULL, &cache));
    expect_error(RAPT_ERROR_UNSUPPORTED, "RAPT_NO_GRADIENT");
    RAPT_NO_GRADIENT;
    cr_expect_null(rapt_multi_head_attention_forward(m, x, NULL, NULL, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "no cache holds any");
    cr_expect_null(rapt_multi_head_attention_forward(m, x, NULL, NULL, NULL, &cache));
    expect_error(RAPT_ERROR_NULL, "no cache holds any");
    const rapt_mask bad = {.valid_lengths = rapt_ones(RAPT_INT64, RAPT_SHAPE(7))};
    cr_expect_null(rapt_multi_head_attention_forward(m, three, three, three, &bad, &cache));
    expect_error(RAPT_ERROR_SHAPE, "valid lengths");
    for (int64_t held = 0; held <= 3; held += 3) {
        cr_expect_null(rapt_multi_head_attention_forward(m, x, x, x, &bad, &cache));
        expect_error(RAPT_ERROR_SHAPE, "valid lengths");
        cr_expect_eq(cache.length, held);
        if (held == 0) cr_assert_not_null(rapt_multi_head_attention_forward(m, x, x, x, NULL, &cache));
    }
    rapt_tensor *again = rapt_multi_head_attention_forward(m, x, x, x, NULL, &cache);
    cr_expect_eq(cache.length, 6);
    expect_values("all keys are equal", again, rapt_count(again),
                  values_of(rapt_multi_head_attention_forward(m, x, x, x, NULL, NULL)), 1e-6);
    cr_expect_null(rapt_multi_head_attention_forward(m, three, three, three, NULL, &cache));
    expect_error(RAPT_ERROR_SHAPE, "the cache holds float32 [2, 6, 16, 2]");
    cr_expect_null(rapt_multi_head_attention_forward(m, three, NULL, NULL, NULL, &cache));
    expect_error(RAPT_ERROR_SHAPE, "queries of 3 items, but the cache holds 2");
    cr_expect_null(rapt_multi_head_attention_forward(m, x, x, NULL, NULL, &cache));
    expect_error(RAPT_ERROR_NULL, "the values are NULL");
    cr_expect_null(rapt_multi_head_attention_forward(m, x, x, x, RAPT_MASK(.offset = INT64_MAX), &cache));
    expect_error(RAPT_ERROR_VALUE, "offset");
    cr_expect_eq(cache.length, 6);
    /* No memory, at every place in turn: the step that goes well in the end is the step after 6. */
    rapt_tensor *y = NULL, *many = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(batch, 30, hidden));
    for (int64_t failures = 0; !y; failures++) {
        cr_expect_eq(cache.length, 6);
        rapt_memory_fail_after(failures);
        y = rapt_multi_head_attention_forward(m, many, many, many, NULL, &cache);
        rapt_memory_fail_after(-1);
        if (!y) expect_error(RAPT_ERROR_MEMORY, "no memory");
        cr_assert_lt(failures, 500);
    }
    cr_expect_eq(cache.length, 36);
    expect_values("after failures", part(y, 0, 3), rapt_count(again), values_of(again), 1e-6);
    rapt_attention_cache_clear(&cache);
    rapt_module_free(&m->module);
    expect_no_error();
}

/* Packed sequences fill it at once, before the pooling that may fail. */
Test(multi_head_cache, a_packed_fill_that_fails_leaves_it_empty)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_multi_head_attention *m = make(0, true, false, RAPT_FLOAT32);
    rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(5, hidden)), *y = NULL;
    const rapt_mask packed = {.causal = true, .starts = rapt_from(RAPT_INT64, RAPT_SHAPE(3), (int64_t[]){0, 2, 5})};
    rapt_attention_cache cache = {0};
    int64_t failures = 0;
    for (; !y; failures++) {
        rapt_memory_fail_after(failures);
        y = rapt_multi_head_attention_forward(m, x, x, x, &packed, &cache);
        rapt_memory_fail_after(-1);
        if (y) break;
        expect_error(RAPT_ERROR_MEMORY, "no memory");
        cr_assert(!cache.keys && !cache.values && !cache.missing && cache.length == 0, "failure %d", (int)failures);
    }
    cr_expect_gt(failures, 20);
    cr_expect_eq(cache.length, 3);
    rapt_attention_cache_clear(&cache);
    rapt_module_free(&m->module);
    expect_no_error();
}

static void see_nothing(const rapt_mask_tile *tile, uint8_t *seen)
{
    memset(seen, 0, (size_t)(tile->rows * tile->columns));
}

/* Blocks, prefixes and rules go by places in a sequence; in a cache the shorter ones do not begin at 0. */
Test(multi_head_cache, packed_sequences_are_not_continued_by_their_places)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_multi_head_attention *m = make(0, true, false, RAPT_FLOAT32);
    rapt_tensor *rows = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(5, hidden)), *starts = int64_of(3, (int64_t[]){0, 2, 5}),
                *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, 1, hidden));
    const rapt_mask masks[] = {{.causal = true, .block = 1},
                               {.causal = true, .prefix_lengths = int64_of(1, (int64_t[]){4})},
                               {.rule = {.see = see_nothing}},
                               {.causal = true, .window = 2}};
    static const char *const messages[] = {"the mask has block", "the mask has prefix_lengths", "the mask has rule",
                                           ""};
    for (int i = 0; i < 4; i++) {
        rapt_mask packed = masks[i];
        packed.starts = starts;
        rapt_attention_cache cache = {0};
        cr_assert_not_null(rapt_multi_head_attention_forward(m, rows, rows, rows, &packed, &cache), "%s", rapt_error());
        rapt_tensor *y = rapt_multi_head_attention_forward(m, x, x, x, &masks[i], &cache);
        cr_expect_eq(y != NULL, i == 3, "mask %d", i);
        if (!y) expect_error(RAPT_ERROR_UNSUPPORTED, messages[i]);
        cr_expect_eq(cache.length, y ? 4 : 3);
        rapt_attention_cache_clear(&cache);
    }
    rapt_module_free(&m->module);
    expect_no_error();
}
