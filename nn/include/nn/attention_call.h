/* What attention hands to the fused way of a scoring function. */
#ifndef RAPT_NN_ATTENTION_CALL_H
#define RAPT_NN_ATTENTION_CALL_H

#include <rapt/scoring.h>

#include "nn/mask.h"
#include "nn/score_modifications.h"

struct rapt_attention_call {
    /* (B, heads, Q, q), prepared keys (B, groups, K, k), values (B, groups, K, v), or all without the axis of heads,
     * and the result likewise; any strides. What no query sees may be infinite or undefined. */
    rapt_tensor *queries, *keys, *values;
    const rapt_resolved_changes *changes; /* of the scores; NULL: none */
    const rapt_resolved_mask *mask; /* the scoring function's relative_bias is in it already; never fills_million */
    bool is_sigmoid;                /* is that the normaliser, not softmax? */
    /* (heads), dense, of the values' dtype: its biases, or the sinks of softmax; NULL: no sinks */
    rapt_tensor *head_terms;
    /* 0 outside training. The weight of (b, h, i, j) is dropped as rapt_drop would drop element ((b·heads + h)·Q +
     * i)·K + j of the dense weights: one reservation of random numbers, made when the op is called */
    double dropout;
    rapt_tensor **weights; /* if not NULL: gets the weights (B, heads, Q, K), before dropout */
};

#endif
