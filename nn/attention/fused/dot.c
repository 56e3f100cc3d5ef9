/* Fused dot-product attention as an op, and its backward as another. */
#include "nn/fused_dot.h"

#include <string.h>

#include "attention/ring/ring.h"
#include "attention/scoring/squared_distance.h"
#include "dot_ring.h"
#include "fused.h"
#include "nn/pooling.h"
#include "tensor/dot_attention.h"

static const char *const name = "dot_attention";

/* The inputs of the op, behind which comes what changes of the scores captured; those of the mask may be NULL.
 * Backward's are the same, then the output, the statistics of its rows, the weights if they were asked for, the
 * gradients of output and weights, either of which may be NULL, and those of keys and values so far: if not NULL, they
 * are added to and given back; and then what was captured. Forward saves what was captured behind its other inputs; the
 * rest of it, and the gradients that backward gives, have these numbers. */
enum {
    at_queries,
    at_keys,
    at_values,
    at_mask,
    at_bias = at_mask + rapt_input_bias,
    at_relative_bias = at_mask + rapt_input_relative_bias,
    at_head_terms = at_mask + rapt_input_head_terms,
    gradient_count,
    input_count = at_mask + rapt_mask_input_count,
    at_out = input_count,
    at_statistics,
    at_weights,
    at_gradient,
    at_keys_so_far = at_gradient + rapt_fused_keys_so_far,
    at_values_so_far = at_gradient + rapt_fused_values_so_far,
    at_captured = at_gradient + rapt_fused_more_inputs,
};

typedef struct options {
    rapt_fused_options fused;
    double scale;
    bool is_gaussian;
} options;

typedef struct backward_options {
    options forward;
    bool wants[gradient_count], wants_captured[rapt_most_captured];
} backward_options;

rapt_raw_rows rapt_raw_rows_of(const rapt_tensor *tensor)
{
    const int64_t *s = tensor->strides;
    if (tensor->rank == 4) return (rapt_raw_rows){tensor->data, {s[0], s[1], s[2]}};
    return (rapt_raw_rows){tensor->data, {s[0], 0, s[1]}};
}

/* What forward and backward have in common; captured: the first input of these. Copies belong to the innermost
 * scope. */
static bool describe(rapt_dot_attention *a, rapt_call *call, const options *o, int captured, rapt_raw_changes *changes)
{
    const rapt_tensor *queries = rapt_as_dense_rows(rapt_call_input(call, at_queries)),
                      *keys = rapt_as_dense_rows(rapt_call_input(call, at_keys)),
                      *values = rapt_as_dense_rows(rapt_call_input(call, at_values));
    if (!queries || !keys || !values) return false;
    const int64_t length = o->fused.ring ? o->fused.ring->length : rapt_length_of(keys);
    const int64_t scores[] = {queries->shape[0], rapt_heads_of(queries), rapt_length_of(queries), length};
    *a = (rapt_dot_attention){.dtype = queries->dtype,
                              .groups = rapt_heads_of(keys),
                              .size = queries->shape[queries->rank - 1],
                              .value_size = values->shape[values->rank - 1],
                              .scale = o->scale,
                              .is_gaussian = o->is_gaussian,
                              .normalizer = rapt_fused_normalizer(call, at_mask, &o->fused, NULL, NULL),
                              .mask = rapt_raw_mask_of(call, at_mask, &o->fused.mask, scores),
                              .queries = rapt_raw_rows_of(queries),
                              .keys = rapt_raw_rows_of(keys),
                              .changes = rapt_changes_of(call, captured, &o->fused.changes, queries->dtype, changes),
                              .values = rapt_raw_rows_of(values)};
    return true;
}

/* (B, heads, length, size) that lies in memory as (B, length, heads, size), so that joining the heads copies nothing;
 * or (B, length, size). */
static rapt_tensor *new_split(rapt_dtype dtype, int rank, const int64_t *shape)
{
    if (rank == 3) return rapt_new(name, dtype, rank, shape);
    rapt_tensor *joined = rapt_new(name, dtype, RAPT_SHAPE(shape[0], shape[2], shape[1], shape[3]));
    return joined ? rapt_permute(joined, RAPT_AXES(0, 2, 1, 3)) : NULL;
}

