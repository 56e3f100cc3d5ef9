/* Arithmetic of two tensors, element by element: a + b, a − b, a · b, a / b, a ^ b, the larger and the smaller. */
#include <rapt/ops.h>

#include "autograd/elementwise.h"

#define ELEMENTWISE_FORWARD(name, cost)                                                                                \
    static rapt_tensor *name##_forward(rapt_call *call)                                                                \
    {                                                                                                                  \
        rapt_tensor *inputs[] = {rapt_call_input(call, 0), rapt_call_input(call, 1)};                                  \
        return rapt_elementwise(#name, rapt_kernel.elementwise.name, -1, NULL, cost, 2, inputs);                       \
    }

/* d(a + b) = da + db */
ELEMENTWISE_FORWARD(add, 1)

static bool add_vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_call_gradient(call, 0);
    return rapt_call_give(call, 0, g) && rapt_call_give(call, 1, g);
}

static const rapt_op add = {.name = "add", .forward = add_forward, .vjp = add_vjp};

rapt_tensor *rapt_add(rapt_tensor *a, rapt_tensor *b)
{
    return RAPT_APPLY(&add, NULL, a, b);
}

/* d(a · b) = b da + a db */
static rapt_tensor *mul_forward(rapt_call *call)
{
    rapt_tensor *a = rapt_call_input(call, 0), *b = rapt_call_input(call, 1);
    rapt_call_save(call, rapt_call_wants(call, 1) ? a : NULL);
    rapt_call_save(call, rapt_call_wants(call, 0) ? b : NULL);
    return rapt_elementwise("mul", rapt_kernel.elementwise.mul, -1, NULL, 1, 2, (rapt_tensor *[]){a, b});
}

static bool mul_vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_call_gradient(call, 0);
    bool good = true;
    if (rapt_call_wants(call, 0)) good = rapt_call_give(call, 0, rapt_mul(g, rapt_call_saved(call, 1)));
    if (rapt_call_wants(call, 1)) good = good && rapt_call_give(call, 1, rapt_mul(g, rapt_call_saved(call, 0)));
    return good;
}

static const rapt_op mul = {.name = "mul", .forward = mul_forward, .vjp = mul_vjp};

rapt_tensor *rapt_mul(rapt_tensor *a, rapt_tensor *b)
{
    return RAPT_APPLY(&mul, NULL, a, b);
}
