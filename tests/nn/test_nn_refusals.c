/* What layers refuse, one argument at a time: the sentence names what is wrong. */
#include "modules.h"

#include "../../nn/attention/fused_additive.h"
#include "../../nn/attention/weighted_sum.h"
#include "nn/fused_dot.h"
#include "refused.h"

static rapt_tensor *x, *tokens;

static void begin(void)
{
    x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 4));
    tokens = rapt_zeros(RAPT_INT64, RAPT_SHAPE(2, 3));
}

TestSuite(nn_refusals, .init = begin);

Test(nn_refusals, basic_layers)
{
    rapt_add_norm *add_norm = rapt_add_norm_new(4, RAPT_BIAS, 0);
    NULL_IN(rapt_linear_forward(NULL, x), "Linear: the layer is NULL");
    NULL_IN(rapt_embedding_forward(NULL, tokens), "Embedding: the layer is NULL");
    NULL_IN(rapt_convolution_layer_forward(NULL, x), "Convolution: the layer is NULL");
    NULL_IN(rapt_layer_norm_forward(NULL, x), "LayerNorm: the layer is NULL");
    NULL_IN(rapt_rms_norm_forward(NULL, x), "RMSNorm: the layer is NULL");
    NULL_IN(rapt_batch_norm_forward(NULL, x), "BatchNorm: the layer is NULL");
    NULL_IN(rapt_dropout_forward(NULL, x), "Dropout: the layer is NULL");
    NULL_IN(rapt_sequential_forward(NULL, x), "Sequential: the layer is NULL");
    NULL_IN(rapt_feed_forward_forward(NULL, x), "FeedForward: the layer is NULL");
    NULL_IN(rapt_add_norm_input(NULL, x), "AddNorm: the layer is NULL");
    NULL_IN(rapt_add_norm_input(add_norm, NULL), "AddNorm: the input is NULL");
    NULL_IN(rapt_add_norm_forward(NULL, x, x), "AddNorm: the layer is NULL");
    NULL_IN(rapt_add_norm_forward(add_norm, NULL, x), "AddNorm: x is NULL");
    NULL_IN(rapt_add_norm_forward(add_norm, x, NULL), "AddNorm: the sublayer's result is NULL");
    BAD_SHAPE(rapt_add_norm_forward(add_norm, x, tokens),
              "AddNorm: x is float32 [2, 3, 4] and the sublayer's result int64 [2, 3]; one shape expected");
    NULL_IN(rapt_init_xavier_uniform(NULL, 1), "init_xavier_uniform: tensor is NULL");
    BAD_VALUE(rapt_init_kaiming_normal(x, -2), "init_kaiming_normal: gain is -2; a finite number from 0 on expected");
    rapt_module_free(&add_norm->module);
}

