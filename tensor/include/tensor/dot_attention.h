/* Fused dot-product attention over raw numbers, on all threads. */
#ifndef RAPT_TENSOR_DOT_ATTENTION_H
#define RAPT_TENSOR_DOT_ATTENTION_H

#include "tensor/kernel_dot.h"

/* Each false and an error (under the op's name) when there is no memory for scratch. Forward writes out and statistics,
 * backward the gradients that have a place; the weights (batch, heads, queries, keys) need forward's statistics. */
bool rapt_dot_attention_forward(const char *op, const rapt_dot_attention *call);
bool rapt_dot_attention_weights(const char *op, const rapt_dot_attention *call, void *weights);
bool rapt_dot_attention_backward(const char *op, const rapt_dot_attention *call);

/* The call for `count` queries from number `first` on and the keys of a part, with which keys and values, and their
 * gradients, begin. Statistics of the rows of such queries lie behind one another. Not of packed sequences. */
rapt_dot_attention rapt_dot_attention_of_part(const rapt_dot_attention *call, int64_t first, int64_t count,
                                              const rapt_key_part *part);

#endif
