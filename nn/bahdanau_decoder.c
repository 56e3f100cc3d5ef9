/* Bahdanau's decoder: at each step the state asks the encoder's outputs, and the answer goes into the next GRU step. */
#include <rapt/seq2seq.h>

#include "attention/attention.h"
#include "bahdanau.h"
#include "bahdanau_steps.h"
#include "tensor/random.h"
#include "tensor/scratch.h"

static const rapt_module_class kind = {.name = "BahdanauDecoder"};

rapt_bahdanau_decoder *rapt_bahdanau_decoder_new(const rapt_bahdanau_config *config)
{
    if (!rapt_bahdanau_check(kind.name, config)) return NULL;
    rapt_bahdanau_decoder *decoder = rapt_module_new(sizeof *decoder, &kind);
    if (!decoder) return NULL;
    rapt_module *module = &decoder->module;
    int64_t hidden = config->hidden, embedding = config->embedding;
    rapt_scoring *scoring =
        config->scoring ? config->scoring(hidden, config->context) : rapt_additive_scoring_new(hidden, hidden, hidden);
    decoder->attention =
        rapt_module_add_child(module, "attention", (rapt_module *)rapt_attention_new(scoring, config->dropout));
    decoder->embedding =
        rapt_module_add_child(module, "embedding", (rapt_module *)rapt_embedding_new(config->vocabulary, embedding));
    decoder->rnn =
        rapt_module_add_child(module, "rnn",
                              (rapt_module *)rapt_gru_new(embedding + hidden, hidden, config->layers, config->dropout));
    decoder->dense =
        rapt_module_add_child(module, "dense", (rapt_module *)rapt_linear_new(hidden, config->vocabulary, RAPT_BIAS));
    if (!rapt_bahdanau_init_gru(decoder->rnn)) module->failed = true;
    return rapt_module_finish(module);
}

rapt_bahdanau_state rapt_bahdanau_decoder_start(rapt_bahdanau_decoder *decoder, rapt_tensor *encoder_outputs,
                                                rapt_tensor *encoder_state, rapt_tensor *valid_lengths)
{
    rapt_bahdanau_state state = {.valid_lengths = valid_lengths, .hidden = encoder_state};
    if (!decoder || !encoder_outputs || !encoder_state) {
        rapt_fail(RAPT_ERROR_NULL, kind.name, "%s is NULL",
                  !decoder           ? "the decoder"
                  : !encoder_outputs ? "the encoder's output"
                                     : "the encoder's state");
        return state;
    }
    /* (T, B, hidden) → (B, T, hidden), dense, since every step reads them */
    state.values = rapt_contiguous(rapt_transpose(encoder_outputs, 0, 1));
    state.keys = state.values ? rapt_attention_prepare(decoder->attention, state.values,
                                                       RAPT_MASK(.valid_lengths = valid_lengths))
                              : NULL;
    return state;
}

/* One step: the embedding (B, embedding) and the state to the last layer's new hidden state (1, B, hidden). */
static rapt_tensor *step(rapt_bahdanau_decoder *decoder, rapt_tensor *embedded, rapt_bahdanau_state *state,
                         rapt_tensor **weights)
{
    rapt_tensor *query = rapt_unsqueeze(rapt_select(state->hidden, 0, -1), 1); /* (B, 1, hidden) */
    rapt_tensor *context = rapt_attention_pool_weighing(decoder->attention, query, state->keys, state->values,
                                                        RAPT_MASK(.valid_lengths = state->valid_lengths), weights);
    rapt_tensor *parts[] = {rapt_squeeze(context, 1), embedded};
    rapt_tensor *input = rapt_unsqueeze(rapt_concat(2, parts, 1), 0); /* (1, B, hidden + embedding) */
    return input ? rapt_gru_forward(decoder->rnn, input, state->hidden, &state->hidden) : NULL;
}

/* All steps one by one, from embeddings (T, B, embedding), to the last layer's states (T, B, hidden). */
static rapt_tensor *run_by_step(rapt_bahdanau_decoder *decoder, rapt_tensor *embedded, rapt_bahdanau_state *state,
                                rapt_tensor **weights)
{
    const int64_t steps = rapt_size(embedded, 0);
    rapt_tensor **outputs = rapt_scratch_list(kind.name, 2 * steps, sizeof *outputs), **each = outputs + steps;
    bool good = outputs != NULL;
    for (int64_t t = 0; t < steps && good; t++)
        good = (outputs[t] = step(decoder, rapt_select(embedded, 0, t), state, weights ? &each[t] : NULL)) != NULL;
    if (weights) *weights = good ? rapt_concat((int)steps, each, 1) : NULL;
    return good ? rapt_concat((int)steps, outputs, 0) : NULL;
}

/* The last layer's hidden states after each token (T, B, hidden). */
static rapt_tensor *read_tokens(rapt_bahdanau_decoder *decoder, rapt_tensor *tokens, rapt_bahdanau_state *state,
                                rapt_tensor **weights)
{
    if (!decoder || !state || !state->keys) {
        rapt_fail(RAPT_ERROR_NULL, kind.name, "%s is NULL", !decoder ? "the decoder" : "the state");
        return NULL;
    }
    if (!rapt_bahdanau_check_tokens(kind.name, tokens)) return NULL;
    tokens = rapt_transpose(tokens, 0, 1);
    if (tokens && !weights && rapt_bahdanau_steps_fit(decoder, state, tokens))
        return rapt_bahdanau_steps(decoder, tokens, state);
    rapt_tensor *embedded = rapt_embedding_forward(decoder->embedding, tokens); /* (T, B, embedding) */
    return embedded ? run_by_step(decoder, embedded, state, weights) : NULL;
}

rapt_tensor *rapt_bahdanau_decoder_forward(rapt_bahdanau_decoder *decoder, rapt_tensor *tokens,
                                           rapt_bahdanau_state *state, rapt_tensor **weights)
{
    RAPT_UNDO_DRAWS;
    rapt_tensor *sequence = read_tokens(decoder, tokens, state, weights);
    /* (T, B, vocabulary) → (B, T, vocabulary) */
    rapt_tensor *logits = sequence ? rapt_linear_forward(decoder->dense, sequence) : NULL;
    return logits ? rapt_transpose(logits, 0, 1) : NULL;
}

/* A loss of losses (T, B) is given as (B, T). */
rapt_tensor *rapt_bahdanau_decoder_loss(rapt_bahdanau_decoder *decoder, rapt_tensor *tokens, rapt_bahdanau_state *state,
                                        rapt_tensor *targets, const rapt_cross_entropy_options *options)
{
    RAPT_UNDO_DRAWS;
    rapt_tensor *sequence = read_tokens(decoder, tokens, state, NULL);
    if (!sequence) return NULL;
    rapt_tensor *turned = targets && rapt_rank(targets) == 2 ? rapt_transpose(targets, 0, 1) : targets;
    rapt_tensor *loss =
        rapt_linear_cross_entropy(sequence, decoder->dense->weight, decoder->dense->bias, turned, options);
    return loss && rapt_rank(loss) == 2 ? rapt_transpose(loss, 0, 1) : loss;
}
