/* Sorting along one axis, whole or for the first few: sort, argsort, topk. */
#include <rapt/ops.h>

#include "indices.h"
#include "tensor/map.h"
#include "tensor/scratch.h"

typedef struct sort_options {
    int64_t axis, descending;
    int64_t all, wanted; /* all, or so many */
} sort_options;

typedef struct sorting {
    rapt_sort_options options;
    rapt_sort_loop *loop;
    rapt_scratch room;
} sorting;

/* data: indices, x and, where they are wanted, values. */
static void sort_lines(int64_t count, char *const *data, const int64_t *strides, const void *options)
{
    const sorting *s = options;
    void *room = rapt_scratch_borrow(&s->room);
    for (int64_t i = 0; i < count; i++)
        s->loop(&s->options, data[1] + i * strides[1], s->options.value_stride ? data[2] + i * strides[2] : NULL,
                data[0] + i * strides[0], room);
    rapt_scratch_return(&s->room, room);
}

static bool check_wanted(const char *op, const rapt_tensor *x, int axis, int64_t wanted)
{
    const int64_t count = x->shape[axis];
    if (wanted < 0 || wanted > count)
        return rapt_fail(RAPT_ERROR_VALUE, op, "%lld elements wanted along axis %d, which has %lld", (long long)wanted,
                         axis, (long long)count);
    if (count > UINT32_MAX)
        return rapt_fail(RAPT_ERROR_SHAPE, op, "axis %d has %lld elements; fewer than 2^32 expected", axis,
                         (long long)count);
    return true;
}

/* The places of x's elements in order, and in values, unless that is NULL, the elements themselves. */
static bool sort_along(const char *op, const rapt_tensor *x, int axis, const sort_options *o,
                       const rapt_tensor *indices, const rapt_tensor *values)
{
    const int64_t element = rapt_element_bytes[x->dtype], count = x->shape[axis], wanted = indices->shape[axis];
    if (indices->count == 0) return true;
    sorting s = {.loop = rapt_kernel.sort.sort[x->dtype],
                 .options = {.count = count,
                             .in_stride = x->strides[axis] * element,
                             .wanted = wanted,
                             .value_stride = values ? values->strides[axis] * element : 0,
                             .index_stride = indices->strides[axis] * (int64_t)sizeof(int64_t),
                             .descending = o->descending}};
    const size_t bytes = 2 * (size_t)rapt_sort_held(count, wanted) * sizeof(rapt_sort_item);
    if (!rapt_scratch_take(op, &s.room, indices->count / wanted, bytes)) return false;
    rapt_map_along(axis, sort_lines, &s, 16 * count, values ? 3 : 2, (const rapt_tensor *[]){indices, x, values});
    rapt_scratch_give(&s.room);
    return true;
}

/* y = x in another order: each element of dy goes back to the place that x's came from */
static rapt_tensor *sort_forward(rapt_call *call)
{
    const char *op = rapt_call_op(call)->name;
    const sort_options *o = rapt_call_options(call);
    const rapt_tensor *x = rapt_call_input(call, 0);
    const int axis = rapt_check_axis(op, (int)o->axis, x->rank, 0);
    if (axis < 0) return NULL;
    const int64_t wanted = o->all ? x->shape[axis] : o->wanted;
    int64_t shape[RAPT_MAX_RANK];
    for (int i = 0; i < x->rank; i++) shape[i] = i == axis ? wanted : x->shape[i];
    if (!check_wanted(op, x, axis, wanted)) return NULL;
    const bool wants_values = rapt_call_output_count(call) > 1;
    rapt_tensor *indices = rapt_new(op, RAPT_INT64, x->rank, shape);
    rapt_tensor *values = wants_values && indices ? rapt_new(op, x->dtype, x->rank, shape) : NULL;
    if (!indices || (wants_values && !values) || !sort_along(op, x, axis, o, indices, values)) return NULL;
    if (!wants_values) return indices;
    rapt_call_set_output(call, 1, indices);
    rapt_call_save(call, indices);
    return values;
}

static bool sort_vjp(rapt_call *call)
{
    const sort_options *o = rapt_call_options(call);
    return rapt_give_scattered(call, (int)o->axis, rapt_call_saved(call, 0), rapt_call_gradient(call, 0));
}

static rapt_tensor *apply(const rapt_op *op, rapt_tensor *x, const sort_options *options, rapt_tensor **indices)
{
    rapt_tensor *outputs[2];
    if (indices) *indices = NULL;
    if (!rapt_apply_many(op, options, 1, &x, outputs)) return NULL;
    if (indices) *indices = outputs[1];
    return outputs[0];
}

static const rapt_op sort = {.name = "sort",
                             .forward = sort_forward,
                             .vjp = sort_vjp,
                             .options_size = sizeof(sort_options),
                             .outputs = 2};

rapt_tensor *rapt_sort(rapt_tensor *x, int axis, bool descending, rapt_tensor **indices)
{
    return apply(&sort, x, &(sort_options){.axis = axis, .descending = descending, .all = true}, indices);
}

static const rapt_op argsort = {.name = "argsort",
                                .forward = sort_forward,
                                .options_size = sizeof(sort_options),
                                .no_gradient = "an index has no derivative; sort gives the values, which have one"};

rapt_tensor *rapt_argsort(rapt_tensor *x, int axis, bool descending)
{
    const sort_options options = {.axis = axis, .descending = descending, .all = true};
    return RAPT_APPLY(&argsort, &options, x);
}

static const rapt_op topk = {.name = "topk",
                             .forward = sort_forward,
                             .vjp = sort_vjp,
                             .options_size = sizeof(sort_options),
                             .outputs = 2};

rapt_tensor *rapt_topk(rapt_tensor *x, int axis, int64_t count, bool largest, rapt_tensor **indices)
{
    return apply(&topk, x, &(sort_options){.axis = axis, .descending = largest, .wanted = count}, indices);
}
