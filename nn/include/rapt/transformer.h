/* The blocks of Transformers, by the names and layouts of PyTorch's modules. */
#ifndef RAPT_TRANSFORMER_H
#define RAPT_TRANSFORMER_H

#include <rapt/multi_head.h>

RAPT_BEGIN_DECLS

/* What stands between the two linear layers. */
typedef enum rapt_feed_forward_kind {
    RAPT_FEED_FORWARD_RELU,
    RAPT_FEED_FORWARD_GELU,
    RAPT_FEED_FORWARD_SWIGLU,
    RAPT_FEED_FORWARD_GELU_TANH /* rapt_gelu_tanh */
} rapt_feed_forward_kind;

/* What the layers of a Transformer share. */
typedef struct rapt_transformer_config {
    int64_t hidden;        /* d_model */
    int64_t heads, groups; /* groups as in rapt_multi_head_attention_config */
    int64_t feed_forward;  /* the inner size */
    rapt_feed_forward_kind kind;
    int encoder_layers, decoder_layers;
    bool norm_first;             /* pre-norm: x + f(norm x); else post-norm: norm(x + f x) */
    bool attention_bias;         /* of the attention's projections; PyTorch: true, Dive into Deep Learning: false */
    bool no_bias;                /* of the feed-forward networks and the norms; PyTorch: false */
    bool final_norm;             /* a norm after the last layer of encoder and decoder: PyTorch's Transformer has it */
    double dropout;              /* of what each sublayer adds */
    double attention_dropout;    /* of the weights */
    double feed_forward_dropout; /* of the inner activations */
    /* The scoring function of each attention, for vectors of head_size; NULL: scaled dot product. It may give one
     * for all, in which the program holds a share (rapt_module_retain) until the Transformer is made. */
    rapt_scoring *(*scoring)(int64_t head_size, void *context);
    void *context;
    bool sinks;                 /* softmax learns one for each head of each attention */
    bool rotary;                /* positions turn queries and keys of self-attention; one table for all layers */
    rapt_parameter_names names; /* GPT-2's: of an encoder only */
    bool recompute;             /* the layers' field */
    bool rms_norm;              /* RMSNorm in place of layer norm; it has no bias */
    bool rotary_halves;         /* rapt_rotary's field, an error without rotary positions */
    double rotary_base;         /* likewise; 0: 10000 */
    double norm_epsilon;        /* 0: that of the norm: 1e-5, and 1e-6 of RMSNorm */
    int64_t head_size;          /* of queries, keys and values; 0: hidden / heads */
    bool norm_heads;            /* as in rapt_multi_head_attention_config */
    rapt_rotary_scaling rotary_scaling; /* rapt_rotary's field, an error without rotary positions */
} rapt_transformer_config;

/* The sizes of a feed-forward network. */
typedef struct rapt_feed_forward_config {
    int64_t in, inner, out;
    rapt_feed_forward_kind kind;
    bool bias;
    double dropout; /* of the inner activations */
    rapt_parameter_names names;
} rapt_feed_forward_config;

/* linear2(dropout(activation(linear1 x))); SwiGLU: linear2(dropout(silu(linear1 x) · linear3 x)) (Shazeer 2020). By
 * GPT-2's names c_fc, c_proj and c_gated. GELU is the exact one. */
typedef struct rapt_feed_forward {
    rapt_module module;
    rapt_linear *linear1, *linear2, *linear3; /* linear3 is NULL but for SwiGLU */
    rapt_feed_forward_kind kind;
    double dropout;
} rapt_feed_forward;

/* NULL after an error. */
RAPT_API rapt_feed_forward *rapt_feed_forward_new(const rapt_feed_forward_config *config);
/* x (…, in) → (…, out) */
RAPT_API rapt_tensor *rapt_feed_forward_forward(rapt_feed_forward *feed_forward, rapt_tensor *x);

/* The way past a sublayer f and the norm that goes with it. Post-norm: norm(x + dropout f(x)). Pre-norm:
 * x + dropout f(norm x). Parameters weight and bias of the norm. */
typedef struct rapt_add_norm {
    rapt_module module;
    rapt_layer_norm *norm; /* NULL: rms_norm */
    double dropout;
    bool norm_first;         /* pre-norm; false at first */
    rapt_rms_norm *rms_norm; /* NULL: norm */
} rapt_add_norm;

/* In place of RAPT_BIAS or RAPT_NO_BIAS: RMSNorm (Zhang & Sennrich 2019), which has no bias, for layer norm. */
enum rapt_add_norm_flags { RAPT_RMS_NORM = 2 };

/* flags: RAPT_BIAS or RAPT_NO_BIAS, of a layer norm, or RAPT_RMS_NORM. */
RAPT_API rapt_add_norm *rapt_add_norm_new(int64_t size, int flags, double dropout);
/* What the sublayer sees of x: post-norm, x itself; pre-norm, norm x. */
RAPT_API rapt_tensor *rapt_add_norm_input(rapt_add_norm *add_norm, rapt_tensor *x);
/* x and what the sublayer made of it, y, of one shape: post-norm, norm(x + dropout y); pre-norm, x + dropout y. */
RAPT_API rapt_tensor *rapt_add_norm_forward(rapt_add_norm *add_norm, rapt_tensor *x, rapt_tensor *y);

/* PyTorch's TransformerEncoderLayer: self_attn, linear1, linear2, norm1, norm2. By GPT-2's names it is a block of
 * it: attn, mlp, ln_1, ln_2. Initial values are those of the parts, as in PyTorch. */
