/* Masks: which keys a query sees, and what is added to its scores. */
#ifndef RAPT_MASK_H
#define RAPT_MASK_H

#include <rapt/autograd.h>
#include <rapt/mask_tile.h>

RAPT_BEGIN_DECLS

/* A mask of one's own: functions that are asked which keys queries see, whole tiles first, so that no matrix is ever
 * made and attention passes over what nobody sees. `judge` says all, none or some of a tile of any size; where it says
 * some, `see` is asked for each place, and where it says all (without a dilation) or none, it is not, whatever it would
 * say. As attention begins, each place of a tile of 16 queries and 64 keys of which some is seen is asked about once at
 * most. Where every query sees all keys between its first and its last one, and those of all heads alike, that is all,
 * and the rest costs no more than under the built-in rules. Else `see` is asked about a place up to 5 times in forward,
 * and twice more for each of these: in multi-head attention, which looks for what is not read itself; where weights are
 * kept; where keys or values are NaN or infinite. That makes 11 at most. It is asked twice in backward, and again for
 * derivatives of second order. All of it is copied when attention is called; captured tensors are shared until backward
 * is done, and may not be changed before. No gradient goes to them. */
typedef struct rapt_mask_rule {
    rapt_mask_judge *judge; /* NULL: `see` is asked everywhere */
    rapt_mask_see *see;     /* NULL: there is no such rule */
    int64_t numbers[RAPT_MASK_NUMBERS];
    rapt_tensor *captured[RAPT_MASK_CAPTURED]; /* what they read, of any shape and type; NULL: nothing */
    /* Do they look at neither item nor head? They are then asked for one of all, where the other fields are the same
     * for all items too. */
    bool same_for_items, same_for_heads;
} rapt_mask_rule;

/* WHAT A MASK SAYS TRUE TO IS SEEN. Key j takes part for query i if every condition that is set says so (AND); zeros
 * and NULLs set nothing. Scores are (B, Q, K) or, with heads, (B, heads, Q, K). A key that is not seen gets weight 0
 * exactly, beside scores that are finite; one that no query of its item sees is never read, so that even NaN in it
 * changes no bit of any result or gradient; and NaN in a value that some see changes nothing for those that do not. A
 * query that sees nothing gives zeros and zero gradients, and is not read either: even NaN in it changes no bit. What a
 * scoring function's own relative_bias or a score modification hides beside the mask is read. So is an infinite key:
 * where its scores are −∞ it has weight 0, but the gradients of queries that see it are NaN. */
typedef struct rapt_mask {
    rapt_tensor *valid_lengths; /* (B) or (B, Q), of any number type: key j is seen if j < length; NaN: none */
    rapt_tensor *first_keys;    /* (B), of any number type: key j is seen if j ≥ it; NaN: none */
    bool causal;                /* key j is seen if j ≤ p, the query's place among the keys: p = i + offset */
    /* (B) or (1), of any number type, with causal only: key j is seen if j ≤ p or j < prefix length, as in a prefix
     * LM, whose prefix is read both ways */
    rapt_tensor *prefix_lengths;
    int64_t window;       /* if > 0, key j is seen if |p − j| < window */
    int64_t window_left;  /* if > 0, key j is seen if p − j < window_left */
    int64_t window_right; /* if > 0, key j is seen if j − p < window_right */
    /* if block > 0, key j is seen if ⌊p / block⌋ − blocks_before ≤ ⌊j / block⌋ ≤ ⌊p / block⌋: attention in blocks of
     * so many keys, each with some of those before it */
    int64_t block, blocks_before;
    /* if > 1, key j is seen if p − j is a multiple of it: windows are then dilated. Hides keys, and saves no time: what
     * is left costs what the window costs */
    int64_t dilation;
    /* (K) or (1 or B, K), int64 or int32, which never fall along K: key j is seen if documents[j] = documents[p]. A
     * query whose place p is none of a key sees nothing */
    rapt_tensor *documents;
    /* (Q) or (1 or B, Q), int64 or int32: p = query_places[i] instead of i + offset, for all of the above and below,
     * rotary positions and score modifications, whatever a cache holds */
    rapt_tensor *query_places;
    rapt_mask_rule rule; /* one's own; .rule = {.see = …} */
    int64_t offset;      /* of query 0 among the keys: how many cached keys come before it */
    rapt_tensor *seen;   /* bool, broadcasts to the scores' shape: TRUE IS SEEN */
    rapt_tensor *bias;   /* of the scores' dtype, broadcasts to their shape: added to them; −∞ hides a key */
    /* (…, 2R + 1), the other axes broadcast to the scores' without the last: element R + clamp(j − p, −R, R)
     * is added to the score of query i and key j */
    rapt_tensor *relative_bias;
    /* as Dive into Deep Learning does: the scores of unseen keys become −10⁶ instead. A query that sees nothing then
     * weighs all keys alike, padding included, and padding is read. For rapt_masked_softmax only */
    bool fills_million;
    /* Packed sequences: starts of the queries' and of the keys' (NULL: the same), as rapt_packing_starts gives them, of
     * one number of sequences. A query sees keys of its own sequence only. i and j are then places within a sequence,
     * valid_lengths and prefix_lengths are (B), documents and query_places have an element for each row, documents
     * never fall within a sequence, scores have no axis B, and there are no matrices: seen and bias must be NULL. For
     * attention and what is made of it, not for scores alone. */
    rapt_tensor *starts, *key_starts;
} rapt_mask;

