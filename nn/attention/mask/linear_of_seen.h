/* A linear layer on the rows that some query sees, and on no others. */
#ifndef RAPT_NN_LINEAR_OF_SEEN_H
#define RAPT_NN_LINEAR_OF_SEEN_H

#include <rapt/layers.h>

/* The linear layer's output for the rows of x (B, groups, K, size), or (B, K, size) for one group, that are in
 * seen_keys, bool (B, groups, K, 1); zeros for the others, which are not read. */
rapt_tensor *rapt_linear_of_seen(rapt_linear *linear, rapt_tensor *x, rapt_tensor *seen_keys);

#endif
