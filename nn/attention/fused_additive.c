/* Fused additive attention as an op: tasks of a block of queries each, and where there are few, of a part of the keys. */
#include "nn/fused_additive.h"

#include <math.h>
#include <string.h>

#include "autograd/node.h"
#include "nn/additive_inputs.h"
#include "nn/padding.h"
#include "tensor/kernels.h"
#include "tensor/parallel.h"

static const char *const name = "additive_attention";

rapt_kernel_grid rapt_grid_of(const rapt_tensor *tensor)
{
    const int64_t *s = tensor->strides;
    if (tensor->rank == 4) return (rapt_kernel_grid){tensor->data, {s[0], s[1], s[2], s[3]}};
    return (rapt_kernel_grid){tensor->data, {s[0], 0, s[1], s[2]}};
}

static bool make_constants(rapt_additive *a, rapt_dtype dtype)
{
    rapt_tensor *weight = rapt_new(name, dtype, RAPT_SHAPE(a->padded)),
                *offset = rapt_new(name, dtype, RAPT_SHAPE(a->padded));
    if (!weight || !offset) return false;
    a->constants = (rapt_additive_constants){.weight = weight->data, .offset = offset->data};
    a->constants.scale = rapt_kernel.additive.constants[dtype](a->hidden, a->raw_weight, &a->constants);
    return true;
}

static bool make_powers(const void **powers, const rapt_tensor *rows, double factor, const void *factors,
                        rapt_tensor *reach)
{
    rapt_tensor *made = rapt_additive_powers(rows, factor, factors, reach);
    *powers = made ? made->data : NULL;
    return made != NULL;
}

/* Kernels read tiles of keys whole: where keys are not finite, those that no query sees become zeros. */
static bool hide_undefined(const rapt_mask_inputs *mask, const int64_t sizes[4], const rapt_tensor **keys,
                           rapt_tensor **powers, rapt_tensor **reach)
{
    const rapt_resolved_mask resolved = {.batch = sizes[0],
                                         .heads = sizes[1],
                                         .queries = sizes[2],
                                         .keys = sizes[3],
                                         .ranges = mask->ranges,
                                         .seen = mask->seen};
    rapt_tensor *sum = rapt_sum(*reach, RAPT_ALL_AXES, false);
    if (!sum || isfinite(rapt_item(sum))) return sum != NULL;
    const rapt_tensor *read = rapt_hide_padding((rapt_tensor *)(uintptr_t)*keys, &resolved);
    if (!read || read == *keys) return read != NULL;
    *keys = read;
    return rapt_additive_key_powers(read, powers, reach);
}

bool rapt_additive_describe(rapt_additive *a, const rapt_additive_inputs *in, const rapt_mask_options *options,
                            bool scores, bool backward)
{
    const rapt_dtype dtype = (rapt_dtype)in->queries->dtype;
    const rapt_tensor *queries = rapt_as_contiguous(in->queries), *keys = rapt_as_contiguous(in->keys);
    const rapt_tensor *weight = rapt_as_contiguous(in->weight), *values = rapt_as_dense_rows(in->values);
    if (!queries || !keys || !weight || !values) return false;
    const int last = keys->rank - 1;
    const int64_t sizes[] = {queries->shape[0], rapt_heads_of(queries), rapt_length_of(queries), rapt_length_of(keys)};
    *a = (rapt_additive){.mask = rapt_kernel_mask_of(&in->mask, options, sizes),
                         .groups = rapt_heads_of(keys),
                         .hidden = keys->shape[last],
                         .padded = RAPT_ADDITIVE_PADDED(keys->shape[last]),
                         .value_size = values->shape[last],
                         .raw_weight = weight->data,
                         .values = rapt_grid_of(values)};
    rapt_tensor *key_powers, *key_reach, *reach = rapt_new(name, dtype, last, queries->shape);
    if (!reach || !rapt_additive_key_powers(keys, &key_powers, &key_reach) ||
        !hide_undefined(&in->mask, sizes, &keys, &key_powers, &key_reach))
        return false;
    a->queries = (rapt_additive_rows){.rows = queries->data, .reach = reach->data};
    a->keys = (rapt_additive_rows){keys->data, key_powers->data, key_reach->data};
    if (backward && !make_powers(&a->queries.powers, queries, 0.5, NULL, reach)) return false;
    return !scores || (make_constants(a, dtype) && make_powers(&a->folded, queries, 1, a->constants.offset, reach));
}

bool rapt_additive_keeps_weights(const rapt_additive *a)
{
    const rapt_kernel_mask *m = &a->mask;
    return m->heads * m->queries * m->keys <= (m->heads * m->queries + a->groups * m->keys) * a->hidden;
}

/* What the tasks of forward work on. They count along the parts of the keys first, then the blocks of queries. */
typedef struct work {
    const rapt_additive *a;
    rapt_dtype dtype;
    int64_t bytes, blocks, rows; /* of an element; of one head; of queries altogether */
    rapt_additive_parts parts;
    rapt_additive_output output; /* of all rows */
    char *out, *sums;            /* where parts put theirs: output's if there is but one */
} work;

