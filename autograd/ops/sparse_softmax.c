/* Sparsemax and entmax: weights like softmax's, most of which are 0. */
#include <rapt/ops.h>

#include "row_op.h"

static rapt_tensor *number_like(const rapt_tensor *x, double number)
{
    return x ? rapt_scalar(x->dtype, number) : NULL;
}

static rapt_tensor *forward(rapt_call *call, const rapt_loops loops)
{
    rapt_tensor *x = rapt_call_input(call, 0), *y = rapt_map_rows(rapt_call_op(call)->name, loops, 16, 1, &x);
    rapt_call_save(call, y);
    return y;
}

static rapt_tensor *sparsemax_forward(rapt_call *call)
{
    return forward(call, rapt_kernel.sparse_softmax.sparsemax);
}

/* dx = g − (Σ g) / n over the n elements of the row with y > 0, else 0 */
static bool sparsemax_vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_call_gradient(call, 0), *y = rapt_call_saved(call, 0);
    rapt_tensor *zero = number_like(y, 0), *support = rapt_greater(y, zero);
    rapt_tensor *count = y ? rapt_row_sums(rapt_cast(support, y->dtype)) : NULL;
    g = rapt_where(support, g, zero);
    rapt_tensor *mean = rapt_div(rapt_row_sums(g), rapt_maximum(count, number_like(y, 1)));
    return rapt_call_give(call, 0, rapt_where(support, rapt_sub(g, mean), zero));
}

static const rapt_op sparsemax = {.name = "sparsemax", .forward = sparsemax_forward, .vjp = sparsemax_vjp};

rapt_tensor *rapt_sparsemax(rapt_tensor *x, int axis)
{
    return rapt_apply_along(&sparsemax, NULL, x, axis);
}

static rapt_tensor *entmax15_forward(rapt_call *call)
{
    return forward(call, rapt_kernel.sparse_softmax.entmax15);
}

/* With s = √y: dx = s (g − Σ s g / Σ s) */
static bool entmax15_vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_call_gradient(call, 0), *y = rapt_call_saved(call, 0);
    rapt_tensor *zero = number_like(y, 0), *one = number_like(y, 1), *support = rapt_greater(y, zero);
    /* ones where y is 0 keep the derivative of the root finite where it is not taken */
    rapt_tensor *s = rapt_where(support, rapt_sqrt(rapt_where(support, y, one)), zero), *total = rapt_row_sums(s);
    g = rapt_where(support, g, zero);
    rapt_tensor *mean = rapt_div(rapt_row_sums(rapt_mul(s, g)), rapt_where(rapt_greater(total, zero), total, one));
    return rapt_call_give(call, 0, rapt_mul(s, rapt_sub(g, mean)));
}

static const rapt_op entmax15 = {.name = "entmax15", .forward = entmax15_forward, .vjp = entmax15_vjp};

rapt_tensor *rapt_entmax15(rapt_tensor *x, int axis)
{
    return rapt_apply_along(&entmax15, NULL, x, axis);
}
