/* Running a loop over all elements of strided, broadcast tensors, on all threads. */
#ifndef RAPT_TENSOR_MAP_H
#define RAPT_TENSOR_MAP_H

#include "tensor/core.h"
#include "tensor/kernels.h"

#define RAPT_MAX_OPERANDS 6

/* Runs the loop over every element of the output, tensors[0]. The other tensors broadcast to its shape. cost: how many
 * plain additions one element is worth. */
void rapt_map(rapt_loop *loop, const void *options, int64_t cost, int count, const rapt_tensor *const *tensors);

/* The same in one piece, for contiguous tensors of one shape. */
static inline void rapt_map_dense(rapt_loop *loop, const void *options, const rapt_tensor *output, int count,
                                  const rapt_tensor *const *inputs)
{
    char *data[RAPT_MAX_OPERANDS];
    int64_t strides[RAPT_MAX_OPERANDS];
    data[0] = output->data;
    strides[0] = rapt_element_bytes[output->dtype];
    for (int k = 0; k < count; k++) {
        data[k + 1] = inputs[k]->data;
        strides[k + 1] = rapt_element_bytes[inputs[k]->dtype];
    }
    loop(output->count, data, strides, options);
}

/* The same over every place of the axes other than `axis`: the loop is handed the first elements along that axis.
 * Operands of tensors[0]'s rank have that axis; those of one rank less are without it already. */
void rapt_map_along(int axis, rapt_loop *loop, const void *options, int64_t cost, int count,
                    const rapt_tensor *const *tensors);

#endif