/* A mask written in place, for one call: RAPT_MASK(.causal = true, .valid_lengths = lengths). */
#define RAPT_MASK(...) RAPT_STRUCT_OF(rapt_mask, __VA_ARGS__)

/* bool, shape scores' or broadcasting to it: what the mask says, and whether its biases are above −∞. scores gives the
 * shape. */
RAPT_API rapt_tensor *rapt_mask_seen(const rapt_mask *mask, const rapt_tensor *scores);

/* Scores plus the biases of the mask; the scores themselves if it has none or is NULL. */
RAPT_API rapt_tensor *rapt_mask_add_biases(const rapt_mask *mask, rapt_tensor *scores);

/* (…, 2R + 1) → (…, Q, K): element R + clamp(j − i − offset, −R, R) of the last axis at place (i, j); where `by_query`,
 * (…, Q, 2R + 1) → (…, Q, K), from query i's own row. The number of relative positions must be odd. */
RAPT_API rapt_tensor *rapt_by_relative_position(rapt_tensor *table, int64_t queries, int64_t keys, int64_t offset,
                                                bool by_query);

/* A normaliser: scores (B, Q, K) or (B, heads, Q, K) and a mask (may be NULL) to weights of the same shape. Biases of
 * the mask are added first. Write your own with rapt_mask_seen; each of these is one. */
typedef rapt_tensor *rapt_normalizer(rapt_tensor *scores, const rapt_mask *mask);

/* exp a / Σ exp a */
RAPT_API rapt_tensor *rapt_masked_softmax(rapt_tensor *scores, const rapt_mask *mask);

/* exp a / (exp sink + Σ exp a): a sink takes what no key deserves. sinks: (heads) or (1), of the scores' dtype; 0 is
 * "off by one", −∞ none. */
RAPT_API rapt_tensor *rapt_masked_softmax_with_sinks(rapt_tensor *scores, const rapt_mask *mask, rapt_tensor *sinks);

/* 1 / (1 + exp(−a)), each weight by itself; biases, (heads) or (1), are added to the scores (Ramapuram et al. 2024, who
 * begin with −log K). */
RAPT_API rapt_tensor *rapt_masked_sigmoid(rapt_tensor *scores, const rapt_mask *mask);
RAPT_API rapt_tensor *rapt_masked_sigmoid_with_biases(rapt_tensor *scores, const rapt_mask *mask, rapt_tensor *biases);

/* Weights of which many are 0, as rapt_sparsemax and rapt_entmax15 have them; a row of which nothing is seen gives
 * zeros. */
RAPT_API rapt_tensor *rapt_masked_sparsemax(rapt_tensor *scores, const rapt_mask *mask);
RAPT_API rapt_tensor *rapt_masked_entmax15(rapt_tensor *scores, const rapt_mask *mask);

/* a / Σ a, kernel regression (Nadaraya 1964, Watson 1964); a row whose sum is 0 gives zeros and zero gradients */
RAPT_API rapt_tensor *rapt_masked_sum(rapt_tensor *scores, const rapt_mask *mask);

/* a, 0 where not seen */
RAPT_API rapt_tensor *rapt_masked_none(rapt_tensor *scores, const rapt_mask *mask);

/* 1 at the first largest score, as a database answers a query; gradient 0 */
RAPT_API rapt_tensor *rapt_masked_hard(rapt_tensor *scores, const rapt_mask *mask);

/* 1 / number of seen keys; gradient 0 */
RAPT_API rapt_tensor *rapt_masked_uniform(rapt_tensor *scores, const rapt_mask *mask);

RAPT_END_DECLS

#endif
