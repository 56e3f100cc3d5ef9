/* Normalisers other than softmax: weights from the scores that a mask leaves to each query. */
#include "normalizers.h"

#include <float.h>
#include <math.h>

#include "tensor/core.h"
#include "zero_gradient.h"

/* Scores with their biases, and what is seen of them (NULL: all), for one of the functions below. */
static bool begin(const char *op, const rapt_resolved_mask *mask, rapt_tensor **scores, rapt_tensor **seen)
{
    if (mask->fills_million)
        return rapt_fail(RAPT_ERROR_VALUE, op, "the mask's fills_million is for rapt_masked_softmax only");
    *scores = rapt_add_resolved_biases(mask, *scores);
    if (!*scores || !rapt_join_seen(mask->ranges, mask->seen, mask->keys, seen)) return false;
    if (*seen && (*scores)->rank == 3) *seen = rapt_squeeze(*seen, 1);
    return true;
}

static rapt_tensor *scalar_like(const rapt_tensor *x, double value)
{
    return rapt_scalar(x->dtype, value);
}

/* x where it is seen, else 0. */
static rapt_tensor *keep_seen(rapt_tensor *seen, rapt_tensor *x)
{
    return x && seen ? rapt_where(seen, x, scalar_like(x, 0)) : x;
}

static const char none_name[] = "masked_none", sum_name[] = "masked_sum";

static rapt_tensor *none(rapt_tensor *scores, const rapt_resolved_mask *mask)
{
    rapt_tensor *seen;
    RAPT_SCOPE;
    return begin(none_name, mask, &scores, &seen) ? rapt_keep(keep_seen(seen, scores)) : NULL;
}

static rapt_tensor *sum(rapt_tensor *scores, const rapt_resolved_mask *mask)
{
    rapt_tensor *seen;
    RAPT_SCOPE;
    if (!begin(sum_name, mask, &scores, &seen)) return NULL;
    scores = keep_seen(seen, scores);
    rapt_tensor *total = rapt_sum(scores, RAPT_AXES(-1), true);
    if (!total) return NULL;
    /* a 1 instead of a sum of 0 keeps the quotient and its derivatives finite where they are not taken */
    rapt_tensor *some = rapt_not_equal(total, scalar_like(total, 0));
    rapt_tensor *weights = rapt_div(scores, rapt_where(some, total, scalar_like(total, 1)));
    return rapt_keep(keep_seen(seen ? rapt_logical_and(seen, some) : some, weights));
}

/* An op of the scores and what is seen of them. */
static rapt_tensor *apply(const rapt_op *op, rapt_tensor *scores, const rapt_resolved_mask *mask)
{
    rapt_tensor *seen;
    RAPT_SCOPE;
    return begin(op->name, mask, &scores, &seen) ? rapt_keep(RAPT_APPLY(op, NULL, scores, seen)) : NULL;
}

/* 1 at the first largest score that is seen and above −∞, 0 elsewhere */
static rapt_tensor *hard_forward(rapt_call *call)
{
    rapt_tensor *scores = rapt_call_input(call, 0), *seen = rapt_call_input(call, 1);
    const int64_t keys = scores->shape[scores->rank - 1];
    RAPT_SCOPE;
    if (keys == 0) return rapt_keep(rapt_empty_like(scores));
    rapt_tensor *lowest = scalar_like(scores, -(double)INFINITY);
    if (seen) scores = rapt_where(seen, scores, lowest);
    rapt_tensor *chosen = rapt_one_hot(rapt_argmax(scores, -1, false), keys, RAPT_BOOL);
    chosen = rapt_logical_and(chosen, rapt_not_equal(scores, lowest));
    return rapt_keep(scores ? rapt_cast(chosen, scores->dtype) : NULL);
}

static const rapt_op hard_op = {.name = "masked_hard",
                                .forward = hard_forward,
                                .vjp = rapt_give_zeros,
                                .optional = 1U << 1};

static rapt_tensor *hard(rapt_tensor *scores, const rapt_resolved_mask *mask)
{
    return apply(&hard_op, scores, mask);
}

/* 1 / n at the n keys that are seen, 0 elsewhere */
static rapt_tensor *uniform_forward(rapt_call *call)
{
    rapt_tensor *scores = rapt_call_input(call, 0), *seen = rapt_call_input(call, 1);
    rapt_dtype dtype = scores->dtype;
    RAPT_SCOPE;
    if (!seen)
        return rapt_keep(rapt_full(dtype, scores->rank, scores->shape, 1 / (double)scores->shape[scores->rank - 1]));
    rapt_tensor *weights = rapt_cast(rapt_expand(seen, scores->rank, scores->shape), dtype);
    rapt_tensor *count = rapt_sum(weights, RAPT_AXES(-1), true);
    return rapt_keep(rapt_div(weights, rapt_maximum(count, scalar_like(scores, 1))));
}