typedef struct rapt_encoder_layer {
    rapt_module module;
    rapt_multi_head_attention *self_attn;
    rapt_feed_forward *feed_forward;
    rapt_add_norm *norm1, *norm2;
    bool recompute; /* backward computes the layer once more (rapt_recompute), so that the graph does not keep it */
} rapt_encoder_layer;

/* NULL after an error. */
RAPT_API rapt_encoder_layer *rapt_encoder_layer_new(const rapt_transformer_config *config);
/* x (B, T, hidden) → the same shape. mask and cache may be NULL. Under a mask with starts x is packed, (rows, hidden);
 * so is the memory of a decoder, whose memory_mask then has the starts of both. After an error the cache holds what it
 * held before. */
RAPT_API rapt_tensor *rapt_encoder_layer_forward(rapt_encoder_layer *layer, rapt_tensor *x, const rapt_mask *mask,
                                                 rapt_attention_cache *cache);

/* PyTorch's TransformerDecoderLayer: self_attn, multihead_attn (over the memory), linear1, linear2, norm1, norm2,
 * norm3. */
typedef struct rapt_decoder_layer {
    rapt_module module;
    rapt_multi_head_attention *self_attn, *multihead_attn;
    rapt_feed_forward *feed_forward;
    rapt_add_norm *norm1, *norm2, *norm3;
    bool recompute; /* as in an encoder layer. A cache takes no part in it */
} rapt_decoder_layer;

/* The caches of a decoder layer: its own keys, and the memory's, which are projected once. A zeroed struct is empty. */
typedef struct rapt_decoder_cache {
    rapt_attention_cache self, memory;
} rapt_decoder_cache;

/* Forgets everything. */
RAPT_API void rapt_decoder_cache_clear(rapt_decoder_cache *cache);
/* Item b becomes what item rows[b] was. False after an error; the cache is then as it was. */
RAPT_API bool rapt_decoder_cache_select(rapt_decoder_cache *cache, rapt_tensor *rows);

/* NULL after an error. */
RAPT_API rapt_decoder_layer *rapt_decoder_layer_new(const rapt_transformer_config *config);
/* x (B, T, hidden), memory (B, S, hidden) → x's shape. Masks and cache may be NULL; so may the memory when the cache
 * holds it: it is read at the first step only. With a cache the places of x, among the memory's keys too, come behind
 * those of the steps before; behind a packed batch of several lengths a memory_mask that goes by places needs their
 * query_places. After an error the cache holds what it held before. */
RAPT_API rapt_tensor *rapt_decoder_layer_forward(rapt_decoder_layer *layer, rapt_tensor *x, rapt_tensor *memory,
                                                 const rapt_mask *mask, const rapt_mask *memory_mask,
                                                 rapt_decoder_cache *cache);

/* Layers "layers.0", …, and "norm" if final_norm; by GPT-2's names "h.0", … and "ln_f". */
typedef struct rapt_transformer_encoder {
    rapt_module module;
    rapt_encoder_layer **layers;
    rapt_layer_norm *norm; /* or NULL */
    int count;
    rapt_rms_norm *rms_norm; /* or NULL */
} rapt_transformer_encoder;

/* Of encoder_layers layers, 1 or more; NULL after an error. */
RAPT_API rapt_transformer_encoder *rapt_transformer_encoder_new(const rapt_transformer_config *config);
/* caches: one for each layer, or NULL; after an error they are as they were. */
RAPT_API rapt_tensor *rapt_transformer_encoder_forward(rapt_transformer_encoder *encoder, rapt_tensor *x,
                                                       const rapt_mask *mask, rapt_attention_cache *caches);

/* Layers "layers.0", …, and "norm" if final_norm. */
typedef struct rapt_transformer_decoder {
    rapt_module module;
    rapt_decoder_layer **layers;
    rapt_layer_norm *norm; /* or NULL */
    int count;
    rapt_rms_norm *rms_norm; /* or NULL */
} rapt_transformer_decoder;

/* Of decoder_layers layers, 1 or more; NULL after an error. */
RAPT_API rapt_transformer_decoder *rapt_transformer_decoder_new(const rapt_transformer_config *config);
/* x, memory and masks as a decoder layer takes them; caches: one for each layer, or NULL. */
RAPT_API rapt_tensor *rapt_transformer_decoder_forward(rapt_transformer_decoder *decoder, rapt_tensor *x,
                                                       rapt_tensor *memory, const rapt_mask *mask,
                                                       const rapt_mask *memory_mask, rapt_decoder_cache *caches);

/* PyTorch's Transformer: encoder and decoder. All its matrices start Xavier-uniform (Glorot & Bengio 2010), as there;
 * encoder, decoder and layers made alone start as their parts do. */
typedef struct rapt_transformer {
    rapt_module module;
    rapt_transformer_encoder *encoder;
    rapt_transformer_decoder *decoder;
} rapt_transformer;

/* NULL after an error. */
RAPT_API rapt_transformer *rapt_transformer_new(const rapt_transformer_config *config);
/* Source (B, S, hidden) and target (B, T, hidden) → the target's shape. Masks may be NULL; memory_mask is that of the
 * target's attention to the source. */
RAPT_API rapt_tensor *rapt_transformer_forward(rapt_transformer *transformer, rapt_tensor *source, rapt_tensor *target,
                                               const rapt_mask *source_mask, const rapt_mask *target_mask,
                                               const rapt_mask *memory_mask);

RAPT_END_DECLS

#endif
