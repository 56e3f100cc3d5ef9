/* What a Transformer refuses, and what a failed step leaves behind. */
#include "transformer.h"

#define EXPECT_BAD(field, value, code, part)                                                                           \
    do {                                                                                                               \
        config bad = small;                                                                                            \
        bad.field = (value);                                                                                           \
        cr_expect_null(rapt_transformer_new(&bad));                                                                    \
        expect_error((code), (part));                                                                                  \
    } while (0)

Test(transformer_errors, bad_configurations)
{
    const int64_t before = live_bytes();
    EXPECT_BAD(hidden, 9, RAPT_ERROR_VALUE, "hidden size 9 and 2 heads");
    EXPECT_BAD(hidden, 0, RAPT_ERROR_VALUE, "hidden size 0");
    EXPECT_BAD(heads, 0, RAPT_ERROR_VALUE, "0 heads");
    EXPECT_BAD(groups, 3, RAPT_ERROR_VALUE, "3 groups");
    EXPECT_BAD(feed_forward, 0, RAPT_ERROR_VALUE, "feed-forward size of 0");
    EXPECT_BAD(encoder_layers, 0, RAPT_ERROR_VALUE, "TransformerEncoder: 0 layers");
    EXPECT_BAD(decoder_layers, -1, RAPT_ERROR_VALUE, "TransformerDecoder: -1 layers");
    EXPECT_BAD(dropout, 2, RAPT_ERROR_VALUE, "dropout 2");
    EXPECT_BAD(attention_dropout, -1, RAPT_ERROR_VALUE, "attention_dropout -1");
    EXPECT_BAD(feed_forward_dropout, (double)NAN, RAPT_ERROR_VALUE, "feed_forward_dropout");
    EXPECT_BAD(kind, (rapt_feed_forward_kind)7, RAPT_ERROR_VALUE, "kind 7");
    EXPECT_BAD(names, RAPT_NAMES_GPT2, RAPT_ERROR_UNSUPPORTED, "GPT-2");
    cr_expect_null(rapt_multi_head_attention_new(
        &(rapt_multi_head_attention_config){.hidden = 4, .heads = 2, .key_size = 3, .names = RAPT_NAMES_GPT2}));
    expect_error(RAPT_ERROR_VALUE, "GPT-2's names");
    cr_expect_null(rapt_transformer_new(NULL));
    expect_error(RAPT_ERROR_NULL, "configuration");
    cr_expect_null(rapt_encoder_layer_new(NULL));
    expect_error(RAPT_ERROR_NULL, "configuration");
    cr_expect_null(rapt_decoder_layer_new(NULL));
    expect_error(RAPT_ERROR_NULL, "configuration");
    cr_expect_null(rapt_feed_forward_new(NULL));
    expect_error(RAPT_ERROR_NULL, "configuration");
    cr_expect_null(rapt_feed_forward_new(&(rapt_feed_forward_config){.in = 2, .inner = -3, .out = 2}));
    expect_error(RAPT_ERROR_VALUE, "-3");
    cr_expect_null(rapt_feed_forward_new(&(rapt_feed_forward_config){.in = 2, .inner = 3, .out = 2, .dropout = -2}));
    expect_error(RAPT_ERROR_VALUE, "dropout -2");
    cr_expect_eq(live_bytes(), before);
}

static void *make_transformer(void)
{
    config c = small;
    c.final_norm = true;
    c.rotary = true;
    return rapt_transformer_new(&c);
}

Test(transformer_errors, constructors_without_memory)
{
    cr_expect_geq(expect_clean_failures("Transformer", make_transformer), 20);
}

