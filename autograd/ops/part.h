/* Parts of tensors, as the ops on views and on joined tensors share them. */
#ifndef RAPT_OPS_PART_H
#define RAPT_OPS_PART_H

#include <rapt/op.h>

#include "tensor/core.h"

/* Every step-th place of an axis, `size` of them from `start` on. The result is a header that holds no share of the
 * elements, for reading or writing them at once. */
rapt_tensor rapt_part(const rapt_tensor *whole, int axis, int64_t start, int64_t size, int64_t step);

/* Writes the source, which broadcasts to the target and has its dtype, into a target that is still being made. */
void rapt_write_part(const rapt_tensor *target, const rapt_tensor *source);

/* The opposite of a slice, an op: x in a tensor that has `size` places along the axis, every step-th from `start` on,
 * and the value in all others. */
rapt_tensor *rapt_place(rapt_tensor *x, int axis, int64_t start, int64_t step, int64_t size, double value);

#endif
