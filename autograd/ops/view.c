/* Views: the same elements in another order or fewer of them, without a copy. */
#include <rapt/ops.h>

#include "part.h"

typedef struct order_options {
    int count;
    int axes[RAPT_MAX_RANK]; /* output axis i is input axis axes[i] */
} order_options;

static rapt_tensor *reordered(const rapt_tensor *x, const int *axes)
{
    int64_t shape[RAPT_MAX_RANK], strides[RAPT_MAX_RANK];
    for (int axis = 0; axis < x->rank; axis++) {
        shape[axis] = x->shape[axes[axis]];
        strides[axis] = x->strides[axes[axis]];
    }
    return rapt_new_view(x, x->data, x->rank, shape, strides);
}

/* d transpose(x) = transpose(dx) */
static rapt_tensor *transpose_forward(rapt_call *call)
{
    const rapt_tensor *x = rapt_call_input(call, 0);
    const int *pair = rapt_call_options(call);
    int a = rapt_check_axis("transpose", pair[0], x->rank, 0), b = rapt_check_axis("transpose", pair[1], x->rank, 0);
    if (a < 0 || b < 0) return NULL;
    int axes[RAPT_MAX_RANK];
    for (int axis = 0; axis < x->rank; axis++) axes[axis] = axis == a ? b : axis == b ? a : axis;
    return reordered(x, axes);
}

static bool transpose_vjp(rapt_call *call)
{
    const int *pair = rapt_call_options(call);
    return rapt_call_give(call, 0, rapt_transpose(rapt_call_gradient(call, 0), pair[0], pair[1]));
}

static const rapt_op transpose = {.name = "transpose",
                                  .forward = transpose_forward,
                                  .vjp = transpose_vjp,
                                  .options_size = 2 * sizeof(int)};

rapt_tensor *rapt_transpose(rapt_tensor *x, int axis, int other_axis)
{
    return RAPT_APPLY(&transpose, ((int[]){axis, other_axis}), x);
}

/* d permute(x, order) = permute(dx, inverse order) */
static rapt_tensor *permute_forward(rapt_call *call)
{
    const rapt_tensor *x = rapt_call_input(call, 0);
    const order_options *order = rapt_call_options(call);
    if (order->count != x->rank) {
        rapt_fail(RAPT_ERROR_SHAPE, "permute", "%d axes named for a tensor of rank %d", order->count, x->rank);
        return NULL;
    }
    int axes[RAPT_MAX_RANK];
    unsigned seen = 0;
    for (int i = 0; i < x->rank; i++) {
        axes[i] = rapt_check_axis("permute", order->axes[i], x->rank, 0);
        if (axes[i] < 0) return NULL;
        if (seen >> axes[i] & 1) {
            rapt_fail(RAPT_ERROR_SHAPE, "permute", "axis %d is named twice", axes[i]);
            return NULL;
        }
        seen |= 1U << axes[i];
    }
    return reordered(x, axes);
}

static bool permute_vjp(rapt_call *call)
{
    const order_options *order = rapt_call_options(call);
    int inverse[RAPT_MAX_RANK];
    for (int i = 0; i < order->count; i++) inverse[order->axes[i] + (order->axes[i] < 0 ? order->count : 0)] = i;
    return rapt_call_give(call, 0, rapt_permute(rapt_call_gradient(call, 0), order->count, inverse));
}

static const rapt_op permute = {.name = "permute",
                                .forward = permute_forward,
                                .vjp = permute_vjp,
                                .options_size = sizeof(order_options)};

rapt_tensor *rapt_permute(rapt_tensor *x, int axis_count, const int *axes)
{
    order_options order = {.count = axis_count};
    if (axis_count > 0 && !axes) {
        rapt_fail_null("permute", "axes");
        return NULL;
    }
    for (int i = 0; i < axis_count && i < RAPT_MAX_RANK; i++) order.axes[i] = axes[i];
    return RAPT_APPLY(&permute, &order, x);
}

typedef struct slice_options {
    int axis;
    int64_t start, stop, step;
} slice_options;

static int64_t clip(int64_t place, int64_t size)
{
    if (place < 0) place = place < -size ? 0 : place + size;
    return place > size ? size : place;
}

/* Backward of a part of x: its gradient g is placed in zeros, or added to what is there of other parts. */
static bool give_part(rapt_call *call, int axis, int64_t start, int64_t step, rapt_tensor *g)
{
    int rank;
    const int64_t *shape = rapt_call_input_shape(call, 0, &rank);
    if (axis < 0) axis += rank;
    start = clip(start, shape[axis]);
    rapt_tensor *sum = rapt_call_gradient_so_far(call, 0);
    if (!sum || !g) return rapt_call_give(call, 0, rapt_place(g, axis, start, step, shape[axis], 0));
    const int64_t size = g->shape[axis];
    rapt_tensor part = rapt_part(sum, axis, start, size, size > 1 ? step : 1);
    return rapt_add_in_place(&part, g, 1);
}

