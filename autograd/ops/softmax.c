/* Softmax and its logarithm along an axis. */
#include <rapt/ops.h>

#include "row_op.h"

/* Of rows that are not copied to where the last axis is, the axis that they go along, counted from the last one. */
typedef struct softmax_options {
    int axis;
} softmax_options;

static int axis_of(const rapt_call *call)
{
    return ((const softmax_options *)rapt_call_options(call))->axis;
}

static rapt_tensor *sums(rapt_call *call, rapt_tensor *x)
{
    return rapt_sum(x, RAPT_AXES(axis_of(call)), true);
}

static rapt_tensor *apply(const rapt_op *op, rapt_tensor *x, int axis)
{
    enum { most_in_tiles = 8192 };
    if (x && (axis = rapt_check_axis(op->name, axis, x->rank, 0)) < 0) return NULL;
    softmax_options o = {x ? axis - x->rank : -1};
    if (!x || x->shape[axis] <= most_in_tiles || o.axis == -1) return RAPT_APPLY(op, &o, x);
    o.axis = -1;
    return rapt_transpose(RAPT_APPLY(op, &o, rapt_transpose(x, axis, -1)), axis, -1);
}

/* dx = y (g − Σ g y) */
static rapt_tensor *softmax_backward_forward(rapt_call *call)
{
    rapt_tensor *g = rapt_call_input(call, 0), *y = rapt_call_input(call, 1);
    rapt_call_save(call, g);
    rapt_call_save(call, y);
    return rapt_map_rows("softmax_backward", rapt_kernel.softmax.softmax_backward, 2, axis_of(call), 2,
                         (rapt_tensor *[]){g, y});
}

static bool softmax_backward_vjp(rapt_call *call);

static const rapt_op softmax_backward = {.name = "softmax_backward",
                                         .forward = softmax_backward_forward,
                                         .vjp = softmax_backward_vjp,
                                         .options_size = sizeof(softmax_options)};

/* Σ u dx: dg = y (u − Σ u y), dy = u (g − Σ g y) − g Σ u y */
static bool softmax_backward_vjp(rapt_call *call)
{
    rapt_tensor *u = rapt_call_gradient(call, 0), *g = rapt_call_saved(call, 0), *y = rapt_call_saved(call, 1);
    if (rapt_call_wants(call, 0) &&
        !rapt_call_give(call, 0, RAPT_APPLY(&softmax_backward, rapt_call_options(call), u, y)))
        return false;
    if (!rapt_call_wants(call, 1)) return true;
    rapt_tensor *first = rapt_mul(u, rapt_sub(g, sums(call, rapt_mul(g, y))));
    return rapt_call_give(call, 1, rapt_sub(first, rapt_mul(g, sums(call, rapt_mul(u, y)))));
}

/* y = exp x / Σ exp x: dx = y (dy − Σ dy y) */
static rapt_tensor *softmax_forward(rapt_call *call)
{
    rapt_tensor *x = rapt_call_input(call, 0);
    rapt_tensor *y = rapt_map_rows("softmax", rapt_kernel.softmax.softmax, 8, axis_of(call), 1, &x);
    rapt_call_save(call, y);
    return y;
}

static bool softmax_vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_call_gradient(call, 0), *y = rapt_call_saved(call, 0);
    return rapt_call_give(call, 0, RAPT_APPLY(&softmax_backward, rapt_call_options(call), g, y));
}

static const rapt_op softmax = {.name = "softmax",
                                .forward = softmax_forward,
                                .vjp = softmax_vjp,
                                .options_size = sizeof(softmax_options)};

rapt_tensor *rapt_softmax(rapt_tensor *x, int axis)
{
    return apply(&softmax, x, axis);
}

/* dx = g − exp(y) Σ g */
static rapt_tensor *log_softmax_backward_forward(rapt_call *call)
{
    rapt_tensor *g = rapt_call_input(call, 0), *y = rapt_call_input(call, 1);
    rapt_call_save(call, rapt_call_wants(call, 1) ? g : NULL);
    rapt_call_save(call, y);
    return rapt_map_rows("log_softmax_backward", rapt_kernel.softmax.log_softmax_backward, 8, axis_of(call), 2,
                         (rapt_tensor *[]){g, y});
}

/* Σ u dx: dg = u − Σ u exp(y), dy = −u exp(y) Σ g */
static bool log_softmax_backward_vjp(rapt_call *call)
{
    rapt_tensor *u = rapt_call_gradient(call, 0);
    rapt_tensor *product = rapt_mul(u, rapt_exp(rapt_call_saved(call, 1)));
    if (!rapt_call_give(call, 0, rapt_sub(u, sums(call, product)))) return false;
    if (!rapt_call_wants(call, 1)) return true;
    return rapt_call_give(call, 1, rapt_neg(rapt_mul(product, sums(call, rapt_call_saved(call, 0)))));
}

static const rapt_op log_softmax_backward = {.name = "log_softmax_backward",
                                             .forward = log_softmax_backward_forward,
                                             .vjp = log_softmax_backward_vjp,
                                             .options_size = sizeof(softmax_options)};

/* y = x − log Σ exp x: dx = dy − exp(y) Σ dy */
static rapt_tensor *log_softmax_forward(rapt_call *call)
{
    rapt_tensor *x = rapt_call_input(call, 0);
    rapt_tensor *y = rapt_map_rows("log_softmax", rapt_kernel.softmax.log_softmax, 8, axis_of(call), 1, &x);
    rapt_call_save(call, y);
    return y;
}

static bool log_softmax_vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_call_gradient(call, 0), *y = rapt_call_saved(call, 0);
    return rapt_call_give(call, 0, RAPT_APPLY(&log_softmax_backward, rapt_call_options(call), g, y));
}

static const rapt_op log_softmax = {.name = "log_softmax",
                                    .forward = log_softmax_forward,
                                    .vjp = log_softmax_vjp,
                                    .options_size = sizeof(softmax_options)};

rapt_tensor *rapt_log_softmax(rapt_tensor *x, int axis)
{
    return apply(&log_softmax, x, axis);
}
