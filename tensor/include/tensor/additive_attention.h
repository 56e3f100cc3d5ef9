/* Fused additive attention over raw numbers, on all threads. */
#ifndef RAPT_TENSOR_ADDITIVE_ATTENTION_H
#define RAPT_TENSOR_ADDITIVE_ATTENTION_H

#include "tensor/kernel_additive.h"

/* Each false and an error (under the op's name) when there is no memory for what is between. Forward writes the
 * output. */
bool rapt_additive_attention_forward(const char *op, const rapt_additive_attention *call,
                                     const rapt_additive_output *output);

/* Which gradients backward writes; those of queries, keys and weight are made together. */
typedef struct rapt_additive_wants {
    bool hidden, values;
} rapt_additive_wants;

/* Of *gradient what its comments call rows of a chunk is set here. */
bool rapt_additive_attention_backward(const char *op, const rapt_additive_attention *call,
                                      rapt_additive_gradient *gradient, rapt_additive_wants wants);

/* factors · e^{2x} of `rows` dense rows of `hidden` elements, padded; factors NULL: factor for all. largest, if not
 * NULL, gets the largest |x| of each row. */
void rapt_additive_powers(rapt_dtype dtype, int64_t rows, int64_t hidden, const void *x, double factor,
                          const void *factors, void *powers, void *largest);

#endif
