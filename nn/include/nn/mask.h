/* A mask made ready for one shape of scores, for the plain and the fused ways alike. */
#ifndef RAPT_NN_MASK_H
#define RAPT_NN_MASK_H

#include <rapt/mask.h>
#include <rapt/ring.h>

#include "tensor/core.h"
#include "tensor/raw_mask.h"

/* Scores (B, Q, K) count as (B, 1, Q, K). All tensors are views or results of the innermost scope; biases stay in the
 * graph. */
typedef struct rapt_resolved_mask {
    int64_t batch, heads, queries, keys;
    /* int64 (B or 1, Q, 2): the keys [first, last) that lengths and rules leave to a query, 0 ≤ first ≤ last ≤ keys;
     * NULL: all */
    rapt_tensor *ranges;
    /* bool (B, heads, Q, K), expanded (stride 0) where it repeats: false where the mask's says so or a bias is −∞;
     * NULL: all of the range */
    rapt_tensor *seen;
    /* uint8, what the rule says of tiles, as rapt_raw_rule has it; NULL: no rule, or one that the ranges tell whole */
    rapt_tensor *answers;
    rapt_mask_code code; /* of that rule */
    rapt_tensor *captured[RAPT_MASK_CAPTURED];
    rapt_tensor *bias;          /* (B, heads, Q, K), expanded; NULL: none */
    rapt_tensor *relative_bias; /* (B, heads, Q, 2R + 1), expanded; NULL: none */
    int64_t offset;
    rapt_tensor *places; /* int64 (B or 1, Q), dense; NULL: query i stands at i + offset. Packed: (1, Q) */
    bool gaps;           /* may keys that no query sees lie between keys that neighbouring queries see? */
    bool fills_million;
    bool padding_is_zero; /* keys and values that no query sees are zeros, or made of zeros */
    bool blind_is_zero;   /* queries that see nothing likewise */
    /* Across ranks: queries are this rank's, keys those of all; which of this rank's own keys some query may see, bool
     * (B or 1, 1, own keys, 1), NULL: all */
    rapt_ring *ring;
    rapt_tensor *own_seen;
    bool packed;
    /* Packed: batch is 1, queries and keys are those of all sequences, and ranges are int64 (2 · queries + 3 ·
     * (sequences + 1)): the range of each query among the keys of its sequence, then of each sequence, and of its end,
     * the first query, key, and pair of both. 0 otherwise. */
    int64_t sequences, longest_queries, longest_keys;
} rapt_resolved_mask;

/* The starts of a packed mask: triples. */
static inline const int64_t *rapt_resolved_starts(const rapt_resolved_mask *r)
{
    return (const int64_t *)(const void *)r->ranges->data + 2 * r->queries;
}

/* False after an error that names the field at fault under the name of `op`. mask may be NULL. The bias tensors must
 * have the dtype given. */
bool rapt_resolve_mask(const char *op, const rapt_mask *mask, rapt_dtype dtype, int64_t batch, int64_t heads,
                       int64_t queries, int64_t keys, rapt_resolved_mask *resolved);

/* The mask, which may be NULL, for queries that stand so many places further. False and an error where that is too
 * far. */
bool rapt_mask_move(const char *op, const rapt_mask *mask, int64_t places, rapt_mask *moved);

/* False and an error for a mask that has key_starts, but no starts. NULL is good. */
bool rapt_check_starts(const char *op, const rapt_mask *mask);

/* False and an error when one of its tensors is gone already. */
bool rapt_mask_check_alive(const char *op, const rapt_mask *mask);

/* The mask with a share of each of its tensors, and the end of those. */
rapt_mask rapt_mask_retain(const rapt_mask *mask);
void rapt_mask_release(const rapt_mask *mask);

/* For packed ranges: reads the starts and finds out what each query sees. False after an error. */
bool rapt_resolve_packing(const char *op, const rapt_mask *mask, rapt_resolved_mask *resolved);

/* Finds the keys that lengths and rules leave to each query. False after an error. */
bool rapt_resolve_ranges(const char *op, const rapt_mask *mask, rapt_resolved_mask *resolved);

