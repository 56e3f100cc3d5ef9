/* Another shape for the same elements: reshape, squeeze, unsqueeze; and contiguous, which copies where it must. */
#include <rapt/ops.h>

#include "tensor/core.h"

typedef struct shape_options {
    int rank;
    const int64_t *shape;
} shape_options;

/* d reshape(x) = reshape(dx) */
static bool reshape_vjp(rapt_call *call)
{
    int rank;
    const int64_t *shape = rapt_call_input_shape(call, 0, &rank);
    return rapt_call_give(call, 0, rapt_reshape(rapt_call_gradient(call, 0), rank, shape));
}

/* The wanted shape with its −1 replaced. */
static bool resolve_shape(const rapt_tensor *x, const shape_options *wanted, int64_t shape[RAPT_MAX_RANK])
{
    int open = -1;
    int64_t count;
    if (wanted->rank < 0 || wanted->rank > RAPT_MAX_RANK || (wanted->rank > 0 && !wanted->shape))
        return rapt_check_shape("reshape", RAPT_BOOL, wanted->rank, wanted->shape, &count);
    for (int axis = 0; axis < wanted->rank; axis++) {
        shape[axis] = wanted->shape[axis];
        if (shape[axis] != -1) continue;
        if (open >= 0) return rapt_fail(RAPT_ERROR_SHAPE, "reshape", "sizes %d and %d are both -1", open, axis);
        shape[open = axis] = 1;
    }
    if (!rapt_check_shape("reshape", x->dtype, wanted->rank, shape, &count)) return false;
    if (open >= 0 && count > 0 && x->count % count == 0) {
        shape[open] = x->count / count;
        return true;
    }
    if (open < 0 && count == x->count) return true;
    char from[RAPT_SHAPE_TEXT], to[RAPT_SHAPE_TEXT];
    return rapt_fail(RAPT_ERROR_SHAPE, "reshape", "%lld elements of shape %s do not fit shape %s", (long long)x->count,
                     rapt_shape_text(x->rank, x->shape, from), rapt_shape_text(wanted->rank, wanted->shape, to));
}

/* Strides that show x in another shape, from the last axis on: each new axis must lie inside one run of old axes of
 * which each begins where the next one ends. */
static bool find_strides(const rapt_tensor *x, int rank, const int64_t *shape, int64_t strides[RAPT_MAX_RANK])
{
    int old = x->rank;
    int64_t run = 1, stride = 1;
    for (int axis = rank - 1; axis >= 0; axis--) {
        if (run == 1 && shape[axis] != 1 && !x->contiguous) {
            do old--;
            while (x->shape[old] == 1);
            run = x->shape[old];
            stride = x->strides[old];
            for (; old > 0 && (x->shape[old - 1] == 1 || x->strides[old - 1] == stride * run); old--)
                run *= x->shape[old - 1];
        }
        if (!x->contiguous && run % shape[axis] != 0) return false;
        strides[axis] = stride;
        stride *= shape[axis] ? shape[axis] : 1;
        if (!x->contiguous) run /= shape[axis];
    }
    return true;
}

static rapt_tensor *reshape_forward(rapt_call *call)
{
    const rapt_tensor *x = rapt_call_input(call, 0);
    const shape_options *wanted = rapt_call_options(call);
    int64_t shape[RAPT_MAX_RANK], strides[RAPT_MAX_RANK];
    if (!resolve_shape(x, wanted, shape)) return NULL;
    if (!find_strides(x, wanted->rank, shape, strides)) {
        x = rapt_clone(x);
        if (!x) return NULL;
        find_strides(x, wanted->rank, shape, strides);
    }
    return rapt_new_view(x, x->data, wanted->rank, shape, strides);
}

static const rapt_op reshape = {.name = "reshape", .forward = reshape_forward, .vjp = reshape_vjp};

rapt_tensor *rapt_reshape(rapt_tensor *x, int rank, const int64_t *shape)
{
    return RAPT_APPLY(&reshape, (&(shape_options){rank, shape}), x);
}

static rapt_tensor *squeeze_forward(rapt_call *call)
{
    const rapt_tensor *x = rapt_call_input(call, 0);
    int dropped = rapt_check_axis("squeeze", *(const int *)rapt_call_options(call), x->rank, 0);
    if (dropped < 0) return NULL;
    if (x->shape[dropped] != 1) {
        char text[RAPT_SHAPE_TEXT];
        rapt_fail(RAPT_ERROR_SHAPE, "squeeze", "axis %d of shape %s has not size 1", dropped,
                  rapt_shape_text(x->rank, x->shape, text));
        return NULL;
    }
    int64_t shape[RAPT_MAX_RANK], strides[RAPT_MAX_RANK];
    for (int axis = 0, to = 0; axis < x->rank; axis++) {
        if (axis == dropped) continue;
        shape[to] = x->shape[axis];
        strides[to++] = x->strides[axis];
    }
    return rapt_new_view(x, x->data, x->rank - 1, shape, strides);
}

static const rapt_op squeeze = {.name = "squeeze", .forward = squeeze_forward, .vjp = reshape_vjp};

rapt_tensor *rapt_squeeze(rapt_tensor *x, int axis)
{
    return RAPT_APPLY(&squeeze, &axis, x);
}

static rapt_tensor *unsqueeze_forward(rapt_call *call)
{
    const rapt_tensor *x = rapt_call_input(call, 0);
    int added = rapt_check_axis("unsqueeze", *(const int *)rapt_call_options(call), x->rank, 1);
    if (added < 0) return NULL;
    if (x->rank == RAPT_MAX_RANK) {
        rapt_fail(RAPT_ERROR_SHAPE, "unsqueeze", "a tensor of rank %d can have no further axis", x->rank);
        return NULL;
    }
    int64_t shape[RAPT_MAX_RANK], strides[RAPT_MAX_RANK];
    for (int axis = 0, from = 0; axis <= x->rank; axis++) {
        shape[axis] = axis == added ? 1 : x->shape[from];
        strides[axis] = axis == added ? 0 : x->strides[from];
        from += axis != added;
    }
    return rapt_new_view(x, x->data, x->rank + 1, shape, strides);
}

static const rapt_op unsqueeze = {.name = "unsqueeze", .forward = unsqueeze_forward, .vjp = reshape_vjp};

rapt_tensor *rapt_unsqueeze(rapt_tensor *x, int axis)
{
    return RAPT_APPLY(&unsqueeze, &axis, x);
}

/* d contiguous(x) = dx */
static rapt_tensor *contiguous_forward(rapt_call *call)
{
    const rapt_tensor *x = rapt_call_input(call, 0);
    return x->contiguous ? rapt_new_alias(x, false) : rapt_clone(x);
}

static bool contiguous_vjp(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_call_gradient(call, 0));
}

static const rapt_op contiguous = {.name = "contiguous", .forward = contiguous_forward, .vjp = contiguous_vjp};

rapt_tensor *rapt_contiguous(rapt_tensor *x)
{
    return RAPT_APPLY(&contiguous, NULL, x);
}
