/* Running a loop over all elements of strided, broadcast tensors, on all threads. */
#ifndef RAPT_TENSOR_MAP_H
#define RAPT_TENSOR_MAP_H

#include "tensor/core.h"
#include "tensor/kernels.h"

#define RAPT_MAX_OPERANDS 6

/* Runs the loop over every element of the output, tensors[0]. The other tensors broadcast to its shape. cost: how many
 * plain additions one element is worth. */
void rapt_map(rapt_loop *loop, const void *options, int64_t cost, int count, const rapt_tensor *const *tensors);

/* The same over every place of the axes other than `axis`: the loop is handed the first elements along that axis.
 * Operands of tensors[0]'s rank have that axis; those of one rank less are without it already. */
void rapt_map_along(int axis, rapt_loop *loop, const void *options, int64_t cost, int count,
                    const rapt_tensor *const *tensors);

#endif
