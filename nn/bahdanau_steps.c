/* A decoder and its state as what the op of all steps reads. */
#include "bahdanau_steps.h"

#include "attention/fused_additive.h"
#include "bahdanau.h"
#include "bahdanau_op.h"
#include "nn/mask.h"
#include "nn/pooling.h"
#include "tensor/core.h"

static bool is_shape(const rapt_tensor *tensor, rapt_dtype dtype, int64_t a, int64_t b, int64_t c)
{
    return tensor && tensor->dtype == dtype && tensor->rank == 3 && tensor->shape[0] == a && tensor->shape[1] == b &&
           tensor->shape[2] == c;
}

bool rapt_bahdanau_steps_fit(const rapt_bahdanau_decoder *decoder, const rapt_bahdanau_state *state, int64_t batch)
{
    const rapt_attention *attention = decoder->attention;
    const rapt_recurrent *rnn = &decoder->rnn->recurrent;
    rapt_tensor *query, *unit;
    if (attention->plain || attention->keep_weights || attention->modification_count > 0 ||
        rapt_attention_has_head_terms(attention) || attention->normalizer != rapt_masked_softmax || rnn->plain ||
        rnn->layers > rapt_bahdanau_layers || !rapt_additive_scoring_weights(attention->scoring, &query, &unit))
        return false;
    const rapt_dtype dtype = decoder->embedding->weight->dtype;
    const int64_t keys = state->keys->rank == 3 ? state->keys->shape[1] : 0;
    return dtype <= RAPT_FLOAT64 && keys > 0 && batch > 0 && query->dtype == dtype && unit->dtype == dtype &&
           rnn->layer[0].weight_ih->dtype == dtype && query->shape[1] == rnn->hidden &&
           is_shape(state->keys, dtype, batch, keys, query->shape[0]) &&
           is_shape(state->values, dtype, batch, keys, rnn->in - decoder->embedding->weight->shape[1]) &&
           rnn->in - decoder->embedding->weight->shape[1] == rnn->hidden &&
           is_shape(state->hidden, dtype, rnn->layers, batch, rnn->hidden);
}

/* Factors of dropout between the layers; *drops is NULL, without an error, where there is none. */
static bool draw_drops(const rapt_recurrent *rnn, const rapt_tensor *sequence, rapt_tensor **drops)
{
    *drops = NULL;
    if (!rnn->module.training || rnn->dropout == 0 || rnn->layers == 1) return true;
    const int64_t shape[] = {rnn->layers - 1, sequence->count / sequence->shape[sequence->rank - 1], rnn->hidden};
    *drops = rapt_drop(rapt_ones(sequence->dtype, 3, shape), rnn->dropout);
    return *drops != NULL;
}

static bool resolve(const rapt_bahdanau_state *state, rapt_tensor **ranges)
{
    const rapt_tensor *keys = state->keys;
    rapt_resolved_mask resolved;
    const bool good = rapt_resolve_mask("Attention", RAPT_MASK(.valid_lengths = state->valid_lengths), keys->dtype,
                                        keys->shape[0], 1, 1, keys->shape[1], &resolved);
    *ranges = resolved.ranges;
    return good;
}

rapt_tensor *rapt_bahdanau_steps(rapt_bahdanau_decoder *decoder, rapt_tensor *tokens, rapt_tensor *step_starts,
                                 rapt_bahdanau_state *state, rapt_tensor **weights)
{
    const rapt_attention *attention = decoder->attention;
    const rapt_recurrent *rnn = &decoder->rnn->recurrent;
    const int64_t sizes[] = {rnn->hidden, rnn->in - rnn->hidden};
    rapt_bahdanau_options o = {.layers = rnn->layers, .dropout = attention->module.training ? attention->dropout : 0};
    rapt_tensor *in[most_inputs] =
        {[at_starts] = step_starts, [at_initial] = state->hidden, [at_keys] = state->keys, [at_values] = state->values};
    rapt_tensor *parts[2], *outputs[rapt_bahdanau_most_outputs];
    if (!rapt_split(rnn->layer[0].weight_ih, 1, 2, sizes, parts)) return NULL;
    in[at_embedding] = rapt_bahdanau_project(decoder->embedding, tokens, parts[1], rnn->layer[0].bias_ih);
    if (!in[at_embedding] || !resolve(state, &in[at_ranges]) || !draw_drops(rnn, in[at_embedding], &in[at_drops]))
        return NULL;
    rapt_additive_scoring_weights(attention->scoring, &in[at_query], &in[at_unit]);
    for (int l = 0; l < rnn->layers; l++) {
        rapt_tensor **layer = in + at_layers + layer_inputs * l;
        layer[layer_hidden] = rnn->layer[l].weight_hh;
        layer[layer_hidden_bias] = rnn->layer[l].bias_hh;
        layer[layer_input] = l == 0 ? parts[0] : rnn->layer[l].weight_ih;
        layer[layer_input_bias] = l == 0 ? NULL : rnn->layer[l].bias_ih;
    }
    o.random = rapt_random_get_state();
    const int64_t steps = step_starts ? step_starts->count - 1 : tokens->shape[0];
    for (int64_t t = 0; t < steps && o.dropout > 0 && o.dropout < 1; t++)
        rapt_random_reserve(state->keys->shape[0] * state->keys->shape[1]);
    const int count = weights ? rapt_bahdanau_most_outputs : rapt_bahdanau_weights_given;
    if (!rapt_bahdanau_apply(&o, in, count, outputs)) return NULL;
    state->hidden = outputs[rapt_bahdanau_last];
    if (weights) *weights = outputs[rapt_bahdanau_weights_given];
    return outputs[rapt_bahdanau_sequence];
}
