/* What the ops that take indices share. */
#ifndef RAPT_AUTOGRAD_INDEX_H
#define RAPT_AUTOGRAD_INDEX_H

#include <rapt/op.h>

#include "tensor/core.h"

/* The indices as int64, dense but for axes along which they repeat. NULL and an error unless they are int64 or int32 and
 * each is in [0, size). */
rapt_tensor *rapt_checked_indices(const char *op, const rapt_tensor *indices, int64_t size);

/* scatter_add to zeros of that shape. */
rapt_tensor *rapt_scatter_to_zeros(int rank, const int64_t *shape, int axis, rapt_tensor *indices, rapt_tensor *source);

#endif
