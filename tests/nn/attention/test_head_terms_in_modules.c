/* Sinks and sigmoid's biases as parts of modules, and wrong uses of them. */
#include "fused_dot.h"

Test(head_terms_in_modules, parameters_are_named_and_the_cache_gives_what_the_whole_gives)
{
    RAPT_SCOPE;
    rapt_gpt_config config = {.vocabulary = 7, .context = 12, .hidden = 8, .layers = 2, .heads = 4, .sinks = true};
    rapt_gpt *gpt = rapt_gpt_new(&config);
    cr_assert(gpt, "%s", rapt_error());
    rapt_tensor *sinks = rapt_module_find(&gpt->module, "transformer.h.1.attn.attention.sinks");
    cr_assert_not_null(sinks);
    expect_shape(sinks, RAPT_SHAPE(4));
    cr_assert(rapt_requires_gradient(sinks) && rapt_fill_normal(sinks, 0, 2));
    rapt_module_train(&gpt->module, false);
    rapt_tensor *tokens = rapt_randint(0, 7, RAPT_SHAPE(2, 9));
    RAPT_NO_GRADIENT;
    rapt_gpt_cache *cache = rapt_gpt_cache_new(gpt);
    rapt_tensor *whole = rapt_gpt_forward(gpt, tokens, NULL);
    for (int64_t t = 0; t < 9; t++) {
        rapt_tensor *one = rapt_gpt_forward(gpt, rapt_slice(tokens, 1, t, t + 1, 1), cache);
        cr_assert(one, "%s", rapt_error());
        cr_expect_leq(largest_of(rapt_sub(one, rapt_slice(whole, 1, t, t + 1, 1))), 1e-5);
    }
    rapt_gpt_cache_free(cache);
    rapt_module_free(&gpt->module);
    expect_no_error();
}

Test(head_terms_in_modules, layers_that_share_a_pooling_share_its_sinks)
{
    RAPT_SCOPE;
    rapt_attention *pooling = rapt_dot_product_attention_new(0);
    rapt_multi_head_attention_config config = {.hidden = 8, .heads = 2, .pooling = pooling, .sinks = true};
    rapt_multi_head_attention *a = rapt_multi_head_attention_new(&config), *b = rapt_multi_head_attention_new(&config);
    cr_assert(a && b, "%s", rapt_error());
    cr_expect_eq(rapt_module_find(&a->module, "attention.sinks"), rapt_module_find(&b->module, "attention.sinks"));
    rapt_module_free(&a->module);
    rapt_module_free(&b->module);
    pooling = rapt_dot_product_attention_new(0);
    pooling->normalizer = rapt_masked_sparsemax;
    config.pooling = pooling;
    const int64_t before = live_bytes();
    cr_expect_null(rapt_multi_head_attention_new(&config));
    expect_error(RAPT_ERROR_UNSUPPORTED, "learned sinks beside a normaliser that is not softmax");
    cr_expect_leq(live_bytes(), before);
}

/* Bahdanau's decoder runs all steps in one op, which knows neither. */
Test(head_terms_in_modules, the_recurrent_decoder_heeds_them)
{
    const rapt_bahdanau_config config = {.vocabulary = 5, .embedding = 3, .hidden = 4, .layers = 1};
    RAPT_SCOPE;
    rapt_bahdanau_decoder *decoder = rapt_bahdanau_decoder_new(&config);
    rapt_bahdanau_encoder *encoder = rapt_bahdanau_encoder_new(&config);
    cr_assert(decoder && encoder, "%s", rapt_error());
    rapt_tensor *tokens = rapt_randint(0, 5, RAPT_SHAPE(2, 3)), *outputs[3];
    for (int i = 0; i < 3; i++) {
        decoder->attention->plain = i == 2;
        decoder->attention->sink = i == 0 ? -(double)INFINITY : 1;
        rapt_tensor *hidden, *encoded = rapt_bahdanau_encoder_forward(encoder, tokens, &hidden);
        rapt_bahdanau_state state = rapt_bahdanau_decoder_start(decoder, encoded, hidden, NULL);
        outputs[i] = rapt_bahdanau_decoder_forward(decoder, tokens, &state, NULL);
        cr_assert(outputs[i], "%s", rapt_error());
    }
    cr_expect_gt(largest_of(rapt_sub(outputs[0], outputs[1])), 1e-4);
    cr_expect_leq(largest_of(rapt_sub(outputs[1], outputs[2])), 1e-5);
    rapt_module_free(&decoder->module);
    rapt_module_free(&encoder->module);
}

