/* What forward and backward of fused additive attention share: blocks of queries, and the sequences of a packed
 * batch. */
#ifndef RAPT_TENSOR_ADDITIVE_SEQUENCES_H
#define RAPT_TENSOR_ADDITIVE_SEQUENCES_H

#include "tensor/kernel_additive.h"

/* Tasks for blocks of the queries [first, last) of each head. */
rapt_attention_tasks rapt_additive_cut_queries(const rapt_additive_attention *call, int64_t first, int64_t last);

/* One sequence of a packed batch as a call of its own; another batch stays one call. */
rapt_additive_attention rapt_additive_call_of_sequence(const rapt_additive_attention *call, int64_t sequence);

/* Makes a task's piece one of its sequence, if there are any. False where that has nothing there. */
bool rapt_additive_enter_sequence(const rapt_additive_attention *call, const rapt_raw_place *place,
                                  rapt_attention_piece *piece);

/* The element so many rows behind; NULL of NULL. */
static inline void *rapt_moved(const void *data, int64_t rows, int64_t row, int64_t bytes)
{
    return data ? (char *)(uintptr_t)data + rows * row * bytes : NULL;
}

#endif
