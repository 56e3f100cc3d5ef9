/* Fused additive attention as an op, and its backward as another. */
#include "attention/fused_additive.h"

#include <string.h>

#include "additive_powers.h"
#include "additive_ring.h"
#include "attention/ring/ring.h"
#include "fused.h"
#include "nn/padding.h"
#include "tensor/additive_attention.h"
#include "tensor/kernels.h"

static const char *const name = "additive_attention";

/* The inputs of the op, queries and keys projected, behind which comes what changes of the scores captured; those of
 * the mask may be NULL. Backward's are the same, then the statistics of the output's rows, the weights if they are
 * kept, or across ranks, where they are not, the output, the gradients of output and weights, either of which may be
 * NULL, and those of keys and values so far: if not NULL, they are added to and given back; and then what was captured.
 * Forward saves what was captured behind its other inputs; the rest of it, and the gradients that backward gives, have
 * these numbers. */
enum {
    at_queries,
    at_keys,
    at_weight,
    at_values,
    at_mask,
    at_bias = at_mask + rapt_input_bias,
    at_relative_bias = at_mask + rapt_input_relative_bias,
    at_head_terms = at_mask + rapt_input_head_terms,
    gradient_count,
    input_count = at_mask + rapt_mask_input_count,
    at_statistics = input_count,
    at_weights,
    at_gradient,
    at_keys_so_far = at_gradient + rapt_fused_keys_so_far,
    at_values_so_far = at_gradient + rapt_fused_values_so_far,
    at_captured = at_gradient + rapt_fused_more_inputs,
};

typedef struct backward_options {
    rapt_fused_options forward;
    bool wants[gradient_count], wants_captured[rapt_most_captured];
} backward_options;

static bool make_powers(const void **powers, const rapt_tensor *rows, double factor, const void *factors,
                        rapt_tensor *largest)
{
    rapt_tensor *made = rapt_make_powers(rows, factor, factors, largest);
    *powers = made ? made->data : NULL;
    return made != NULL;
}

/* What forward and backward have in common: the inputs made ready for the kernels, with the exponentials that scores
 * are made of, or the gradients, or both. Across ranks without keys and values, which come piece by piece. The tensors
 * belong to the innermost scope. */
static bool describe(rapt_additive_attention *a, rapt_call *call, const rapt_fused_options *o, bool scores,
                     bool backward)
{
    const rapt_mask_options *options = &o->mask;
    const rapt_tensor *queries = rapt_as_contiguous(rapt_call_input(call, at_queries));
    const rapt_tensor *keys = rapt_call_input(call, at_keys), *values = rapt_call_input(call, at_values);
    if (o->ring) {
        keys = rapt_slice(rapt_call_input(call, at_keys), -2, 0, 0, 1);
        values = rapt_slice(rapt_call_input(call, at_values), -2, 0, 0, 1);
    }
    if (!queries || !keys || !values) return false;
    const int64_t sizes[] = {queries->shape[0], rapt_heads_of(queries), rapt_length_of(queries), rapt_length_of(keys)};
    const rapt_resolved_mask resolved = rapt_mask_of_inputs(rapt_call_inputs(call) + at_mask, options, queries, keys);
    const rapt_additive_inputs in = {.keys = keys,
                                     .weight = rapt_call_input(call, at_weight),
                                     .values = values,
                                     .mask = &resolved};
    const rapt_raw_mask mask = rapt_raw_mask_of(call, at_mask, options, sizes);
    rapt_tensor *largest = rapt_new(name, queries->dtype, queries->rank - 1, queries->shape);
    if (!largest || !rapt_additive_describe(a, &mask, &in)) return false;
    a->queries = (rapt_additive_rows){.rows = queries->data, .largest = largest->data};
    if (backward && !make_powers(&a->queries.powers, queries, 0.5, NULL, largest)) return false;
    return !scores ||
           (rapt_additive_make_constants(a) && make_powers(&a->folded, queries, 1, a->constants.offset, largest));
}

/* Are the weights kept from forward to backward? As long as they are no larger than the projected queries and keys;
 * else backward makes them again, a chunk of the queries at a time, and so it does where it needs the scores. */
static bool keeps_weights(const rapt_additive_attention *a)
{
    const rapt_raw_mask *m = &a->mask;
    return !a->changes && m->heads * m->queries * m->keys <= (m->heads * m->queries + a->groups * m->keys) * a->hidden;
}

