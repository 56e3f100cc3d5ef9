/* Attention pooling = scoring function → modifications → mask → normaliser → dropout → weighted sum of the values. */
#ifndef RAPT_ATTENTION_H
#define RAPT_ATTENTION_H

#include <rapt/mask.h>
#include <rapt/ring.h>
#include <rapt/score_modification.h>
#include <rapt/scoring.h>

RAPT_BEGIN_DECLS

/* Attention pooling over any scoring function. Set the fields as you like between two calls. */
typedef struct rapt_attention {
    rapt_module module;
    rapt_scoring *scoring;
    rapt_normalizer *normalizer; /* rapt_masked_softmax at first */
    /* Softmax with a sink, exp a / (exp sink + Σ exp a), which takes what no key deserves: weights then sum to less
     * than 1. 0 is "off by one"; −∞, none, at first. Or the learned ones, by rapt_attention_learn_sinks; NULL: none */
    double sink;
    rapt_tensor *sinks;
    /* Beside rapt_masked_sigmoid, added to the scores: −log K for K keys makes the weights sum to about 1 at first. Or
     * the learned ones, by rapt_attention_learn_sigmoid; NULL: none */
    double sigmoid_bias;
    rapt_tensor *sigmoid_biases;
    double dropout;    /* of the weights, in training; 0 to 1, or calls are errors */
    bool plain;        /* set it for the definition, step by step, in place of the fused way: a check */
    bool keep_weights; /* set it to keep the weights of each forward, */
    /* (B, Q, K) or (B, heads, Q, K), before dropout; owned by the layer, NULL before the first. They are in the graph
     * where one is recorded, so that a loss may read them: guided alignment, for instance, is
     *     rapt_sum(rapt_mul(alignment, rapt_log(rapt_add_scalar(attention->weights, 1e-9))), RAPT_ALL_AXES, false)
     * times −1 / Q. Their gradient goes through normaliser, mask and modifications, not through dropout. Whoever wants
     * them for a picture alone asks under RAPT_NO_GRADIENT, or they hold the graph until backward has freed it or the
     * next forward replaces them. Where threads share the layer, rapt_field_get reads them. */
    rapt_tensor *weights;
    int modification_count; /* of the scores, by rapt_attention_modify */
    rapt_score_modification *modifications[RAPT_MAX_SCORE_MODIFICATIONS];
    rapt_ring *ring; /* attention goes across ranks, by rapt_attention_set_ring; NULL: it does not */
} rapt_attention;

/* The scoring function becomes its child, as rapt_module_add_child has it (also after an error, when it gives NULL). */
RAPT_API rapt_attention *rapt_attention_new(rapt_scoring *scoring, double dropout);
RAPT_API rapt_attention *rapt_dot_product_attention_new(double dropout); /* scaled */
RAPT_API rapt_attention *rapt_additive_attention_new(int64_t query_size, int64_t key_size, int64_t hidden,
                                                     double dropout);

/* Adds a modification of the scores behind those that it has. It becomes a child of that name, as rapt_module_add_child
 * has it (also after an error, when this gives NULL). A scoring function's relative_bias is added with the mask's,
 * after all modifications. Returns the modification. */
RAPT_API rapt_score_modification *rapt_attention_modify(rapt_attention *attention, const char *name,
                                                        rapt_score_modification *modification);

/* Gives softmax a learned sink for each head: parameter sinks (heads), zeros at first. Returns it. */
RAPT_API rapt_tensor *rapt_attention_learn_sinks(rapt_attention *attention, int64_t heads);

/* Makes sigmoid the normaliser, with a learned bias for each head: parameter sigmoid_biases (heads), of that value at
 * first. Returns it. */
RAPT_API rapt_tensor *rapt_attention_learn_sigmoid(rapt_attention *attention, int64_t heads, double bias);

/* Queries (B, Q, q), keys (B, K, k), values (B, K, v) → (B, Q, v). Or with heads: (B, heads, Q, q), (B, groups, K, k),
 * (B, groups, K, v) → (B, heads, Q, v), where groups divides heads and head h reads group h · groups / heads. mask may
 * be NULL: every key is seen. Where the mask has starts, sequences are packed and there is no axis B: queries (rows, q)
 * or (heads, rows, q), and so on. That gives what the padded batch gives, sequence by sequence, dropout included; in
 * float64 the same bits, but where sums are taken in another order, which may change the last ones: gradients of keys
 * and values that several heads read; there also all else under a mask that hides keys before a query's (windows,
 * blocks, documents); all under a rule, dilation or query_places; and what goes through a scoring function's own
 * matrices, as of additive scores. Weights that are kept are those of the padded batch, (B, heads, longest Q,
 * longest K), and the call then goes by it, as the plain way does. */
RAPT_API rapt_tensor *rapt_attention_forward(rapt_attention *attention, rapt_tensor *queries, rapt_tensor *keys,
                                             rapt_tensor *values, const rapt_mask *mask);

/* The same in two parts, of keys that are finite where a query sees them, for a decoder that asks the same keys again
 * and again: prepare once, then pool. What prepare's mask hides from all queries must be hidden in every pool; other
 * keys may be anything, even NaN, that no query sees. */
RAPT_API rapt_tensor *rapt_attention_prepare(rapt_attention *attention, rapt_tensor *keys, const rapt_mask *mask);
RAPT_API rapt_tensor *rapt_attention_pool(rapt_attention *attention, rapt_tensor *queries, rapt_tensor *prepared_keys,
                                          rapt_tensor *values, const rapt_mask *mask);

/* Sets keep_weights of every attention in the module and below it, a Transformer's for instance. Layers that backward
 * computes again (recompute) keep them in the graph as well, at no cost but theirs. A function of one's own for
 * rapt_recompute should give weights that are read outside of it as a result: those that are only kept hold all that
 * they were made of. */
RAPT_API void rapt_attention_keep_weights(rapt_module *module, bool keep);

/* Lets every attention in the module and below it go across the ranks of a ring (NULL: no longer). Queries, keys and
 * values are then this rank's rows: keys and values those at rapt_ring_places, queries those at the mask's
 * query_places, or, where it has none, at the same places as the keys. The mask speaks of the whole sequence: its
 * documents are those of all keys, valid_lengths, (B), first_keys and prefix_lengths count all keys, and all ranks have
 * the same. Rotary positions are the places. What comes out, and the gradients, are this rank's rows of what one
 * process has, but for rounding, and for NaN in rows that other ranks' query_places alone could tell to be padding;
 * parameters' gradients are of this rank's queries, and are to be summed over ranks (rapt_data_parallel). All ranks
 * call in one order, and go backward through all of these calls, a rank without rows too. Refused are, of masks,
 * starts, seen, bias, rule, dilation and fills_million; the plain way, weights and a cache; Gaussian scores, those with
 * a table of values, and dropout of additive ones; and second derivatives. What dropout drops each rank draws by
 * itself, from a seed of its own. The ring outlives the graph. What fails on one rank, before keys go round or
 * meanwhile, is an error on all. So it is on their way through a rapt_gpt, a rapt_transformer_encoder or
 * rapt_transformer_decoder, forward, and in a backward pass that comes through attention; a rank that gives up
 * elsewhere must end the program, for which rapt_abort_on_error is made. A rapt_gpt then takes this rank's tokens. */
RAPT_API void rapt_attention_set_ring(rapt_module *module, rapt_ring *ring);

/* The ring of the last attention below the module, or the module itself, that has one; NULL: none has. */
RAPT_API rapt_ring *rapt_attention_get_ring(rapt_module *module);

RAPT_END_DECLS

#endif
