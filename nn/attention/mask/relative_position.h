/* Sums by relative position. */
#ifndef RAPT_NN_RELATIVE_POSITION_H
#define RAPT_NN_RELATIVE_POSITION_H

#include <rapt/mask.h>

/* The transpose of rapt_by_relative_position with by_query: (…, Q, K) → (…, Q, 2·reach + 1), what has one clamped
 * relative position summed. */
rapt_tensor *rapt_sum_by_relative_position(rapt_tensor *x, int64_t reach, int64_t offset);

#endif
