/* A resolved mask's tensors as the kernels read them. */
#ifndef RAPT_NN_KERNEL_MASK_H
#define RAPT_NN_KERNEL_MASK_H

#include "nn/attention_call.h"
#include "tensor/core.h"
#include "tensor/kernel_mask.h"

/* What of a mask are inputs of an op, in this order; each may be NULL. */
typedef struct rapt_mask_inputs {
    rapt_tensor *bias, *nearby, *ranges, *seen;
} rapt_mask_inputs;

enum { rapt_mask_input_count = sizeof(rapt_mask_inputs) / sizeof(rapt_tensor *) };

/* And what goes to its options. */
typedef struct rapt_mask_options {
    int64_t offset;
    double dropout;
    rapt_random_state random;
} rapt_mask_options;

rapt_mask_inputs rapt_mask_inputs_of(const rapt_resolved_mask *mask);

/* Reserves the random numbers for dropout, if there is any. */
rapt_mask_options rapt_mask_options_of(const rapt_attention_call *call);

/* For scores (batch, heads, queries, keys). */
rapt_kernel_mask rapt_kernel_mask_of(const rapt_mask_inputs *inputs, const rapt_mask_options *options,
                                     const int64_t scores[4]);

#endif
