/* Modifications of attention scores: what lies between the scoring function and the mask. */
#ifndef RAPT_SCORE_MODIFICATION_H
#define RAPT_SCORE_MODIFICATION_H

#include <rapt/layers.h>
#include <rapt/score_tile.h>

RAPT_BEGIN_DECLS

/* So many modifications an attention takes, capturing so many tensors together; bytes of the options of one. */
#define RAPT_MAX_SCORE_MODIFICATIONS 4
#define RAPT_MAX_CAPTURED 6
#define RAPT_SCORE_OPTIONS_SIZE 64

/* A change of scores by their values and places, which are from −2⁵² to 2⁵², as FlexAttention has it: a module with a
 * function or two. One of your own embeds it as its first member and sets the fields in its constructor. It comes after
 * the scoring function and before the mask and its biases. Keys that the mask hides come too, with any finite score
 * where no query of the item sees them; what is made of that is ignored, and its gradient comes as 0. With softmax, a
 * new score of −∞ hides the key; keys that are hidden so alone, and queries that see nothing else, are read, and have
 * to be finite. */
typedef struct rapt_score_modification rapt_score_modification;
struct rapt_score_modification {
    rapt_module module;
    /* The fused way, which never stores a matrix of scores: how the scores of a tile are changed, and how that is
     * differentiated. change NULL: there is none for that dtype, and all goes the plain way. */
    rapt_score_functions float32, float64;
    bool reads_old, reads_new; /* does differentiate read the scores before the change, or after it? */
    const void *options;       /* copied when attention is called; up to RAPT_SCORE_OPTIONS_SIZE bytes */
    size_t options_size;
    /* The tensors that the functions read: writes captured_count of them, each of shape (B or 1, heads or 1, …) with B
     * the number of sequences where they are packed; floating ones of the scores' dtype. What is made of parameters by
     * recorded ops gives them a gradient. Each of the tasks that the work is cut into (a group of heads of an item, or
     * 16 queries of a head) gathers the gradients of the elements that its heads read, in float64. False after an
     * error. */
    int captured_count;
    bool (*capture)(rapt_score_modification *modification, rapt_dtype dtype, rapt_tensor **captured);
    /* The plain way. NULL: the functions above change the whole matrix, which has no second derivative. */
    rapt_score_by_ops *by_ops;
};

/* The plain way by itself: scores (B, Q, K) or (B, heads, Q, K), where query i is at place i + offset among the keys,
 * to new ones of that shape. NULL after an error. */
RAPT_API rapt_tensor *rapt_modify_scores(rapt_score_modification *modification, rapt_tensor *scores, int64_t offset);

/* Each constructor gives NULL after an error; who has no attention for it frees it with
 * rapt_module_free(&modification->module). i and j are the places of query and key. */

/* cap · tanh(score / cap) (Gemma 2, 2024) */
RAPT_API rapt_score_modification *rapt_soft_cap_new(double cap);
/* score / temperature of the head; parameter temperature (heads), ones at first. */
RAPT_API rapt_score_modification *rapt_head_temperature_new(int64_t heads);
/* score − slope · |j − i|, the slopes of rapt_alibi. No parameters. */
RAPT_API rapt_score_modification *rapt_alibi_modification_new(int64_t heads);
/* score + a learned number of the head and the bucket of j − i (T5; Raffel et al. 2020): half of the buckets are a
 * position each, the others grow like the logarithm up to max_distance. Where `bidirectional`, one half of all is for
 * keys behind the query; otherwise these share bucket 0. Parameter weight (buckets, heads), zeros at first. */
RAPT_API rapt_score_modification *rapt_bucketed_bias_new(int64_t heads, int64_t buckets, int64_t max_distance,
                                                         bool bidirectional);
/* score + a learned number of the head and of j − i, clamped to ±reach; parameter weight (heads, 2·reach + 1), zeros at
 * first. Unlike a mask's relative_bias it may come before other modifications. */
RAPT_API rapt_score_modification *rapt_learned_bias_new(int64_t heads, int64_t reach);
/* score − ½ (j − i)² / width² with a width for each head: a Gaussian window (Luong et al. 2015, around the query). With
 * `learns`, parameter width (heads). */
RAPT_API rapt_score_modification *rapt_gaussian_window_new(int64_t heads, double width, bool learns);
/* Prefix language models: keys j ≤ i are seen, and those before the item's prefix, whatever the query; others become
 * −∞. prefixes: int64 (B), one for each item or sequence; the modification takes a share. Beside it no causal mask. */
RAPT_API rapt_score_modification *rapt_prefix_modification_new(rapt_tensor *prefixes);

RAPT_END_DECLS

#endif
