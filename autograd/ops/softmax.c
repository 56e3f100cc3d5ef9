/* Softmax and its logarithm along an axis. */
#include <rapt/ops.h>

#include "row_op.h"

/* dx = y (g − Σ g y) */
static rapt_tensor *softmax_backward_forward(rapt_call *call)
{
    rapt_tensor *g = rapt_call_input(call, 0), *y = rapt_call_input(call, 1);
    rapt_call_save(call, g);
    rapt_call_save(call, y);
    return rapt_map_rows("softmax_backward", rapt_kernel.softmax.softmax_backward, 2, 2, (rapt_tensor *[]){g, y});
}

static bool softmax_backward_vjp(rapt_call *call);

static const rapt_op softmax_backward = {.name = "softmax_backward",
                                         .forward = softmax_backward_forward,
                                         .vjp = softmax_backward_vjp};

/* Σ u dx: dg = y (u − Σ u y), dy = u (g − Σ g y) − g Σ u y */
static bool softmax_backward_vjp(rapt_call *call)
{
    rapt_tensor *u = rapt_call_gradient(call, 0), *g = rapt_call_saved(call, 0), *y = rapt_call_saved(call, 1);
    if (rapt_call_wants(call, 0) && !rapt_call_give(call, 0, RAPT_APPLY(&softmax_backward, NULL, u, y))) return false;
    if (!rapt_call_wants(call, 1)) return true;
    rapt_tensor *first = rapt_mul(u, rapt_sub(g, rapt_row_sums(rapt_mul(g, y))));
    return rapt_call_give(call, 1, rapt_sub(first, rapt_mul(g, rapt_row_sums(rapt_mul(u, y)))));
}

/* y = exp x / Σ exp x: dx = y (dy − Σ dy y) */
static rapt_tensor *softmax_forward(rapt_call *call)
{
    rapt_tensor *x = rapt_call_input(call, 0);
    rapt_tensor *y = rapt_map_rows("softmax", rapt_kernel.softmax.softmax, 8, 1, &x);
    rapt_call_save(call, y);
    return y;
}

static bool softmax_vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_call_gradient(call, 0), *y = rapt_call_saved(call, 0);
    return rapt_call_give(call, 0, RAPT_APPLY(&softmax_backward, NULL, g, y));
}

static const rapt_op softmax = {.name = "softmax", .forward = softmax_forward, .vjp = softmax_vjp};

rapt_tensor *rapt_softmax(rapt_tensor *x, int axis)
{
    return rapt_apply_along(&softmax, x, axis);
}

/* dx = g − exp(y) Σ g */
static rapt_tensor *log_softmax_backward_forward(rapt_call *call)
{
    rapt_tensor *g = rapt_call_input(call, 0), *y = rapt_call_input(call, 1);
    rapt_call_save(call, rapt_call_wants(call, 1) ? g : NULL);
    rapt_call_save(call, y);
    return rapt_map_rows("log_softmax_backward", rapt_kernel.softmax.log_softmax_backward, 8, 2,
                         (rapt_tensor *[]){g, y});
}

/* Σ u dx: dg = u − Σ u exp(y), dy = −u exp(y) Σ g */
static bool log_softmax_backward_vjp(rapt_call *call)
{
    rapt_tensor *u = rapt_call_gradient(call, 0);
    rapt_tensor *product = rapt_mul(u, rapt_exp(rapt_call_saved(call, 1)));
    if (!rapt_call_give(call, 0, rapt_sub(u, rapt_row_sums(product)))) return false;
    if (!rapt_call_wants(call, 1)) return true;
    return rapt_call_give(call, 1, rapt_neg(rapt_mul(product, rapt_row_sums(rapt_call_saved(call, 0)))));
}

static const rapt_op log_softmax_backward = {.name = "log_softmax_backward",
                                             .forward = log_softmax_backward_forward,
                                             .vjp = log_softmax_backward_vjp};

/* y = x − log Σ exp x: dx = dy − exp(y) Σ dy */
static rapt_tensor *log_softmax_forward(rapt_call *call)
{
    rapt_tensor *x = rapt_call_input(call, 0);
    rapt_tensor *y = rapt_map_rows("log_softmax", rapt_kernel.softmax.log_softmax, 8, 1, &x);
    rapt_call_save(call, y);
    return y;
}

static bool log_softmax_vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_call_gradient(call, 0), *y = rapt_call_saved(call, 0);
    return rapt_call_give(call, 0, RAPT_APPLY(&log_softmax_backward, NULL, g, y));
}

static const rapt_op log_softmax = {.name = "log_softmax", .forward = log_softmax_forward, .vjp = log_softmax_vjp};

rapt_tensor *rapt_log_softmax(rapt_tensor *x, int axis)
{
    return rapt_apply_along(&log_softmax, x, axis);
}
