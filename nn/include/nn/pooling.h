/* One call of attention pooling, and the two ways to carry it out. */
#ifndef RAPT_NN_POOLING_H
#define RAPT_NN_POOLING_H

#include <rapt/attention.h>

#include "nn/mask.h"
#include "nn/score_modifications.h"
#include "tensor/core.h"

/* The inputs; queries, keys and values have one rank, 3 or 4. */
typedef struct rapt_pooling {
    rapt_attention *attention;
    rapt_tensor *queries, *keys, *values; /* prepared keys */
    rapt_mask mask;
    rapt_resolved_mask resolved;
    const rapt_resolved_changes *changes; /* of the scores; NULL: none */
    rapt_tensor *head_terms;              /* of the normaliser, (heads); NULL: none */
    int64_t groups, repeats;              /* heads = groups · repeats */
    rapt_tensor **weights;                /* gets the weights, before dropout, if it is not NULL */
} rapt_pooling;

static inline int64_t rapt_heads_of(const rapt_tensor *tensor)
{
    return tensor->rank == 4 ? tensor->shape[1] : 1;
}

static inline int64_t rapt_length_of(const rapt_tensor *tensor)
{
    return tensor->shape[tensor->rank - 2];
}

/* What a scoring function's own functions give; NULL after an error, theirs or that they gave none. Keys that are not
 * in seen_keys are not read; NULL: all are. */
rapt_tensor *rapt_scoring_prepare(rapt_scoring *scoring, rapt_tensor *keys, rapt_tensor *seen_keys);
rapt_tensor *rapt_scoring_score(rapt_scoring *scoring, rapt_tensor *queries, rapt_tensor *prepared_keys);
rapt_tensor *rapt_scoring_relative_bias(rapt_scoring *scoring, rapt_tensor *queries);

/* The head_terms of the attention's normaliser for scores of that dtype: NULL where it has none. They belong to the
 * innermost scope. False after an error. */
bool rapt_resolve_head_terms(const rapt_attention *attention, const rapt_resolved_mask *mask, rapt_dtype dtype,
                             rapt_tensor **head_terms);

/* Does its normaliser have any? */
bool rapt_attention_has_head_terms(const rapt_attention *attention);

/* Does anybody look at the weights of this call? */
bool rapt_wants_weights(const rapt_pooling *pooling);

/* Is there a fused way for this call? */
bool rapt_pooling_is_fused(const rapt_pooling *pooling);

/* The definition, step by step. Takes nothing from a value whose weight is 0. Puts the scoring function's relative bias
 * into the mask, as the other one does. */
rapt_tensor *rapt_pool_plainly(rapt_pooling *pooling);

/* The fused way, for keys and values that hold nothing infinite or undefined where no query sees them. */
rapt_tensor *rapt_pool_fused(rapt_pooling *pooling);

#endif
