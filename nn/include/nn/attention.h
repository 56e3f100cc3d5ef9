/* Attention pooling for layers that see to padding themselves. */
#ifndef RAPT_NN_ATTENTION_H
#define RAPT_NN_ATTENTION_H

#include <rapt/attention.h>

#include "nn/mask.h"

/* rapt_attention_forward for keys and values that hold nothing infinite or undefined where no query sees them, as after
 * rapt_hide_unseen and a projection. */
rapt_tensor *rapt_attention_forward_hidden(rapt_attention *attention, rapt_tensor *queries, rapt_tensor *keys,
                                           rapt_tensor *values, const rapt_mask *mask);

#endif
