/* Ops over the rows of a tensor, its last axis, which can be had along any axis. */
#ifndef RAPT_AUTOGRAD_ROW_OP_H
#define RAPT_AUTOGRAD_ROW_OP_H

#include <rapt/op.h>

#include "tensor/map.h"

/* Runs the loop, whose options are the length of a row, over the rows of up to two floating inputs of one shape, which
 * become dense; cost: additions that an element is worth. NULL after an error. */
rapt_tensor *rapt_map_rows(const char *op, const rapt_loops loops, int64_t cost, int count, rapt_tensor *const *inputs);

/* Σ of each row, as an axis of size 1. NULL after an error. */
rapt_tensor *rapt_row_sums(rapt_tensor *x);

/* Applies an op of the last axis, with its options or NULL, along any. */
rapt_tensor *rapt_apply_along(const rapt_op *op, const void *options, rapt_tensor *x, int axis);

#endif
