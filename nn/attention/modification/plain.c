/* A modification of whole scores: by its own ops, or else by its functions over tiles as an op. */
#include <string.h>

#include "attention/fused/captured.h"
#include "nn/mask.h"
#include "nn/score_modifications.h"
#include "tensor/core.h"
#include "tensor/debug.h"

static const char *const name = "score_modification";

/* The inputs: scores (B, heads, Q, K), the queries' places or NULL, and what is captured. What is saved, and backward's
 * inputs: old scores and new ones, each NULL where it is not read, the places, what is captured, and for backward the
 * gradient. */
enum { in_scores, in_places, in_captured };
enum { at_old, at_new, at_places, at_captured };

typedef struct options {
    rapt_score_changes changes; /* one */
    int64_t offset;
    bool wants[rapt_most_captured]; /* for backward */
} options;

static rapt_whole_scores whole_of(const rapt_tensor *scores, int64_t offset, const rapt_tensor *places)
{
    const int64_t *shape = scores->shape;
    return (rapt_whole_scores){.batch = shape[0],
                               .heads = shape[1],
                               .queries = shape[2],
                               .keys = shape[3],
                               .offset = offset,
                               .places = rapt_integers_of(places),
                               .place_item = places ? rapt_integers_item(places, shape[2]) : 0};
}

static rapt_tensor *forward(rapt_call *call)
{
    const options *o = rapt_call_options(call);
    const rapt_score_change *change = &o->changes.each[0];
    rapt_tensor *const *inputs = rapt_call_inputs(call), *scores = inputs[in_scores];
    rapt_raw_changes raw;
    RAPT_SCOPE;
    rapt_tensor *changed = rapt_keep(rapt_clone(scores));
    if (!changed) return NULL;
    rapt_whole_scores whole = whole_of(changed, o->offset, inputs[in_places]);
    whole.scores = changed->data;
    rapt_raw_changes_of(&o->changes, scores->dtype, inputs + in_captured, &raw);
    if (!rapt_change_whole_scores(name, &raw, &whole)) return NULL;
    rapt_call_save(call, change->reads_old ? scores : NULL);
    rapt_call_save(call, change->reads_new ? changed : NULL);
    for (int k = in_places; k < in_captured + change->captured; k++) rapt_call_save(call, inputs[k]);
    return changed;
}

static rapt_tensor *backward_forward(rapt_call *call)
{
    const options *o = rapt_call_options(call);
    rapt_tensor *const *inputs = rapt_call_inputs(call);
    rapt_raw_changes raw;
    RAPT_SCOPE;
    rapt_tensor *old_gradient = rapt_keep(rapt_clone(inputs[at_captured + o->changes.captured]));
    if (!old_gradient) return NULL;
    rapt_raw_changes_of(&o->changes, old_gradient->dtype, inputs + at_captured, &raw);
    if (!rapt_captured_gradients(call, 1, o->wants, at_captured, &raw)) return NULL;
    const rapt_tensor *old_scores = inputs[at_old] ? rapt_as_contiguous(inputs[at_old]) : NULL;
    if (inputs[at_old] && !old_scores) return NULL;
    rapt_whole_scores whole = whole_of(old_gradient, o->offset, inputs[at_places]);
    whole.gradient = old_gradient->data;
    whole.old_scores = old_scores ? old_scores->data : NULL;
    whole.new_scores = inputs[at_new] ? inputs[at_new]->data : NULL;
    return rapt_differentiate_whole_scores(name, &raw, &whole) ? old_gradient : NULL;
}

static const rapt_op backward = {
    .name = "score_modification_backward",
    .forward = backward_forward,
    .options_size = sizeof(options),
    .optional = 1u << at_old | 1u << at_new | 1u << at_places,
    .no_gradient = "the functions of a score modification have no second derivative; give it by_ops for one",
};

static bool vjp(rapt_call *call)
{
    options o = *(const options *)rapt_call_options(call);
    const int captured = o.changes.captured;
    rapt_tensor *in[at_captured + rapt_most_captured + 1], *gradients[1 + rapt_most_captured];
    for (int k = 0; k < at_captured + captured; k++) in[k] = rapt_call_saved(call, k);
    in[at_captured + captured] = rapt_call_gradient(call, 0);
    for (int c = 0; c < captured; c++) o.wants[c] = rapt_call_wants(call, in_captured + c);
    if (!rapt_apply_counted(&backward, &o, at_captured + captured + 1, in, 1 + captured, gradients)) return false;
    bool good = rapt_call_give(call, 0, gradients[0]);
    for (int c = 0; c < captured && good; c++)
        good = !o.wants[c] || rapt_call_give(call, in_captured + c, gradients[1 + c]);
    return good;
}