static const rapt_op uniform_op = {.name = "masked_uniform",
                                   .forward = uniform_forward,
                                   .vjp = rapt_give_zeros,
                                   .optional = 1U << 1};

static rapt_tensor *uniform(rapt_tensor *scores, const rapt_resolved_mask *mask)
{
    return apply(&uniform_op, scores, mask);
}

/* An op of the last axis, to which an unseen score is −∞. */
static rapt_tensor *sparse(const char *name, rapt_tensor *weigh(rapt_tensor *x, int axis), rapt_tensor *scores,
                           const rapt_resolved_mask *mask)
{
    rapt_tensor *seen;
    RAPT_SCOPE;
    if (!begin(name, mask, &scores, &seen)) return NULL;
    return rapt_keep(weigh(seen ? rapt_where(seen, scores, scalar_like(scores, -(double)INFINITY)) : scores, -1));
}

/* (heads) → (heads, 1, 1), or (1, 1) beside scores that have no axis of heads */
static rapt_tensor *head_term_rows(rapt_tensor *head_terms, const rapt_tensor *scores)
{
    const int64_t shape[] = {head_terms->count, 1, 1};
    return scores->rank == 4 ? rapt_reshape(head_terms, 3, shape) : rapt_reshape(head_terms, 2, shape + 1);
}

static const char sinks_name[] = "masked_softmax_with_sinks", sigmoid_name[] = "masked_sigmoid",
                  biases_name[] = "masked_sigmoid_with_biases";

/* A constant that is not −∞: the largest of each row of scores and its sink. */
static rapt_tensor *largest_of(rapt_tensor *scores, rapt_tensor *sinks)
{
    RAPT_NO_GRADIENT;
    const double lowest = scores->dtype == RAPT_FLOAT32 ? (double)-FLT_MAX : -DBL_MAX;
    rapt_tensor *largest = rapt_maximum(rapt_max(scores, RAPT_AXES(-1), true), sinks);
    return rapt_maximum(largest, scalar_like(scores, lowest));
}

/* exp(a − m) / (exp(sink − m) + Σ exp(a − m)), for any m */
static rapt_tensor *softmax_with_sinks(rapt_tensor *scores, const rapt_resolved_mask *mask, rapt_tensor *sinks)
{
    rapt_tensor *seen;
    RAPT_SCOPE;
    if (!begin(sinks_name, mask, &scores, &seen)) return NULL;
    if (mask->keys == 0) return rapt_keep(scores);
    sinks = head_term_rows(sinks, scores);
    if (seen) scores = rapt_where(seen, scores, scalar_like(scores, -(double)INFINITY));
    if (!scores || !sinks) return NULL;
    rapt_tensor *largest = largest_of(scores, sinks);
    rapt_tensor *powers = rapt_exp(rapt_sub(scores, largest)), *sink = rapt_exp(rapt_sub(sinks, largest));
    rapt_tensor *total = rapt_add(rapt_sum(powers, RAPT_AXES(-1), true), sink);
    if (!total) return NULL;
    /* of a row that sees nothing beside a sink of −∞ */
    total = rapt_where(rapt_not_equal(total, scalar_like(total, 0)), total, scalar_like(total, 1));
    return rapt_keep(keep_seen(seen, rapt_div(powers, total)));
}

static rapt_tensor *sigmoid_with_biases(rapt_tensor *scores, const rapt_resolved_mask *mask, rapt_tensor *biases)
{
    rapt_tensor *seen;
    RAPT_SCOPE;
    if (!begin(biases ? biases_name : sigmoid_name, mask, &scores, &seen)) return NULL;
    scores = keep_seen(seen, scores); /* a hidden one may be NaN, whose gradient would be 0 · NaN */
    if (!scores) return NULL;
    if (biases) scores = rapt_add(scores, head_term_rows(biases, scores));
    return rapt_keep(keep_seen(seen, rapt_sigmoid(scores)));
}

static rapt_tensor *sigmoid(rapt_tensor *scores, const rapt_resolved_mask *mask)
{
    return sigmoid_with_biases(scores, mask, NULL);
}

static const char sparsemax_name[] = "masked_sparsemax", entmax15_name[] = "masked_entmax15";

static rapt_tensor *sparsemax(rapt_tensor *scores, const rapt_resolved_mask *mask)
{
    return sparse(sparsemax_name, rapt_sparsemax, scores, mask);
}

static rapt_tensor *entmax15(rapt_tensor *scores, const rapt_resolved_mask *mask)
{
    return sparse(entmax15_name, rapt_entmax15, scores, mask);
}

