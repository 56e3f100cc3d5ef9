/* Rules of masks drawn at random, and what each lets a query see, by its definition. */
#ifndef RAPT_TESTS_MASK_RULES_H
#define RAPT_TESTS_MASK_RULES_H

#include <stdlib.h>

#include <rapt/mask.h>

#include "draw.h"

/* (batch, count), or else (count). */
static inline rapt_tensor *drawn_integers(uint64_t *state, int64_t batch, int64_t count, int64_t most, bool rises,
                                          bool by_item)
{
    const int64_t items = by_item ? batch : 1;
    int64_t *numbers = malloc((size_t)(items * count + 1) * sizeof *numbers);
    for (int64_t n = 0; n < items * count; n++) {
        const bool goes_on = rises && n % count > 0;
        numbers[n] = goes_on ? numbers[n - 1] + (draw_chance(state, 70) ? 0 : draw_below(state, most) + 1)
                             : draw_below(state, most);
    }
    rapt_tensor *drawn =
        rapt_from(RAPT_INT64, by_item ? 2 : 1, by_item ? (int64_t[]){batch, count} : (int64_t[]){count}, numbers);
    free(numbers);
    return draw_chance(state, 30) ? rapt_cast(drawn, RAPT_INT32) : drawn;
}

/* --- rules of one's own --- */

/* What the numbers of one are. */
enum { rule_kind, rule_seed, rule_uses_item, rule_uses_head, rule_size };
enum { rule_scattered, rule_blocks, rule_band, rule_table, rule_kinds };

/* A number that looks like a random one. */
static inline uint64_t mixed(int64_t a, int64_t b)
{
    uint64_t state = (uint64_t)a * 0x9e3779b97f4a7c15 + (uint64_t)b;
    return draw(&state);
}

static inline int64_t floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Does it show key j to a query at that place? table: (size) of them. */
static inline bool rule_shows(const int64_t *numbers, const int64_t *table, int64_t item, int64_t head, int64_t place,
                              int64_t j)
{
    const int64_t size = numbers[rule_size], of_item = numbers[rule_uses_item] ? item : 0,
                  of_head = numbers[rule_uses_head] ? head : 0;
    const int64_t seed = (int64_t)(mixed(numbers[rule_seed], of_item * 8 + of_head) >> 8);
    switch (numbers[rule_kind]) {
    case rule_scattered:
        return mixed(seed + place, j) % 8 < (uint64_t)(size % 8 + 1);
    case rule_blocks:
        return mixed(seed + floor_divide(place, size), j / (size + 1)) % 3 == 0;
    case rule_band:
        return llabs(place - j - of_item + of_head) < size;
    default:
        return table[(place - floor_divide(place, size) * size + of_item) % size] != table[(j + of_head) % size];
    }
}

static inline void see_rule(const rapt_mask_tile *tile, uint8_t *seen)
{
    for (int64_t i = 0; i < tile->rows; i++)
        for (int64_t c = 0; c < tile->columns; c++) {
            const bool shows = rule_shows(tile->numbers, tile->captured[0], tile->item, tile->head, tile->queries[i],
                                          tile->first_key + c);
            *seen++ = (uint8_t)(shows ? 1 + c % 3 : 0);
        }
}

/* Looks at all places, but now and then says nothing. */
static inline rapt_tile_seen judge_rule(const rapt_mask_tile *tile)
{
    int64_t shown = 0;
    if (mixed(tile->first_key, tile->lowest_query) % 16 == 0) return RAPT_SOME_SEEN;
    for (int64_t i = 0; i < tile->rows; i++)
        for (int64_t j = tile->first_key; j <= tile->last_key; j++)
            shown += rule_shows(tile->numbers, tile->captured[0], tile->item, tile->head, tile->queries[i], j);
    if (shown == 0) return RAPT_NONE_SEEN;
    return shown == tile->rows * tile->columns ? RAPT_ALL_SEEN : RAPT_SOME_SEEN;
}

