/* A decoder-only language model (Radford et al. 2019), by nanoGPT's names, in PyTorch's layouts. */
#ifndef RAPT_GPT_H
#define RAPT_GPT_H

#include <rapt/generate.h>
#include <rapt/transformer.h>

RAPT_BEGIN_DECLS

/* How the model knows where a token stands. */
typedef enum rapt_gpt_positions {
    RAPT_POSITIONS_LEARNED,
    RAPT_POSITIONS_SINUSOIDAL, /* added to √hidden times the embedding (Vaswani et al. 2017) */
    RAPT_POSITIONS_ROTARY,
    RAPT_POSITIONS_ALIBI
} rapt_gpt_positions;

/* The sizes of a model, and its kind. */
typedef struct rapt_gpt_config {
    int64_t vocabulary, context, hidden;
    int64_t heads, groups; /* groups as in rapt_multi_head_attention_config */
    int layers;
    double dropout; /* of the embeddings, of the attention weights, and of what each sublayer adds */
    bool bias;      /* of linear layers and norms; GPT-2: true */
    rapt_gpt_positions positions;
    /* 0 is RELU. GPT-2: GELU_TANH (its release; nanoGPT has the exact one). LLaMA: SWIGLU */
    rapt_feed_forward_kind kind;
    bool sinks;     /* softmax learns one for each head of each layer: attn.attention.sinks */
    bool recompute; /* backward computes each block once more (rapt_recompute), so that the graph does not keep it */
    bool untied;    /* the head has weights of its own, lm_head.weight (vocabulary, hidden), not the embedding's */
    bool rms_norm;  /* RMSNorm in place of layer norm */
    bool rotary_halves;   /* rapt_rotary's field; LLaMA's weights as Hugging Face has them: true */
    double rotary_base;   /* likewise; 0: 10000 */
    double norm_epsilon;  /* 0: that of the norm: 1e-5, and 1e-6 of RMSNorm */
    int64_t feed_forward; /* the inner size; 0: 4 · hidden, of SwiGLU 8/3 · hidden, rounded down */
    int64_t window;       /* a token sees so many at most, itself among them (Mistral); 0: all before it */
    int64_t head_size;    /* of queries, keys and values; 0: hidden / heads */
    bool norm_heads;      /* as in rapt_multi_head_attention_config (Qwen 3): attn.q_norm and attn.k_norm */
    rapt_rotary_scaling rotary_scaling; /* rapt_rotary's field (LLaMA 3.1) */
} rapt_gpt_config;

/* Pre-norm blocks. Parameters transformer.wte.weight (also the head's unless `untied`), transformer.wpe.weight (learned
 * positions), transformer.h.N.{attn.c_attn, attn.c_proj, mlp.c_fc, mlp.c_proj, ln_1, ln_2}, of SwiGLU mlp.c_gated too,
 * transformer.ln_f. Initial values as GPT-2: N(0, 0.02), the projections that are added to the stream N(0, 0.02 / √(2
 * layers)), biases 0. */
typedef struct rapt_gpt {
    rapt_module module;
    rapt_gpt_config config;
    rapt_embedding *wte;
    rapt_learned_positions *wpe;           /* or NULL */
    rapt_sinusoidal_positions *sinusoidal; /* or NULL */
    rapt_alibi *alibi;                     /* or NULL */
    rapt_transformer_encoder *blocks;      /* h and ln_f */
    rapt_linear *lm_head;                  /* or NULL */
} rapt_gpt;

/* NULL after an error: a size below 1, heads that do not divide hidden where there is no head_size, no memory. */
RAPT_API rapt_gpt *rapt_gpt_new(const rapt_gpt_config *config);

/* What a model has read of B sequences so far: the tokens, and their projected keys and values. For inference: where
 * one is used, nothing may be recorded (RAPT_NO_GRADIENT). */
typedef struct rapt_gpt_cache rapt_gpt_cache;

/* Tokens (B, T) integers, T and what the cache holds at most context → logits (B, T, vocabulary). cache may be NULL;
 * after an error it is as it was. Across the ranks of a ring (rapt_attention_set_ring) T is rapt_ring_count, 0 too,
 * these are the tokens at rapt_ring_places, the ring's length is at most context, and there is no cache. */
RAPT_API rapt_tensor *rapt_gpt_forward(rapt_gpt *gpt, rapt_tensor *tokens, rapt_gpt_cache *cache);

/* The loss of those tokens where the targets (B, T) come next, as rapt_cross_entropy of the logits gives it with these
 * options, or NULL; but all logits are never stored. Across ranks it is that of this rank's tokens. */
RAPT_API rapt_tensor *rapt_gpt_loss(rapt_gpt *gpt, rapt_tensor *tokens, rapt_tensor *targets,
                                    const rapt_cross_entropy_options *options);
/* Packed tokens, integers (rows), of sequences with these starts (rapt_packing_starts), none of them longer than the
 * context → logits (rows, vocabulary): for training without padding. */
RAPT_API rapt_tensor *rapt_gpt_forward_packed(rapt_gpt *gpt, rapt_tensor *tokens, rapt_tensor *starts);
/* And the loss of them, with targets (rows). */
RAPT_API rapt_tensor *rapt_gpt_loss_packed(rapt_gpt *gpt, rapt_tensor *tokens, rapt_tensor *starts,
                                           rapt_tensor *targets, const rapt_cross_entropy_options *options);

/* What the head gets, for a head of one's own: tokens (B, T) → (B, T, hidden), or, with starts, packed ones (rows) →
 * (rows, hidden). starts may be NULL. */
RAPT_API rapt_tensor *rapt_gpt_hidden(rapt_gpt *gpt, rapt_tensor *tokens, rapt_tensor *starts);

/* An empty cache. The model must outlive it. */
RAPT_API rapt_gpt_cache *rapt_gpt_cache_new(rapt_gpt *gpt);
/* Frees it; NULL does nothing. */
RAPT_API void rapt_gpt_cache_free(rapt_gpt_cache *cache);
/* Forgets all tokens: an empty cache again. */
RAPT_API void rapt_gpt_cache_clear(rapt_gpt_cache *cache);
/* How many tokens of each sequence it holds; of the longest, where they began with prompts of different lengths, also
 * after a selection without that one. */
RAPT_API int64_t rapt_gpt_cache_length(const rapt_gpt_cache *cache);
/* Item b becomes what item rows[b] was (int64 (B), B may change). False after an error; the cache is then as it was. */
RAPT_API bool rapt_gpt_cache_select(rapt_gpt_cache *cache, rapt_tensor *rows);

/* The cache and its model, for rapt_generate: goes on from what the cache holds. Text may grow beyond the context:
 * then the latter half of a context is read again as if it were the beginning. A step that fails leaves the cache
 * as it was before that step. Switch the model to evaluation before. */
RAPT_API rapt_token_model rapt_gpt_token_model(rapt_gpt_cache *cache);

RAPT_END_DECLS

#endif