Test(transformer_errors, bad_inputs)
{
    RAPT_SCOPE;
    rapt_transformer *t = drawn(rapt_transformer_new(&small));
    rapt_tensor *x = random_input(2, 3, 8), *narrow = random_input(2, 3, 6), *other = random_input(3, 3, 8);
    cr_expect_null(rapt_transformer_forward(NULL, x, x, NULL, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "Transformer is NULL");
    cr_expect_null(rapt_transformer_forward(t, NULL, x, NULL, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "source");
    cr_expect_null(rapt_transformer_forward(t, x, NULL, NULL, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "target");
    cr_expect_null(rapt_transformer_forward(t, narrow, x, NULL, NULL, NULL));
    expect_error(RAPT_ERROR_SHAPE, "[2, 3, 6]");
    cr_expect_null(rapt_transformer_forward(t, x, other, NULL, NULL, NULL));
    expect_error(RAPT_ERROR_SHAPE, "3");
    cr_expect_null(rapt_encoder_layer_forward(NULL, x, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "layer");
    cr_expect_null(rapt_encoder_layer_forward(t->encoder->layers[0], NULL, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "input");
    cr_expect_null(rapt_decoder_layer_forward(t->decoder->layers[0], x, NULL, NULL, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "keys and values are NULL");
    cr_expect_null(rapt_feed_forward_forward(t->decoder->layers[0]->feed_forward, narrow));
    expect_error(RAPT_ERROR_SHAPE, "6");
    cr_expect_null(rapt_feed_forward_forward(NULL, x));
    expect_error(RAPT_ERROR_NULL, "FeedForward: the layer is NULL");
    caches c = {0};
    cr_expect_null(rapt_transformer_decoder_forward(t->decoder, x, x, NULL, NULL, c.layer));
    expect_error(RAPT_ERROR_UNSUPPORTED, "RAPT_NO_GRADIENT");
    rapt_module_free(&t->module);
}

Test(transformer_errors, a_failed_step_leaves_the_caches_as_they_were)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_transformer_decoder *d = drawn(rapt_transformer_decoder_new(&small));
    rapt_tensor *x = random_input(2, 3, 8), *memory = random_input(2, 4, 8);
    rapt_tensor *first = rapt_slice(x, 1, 0, 2, 1), *second = rapt_slice(x, 1, 2, 3, 1);
    const rapt_mask causal = {.causal = true};
    rapt_tensor *whole = rapt_transformer_decoder_forward(d, x, memory, &causal, NULL, NULL);
    caches c = {0};
    int failures[2] = {0};
    for (int step = 0; step < 2; step++)
        for (rapt_tensor *y = NULL; !y;) {
            rapt_memory_fail_after(failures[step]);
            y = rapt_transformer_decoder_forward(d, step ? second : first, memory, &causal, NULL, c.layer);
            rapt_memory_fail_after(-1);
            if (y) {
                expect_equal("in the end", y, rapt_slice(whole, 1, step ? 2 : 0, step ? 3 : 2, 1));
            } else {
                expect_error(RAPT_ERROR_MEMORY, "no memory");
                for (int i = 0; i < cached_layers; i++) cr_assert_eq(c.layer[i].self.length, step ? 2 : 0);
                for (int i = 0; i < cached_layers; i++) cr_assert_eq(c.layer[i].memory.length, step ? 4 : 0);
                cr_assert_lt(failures[step]++, 1000);
            }
        }
    cr_expect(failures[0] > 20 && failures[1] > 20, "%d and %d failures", failures[0], failures[1]);
    clear(&c);
    rapt_module_free(&d->module);
}

/* A sublayer behind the self-attention may fail, which has then put its keys into the cache. */
Test(transformer_errors, a_failed_layer_leaves_its_cache_as_it_was)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_decoder_layer *decoder = drawn(rapt_decoder_layer_new(&small));
    rapt_encoder_layer *encoder = drawn(rapt_encoder_layer_new(&small));
    rapt_tensor *x = random_input(2, 1, 8), *memory = random_input(2, 4, 8);
    rapt_decoder_cache of_decoder = {0};
    rapt_attention_cache of_encoder = {0};
    for (int step = 0, failures = 0; step < 4; failures++) {
        rapt_memory_fail_after(failures);
        const bool done = step % 2 ? rapt_encoder_layer_forward(encoder, x, NULL, &of_encoder) != NULL
                                   : rapt_decoder_layer_forward(decoder, x, memory, NULL, NULL, &of_decoder) != NULL;
        rapt_memory_fail_after(-1);
        if (done) {
            cr_expect_gt(failures, 10);
            step++;
            failures = -1;
        } else {
            expect_error(RAPT_ERROR_MEMORY, "no memory");
        }
        cr_assert_eq(of_decoder.self.length, (step + 1) / 2, "failure %d", failures);
        cr_assert_eq(of_decoder.memory.length, step > 0 ? 4 : 0);
        cr_assert_eq(of_encoder.length, step / 2);
    }
    rapt_decoder_cache_clear(&of_decoder);
    rapt_attention_cache_clear(&of_encoder);
    rapt_module_free(&decoder->module);
    rapt_module_free(&encoder->module);
    expect_no_error();
}

/* Layers may have been run one by one: each cache is given back its own length. */
Test(transformer_errors, a_failed_step_leaves_caches_of_different_lengths)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    const config narrow = {.hidden = 8, .heads = 2, .feed_forward = 16, .encoder_layers = 2, .decoder_layers = 2};
    rapt_transformer_encoder *encoder = rapt_transformer_encoder_new(&narrow);
    rapt_transformer_decoder *decoder = rapt_transformer_decoder_new(&narrow);
    rapt_attention_cache of_encoder[2] = {0};
    rapt_decoder_cache of_decoder[2] = {0};
    rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(1, 3, 8)),
                *wrong = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(1, 1, 7)),
                *next = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(1, 1, 8));
    cr_assert(rapt_encoder_layer_forward(encoder->layers[0], x, NULL, &of_encoder[0]), "%s", rapt_error());
    cr_assert(rapt_decoder_layer_forward(decoder->layers[0], x, x, NULL, NULL, &of_decoder[0]), "%s", rapt_error());
    cr_expect_null(rapt_transformer_encoder_forward(encoder, wrong, NULL, of_encoder));
    expect_error(RAPT_ERROR_SHAPE, "7");
    cr_expect_null(rapt_transformer_decoder_forward(decoder, wrong, x, NULL, NULL, of_decoder));
    expect_error(RAPT_ERROR_SHAPE, "7");
    const int64_t lengths[] = {of_encoder[0].length,      of_encoder[1].length,        of_decoder[0].self.length,
                               of_decoder[1].self.length, of_decoder[0].memory.length, of_decoder[1].memory.length};
    const int64_t expected[] = {3, 0, 3, 0, 3, 0};
    cr_expect_arr_eq(lengths, expected, sizeof expected);
    cr_expect(rapt_transformer_encoder_forward(encoder, next, NULL, of_encoder), "%s", rapt_error());
    cr_expect(rapt_transformer_decoder_forward(decoder, next, x, NULL, NULL, of_decoder), "%s", rapt_error());
    for (int i = 0; i < 2; i++) rapt_attention_cache_clear(&of_encoder[i]);
    for (int i = 0; i < 2; i++) rapt_decoder_cache_clear(&of_decoder[i]);
    rapt_module_free(&encoder->module);
    rapt_module_free(&decoder->module);
    expect_no_error();
}
