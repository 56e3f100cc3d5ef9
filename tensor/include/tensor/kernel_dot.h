/* What the kernels of fused dot-product attention are told: raw numbers and strides. */
#ifndef RAPT_TENSOR_KERNEL_DOT_H
#define RAPT_TENSOR_KERNEL_DOT_H

#include <rapt/base.h>

#include "tensor/attention_tasks.h"
#include "tensor/raw_mask.h"
#include "tensor/raw_normalizer.h"
#include "tensor/score_changes.h"

/* Rows of numbers: (item, head or group, place). Strides in elements; the elements of a row are dense. */
typedef struct rapt_raw_rows {
    void *data;
    int64_t strides[3];
} rapt_raw_rows;

/* Some of the keys, of which more come in other calls. */
typedef struct rapt_key_part {
    int64_t first, last; /* their numbers among all: the others' are not there, and are not read */
    bool joins;          /* forward: out and statistics are those of other keys, which these join */
} rapt_key_part;

/* out = weights · values, the weights by the normaliser from the scores and the mask's biases; the scores are
 * scale · qᵀk, or −½ ‖scale · q − k‖². Head h reads group h · groups / heads. */
typedef struct rapt_dot_attention {
    rapt_dtype dtype;
    int64_t groups, size, value_size; /* of a query and key, and of a value */
    double scale;
    bool is_gaussian;                /* scores are −½ ‖scale · q − k‖² */
    const rapt_raw_changes *changes; /* of the scores, before the mask's biases; NULL: none */
    int64_t first_item;              /* of a packed batch: which of its sequences this is */
    double *gathered;                /* backward: where the task's first head gathers for the changes, or NULL */
    rapt_raw_normalizer normalizer;
    rapt_raw_mask mask;
    const rapt_key_part *part;  /* NULL: all keys */
    rapt_raw_rows queries;      /* (batch, heads, queries, size) */
    rapt_raw_rows keys, values; /* (batch, groups, keys, size or value_size) */
    rapt_raw_rows out;          /* (batch, heads, queries, value_size) */
    /* (batch, heads, queries, 2), dense: the largest score of the row and Σ exp(score − largest), the sink among them;
     * of sigmoid −term and 1; ∞ and 1 for a query that sees nothing */
    void *statistics;
    rapt_raw_rows gradient;           /* backward: of out */
    rapt_raw_rows weights, d_weights; /* (batch, heads, queries, keys): forward's, and their gradient; NULL: none */
    rapt_raw_rows d_queries, d_keys, d_values; /* written whole, */
    bool adds_keys, adds_values; /* or added to what is there: where no query sees a key, nothing is touched */
    bool adds_queries;           /* d_queries likewise; its kernels are then given a part */
    void *d_scores;              /* (batch, heads, queries, keys), dense, zeros before; NULL: not wanted */
    void *d_relative_bias;       /* (batch, heads, queries, 2·reach + 1) likewise */
} rapt_dot_attention;

/* Elements of what some keys give to the gradient of a query: a row of it, and of Gaussian scores the mean of these
 * keys under the weights and the sum of the gradients of their scores. */
static inline int64_t rapt_dot_part_size(const rapt_dot_attention *call)
{
    return call->is_gaussian ? 2 * call->size + 1 : call->size;
}

typedef struct rapt_dot_kernels {
    int tile_rows; /* rows come in multiples of so many without waste */
    size_t (*forward_bytes)(const rapt_dot_attention *call, int64_t rows); /* of scratch */
    /* For the keys of the piece alone: writes out and statistics. */
    void (*forward)(const rapt_dot_attention *call, const rapt_attention_piece *piece, void *scratch);
    /* out from what `parts` calls gave for different keys: outs (parts, batch·heads·queries, value_size), and the
     * statistics (parts, batch·heads·queries, 2); rows count over batch, heads, queries. */
    void (*merge)(const rapt_dot_attention *call, int64_t parts, const void *outs, const void *statistics,
                  int64_t first_row, int64_t last_row);
    /* The weights before dropout, (batch, heads, queries, keys), dense. */
    void (*weights)(const rapt_dot_attention *call, const rapt_attention_piece *piece, void *scratch, void *weights);
    size_t (*backward_bytes)(const rapt_dot_attention *call, int64_t rows);
    /* Writes d_keys and d_values of the piece's keys, or adds to them. What these keys give to the gradient of the
     * queries goes to `part`, (rows of the group, part size), dense; or, where that is NULL because they are all keys,
     * to d_queries. */
    void (*backward)(const rapt_dot_attention *call, const rapt_attention_piece *piece, void *scratch, void *part);
    /* d_queries from `parts` (parts, batch·heads·queries, part size), rows as in merge; overwrites the first part. */
    void (*sum_parts)(const rapt_dot_attention *call, int64_t parts, void *part, int64_t first_row, int64_t last_row);
} rapt_dot_kernels;

#endif
