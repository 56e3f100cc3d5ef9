/* Running a loop over all elements of strided, broadcast tensors, on all threads. */
#ifndef RAPT_TENSOR_MAP_H
#define RAPT_TENSOR_MAP_H

#include "tensor/core.h"
#include "tensor/kernels.h"

#define RAPT_MAX_OPERANDS 6

/* Runs the loop over every element of the output, tensors[0]. The other tensors broadcast to its shape. cost: how many
 * plain additions one element is worth. */
void rapt_map(rapt_loop *loop, const void *options, int64_t cost, int count, const rapt_tensor *const *tensors);

#endif