/* Asks the mask's rule, if it has one or is dilated, and makes the ranges smaller by what it hides. False after an
 * error. */
bool rapt_resolve_rule(const char *op, const rapt_mask *mask, rapt_resolved_mask *resolved);

/* For the plain way: what the rule says becomes part of `seen`. Not of packed sequences. False after an error. */
bool rapt_settle_rule(rapt_resolved_mask *resolved);

/* Integers of a mask (size), (1, size) or (B, size) as int64, dense; *read stays NULL where there are none. False after
 * an error. */
bool rapt_read_integers(const char *op, const char *field, const char *axis, rapt_tensor *tensor, int64_t size,
                        const rapt_resolved_mask *resolved, rapt_tensor **read);

/* Their elements; NULL for NULL. */
static inline const int64_t *rapt_integers_of(const rapt_tensor *integers)
{
    return integers ? (const int64_t *)(const void *)integers->data : NULL;
}

/* Has each item integers of its own, (B, size), be there as few as none? NULL: no. */
static inline bool rapt_integers_by_item(const rapt_tensor *integers)
{
    return integers && integers->rank == 2 && integers->shape[0] != 1;
}

/* Elements from one item's integers to the next one's. */
static inline int64_t rapt_integers_item(const rapt_tensor *integers, int64_t size)
{
    return rapt_integers_by_item(integers) ? size : 0;
}

/* False and an error when documents (keys) fall; of, number: what they belong to. */
bool rapt_check_documents(const char *op, const int64_t *documents, int64_t keys, const char *of, int64_t number);

/* Leaves of a range what has the document of the key at `place`; documents (keys), which never fall. */
void rapt_limit_to_document(const int64_t *documents, int64_t keys, int64_t place, int64_t range[2]);

/* Can these ranges leave gaps between what neighbouring queries see? */
bool rapt_ranges_may_leave_gaps(const rapt_mask *mask);

/* The keys [first, last) of a query that stands at `place`, out of the first `length`; its item's prefix as
 * rapt_mask_prefix has it. */
void rapt_mask_range(const rapt_mask *mask, int64_t place, int64_t prefix, int64_t length, int64_t range[2]);

/* How many keys the prefix of an item has, out of `keys`; 0 without one. */
int64_t rapt_mask_prefix(const rapt_mask *mask, int64_t item, int64_t keys);

/* query + the mask's offset, or the end of int64 that it overflows. */
int64_t rapt_mask_place(const rapt_mask *mask, int64_t query);

/* Keys j with j < length, out of `keys`. */
int64_t rapt_keys_below(double length, int64_t keys);

/* Puts a scoring function's relative bias in the place of the mask's; finds_unseen: keys for which it is −∞ are not
 * seen. False after an error; the mask is then of no use. */
bool rapt_resolve_relative_bias(const char *op, rapt_tensor *bias, rapt_dtype dtype, bool finds_unseen,
                                rapt_resolved_mask *resolved);

/* The shape of the scores, as a message shows it. */
const char *rapt_scores_text(const rapt_resolved_mask *resolved, char text[RAPT_SHAPE_TEXT]);

/* Are these scores (B, Q, K) or (B, heads, Q, K), floating? False after an error. */
bool rapt_check_scores(const char *op, const rapt_tensor *scores);

/* rapt_resolve_mask for such scores; others are an error. */
bool rapt_resolve_mask_for(const char *op, const rapt_mask *mask, const rapt_tensor *scores,
                           rapt_resolved_mask *resolved);

/* Keys whose score or bias, which broadcasts to (B, heads, Q, keys), is −∞ are hidden by *seen too, which may be NULL
 * before and after. False after an error. */
bool rapt_hide_lowest(rapt_tensor *scores, rapt_tensor **seen);

/* bool, broadcasts to (B, heads, Q, keys): ranges and seen in one; NULL, without an error, when both are NULL. */
bool rapt_join_seen(rapt_tensor *ranges, rapt_tensor *seen, int64_t keys, rapt_tensor **joined);

/* Scores of rank 3 or 4 plus the biases. */
rapt_tensor *rapt_add_resolved_biases(const rapt_resolved_mask *resolved, rapt_tensor *scores);

#endif