static bool wants_any(const rapt_call *call)
{
    bool any = false;
    for (int i = 0; i < rapt_call_count(call); i++) any = any || rapt_call_wants(call, i);
    return any;
}

static rapt_tensor *forward(rapt_call *call)
{
    const rapt_fused_options *o = rapt_call_options(call);
    rapt_additive_attention a;
    rapt_raw_changes changes;
    RAPT_SCOPE;
    if (!describe(&a, call, o, true, false)) return NULL;
    a.changes = rapt_changes_of(call, input_count, &o->changes, a.dtype, &changes);
    a.normalizer = rapt_fused_normalizer(call, at_mask, o, NULL, NULL);
    const rapt_raw_mask *m = &a.mask;
    const rapt_tensor *queries = rapt_call_input(call, at_queries);
    int64_t shape[RAPT_MAX_RANK];
    memcpy(shape, queries->shape, sizeof shape);
    shape[queries->rank - 1] = a.value_size;
    rapt_tensor *out = rapt_new(name, a.dtype, queries->rank, shape);
    const rapt_raw_place all = rapt_raw_place_of_all(m);
    rapt_tensor *statistics = rapt_new(name, a.dtype, RAPT_SHAPE(m->heads * all.queries, 2)), *weights = NULL;
    const bool asked = rapt_fused_gives_weights(call), keeps = wants_any(call) && !o->ring && keeps_weights(&a);
    if (asked || keeps) {
        weights = asked ? rapt_new(name, a.dtype, RAPT_SHAPE(m->batch, m->heads, m->queries, m->keys))
                        : rapt_new(name, a.dtype, RAPT_SHAPE(m->heads * all.pairs));
        if (!weights) return NULL;
    }
    if (!out || !statistics) return NULL;
    const rapt_additive_output output = {out->data, statistics->data, weights ? weights->data : NULL, o->ring};
    const rapt_additive_ring_rows rows = {.keys = rapt_call_input(call, at_keys),
                                          .values = rapt_call_input(call, at_values),
                                          .weight = rapt_call_input(call, at_weight),
                                          .out = out,
                                          .statistics = statistics};
    if (!(o->ring ? rapt_additive_ring_forward(name, o->ring, &a, &output, &rows)
                  : rapt_additive_attention_forward(name, &a, &output)))
        return NULL;
    rapt_fused_save_inputs(call);
    rapt_call_save_constant(call, statistics);
    rapt_call_save_constant(call, keeps ? weights : o->ring ? out : NULL);
    if (asked) rapt_call_set_output(call, rapt_fused_weights, rapt_keep(weights));
    return rapt_keep(out);
}

/* Where that gradient goes: one like the input, or nothing where it is not wanted. */
static rapt_tensor *gradient_like(const rapt_tensor *input, bool wanted)
{
    const int64_t none = 0;
    return wanted ? rapt_new(name, input->dtype, input->rank, input->shape) : rapt_new(name, RAPT_FLOAT32, 1, &none);
}

/* The gradients of the outputs. Where nothing depends on the pooled values it is as if there were no values. */
static bool describe_gradients(rapt_additive_attention *a, rapt_additive_gradient *g, rapt_call *call)
{
    const rapt_tensor *out_rows, *weights_rows;
    if (!rapt_fused_gradients(call, at_gradient, &out_rows, &weights_rows)) return false;
    g->gradient = out_rows ? rapt_raw_grid_of(out_rows) : a->values;
    if (!out_rows) a->value_size = 0;
    if (weights_rows) g->d_weights = rapt_raw_grid_of(weights_rows);
    return true;
}

