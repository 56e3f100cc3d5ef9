/* The layer of attention pooling: its inputs checked, its keys prepared, and padding kept out. */
#include <rapt/attention.h>

#include <math.h>
#include <stdio.h>

#include "attention.h"
#include "attention/mask/packed.h"
#include "attention/mask/undefined_keys.h"
#include "attention/ring/ring.h"
#include "nn/entry.h"
#include "nn/padding.h"
#include "tensor/random.h"

static void forget(rapt_module *module)
{
    rapt_field_set(&((rapt_attention *)module)->weights, NULL);
}

static void describe(const rapt_module *module, char *text, size_t size)
{
    snprintf(text, size, "dropout %g", ((const rapt_attention *)module)->dropout);
}

static const rapt_module_class kind = {.name = "Attention", .destroy = forget, .describe = describe, .forget = forget};

rapt_attention *rapt_attention_new(rapt_scoring *scoring, double dropout)
{
    rapt_attention *attention = NULL;
    if (!scoring) rapt_fail(RAPT_ERROR_NULL, kind.name, "the scoring function is NULL");
    if (rapt_check_probability(kind.name, "dropout", dropout)) attention = rapt_module_new(sizeof *attention, &kind);
    rapt_module *module = attention ? &attention->module : NULL;
    rapt_scoring *added = rapt_module_add_child(module, "", (rapt_module *)scoring);
    if (attention) {
        attention->scoring = added;
        attention->normalizer = rapt_masked_softmax;
        attention->sink = -(double)INFINITY;
        attention->dropout = dropout;
    }
    return rapt_module_finish(module);
}

/* The fields may have been set by hand. */
static bool check_modifications(const rapt_attention *attention)
{
    const int count = attention->modification_count;
    if (count < 0 || count > RAPT_MAX_SCORE_MODIFICATIONS)
        return rapt_fail(RAPT_ERROR_VALUE, kind.name, "%d modifications; 0 to %d expected", count,
                         RAPT_MAX_SCORE_MODIFICATIONS);
    for (int k = 0; k < count; k++)
        if (!attention->modifications[k]) return rapt_fail(RAPT_ERROR_NULL, kind.name, "modification %d is NULL", k);
    return true;
}

rapt_score_modification *rapt_attention_modify(rapt_attention *attention, const char *name,
                                               rapt_score_modification *modification)
{
    const bool good =
        attention ? check_modifications(attention) : rapt_fail(RAPT_ERROR_NULL, kind.name, "the layer is NULL");
    const bool has_room = good && attention->modification_count < RAPT_MAX_SCORE_MODIFICATIONS;
    if (good && !has_room)
        rapt_fail(RAPT_ERROR_VALUE, kind.name, "it has %d modifications, which is as many as there may be",
                  attention->modification_count);
    rapt_score_modification *added =
        rapt_module_add_child(has_room ? &attention->module : NULL, name, (rapt_module *)modification);
    if (added) attention->modifications[attention->modification_count++] = added;
    return added;
}

/* The axis of a batch is missing where sequences are packed. rank 0: with heads or without. */
static bool check_tensor(const char *what, const rapt_tensor *tensor, int rank, bool packed)
{
    char text[128];
    if (!tensor) return rapt_fail(RAPT_ERROR_NULL, kind.name, "the %s are NULL", what);
    const int without_heads = packed ? 2 : 3;
    bool fits = rank ? tensor->rank == rank : tensor->rank == without_heads || tensor->rank == without_heads + 1;
    const char *expected = rank > without_heads ? packed ? "(heads, rows, size)" : "(B, heads, length, size)"
                           : packed             ? "(rows, size)"
                                                : "(B, length, size)";
    return fits || rapt_fail(RAPT_ERROR_SHAPE, kind.name, "%s of shape %s expected, not %s", what, expected,
                             rapt_describe(tensor, text, sizeof text));
}

