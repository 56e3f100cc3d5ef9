/* The layer of attention pooling, for those that make it or use it in parts. */
#ifndef RAPT_NN_ATTENTION_H
#define RAPT_NN_ATTENTION_H

#include <rapt/attention.h>

#include "nn/mask.h"

/* rapt_attention_new in two parts, so that the scoring function can be made in between: what it draws is then this
 * constructor's. NULL after an error. */
rapt_attention *rapt_attention_begin(double dropout);
rapt_attention *rapt_attention_end(rapt_attention *attention, rapt_scoring *scoring);

/* rapt_attention_forward for layers that see to padding themselves: keys and values hold nothing infinite or undefined
 * where no query sees them, as after rapt_hide_unseen and a projection. */
rapt_tensor *rapt_attention_forward_hidden(rapt_attention *attention, rapt_tensor *queries, rapt_tensor *keys,
                                           rapt_tensor *values, const rapt_mask *mask);

#endif