static rapt_tensor *backward_forward(rapt_call *call)
{
    const backward_options *o = rapt_call_options(call);
    rapt_tensor *gradients[gradient_count];
    rapt_additive_attention a;
    RAPT_SCOPE;
    rapt_ring *ring = o->forward.ring;
    const rapt_tensor *weight = rapt_call_input(call, at_weight), *kept = rapt_call_input(call, at_weights);
    const rapt_tensor *weights = ring ? NULL : kept;
    rapt_tensor *so_far[gradient_count] =
        {[at_keys] = rapt_call_input(call, at_keys_so_far), [at_values] = rapt_call_input(call, at_values_so_far)};
    rapt_raw_changes changes, head_terms;
    if (!describe(&a, call, &o->forward, !weights, true)) return NULL;
    a.changes = rapt_changes_of(call, at_captured, &o->forward.changes, a.dtype, &changes);
    if (a.changes && !rapt_captured_gradients(call, gradient_count, o->wants_captured, at_captured, &changes))
        return NULL;
    /* across ranks those of keys and values are wanted by the others */
    const rapt_additive_wants wants = {.hidden =
                                           ring || o->wants[at_queries] || o->wants[at_keys] || o->wants[at_weight],
                                       .values = ring || o->wants[at_values]};
    rapt_tensor *each = rapt_new(name, a.dtype, RAPT_SHAPE(a.mask.batch * a.groups, a.hidden));
    for (int i = 0; i < gradient_count; i++) {
        const bool writes = o->wants[i] || (i <= at_weight && wants.hidden) || (i == at_values && wants.values);
        gradients[i] = so_far[i] ? so_far[i] : rapt_keep(gradient_like(rapt_call_input(call, i), writes));
        if (!gradients[i]) return NULL;
    }
    if (!each) return NULL;
    rapt_tensor *bias = gradients[at_bias], *relative_bias = gradients[at_relative_bias];
    rapt_additive_gradient g = {.statistics = rapt_call_input(call, at_statistics)->data,
                                .weights = weights ? weights->data : NULL,
                                .queries = gradients[at_queries]->data,
                                .keys = gradients[at_keys]->data,
                                .values = gradients[at_values]->data,
                                .adds_keys = so_far[at_keys] != NULL,
                                .adds_values = so_far[at_values] != NULL,
                                .raw_weight = each->data,
                                .bias = o->wants[at_bias] ? bias->data : NULL,
                                .relative_bias = o->wants[at_relative_bias] ? relative_bias->data : NULL};
    if (!describe_gradients(&a, &g, call)) return NULL;
    if (g.relative_bias) memset(g.relative_bias, 0, (size_t)relative_bias->count * rapt_dtype_size(a.dtype));
    if (o->wants[at_head_terms] && !rapt_fill(gradients[at_head_terms], 0)) return NULL;
    a.normalizer = rapt_fused_normalizer(call, at_mask, &o->forward,
                                         o->wants[at_head_terms] ? gradients[at_head_terms] : NULL, &head_terms);
    const rapt_additive_ring_rows rows = {.keys = rapt_call_input(call, at_keys),
                                          .values = rapt_call_input(call, at_values),
                                          .weight = rapt_call_input(call, at_weight),
                                          .d_queries = gradients[at_queries],
                                          .d_keys = gradients[at_keys],
                                          .d_values = gradients[at_values],
                                          .d_weights = each};
    if (ring) g.out = rapt_raw_grid_of(kept);
    if (!(ring ? rapt_additive_ring_backward(name, ring, &a, &g, &rows)
               : rapt_additive_attention_backward(name, &a, &g, wants)))
        return NULL;
    if (wants.hidden)
        gradients[at_weight] =
            rapt_keep(rapt_reshape(rapt_sum(each, RAPT_AXES(0), false), weight->rank, weight->shape));
    for (int i = at_queries + 1; i < gradient_count; i++) rapt_call_set_output(call, i, gradients[i]);
    return gradients[at_queries];
}

static const rapt_op backward = {
    .name = "additive_attention_backward",
    .forward = backward_forward,
    .options_size = sizeof(backward_options),
    .optional = RAPT_MASK_OPTIONAL(at_mask) | 1u << at_weights | RAPT_FUSED_OPTIONAL(at_gradient),
    .outputs = gradient_count,
};

static bool vjp(rapt_call *call)
{
    backward_options o = {.forward = *(const rapt_fused_options *)rapt_call_options(call)};
    return rapt_fused_vjp(call, &(rapt_fused_backward){.op = &backward,
                                                       .options = &o,
                                                       .wants = o.wants,
                                                       .saved_count = at_gradient,
                                                       .gradient_count = gradient_count,
                                                       .keys = at_keys,
                                                       .values = at_values,
                                                       .first_captured = input_count,
                                                       .captured = o.forward.changes.captured,
                                                       .wants_captured = o.wants_captured,
                                                       .ring = o.forward.ring,
                                                       .name = name});
}

/* --- the definition --- */

typedef struct scoring {
    rapt_scoring scoring;
    rapt_tensor *weight;
} scoring;