bool rapt_attention_check(const rapt_attention *attention)
{
    const char *missing = !attention                   ? "layer"
                          : !attention->normalizer     ? "normaliser"
                          : !attention->scoring        ? "scoring function"
                          : !attention->scoring->score ? "scoring function's score"
                                                       : NULL;
    if (missing) return rapt_fail(RAPT_ERROR_NULL, kind.name, "the %s is NULL", missing);
    return check_modifications(attention) && rapt_check_probability(kind.name, "dropout", attention->dropout);
}

/* Are the inputs packed, without the axis of a batch? Those under a resolved mask have one, of size 1. */
static bool lacks_batch(const rapt_mask *mask, const rapt_resolved_mask *resolved)
{
    return mask && mask->starts && !resolved;
}

/* Checks the inputs of a call and resolves its mask, unless `resolved` says that it is. False after an error. */
static bool begin(rapt_pooling *p, rapt_attention *attention, rapt_tensor *queries, rapt_tensor *keys,
                  rapt_tensor *values, const rapt_mask *mask, const rapt_resolved_mask *resolved)
{
    const bool packed = lacks_batch(mask, resolved);
    if (!rapt_attention_check(attention) || !rapt_check_starts(kind.name, mask) ||
        !check_tensor("queries", queries, 0, packed) || !check_tensor("keys", keys, queries->rank, packed) ||
        !check_tensor("values", values, queries->rank, packed))
        return false;
    if (packed) {
        queries = rapt_unsqueeze(queries, 0);
        keys = rapt_unsqueeze(keys, 0);
        values = rapt_unsqueeze(values, 0);
        if (!queries || !keys || !values) return false;
    }
    int64_t heads = rapt_heads_of(queries), groups = rapt_heads_of(keys);
    bool fits = queries->shape[0] == keys->shape[0] && keys->shape[0] == values->shape[0] &&
                groups == rapt_heads_of(values) && rapt_length_of(keys) == rapt_length_of(values) &&
                (groups > 0 ? heads % groups == 0 : heads == 0);
    char q[RAPT_SHAPE_TEXT], k[RAPT_SHAPE_TEXT], v[RAPT_SHAPE_TEXT];
    if (!fits)
        return rapt_fail(
            RAPT_ERROR_SHAPE, kind.name,
            "queries %s, keys %s and values %s; one batch size, one length of keys and values, and as many "
            "heads of queries or a multiple expected",
            rapt_shape_text(queries->rank, queries->shape, q), rapt_shape_text(keys->rank, keys->shape, k),
            rapt_shape_text(values->rank, values->shape, v));
    *p = (rapt_pooling){.attention = attention, .queries = queries, .keys = keys, .values = values};
    if (mask) p->mask = *mask;
    p->groups = groups;
    p->repeats = groups > 0 ? heads / groups : 1;
    if (resolved) p->resolved = *resolved;
    if (resolved) return true;
    const int64_t batch = queries->shape[0], length = rapt_length_of(queries), of_keys = rapt_length_of(keys);
    return attention->ring
               ? rapt_ring_resolve_mask(kind.name, attention->ring, &p->mask, queries->dtype, batch, heads, length,
                                        of_keys, &p->resolved)
               : rapt_resolve_mask(kind.name, mask, queries->dtype, batch, heads, length, of_keys, &p->resolved);
}

/* Does the fused way, which alone goes across ranks, fit the call? */
static bool check_ring(const rapt_pooling *p)
{
    const char *refused = rapt_wants_weights(p)       ? "that keeps its weights"
                          : !rapt_pooling_is_fused(p) ? "without a fused way"
                                                      : NULL;
    return !p->resolved.ring || !refused ||
           rapt_fail(RAPT_ERROR_UNSUPPORTED, kind.name, "attention across ranks %s", refused);
}

