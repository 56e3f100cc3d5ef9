/* Broadcasting undone: the one place where a gradient is summed back to the shape of an input. */
#include <rapt/ops.h>

#include "autograd/node.h"

static bool equal_shapes(int rank, const int64_t *a, int other_rank, const int64_t *b)
{
    if (rank != other_rank) return false;
    for (int axis = 0; axis < rank; axis++)
        if (a[axis] != b[axis]) return false;
    return true;
}

rapt_tensor *rapt_sum_to_shape(rapt_tensor *gradient, int rank, const int64_t *shape)
{
    if (equal_shapes(gradient->rank, gradient->shape, rank, shape)) return gradient;
    int axes[RAPT_MAX_RANK], count = 0;
    int extra = gradient->rank - rank;
    bool fits = extra >= 0;
    for (int axis = 0; fits && axis < gradient->rank; axis++) {
        bool summed = axis < extra || (shape[axis - extra] == 1 && gradient->shape[axis] != 1);
        if (summed)
            axes[count++] = axis;
        else
            fits = shape[axis - extra] == gradient->shape[axis];
    }
    if (!fits) {
        char a[RAPT_SHAPE_TEXT], b[RAPT_SHAPE_TEXT];
        rapt_fail(RAPT_ERROR_SHAPE, "backward", "a gradient of shape %s does not fit a tensor of shape %s",
                  rapt_shape_text(gradient->rank, gradient->shape, a), rapt_shape_text(rank, shape, b));
        return NULL;
    }
    return rapt_reshape(count ? rapt_sum(gradient, count, axes, true) : gradient, rank, shape);
}