Test(nn_refusals, recurrent_layers)
{
    rapt_gru *gru = rapt_gru_new(4, 5, 1, 0);
    rapt_lstm *lstm = rapt_lstm_new(4, 5, 1, 0);
    rapt_tensor *rows = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3, 4)),
                *state = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 3, 5)),
                *starts = rapt_from(RAPT_INT64, RAPT_SHAPE(3), (int64_t[]){0, 1, 3}),
                *lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(3), (int64_t[]){1, 2, 2});
    NULL_IN(rapt_gru_forward(NULL, x, NULL, NULL), "GRU: the layer is NULL");
    NULL_IN(rapt_gru_forward(gru, NULL, NULL, NULL), "GRU: the input is NULL");
    NULL_IN(rapt_gru_forward_padded(NULL, x, lengths, NULL, NULL), "GRU: the layer is NULL");
    NULL_IN(rapt_gru_forward_padded(gru, NULL, lengths, NULL, NULL), "GRU: the input is NULL");
    NULL_IN(rapt_gru_forward_padded(gru, x, NULL, NULL, NULL), "GRU: the lengths are NULL");
    NULL_IN(rapt_gru_forward_packed(NULL, rows, starts, NULL, NULL), "GRU: the layer is NULL");
    NULL_IN(rapt_gru_forward_packed(gru, NULL, starts, NULL, NULL), "GRU: the input is NULL");
    NULL_IN(rapt_gru_forward_packed(gru, rows, NULL, NULL, NULL), "GRU: starts is NULL");
    NULL_IN(rapt_lstm_forward(NULL, x, NULL, NULL, NULL, NULL), "LSTM: the layer is NULL");
    NULL_IN(rapt_lstm_forward(lstm, NULL, NULL, NULL, NULL, NULL), "LSTM: the input is NULL");
    NULL_IN(rapt_lstm_forward(lstm, x, state, NULL, NULL, NULL),
            "LSTM: one of hidden and cell is NULL; both or neither expected");
    NULL_IN(rapt_lstm_forward(lstm, x, NULL, state, NULL, NULL),
            "LSTM: one of hidden and cell is NULL; both or neither expected");
    NULL_IN(rapt_lstm_forward_padded(NULL, x, lengths, NULL, NULL, NULL, NULL), "LSTM: the layer is NULL");
    NULL_IN(rapt_lstm_forward_packed(NULL, rows, starts, NULL, NULL, NULL, NULL), "LSTM: the layer is NULL");
    BAD_SHAPE(rapt_gru_forward(gru, rows, NULL, NULL), "GRU: input (T, B, 4) with T of 1 or more expected, not float32 "
                                                       "[3, 4]; a batch of one has an axis, too (rapt_unsqueeze)");
    BAD_SHAPE(rapt_gru_forward(gru, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 7)), NULL, NULL),
              "GRU: input (T, B, 4) with T of 1 or more expected, not float32 [2, 3, 7]");
    BAD_SHAPE(rapt_gru_forward(gru, x, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 5)), NULL),
              "state [1, 3, 5] expected, not float32 [2, 3, 5]");
    BAD_SHAPE(rapt_gru_forward(gru, x, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 2, 5)), NULL),
              "state [1, 3, 5] expected, not float32 [1, 2, 5]");
    BAD_SHAPE(rapt_gru_forward(gru, x, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 3, 4)), NULL),
              "state [1, 3, 5] expected, not float32 [1, 3, 4]");
    BAD_SHAPE(rapt_gru_forward(gru, x, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3, 5)), NULL),
              "state [1, 3, 5] expected, not float32 [3, 5]");
    BAD_SHAPE(rapt_gru_forward_packed(gru, x, starts, NULL, NULL),
              "GRU: input (rows, 4) expected, not float32 [2, 3, 4]");
    BAD_DTYPE(rapt_gru_forward(gru, rapt_cast(x, RAPT_FLOAT64), NULL, NULL),
              "affine: inputs of float64 and float32; one floating dtype expected (rapt_cast converts, "
              "rapt_module_cast a whole module)");
    BAD_DTYPE(rapt_gru_forward(gru, x, rapt_cast(state, RAPT_FLOAT64), NULL),
              "gru: input 1 is float64, input 0 is float32; one floating dtype expected (rapt_cast converts, "
              "rapt_module_cast a whole module)");
    rapt_module_free((rapt_module *)gru);
    rapt_module_free((rapt_module *)lstm);
}

