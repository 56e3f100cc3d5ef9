/* Bahdanau's decoder: at each step the state asks the encoder's outputs, and the answer goes into the next GRU step. */
#include <rapt/packing.h>
#include <rapt/seq2seq.h>

#include "attention/attention.h"
#include "bahdanau.h"
#include "bahdanau_steps.h"
#include "nn/entry.h"
#include "recurrence.h"
#include "step_rows.h"
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

static bool check_start(const rapt_bahdanau_decoder *decoder, const rapt_tensor *outputs, const rapt_tensor *state)
{
    const char *missing = !decoder   ? "the decoder"
                          : !outputs ? "the encoder's output"
                          : !state   ? "the encoder's state"
                                     : NULL;
    if (missing) return rapt_fail(RAPT_ERROR_NULL, kind.name, "%s is NULL", missing);
    return !rapt_was_freed(kind.name, decoder) && rapt_attention_check(decoder->attention);
}

rapt_bahdanau_state rapt_bahdanau_decoder_start(rapt_bahdanau_decoder *decoder, rapt_tensor *encoder_outputs,
                                                rapt_tensor *encoder_state, rapt_tensor *valid_lengths)
{
    rapt_bahdanau_state state = {.valid_lengths = valid_lengths, .hidden = encoder_state};
    if (!check_start(decoder, encoder_outputs, encoder_state)) return state;
    /* (T, B, hidden) → (B, T, hidden), dense, since every step reads them */
    state.values = rapt_contiguous(rapt_transpose(encoder_outputs, 0, 1));
    state.keys = state.values ? rapt_attention_prepare(decoder->attention, state.values,
                                                       RAPT_MASK(.valid_lengths = valid_lengths))
                              : NULL;
    return state;
}

