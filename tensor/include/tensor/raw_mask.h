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
} rapt_raw_mask;

/* The place of a row of scores. */
typedef struct rapt_score_row {
    int64_t item, head, query;
} rapt_score_row;

#endif