/* Keys that are not in seen_keys are not read; NULL: all are. */
static rapt_tensor *prepare(rapt_attention *attention, rapt_tensor *keys, rapt_tensor *seen_keys)
{
    rapt_tensor *prepared = rapt_scoring_prepare(attention->scoring, keys, seen_keys);
    char text[128];
    if (!prepared || (prepared->rank == keys->rank && rapt_length_of(prepared) == rapt_length_of(keys)))
        return prepared;
    rapt_fail(RAPT_ERROR_SHAPE, kind.name, "%lld prepared keys of rank %d expected of the scoring function %s, not %s",
              (long long)rapt_length_of(keys), keys->rank, attention->scoring->module.kind->name,
              rapt_describe(prepared, text, sizeof text));
    return NULL;
}

/* Of the modifications; captured tensors belong to the innermost scope. */
static bool resolve_changes(const rapt_pooling *p, rapt_resolved_changes *changes)
{
    const rapt_attention *attention = p->attention;
    const int64_t batch = p->resolved.packed ? p->resolved.sequences : p->resolved.batch;
    return rapt_check_change_places(kind.name, p->resolved.offset, p->resolved.places) &&
           rapt_resolve_changes(attention->modification_count, attention->modifications, p->queries->dtype, batch,
                                p->resolved.heads, changes);
}

/* A call that has begun, from keys that are still to be prepared or not. The definition and the weights of packed
 * sequences are those of the padded batch. */
static rapt_tensor *pool(rapt_pooling *p, bool prepares)
{
    rapt_tensor *seen_keys = NULL;
    rapt_resolved_changes changes;
    if (!p->changes && p->attention->modification_count > 0) {
        if (!resolve_changes(p, &changes)) return NULL;
        p->changes = &changes;
    }
    if (!check_ring(p)) return NULL;
    if (!p->head_terms && !rapt_resolve_head_terms(p->attention, &p->resolved, p->queries->dtype, &p->head_terms))
        return NULL;
    if (!rapt_hide_blind_queries(p)) return NULL;
    if (p->resolved.packed && (!rapt_pooling_is_fused(p) || rapt_wants_weights(p))) {
        rapt_pooling padded;
        return rapt_unpack_pooling(kind.name, p, &padded) ? rapt_pack_pooled(&p->mask, pool(&padded, prepares)) : NULL;
    }
    if (rapt_padding_of(p, prepares) == RAPT_PADDING_TO_HIDE &&
        !rapt_find_seen_keys(&p->resolved, p->groups, &seen_keys))
        return NULL;
    p->keys = prepares ? prepare(p->attention, p->keys, seen_keys) : rapt_hide_rows(p->keys, seen_keys);
    if (!rapt_pooling_is_fused(p)) p->values = rapt_hide_rows(p->values, seen_keys);
    if (!p->keys || !p->values) return NULL;
    return rapt_pooling_is_fused(p) ? rapt_pool_fused(p) : rapt_pool_plainly(p);
}

static rapt_tensor *without_batch(rapt_tensor *x, bool lacks_it)
{
    return x && lacks_it ? rapt_squeeze(x, 0) : x;
}

rapt_tensor *rapt_attention_prepare(rapt_attention *attention, rapt_tensor *keys, const rapt_mask *mask)
{
    rapt_tensor *seen_keys, *finite;
    const bool packed = lacks_batch(mask, NULL);
    if (rapt_was_freed(kind.name, attention) || !rapt_attention_check(attention) ||
        !check_tensor("keys", keys, 0, packed))
        return NULL;
    if (attention->ring)
        return rapt_fail(RAPT_ERROR_UNSUPPORTED, kind.name, "keys prepared beforehand go to no other rank"), NULL;
    RAPT_SCOPE;
    if (packed && !(keys = rapt_unsqueeze(keys, 0))) return NULL;
    if (!rapt_find_keys_that_may_be_seen(kind.name, keys, mask, &seen_keys)) return NULL;
    if (!attention->scoring->prepare) return rapt_keep(without_batch(rapt_hide_rows(keys, seen_keys), packed));
    /* Which other keys no query sees, only the queries will tell: what may be padding must not reach a parameter's
     * gradient. */
    if (!rapt_find_finite(keys, &finite)) return NULL;
    keys = rapt_spoil_undefined(prepare(attention, rapt_hide_rows(keys, finite), seen_keys), seen_keys, finite);
    return rapt_keep(without_batch(keys, packed));
}

