/* Initial values of parameters. */
#include <rapt/initialize.h>

#include <math.h>

#include "nn/entry.h"
#include "tensor/core.h"

rapt_tensor *rapt_new_uniform(int rank, const int64_t *shape, double bound)
{
    rapt_tensor *tensor = rapt_empty(RAPT_FLOAT32, rank, shape);
    return tensor && rapt_fill_uniform(tensor, -bound, bound) ? tensor : NULL;
}

/* fan_in and fan_out as the header defines them, 1 where nothing is filled; false and an error when the tensor has
 * none, or the gain is no gain. */
static bool fans(const char *op, const rapt_tensor *tensor, double gain, double *fan_in, double *fan_out)
{
    if (!tensor) return rapt_fail(RAPT_ERROR_NULL, op, "tensor is NULL");
    if (!rapt_check_floating(op, tensor)) return false;
    const int rank = rapt_rank(tensor);
    if (rank < 2)
        return rapt_fail(RAPT_ERROR_SHAPE, op, "a tensor of rank 2 or more has fans, not one of rank %d", rank);
    if (!(gain >= 0 && isfinite(gain)))
        return rapt_fail(RAPT_ERROR_VALUE, op, "gain is %g; a finite number from 0 on expected", gain);
    double kernel = 1;
    for (int axis = 2; axis < rank; axis++) kernel *= (double)rapt_size(tensor, axis);
    *fan_in = fmax((double)rapt_size(tensor, 1) * kernel, 1);
    *fan_out = fmax((double)rapt_size(tensor, 0) * kernel, 1);
    return true;
}

bool rapt_init_xavier_uniform(rapt_tensor *tensor, double gain)
{
    double in, out;
    if (!fans("init_xavier_uniform", tensor, gain, &in, &out)) return false;
    double bound = gain * sqrt(6 / (in + out));
    return rapt_fill_uniform(tensor, -bound, bound);
}

bool rapt_init_xavier_normal(rapt_tensor *tensor, double gain)
{
    double in, out;
    return fans("init_xavier_normal", tensor, gain, &in, &out) &&
           rapt_fill_normal(tensor, 0, gain * sqrt(2 / (in + out)));
}

bool rapt_init_kaiming_uniform(rapt_tensor *tensor, double gain)
{
    double in, out;
    if (!fans("init_kaiming_uniform", tensor, gain, &in, &out)) return false;
    double bound = gain * sqrt(3 / in);
    return rapt_fill_uniform(tensor, -bound, bound);
}

bool rapt_init_kaiming_normal(rapt_tensor *tensor, double gain)
{
    double in, out;
    return fans("init_kaiming_normal", tensor, gain, &in, &out) && rapt_fill_normal(tensor, 0, gain / sqrt(in));
}