rapt_bahdanau_state rapt_bahdanau_decoder_start_packed(rapt_bahdanau_decoder *decoder, rapt_tensor *encoder_outputs,
                                                       rapt_tensor *encoder_state, rapt_tensor *starts)
{
    rapt_bahdanau_state state = {.hidden = encoder_state};
    if (!check_start(decoder, encoder_outputs, encoder_state)) return state;
    if (!starts) rapt_fail(RAPT_ERROR_NULL, kind.name, "the starts are NULL");
    state.values = rapt_unpack(encoder_outputs, starts, 0, 0);
    if (!state.values) return state;
    state.valid_lengths = rapt_sub(rapt_slice(starts, 0, 1, INT64_MAX, 1), rapt_slice(starts, 0, 0, -1, 1));
    /* what has a fused way works row by row */
    if (state.valid_lengths && decoder->attention->scoring->attend)
        state.keys =
            rapt_unpack(rapt_attention_prepare(decoder->attention, encoder_outputs, RAPT_MASK(.starts = starts)),
                        starts, 0, 0);
    else if (state.valid_lengths)
        state.keys =
            rapt_attention_prepare(decoder->attention, state.values, RAPT_MASK(.valid_lengths = state.valid_lengths));
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

/* The state of the first so many sequences. */
static bool keep_first(rapt_bahdanau_state *state, int64_t count)
{
    if (count == rapt_size(state->hidden, 1)) return true;
    state->keys = rapt_slice(state->keys, 0, 0, count, 1);
    state->values = rapt_slice(state->values, 0, 0, count, 1);
    if (state->valid_lengths) state->valid_lengths = rapt_slice(state->valid_lengths, 0, 0, count, 1);
    state->hidden = rapt_slice(state->hidden, 1, 0, count, 1);
    return state->keys && state->values && state->hidden;
}

/* All steps one by one, from embeddings (T, B, embedding), to the last layer's states (T, B, hidden); or, of ever fewer
 * sequences, (rows, …), from where step_starts say that the steps begin. */
static rapt_tensor *run_by_step(rapt_bahdanau_decoder *decoder, rapt_tensor *embedded, rapt_tensor *step_starts,
                                rapt_bahdanau_state *state, rapt_tensor **weights)
{
    rapt_step_rows rows;
    if (!rapt_step_rows_read(kind.name, embedded, step_starts, &rows)) return NULL;
    const int count = (int)rows.count;
    rapt_tensor **outputs = rapt_scratch_list(kind.name, 3 * rows.count, sizeof *outputs);
    if (!outputs) return NULL;
    rapt_tensor **each = outputs + count, **ended = each + count; /* ended: states, of the longest sequences first */
    for (int64_t t = 0; t < rows.count; t++) {
        const int64_t first = rapt_step_first_row(&rows, t), left = rapt_step_rows_left(&rows, t, 0, rows.batch);
        rapt_tensor *now = step_starts ? rapt_slice(embedded, 0, first, first + left, 1) : rapt_select(embedded, 0, t);
        if (!keep_first(state, left)) return NULL;
        if (!(outputs[t] = step(decoder, now, state, weights ? &each[t] : NULL))) return NULL;
        ended[count - 1 - t] =
            step_starts ? rapt_slice(state->hidden, 1, rapt_step_rows_left(&rows, t + 1, 0, rows.batch), left, 1)
                        : NULL;
    }
    if (weights && !(*weights = rapt_concat(count, each, 1))) return NULL;
    if (!step_starts) return rapt_concat(count, outputs, 0);
    state->hidden = rapt_concat(count, ended, 1);
    return state->hidden ? rapt_squeeze(rapt_concat(count, outputs, 1), 0) : NULL;
}

static bool check_state(const rapt_bahdanau_decoder *decoder, const rapt_bahdanau_state *state)
{
    if (!decoder || !state || !state->keys)
        return rapt_fail(RAPT_ERROR_NULL, kind.name, "%s is NULL", !decoder ? "the decoder" : "the state");
    return rapt_attention_check(decoder->attention);
}

/* The last layer's hidden states after each token (T, B, hidden); those of all layers after the last to *hidden. */
static rapt_tensor *read_tokens(rapt_bahdanau_decoder *decoder, rapt_tensor *tokens, const rapt_bahdanau_state *state,
                                rapt_tensor **hidden, rapt_tensor **weights)
{
    if (!check_state(decoder, state) || !rapt_bahdanau_check_tokens(kind.name, tokens)) return NULL;
    rapt_bahdanau_state now = *state;
    rapt_tensor *sequence, *embedded;
    tokens = rapt_transpose(tokens, 0, 1);
    if (tokens && rapt_bahdanau_steps_fit(decoder, &now, rapt_size(tokens, 1))) {
        sequence = rapt_bahdanau_steps(decoder, tokens, NULL, &now, weights);
        if (sequence && weights && !(*weights = rapt_contiguous(rapt_transpose(*weights, 0, 1)))) return NULL;
    } else {
        embedded = rapt_embedding_forward(decoder->embedding, tokens); /* (T, B, embedding) */
        sequence = embedded ? run_by_step(decoder, embedded, NULL, &now, weights) : NULL;
    }
    *hidden = now.hidden;
    return sequence;
}

/* The state moves on with a result only: who gets an error may try again. */
static rapt_tensor *move_on(rapt_bahdanau_state *state, rapt_tensor *hidden, rapt_tensor *result)
{
    if (result) state->hidden = hidden;
    return result;
}

rapt_tensor *rapt_bahdanau_decoder_forward(rapt_bahdanau_decoder *decoder, rapt_tensor *tokens,
                                           rapt_bahdanau_state *state, rapt_tensor **weights)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((rapt_module *)decoder);
    rapt_tensor *hidden = NULL, *sequence = read_tokens(decoder, tokens, state, &hidden, weights);
    /* (T, B, vocabulary) → (B, T, vocabulary) */
    rapt_tensor *logits = sequence ? rapt_linear_forward(decoder->dense, sequence) : NULL;
    return rapt_with_output(move_on(state, hidden, logits ? rapt_transpose(logits, 0, 1) : NULL), weights);
}

/* A loss of losses (T, B) is given as (B, T). */
rapt_tensor *rapt_bahdanau_decoder_loss(rapt_bahdanau_decoder *decoder, rapt_tensor *tokens, rapt_bahdanau_state *state,
                                        rapt_tensor *targets, const rapt_cross_entropy_options *options)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((rapt_module *)decoder);
    rapt_tensor *hidden = NULL, *sequence = read_tokens(decoder, tokens, state, &hidden, NULL);
    if (!sequence) return NULL;
    rapt_tensor *turned = targets && rapt_rank(targets) == 2 ? rapt_transpose(targets, 0, 1) : targets;
    rapt_tensor *loss =
        rapt_linear_cross_entropy(sequence, decoder->dense->weight, decoder->dense->bias, turned, options);
    return move_on(state, hidden, loss && rapt_rank(loss) == 2 ? rapt_transpose(loss, 0, 1) : loss);
}