rapt_tensor *rapt_additive_scores(rapt_tensor *queries, rapt_tensor *keys, rapt_tensor *weight)
{
    /* (…, Q, 1, h) + (…, 1, K, h) → (…, Q, K, h) */
    rapt_tensor *features = rapt_tanh(rapt_add(rapt_unsqueeze(queries, -2), rapt_unsqueeze(keys, -3)));
    /* wᵀ features: (…, Q, K); summed row by row, so that the bits of a score do not depend on how many there are */
    return rapt_sum(rapt_mul(features, weight), RAPT_AXES(-1), false);
}

static rapt_tensor *score(rapt_scoring *s, rapt_tensor *queries, rapt_tensor *keys)
{
    return rapt_additive_scores(queries, keys, ((const scoring *)s)->weight);
}

static rapt_tensor *definition(rapt_call *call)
{
    static const rapt_module_class kind = {.name = "Additive"};
    rapt_tensor *const *in = rapt_call_inputs(call);
    scoring s = {.scoring = {.module.kind = &kind, .score = score},
                 .weight = rapt_reshape(in[at_weight], RAPT_SHAPE(in[at_weight]->count))};
    if (!s.weight) return NULL;
    return rapt_fused_define(call, at_mask, rapt_call_options(call), &s.scoring, in[at_queries], in[at_keys],
                             in[at_values]);
}

static const rapt_op op = {.name = "additive_attention",
                           .forward = forward,
                           .vjp = vjp,
                           .definition = definition,
                           .options_size = sizeof(rapt_fused_options),
                           .optional = RAPT_MASK_OPTIONAL(at_mask)};

static const rapt_op ring_op = {.name = "additive_attention_across_ranks",
                                .forward = forward,
                                .vjp = vjp,
                                .options_size = sizeof(rapt_fused_options),
                                .optional = RAPT_MASK_OPTIONAL(at_mask),
                                .no_second_gradient = rapt_no_second_gradient_of_ring};

static bool check(const rapt_tensor *queries, const rapt_tensor *keys, const rapt_tensor *weight,
                  const rapt_tensor *values)
{
    char q[RAPT_SHAPE_TEXT], k[RAPT_SHAPE_TEXT], w[RAPT_SHAPE_TEXT];
    const rapt_dtype dtype = queries->dtype;
    if (!rapt_is_floating(queries) || keys->dtype != dtype || weight->dtype != dtype || values->dtype != dtype)
        return rapt_fail(RAPT_ERROR_DTYPE, name,
                         "queries are %s, keys %s, weight %s, values %s; one floating dtype expected " RAPT_CAST_CURE,
                         rapt_dtype_name(dtype), rapt_dtype_name(keys->dtype), rapt_dtype_name(weight->dtype),
                         rapt_dtype_name(values->dtype));
    const int last = queries->rank - 1;
    const int64_t hidden = queries->rank == 3 || queries->rank == 4 ? queries->shape[last] : -1;
    bool fits = keys->rank == queries->rank && values->rank == queries->rank && keys->shape[last] == hidden &&
                weight->count == hidden;
    return fits ||
           rapt_fail(RAPT_ERROR_SHAPE, name,
                     "queries %s, keys %s, weight %s; (…, hidden), (…, hidden) and hidden expected",
                     rapt_shape_text(queries->rank, queries->shape, q), rapt_shape_text(keys->rank, keys->shape, k),
                     rapt_shape_text(weight->rank, weight->shape, w));
}

rapt_tensor *rapt_fused_additive(rapt_tensor *queries, rapt_tensor *keys, rapt_tensor *weight,
                                 const rapt_attention_call *call)
{
    if (!queries || !keys || !weight || !call->values || !check(queries, keys, weight, call->values)) return NULL;
    if (call->mask->ring && call->dropout > 0)
        return rapt_fail(RAPT_ERROR_UNSUPPORTED, name, "dropout of additive attention goes to no other rank"), NULL;
    rapt_tensor *values = call->values;
    /* values likewise, which matters where the mask has gaps: elsewhere they end with what is seen */
    if (call->mask->gaps && !call->mask->padding_is_zero) values = rapt_hide_padding(values, call->mask);
    if (!values) return NULL;
    rapt_tensor *in[input_count] =
        {[at_queries] = queries, [at_keys] = keys, [at_weight] = weight, [at_values] = values};
    rapt_fused_put_inputs(call, in + at_mask);
    const rapt_fused_options o = rapt_fused_options_of(call);
    return rapt_fused_apply(o.ring ? &ring_op : &op, &o, input_count, in, call);
}
