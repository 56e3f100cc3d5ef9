/* A tile of attention scores, as the functions of a score modification get it. */
#ifndef RAPT_SCORE_TILE_H
#define RAPT_SCORE_TILE_H

#include <rapt/base.h>

RAPT_BEGIN_DECLS

/* The scores of some queries of one head (rows) and of neighbouring keys (columns). What a field is for differentiation
 * alone is NULL otherwise. */
typedef struct rapt_score_tile {
    int64_t item, head;     /* of the batch; of packed sequences item is the sequence */
    int64_t rows, columns;  /* 1 or more of each */
    const int64_t *queries; /* (rows): the place of each query among the keys: i + offset, or by query_places */
    int64_t first_key;      /* column c is key first_key + c */
    int64_t stride; /* from one row of scores, of old and new ones, and of their gradient to the next; elements of a row
                             * are dense */
    void *scores;   /* to be changed in place */
    /* Differentiation: before and after the change, where the modification reads them */
    const void *old_scores, *new_scores;
    void *gradient;        /* differentiation: of the new scores, to become that of the old ones in place */
    const void *options;   /* the modification's, as they were when attention was called */
    const void **captured; /* of each captured tensor: the elements of this item and head, dense */
    /* Differentiation: where to add to the gradient of these elements, which is summed in float64 whatever the dtype;
     * NULL for one that is not wanted. */
    double **captured_gradients;
} rapt_score_tile;

/* Several threads call it at once: it writes nothing but what the tile says. */
typedef void rapt_score_function(const rapt_score_tile *tile);

/* For scores of one dtype. */
typedef struct rapt_score_functions {
    rapt_score_function *change; /* scores of the tile become others */
    /* The gradient of the new scores becomes that of the old ones, and adds to those of captured tensors. NULL: it
     * stays as it is, since the change adds something that depends on neither scores nor what wants a gradient. */
    rapt_score_function *differentiate;
} rapt_score_functions;

/* The same by recorded ops, of whole scores (B, heads, Q, K): gives new ones of that shape, from the options, the
 * captured tensors (B or 1, heads or 1, …), and the places of queries, int64 (Q, 1) or, where a
 * mask has them by item, (B, 1, Q, 1), and of keys, int64 (K). */
typedef rapt_tensor *rapt_score_by_ops(const void *options, rapt_tensor *scores, rapt_tensor *const *captured,
                                       rapt_tensor *queries, rapt_tensor *keys);

RAPT_END_DECLS

#endif