/* x[…, start : stop : step, …] */
static rapt_tensor *slice_forward(rapt_call *call)
{
    const rapt_tensor *x = rapt_call_input(call, 0);
    const slice_options *o = rapt_call_options(call);
    int axis = rapt_check_axis("slice", o->axis, x->rank, 0);
    if (axis < 0) return NULL;
    if (o->step < 1) {
        rapt_fail(RAPT_ERROR_VALUE, "slice", "step %lld; 1 or more expected", (long long)o->step);
        return NULL;
    }
    int64_t start = clip(o->start, x->shape[axis]), stop = clip(o->stop, x->shape[axis]);
    int64_t size = stop <= start ? 0 : (stop - start - 1) / o->step + 1;
    rapt_tensor part = rapt_part(x, axis, start, size, size > 1 ? o->step : 1);
    return rapt_new_view(x, part.data, part.rank, part.shape, part.strides);
}

static bool slice_vjp(rapt_call *call)
{
    const slice_options *o = rapt_call_options(call);
    return give_part(call, o->axis, o->start, o->step, rapt_call_gradient(call, 0));
}

static const rapt_op slice = {.name = "slice",
                              .forward = slice_forward,
                              .vjp = slice_vjp,
                              .options_size = sizeof(slice_options)};

rapt_tensor *rapt_slice(rapt_tensor *x, int axis, int64_t start, int64_t stop, int64_t step)
{
    return RAPT_APPLY(&slice, (&(slice_options){axis, start, stop, step}), x);
}

/* x[…, index, …] */
static rapt_tensor *select_forward(rapt_call *call)
{
    const rapt_tensor *x = rapt_call_input(call, 0);
    const slice_options *o = rapt_call_options(call);
    int axis = rapt_check_axis("select", o->axis, x->rank, 0);
    if (axis < 0) return NULL;
    int64_t size = x->shape[axis];
    if (o->start < -size || o->start >= size) {
        rapt_fail(RAPT_ERROR_VALUE, "select", "index %lld of axis %d, which has size %lld", (long long)o->start, axis,
                  (long long)size);
        return NULL;
    }
    rapt_tensor part = rapt_part(x, axis, clip(o->start, size), 1, 1);
    for (int i = axis; i + 1 < part.rank; i++) {
        part.shape[i] = part.shape[i + 1];
        part.strides[i] = part.strides[i + 1];
    }
    return rapt_new_view(x, part.data, part.rank - 1, part.shape, part.strides);
}

static bool select_vjp(rapt_call *call)
{
    const slice_options *o = rapt_call_options(call);
    return give_part(call, o->axis, o->start, 1, rapt_unsqueeze(rapt_call_gradient(call, 0), o->axis));
}

static const rapt_op select_op = {.name = "select",
                                  .forward = select_forward,
                                  .vjp = select_vjp,
                                  .options_size = sizeof(slice_options)};

rapt_tensor *rapt_select(rapt_tensor *x, int axis, int64_t index)
{
    return RAPT_APPLY(&select_op, (&(slice_options){.axis = axis, .start = index}), x);
}

typedef struct expand_options {
    int rank;
    const int64_t *shape;
} expand_options;

/* Each size of 1 repeated; the engine sums the gradient over the repetitions. */
static rapt_tensor *expand_forward(rapt_call *call)
{
    const rapt_tensor *x = rapt_call_input(call, 0);
    const expand_options *o = rapt_call_options(call);
    int64_t shape[RAPT_MAX_RANK], strides[RAPT_MAX_RANK], count;
    bool fits = o->rank >= x->rank && o->rank <= RAPT_MAX_RANK && (o->shape || o->rank == 0);
    const int extra = fits ? o->rank - x->rank : 0;
    for (int axis = 0; fits && axis < o->rank; axis++) {
        int64_t size = axis < extra ? 1 : x->shape[axis - extra];
        shape[axis] = o->shape[axis] == -1 && axis >= extra ? size : o->shape[axis];
        fits = shape[axis] == size || (size == 1 && shape[axis] >= 0);
    }
    if (!fits) {
        char from[RAPT_SHAPE_TEXT], to[RAPT_SHAPE_TEXT];
        bool readable = o->rank >= 0 && o->rank <= RAPT_MAX_RANK && (o->shape || o->rank == 0);
        rapt_fail(RAPT_ERROR_SHAPE, "expand", "shape %s does not expand to rank %d, shape %s",
                  rapt_shape_text(x->rank, x->shape, from), o->rank,
                  readable ? rapt_shape_text(o->rank, o->shape, to) : "unknown");
        return NULL;
    }
    if (!rapt_check_shape("expand", x->dtype, o->rank, shape, &count)) return NULL;
    rapt_broadcast_strides(x, o->rank, shape, strides);
    return rapt_new_view(x, x->data, o->rank, shape, strides);
}

static bool expand_vjp(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_call_gradient(call, 0));
}

static const rapt_op expand = {.name = "expand", .forward = expand_forward, .vjp = expand_vjp};

rapt_tensor *rapt_expand(rapt_tensor *x, int rank, const int64_t *shape)
{
    return RAPT_APPLY(&expand, (&(expand_options){rank, shape}), x);
}
