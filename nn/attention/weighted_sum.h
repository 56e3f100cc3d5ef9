/* The weighted sum of the values. */
#ifndef RAPT_NN_WEIGHTED_SUM_H
#define RAPT_NN_WEIGHTED_SUM_H

#include <rapt/autograd.h>

/* (…, Q, K) and (…, K, v) of the same leading axes → (…, Q, v): the matrix product, in which a weight of exactly 0
 * takes nothing, even from NaN or infinity; likewise in its derivatives. */
rapt_tensor *rapt_weighted_sum(rapt_tensor *weights, rapt_tensor *values);

#endif
