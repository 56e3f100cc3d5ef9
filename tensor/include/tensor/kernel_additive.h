/* Additive attention as its kernels read it: raw numbers and strides, and the exponentials that stand for tanh. */
#ifndef RAPT_TENSOR_KERNEL_ADDITIVE_H
#define RAPT_TENSOR_KERNEL_ADDITIVE_H

#include "tensor/attention_tasks.h"
#include "tensor/raw_mask.h"
#include "tensor/raw_normalizer.h"
#include "tensor/score_changes.h"

/* tanh(a + b) = 1 − 1 / (½ + ½ e^{2a} e^{2b}): the exponentials are taken once for each row, not for each pair of rows.
 * Pairs for which they could overflow take tanh itself, from the rows as they are. */
typedef struct rapt_additive_rows {
    const void *rows;    /* projected queries or keys: (batch, heads or groups, rows, hidden), dense */
    const void *powers;  /* (batch, heads or groups, rows, padded), dense: ½ e^{2a} or e^{2b}, then zeros */
    const void *largest; /* (batch, heads or groups, rows), dense: the largest |a| or |b|; NaN where one is NaN */
} rapt_additive_rows;

/* w tanh(a + b) = w − 1 / (offset + folded e^{2b}) with offset = ½ / w and folded = offset · e^{2a} saves a
 * multiplication. The weights are divided by a power of two, `scale`, which makes the largest at most 1, and kept away
 * from 0. */
typedef struct rapt_additive_constants {
    void *weight, *offset; /* padded */
    double scale;
} rapt_additive_constants;

typedef struct rapt_additive_attention {
    rapt_dtype dtype;
    rapt_raw_mask mask; /* the sizes of the scores too */
    rapt_raw_normalizer normalizer;
    const rapt_raw_changes *changes;            /* of the scores, before the mask's biases; NULL: none */
    int64_t first_item;                         /* of a packed batch: which of its sequences this is */
    int64_t groups, hidden, padded, value_size; /* padded: RAPT_ADDITIVE_PADDED(hidden) */
    rapt_additive_rows queries, keys;
    const void *folded;     /* as queries.powers; NULL where no scores are made */
    const void *raw_weight; /* (hidden) */
    rapt_additive_constants constants;
    rapt_raw_grid values; /* (batch, groups, keys, value_size), dense in the last axis */
} rapt_additive_attention;

/* Whole vectors of any level and type. */
#define RAPT_ADDITIVE_PADDED(hidden) (((hidden) + 15) / 16 * 16)

/* Queries are cut into blocks of so many, the hidden units into slices; the keys of one call into tiles. */
enum { rapt_additive_block = 16, rapt_additive_slice = 64, rapt_additive_tile = 128 };

/* What forward gives, in kernels from the first query of the piece on; rows are dense. */
typedef struct rapt_additive_output {
    void *out; /* (batch, heads, queries, value_size) */
    /* (batch, heads, queries, 2): the largest score m, and 1 / Σ exp(s − m), the sink among them, or, where a query
     * sees nothing, 0; of sigmoid −term, and 1 or 0 */
    void *statistics;
    void *weights; /* (batch, heads, queries, keys), before dropout; NULL: not wanted */
    bool joins;    /* out and statistics are those of other keys, which these join; for all rows at once */
} rapt_additive_output;

/* Parts of forward over the same queries and neighbouring pieces of the keys, to be put together. Part p of a row has
 * its numbers so many elements behind part p − 1. */
typedef struct rapt_additive_parts {
    int64_t count, keys; /* keys: of a piece */
    const void *out, *statistics;
    int64_t out_step, statistics_step;
} rapt_additive_parts;

/* A chunk of queries in backward: rows first … last − 1 of every head of every item. */
typedef struct rapt_additive_chunk {
    int64_t first, last;
} rapt_additive_chunk;

/* The rows of a chunk, of mask.keys elements each and dense within a head. Strides in elements. */
typedef struct rapt_additive_rows_of_chunk {
    void *data;
    int64_t item, head;
} rapt_additive_rows_of_chunk;

typedef struct rapt_additive_gradient {
    rapt_raw_grid gradient;             /* of out, (batch, heads, queries, value_size), dense in the last axis */
    rapt_raw_grid out;                  /* likewise, where more keys than these gave it; NULL: these are all */
    rapt_raw_grid d_weights;            /* of the weights, (batch, heads, queries, keys) likewise; NULL: none */
    const void *statistics;             /* dense (batch, heads, queries, 2), as forward gave them */
    void *weights;                      /* dense (batch, heads, queries, keys) as forward gave them; NULL: made again */
    rapt_additive_rows_of_chunk pooled; /* the weights after dropout, */
    bool stores_pooled;                 /* which are to be written */
    rapt_additive_rows_of_chunk scores; /* the gradient of the scores */
    rapt_additive_rows_of_chunk old_scores; /* before they are changed, if they are */
    double *gathered;                       /* where the task gathers for these changes; NULL: no gradient is wanted */
    void *queries, *keys, *values;          /* gradients to write, dense; each only by the kernel of its name */
    bool adds_keys, adds_values;            /* those two are there already and grow */
    void *raw_weight;                       /* (batch, groups, hidden): of each item and group, */
    bool adds_raw_weight;                   /* which likewise may be there already */
    void *bias;                             /* dense (batch, heads, queries, keys); NULL: not wanted */
    void *relative_bias;                    /* dense (batch, heads, queries, 2·reach + 1), zeros; NULL: not wanted */
} rapt_additive_gradient;

/* A piece is one of the rows of one head, no more than a block of them: each head counts as a group. */
typedef struct rapt_additive_kernels {
    /* weight and offset of the constants from `hidden` raw weights; gives the scale */
    double (*constants)(int64_t hidden, const void *raw_weight, const rapt_additive_constants *out);
    /* powers = factors · e^{2x} for dense rows; factors NULL: factor for all; largest may be NULL */
    void (*powers)(int64_t rows, int64_t hidden, const void *x, double factor, const void *factors, void *powers,
                   void *largest);
    /* For the keys of the piece alone. */
    void (*forward)(const rapt_additive_attention *call, const rapt_attention_piece *piece,
                    const rapt_additive_output *output);
    /* Output of `rows` rows of a head from what calls gave for different keys. */
    void (*merge)(const rapt_additive_attention *call, int64_t head, int64_t rows, const rapt_additive_parts *parts,
                  const rapt_additive_output *output);
    /* The gradient of the scores of a block of queries */
    void (*scores_backward)(const rapt_additive_attention *call, const rapt_additive_gradient *g,
                            const rapt_additive_chunk *chunk, const rapt_attention_piece *piece);
    /* Adds what a chunk gives to the gradients of queries, keys and weights, one slice of the hidden units */
    void (*hidden_backward)(const rapt_additive_attention *call, const rapt_additive_gradient *g,
                            const rapt_additive_chunk *chunk, int64_t item, int64_t group, int64_t first_hidden);
    /* The same to the gradient of the values, one tile of the keys */
    void (*values_backward)(const rapt_additive_attention *call, const rapt_additive_gradient *g,
                            const rapt_additive_chunk *chunk, int64_t item, int64_t group, int64_t first_key);
} rapt_additive_kernels;

#endif