Test(nn_refusals, positions)
{
    rapt_sinusoidal_positions *sinusoidal = rapt_sinusoidal_positions_new(4, 0);
    rapt_learned_positions *learned = rapt_learned_positions_new(5, 4, 0);
    rapt_rotary *rotary = rapt_rotary_new();
    rapt_tensor *places = tokens, *far = rapt_full(RAPT_INT64, RAPT_SHAPE(2, 3), 9),
                *half = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2, 3));
    NULL_IN(rapt_sinusoidal_positions_forward(NULL, x, 0), "SinusoidalPositions: the layer is NULL");
    NULL_IN(rapt_sinusoidal_positions_forward(sinusoidal, NULL, 0), "SinusoidalPositions: the input is NULL");
    NULL_IN(rapt_sinusoidal_positions_forward_at(NULL, x, places), "SinusoidalPositions: the layer is NULL");
    NULL_IN(rapt_sinusoidal_positions_forward_at(sinusoidal, NULL, places), "SinusoidalPositions: the input is NULL");
    NULL_IN(rapt_sinusoidal_positions_forward_at(sinusoidal, x, NULL), "SinusoidalPositions: places is NULL");
    NULL_IN(rapt_learned_positions_forward(NULL, x, 0), "LearnedPositions: the layer is NULL");
    NULL_IN(rapt_learned_positions_forward(learned, NULL, 0), "LearnedPositions: the input is NULL");
    NULL_IN(rapt_learned_positions_forward_at(NULL, x, places), "LearnedPositions: the layer is NULL");
    NULL_IN(rapt_learned_positions_forward_at(learned, NULL, places), "LearnedPositions: the input is NULL");
    NULL_IN(rapt_learned_positions_forward_at(learned, x, NULL), "LearnedPositions: places is NULL");
    NULL_IN(rapt_rotary_forward(NULL, x, 0), "Rotary: the layer is NULL");
    NULL_IN(rapt_rotary_forward(rotary, NULL, 0), "Rotary: the input is NULL");
    NULL_IN(rapt_rotary_forward_at(NULL, x, places), "Rotary: the layer is NULL");
    NULL_IN(rapt_rotary_forward_at(rotary, NULL, places), "Rotary: the input is NULL");
    NULL_IN(rapt_rotary_forward_at(rotary, x, NULL), "Rotary: places is NULL");
    NULL_IN(rapt_rotate(NULL, 0, 10000, false), "rotate: x is NULL");
    NULL_IN(rapt_alibi_forward(NULL, RAPT_FLOAT32, 3), "ALiBi: the layer is NULL");
    NULL_IN(rapt_relative_bias_forward(NULL), "RelativeBias: the layer is NULL");
    BAD_SHAPE(rapt_sinusoidal_positions_forward(sinusoidal, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 6)), 0),
              "SinusoidalPositions: input of shape (..., length, 4) expected, not float32 [2, 3, 6]");
    BAD_SHAPE(rapt_sinusoidal_positions_forward_at(sinusoidal, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 6)), places),
              "SinusoidalPositions: input of shape (..., length, 4) expected, not float32 [2, 3, 6]");
    BAD_SHAPE(rapt_learned_positions_forward_at(learned, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 6)), places),
              "LearnedPositions: input of shape (..., length, 4) expected, not float32 [2, 3, 6]");
    BAD_SHAPE(rapt_sinusoidal_positions_forward_at(sinusoidal, x, half),
              "SinusoidalPositions: places float32 [2, 3]; integers that broadcast to float32 [2, 3, 4] without its "
              "last axis expected");
    BAD_SHAPE(rapt_learned_positions_forward_at(learned, x, half),
              "LearnedPositions: places float32 [2, 3]; integers that broadcast to float32 [2, 3, 4] without its last "
              "axis expected");
    BAD_SHAPE(
        rapt_rotary_forward_at(rotary, x, half),
        "Rotary: places float32 [2, 3]; integers that broadcast to float32 [2, 3, 4] without its last axis expected");
    BAD_SHAPE(
        rapt_rotary_forward_at(rotary, x, rapt_zeros(RAPT_INT64, RAPT_SHAPE(2, 3, 4))),
        "Rotary: places int64 [2, 3, 4]; integers that broadcast to float32 [2, 3, 4] without its last axis expected");
    BAD_VALUE(rapt_learned_positions_forward_at(learned, x, far),
              "embed: index 9 at position [0, 0] is out of range; 5 places to choose from");
    BAD_DTYPE(rapt_rotate(tokens, 0, 10000, false),
              "floating input of shape (..., length, an even size) expected, not int64 [2, 3]");
    BAD_SHAPE(rapt_rotate(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3, 3)), 0, 10000, false),
              "rotate: floating input of shape (..., length, an even size) expected, not float32 [3, 3]");
    rapt_module_free(&sinusoidal->module);
    rapt_module_free(&learned->module);
    rapt_module_free(&rotary->module);
}

