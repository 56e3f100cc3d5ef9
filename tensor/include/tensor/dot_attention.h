/* Fused dot-product attention over raw numbers, on all threads. */
#ifndef RAPT_TENSOR_DOT_ATTENTION_H
#define RAPT_TENSOR_DOT_ATTENTION_H

#include "tensor/kernel_dot.h"

/* Each false and an error (under the op's name) when there is no memory for scratch. Forward writes out and statistics,
 * backward the gradients that have a place; the weights (batch, heads, queries, keys) need forward's statistics. */
bool rapt_dot_attention_forward(const char *op, const rapt_dot_attention *call);
bool rapt_dot_attention_weights(const char *op, const rapt_dot_attention *call, void *weights);
bool rapt_dot_attention_backward(const char *op, const rapt_dot_attention *call);

#endif