static rapt_tensor *forward(rapt_call *call)
{
    const options *o = rapt_call_options(call);
    rapt_dot_attention a;
    rapt_raw_changes changes;
    RAPT_SCOPE;
    if (!describe(&a, call, o, input_count, &changes)) return NULL;
    const rapt_raw_mask *m = &a.mask;
    const rapt_tensor *queries = rapt_call_input(call, at_queries);
    int64_t shape[RAPT_MAX_RANK];
    memcpy(shape, queries->shape, sizeof shape);
    shape[queries->rank - 1] = a.value_size;
    rapt_tensor *out = new_split(a.dtype, queries->rank, shape);
    rapt_tensor *statistics = rapt_new(name, a.dtype, RAPT_SHAPE(m->heads * rapt_raw_place_of_all(m).queries, 2));
    if (!out || !statistics) return NULL;
    a.out = rapt_raw_rows_of(out);
    a.statistics = statistics->data;
    const rapt_dot_ring_rows rows = {.keys = rapt_call_input(call, at_keys),
                                     .values = rapt_call_input(call, at_values),
                                     .out = out,
                                     .statistics = statistics};
    if (!(o->fused.ring ? rapt_dot_ring_forward(name, o->fused.ring, &a, &rows) : rapt_dot_attention_forward(name, &a)))
        return NULL;
    rapt_tensor *weights = NULL;
    if (rapt_fused_gives_weights(call)) {
        weights = rapt_new(name, a.dtype, RAPT_SHAPE(m->batch, m->heads, m->queries, m->keys));
        if (!weights || !rapt_dot_attention_weights(name, &a, weights->data)) return NULL;
        rapt_call_set_output(call, rapt_fused_weights, rapt_keep(weights));
    }
    rapt_fused_save_inputs(call);
    rapt_call_save(call, out);
    rapt_call_save_constant(call, statistics);
    rapt_call_save(call, weights);
    return rapt_keep(out);
}

/* Of queries, keys or values: in memory as the input is. */
static rapt_tensor *gradient_like(const rapt_tensor *input)
{
    if (input->rank == 4 && input->strides[1] < input->strides[2])
        return new_split(input->dtype, input->rank, input->shape);
    return rapt_new(name, input->dtype, input->rank, input->shape);
}

/* Of a bias, or of head_terms: zeros to begin with, or nothing where it is not wanted. */
static rapt_tensor *bias_gradient(const rapt_tensor *bias, bool wanted)
{
    return wanted ? rapt_zeros_like(bias) : rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(0));
}

/* The gradients of the outputs. Where nothing depends on the pooled values it is as if there were no values. */
static bool describe_gradients(rapt_dot_attention *a, rapt_call *call)
{
    const rapt_tensor *out_rows, *weights_rows;
    if (!rapt_fused_gradients(call, at_gradient, &out_rows, &weights_rows)) return false;
    a->out = rapt_raw_rows_of(rapt_call_input(call, at_out));
    a->gradient = out_rows ? rapt_raw_rows_of(out_rows) : a->out;
    if (!out_rows) a->value_size = 0;
    if (!weights_rows) return true;
    a->weights = rapt_raw_rows_of(rapt_call_input(call, at_weights));
    a->d_weights = rapt_raw_rows_of(weights_rows);
    return true;
}

static rapt_tensor *backward_forward(rapt_call *call)
{
    const backward_options *o = rapt_call_options(call);
    rapt_dot_attention a;
    rapt_raw_changes changes, head_terms;
    RAPT_SCOPE;
    if (!describe(&a, call, &o->forward, at_captured, &changes) || !describe_gradients(&a, call)) return NULL;
    if (a.changes && !rapt_captured_gradients(call, gradient_count, o->wants_captured, at_captured, &changes))
        return NULL;
    rapt_tensor *gradients[gradient_count] =
        {[at_keys] = rapt_call_input(call, at_keys_so_far), [at_values] = rapt_call_input(call, at_values_so_far)};
    a.adds_keys = gradients[at_keys] != NULL;
    a.adds_values = gradients[at_values] != NULL;
    for (int i = 0; i < gradient_count; i++) {
        const rapt_tensor *input = rapt_call_input(call, i);
        if (!gradients[i])
            gradients[i] = rapt_keep(i < at_mask ? gradient_like(input) : bias_gradient(input, o->wants[i]));
        if (!gradients[i]) return NULL;
    }
    a.statistics = rapt_call_input(call, at_statistics)->data;
    a.d_queries = rapt_raw_rows_of(gradients[at_queries]);
    a.d_keys = rapt_raw_rows_of(gradients[at_keys]);
    a.d_values = rapt_raw_rows_of(gradients[at_values]);
    a.d_scores = o->wants[at_bias] ? gradients[at_bias]->data : NULL;
    a.d_relative_bias = o->wants[at_relative_bias] ? gradients[at_relative_bias]->data : NULL;
    if (o->wants[at_head_terms])
        a.normalizer = rapt_fused_normalizer(call, at_mask, &o->forward.fused, gradients[at_head_terms], &head_terms);
    rapt_ring *ring = o->forward.fused.ring;
    const rapt_dot_ring_rows rows = {.keys = rapt_call_input(call, at_keys),
                                     .values = rapt_call_input(call, at_values),
                                     .d_queries = gradients[at_queries],
                                     .d_keys = gradients[at_keys],
                                     .d_values = gradients[at_values]};
    if (!(ring ? rapt_dot_ring_backward(name, ring, &a, &rows) : rapt_dot_attention_backward(name, &a))) return NULL;
    for (int i = at_queries + 1; i < gradient_count; i++) rapt_call_set_output(call, i, gradients[i]);
    return gradients[at_queries];
}

static const rapt_op backward = {
    .name = "dot_attention_backward",
    .forward = backward_forward,
    .options_size = sizeof(backward_options),
    .optional = RAPT_MASK_OPTIONAL(at_mask) | 1u << at_weights | RAPT_FUSED_OPTIONAL(at_gradient),
    .outputs = gradient_count,
};

