/* Functions that are flat wherever they have a gradient, as a choice or a count is. */
#ifndef RAPT_NN_ZERO_GRADIENT_H
#define RAPT_NN_ZERO_GRADIENT_H

#include <rapt/op.h>

/* The vjp of an op with such a function: zeros for every input that wants a gradient. */
bool rapt_give_zeros(rapt_call *call);

#endif
