/* All steps of Bahdanau's decoder as one op. */
#ifndef RAPT_NN_BAHDANAU_OP_H
#define RAPT_NN_BAHDANAU_OP_H

#include <rapt/op.h>

#include "bahdanau_rows.h"
#include "tensor/random.h"

/* The inputs of the op, and, from at_layers on, four of each layer: of layer 0 the weight of the context and no bias
 * of the input, which are in the embedding's projection. The gradients that backward gives have the same numbers. With
 * starts of the steps (T + 1), each has ever fewer of the batch's first rows, and what is of all steps, here and below,
 * is (rows, …) instead of (T, B, …). */
enum { at_ranges, at_starts, at_drops, at_embedding, at_initial, at_keys, at_values, at_query, at_unit, at_layers };
enum { layer_hidden, layer_input, layer_hidden_bias, layer_input_bias, layer_inputs };
enum { most_inputs = at_layers + layer_inputs * rapt_bahdanau_layers };

typedef struct rapt_bahdanau_options {
    int layers;
    double dropout; /* of attention */
    rapt_random_state random;
    uint32_t wants; /* backward: bit i, of input i */
} rapt_bahdanau_options;

/* outputs[0]: the last layer's states after all steps (T, B, hidden); [1]: all layers', after each row's last step
 * (layers, B, hidden); [2], where `count` is 3 and not 2: the weights before dropout (T, B, K). False after an
 * error. */
enum { rapt_bahdanau_sequence, rapt_bahdanau_last, rapt_bahdanau_weights_given, rapt_bahdanau_most_outputs };
bool rapt_bahdanau_apply(const rapt_bahdanau_options *options, rapt_tensor *const *inputs, int count,
                         rapt_tensor **outputs);

/* The op's definition. */
rapt_tensor *rapt_bahdanau_definition(rapt_call *call);

#endif
