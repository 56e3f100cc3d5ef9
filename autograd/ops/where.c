/* Choosing between two tensors, element by element. */
#include <rapt/ops.h>

#include "autograd/elementwise.h"

/* d where(c, a, b) = where(c, da, db) */
static rapt_tensor *where_forward(rapt_call *call)
{
    rapt_tensor *inputs[] = {rapt_call_input(call, 0), rapt_call_input(call, 1), rapt_call_input(call, 2)};
    rapt_dtype condition = (rapt_dtype)inputs[0]->dtype, a = (rapt_dtype)inputs[1]->dtype,
               b = (rapt_dtype)inputs[2]->dtype;
    if (condition != RAPT_BOOL) {
        rapt_fail(RAPT_ERROR_DTYPE, "where", "the condition is %s; bool expected", rapt_dtype_name(condition));
        return NULL;
    }
    if (a != b) {
        rapt_fail(RAPT_ERROR_DTYPE, "where", "a is %s, b is %s; one dtype expected (rapt_cast converts)",
                  rapt_dtype_name(a), rapt_dtype_name(b));
        return NULL;
    }
    rapt_call_save(call, inputs[0]);
    return rapt_elementwise_loop("where", rapt_kernel.elementwise.where[a], a, NULL, 1, 3, inputs);
}

static bool where_vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_call_gradient(call, 0), *condition = rapt_call_saved(call, 0);
    rapt_tensor *zero = rapt_zeros((rapt_dtype)g->dtype, 0, NULL);
    bool good = true;
    if (rapt_call_wants(call, 1)) good = rapt_call_give(call, 1, rapt_where(condition, g, zero));
    if (rapt_call_wants(call, 2)) good = good && rapt_call_give(call, 2, rapt_where(condition, zero, g));
    return good;
}

static const rapt_op where = {.name = "where", .forward = where_forward, .vjp = where_vjp};

rapt_tensor *rapt_where(rapt_tensor *condition, rapt_tensor *a, rapt_tensor *b)
{
    return RAPT_APPLY(&where, NULL, condition, a, b);
}