static rapt_tensor *pool_causally(rapt_tensor *const *inputs, void *attention)
{
    return rapt_attention_forward(attention, inputs[0], inputs[1], inputs[2], RAPT_MASK(.causal = true, .offset = 3));
}

/* Sinks and sigmoid's biases are found by the function without being handed to it; its second run draws the same
 * dropout. */
Test(head_terms_in_modules, recomputed_attention_gives_the_same_bits)
{
    static const char *const names[] = {"pooled values", "head terms", "queries", "keys", "values"};
    for (int which = 0; which < 8; which++) {
        RAPT_SCOPE;
        rapt_seed(12);
        const bool is_additive = which & 1, is_sigmoid = which & 2, few = which & 4;
        rapt_scoring *scoring =
            is_additive ? rapt_additive_scoring_new(4, 4, 6) : rapt_scaled_dot_product_scoring_new();
        rapt_attention *attention = rapt_attention_new(scoring, 0.2);
        rapt_tensor *head_terms =
            is_sigmoid ? rapt_attention_learn_sigmoid(attention, 2, -1) : rapt_attention_learn_sinks(attention, 2);
        cr_assert(rapt_fill_normal(head_terms, 0, 1), "%s", rapt_error());
        rapt_tensor *in[] = {head_terms, leaf(RAPT_FLOAT32, RAPT_SHAPE(2, 2, few ? 1 : 9, 4)),
                             leaf(RAPT_FLOAT32, RAPT_SHAPE(2, 2, 12, 4)), leaf(RAPT_FLOAT32, RAPT_SHAPE(2, 2, 12, 5))};
        rapt_tensor *results[2][5];
        for (int recomputed = 0; recomputed < 2; recomputed++) {
            rapt_seed(13);
            rapt_tensor *y = recomputed ? rapt_recompute(pool_causally, 3, in + 1, attention, NULL)
                                        : pool_causally(in + 1, attention);
            rapt_tensor *from = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, 2, few ? 1 : 9, 5));
            cr_assert(y && rapt_gradients(1, &y, &from, 4, in, results[recomputed] + 1, 0), "%s", rapt_error());
            results[recomputed][0] = y;
        }
        cr_expect_gt(largest_of(results[0][1]), 0);
        for (int i = 0; i < 5; i++)
            cr_expect(same_bits(rapt_contiguous(results[0][i]), rapt_contiguous(results[1][i])), "%d: %s", which,
                      names[i]);
        rapt_module_free(&attention->module);
    }
    expect_no_error();
}

/* --- wrong uses --- */

static rapt_tensor *pooled(rapt_attention *attention, rapt_dtype dtype, int64_t heads, const rapt_mask *mask)
{
    rapt_tensor *x = rapt_ones(dtype, RAPT_SHAPE(2, heads, 3, 4));
    return rapt_attention_forward(attention, x, x, x, mask);
}

