/* Attention pooling by its definition, step by step, and the way to a fused one. */
#include "nn/pooling.h"

#include <string.h>

#include "attention/mask/relative_position.h"
#include "nn/attention_call.h"
#include "normalizers.h"
#include "weighted_sum.h"

/* Two tables added, each as far as the one that reaches farther: (…, 2R + 1). */
static rapt_tensor *add_tables(rapt_tensor *a, rapt_tensor *b)
{
    int64_t reach_a = a->shape[a->rank - 1] / 2, reach_b = b->shape[b->rank - 1] / 2;
    int64_t reach = reach_a > reach_b ? reach_a : reach_b;
    rapt_tensor *wide_a = rapt_squeeze(rapt_by_relative_position(a, 1, 2 * reach + 1, reach, false), -2);
    rapt_tensor *wide_b = rapt_squeeze(rapt_by_relative_position(b, 1, 2 * reach + 1, reach, false), -2);
    return rapt_add(wide_a, wide_b);
}

/* Puts the scoring function's relative bias into the mask, and into the resolved one. finds_unseen: keys for which
 * it is −∞ are then not seen. */
static bool add_relative_bias(rapt_pooling *p, bool finds_unseen)
{
    rapt_scoring *scoring = p->attention->scoring;
    rapt_tensor *const of_mask = p->mask.relative_bias;
    if (!scoring->relative_bias) return true;
    rapt_tensor *bias = rapt_scoring_relative_bias(scoring, p->queries);
    if (!bias ||
        !rapt_resolve_relative_bias("Attention", bias, p->queries->dtype, finds_unseen && !of_mask, &p->resolved))
        return false;
    p->mask.relative_bias = of_mask ? add_tables(bias, of_mask) : bias;
    return !of_mask || (p->mask.relative_bias && rapt_resolve_relative_bias("Attention", p->mask.relative_bias,
                                                                            bias->dtype, finds_unseen, &p->resolved));
}

/* (B, groups · repeats, Q, size) → (B, groups, repeats · Q, size): the queries that one group of keys answers */
static rapt_tensor *by_group(const rapt_pooling *p, rapt_tensor *x)
{
    if (!x || p->repeats == 1) return x;
    return rapt_reshape(x, RAPT_SHAPE(x->shape[0], p->groups, p->repeats * x->shape[2], x->shape[3]));
}

/* The way back. */
static rapt_tensor *by_head(const rapt_pooling *p, rapt_tensor *x)
{
    if (!x || p->repeats == 1) return x;
    return rapt_reshape(x, RAPT_SHAPE(x->shape[0], p->groups * p->repeats, x->shape[2] / p->repeats, x->shape[3]));
}

static rapt_tensor *compute_scores(const rapt_pooling *p)
{
    rapt_scoring *scoring = p->attention->scoring;
    rapt_tensor *queries = by_group(p, p->queries);
    rapt_tensor *scores = queries ? rapt_scoring_score(scoring, queries, p->keys) : NULL;
    if (!scores) return NULL;
    int last = queries->rank - 1;
    int64_t expected[4];
    memcpy(expected, queries->shape, (size_t)last * sizeof *expected);
    expected[last] = rapt_length_of(p->keys);
    char a[RAPT_SHAPE_TEXT], b[RAPT_SHAPE_TEXT];
    if (scores->rank == queries->rank && memcmp(scores->shape, expected, (size_t)scores->rank * sizeof *expected) == 0)
        return rapt_check_scores("Attention", scores) ? by_head(p, scores) : NULL;
    rapt_fail(RAPT_ERROR_SHAPE, "Attention", "scores %s expected of the scoring function %s, not %s",
              rapt_shape_text(last + 1, expected, a), scoring->module.kind->name,
              rapt_shape_text(scores->rank, scores->shape, b));
    return NULL;
}

bool rapt_wants_weights(const rapt_pooling *p)
{
    return p->weights || p->attention->keep_weights;
}

static bool hand_out_weights(const rapt_pooling *p, rapt_tensor *weights)
{
    if (!weights) return false;
    if (p->weights) *p->weights = weights;
    /* what backward repeats was kept the first time by who hands it on */
    if (p->attention->keep_weights && !(p->weights && rapt_is_recomputing()))
        rapt_field_set(&p->attention->weights, weights);
    return true;
}

static double dropout_of(const rapt_attention *attention)
{
    return attention->module.training ? attention->dropout : 0;
}

/* Σ w (v + the row of the table for the relative position): the table's rows, weighted by what has their position. */
static rapt_tensor *add_relative_values(const rapt_pooling *p, rapt_tensor *weights, rapt_tensor *pooled)
{
    rapt_tensor *table = p->attention->scoring->relative_values;
    if (!table || !weights || !pooled) return pooled;
    rapt_tensor *sums = rapt_sum_by_place(weights, table->shape[0] / 2, &p->resolved);
    return rapt_add(pooled, rapt_matmul(sums, table));
}

/* A modification that makes a score −∞ hides the key from softmax. */
static bool hide_by_changes(rapt_pooling *p, rapt_tensor *scores)
{
    if (!p->changes || p->attention->normalizer != rapt_masked_softmax || p->mask.fills_million) return true;
    if (scores->rank == 3) scores = rapt_unsqueeze(rapt_detach(scores), 1);
    return scores && rapt_hide_lowest(scores, &p->resolved.seen);
}

rapt_tensor *rapt_pool_plainly(rapt_pooling *p)
{
    rapt_attention *attention = p->attention;
    rapt_tensor *scores = rapt_change_plainly(p->changes, compute_scores(p), p->resolved.offset, p->resolved.places);
    if (!scores || !add_relative_bias(p, true) || !rapt_settle_rule(&p->resolved) || !hide_by_changes(p, scores))
        return NULL;
    rapt_tensor *weights = rapt_normalize(attention->normalizer, scores, &p->mask, &p->resolved, p->head_terms);
    if (!weights || (rapt_wants_weights(p) && !hand_out_weights(p, weights))) return NULL;
    if (dropout_of(attention) > 0) weights = rapt_drop(weights, dropout_of(attention));
    rapt_tensor *pooled = by_head(p, rapt_weighted_sum(by_group(p, weights), p->values));
    return add_relative_values(p, weights, pooled);
}

bool rapt_pooling_is_fused(const rapt_pooling *p)
{
    const rapt_attention *attention = p->attention;
    return attention->scoring->attend && !attention->scoring->relative_values && !attention->plain &&
           (attention->normalizer == rapt_masked_softmax || attention->normalizer == rapt_masked_sigmoid) &&
           !p->mask.fills_million && rapt_changes_have_functions(p->changes);
}

rapt_tensor *rapt_pool_fused(rapt_pooling *p)
{
    rapt_attention *attention = p->attention;
    rapt_tensor *weights = NULL;
    if (!add_relative_bias(p, false)) return NULL; /* kernels see −∞ themselves */
    const rapt_attention_call call = {.queries = p->queries,
                                      .keys = p->keys,
                                      .values = p->values,
                                      .mask = &p->resolved,
                                      .changes = p->changes,
                                      .is_sigmoid = attention->normalizer == rapt_masked_sigmoid,
                                      .head_terms = p->head_terms,
                                      .dropout = dropout_of(attention),
                                      .weights = rapt_wants_weights(p) ? &weights : NULL};
    rapt_tensor *pooled = attention->scoring->attend(attention->scoring, &call);
    if (!pooled || !rapt_wants_weights(p)) return pooled;
    return hand_out_weights(p, p->queries->rank == 4 ? weights : rapt_squeeze(weights, 1)) ? pooled : NULL;
}
