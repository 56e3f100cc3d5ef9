/* Attention pooling for layers that resolve the mask, or want the weights, themselves. */
#ifndef RAPT_NN_ATTENTION_H
#define RAPT_NN_ATTENTION_H

#include <rapt/attention.h>

#include "nn/mask.h"

/* rapt_attention_forward under a mask that is resolved already; NULL: it is not. */
rapt_tensor *rapt_attention_forward_resolved(rapt_attention *attention, rapt_tensor *queries, rapt_tensor *keys,
                                             rapt_tensor *values, const rapt_mask *mask,
                                             const rapt_resolved_mask *resolved);

/* rapt_attention_pool that also gives the weights of this call, unless `weights` is NULL. */
rapt_tensor *rapt_attention_pool_weighing(rapt_attention *attention, rapt_tensor *queries, rapt_tensor *prepared_keys,
                                          rapt_tensor *values, const rapt_mask *mask, rapt_tensor **weights);

#endif
