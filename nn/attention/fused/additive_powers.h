/* The exponentials that stand for tanh in fused additive attention. */
#ifndef RAPT_NN_ADDITIVE_POWERS_H
#define RAPT_NN_ADDITIVE_POWERS_H

#include "nn/mask.h"
#include "tensor/additive_attention.h"

#include <rapt/tensor.h>

/* Of projected keys b, row by row: e^{2b}, padded, and the largest |b|. */
typedef struct rapt_key_powers {
    rapt_tensor *powers, *largest;
} rapt_key_powers;

/* factors · e^{2x} of the rows of x, padded; factors NULL: factor for all. largest, if not NULL, gets the largest |x|
 * of each row. NULL after an error (no memory). */
rapt_tensor *rapt_make_powers(const rapt_tensor *x, double factor, const void *factors, rapt_tensor *largest);

/* What additive attention reads beside its queries: prepared keys (B, groups, K, hidden) or without groups, weight,
 * values, and the mask. */
typedef struct rapt_additive_inputs {
    const rapt_tensor *keys, *weight, *values;
    const rapt_resolved_mask *mask;
} rapt_additive_inputs;

/* All of a call but what belongs to queries, and the constants; keys that are not finite and that no query sees are
 * hidden. Its tensors belong to the innermost scope. False after an error (no memory). */
bool rapt_additive_describe(rapt_additive_attention *attention, const rapt_raw_mask *mask,
                            const rapt_additive_inputs *inputs);

/* What scores are made with. */
bool rapt_additive_make_constants(rapt_additive_attention *attention);

/* (B, heads, rows, size) or (B, rows, size) as kernels read it. */
rapt_raw_grid rapt_raw_grid_of(const rapt_tensor *tensor);

#endif