Test(head_terms_in_modules, wrong_uses_get_their_sentence)
{
    RAPT_SCOPE;
    rapt_attention *a = rapt_dot_product_attention_new(0);
    cr_expect_null(rapt_attention_learn_sinks(NULL, 2));
    expect_error(RAPT_ERROR_NULL, "the layer is NULL");
    cr_expect_null(rapt_attention_learn_sigmoid(NULL, 2, 0));
    expect_error(RAPT_ERROR_NULL, "the layer is NULL");
    a->sink = (double)NAN;
    cr_expect_null(pooled(a, RAPT_FLOAT32, 2, NULL));
    expect_error(RAPT_ERROR_VALUE, "sink nan; a number or -inf expected");
    a->sink = 0;
    cr_expect_null(pooled(a, RAPT_FLOAT32, 2, RAPT_MASK(.fills_million = true)));
    expect_error(RAPT_ERROR_UNSUPPORTED, "fills_million");
    a->normalizer = rapt_masked_entmax15;
    cr_expect_null(pooled(a, RAPT_FLOAT32, 2, NULL));
    expect_error(RAPT_ERROR_UNSUPPORTED, "a sink beside a normaliser that is not rapt_masked_softmax");
    a->normalizer = rapt_masked_softmax;
    cr_expect_null(rapt_attention_learn_sinks(a, 2));
    expect_error(RAPT_ERROR_UNSUPPORTED, "learned sinks beside a constant sink");
    cr_expect_null(rapt_attention_learn_sigmoid(a, 2, 0));
    expect_error(RAPT_ERROR_UNSUPPORTED, "sigmoid beside a sink");
    a->sink = -(double)INFINITY;
    a->sigmoid_bias = 1;
    cr_expect_null(pooled(a, RAPT_FLOAT32, 2, NULL));
    expect_error(RAPT_ERROR_UNSUPPORTED, "a sigmoid_bias beside a normaliser that is not rapt_masked_sigmoid");
    a->normalizer = rapt_masked_sigmoid;
    a->sigmoid_bias = (double)INFINITY;
    cr_expect_null(pooled(a, RAPT_FLOAT32, 2, NULL));
    expect_error(RAPT_ERROR_VALUE, "sigmoid_bias inf");
    a->sigmoid_bias = 0;
    cr_expect_null(pooled(a, RAPT_FLOAT32, 2, RAPT_MASK(.fills_million = true)));
    expect_error(RAPT_ERROR_VALUE, "fills_million");
    a->normalizer = rapt_masked_softmax;
    rapt_module_free(&a->module);

    a = rapt_dot_product_attention_new(0);
    cr_assert_not_null(rapt_attention_learn_sinks(a, 3));
    cr_expect_null(pooled(a, RAPT_FLOAT32, 2, NULL));
    expect_error(RAPT_ERROR_SHAPE, "sinks of shape (2) or (1) expected, not");
    cr_expect_null(pooled(a, RAPT_FLOAT64, 3, NULL));
    expect_error(RAPT_ERROR_DTYPE, "the sinks are float32, the scores float64");
    cr_expect_null(rapt_attention_learn_sinks(a, 3));
    expect_error(RAPT_ERROR_VALUE, "sinks");
    a->sink = 1;
    cr_expect_null(pooled(a, RAPT_FLOAT32, 3, NULL));
    expect_error(RAPT_ERROR_VALUE, "sink 1 beside learned sinks");
    rapt_module_free(&a->module);

    a = rapt_dot_product_attention_new(0);
    cr_expect_null(rapt_attention_learn_sigmoid(a, 0, 0));
    expect_error(RAPT_ERROR_VALUE, "sigmoid_biases for 0 heads");
    rapt_module_free(&a->module);

    rapt_tensor *scores = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(1, 2, 3, 4)),
                *head_terms = rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(2));
    cr_expect_null(rapt_masked_softmax_with_sinks(scores, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "masked_softmax_with_sinks: the sinks are NULL");
    cr_expect_null(rapt_masked_softmax_with_sinks(scores, NULL, head_terms));
    expect_error(RAPT_ERROR_DTYPE, "the sinks are float64");
    cr_expect_null(rapt_masked_sigmoid_with_biases(NULL, NULL, head_terms));
    expect_error(RAPT_ERROR_NULL, "masked_sigmoid_with_biases");
    cr_expect_null(rapt_masked_sigmoid_with_biases(scores, NULL, rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2, 1))));
    expect_error(RAPT_ERROR_SHAPE, "biases of shape (2) or (1) expected");
}
