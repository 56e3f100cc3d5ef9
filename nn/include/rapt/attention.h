/* Attention pooling = scoring function → mask → softmax → dropout → weighted sum of the values. */
#ifndef RAPT_ATTENTION_H
#define RAPT_ATTENTION_H

#include <rapt/layers.h>

RAPT_BEGIN_DECLS

/* Softmax over the last axis of scores (B, Q, K) in which a row sees only its first valid_lengths keys: lengths (B), one for
 * all queries of an item, or (B, Q); of any number type; NULL: all keys. Keep key j iff j < length. Masked keys get weight 0
 * exactly; a row of length 0 gives zeros and zero gradients. */
RAPT_API rapt_tensor *rapt_masked_softmax(rapt_tensor *scores, rapt_tensor *valid_lengths);

/* A scoring function a(q, k): a module with two functions. A layer of your own embeds it as its first member. */
typedef struct rapt_scoring rapt_scoring;
struct rapt_scoring {
    rapt_module module;
    /* What can be computed once for all queries, from keys (B, K, k); NULL: the keys as they are. */
    rapt_tensor *(*prepare)(rapt_scoring *scoring, rapt_tensor *keys);
    /* Queries (B, Q, q) and prepared keys to scores (B, Q, K). */
    rapt_tensor *(*score)(rapt_scoring *scoring, rapt_tensor *queries, rapt_tensor *prepared_keys);
};

/* qᵀk / √d (Vaswani et al. 2017). */
RAPT_API rapt_scoring *rapt_scaled_dot_product_scoring_new(void);

/* w_vᵀ tanh(W_q q + W_k k) (Bahdanau et al. 2014), bias-free; parameters W_q.weight, W_k.weight, w_v.weight. */
RAPT_API rapt_scoring *rapt_additive_scoring_new(int64_t query_size, int64_t key_size, int64_t hidden);

/* Attention pooling over any scoring function. */
typedef struct rapt_attention {
    rapt_module module;
    rapt_scoring *scoring;
    double dropout;
    bool keep_weights;    /* set it to keep the weights of each forward, */
    rapt_tensor *weights; /* (B, Q, K), before dropout, outside the graph; owned by the layer, NULL before the first */
} rapt_attention;

/* Owns the scoring function from now on (also after an error, when it gives NULL). */
RAPT_API rapt_attention *rapt_attention_new(rapt_scoring *scoring, double dropout);
RAPT_API rapt_attention *rapt_dot_product_attention_new(double dropout);
RAPT_API rapt_attention *rapt_additive_attention_new(int64_t query_size, int64_t key_size, int64_t hidden,
                                                     double dropout);

/* Queries (B, Q, q), keys (B, K, k), values (B, K, v), valid lengths as above → (B, Q, v). */
RAPT_API rapt_tensor *rapt_attention_forward(rapt_attention *attention, rapt_tensor *queries, rapt_tensor *keys,
                                             rapt_tensor *values, rapt_tensor *valid_lengths);

/* The same in two parts, for a decoder that asks the same keys again and again: prepare once, then pool. */
RAPT_API rapt_tensor *rapt_attention_prepare(rapt_attention *attention, rapt_tensor *keys);
RAPT_API rapt_tensor *rapt_attention_pool(rapt_attention *attention, rapt_tensor *queries, rapt_tensor *prepared_keys,
                                          rapt_tensor *values, rapt_tensor *valid_lengths);

/* h heads, each attention pooling of its own projections; their results side by side, projected once more:
 * W_o [f(W_q q, W_k k, W_v v)]. Parameters W_q, W_k, W_v, W_o. */
typedef struct rapt_multi_head_attention {
    rapt_module module;
    rapt_linear *query, *key, *value, *output;
    rapt_attention *pooling;
    int64_t hidden;
    int heads;
} rapt_multi_head_attention;

typedef struct rapt_multi_head_attention_config {
    int64_t query_size, key_size, value_size; /* 0: hidden */
    int64_t hidden;                           /* of the projections, all heads together, and of the output */
    int heads;                                /* hidden must be a multiple of it */
    bool bias;                                /* of the four linear layers */
    double dropout;                           /* of the default pooling */
    rapt_attention *pooling; /* owned by the layer; sizes are hidden / heads. NULL: scaled dot product */
} rapt_multi_head_attention_config;

RAPT_API rapt_multi_head_attention *rapt_multi_head_attention_new(const rapt_multi_head_attention_config *config);

/* Shapes as rapt_attention_forward, output (B, Q, hidden). pooling->weights is (B·heads, Q, K), item by item. */
RAPT_API rapt_tensor *rapt_multi_head_attention_forward(rapt_multi_head_attention *attention, rapt_tensor *queries,
                                                        rapt_tensor *keys, rapt_tensor *values,
                                                        rapt_tensor *valid_lengths);

RAPT_END_DECLS

#endif
