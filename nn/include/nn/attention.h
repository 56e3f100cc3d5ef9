/* Attention pooling for layers that see to padding, or want the weights, themselves. */
#ifndef RAPT_NN_ATTENTION_H
#define RAPT_NN_ATTENTION_H

#include <rapt/attention.h>

#include "nn/mask.h"

/* rapt_attention_forward for keys and values that hold nothing infinite or undefined where no query sees them, as after
 * rapt_hide_unseen and a projection. */
rapt_tensor *rapt_attention_forward_hidden(rapt_attention *attention, rapt_tensor *queries, rapt_tensor *keys,
                                           rapt_tensor *values, const rapt_mask *mask);

/* rapt_attention_pool that also gives the weights of this call, unless `weights` is NULL. */
rapt_tensor *rapt_attention_pool_weighing(rapt_attention *attention, rapt_tensor *queries, rapt_tensor *prepared_keys,
                                          rapt_tensor *values, const rapt_mask *mask, rapt_tensor **weights);

#endif