Test(nn_refusals, modifications)
{
    BAD_VALUE(rapt_soft_cap_new(1e39), "SoftCap: cap 1e+39; a finite number above 0 expected, also as float32");
    BAD_VALUE(rapt_soft_cap_new(0), "SoftCap: cap 0; a finite number above 0 expected");
    BAD_VALUE(rapt_soft_cap_new((double)NAN), "SoftCap: cap nan; a finite number above 0 expected");
    BAD_VALUE(rapt_head_temperature_new(0), "HeadTemperature: 0 heads; 1 or more expected");
    BAD_VALUE(rapt_alibi_modification_new(0), "ALiBiModification: 0 heads; 1 or more expected");
    BAD_VALUE(rapt_bucketed_bias_new(0, 8, 20, true), "0 heads; 1 or more expected");
    BAD_VALUE(rapt_bucketed_bias_new(2, 1, 20, false), "1 buckets; 2 or more expected");
    BAD_VALUE(rapt_bucketed_bias_new(2, 7, 20, true), "7 buckets; 2 or more for each of two sides expected");
    BAD_VALUE(rapt_bucketed_bias_new(2, INT64_C(1) << 40, 20, false),
              "1099511627776 buckets; at most 2147483647 on a side expected");
    BAD_VALUE(rapt_bucketed_bias_new(2, 8, 2, true),
              "max_distance 2; more than the 2 positions with a bucket each expected");
    BAD_VALUE(rapt_learned_bias_new(0, 3), "LearnedBias: 0 heads; 1 or more expected");
    BAD_VALUE(rapt_learned_bias_new(2, -1), "LearnedBias: reach -1; 0 or more expected");
    BAD_VALUE(rapt_gaussian_window_new(0, 1, true), "0 heads; 1 or more expected");
    BAD_VALUE(rapt_gaussian_window_new(2, 1e-300, false), "width 1e-300; a finite number above 0 expected");
    BAD_VALUE(rapt_gaussian_window_new(2, 0, true), "width 0; a finite number above 0 expected");
    NULL_IN(rapt_prefix_modification_new(NULL), "Prefix: prefixes int64 (B) expected, not NULL");
    BAD_SHAPE(rapt_prefix_modification_new(tokens), "Prefix: prefixes int64 (B) expected, not int64 [2, 3]");
    BAD_SHAPE(rapt_prefix_modification_new(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2))),
              "Prefix: prefixes int64 (B) expected, not float32 [2]");
    NULL_IN(rapt_modify_scores(NULL, x, 0), "score_modification: the modification is NULL");
}

Test(nn_refusals, transformers)
{
    const rapt_transformer_config config = {.hidden = 4,
                                            .heads = 2,
                                            .feed_forward = 5,
                                            .encoder_layers = 1,
                                            .decoder_layers = 1};
    rapt_transformer *t = rapt_transformer_new(&config);
    NULL_IN(rapt_transformer_new(NULL), "TransformerEncoder: the configuration is NULL");
    NULL_IN(rapt_transformer_encoder_new(NULL), "TransformerEncoder: the configuration is NULL");
    NULL_IN(rapt_transformer_decoder_new(NULL), "TransformerDecoder: the configuration is NULL");
    NULL_IN(rapt_encoder_layer_new(NULL), "EncoderLayer: the configuration is NULL");
    NULL_IN(rapt_decoder_layer_new(NULL), "DecoderLayer: the configuration is NULL");
    NULL_IN(rapt_feed_forward_new(NULL), "FeedForward: the configuration is NULL");
    NULL_IN(rapt_multi_head_attention_new(NULL), "MultiHeadAttention: the configuration is NULL");
    NULL_IN(rapt_transformer_forward(NULL, x, x, NULL, NULL, NULL), "Transformer: the Transformer is NULL");
    NULL_IN(rapt_transformer_encoder_forward(NULL, x, NULL, NULL), "TransformerEncoder: the encoder is NULL");
    NULL_IN(rapt_transformer_encoder_forward(t->encoder, NULL, NULL, NULL), "TransformerEncoder: the input is NULL");
    NULL_IN(rapt_transformer_decoder_forward(NULL, x, x, NULL, NULL, NULL), "TransformerDecoder: the decoder is NULL");
    NULL_IN(rapt_transformer_decoder_forward(t->decoder, NULL, x, NULL, NULL, NULL),
            "TransformerDecoder: the input is NULL");
    NULL_IN(rapt_encoder_layer_forward(NULL, x, NULL, NULL), "EncoderLayer: the layer is NULL");
    NULL_IN(rapt_encoder_layer_forward(t->encoder->layers[0], NULL, NULL, NULL), "EncoderLayer: the input is NULL");
    NULL_IN(rapt_decoder_layer_forward(NULL, x, x, NULL, NULL, NULL), "DecoderLayer: the layer is NULL");
    NULL_IN(rapt_decoder_layer_forward(t->decoder->layers[0], NULL, x, NULL, NULL, NULL),
            "DecoderLayer: the input is NULL");
    NULL_IN(rapt_decoder_layer_forward(t->decoder->layers[0], x, NULL, NULL, NULL, NULL),
            "MultiHeadAttention: keys and values are NULL, and no cache holds any");
    NULL_IN(rapt_attention_cache_select(NULL, tokens), "attention_cache_select: cache is NULL");
    NULL_IN(rapt_decoder_cache_select(NULL, tokens), "DecoderLayer: the cache is NULL");
    NULL_IN(rapt_multi_head_attention_set_head_mask(NULL, x), "MultiHeadAttention: the layer is NULL");
    rapt_module_free(&t->module);
}

