/* Comparisons of two tensors or of one and a number, and logic; their results are bool and nothing flows back
 * through them. */
#include <rapt/ops.h>

#include <math.h>

#include "elementwise.h"

#define COMPARISON(kernel)                                                                                             \
    static rapt_tensor *kernel##_forward(rapt_call *call)                                                              \
    {                                                                                                                  \
        return rapt_elementwise(#kernel, rapt_kernel.elementwise.kernel, RAPT_BOOL, NULL, 1, 2,                        \
                                rapt_call_inputs(call));                                                               \
    }                                                                                                                  \
                                                                                                                       \
    static const rapt_op kernel = {.name = #kernel, .forward = kernel##_forward};                                      \
                                                                                                                       \
    rapt_tensor *rapt_##kernel(rapt_tensor *a, rapt_tensor *b)                                                         \
    {                                                                                                                  \
        return RAPT_APPLY(&kernel, NULL, a, b);                                                                        \
    }

#define WITH_NUMBER(kernel)                                                                                            \
    rapt_tensor *rapt_##kernel##_scalar(rapt_tensor *x, double value)                                                  \
    {                                                                                                                  \
        rapt_tensor *number = rapt_number_like(#kernel "_scalar", x, value);                                           \
        return number ? rapt_##kernel(x, number) : NULL;                                                               \
    }

RAPT_COMPARE_KERNELS(COMPARISON)
RAPT_COMPARE_KERNELS(WITH_NUMBER)
COMPARISON(logical_and)
COMPARISON(logical_or)

static rapt_tensor *logical_not_forward(rapt_call *call)
{
    return rapt_elementwise_call(call, rapt_kernel.elementwise.logical_not, 1);
}

static const rapt_op logical_not = {.name = "logical_not", .forward = logical_not_forward};

rapt_tensor *rapt_logical_not(rapt_tensor *x)
{
    return RAPT_APPLY(&logical_not, NULL, x);
}

/* |x| < ∞; integers and bool are finite */
rapt_tensor *rapt_isfinite(rapt_tensor *x)
{
    if (!x) return rapt_fail_null("isfinite", "x"), NULL;
    if (!rapt_is_floating(x)) return rapt_full(RAPT_BOOL, x->rank, x->shape, 1);
    return rapt_less_scalar(rapt_abs(x), (double)INFINITY);
}
