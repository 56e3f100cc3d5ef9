/* The normaliser of fused attention as its kernels read it. */
#ifndef RAPT_TENSOR_RAW_NORMALIZER_H
#define RAPT_TENSOR_RAW_NORMALIZER_H

#include "tensor/score_changes.h"

/* Weights exp(s) / (exp(term) + Σ exp(s)), softmax with a sink; or sigmoid's, 1 / (1 + exp(−s − term)), which has no
 * rows. */
typedef struct rapt_raw_normalizer {
    bool is_sigmoid;
    const void *head_terms; /* of the scores' type, (heads); NULL: softmax without a sink */
    double *gathered;       /* backward: where the task gathers the gradient of its first head's term, or NULL */
    const rapt_raw_changes *gathers; /* backward: the head_terms as what is captured, or NULL: no gradient is wanted */
} rapt_raw_normalizer;

#endif