Test(nn_refusals, attention)
{
    rapt_attention *attention = rapt_dot_product_attention_new(0);
    rapt_scoring *scoring = rapt_scaled_dot_product_scoring_new();
    NULL_IN(rapt_attention_new(NULL, 0), "Attention: the scoring function is NULL");
    NULL_IN(rapt_attention_forward(NULL, x, x, x, NULL), "Attention: the layer is NULL");
    NULL_IN(rapt_attention_forward(attention, NULL, x, x, NULL), "Attention: the queries are NULL");
    NULL_IN(rapt_attention_forward(attention, x, NULL, x, NULL), "Attention: the keys are NULL");
    NULL_IN(rapt_attention_forward(attention, x, x, NULL, NULL), "Attention: the values are NULL");
    NULL_IN(rapt_attention_prepare(NULL, x, NULL), "Attention: the layer is NULL");
    NULL_IN(rapt_attention_prepare(attention, NULL, NULL), "Attention: the keys are NULL");
    NULL_IN(rapt_attention_pool(NULL, x, x, x, NULL), "Attention: the layer is NULL");
    NULL_IN(rapt_attention_pool(attention, NULL, x, x, NULL), "Attention: the queries are NULL");
    NULL_IN(rapt_attention_pool(attention, x, NULL, x, NULL), "Attention: the keys are NULL");
    NULL_IN(rapt_attention_pool(attention, x, x, NULL, NULL), "Attention: the values are NULL");
    NULL_IN(rapt_attention_modify(NULL, "a", NULL), "Attention: the layer is NULL");
    NULL_IN(rapt_attention_learn_sinks(NULL, 2), "Attention: the layer is NULL");
    NULL_IN(rapt_attention_learn_sigmoid(NULL, 2, 0), "Attention: the layer is NULL");
    NULL_IN(rapt_score(NULL, x, x), "score: the scoring function is NULL");
    NULL_IN(rapt_score(scoring, NULL, x), "score: queries is NULL");
    NULL_IN(rapt_score(scoring, x, NULL), "score: keys is NULL");
    NULL_IN(rapt_masked_softmax(NULL, NULL), "masked_softmax: scores is NULL");
    NULL_IN(rapt_masked_sigmoid(NULL, NULL), "masked_sigmoid: scores is NULL");
    NULL_IN(rapt_mask_seen(RAPT_MASK(.causal = true), NULL), "scores is NULL");
    NULL_IN(rapt_by_relative_position(NULL, 2, 2, 0, false), "table is NULL");
    BAD_SHAPE(rapt_by_relative_position(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(4)), 2, 2, 0, false),
              "table (..., 2R + 1) expected, not [4]");
    BAD_SHAPE(rapt_by_relative_position(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3)), 2, 2, 0, true),
              "table (..., 2, 2R + 1) expected, not [3]");
    rapt_attention_keep_weights(NULL, true);
    rapt_attention_set_ring(NULL, NULL);
    cr_expect_null(rapt_error(), "nothing was asked for: %s", rapt_error());
    rapt_module_free(&attention->module);
    rapt_module_free((rapt_module *)scoring);
}

