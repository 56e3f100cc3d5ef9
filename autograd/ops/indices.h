/* What the ops that take indices share. */
#ifndef RAPT_OPS_INDICES_H
#define RAPT_OPS_INDICES_H

#include <rapt/op.h>

#include "tensor/core.h"

/* The indices as int64, dense but for axes along which they repeat. NULL and an error unless they are int64 or int32
 * and each is in [0, size). */
rapt_tensor *rapt_checked_indices(const char *op, const rapt_tensor *indices, int64_t size);

/* In a vjp: the gradient of input 0, of which elements were chosen by indices along the axis: each element of g is
 * added to the place that it came from. False after an error. */
bool rapt_give_scattered(rapt_call *call, int axis, rapt_tensor *indices, rapt_tensor *g);

/* The same where input 0 is a table (rows, size) and dense indices chose whole rows of it: g is (…, size). */
bool rapt_give_embedded(rapt_call *call, rapt_tensor *indices, rapt_tensor *g);

#endif
