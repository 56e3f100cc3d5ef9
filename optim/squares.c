/* The sum of a tensor's squares. */
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