static inline rapt_mask_rule draw_own_rule(uint64_t *state)
{
    rapt_mask_rule rule = {.see = see_rule, .judge = draw_chance(state, 70) ? judge_rule : NULL};
    rule.numbers[rule_kind] = draw_below(state, rule_kinds);
    rule.numbers[rule_seed] = draw_below(state, 1 << 20);
    rule.numbers[rule_uses_item] = draw_chance(state, 50);
    rule.numbers[rule_uses_head] = draw_chance(state, 50);
    rule.numbers[rule_size] = draw_below(state, draw_chance(state, 30) ? 100 : 8) + 1;
    rule.same_for_items = !rule.numbers[rule_uses_item] && draw_chance(state, 70);
    rule.same_for_heads = !rule.numbers[rule_uses_head] && draw_chance(state, 70);
    if (rule.numbers[rule_kind] != rule_table) return rule;
    rule.captured[0] = rapt_zeros(RAPT_INT64, RAPT_SHAPE(rule.numbers[rule_size]));
    int64_t *number = rapt_data_for_writing(rule.captured[0]);
    for (int64_t n = 0; n < rule.numbers[rule_size]; n++) number[n] = draw_below(state, 3);
    return rule;
}

/* Adds rules to a mask whose causality is drawn, most of the time none. Packed sequences have documents and places of
 * the padded batch, (batch, …). */
static inline void draw_rules(uint64_t *state, int64_t batch, int64_t queries, int64_t keys, bool is_packed,
                              rapt_mask *mask)
{
    if (draw_chance(state, 50)) return;
    if (mask->causal && draw_chance(state, 50)) {
        rapt_tensor *prefixes = rapt_zeros(RAPT_INT64, RAPT_SHAPE(draw_chance(state, 70) ? batch : 1));
        int64_t *prefix = rapt_data_for_writing(prefixes);
        for (int64_t n = 0; n < rapt_count(prefixes); n++) prefix[n] = draw_below(state, keys + 2);
        mask->prefix_lengths = draw_chance(state, 30) ? rapt_cast(prefixes, RAPT_FLOAT32) : prefixes;
    }
    if (draw_chance(state, 30)) mask->window_left = draw_below(state, keys + 1) + 1;
    if (draw_chance(state, 30)) mask->window_right = draw_below(state, keys + 1) + 1;
    if (draw_chance(state, 30)) mask->block = draw_below(state, keys + 1) + 1;
    if (mask->block > 0) mask->blocks_before = draw_chance(state, 50) ? 0 : draw_below(state, 3);
    if (draw_chance(state, 20)) mask->dilation = draw_below(state, draw_chance(state, 80) ? 4 : 90) + 1;
    if (draw_chance(state, 30))
        mask->documents = drawn_integers(state, batch, keys, 3, true, is_packed || draw_chance(state, 50));
    if (draw_chance(state, 30))
        mask->query_places =
            drawn_integers(state, batch, queries, keys + 2, false, is_packed || draw_chance(state, 50));
    if (draw_chance(state, 40)) mask->rule = draw_own_rule(state);
}

/* Of a tensor (n), (1, n) or (B, n). */
static inline int64_t integer_at(const rapt_tensor *tensor, int64_t item, int64_t n)
{
    const bool by_item = rapt_rank(tensor) == 2;
    const int64_t at[] = {by_item && rapt_size(tensor, 0) > 1 ? item : 0, n};
    return (int64_t)rapt_at(tensor, by_item ? at : &n);
}

static inline int64_t place_of(const rapt_mask *m, int64_t item, int64_t i)
{
    return m->query_places ? integer_at(m->query_places, item, i) : i + m->offset;
}

/* Do causality, prefix, windows, blocks, dilation, documents and a rule of one's own let query i of an item see key
 * j? */
static inline bool rules_show(const rapt_mask *m, int64_t item, int64_t head, int64_t i, int64_t j, int64_t keys)
{
    const int64_t place = place_of(m, item, i);
    const int64_t of_prefix = m->prefix_lengths && rapt_count(m->prefix_lengths) > 1 ? item : 0;
    const bool in_prefix = m->prefix_lengths && (double)j < rapt_at(m->prefix_lengths, &of_prefix);
    if (m->causal && j > place && !in_prefix) return false;
    if (m->window > 0 && llabs(place - j) >= m->window) return false;
    if (m->window_left > 0 && place - j >= m->window_left) return false;
    if (m->window_right > 0 && j - place >= m->window_right) return false;
    if (m->block > 0) {
        const int64_t own = floor_divide(place, m->block), of_key = j / m->block;
        if (of_key > own || of_key < own - m->blocks_before) return false;
    }
    if (m->dilation > 1 && (place - j) % m->dilation != 0) return false;
    const rapt_tensor *table = m->rule.captured[0];
    if (m->rule.see && !rule_shows(m->rule.numbers, table ? rapt_data(table) : NULL, item, head, place, j))
        return false;
    if (!m->documents) return true;
    return place >= 0 && place < keys && integer_at(m->documents, item, j) == integer_at(m->documents, item, place);
}

#endif
