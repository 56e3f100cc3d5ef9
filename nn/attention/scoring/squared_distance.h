/* Squared distances between queries and keys, and the Gaussian of them. For scoring functions, which have checked both
 * by rapt_check_pair. */
#ifndef RAPT_NN_SQUARED_DISTANCE_H
#define RAPT_NN_SQUARED_DISTANCE_H

#include "scoring.h"

/* ‖q − k‖²: queries (…, Q, d), keys (…, K, d) → (…, Q, K), leading axes broadcast. Summed from the differences, so that
 * near vectors lose no digits to their length. */
rapt_tensor *rapt_squared_distance(rapt_tensor *queries, rapt_tensor *keys);

/* (…, n, d) → (…, 1, d), without a gradient: what to take off vectors whose differences alone count. The median of each
 * coordinate of up to 15 of them, so that one which is far from the others, or NaN, costs theirs no digits. What is not
 * finite counts as 0, as does one more number where their count is even. */
rapt_tensor *rapt_common_vector(rapt_tensor *x);

/* −½ ‖q − k‖² / width² */
rapt_tensor *rapt_log_gaussian(rapt_tensor *queries, rapt_tensor *keys, const rapt_divisor *width);

#endif
