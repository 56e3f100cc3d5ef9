/* What changes of scores captured, as inputs of the fused ops, and as the kernels read it. */
#ifndef RAPT_NN_CAPTURED_H
#define RAPT_NN_CAPTURED_H

#include <rapt/op.h>

#include "nn/attention_call.h"

/* In forward: how the scores are changed, where the captured tensors are the inputs from `first` on: `raw`, filled in,
 * or NULL if there are no changes. */
const rapt_raw_changes *rapt_changes_of(const rapt_call *call, int first, const rapt_score_changes *changes,
                                        rapt_dtype dtype, rapt_raw_changes *raw);

/* In backward's forward: makes the gradients that are wanted and sets them as outputs from `output` on. False after an
 * error. */
bool rapt_captured_gradients(rapt_call *call, int output, const bool *wants, int first, rapt_raw_changes *raw);

#endif
