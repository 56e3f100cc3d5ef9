/* Fused dot-product attention as an op, and its backward as another. */
#include "nn/fused_dot.h"

#include "autograd/node.h"
#include "nn/kernel_mask.h"
#include "tensor/dot_attention.h"

static const char *const name = "dot_attention";

/* The inputs of the op, in this order; those from the bias on may be NULL. */
typedef struct inputs {
    rapt_tensor *queries, *keys, *values;
    rapt_mask_inputs mask;
} inputs;

enum { input_count = sizeof(inputs) / sizeof(rapt_tensor *), first_optional = 3, gradient_count = 5 };

typedef struct options {
    rapt_mask_options mask;
    double scale;
    bool distances;
} options;

/* Backward's inputs are forward's, then the output, the statistics of its rows, and the gradient of the output. */
enum { at_out = input_count, at_statistics, at_gradient, backward_input_count };

typedef struct backward_options {
    options forward;
    bool wants[gradient_count];
} backward_options;

/* The tensor itself if its last axis is dense, else a copy of the innermost scope. */
static const rapt_tensor *dense_rows(const rapt_tensor *tensor)
{
    const int last = tensor->rank - 1;
    return tensor->shape[last] <= 1 || tensor->strides[last] == 1 ? tensor : rapt_as_contiguous(tensor);
}

static rapt_kernel_rows rows_of(const rapt_tensor *tensor)
{
    return (rapt_kernel_rows){tensor->data, {tensor->strides[0], tensor->strides[1], tensor->strides[2]}};
}

/* What forward and backward have in common. Copies belong to the innermost scope. */
static bool describe(rapt_dot_attention *a, rapt_call *call, const options *o)
{
    inputs in;
    for (int i = 0; i < input_count; i++) ((rapt_tensor **)&in)[i] = rapt_call_input(call, i);
    const rapt_tensor *queries = dense_rows(in.queries), *keys = dense_rows(in.keys), *values = dense_rows(in.values);
    if (!queries || !keys || !values) return false;
    const int64_t scores[] = {queries->shape[0], queries->shape[1], queries->shape[2], keys->shape[2]};
    *a = (rapt_dot_attention){.dtype = (rapt_dtype)queries->dtype,
                              .groups = keys->shape[1],
                              .size = queries->shape[3],
                              .value_size = values->shape[3],
                              .scale = o->scale,
                              .distances = o->distances,
                              .mask = rapt_kernel_mask_of(&in.mask, &o->mask, scores),
                              .queries = rows_of(queries),
                              .keys = rows_of(keys),
                              .values = rows_of(values)};
    return true;
}

/* (B, heads, length, size) that lies in memory as (B, length, heads, size), so that joining the heads copies nothing. */
static rapt_tensor *new_split(rapt_dtype dtype, const int64_t *shape)
{
    rapt_tensor *joined = rapt_new(name, dtype, RAPT_SHAPE(shape[0], shape[2], shape[1], shape[3]));
    return joined ? rapt_permute(joined, RAPT_AXES(0, 2, 1, 3)) : NULL;
}

/* Outputs: the pooled values, and where there are two the weights. */
static rapt_tensor *forward(rapt_call *call)
{
    rapt_dot_attention a;
    RAPT_SCOPE;
    if (!describe(&a, call, rapt_call_options(call))) return NULL;
    const rapt_kernel_mask *m = &a.mask;
    rapt_tensor *out = new_split(a.dtype, (const int64_t[]){m->batch, m->heads, m->queries, a.value_size});
    rapt_tensor *statistics = rapt_new(name, a.dtype, RAPT_SHAPE(m->batch, m->heads, m->queries, 2));
    if (!out || !statistics) return NULL;
    a.out = rows_of(out);
    a.statistics = statistics->data;
    if (!rapt_dot_attention_forward(name, &a)) return NULL;
    if (rapt_call_output_count(call) > 1) {
        rapt_tensor *weights = rapt_new(name, a.dtype, RAPT_SHAPE(m->batch, m->heads, m->queries, m->keys));
        if (!weights || !rapt_dot_attention_weights(name, &a, weights->data)) return NULL;
        rapt_call_set_output(call, 1, rapt_keep(weights));
    }
    for (int i = 0; i < input_count; i++) rapt_call_save(call, rapt_call_input(call, i));
    rapt_call_save(call, out);
    rapt_call_save(call, statistics);
    return rapt_keep(out);
}

/* Of queries, keys or values: in memory as the input is. */
static rapt_tensor *gradient_like(const rapt_tensor *input)
{
    if (input->strides[1] < input->strides[2]) return new_split((rapt_dtype)input->dtype, input->shape);
    return rapt_new(name, (rapt_dtype)input->dtype, input->rank, input->shape);
}

/* Of a bias: zeros to begin with, or nothing where it is not wanted. */
static rapt_tensor *bias_gradient(const rapt_tensor *bias, bool wanted)
{
    return wanted ? rapt_zeros((rapt_dtype)bias->dtype, bias->rank, bias->shape)
                  : rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(0));
}

