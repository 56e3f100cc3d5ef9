/* What forward and backward of fused additive attention share. */
#ifndef RAPT_NN_ADDITIVE_INPUTS_H
#define RAPT_NN_ADDITIVE_INPUTS_H

#include <rapt/op.h>

#include "nn/kernel_mask.h"
#include "tensor/kernel_additive.h"

/* The inputs of the op, in this order; those of the mask may be NULL. */
typedef struct rapt_additive_inputs {
    rapt_tensor *queries, *keys, *weight, *values;
    rapt_mask_inputs mask;
} rapt_additive_inputs;

enum { rapt_additive_input_count = sizeof(rapt_additive_inputs) / sizeof(rapt_tensor *) };

rapt_additive_inputs rapt_additive_inputs_of(rapt_call *call);

/* (B, heads, rows, size) or (B, rows, size) as kernels read it. */
rapt_kernel_grid rapt_grid_of(const rapt_tensor *tensor);

/* Makes the inputs ready for the kernels, with the exponentials that scores are made of, or the gradients, or both. The
 * tensors belong to the innermost scope. False after an error (no memory). */
bool rapt_additive_describe(rapt_additive *a, const rapt_additive_inputs *inputs, const rapt_mask_options *options,
                            bool scores, bool backward);

/* Are the weights kept from forward to backward? As long as they are no larger than the projected queries and keys; else
 * backward makes them again, a chunk of the queries at a time. */
bool rapt_additive_keeps_weights(const rapt_additive *a);

/* The op that gives the gradients of the first six inputs (those not wanted are empty) from the inputs, what forward found
 * out of each row (its sums, as the kernels have them), the weights if kept, else NULL, and the gradient of the output.
 * Gradients of keys and values that are there so far, if not NULL, are added to and given back. */
enum {
    rapt_additive_gradient_count = 6,
    rapt_additive_at_sums = rapt_additive_input_count,
    rapt_additive_at_weights,
    rapt_additive_at_gradient,
    rapt_additive_at_keys_so_far,
    rapt_additive_at_values_so_far,
    rapt_additive_backward_input_count,
};

typedef struct rapt_additive_backward_options {
    rapt_mask_options forward;
    bool wants[rapt_additive_gradient_count];
} rapt_additive_backward_options;

extern const rapt_op rapt_additive_backward;

/* factors · e^{2x} of the rows of x, padded; factors NULL: factor for all. reach, if not NULL, gets the largest |x| of each
 * row. NULL after an error (no memory). */
rapt_tensor *rapt_additive_powers(const rapt_tensor *x, double factor, const void *factors, rapt_tensor *reach);

/* e^{2b} of projected keys and the largest |b| of each: those that the keys carry, or made now. */
bool rapt_additive_key_powers(const rapt_tensor *keys, rapt_tensor **powers, rapt_tensor **reach);

#endif
