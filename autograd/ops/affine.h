/* What the ops share that are a linear layer: the inputs of their calls are x, weight and bias. */
#ifndef RAPT_OPS_AFFINE_H
#define RAPT_OPS_AFFINE_H

#include <rapt/ops.h>

#include "tensor/matmul.h"

/* In forward: a tensor for x Wᵀ + b. NULL and an error when the inputs do not fit together. */
rapt_tensor *rapt_affine_output(const rapt_call *call);

/* y = x Wᵀ + b with the epilogue or NULL. Saves two tensors, which rapt_affine_give reads. */
bool rapt_affine_into(rapt_call *call, const rapt_tensor *y, const rapt_epilogue *epilogue);

/* In vjp: gives the gradients of the inputs, from that of x Wᵀ + b. */
bool rapt_affine_give(rapt_call *call, rapt_tensor *g);

#endif
