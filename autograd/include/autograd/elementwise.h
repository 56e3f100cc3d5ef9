/* What the elementwise ops share: checks of the inputs, and an output to write to. */
#ifndef RAPT_AUTOGRAD_ELEMENTWISE_H
#define RAPT_AUTOGRAD_ELEMENTWISE_H

#include <rapt/op.h>

#include "tensor/map.h"

/* Runs the loop that `loops` has for the inputs' dtype over inputs that broadcast together, one dtype for all of them,
 * into a new tensor of dtype `result` (or of the inputs' dtype: -1). cost as in rapt_map. NULL after an error. */
rapt_tensor *rapt_elementwise(const char *op, const rapt_loops loops, int result, const void *options, int64_t cost, int count,
                              rapt_tensor *const *inputs);

#endif
