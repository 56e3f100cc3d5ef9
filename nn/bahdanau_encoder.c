/* Bahdanau's encoder: embedding, then a stack of GRUs. */
#include <stdio.h>

#include <rapt/initialize.h>
#include <rapt/seq2seq.h>

#include "bahdanau.h"
#include "nn/entry.h"
#include "recurrence.h"
#include "tensor/core.h"
#include "tensor/random.h"

static const rapt_module_class kind = {.name = "BahdanauEncoder"};

bool rapt_bahdanau_init_gru(rapt_gru *gru)
{
    rapt_recurrent *r = gru ? &gru->recurrent : NULL;
    for (int i = 0; r && i < r->layers; i++)
        if (!rapt_init_xavier_uniform(r->layer[i].weight_ih, 1) || !rapt_init_xavier_uniform(r->layer[i].weight_hh, 1))
            return false;
    return r != NULL;
}

bool rapt_bahdanau_check(const char *op, const rapt_bahdanau_config *config)
{
    if (!config) return rapt_fail(RAPT_ERROR_NULL, op, "the configuration is NULL");
    if (config->vocabulary >= 1 && config->embedding >= 1 && config->hidden >= 1 && config->layers >= 1 &&
        config->embedding <= INT64_MAX - config->hidden)
        return true;
    return rapt_fail(RAPT_ERROR_VALUE, op,
                     "vocabulary %lld, embedding %lld, hidden %lld, %d layers; 1 or more of each, embedding and hidden "
                     "together up to %lld, expected",
                     (long long)config->vocabulary, (long long)config->embedding, (long long)config->hidden,
                     config->layers, (long long)INT64_MAX);
}

rapt_bahdanau_encoder *rapt_bahdanau_encoder_new(const rapt_bahdanau_config *config)
{
    if (!rapt_bahdanau_check(kind.name, config)) return NULL;
    rapt_bahdanau_encoder *encoder = rapt_module_new(sizeof *encoder, &kind);
    if (!encoder) return NULL;
    rapt_module *module = &encoder->module;
    encoder->embedding =
        rapt_module_add_child(module, "embedding",
                              (rapt_module *)rapt_embedding_new(config->vocabulary, config->embedding));
    encoder->rnn = rapt_module_add_child(module, "rnn",
                                         (rapt_module *)rapt_gru_new(config->embedding, config->hidden, config->layers,
                                                                     config->dropout));
    if (!rapt_bahdanau_init_gru(encoder->rnn)) module->failed = true;
    return rapt_module_finish(module);
}

static rapt_tensor *forward(rapt_bahdanau_encoder *encoder, rapt_tensor *tokens, rapt_tensor **state)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((rapt_module *)encoder);
    if (!encoder || !rapt_bahdanau_check_tokens(kind.name, tokens)) {
        if (!encoder) rapt_fail(RAPT_ERROR_NULL, kind.name, "the encoder is NULL");
        return NULL;
    }
    /* (B, T) → (T, B): recurrent layers go through time */
    const struct rapt_recurrent_layer *first = encoder->rnn->recurrent.layer;
    rapt_tensor *projected =
        rapt_bahdanau_project(encoder->embedding, rapt_transpose(tokens, 0, 1), first->weight_ih, first->bias_ih);
    return projected ? rapt_gru_forward_projected(encoder->rnn, projected, NULL, state) : NULL;
}

static rapt_tensor *forward_packed(rapt_bahdanau_encoder *encoder, rapt_tensor *tokens, rapt_tensor *starts,
                                   rapt_tensor **state)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((rapt_module *)encoder);
    rapt_step_order order;
    if (!encoder) rapt_fail(RAPT_ERROR_NULL, kind.name, "the encoder is NULL");
    tokens = encoder ? rapt_bahdanau_order_tokens(kind.name, tokens, starts, &order) : NULL;
    if (!tokens) return NULL;
    const struct rapt_recurrent_layer *first = encoder->rnn->recurrent.layer;
    rapt_tensor *projected = rapt_bahdanau_project(encoder->embedding, tokens, first->weight_ih, first->bias_ih);
    rapt_tensor *output = projected ? rapt_gru_forward_projected(encoder->rnn, projected, &order, state) : NULL;
    return output ? rapt_index_select(output, 0, order.packed) : NULL;
}

rapt_tensor *rapt_bahdanau_encoder_forward(rapt_bahdanau_encoder *encoder, rapt_tensor *tokens, rapt_tensor **state)
{
    return rapt_with_output(forward(encoder, tokens, state), state);
}

rapt_tensor *rapt_bahdanau_encoder_forward_packed(rapt_bahdanau_encoder *encoder, rapt_tensor *tokens,
                                                  rapt_tensor *starts, rapt_tensor **state)
{
    return rapt_with_output(forward_packed(encoder, tokens, starts, state), state);
}

/* The embeddings of the words that occur, and zeros in place of the others, so that a NaN there stays where it is. */
static rapt_tensor *used_rows(rapt_tensor *table, rapt_tensor *tokens)
{
    const int64_t words = rapt_size(table, 0);
    const rapt_tensor *numbers = rapt_contiguous(rapt_cast(tokens, RAPT_INT64));
    rapt_tensor *used = rapt_zeros(RAPT_BOOL, RAPT_SHAPE(words, 1));
    if (!numbers || !used) return NULL;
    const int64_t *word = rapt_data(numbers);
    bool *is_used = rapt_data_for_writing(used);
    for (int64_t i = 0; i < rapt_count(numbers); i++)
        if (word[i] >= 0 && word[i] < words) is_used[word[i]] = true;
    return rapt_where(used, table, rapt_scalar(rapt_get_dtype(table), 0));
}

rapt_tensor *rapt_bahdanau_project(rapt_embedding *embedding, rapt_tensor *tokens, rapt_tensor *weight,
                                   rapt_tensor *bias)
{
    if (tokens && rapt_size(embedding->weight, 0) <= rapt_count(tokens) / 2)
        return rapt_embed(rapt_affine(used_rows(embedding->weight, tokens), weight, bias), tokens);
    return rapt_affine(rapt_embedding_forward(embedding, tokens), weight, bias);
}

bool rapt_bahdanau_check_tokens(const char *op, const rapt_tensor *tokens)
{
    char text[128];
    if (!tokens) return rapt_fail(RAPT_ERROR_NULL, op, "the tokens are NULL");
    bool fits = rapt_rank(tokens) == 2 && rapt_size(tokens, 1) >= 1;
    return fits || rapt_fail(RAPT_ERROR_SHAPE, op, "tokens (B, T) with T of 1 or more expected, not %s%s",
                             rapt_describe(tokens, text, sizeof text), rapt_batch_cure(tokens, 2));
}

rapt_tensor *rapt_bahdanau_order_tokens(const char *op, rapt_tensor *tokens, const rapt_tensor *starts,
                                        rapt_step_order *order)
{
    char text[128];
    if (!tokens) {
        rapt_fail(RAPT_ERROR_NULL, op, "the tokens are NULL");
        return NULL;
    }
    if (rapt_rank(tokens) != 1) {
        rapt_fail(RAPT_ERROR_SHAPE, op, "packed tokens (rows) expected, not %s",
                  rapt_describe(tokens, text, sizeof text));
        return NULL;
    }
    return rapt_step_order_make(op, starts, rapt_size(tokens, 0), order) ? rapt_index_select(tokens, 0, order->rows)
                                                                         : NULL;
}
