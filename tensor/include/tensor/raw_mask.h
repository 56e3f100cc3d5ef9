/* A mask as the kernels of attention read it: raw numbers and strides, for scores of shape (batch, heads, queries,
 * keys). */
#ifndef RAPT_TENSOR_RAW_MASK_H
#define RAPT_TENSOR_RAW_MASK_H

#include <rapt/mask_tile.h>
#include <rapt/random.h>

/* Elements with four axes; strides count elements and are 0 where an axis repeats. data is NULL where there are
 * none. */
typedef struct rapt_raw_grid {
    const void *data;
    int64_t strides[4];
} rapt_raw_grid;

/* What else than ranges decides which keys a query sees: functions of the user's, and dilation. */
typedef struct rapt_mask_code {
    rapt_mask_judge *judge; /* NULL: no tile is seen or hidden as a whole */
    rapt_mask_see *see;     /* NULL: all are seen */
    int64_t numbers[RAPT_MASK_NUMBERS];
    int64_t dilation; /* if > 1, every so manieth key from the query's place on */
} rapt_mask_code;

/* Tiles of so many queries and keys it is asked about. */
enum { rapt_rule_rows = 16, rapt_rule_columns = 64 };

/* The same with its answers, rapt_tile_seen, (batch or 1, heads or 1, tiles of queries, tiles of keys). Only for what
 * is some the functions are asked again. answers NULL: no such rule. */
typedef struct rapt_raw_rule {
    rapt_mask_code code;
    const void *captured[RAPT_MASK_CAPTURED];
    const uint8_t *answers;
    int64_t strides[3]; /* of items, heads, and tiles of queries; 0 where all have the same */
    int64_t first_item; /* of a packed batch: which of its sequences item 0 is */
} rapt_raw_rule;

typedef struct rapt_raw_mask {
    int64_t batch, heads, queries, keys;
    const int64_t *ranges; /* (batch or 1, queries, 2), dense: the keys [first, last) that a query may see; NULL: all */
    int64_t range_item;    /* from one item's ranges to the next one's, in elements; 0 where they are the same */
    rapt_raw_grid seen;    /* bytes (batch, heads, queries, keys): 0 hides */
    rapt_raw_grid bias;    /* of the scores' type, (batch, heads, queries, keys): added, −∞ hides */
    rapt_raw_grid relative_bias; /* of the scores' type, (batch, heads, queries, 2·reach + 1), by relative position, */
    int64_t reach, offset; /* of which element reach + clamp(j − p, ±reach) is added to the score of i and j, */
    const int64_t *places; /* with p = i + offset or, if not NULL, as these say: (batch or 1, queries), dense */
    int64_t place_item;    /* from one item's places to the next one's; 0 where they are the same */
    int64_t first_key;     /* of keys that are numbered anew, being some of more: the place of the first among all */
    rapt_raw_rule rule;
    double keep;              /* the chance that dropout leaves a weight; 1: no dropout */
    rapt_random_state random; /* the weight of (b, h, i, j) is element ((b·heads + h)·queries + i)·keys + j */
    /* A packed batch: (batch + 1, 3), dense, the first query and key of each sequence among those of all, which have
     * one axis, and its first pair of both; queries and keys are then those of the longest, as in the padded batch.
     * NULL: not packed. */
    const int64_t *starts;
    /* Of one sequence of such a batch, seen as a batch of its own: how many more the longest one has, and how many all
     * the others have together, which lie between two of its heads in dense tensors; and its first random number. */
    int64_t more_queries, more_keys, other_queries, other_keys, first_draw;
} rapt_raw_mask;

/* Where a sequence is among the queries, keys and pairs of all; pairs are counted once for all heads. */
typedef struct rapt_raw_place {
    int64_t first_query, queries, first_key, keys, first_pair, pairs;
} rapt_raw_place;

/* All items of a batch. */
static inline rapt_raw_place rapt_raw_place_of_all(const rapt_raw_mask *mask)
{
    const int64_t batch = mask->batch, *end = mask->starts ? mask->starts + 3 * batch : NULL;
    if (end) return (rapt_raw_place){0, end[0], 0, end[1], 0, end[2]};
    return (rapt_raw_place){0, batch * mask->queries, 0, batch * mask->keys, 0, batch * mask->queries * mask->keys};
}

/* One sequence of a packed batch; of another the whole batch. */
static inline rapt_raw_place rapt_raw_place_of(const rapt_raw_mask *mask, int64_t sequence)
{
    if (!mask->starts) return rapt_raw_place_of_all(mask);
    const int64_t *s = mask->starts + 3 * sequence;
    return (rapt_raw_place){s[0], s[3] - s[0], s[1], s[4] - s[1], s[2], s[5] - s[2]};
}

/* The place of a row of scores. */
typedef struct rapt_score_row {
    int64_t item, head, query;
} rapt_score_row;

/* The place of its query among the keys, at most the largest that there is. */
static inline int64_t rapt_row_place(const rapt_raw_mask *mask, rapt_score_row row)
{
    int64_t place;
    if (mask->places) return mask->places[row.item * mask->place_item + row.query];
    return __builtin_add_overflow(row.query, mask->offset, &place) ? INT64_MAX : place;
}

#endif