static const rapt_op op = {.name = "score_modification",
                           .forward = forward,
                           .vjp = vjp,
                           .options_size = sizeof(options),
                           .optional = 1u << in_places};

static rapt_tensor *by_functions(const rapt_score_change *change, rapt_tensor *const *captured, rapt_tensor *scores,
                                 int64_t offset, rapt_tensor *places)
{
    rapt_tensor *in[in_captured + rapt_most_captured] = {scores, places};
    const options o = {.changes = {1, change->captured, {*change}}, .offset = offset};
    if (change->captured > 0) memcpy(in + in_captured, captured, (size_t)change->captured * sizeof *in);
    return rapt_apply(&op, &o, in_captured + change->captured, in);
}

/* int64 (Q, 1) or, where places differ by item, (B, 1, Q, 1) */
static rapt_tensor *places_of_queries(const rapt_tensor *scores, int64_t offset, rapt_tensor *places)
{
    const int64_t queries = scores->shape[2];
    if (!places) return rapt_unsqueeze(rapt_arange(RAPT_INT64, (double)offset, (double)offset + (double)queries, 1), 1);
    if (places->count == queries) return rapt_reshape(places, RAPT_SHAPE(queries, 1));
    return rapt_reshape(places, RAPT_SHAPE(scores->shape[0], 1, queries, 1));
}

static rapt_tensor *by_ops(const rapt_score_change *change, rapt_tensor *const *captured, rapt_tensor *scores,
                           int64_t offset, rapt_tensor *places)
{
    rapt_tensor *query_places = places_of_queries(scores, offset, places);
    rapt_tensor *key_places = rapt_arange(RAPT_INT64, 0, (double)scores->shape[3], 1);
    if (!query_places || !key_places) return NULL;
    rapt_tensor *changed = change->by_ops(change->options, scores, captured, query_places, key_places);
    char text[128], expected[RAPT_SHAPE_TEXT];
    if (changed && rapt_same_shape(changed, scores) && changed->dtype == scores->dtype) return changed;
    if (!changed)
        rapt_fail(RAPT_ERROR_VALUE, change->name, "its by_ops failed without a reason");
    else
        rapt_fail(RAPT_ERROR_SHAPE, change->name, "%s scores %s expected of by_ops, not %s",
                  rapt_dtype_name(scores->dtype), rapt_shape_text(scores->rank, scores->shape, expected),
                  rapt_describe(changed, text, sizeof text));
    return NULL;
}

/* Of scores (B, heads, Q, K). */
static rapt_tensor *change_one(const rapt_score_change *change, rapt_tensor *const *captured, rapt_tensor *scores,
                               int64_t offset, rapt_tensor *places)
{
    if (change->by_ops) return by_ops(change, captured, scores, offset, places);
    if (change->functions.change) return by_functions(change, captured, scores, offset, places);
    rapt_fail(RAPT_ERROR_UNSUPPORTED, change->name,
              "there are neither functions for tiles of %s nor by_ops; one of both expected",
              rapt_dtype_name(scores->dtype));
    return NULL;
}

rapt_tensor *rapt_change_plainly(const rapt_resolved_changes *changes, rapt_tensor *scores, int64_t offset,
                                 rapt_tensor *places)
{
    if (!changes || !scores) return scores;
    RAPT_SCOPE;
    const bool has_heads = scores->rank == 4;
    if (!has_heads) scores = rapt_unsqueeze(scores, 1);
    for (int k = 0, first = 0; k < changes->changes.count && scores; k++) {
        const rapt_score_change *change = &changes->changes.each[k];
        scores = change_one(change, changes->captured + first, scores, offset, places);
        first += change->captured;
    }
    return rapt_keep(scores && !has_heads ? rapt_squeeze(scores, 1) : scores);
}

rapt_tensor *rapt_modify_scores(rapt_score_modification *modification, rapt_tensor *scores, int64_t offset)
{
    if (!modification) {
        rapt_fail(RAPT_ERROR_NULL, name, "the modification is NULL");
        return NULL;
    }
    const char *kind = rapt_was_freed(name, modification) ? NULL : modification->module.kind->name;
    if (!kind || !rapt_check_scores(kind, scores) || !rapt_check_change_places(kind, offset, NULL)) return NULL;
    RAPT_SCOPE;
    rapt_resolved_changes changes;
    const int64_t heads = scores->rank == 4 ? scores->shape[1] : 1;
    return rapt_resolve_changes(1, &modification, scores->dtype, scores->shape[0], heads, &changes)
               ? rapt_keep(rapt_change_plainly(&changes, scores, offset, NULL))
               : NULL;
}