/* Outputs: the gradients of queries, keys, values, bias and distance bias. */
static rapt_tensor *backward_forward(rapt_call *call)
{
    const backward_options *o = rapt_call_options(call);
    rapt_dot_attention a;
    RAPT_SCOPE;
    const rapt_tensor *gradient = dense_rows(rapt_call_input(call, at_gradient));
    if (!gradient || !describe(&a, call, &o->forward)) return NULL;
    rapt_tensor *out[gradient_count];
    for (int i = 0; i < gradient_count; i++) {
        const rapt_tensor *input = rapt_call_input(call, i);
        out[i] = rapt_keep(i < first_optional ? gradient_like(input) : bias_gradient(input, o->wants[i]));
        if (!out[i]) return NULL;
    }
    a.out = rows_of(rapt_call_input(call, at_out));
    a.statistics = rapt_call_input(call, at_statistics)->data;
    a.gradient = rows_of(gradient);
    a.d_queries = rows_of(out[0]);
    a.d_keys = rows_of(out[1]);
    a.d_values = rows_of(out[2]);
    a.d_scores = o->wants[3] ? out[3]->data : NULL;
    a.d_nearby = o->wants[4] ? out[4]->data : NULL;
    if (!rapt_dot_attention_backward(name, &a)) return NULL;
    for (int i = 1; i < gradient_count; i++) rapt_call_set_output(call, i, out[i]);
    return out[0];
}

static const rapt_op backward = {
    .name = "dot_attention_backward",
    .forward = backward_forward,
    .options_size = sizeof(backward_options),
    .optional = 0xfu << first_optional,
    .outputs = gradient_count,
    .no_gradient = "fused dot-product attention has no second derivative; set the attention's `plain` for one",
};

static bool vjp(rapt_call *call)
{
    rapt_tensor *in[backward_input_count], *gradients[gradient_count];
    for (int i = 0; i < at_gradient; i++) in[i] = rapt_call_saved(call, i);
    in[at_gradient] = rapt_call_gradient(call, 0);
    backward_options o = {.forward = *(const options *)rapt_call_options(call)};
    for (int i = 0; i < gradient_count; i++) o.wants[i] = rapt_call_wants(call, i);
    if (!rapt_apply_many(&backward, &o, backward_input_count, in, gradients)) return false;
    for (int i = 0; i < gradient_count; i++)
        if (o.wants[i] && !rapt_call_give(call, i, gradients[i])) return false;
    return true;
}

static const rapt_op op = {.name = "dot_attention",
                           .forward = forward,
                           .vjp = vjp,
                           .options_size = sizeof(options),
                           .optional = 0xfu << first_optional};

static bool check(const rapt_tensor *queries, const rapt_tensor *keys, const rapt_tensor *values)
{
    char q[RAPT_SHAPE_TEXT], k[RAPT_SHAPE_TEXT];
    if (!rapt_is_floating(queries) || keys->dtype != queries->dtype || values->dtype != queries->dtype)
        return rapt_fail(RAPT_ERROR_DTYPE, name, "queries are %s, keys %s, values %s; one floating dtype expected",
                         rapt_dtype_name((rapt_dtype)queries->dtype), rapt_dtype_name((rapt_dtype)keys->dtype),
                         rapt_dtype_name((rapt_dtype)values->dtype));
    bool fits = queries->rank == 4 && keys->rank == 4 && queries->shape[3] == keys->shape[3];
    return fits ||
           rapt_fail(RAPT_ERROR_SHAPE, name, "queries %s and keys %s; (B, heads, length, size) of one size expected",
                     rapt_shape_text(queries->rank, queries->shape, q), rapt_shape_text(keys->rank, keys->shape, k));
}

static rapt_tensor *attend(rapt_tensor *queries, rapt_tensor *keys, double scale, bool distances,
                           const rapt_attention_call *call)
{
    rapt_tensor *outputs[2] = {0};
    const bool has_heads = queries && queries->rank == 4;
    inputs in = {rapt_with_heads(queries), rapt_with_heads(keys), rapt_with_heads(call->values),
                 rapt_mask_inputs_of(call->mask)};
    if (!in.queries || !in.keys || !in.values || !check(in.queries, in.keys, in.values)) return NULL;
    options o = {rapt_mask_options_of(call), scale, distances};
    if (!rapt_apply_counted(&op, &o, input_count, (rapt_tensor **)&in, call->weights ? 2 : 1, outputs)) return NULL;
    if (call->weights) *call->weights = rapt_detach(outputs[1]);
    return has_heads ? outputs[0] : rapt_squeeze(outputs[0], 1);
}

rapt_tensor *rapt_fused_dot(rapt_tensor *queries, rapt_tensor *keys, double scale, const rapt_attention_call *call)
{
    return attend(queries, keys, scale, false, call);
}

rapt_tensor *rapt_fused_gaussian(rapt_tensor *queries, rapt_tensor *keys, const rapt_attention_call *call)
{
    return attend(queries, keys, 1, true, call);
}
