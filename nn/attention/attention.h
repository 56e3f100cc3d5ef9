/* Attention pooling for layers that resolve the mask, or want the weights, themselves. */
#ifndef RAPT_NN_ATTENTION_H
#define RAPT_NN_ATTENTION_H

#include <rapt/multi_head.h>

#include "nn/mask.h"

/* Are the fields what they may be? They may have been set by hand. False after an error. */
bool rapt_attention_check(const rapt_attention *attention);

/* rapt_attention_forward under a mask that is resolved already (NULL: it is not) that also gives the weights of this
 * call, unless `weights` is NULL. */
rapt_tensor *rapt_attention_forward_resolved(rapt_attention *attention, rapt_tensor *queries, rapt_tensor *keys,
                                             rapt_tensor *values, const rapt_mask *mask,
                                             const rapt_resolved_mask *resolved, rapt_tensor **weights);

/* rapt_attention_pool that also gives the weights of this call, unless `weights` is NULL. */
rapt_tensor *rapt_attention_pool_weighing(rapt_attention *attention, rapt_tensor *queries, rapt_tensor *prepared_keys,
                                          rapt_tensor *values, const rapt_mask *mask, rapt_tensor **weights);

/* rapt_multi_head_attention_forward likewise. */
rapt_tensor *rapt_multi_head_attention_weigh(rapt_multi_head_attention *attention, rapt_tensor *queries,
                                             rapt_tensor *keys, rapt_tensor *values, const rapt_mask *mask,
                                             rapt_attention_cache *cache, rapt_tensor **weights);

#endif
