/* Broadcasting undone: the one place where a gradient is summed back to the shape of an input. */
#include <rapt/ops.h>

#include "node.h"

bool rapt_sums_to_shape(const rapt_tensor *gradient, int rank, const int64_t *shape)
{
    const int extra = gradient->rank - rank;
    for (int axis = 0; axis < rank && extra >= 0; axis++)
        if (shape[axis] != 1 && shape[axis] != gradient->shape[extra + axis]) return false;
    return extra >= 0;
}

rapt_tensor *rapt_sum_to_shape(rapt_tensor *gradient, int rank, const int64_t *shape)
{
    int axes[RAPT_MAX_RANK], count = 0;
    const int extra = gradient->rank - rank;
    for (int axis = 0; axis < gradient->rank; axis++)
        if (axis < extra || shape[axis - extra] != gradient->shape[axis]) axes[count++] = axis;
    if (count == 0) return gradient;
    rapt_tensor *sum = rapt_sum(gradient, count, axes, count > extra);
    return extra > 0 && count > extra ? rapt_reshape(sum, rank, shape) : sum;
}