/* --- under a mask as it is, and under a resolved one --- */

static rapt_tensor *resolve_and(const char *name, rapt_resolved_normalizer *normalizer, rapt_tensor *scores,
                                const rapt_mask *mask)
{
    rapt_resolved_mask resolved;
    RAPT_SCOPE;
    if (!rapt_resolve_mask_for(name, mask, scores, &resolved)) return NULL;
    return rapt_keep(normalizer(scores, &resolved));
}

rapt_tensor *rapt_masked_none(rapt_tensor *scores, const rapt_mask *mask)
{
    return resolve_and(none_name, none, scores, mask);
}

rapt_tensor *rapt_masked_sum(rapt_tensor *scores, const rapt_mask *mask)
{
    return resolve_and(sum_name, sum, scores, mask);
}

rapt_tensor *rapt_masked_hard(rapt_tensor *scores, const rapt_mask *mask)
{
    return resolve_and(hard_op.name, hard, scores, mask);
}

rapt_tensor *rapt_masked_uniform(rapt_tensor *scores, const rapt_mask *mask)
{
    return resolve_and(uniform_op.name, uniform, scores, mask);
}

rapt_tensor *rapt_masked_sigmoid(rapt_tensor *scores, const rapt_mask *mask)
{
    return resolve_and(sigmoid_name, sigmoid, scores, mask);
}

/* Softmax with sinks or sigmoid with biases. */
typedef rapt_tensor *head_term_normalizer(rapt_tensor *scores, const rapt_resolved_mask *mask, rapt_tensor *head_terms);

static rapt_tensor *resolve_and_normalize(const char *name, const char *what, head_term_normalizer *normalizer,
                                          rapt_tensor *scores, const rapt_mask *mask, rapt_tensor *head_terms)
{
    rapt_resolved_mask resolved;
    RAPT_SCOPE;
    if (!rapt_resolve_mask_for(name, mask, scores, &resolved) ||
        !rapt_check_head_terms(name, what, head_terms, scores->dtype, resolved.heads))
        return NULL;
    return rapt_keep(normalizer(scores, &resolved, head_terms));
}

rapt_tensor *rapt_masked_softmax_with_sinks(rapt_tensor *scores, const rapt_mask *mask, rapt_tensor *sinks)
{
    return resolve_and_normalize(sinks_name, "sinks", softmax_with_sinks, scores, mask, sinks);
}

rapt_tensor *rapt_masked_sigmoid_with_biases(rapt_tensor *scores, const rapt_mask *mask, rapt_tensor *biases)
{
    return resolve_and_normalize(biases_name, "biases", sigmoid_with_biases, scores, mask, biases);
}

rapt_tensor *rapt_masked_sparsemax(rapt_tensor *scores, const rapt_mask *mask)
{
    return resolve_and(sparsemax_name, sparsemax, scores, mask);
}

rapt_tensor *rapt_masked_entmax15(rapt_tensor *scores, const rapt_mask *mask)
{
    return resolve_and(entmax15_name, entmax15, scores, mask);
}

rapt_tensor *rapt_normalize(rapt_normalizer *normalizer, rapt_tensor *scores, const rapt_mask *mask,
                            const rapt_resolved_mask *resolved, rapt_tensor *head_terms)
{
    static const struct {
        rapt_normalizer *normalizer;
        rapt_resolved_normalizer *resolved;
    } known[] = {{rapt_masked_softmax, rapt_masked_softmax_resolved},
                 {rapt_masked_sparsemax, sparsemax},
                 {rapt_masked_entmax15, entmax15},
                 {rapt_masked_sigmoid, sigmoid},
                 {rapt_masked_none, none},
                 {rapt_masked_sum, sum},
                 {rapt_masked_hard, hard},
                 {rapt_masked_uniform, uniform}};
    if (head_terms)
        return (normalizer == rapt_masked_sigmoid ? sigmoid_with_biases : softmax_with_sinks)(scores, resolved,
                                                                                              head_terms);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (normalizer == known[i].normalizer) return known[i].resolved(scores, resolved);
    rapt_tensor *weights = normalizer(scores, mask);
    char expected[RAPT_SHAPE_TEXT], text[RAPT_SHAPE_TEXT];
    if (weights && rapt_same_shape(weights, scores)) return weights;
    if (!weights)
        rapt_fail(RAPT_ERROR_VALUE, "Attention", "its normalizer failed without a reason");
    else
        rapt_fail(RAPT_ERROR_SHAPE, "Attention", "weights %s expected of the normaliser, not %s",
                  rapt_shape_text(scores->rank, scores->shape, expected),
                  rapt_shape_text(weights->rank, weights->shape, text));
    return NULL;
}
