/* Dot-product attention without a matrix of scores. */
#ifndef RAPT_NN_FUSED_DOT_H
#define RAPT_NN_FUSED_DOT_H

#include "nn/attention_call.h"

/* scale · queries · keysᵀ as a matrix (…, Q, K); the scale is on the queries. */
rapt_tensor *rapt_dot_scores(rapt_tensor *queries, rapt_tensor *keys, double scale);

/* softmax(scale · queries · keysᵀ) values, under the mask and dropout of the call. Its queries and keys are not looked
 * at; here they are what the scoring function made of them: (B, heads, Q, d) and (B, groups, K, d), or without the axis
 * of heads as the values. */
rapt_tensor *rapt_fused_dot(rapt_tensor *queries, rapt_tensor *keys, double scale, const rapt_attention_call *call);

/* The same with the scores −½ ‖q − k‖², summed from the differences. */
rapt_tensor *rapt_fused_gaussian(rapt_tensor *queries, rapt_tensor *keys, const rapt_attention_call *call);

#endif