/* --- packed --- */

/* The state of those sequences, in that order. */
static bool select_sequences(rapt_bahdanau_state *state, rapt_tensor *sequences)
{
    state->keys = rapt_index_select(state->keys, 0, sequences);
    state->values = rapt_index_select(state->values, 0, sequences);
    if (state->valid_lengths) state->valid_lengths = rapt_index_select(state->valid_lengths, 0, sequences);
    state->hidden = rapt_index_select(state->hidden, 1, sequences);
    return state->keys && state->values && state->hidden;
}

/* The last layer's hidden states after each token (rows, hidden), by steps; those of all layers to *hidden. */
static rapt_tensor *read_packed(rapt_bahdanau_decoder *decoder, rapt_tensor *tokens, rapt_tensor *starts,
                                const rapt_bahdanau_state *state, rapt_step_order *order, rapt_tensor **hidden)
{
    if (!check_state(decoder, state)) return NULL;
    tokens = rapt_bahdanau_order_tokens(kind.name, tokens, starts, order);
    if (!tokens) return NULL;
    const int64_t batch = rapt_count(order->sequences);
    if (rapt_size(state->keys, 0) != batch) {
        rapt_fail(RAPT_ERROR_SHAPE, kind.name, "%lld packed sequences, but the state is of %lld", (long long)batch,
                  (long long)rapt_size(state->keys, 0));
        return NULL;
    }
    rapt_bahdanau_state now = *state;
    rapt_tensor *sequence, *embedded;
    if (!select_sequences(&now, order->sequences)) return NULL;
    if (rapt_bahdanau_steps_fit(decoder, &now, batch))
        sequence = rapt_bahdanau_steps(decoder, tokens, order->step_starts, &now, NULL);
    else
        sequence = (embedded = rapt_embedding_forward(decoder->embedding, tokens)) != NULL
                       ? run_by_step(decoder, embedded, order->step_starts, &now, NULL)
                       : NULL;
    *hidden = sequence ? rapt_index_select(now.hidden, 1, order->places) : NULL;
    return *hidden ? sequence : NULL;
}

rapt_tensor *rapt_bahdanau_decoder_forward_packed(rapt_bahdanau_decoder *decoder, rapt_tensor *tokens,
                                                  rapt_tensor *starts, rapt_bahdanau_state *state)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((rapt_module *)decoder);
    rapt_step_order order;
    rapt_tensor *hidden = NULL, *sequence = read_packed(decoder, tokens, starts, state, &order, &hidden);
    if (!sequence) return NULL;
    rapt_tensor *logits = rapt_linear_forward(decoder->dense, rapt_index_select(sequence, 0, order.packed));
    return move_on(state, hidden, logits);
}

static bool check_targets(const rapt_tensor *tokens, const rapt_tensor *targets)
{
    char text[128];
    if (!targets) return rapt_fail(RAPT_ERROR_NULL, kind.name, "the targets are NULL");
    const int64_t rows = tokens ? rapt_count(tokens) : 0;
    return !tokens || (rapt_rank(targets) == 1 && rapt_size(targets, 0) == rows) ||
           rapt_fail(RAPT_ERROR_SHAPE, kind.name, "targets (%lld) expected, one of each token, not %s", (long long)rows,
                     rapt_describe(targets, text, sizeof text));
}

/* Where losses are asked for one by one, they come in the order of the rows. */
rapt_tensor *rapt_bahdanau_decoder_loss_packed(rapt_bahdanau_decoder *decoder, rapt_tensor *tokens, rapt_tensor *starts,
                                               rapt_bahdanau_state *state, rapt_tensor *targets,
                                               const rapt_cross_entropy_options *options)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((rapt_module *)decoder);
    rapt_step_order order;
    if (!check_targets(tokens, targets)) return NULL;
    rapt_tensor *hidden = NULL, *sequence = read_packed(decoder, tokens, starts, state, &order, &hidden);
    if (!sequence) return NULL;
    rapt_tensor *loss = rapt_linear_cross_entropy(sequence, decoder->dense->weight, decoder->dense->bias,
                                                  rapt_index_select(targets, 0, order.rows), options);
    return move_on(state, hidden, loss && rapt_rank(loss) == 1 ? rapt_index_select(loss, 0, order.packed) : loss);
}