/* What was asked of it: its keys are prepared, or not yet. */
typedef struct pooling_call {
    rapt_tensor *queries, *keys, *values;
    const rapt_mask *mask;
    const rapt_resolved_mask *resolved;
    bool prepares;
} pooling_call;

static rapt_tensor *pool_alone(rapt_attention *attention, const pooling_call *c, rapt_tensor **weights)
{
    rapt_pooling p;
    RAPT_SCOPE;
    if (!begin(&p, attention, c->queries, c->keys, c->values, c->mask, c->resolved)) return NULL;
    p.weights = weights;
    rapt_tensor *pooled = without_batch(pool(&p, c->prepares), lacks_batch(c->mask, c->resolved));
    if (pooled && weights) rapt_keep(*weights);
    return rapt_keep(pooled);
}

/* A rank that fails before it meets the others tells them. */
static rapt_tensor *pool_on_ranks(rapt_attention *attention, const pooling_call *call, rapt_tensor **weights)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((rapt_module *)attention);
    rapt_ring *ring = attention ? attention->ring : NULL;
    const int64_t before = ring ? ring->meetings : 0;
    rapt_tensor *pooled = pool_alone(attention, call, weights);
    rapt_ring_tell(ring, kind.name, !pooled, before);
    return pooled;
}

rapt_tensor *rapt_attention_pool_weighing(rapt_attention *attention, rapt_tensor *queries, rapt_tensor *prepared_keys,
                                          rapt_tensor *values, const rapt_mask *mask, rapt_tensor **weights)
{
    return pool_on_ranks(attention, &(pooling_call){queries, prepared_keys, values, mask, NULL, false}, weights);
}

rapt_tensor *rapt_attention_pool(rapt_attention *attention, rapt_tensor *queries, rapt_tensor *prepared_keys,
                                 rapt_tensor *values, const rapt_mask *mask)
{
    return rapt_attention_pool_weighing(attention, queries, prepared_keys, values, mask, NULL);
}

rapt_tensor *rapt_attention_forward_resolved(rapt_attention *attention, rapt_tensor *queries, rapt_tensor *keys,
                                             rapt_tensor *values, const rapt_mask *mask,
                                             const rapt_resolved_mask *resolved, rapt_tensor **weights)
{
    return pool_on_ranks(attention, &(pooling_call){queries, keys, values, mask, resolved, true}, weights);
}

rapt_tensor *rapt_attention_forward(rapt_attention *attention, rapt_tensor *queries, rapt_tensor *keys,
                                    rapt_tensor *values, const rapt_mask *mask)
{
    return rapt_attention_forward_resolved(attention, queries, keys, values, mask, NULL, NULL);
}

static bool set_keep_weights(rapt_module *module, void *keep)
{
    if (module->kind == &kind) ((rapt_attention *)module)->keep_weights = *(const bool *)keep;
    return true;
}

void rapt_attention_keep_weights(rapt_module *module, bool keep)
{
    if (module && !rapt_was_freed("attention_keep_weights", module)) rapt_module_each(module, set_keep_weights, &keep);
}

static bool set_ring(rapt_module *module, void *ring)
{
    if (module->kind == &kind) ((rapt_attention *)module)->ring = ring;
    return true;
}

void rapt_attention_set_ring(rapt_module *module, rapt_ring *ring)
{
    if (module && !rapt_was_freed("attention_set_ring", module)) rapt_module_each(module, set_ring, ring);
}

static bool find_ring(rapt_module *module, void *ring)
{
    rapt_ring *own = module->kind == &kind ? ((rapt_attention *)module)->ring : NULL;
    if (own) *(rapt_ring **)ring = own;
    return true;
}

rapt_ring *rapt_attention_get_ring(rapt_module *module)
{
    rapt_ring *ring = NULL;
    if (module && !rapt_was_freed("attention_get_ring", module)) rapt_module_each(module, find_ring, &ring);
    return ring;
}