static bool vjp(rapt_call *call)
{
    backward_options o = {.forward = *(const options *)rapt_call_options(call)};
    return rapt_fused_vjp(call, &(rapt_fused_backward){.op = &backward,
                                                       .options = &o,
                                                       .wants = o.wants,
                                                       .saved_count = at_gradient,
                                                       .gradient_count = gradient_count,
                                                       .keys = at_keys,
                                                       .values = at_values,
                                                       .first_captured = input_count,
                                                       .captured = o.forward.fused.changes.captured,
                                                       .wants_captured = o.wants_captured,
                                                       .ring = o.forward.fused.ring,
                                                       .name = name});
}

/* --- the definition --- */

typedef struct scoring {
    rapt_scoring scoring;
    double scale;
} scoring;

rapt_tensor *rapt_dot_scores(rapt_tensor *queries, rapt_tensor *keys, double scale)
{
    if (scale != 1) queries = rapt_mul_scalar(queries, scale);
    return rapt_matmul(queries, rapt_transpose(keys, -2, -1));
}

static rapt_tensor *dot_score(rapt_scoring *s, rapt_tensor *queries, rapt_tensor *keys)
{
    return rapt_dot_scores(queries, keys, ((const scoring *)s)->scale);
}

static rapt_tensor *gaussian_score(rapt_scoring *s, rapt_tensor *queries, rapt_tensor *keys)
{
    (void)s;
    return rapt_mul_scalar(rapt_squared_distance(queries, keys), -0.5);
}

static rapt_tensor *definition(rapt_call *call)
{
    static const rapt_module_class kind = {.name = "DotProduct"};
    const options *o = rapt_call_options(call);
    rapt_tensor *const *in = rapt_call_inputs(call);
    scoring s = {.scoring = {.module.kind = &kind, .score = o->is_gaussian ? gaussian_score : dot_score},
                 .scale = o->scale};
    return rapt_fused_define(call, at_mask, &o->fused, &s.scoring, in[at_queries], in[at_keys], in[at_values]);
}

static const rapt_op op = {.name = "dot_attention",
                           .forward = forward,
                           .vjp = vjp,
                           .definition = definition,
                           .options_size = sizeof(options),
                           .optional = RAPT_MASK_OPTIONAL(at_mask)};

static const rapt_op ring_op = {.name = "dot_attention_across_ranks",
                                .forward = forward,
                                .vjp = vjp,
                                .options_size = sizeof(options),
                                .optional = RAPT_MASK_OPTIONAL(at_mask),
                                .no_second_gradient = rapt_no_second_gradient_of_ring};

static bool check(const rapt_tensor *queries, const rapt_tensor *keys, const rapt_tensor *values)
{
    char q[RAPT_SHAPE_TEXT], k[RAPT_SHAPE_TEXT], v[RAPT_SHAPE_TEXT];
    if (!rapt_is_floating(queries) || keys->dtype != queries->dtype || values->dtype != queries->dtype)
        return rapt_fail(RAPT_ERROR_DTYPE, name,
                         "queries are %s, keys %s, values %s; one floating dtype expected " RAPT_CAST_CURE,
                         rapt_dtype_name(queries->dtype), rapt_dtype_name(keys->dtype), rapt_dtype_name(values->dtype));
    const int rank = queries->rank;
    bool fits = (rank == 3 || rank == 4) && keys->rank == rank && values->rank == rank &&
                queries->shape[rank - 1] == keys->shape[rank - 1];
    return fits || rapt_fail(RAPT_ERROR_SHAPE, name,
                             "queries %s, keys %s, values %s; all (B, length, size) or (B, heads, length, size) "
                             "expected, queries and keys of one size",
                             rapt_shape_text(rank, queries->shape, q), rapt_shape_text(keys->rank, keys->shape, k),
                             rapt_shape_text(values->rank, values->shape, v));
}

static rapt_tensor *attend(rapt_tensor *queries, rapt_tensor *keys, double scale, bool is_gaussian,
                           const rapt_attention_call *call)
{
    if (!queries || !keys || !call->values || !check(queries, keys, call->values)) return NULL;
    if (is_gaussian && call->mask->ring)
        return rapt_fail(RAPT_ERROR_UNSUPPORTED, name, "Gaussian scores go to no other rank"), NULL;
    rapt_tensor *in[input_count] = {[at_queries] = queries, [at_keys] = keys, [at_values] = call->values};
    rapt_fused_put_inputs(call, in + at_mask);
    const options o = {rapt_fused_options_of(call), scale, is_gaussian};
    return rapt_fused_apply(o.fused.ring ? &ring_op : &op, &o, input_count, in, call);
}

rapt_tensor *rapt_fused_dot(rapt_tensor *queries, rapt_tensor *keys, double scale, const rapt_attention_call *call)
{
    return attend(queries, keys, scale, false, call);
}

rapt_tensor *rapt_fused_gaussian(rapt_tensor *queries, rapt_tensor *keys, const rapt_attention_call *call)
{
    return attend(queries, keys, 1, true, call);
}
