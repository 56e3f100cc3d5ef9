/* Errors of layers and attention that nothing else in the tests provokes. */
#include "gpt.h"

#include <rapt/generate.h>
#include <rapt/recurrent.h>

#include "../../nn/attention/fused_additive.h"
#include "../../nn/attention/mask/packed.h"
#include "../../nn/attention/weighted_sum.h"
#include "../../nn/recurrence.h"
#include "../../nn/step_rows.h"
#include "integers.h"
#include "nn/fused_dot.h"
#include "nn/mask.h"
#include "refused.h"
#include "text_stream.h"

static rapt_tensor *ones(int rank, const int64_t *shape)
{
    return rapt_ones(RAPT_FLOAT32, rank, shape);
}

Test(layer_errors, modules_and_inputs_that_are_missing)
{
    RAPT_SCOPE;
    rapt_tensor *x = ones(RAPT_SHAPE(1, 3, 8));
    rapt_module_clear_gradients(NULL);
    expect_error(RAPT_ERROR_NULL, "module_clear_gradients: module is NULL");
    cr_expect_null(rapt_transformer_encoder_forward(NULL, x, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "the encoder is NULL");
    cr_expect_null(rapt_transformer_decoder_forward(NULL, x, x, NULL, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "the decoder is NULL");
    cr_expect_null(rapt_decoder_layer_forward(NULL, x, x, NULL, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "the layer is NULL");
    cr_expect_null(rapt_rotary_forward_at(NULL, x, int64_of(1, (int64_t[]){0})));
    expect_error(RAPT_ERROR_NULL, "the layer is NULL");
    rapt_rotary *rotary = rapt_rotary_new();
    cr_assert_not_null(rotary, "%s", rapt_error());
    cr_expect_null(rapt_rotary_forward_at(rotary, x, NULL));
    expect_error(RAPT_ERROR_NULL, "places is NULL");
    rapt_module_free((rapt_module *)rotary);
}

Test(layer_errors, an_lstm_has_both_states_or_none)
{
    RAPT_SCOPE;
    rapt_lstm *lstm = rapt_lstm_new(2, 3, 1, 0);
    rapt_tensor *rows = ones(RAPT_SHAPE(2, 2)), *starts = int64_of(2, (int64_t[]){0, 2}),
                *state = ones(RAPT_SHAPE(1, 1, 3));
    cr_expect_null(rapt_lstm_forward_packed(lstm, rows, starts, state, NULL, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "LSTM: one of hidden and cell is NULL; both or neither expected");
    cr_expect_null(rapt_lstm_forward_packed(NULL, rows, starts, NULL, NULL, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "LSTM: the layer is NULL");
    rapt_module_free((rapt_module *)lstm);
}

Test(layer_errors, what_recurrences_read)
{
    RAPT_SCOPE;
    rapt_tensor *outputs[2], *weight = ones(RAPT_SHAPE(6, 2)), *steps = ones(RAPT_SHAPE(4, 3, 6));
    cr_expect_not(rapt_recurrence(3, &(rapt_recurrence_inputs){.from_input = steps, .weight_hh = steps}, outputs));
    expect_error(RAPT_ERROR_SHAPE,
                 "input (T, B, 3·hidden) and weight_hh (3·hidden, hidden) expected, not [4, 3, 6] and");
    const rapt_recurrence_inputs in = {.from_input = steps, .states = {ones(RAPT_SHAPE(2, 2))}, .weight_hh = weight};
    cr_expect_not(rapt_recurrence(3, &in, outputs));
    expect_error(RAPT_ERROR_SHAPE, "a state of shape [3, 2] expected, not [2, 2]");
    rapt_step_rows rows;
    cr_expect_not(rapt_step_rows_read("op", ones(RAPT_SHAPE(3, 2)), int64_of(3, (int64_t[]){0, 1, 3}), &rows));
    expect_error(RAPT_ERROR_VALUE, "op: step 1 has more rows than the one before");
}

Test(layer_errors, a_gpt_begins_with_tokens)
{
    RAPT_SCOPE;
    rapt_gpt *gpt = rapt_gpt_new(&tiny);
    rapt_gpt_cache *cache = rapt_gpt_cache_new(gpt);
    const rapt_token_model model = rapt_gpt_token_model(cache);
    cr_expect_null(model.begin_packed(model.context, NULL, int64_of(2, (int64_t[]){0, 2})));
    expect_error(RAPT_ERROR_NULL, "GPT: tokens is NULL");
    rapt_gpt_cache_free(cache);
    rapt_module_free(&gpt->module);
}

Test(layer_errors, terms_of_normalisers)
{
    RAPT_SCOPE;
    rapt_attention *attention = rapt_dot_product_attention_new(0);
    rapt_tensor *x = ones(RAPT_SHAPE(1, 2, 4));
    cr_assert(rapt_attention_learn_sigmoid(attention, 1, 0));
    attention->sigmoid_bias = 1;
    cr_expect_null(rapt_attention_forward(attention, x, x, x, NULL));
    expect_error(RAPT_ERROR_VALUE, "sigmoid_bias 1 beside learned ones; 0 expected");
    rapt_module_free(&attention->module);
}

/* Of a field that was set by hand. */
#define BAD_DROPOUT(field, call, words)                                                                                \
    do {                                                                                                               \
        for (int bad = 0; bad < 3; bad++) {                                                                            \
            (field) = (double[]){-1, 2, (double)NAN}[bad];                                                             \
            BAD_VALUE(call, "0 to 1 expected; in " words);                                                             \
        }                                                                                                              \
    } while (0)

Test(layer_errors, dropout_is_none_but_at_0)
{
    RAPT_SCOPE;
    rapt_tensor *x = ones(RAPT_SHAPE(2, 3, 8)), *tokens = rapt_zeros(RAPT_INT64, RAPT_SHAPE(1, 3));
    rapt_dropout *dropout = rapt_dropout_new(0);
    rapt_add_norm *add_norm = rapt_add_norm_new(8, RAPT_BIAS, 0);
    rapt_feed_forward_config network = {.in = 8, .inner = 8, .out = 8};
    rapt_feed_forward *relu = rapt_feed_forward_new(&network);
    network.kind = RAPT_FEED_FORWARD_SWIGLU;
    rapt_feed_forward *gated = rapt_feed_forward_new(&network);
    rapt_sinusoidal_positions *sinusoidal = rapt_sinusoidal_positions_new(8, 0);
    rapt_learned_positions *learned = rapt_learned_positions_new(8, 8, 0);
    rapt_gru *gru = rapt_gru_new(8, 8, 2, 0);
    rapt_gpt *gpt =
        rapt_gpt_new(&(rapt_gpt_config){.vocabulary = 5, .context = 8, .hidden = 8, .layers = 1, .heads = 1});
    BAD_DROPOUT(dropout->probability, rapt_dropout_forward(dropout, x), "Dropout");
    BAD_DROPOUT(add_norm->dropout, rapt_add_norm_forward(add_norm, x, x), "AddNorm");
    BAD_DROPOUT(relu->dropout, rapt_feed_forward_forward(relu, x), "FeedForward");
    BAD_DROPOUT(gated->dropout, rapt_feed_forward_forward(gated, x), "FeedForward");
    BAD_DROPOUT(sinusoidal->dropout, rapt_sinusoidal_positions_forward(sinusoidal, x, 0), "SinusoidalPositions");
    BAD_DROPOUT(learned->dropout, rapt_learned_positions_forward(learned, x, 0), "LearnedPositions");
    BAD_DROPOUT(gru->recurrent.dropout, rapt_gru_forward(gru, x, NULL, NULL), "GRU");
    gru->recurrent.plain = true;
    BAD_DROPOUT(gru->recurrent.dropout, rapt_gru_forward(gru, x, NULL, NULL), "GRU");
    BAD_DROPOUT(gpt->config.dropout, rapt_gpt_forward(gpt, tokens, NULL), "GPT");
    rapt_module *const modules[] = {&dropout->module,    &add_norm->module, &relu->module,          &gated->module,
                                    &sinusoidal->module, &learned->module,  &gru->recurrent.module, &gpt->module};
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) rapt_module_free(modules[i]);
}

Test(layer_errors, a_feed_forward_of_no_kind)
{
    RAPT_SCOPE;
    rapt_feed_forward *layer = rapt_feed_forward_new(&(rapt_feed_forward_config){.in = 8, .inner = 8, .out = 8});
    layer->kind = (rapt_feed_forward_kind)77;
    BAD_VALUE(rapt_feed_forward_forward(layer, ones(RAPT_SHAPE(3, 8))),
              "FeedForward: kind 77 is none of rapt_feed_forward_kind");
    FILE *stream = open_text();
    cr_expect(rapt_module_print(&layer->module, stream));
    char *text = close_text(stream);
    cr_expect(strstr(text, "kind 77, dropout 0"), "%s", text);
    free(text);
    rapt_module_free(&layer->module);
}

Test(layer_errors, padding_is_told_once)
{
    RAPT_SCOPE;
    rapt_multi_head_attention *heads =
        rapt_multi_head_attention_new(&(rapt_multi_head_attention_config){.hidden = 4, .heads = 2});
    rapt_tensor *x = ones(RAPT_SHAPE(1, 2, 4)), *first = int64_of(1, (int64_t[]){1});
    rapt_attention_cache cache = {.missing = first};
    cr_expect_null(rapt_multi_head_attention_forward(heads, x, x, x, RAPT_MASK(.first_keys = first), &cache));
    expect_error(RAPT_ERROR_UNSUPPORTED, "the mask has first_keys, which the cache has too");
    rapt_module_free(&heads->module);
}

Test(layer_errors, matrices_of_attention)
{
    RAPT_SCOPE;
    cr_expect_null(rapt_weighted_sum(ones(RAPT_SHAPE(2, 3)), ones(RAPT_SHAPE(4, 5))));
    expect_error(RAPT_ERROR_SHAPE, "matrices [2, 3] and [4, 5] do not fit");
    cr_expect_null(rapt_additive_keys(rapt_ones(RAPT_INT64, RAPT_SHAPE(2, 3))));
    expect_error(RAPT_ERROR_SHAPE, "floating keys (…, K, hidden) expected, not int64 [2, 3]");
    rapt_tensor *x = ones(RAPT_SHAPE(1, 2, 4));
    cr_expect_null(
        rapt_fused_additive(x, ones(RAPT_SHAPE(1, 2, 3)), ones(RAPT_SHAPE(4)), &(rapt_attention_call){.values = x}));
    expect_error(RAPT_ERROR_SHAPE,
                 "queries [1, 2, 4], keys [1, 2, 3], weight [4]; (…, hidden), (…, hidden) and hidden");
}

/* What is NULL comes of an error before. */
Test(layer_errors, attention_of_null_is_null)
{
    RAPT_SCOPE;
    rapt_tensor *x = ones(RAPT_SHAPE(1, 2, 4)), *weight = ones(RAPT_SHAPE(4));
    const rapt_resolved_mask mask = {.batch = 1, .heads = 1, .queries = 2, .keys = 2};
    const rapt_attention_call call = {.values = x, .mask = &mask}, no_values = {.mask = &mask};
    cr_expect_null(rapt_fused_additive(x, x, weight, &no_values));
    cr_expect_null(rapt_fused_additive(NULL, x, weight, &call));
    cr_expect_null(rapt_fused_additive(x, NULL, weight, &call));
    cr_expect_null(rapt_fused_additive(x, x, NULL, &call));
    cr_expect_null(rapt_fused_dot(x, x, 1, &no_values));
    cr_expect_null(rapt_fused_dot(NULL, x, 1, &call));
    cr_expect_null(rapt_fused_gaussian(x, NULL, &call));
    cr_expect_null(rapt_pack_pooled(RAPT_MASK(.starts = x), NULL));
    cr_expect_null(rapt_additive_keys(NULL));
    cr_expect_null(rapt_weighted_sum(NULL, x));
    rapt_clear_error();
    cr_expect_not_null(rapt_fused_additive(x, x, weight, &call), "%s", rapt_error());
}

Test(layer_errors, packed_sequences)
{
    RAPT_SCOPE;
    rapt_attention *attention = rapt_dot_product_attention_new(0);
    rapt_tensor *starts = int64_of(2, (int64_t[]){0, 3});
    rapt_resolved_mask two = {.batch = 2, .heads = 1, .queries = 3, .keys = 3};
    cr_expect_not(rapt_resolve_packing("op", RAPT_MASK(.starts = starts), &two));
    expect_error(RAPT_ERROR_SHAPE, "a batch of 2 beside starts; packed sequences have no axis for it");
    rapt_module_free(&attention->module);
}

Test(layer_errors, packed_sequences_of_too_many_pairs)
{
    if (sizeof(size_t) < 8) cr_skip_test("no tensor is so long");
    RAPT_SCOPE;
    rapt_attention *attention = rapt_dot_product_attention_new(0);
    const int64_t many = INT64_C(1) << 40;
    rapt_tensor *rows = rapt_expand(ones(RAPT_SHAPE(1, 1, 1)), RAPT_SHAPE(1, many, 1));
    rapt_tensor *starts = int64_of(2, (int64_t[]){0, many});
    cr_expect_null(rapt_attention_forward(attention, rows, rows, rows, RAPT_MASK(.starts = starts)));
    expect_error(RAPT_ERROR_MEMORY, "more pairs of queries and keys than 64 bits can count");
    rapt_module_free(&attention->module);
}
