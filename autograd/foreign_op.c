/* Ops whose functions another language has, which may leave them without a result. */
#include "tensor/core.h"

#include <rapt/op.h>

static const rapt_foreign_op *foreign_op_of(const rapt_call *call)
{
    return (const rapt_foreign_op *)rapt_call_op(call);
}

rapt_tensor *rapt_foreign_forward(rapt_call *call)
{
    const rapt_foreign_op *foreign = foreign_op_of(call);
    rapt_tensor *output = NULL;
    if (foreign->forward)
        foreign->forward(call, &output);
    else
        rapt_fail_null(foreign->op.name, "forward of its rapt_foreign_op");
    return output;
}

bool rapt_foreign_vjp(rapt_call *call)
{
    const rapt_foreign_op *foreign = foreign_op_of(call);
    bool is_good = false;
    if (foreign->vjp)
        foreign->vjp(call, &is_good);
    else
        rapt_fail_null(foreign->op.name, "vjp of its rapt_foreign_op");
    return is_good;
}
