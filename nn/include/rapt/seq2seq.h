/* Sequence to sequence with Bahdanau attention (Bahdanau et al. 2014, as GRUs). */
#ifndef RAPT_SEQ2SEQ_H
#define RAPT_SEQ2SEQ_H

#include <rapt/attention.h>
#include <rapt/recurrent.h>

RAPT_BEGIN_DECLS

/* What encoder and decoder are made by. */
typedef struct rapt_bahdanau_config {
    int64_t vocabulary, embedding, hidden;
    int layers;
    double dropout;
    /* The scoring function of the decoder's attention, for queries and keys of that size; NULL: additive. */
    rapt_scoring *(*scoring)(int64_t size, void *context);
    void *context;
} rapt_bahdanau_config;

/* Embedding and GRU; parameters embedding.weight, rnn.…; GRU weights start Xavier-uniform. */
typedef struct rapt_bahdanau_encoder {
    rapt_module module;
    rapt_embedding *embedding;
    rapt_gru *rnn;
} rapt_bahdanau_encoder;

/* NULL after an error. */
RAPT_API rapt_bahdanau_encoder *rapt_bahdanau_encoder_new(const rapt_bahdanau_config *config);

/* Tokens (B, T) integers → outputs (T, B, hidden); the final state (layers, B, hidden) to *state, and NULL after
 * an error. */
RAPT_API rapt_tensor *rapt_bahdanau_encoder_forward(rapt_bahdanau_encoder *encoder, rapt_tensor *tokens,
                                                    rapt_tensor **state);

/* The same of packed sequences (rapt/packing.h), without work on padding: tokens (rows) → outputs (rows, hidden). The
 * final state of a sequence is that after its own last token, where a padded batch goes on through the padding. A
 * sequence of no tokens is an error, and so is no sequence. */
RAPT_API rapt_tensor *rapt_bahdanau_encoder_forward_packed(rapt_bahdanau_encoder *encoder, rapt_tensor *tokens,
                                                           rapt_tensor *starts, rapt_tensor **state);

/* Attention over the encoder's outputs with the last layer's state as the query, then a GRU step on [context,
 * embedding], then a linear layer to the vocabulary; parameters attention.…, embedding.weight, rnn.…, dense.…. */
typedef struct rapt_bahdanau_decoder {
    rapt_module module;
    rapt_attention *attention;
    rapt_embedding *embedding;
    rapt_gru *rnn;
    rapt_linear *dense;
} rapt_bahdanau_decoder;

/* NULL after an error. */
RAPT_API rapt_bahdanau_decoder *rapt_bahdanau_decoder_new(const rapt_bahdanau_config *config);

/* What a decoder carries from step to step: tensors of the caller's scope. */
typedef struct rapt_bahdanau_state {
    rapt_tensor *keys;          /* the prepared encoder outputs */
    rapt_tensor *values;        /* the encoder outputs, (B, T, hidden) */
    rapt_tensor *valid_lengths; /* (B) or NULL */
    rapt_tensor *hidden;        /* (layers, B, hidden) */
} rapt_bahdanau_state;

/* The state before the first step, from what the encoder gave. keys is NULL after an error. */
RAPT_API rapt_bahdanau_state rapt_bahdanau_decoder_start(rapt_bahdanau_decoder *decoder, rapt_tensor *encoder_outputs,
                                                         rapt_tensor *encoder_state, rapt_tensor *valid_lengths);

/* The same from what the packed encoder gave, of packed sequences with these starts; the state is that of the padded
 * batch, with the lengths. */
RAPT_API rapt_bahdanau_state rapt_bahdanau_decoder_start_packed(rapt_bahdanau_decoder *decoder,
                                                                rapt_tensor *encoder_outputs,
                                                                rapt_tensor *encoder_state, rapt_tensor *starts);

/* Tokens (B, T) → logits (B, T, vocabulary); the state moves on by T steps; after an error of this function or of those
 * below it is as it was. With weights not NULL the attention weights (B, T, K), before dropout, go there, in the graph
 * as the logits are: a loss may read both. After an error NULL does. */
RAPT_API rapt_tensor *rapt_bahdanau_decoder_forward(rapt_bahdanau_decoder *decoder, rapt_tensor *tokens,
                                                    rapt_bahdanau_state *state, rapt_tensor **weights);

/* The loss of those tokens where the targets (B, T) come next, as rapt_cross_entropy of the logits gives it with these
 * options, or NULL; but all logits are never stored. The state moves on as above. */
RAPT_API rapt_tensor *rapt_bahdanau_decoder_loss(rapt_bahdanau_decoder *decoder, rapt_tensor *tokens,
                                                 rapt_bahdanau_state *state, rapt_tensor *targets,
                                                 const rapt_cross_entropy_options *options);

/* The same two of packed sequences, as many as the state has: tokens and targets (rows), logits (rows, vocabulary),
 * losses (rows) where they are asked for one by one. Each sequence gets what it gets alone, and its state moves on by
 * its own length, 1 or more. Without dropout logits are those of the padded batch, in float64 bit for bit. */
RAPT_API rapt_tensor *rapt_bahdanau_decoder_forward_packed(rapt_bahdanau_decoder *decoder, rapt_tensor *tokens,
                                                           rapt_tensor *starts, rapt_bahdanau_state *state);
RAPT_API rapt_tensor *rapt_bahdanau_decoder_loss_packed(rapt_bahdanau_decoder *decoder, rapt_tensor *tokens,
                                                        rapt_tensor *starts, rapt_bahdanau_state *state,
                                                        rapt_tensor *targets,
                                                        const rapt_cross_entropy_options *options);

RAPT_END_DECLS

#endif
