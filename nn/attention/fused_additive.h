/* Additive attention without a (queries × keys × hidden) tensor. */
#ifndef RAPT_NN_FUSED_ADDITIVE_H
#define RAPT_NN_FUSED_ADDITIVE_H

#include "nn/attention_call.h"

/* Projected keys (…, K, hidden) as they are, with their exponentials beside them: whoever asks them again and again has
 * these made once. */
rapt_tensor *rapt_additive_keys(rapt_tensor *projected);

/* weightᵀ tanh(queries + keys) as a matrix (…, Q, K) of projected queries (…, Q, hidden) and keys (…, K, hidden). */
rapt_tensor *rapt_additive_scores(rapt_tensor *queries, rapt_tensor *keys, rapt_tensor *weight);

/* softmax(weightᵀ tanh(queries + keys)) values, under the mask and dropout of the call. Its queries and keys are not
 * looked at; here they are projected: (B, heads, Q, hidden) and (B, groups, K, hidden). weight has `hidden`
 * elements. */
rapt_tensor *rapt_fused_additive(rapt_tensor *queries, rapt_tensor *keys, rapt_tensor *weight,
                                 const rapt_attention_call *call);

/* The parameters W_q (hidden, query size) and w_v (1, hidden) of an additive scoring function; false if it is
 * another. */
bool rapt_additive_scoring_weights(const rapt_scoring *scoring, rapt_tensor **query, rapt_tensor **value);

#endif