static rapt_additive_output output_at(const work *w, char *out, char *sums, int64_t row)
{
    char *weights = w->output.weights;
    return (rapt_additive_output){.out = out + row * w->a->value_size * w->bytes,
                                  .sums = sums + 2 * row * w->bytes,
                                  .weights = weights ? weights + row * w->a->mask.keys * w->bytes : NULL};
}

static void run_pieces(void *context, int64_t first, int64_t last)
{
    const work *w = context;
    const rapt_kernel_mask *mask = &w->a->mask;
    for (int64_t i = first; i < last; i++) {
        const int64_t part = i % w->parts.count, block = i / w->parts.count % w->blocks;
        const int64_t head = i / w->parts.count / w->blocks, query = block * rapt_additive_block;
        const int64_t last_query = query + rapt_additive_block, last_key = (part + 1) * w->parts.keys;
        const rapt_additive_piece piece = {.item = head / mask->heads,
                                           .head = head % mask->heads,
                                           .first_query = query,
                                           .last_query = last_query < mask->queries ? last_query : mask->queries,
                                           .first_key = part * w->parts.keys,
                                           .last_key = last_key < mask->keys ? last_key : mask->keys};
        const rapt_additive_output output =
            output_at(w, w->out + part * w->parts.out_step * w->bytes, w->sums + part * w->parts.sums_step * w->bytes,
                      head * mask->queries + query);
        rapt_kernel.additive.forward[w->dtype](w->a, &piece, &output);
    }
}

static void run_combine(void *context, int64_t first, int64_t last)
{
    const work *w = context;
    const rapt_additive_output output = output_at(w, w->output.out, w->output.sums, first);
    rapt_additive_parts parts = w->parts;
    parts.out = w->out + first * w->a->value_size * w->bytes;
    parts.sums = w->sums + 2 * first * w->bytes;
    rapt_kernel.additive.combine[w->dtype](w->a, last - first, &parts, &output);
}

/* Few queries of many keys are cut along the keys. */
static void choose_parts(work *w)
{
    enum { tasks = 16, fewest_keys = 512 };
    const int64_t keys = w->a->mask.keys, whole = w->a->mask.batch * w->a->mask.heads * w->blocks;
    const int64_t wanted = whole > 0 ? (tasks + whole - 1) / whole : 1, possible = keys / fewest_keys;
    const int64_t count = wanted < possible ? wanted : possible;
    const int64_t each = count > 1 ? (keys + count - 1) / count : keys;
    w->parts.keys = (each + rapt_additive_tile - 1) / rapt_additive_tile * rapt_additive_tile;
    w->parts.count = keys > w->parts.keys ? (keys + w->parts.keys - 1) / w->parts.keys : 1;
    w->parts.out_step = w->rows * w->a->value_size;
    w->parts.sums_step = w->rows * 2;
}

static bool run_forward(work *w)
{
    const rapt_kernel_mask *mask = &w->a->mask;
    w->rows = mask->batch * mask->heads * mask->queries;
    w->blocks = (mask->queries + rapt_additive_block - 1) / rapt_additive_block;
    choose_parts(w);
    w->out = w->output.out;
    w->sums = w->output.sums;
    if (w->parts.count > 1) {
        rapt_tensor *out = rapt_new(name, w->dtype, RAPT_SHAPE(w->parts.count, w->rows, w->a->value_size));
        rapt_tensor *sums = rapt_new(name, w->dtype, RAPT_SHAPE(w->parts.count, w->rows, 2));
        if (!out || !sums) return false;
        w->out = out->data;
        w->sums = sums->data;
    }
    const int64_t queries = mask->queries < rapt_additive_block ? mask->queries : rapt_additive_block;
    const int64_t keys = mask->keys < w->parts.keys ? mask->keys : w->parts.keys;
    rapt_parallel(mask->batch * mask->heads * w->blocks * w->parts.count,
                  rapt_grain(queries * keys * (w->a->hidden + w->a->value_size)), run_pieces, w);
    if (w->parts.count > 1)
        rapt_parallel(w->rows, rapt_grain(w->parts.count * w->a->value_size + mask->keys), run_combine, w);
    return true;
}

static bool wants_any(const rapt_call *call)
{
    bool any = false;
    for (int i = 0; i < rapt_additive_input_count; i++) any = any || rapt_call_wants(call, i);
    return any;
}

rapt_additive_inputs rapt_additive_inputs_of(rapt_call *call)
{
    rapt_additive_inputs inputs;
    for (int i = 0; i < rapt_additive_input_count; i++) ((rapt_tensor **)&inputs)[i] = rapt_call_input(call, i);
    return inputs;
}

