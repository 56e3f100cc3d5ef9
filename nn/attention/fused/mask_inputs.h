/* A resolved mask as inputs and options of the fused ops, and of these as the kernels read it. */
#ifndef RAPT_NN_MASK_INPUTS_H
#define RAPT_NN_MASK_INPUTS_H

#include <rapt/op.h>

#include "nn/attention_call.h"
#include "tensor/core.h"
#include "tensor/raw_mask.h"

/* What of a mask and of a normaliser are inputs of an op, one behind the other; each may be NULL. */
enum {
    rapt_input_bias,
    rapt_input_relative_bias,
    rapt_input_head_terms, /* of the normaliser */
    rapt_input_ranges,
    rapt_input_seen,
    rapt_input_answers, /* of the rule, and what it captured */
    rapt_input_captured,
    rapt_input_places = rapt_input_captured + RAPT_MASK_CAPTURED,
    rapt_mask_input_count,
};

/* And what goes to its options. */
typedef struct rapt_mask_options {
    int64_t offset;
    rapt_mask_code code; /* of the rule */
    bool packed;
    int64_t sequences, longest_queries, longest_keys; /* of a packed mask */
    double dropout;
    rapt_random_state random;
} rapt_mask_options;

/* For the `optional` of an op whose inputs these are, the first one at `first`. */
#define RAPT_MASK_OPTIONAL(first) (((1u << rapt_mask_input_count) - 1) << (first))

void rapt_mask_put_inputs(const rapt_resolved_mask *mask, rapt_tensor *inputs[rapt_mask_input_count]);

/* The mask that these inputs, from `inputs` on, and options were made of, for queries and keys as the op has them. */
rapt_resolved_mask rapt_mask_of_inputs(rapt_tensor *const *inputs, const rapt_mask_options *options,
                                       const rapt_tensor *queries, const rapt_tensor *keys);

/* As the kernels read it, without dropout. */
rapt_raw_mask rapt_raw_mask_of_resolved(const rapt_resolved_mask *mask);

/* Reserves the random numbers for dropout, if there is any. */
rapt_mask_options rapt_mask_options_of(const rapt_attention_call *call);

/* In forward: of the inputs from `first` on, for scores (batch, heads, queries, keys). */
rapt_raw_mask rapt_raw_mask_of(const rapt_call *call, int first, const rapt_mask_options *options,
                               const int64_t scores[4]);

#endif
