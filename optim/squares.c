/* What several kinds of optimizers compute of tensors: the sum of squares, a running mean. */
#include "core.h"
#include "tensor/reduce.h"

bool rapt_add_squares(const char *op, const rapt_tensor *x, double *sum)
{
    const rapt_accumulator center = {.number = 0};
    rapt_accumulator squares;
    rapt_reduction_shape shape;
    if (!rapt_check_axes(op, x, 0, NULL, &shape) ||
        !rapt_reduce(op, &rapt_kernel.reduce.squares, &rapt_kernel.reduce.sum, x, &shape, &center, &squares))
        return false;
    *sum += squares.number;
    return true;
}

rapt_tensor *rapt_towards(rapt_tensor *m, rapt_tensor *x, double share)
{
    RAPT_SCOPE;
    return rapt_keep(share < 0.5 ? rapt_add(m, rapt_mul_scalar(rapt_sub(x, m), share))
                                 : rapt_add(rapt_mul_scalar(x, share), rapt_mul_scalar(m, 1 - share)));
}