/* Outputs: the pooled values, and where there are two the weights. */
static rapt_tensor *forward(rapt_call *call)
{
    const rapt_additive_inputs in = rapt_additive_inputs_of(call);
    rapt_additive a;
    RAPT_SCOPE;
    if (!rapt_additive_describe(&a, &in, rapt_call_options(call), true, false)) return NULL;
    const rapt_kernel_mask *m = &a.mask;
    work w = {.a = &a, .dtype = (rapt_dtype)in.queries->dtype};
    w.bytes = (int64_t)rapt_dtype_size(w.dtype);
    int64_t shape[RAPT_MAX_RANK];
    memcpy(shape, in.queries->shape, sizeof shape);
    shape[in.queries->rank - 1] = a.value_size;
    rapt_tensor *out = rapt_new(name, w.dtype, in.queries->rank, shape);
    rapt_tensor *sums = rapt_new(name, w.dtype, RAPT_SHAPE(m->batch, m->heads, m->queries, 2)), *weights = NULL;
    const bool asked = rapt_call_output_count(call) > 1, keeps = wants_any(call) && rapt_additive_keeps_weights(&a);
    if (asked || keeps) {
        weights = rapt_new(name, w.dtype, RAPT_SHAPE(m->batch, m->heads, m->queries, m->keys));
        if (!weights) return NULL;
    }
    if (!out || !sums) return NULL;
    w.output = (rapt_additive_output){out->data, sums->data, weights ? weights->data : NULL};
    if (!run_forward(&w)) return NULL;
    for (int i = 0; i < rapt_additive_input_count; i++) rapt_call_save(call, rapt_call_input(call, i));
    rapt_call_save_constant(call, sums);
    rapt_call_save_constant(call, keeps ? weights : NULL);
    if (asked) rapt_call_set_output(call, 1, rapt_keep(weights));
    return rapt_keep(out);
}

static bool vjp(rapt_call *call)
{
    rapt_tensor *inputs[rapt_additive_backward_input_count], *gradients[rapt_additive_gradient_count];
    for (int i = 0; i <= rapt_additive_at_weights; i++) inputs[i] = rapt_call_saved(call, i);
    inputs[rapt_additive_at_gradient] = rapt_call_gradient(call, 0);
    inputs[rapt_additive_at_keys_so_far] = rapt_call_gradient_so_far(call, 1);
    inputs[rapt_additive_at_values_so_far] = rapt_call_gradient_so_far(call, 3);
    rapt_additive_backward_options options = {.forward = *(const rapt_mask_options *)rapt_call_options(call)};
    for (int i = 0; i < rapt_additive_gradient_count; i++) options.wants[i] = rapt_call_wants(call, i);
    if (!rapt_apply_many(&rapt_additive_backward, &options, rapt_additive_backward_input_count, inputs, gradients))
        return false;
    if (inputs[rapt_additive_at_keys_so_far]) options.wants[1] = false; /* they are there already */
    if (inputs[rapt_additive_at_values_so_far]) options.wants[3] = false;
    for (int i = 0; i < rapt_additive_gradient_count; i++)
        if (options.wants[i] && !rapt_call_give(call, i, gradients[i])) return false;
    return true;
}

static const rapt_op op = {.name = "additive_attention",
                           .forward = forward,
                           .vjp = vjp,
                           .options_size = sizeof(rapt_mask_options),
                           .optional = 0xf0};

static bool check(const rapt_tensor *queries, const rapt_tensor *keys, const rapt_tensor *weight,
                  const rapt_tensor *values)
{
    char q[RAPT_SHAPE_TEXT], k[RAPT_SHAPE_TEXT], w[RAPT_SHAPE_TEXT];
    const rapt_dtype dtype = (rapt_dtype)queries->dtype;
    if (!rapt_is_floating(queries) || keys->dtype != dtype || weight->dtype != dtype || values->dtype != dtype)
        return rapt_fail(RAPT_ERROR_DTYPE, name,
                         "queries are %s, keys %s, weight %s, values %s; one floating dtype expected",
                         rapt_dtype_name(dtype), rapt_dtype_name((rapt_dtype)keys->dtype),
                         rapt_dtype_name((rapt_dtype)weight->dtype), rapt_dtype_name((rapt_dtype)values->dtype));
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
    if (!queries || !keys || !weight || !check(queries, keys, weight, call->values)) return NULL;
    rapt_tensor *outputs[2] = {0}, *values = call->values;
    /* values likewise, which matters where the mask has gaps: elsewhere they end with what is seen */
    if (call->mask->gaps && !call->mask->padding_is_hidden) values = rapt_hide_padding(values, call->mask);
    if (!values) return NULL;
    rapt_additive_inputs in = {queries, keys, weight, values, rapt_mask_inputs_of(call->mask)};
    const rapt_mask_options options = rapt_mask_options_of(call);
    if (!rapt_apply_counted(&op, &options, rapt_additive_input_count, (rapt_tensor **)&in, call->weights ? 2 : 1,
                            outputs))
        return NULL;
    if (call->weights) *call->weights = rapt_detach(outputs[1]);
    return outputs[0];
}
