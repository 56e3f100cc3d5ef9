/* Padding: the keys that no query of a call sees. Here is decided who keeps them out of its results and gradients. */
#ifndef RAPT_NN_PADDING_H
#define RAPT_NN_PADDING_H

#include "nn/pooling.h"

/* What a call of attention pooling does with padding. */
typedef enum rapt_padding {
    RAPT_PADDING_IS_READ,  /* as other keys are: the mask only fills its scores with −10⁶ */
    RAPT_PADDING_IS_ZERO,  /* it is zeros already, by the caller */
    RAPT_PADDING_NOT_READ, /* the fused way looks at no key that no query sees */
    RAPT_PADDING_TO_HIDE,  /* it becomes zeros before anything is computed from it */
} rapt_padding;

/* prepares: are the keys still to be prepared by the scoring function? */
rapt_padding rapt_padding_of(const rapt_pooling *pooling, bool prepares);

/* bool (B, groups, K, 1): is the key seen by any query of its item, of any head of its group? NULL, without an error,
 * when every key is seen by some query for sure. heads must be a multiple of groups. False after an error. */
bool rapt_find_seen_keys(const rapt_resolved_mask *mask, int64_t groups, rapt_tensor **seen_keys);

/* The same for keys of which the queries are not known yet: what the mask hides whoever may ask. */
bool rapt_find_keys_that_may_be_seen(const char *op, const rapt_tensor *keys, const rapt_mask *mask,
                                     rapt_tensor **seen_keys);

/* bool (B, heads or 1, Q, 1): does the query see any key, of its head or, unless by_head, of any head? NULL, without an
 * error, when all do. False after an error. */
bool rapt_find_seeing_queries(const rapt_resolved_mask *mask, bool by_head, rapt_tensor **seeing);

/* x (B, groups, K, size), or (B, K, size) for one group, with zeros for the rows that are not in seen, the keys seen or
 * the queries that see; NULL: x itself. */
rapt_tensor *rapt_hide_rows(rapt_tensor *x, rapt_tensor *seen);

/* x likewise, with zeros for all padding. NULL after an error. */
rapt_tensor *rapt_hide_padding(rapt_tensor *x, const rapt_resolved_mask *mask);

/* Queries that see nothing become zeros before anything is computed from them. False after an error. */
bool rapt_hide_blind_queries(rapt_pooling *pooling);

/* The inputs of multi-head attention before they are projected, (B, length, size): padding and queries that see nothing
 * become zeros, so that not even NaN in them reaches a weight's gradient. What is a query at the same time is read
 * where it sees or is seen. The mask then tells what is zeros. False after an error. */
bool rapt_hide_padding_of_inputs(rapt_resolved_mask *mask, rapt_tensor **queries, rapt_tensor **keys,
                                 rapt_tensor **values);

#endif
