/* What the elementwise ops share: checks of the inputs, and an output to write to. */
#ifndef RAPT_OPS_ELEMENTWISE_H
#define RAPT_OPS_ELEMENTWISE_H

#include <rapt/op.h>

#include "tensor/map.h"

/* Runs the loop that `loops` has for the inputs' dtype over inputs that broadcast together, one dtype for all of them,
 * into a new tensor of dtype `result` (or of the inputs' dtype: -1). cost as in rapt_map. NULL after an error. */
rapt_tensor *rapt_elementwise(const char *op, const rapt_loops loops, int result, const void *options, int64_t cost,
                              int count, rapt_tensor *const *inputs);

/* The same for the inputs and the options of a call, under the name of its op: all that most forwards do. */
rapt_tensor *rapt_elementwise_call(const rapt_call *call, const rapt_loops loops, int64_t cost);

/* The same with the loop chosen by the caller, who has checked the dtypes. */
rapt_tensor *rapt_elementwise_loop(const char *op, rapt_loop *loop, rapt_dtype result, const void *options,
                                   int64_t cost, int count, rapt_tensor *const *inputs);

/* False and an error when x has a dtype that cannot hold the number: an integer one, or bool, which has 0 and 1. */
bool rapt_check_number(const char *op, const rapt_tensor *x, double value);

/* The number as a scalar of the dtype of x. NULL after an error: x is NULL, or has a dtype that cannot hold it. */
rapt_tensor *rapt_number_like(const char *op, const rapt_tensor *x, double value);

#endif
