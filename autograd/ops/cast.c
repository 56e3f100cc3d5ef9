/* Conversion between dtypes. */
#include <rapt/ops.h>

#include "elementwise.h"

typedef struct cast_options {
    rapt_dtype from, to;
} cast_options;

/* d cast(x) = cast(dx) */
static rapt_tensor *cast_forward(rapt_call *call)
{
    rapt_tensor *x = rapt_call_input(call, 0);
    const cast_options *options = rapt_call_options(call);
    if (rapt_dtype_size(options->to) == 0) {
        rapt_fail(RAPT_ERROR_DTYPE, "cast", "%d is not a dtype", (int)options->to);
        return NULL;
    }
    rapt_loop *loop = rapt_kernel.elementwise.cast[options->to][options->from];
    return rapt_elementwise_loop("cast", loop, options->to, NULL, 1, 1, &x);
}

static bool cast_vjp(rapt_call *call)
{
    const cast_options *options = rapt_call_options(call);
    return rapt_call_give(call, 0, rapt_cast(rapt_call_gradient(call, 0), options->from));
}

static const rapt_op cast = {.name = "cast",
                             .forward = cast_forward,
                             .vjp = cast_vjp,
                             .options_size = sizeof(cast_options)};

rapt_tensor *rapt_cast(rapt_tensor *x, rapt_dtype dtype)
{
    return RAPT_APPLY(&cast, &((cast_options){.from = x ? x->dtype : dtype, .to = dtype}), x);
}