/* --- what stands behind the layers, for who puts other parameters into them --- */

static rapt_tensor *of_rank(rapt_dtype dtype, int rank)
{
    return rapt_ones(dtype, rank, (const int64_t[]){2, 3, 4, 5});
}

Test(nn_refusals, products_of_attention)
{
    RAPT_SCOPE;
    rapt_tensor *keys = of_rank(RAPT_FLOAT32, 3), *wide = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 5));
    rapt_tensor *weight = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 4)), *four = of_rank(RAPT_FLOAT32, 4);
    rapt_tensor *doubles = of_rank(RAPT_FLOAT64, 3), *integers = of_rank(RAPT_INT64, 3);
    const rapt_attention_call call = {.values = keys}, of_doubles = {.values = doubles}, of_four = {.values = four};
    const rapt_attention_call of_integers = {.values = integers};
    BAD_DTYPE(rapt_fused_additive(integers, integers, integers, &of_integers), "queries are int64");
    BAD_DTYPE(rapt_fused_additive(keys, doubles, weight, &call), "keys float64");
    BAD_DTYPE(rapt_fused_additive(keys, keys, doubles, &call), "weight float64");
    BAD_DTYPE(rapt_fused_additive(keys, keys, weight, &of_doubles), "values float64");
    BAD_SHAPE(rapt_fused_additive(of_rank(RAPT_FLOAT32, 2), keys, weight, &call), "queries [2, 3]");
    BAD_SHAPE(rapt_fused_additive(keys, four, weight, &call), "keys [2, 3, 4, 5]");
    BAD_SHAPE(rapt_fused_additive(keys, keys, weight, &of_four), "hidden expected");
    BAD_SHAPE(rapt_fused_additive(keys, wide, weight, &call), "keys [2, 3, 5]");
    BAD_SHAPE(rapt_fused_additive(wide, wide, weight, &call), "weight [1, 4]");
    BAD_DTYPE(rapt_fused_dot(integers, integers, 1, &of_integers), "queries are int64");
    BAD_DTYPE(rapt_fused_dot(keys, doubles, 1, &call), "keys float64");
    BAD_DTYPE(rapt_fused_dot(keys, keys, 1, &of_doubles), "values float64");
    BAD_SHAPE(rapt_fused_dot(of_rank(RAPT_FLOAT32, 2), keys, 1, &call), "queries [2, 3]");
    BAD_SHAPE(rapt_fused_dot(keys, four, 1, &call), "keys [2, 3, 4, 5]");
    BAD_SHAPE(rapt_fused_dot(keys, keys, 1, &of_four), "values [2, 3, 4, 5]");
    BAD_SHAPE(rapt_fused_dot(keys, wide, 1, &call), "keys [2, 3, 5]");
    cr_expect_null(rapt_fused_dot(NULL, keys, 1, &call));
    cr_expect_null(rapt_error(), "what is NULL has said so before: %s", rapt_error());
    rapt_tensor *square = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 3));
    BAD_SHAPE(rapt_weighted_sum(square, four), "matrices [2, 3, 3] and [2, 3, 4, 5] do not fit");
    BAD_SHAPE(rapt_weighted_sum(wide, keys), "do not fit");
    BAD_SHAPE(rapt_weighted_sum(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 3, 3)), keys), "do not fit");
    BAD_SHAPE(rapt_weighted_sum(of_rank(RAPT_FLOAT32, 1), of_rank(RAPT_FLOAT32, 1)), "do not fit");
}

