/* Sums by relative position. */
#ifndef RAPT_NN_RELATIVE_POSITION_H
#define RAPT_NN_RELATIVE_POSITION_H

#include "nn/mask.h"

/* rapt_by_relative_position with by_query, for queries as the mask places them: (B, heads, Q, 2R + 1) → (B, heads, Q,
 * K), or both without heads. */
rapt_tensor *rapt_by_place(rapt_tensor *table, const rapt_resolved_mask *mask);

/* Its transpose: (B, heads, Q, K) → (B, heads, Q, 2·reach + 1), or both without heads: what has one clamped relative
 * position summed. */
rapt_tensor *rapt_sum_by_place(rapt_tensor *x, int64_t reach, const rapt_resolved_mask *mask);

#endif
