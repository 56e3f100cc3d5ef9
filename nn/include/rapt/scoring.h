/* Scoring functions a(q, k): how well a key answers a query. */
#ifndef RAPT_SCORING_H
#define RAPT_SCORING_H

#include <rapt/layers.h>

RAPT_BEGIN_DECLS

/* A scoring function is a module with a function or two. One of your own embeds it as its first member. The axes before
 * the last two broadcast: batch, or batch and heads. */
typedef struct rapt_scoring rapt_scoring;
typedef struct rapt_attention_call rapt_attention_call; /* of the library's own scoring functions */
struct rapt_scoring {
    rapt_module module;
    /* What can be computed once for all queries, from keys (…, K, k); NULL: the keys as they are. */
    rapt_tensor *(*prepare)(rapt_scoring *scoring, rapt_tensor *keys);
    /* The same where keys for which seen_keys, bool (B, groups, K, 1), is false are seen by no query: they must not be
     * read, and come out finite. NULL: prepare gets zeros in their place. */
    rapt_tensor *(*prepare_seen)(rapt_scoring *scoring, rapt_tensor *keys, rapt_tensor *seen_keys);
    /* Queries (…, Q, q) and prepared keys to scores (…, Q, K). */
    rapt_tensor *(*score)(rapt_scoring *scoring, rapt_tensor *queries, rapt_tensor *prepared_keys);
    /* What depends on the relative position j − i of key and query as well: (…, Q, 2R + 1), added to the scores as a
     * mask's relative_bias is; NULL: nothing. −∞ in it hides, too, but what it alone hides from all, or all from, is
     * read and has to be finite. */
    rapt_tensor *(*relative_bias)(rapt_scoring *scoring, rapt_tensor *queries);
    /* (2R + 1, v), a parameter: its rows are added to the values by relative position; NULL: none. */
    rapt_tensor *relative_values;
    /* The fused way: attention pooling with softmax, without a matrix of scores, which takes nothing from keys that no
     * query sees, nor from their values: even NaN there changes no bit. NULL: there is none. */
    rapt_tensor *(*attend)(rapt_scoring *scoring, const rapt_attention_call *call);
};

/* Scores of queries (…, Q, q) and keys (…, K, k): (…, Q, K), without mask or normaliser; relative positions count from
 * equal places. */
RAPT_API rapt_tensor *rapt_score(rapt_scoring *scoring, rapt_tensor *queries, rapt_tensor *keys);

/* Each constructor gives NULL after an error; who has no attention for it frees it with
 * rapt_module_free(&scoring->module). */

/* --- similarities, for softmax --- */
RAPT_API rapt_scoring *rapt_dot_product_scoring_new(void);        /* qᵀk */
RAPT_API rapt_scoring *rapt_scaled_dot_product_scoring_new(void); /* qᵀk / √d (Vaswani et al. 2017) */
/* qᵀ M k for queries and keys of different sizes (Luong et al. 2015); parameter M (query_size, key_size). */
RAPT_API rapt_scoring *rapt_bilinear_scoring_new(int64_t query_size, int64_t key_size);
/* qᵀk / √d after the shorter of the two is padded with zeros to the size d of the longer: bilinear with M = [I 0] /
 * √d. */
RAPT_API rapt_scoring *rapt_padded_dot_product_scoring_new(void);
/* w_vᵀ tanh(W_q q + W_k k) (Bahdanau et al. 2014), bias-free; parameters W_q.weight, W_k.weight, w_v.weight. */
RAPT_API rapt_scoring *rapt_additive_scoring_new(int64_t query_size, int64_t key_size, int64_t hidden);
/* cos(q, k) / temperature; a zero vector has cosine 0. With `learns`, parameter temperature (1). */
RAPT_API rapt_scoring *rapt_cosine_scoring_new(double temperature, bool learns);
/* −½ ‖q − k‖² / width²: the logarithm of the Gaussian kernel. With `learns`, parameter width (1). Scores are made of
 * differences. Gradients keep digits in proportion to the distance from the median of the queries, which a few that are
 * far or NaN do not move; those of two crowds far apart lose what is between the crowds. */
RAPT_API rapt_scoring *rapt_gaussian_scoring_new(double width, bool learns);
/* (qᵀk + qᵀr) / √d with r the row of table `key_table` (2·reach + 1, size) for the relative position j − i, clamped to
 * ±reach; with `value_size` (of a value, or 0: none) rows of value_table are added to the values likewise (Shaw et al.
 * 2018). */
RAPT_API rapt_scoring *rapt_relative_scoring_new(int64_t size, int64_t value_size, int64_t reach);

/* --- regression kernels κ(‖q − k‖ / width), for the normaliser rapt_masked_sum; u is the argument --- */
/* How the weight of a key falls with its distance. */
typedef enum rapt_regression_kernel {
    RAPT_REGRESSION_KERNEL_GAUSSIAN, /* exp(−u²/2) */
    RAPT_REGRESSION_KERNEL_BOXCAR,   /* 1 if u < 1, else 0; gradient 0 */
    RAPT_REGRESSION_KERNEL_CONSTANT, /* 1; gradient 0 */
    /* max(0, 1 − u): triangular, as Dive into Deep Learning 11.2 has it under this name; gradient 0 at u = 0 */
    RAPT_REGRESSION_KERNEL_EPANECHNIKOV,
} rapt_regression_kernel;

/* With `learns`, parameter width (1); an error for a kernel whose gradient is 0. */
RAPT_API rapt_scoring *rapt_regression_kernel_scoring_new(rapt_regression_kernel kernel, double width, bool learns);

RAPT_END_DECLS

#endif
