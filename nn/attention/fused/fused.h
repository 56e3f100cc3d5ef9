/* What the fused attentions have in common as ops: outputs, how they are applied, and the way to their backward. */
#ifndef RAPT_NN_FUSED_H
#define RAPT_NN_FUSED_H

#include "captured.h"
#include "mask_inputs.h"
#include "nn/attention_call.h"
#include "nn/pooling.h"
#include "tensor/raw_normalizer.h"

/* What goes to the options of any of them. Behind the inputs of the mask come those that the changes captured. */
typedef struct rapt_fused_options {
    rapt_mask_options mask;
    rapt_score_changes changes;
    bool is_sigmoid; /* is that the normaliser, not softmax? */
    rapt_ring *ring; /* of whose ranks keys and values are; NULL: all are here */
} rapt_fused_options;

rapt_fused_options rapt_fused_options_of(const rapt_attention_call *call);

/* All of a call that are inputs behind queries, keys and values. */
void rapt_fused_put_inputs(const rapt_attention_call *call, rapt_tensor *inputs[rapt_mask_input_count]);

/* In forward: the normaliser whose inputs begin at number `mask`. gathers, if not NULL: filled in so that the gradient
 * of its head_terms, zeros so far, is gathered there. */
rapt_raw_normalizer rapt_fused_normalizer(const rapt_call *call, int mask, const rapt_fused_options *options,
                                          rapt_tensor *gradient, rapt_raw_changes *gathers);

/* The outputs of forward; the weights, (B, heads, Q, K) and before dropout, only if they are asked for. */
enum { rapt_fused_pooled, rapt_fused_weights, rapt_fused_output_count };

/* The op of a call: `count` inputs, behind which go the tensors that changes of its scores captured. Gives the pooled
 * values; call->weights, if it is not NULL, gets the weights. NULL after an error. */
rapt_tensor *rapt_fused_apply(const rapt_op *op, const void *options, int count, rapt_tensor *const *inputs,
                              const rapt_attention_call *call);

/* In forward and vjp: are the weights asked for? */
bool rapt_fused_gives_weights(const rapt_call *call);

/* In a definition: weights of what scoring->score gives under the mask whose inputs begin at number `mask`, dropout and
 * weighted sum by the plain way, with the random numbers that the fused one drew. keys need not be finite where no
 * query sees them. */
rapt_tensor *rapt_fused_define(rapt_call *call, int mask, const rapt_fused_options *options, rapt_scoring *scoring,
                               rapt_tensor *queries, rapt_tensor *keys, rapt_tensor *values);

/* In forward: keeps all inputs. */
void rapt_fused_save_inputs(rapt_call *call);

/* The backward of a fused op is an op whose inputs are what forward saved but what was captured, then the gradients of
 * the pooled values and of the weights, each NULL where nothing depends on it, and those of keys and values so far: if
 * not NULL, they are added to and given back; then what was captured. Its outputs are gradients of forward's first
 * inputs, in their order, and of what was captured. */
typedef struct rapt_fused_backward {
    const rapt_op *op;
    void *options;
    bool *wants;                     /* in these options: for each gradient, whether it is wanted; set here */
    int saved_count, gradient_count; /* without what was captured */
    int keys, values;                /* their numbers among the inputs of forward */
    int first_captured, captured;    /* the number of the first among the inputs of forward; how many */
    bool *wants_captured;            /* in the options likewise */
    rapt_ring *ring;                 /* whose ranks are told when it fails before they meet; NULL: none */
    const char *name;                /* of who tells them */
} rapt_fused_backward;

static inline bool rapt_has_sinks(const rapt_raw_normalizer *normalizer)
{
    return normalizer->head_terms && !normalizer->is_sigmoid;
}

/* What backward's inputs are behind those saved. */
enum {
    rapt_fused_gradient,
    rapt_fused_weights_gradient,
    rapt_fused_keys_so_far,
    rapt_fused_values_so_far,
    rapt_fused_more_inputs
};

/* In such an op, of which the first of these is input number `first`: the gradients of the pooled values and of the
 * weights with dense rows; NULL where there is none. False after an error. */
bool rapt_fused_gradients(const rapt_call *call, int first, const rapt_tensor **pooled, const rapt_tensor **weights);

/* For the `optional` of such an op, the first of these at `first`. */
#define RAPT_FUSED_OPTIONAL(first) (((1u << rapt_fused_more_inputs) - 1) << (first))

/* The vjp of a fused op by its backward. */
bool rapt_fused_vjp(rapt_call *call, const rapt_fused_backward *backward);

#endif
