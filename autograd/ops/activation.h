/* The activations that a linear layer can apply itself. */
#ifndef RAPT_OPS_ACTIVATION_H
#define RAPT_OPS_ACTIVATION_H

#include <rapt/ops.h>

#include "tensor/kernels.h"

/* False and an error when it is none of them. */
bool rapt_check_activation(const char *op, rapt_activation activation);

rapt_loop *rapt_activation_loop(rapt_activation activation, rapt_dtype dtype);

/* g f', a function of f's output or else of its input; made of ops. */
bool rapt_activation_saves_output(rapt_activation activation);
rapt_tensor *rapt_activation_gradient(rapt_activation activation, rapt_tensor *g, rapt_tensor *saved);

#endif
