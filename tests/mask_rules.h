/* Rules of masks drawn at random, and what each lets a query see, by its definition. */
#ifndef RAPT_TESTS_MASK_RULES_H
#define RAPT_TESTS_MASK_RULES_H

#include <stdlib.h>

#include <rapt/mask.h>

#include "draw.h"

/* (count), or, for an even draw, (batch, count). */
static inline rapt_tensor *drawn_integers(uint64_t *state, int64_t batch, int64_t count, int64_t most, bool rises)
{
    const bool by_item = draw_chance(state, 50);
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

/* Adds rules to a mask whose causality is drawn, most of the time none. Packed sequences have neither documents nor
 * places, and biases by relative position no places. */
static inline void draw_rules(uint64_t *state, int64_t batch, int64_t queries, int64_t keys, bool is_packed,
                              bool has_places, rapt_mask *mask)
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
    if (is_packed) return;
    if (draw_chance(state, 30)) mask->documents = drawn_integers(state, batch, keys, 3, true);
    if (has_places && draw_chance(state, 30))
        mask->query_places = drawn_integers(state, batch, queries, keys + 2, false);
}

static inline int64_t floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Of a tensor (n), (1, n) or (B, n). */
static inline int64_t integer_at(const rapt_tensor *tensor, int64_t item, int64_t n)
{
    const bool by_item = rapt_rank(tensor) == 2;
    const int64_t at[] = {by_item && rapt_size(tensor, 0) > 1 ? item : 0, n};
    return (int64_t)rapt_at(tensor, by_item ? at : &n);
}

/* Do causality, prefix, windows, blocks and documents let query i of an item see key j? */
static inline bool rules_show(const rapt_mask *m, int64_t item, int64_t i, int64_t j, int64_t keys)
{
    const int64_t place = m->query_places ? integer_at(m->query_places, item, i) : i + m->offset;
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
    if (!m->documents) return true;
    return place >= 0 && place < keys && integer_at(m->documents, item, j) == integer_at(m->documents, item, place);
}

#endif