/* A layer of a GRU with another parameter for one call. */
static void refuse_parameter(rapt_gru *gru, rapt_tensor **member, rapt_tensor *other, rapt_error_code code,
                             const char *part)
{
    rapt_tensor *own = *member;
    *member = other;
    cr_expect_null(rapt_gru_forward(gru, x, NULL, NULL), "%s", part);
    expect_error(code, part);
    *member = own;
}

Test(nn_refusals, parameters_that_were_exchanged)
{
    RAPT_SCOPE;
    rapt_gru *gru = rapt_gru_new(4, 2, 1, 0);
    struct rapt_recurrent_layer *layer = gru->recurrent.layer;
    rapt_tensor *ones = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3, 1));
    refuse_parameter(gru, &layer->weight_hh, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(6)), RAPT_ERROR_SHAPE, "not");
    refuse_parameter(gru, &layer->weight_hh, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(6, 3)), RAPT_ERROR_SHAPE, "[6, 3]");
    refuse_parameter(gru, &layer->weight_hh, ones, RAPT_ERROR_SHAPE, "[3, 1]");
    refuse_parameter(gru, &layer->bias_hh, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 6)), RAPT_ERROR_SHAPE, "expected");
    refuse_parameter(gru, &layer->bias_hh, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(5)), RAPT_ERROR_SHAPE, "expected");
    refuse_parameter(gru, &layer->weight_hh, rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(6, 2)), RAPT_ERROR_DTYPE, "float64");
    cr_expect_not_null(rapt_gru_forward(gru, x, NULL, NULL), "%s", rapt_error());
    rapt_module_free(&gru->recurrent.module);
}

static rapt_tensor *no_result(rapt_tensor *const *inputs, void *context)
{
    (void)inputs, (void)context;
    return NULL;
}

Test(nn_refusals, modules)
{
    RAPT_SCOPE;
    rapt_linear *linear = rapt_linear_new(4, 4, 0);
    rapt_module *module = &linear->module;
    cr_expect_not(rapt_module_gradcheck(module, no_result, -1, NULL, NULL).passed);
    expect_error(RAPT_ERROR_VALUE, "-1 inputs; 0 or more expected");
    BAD_VALUE(rapt_module_summarize(module, stdout, no_result, -1, NULL, NULL), "-1 inputs; 0 or more expected");
    NULL_IN(rapt_module_summarize(module, stdout, no_result, 1, NULL, NULL), "the list of inputs");
    BAD_VALUE(rapt_module_summarize(module, stdout, no_result, 0, NULL, NULL), "the function failed without a reason");
    BAD_VALUE(rapt_module_add_child(module, NULL, module), "member 'NULL' (Linear) is the module itself");
    NULL_IN(rapt_module_add_child(module, NULL, NULL), "member 'NULL' is NULL");
    NULL_IN(rapt_module_add_parameter(module, NULL, NULL), "member 'NULL' is NULL");
    rapt_module_free(module);
    const rapt_convolution groups = {.groups = -1}, three = {.groups = 3}, two = {.groups = 2};
    BAD_VALUE(rapt_conv1d_layer_new(4, 4, 1, &groups, 0), "4 to 4 channels in -1 groups");
    BAD_VALUE(rapt_conv1d_layer_new(4, 6, 1, &three, 0), "4 to 6 channels in 3 groups");
    BAD_VALUE(rapt_conv1d_layer_new(4, 3, 1, &two, 0), "4 to 3 channels in 2 groups");
    rapt_tensor *vector = of_rank(RAPT_FLOAT32, 1);
    rapt_scoring *scoring = rapt_scaled_dot_product_scoring_new();
    BAD_SHAPE(rapt_score(scoring, vector, x), "queries of rank 1 and keys of rank 3; 2 or more expected");
    BAD_SHAPE(rapt_score(scoring, x, vector), "queries of rank 3 and keys of rank 1; 2 or more expected");
    rapt_module_free((rapt_module *)scoring);
    BAD_VALUE(rapt_sample(x, &(rapt_generation){.top_p = 0.5}), "top_k 0 and top_p 0.5 without a temperature");
    BAD_VALUE(rapt_sample(x, &(rapt_generation){.top_k = 2}), "top_k 2 and top_p 0 without a temperature");
}
