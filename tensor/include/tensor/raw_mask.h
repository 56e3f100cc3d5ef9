/* A mask as the kernels of attention read it: raw numbers and strides, for scores of shape (batch, heads, queries,
 * keys). */
#ifndef RAPT_TENSOR_RAW_MASK_H
#define RAPT_TENSOR_RAW_MASK_H

#include <rapt/random.h>

/* Elements with four axes; strides count elements and are 0 where an axis repeats. data is NULL where there are
 * none. */
typedef struct rapt_raw_grid {
    const void *data;
    int64_t strides[4];
} rapt_raw_grid;

typedef struct rapt_raw_mask {
    int64_t batch, heads, queries, keys;
    const int64_t *ranges; /* (batch or 1, queries, 2), dense: the keys [first, last) that a query may see; NULL: all */
    int64_t range_item;    /* from one item's ranges to the next one's, in elements; 0 where they are the same */
    rapt_raw_grid seen;    /* bytes (batch, heads, queries, keys): 0 hides */
    rapt_raw_grid bias;    /* of the scores' type, (batch, heads, queries, keys): added, −∞ hides */
    rapt_raw_grid relative_bias; /* of the scores' type, (batch, heads, queries, 2·reach + 1), by relative position, */
    int64_t reach, offset; /* of which element reach + clamp(j − i − offset, ±reach) is added to the score of i and j */
    double keep;           /* the chance that dropout leaves a weight; 1: no dropout */
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

#endif
