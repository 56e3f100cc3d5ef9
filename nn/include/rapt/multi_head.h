/* Multi-head attention: W_o [f(W_q q, W_k k, W_v v)], with any attention pooling as f. */
#ifndef RAPT_MULTI_HEAD_H
#define RAPT_MULTI_HEAD_H

#include <rapt/attention.h>
#include <rapt/positions.h>

RAPT_BEGIN_DECLS

/* Projected keys and values of earlier steps, for inference: a decoder step computes only its own. Keys are kept as the
 * pooling gets them, with rotary positions turned already. */
typedef struct rapt_attention_cache {
    rapt_tensor *keys, *values; /* (B, groups, capacity, size); NULL before the first step; the capacity doubles */
    int64_t length;             /* how many of them are filled */
    /* int64 (B): so many of these, the first, an item does not have, whose sequence is shorter; NULL: it has all.
     * Filled by packed sequences, which are then continued item by item. Places are those among all keys then, but for
     * rotary positions, which begin at each item's first. That changes nothing for what goes by the difference of two
     * places; a mask's block, prefix_lengths and rule are refused; modifications of scores that look at a place itself,
     * as a prefix does, are told these. */
    rapt_tensor *missing;
} rapt_attention_cache;

/* Forgets everything. A zeroed struct is an empty cache. */
RAPT_API void rapt_attention_cache_clear(rapt_attention_cache *cache);

/* Item b becomes what item rows[b] was (rows: integers (B), B may change), as beam search needs it; an empty cache
 * stays empty. False after an error; the cache is then as it was. */
RAPT_API bool rapt_attention_cache_select(rapt_attention_cache *cache, rapt_tensor *rows);

/* Parameters by the names and layouts of PyTorch's MultiheadAttention: in_proj_weight (q, k and v below one another)
 * where queries, keys and values have one size, else q_proj_weight, k_proj_weight and v_proj_weight; in_proj_bias;
 * out_proj. Initial values are PyTorch's too: the projections' weights uniform within ±√(6 / (rows + columns))
 * (Xavier), those of out_proj within ±1/√in, as any linear layer's, and biases 0. Additive pooling's parameters
 * follow as attention.W_q.weight and so on. Inputs that are one tensor are projected by one product where their
 * weights are packed. */
typedef struct rapt_multi_head_attention {
    rapt_module module;
    rapt_tensor *in_proj_weight; /* (heads·size + groups·size + groups·value, in), or NULL */
    rapt_tensor *q_proj_weight, *k_proj_weight, *v_proj_weight; /* (…, in), or NULL */
    rapt_tensor *in_proj_bias;                                  /* or NULL */
    rapt_linear *out_proj;
    rapt_attention *pooling;
    rapt_rotary *rotary; /* or NULL */
    /* (heads), multiplies each head's result; NULL: none. The layer keeps the share given to
     * rapt_multi_head_attention_set_head_mask */
    rapt_tensor *head_mask;
    int64_t heads, groups;
    int64_t head_size, value_size;  /* of one head */
    rapt_rms_norm *q_norm, *k_norm; /* or NULL */
} rapt_multi_head_attention;

/* Whose names the parameters have. GPT-2's are c_attn.weight and c_attn.bias for in_proj_weight and in_proj_bias,
 * c_proj for out_proj; the layouts are the same. */
typedef enum rapt_parameter_names { RAPT_NAMES_PYTORCH, RAPT_NAMES_GPT2 } rapt_parameter_names;

/* The sizes of the layer and its parts. Zeros are the defaults named beside them. */
typedef struct rapt_multi_head_attention_config {
    int64_t hidden; /* of the projected queries, all heads together */
    int64_t heads;  /* hidden must be a multiple of it */
    int64_t groups; /* heads that keys and values have; divides heads; 1: multi-query; 0: heads */
    int64_t query_size, key_size, value_size; /* of the inputs; 0: hidden */
    int64_t value_hidden;                     /* of the projected values, if there were as many as heads; 0: hidden */
    int64_t output_size;                      /* 0: hidden */
    bool bias;                                /* of all projections */
    double dropout;                           /* of the default pooling; an error beside another */
    /* Children of the layer, as rapt_module_add_child has it (also after an error); one may be given to several
     * layers. */
    rapt_attention *pooling;    /* sees vectors of hidden / heads. NULL: scaled dot product */
    bool sinks;                 /* the pooling learns one for each head: rapt_attention_learn_sinks */
    rapt_rotary *rotary;        /* turns queries and keys by their positions. NULL: none */
    rapt_parameter_names names; /* GPT-2's: queries, keys and values must have one size */
    /* RMSNorm of each head's queries and keys, before rotary positions, with the weights q_norm and k_norm (head size)
     * for all heads: QK-Norm (Henry et al. 2020), as Qwen 3 has it */
    bool norm_heads;
} rapt_multi_head_attention_config;

/* NULL after an error, such as sizes that the heads do not divide. */
RAPT_API rapt_multi_head_attention *rapt_multi_head_attention_new(const rapt_multi_head_attention_config *config);

/* Queries (B, Q, q), keys (B, K, k), values (B, K, v) → (B, Q, output size). pooling->weights is (B, heads, Q, K).
 * mask may be NULL; a seen or bias of three axes, which would be (heads, Q, K), is refused, since (B, Q, K) is
 * easily meant: write (B, 1, Q, K) or (1, heads, Q, K). Of keys that no query sees, and queries that see none, not
 * even NaN has an effect; what is both, as in self-attention, is read where it sees or is seen. cache (may be NULL;
 * not while a gradient is recorded): the projected keys and values are appended to what it holds, and the queries
 * see all of it; the mask's offset is moved on by its length before. Keys and values NULL: only what it holds, with
 * the mask's offset as it is. With rotary positions query 0 stands at the mask's offset so moved. After an error the
 * cache holds what it held before. Where the mask has starts, sequences are packed: queries (rows, q), keys (rows, k)
 * and values (rows, v) → (rows, output size), each sequence at positions of its own; a cache must be empty then, and
 * holds them as items that end at one place. */
RAPT_API rapt_tensor *rapt_multi_head_attention_forward(rapt_multi_head_attention *attention, rapt_tensor *queries,
                                                        rapt_tensor *keys, rapt_tensor *values, const rapt_mask *mask,
                                                        rapt_attention_cache *cache);

/* Prunes or weighs heads: mask (heads) of the layer's dtype, may require a gradient (its gradient is a head's
 * importance: Michel et al. 2019); NULL: all heads again. It stays the tensor that it is where rapt_module_cast gives
 * the layer another dtype, and takes part converted. False after an error, such as another dtype than the layer's. */
RAPT_API bool rapt_multi_head_attention_set_head_mask(rapt_multi_head_attention *attention, rapt_tensor *mask);

RAPT_END_DECLS

#endif
