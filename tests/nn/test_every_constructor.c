/* Every constructor of the folder nn, without memory and with bad numbers. */
#include "node.h"

#include <glob.h>
#include <stdio.h>

#include "memory_trials.h"

#include "failing_malloc.h"

static const rapt_bahdanau_config bahdanau = {.vocabulary = 5,
                                              .embedding = 3,
                                              .hidden = 4,
                                              .layers = 2,
                                              .dropout = 0.1};
static const rapt_transformer_config transformer = {.hidden = 4,
                                                    .heads = 2,
                                                    .feed_forward = 5,
                                                    .kind = RAPT_FEED_FORWARD_SWIGLU,
                                                    .encoder_layers = 2,
                                                    .decoder_layers = 1,
                                                    .attention_bias = true,
                                                    .final_norm = true,
                                                    .rotary = true};
static const rapt_gpt_config gpt = {.vocabulary = 5, .context = 4, .hidden = 4, .layers = 2, .heads = 2, .bias = true};

/* make_NAME, a constructor without arguments. */
#define MAKER(name, call)                                                                                              \
    static void *make_##name(void)                                                                                     \
    {                                                                                                                  \
        return call;                                                                                                   \
    }

MAKER(linear, rapt_linear_new(3, 2, RAPT_BIAS))
MAKER(embedding, rapt_embedding_new(3, 2))
MAKER(layer_norm, rapt_layer_norm_new(4, RAPT_BIAS))
MAKER(rms_norm, rapt_rms_norm_new(4))
MAKER(batch_norm, rapt_batch_norm_new(4))
MAKER(conv1d_layer, rapt_conv1d_layer_new(4, 2, 3, NULL, RAPT_BIAS))
MAKER(conv2d_layer, rapt_conv2d_layer_new(4, 2, (int64_t[]){3, 2}, NULL, RAPT_BIAS))
MAKER(dropout, rapt_dropout_new(0.5))
MAKER(activation, rapt_activation_new("relu", rapt_relu))
MAKER(gru, rapt_gru_new(2, 3, 2, 0.1))
MAKER(lstm, rapt_lstm_new(2, 3, 2, 0.1))
MAKER(bidirectional_gru, rapt_bidirectional_gru_new(2, 3, 2, 0.1))
MAKER(bidirectional_lstm, rapt_bidirectional_lstm_new(2, 3, 2, 0.1))
MAKER(dot_product, rapt_dot_product_attention_new(0.1))
MAKER(additive, rapt_additive_attention_new(2, 3, 4, 0.1))
MAKER(dot_scoring, rapt_dot_product_scoring_new())
MAKER(scaled_scoring, rapt_scaled_dot_product_scoring_new())
MAKER(padded_scoring, rapt_padded_dot_product_scoring_new())
MAKER(bilinear_scoring, rapt_bilinear_scoring_new(2, 3))
MAKER(additive_scoring, rapt_additive_scoring_new(2, 3, 4))
MAKER(cosine_scoring, rapt_cosine_scoring_new(1, true))
MAKER(gaussian_scoring, rapt_gaussian_scoring_new(1, true))
MAKER(relative_scoring, rapt_relative_scoring_new(2, 3, 4))
MAKER(regression_kernel_scoring, rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_GAUSSIAN, 1, true))
MAKER(bahdanau_encoder, rapt_bahdanau_encoder_new(&bahdanau))
MAKER(bahdanau_decoder, rapt_bahdanau_decoder_new(&bahdanau))
MAKER(sinusoidal, rapt_sinusoidal_positions_new(4, 0.1))
MAKER(learned, rapt_learned_positions_new(3, 4, 0.1))
MAKER(rotary, rapt_rotary_new())
MAKER(alibi, rapt_alibi_new(2))
MAKER(soft_cap, rapt_soft_cap_new(2))
MAKER(head_temperature, rapt_head_temperature_new(2))
MAKER(alibi_modification, rapt_alibi_modification_new(2))
MAKER(bucketed_bias, rapt_bucketed_bias_new(2, 8, 20, true))
MAKER(learned_bias, rapt_learned_bias_new(2, 3))
MAKER(gaussian_window, rapt_gaussian_window_new(2, 3, true))
MAKER(relative_bias, rapt_relative_bias_new(2, 3))
MAKER(feed_forward, rapt_feed_forward_new(&(rapt_feed_forward_config){.in = 2, .inner = 3, .out = 4, .bias = true}))
MAKER(add_norm, rapt_add_norm_new(3, RAPT_BIAS, 0.1))
MAKER(encoder_layer, rapt_encoder_layer_new(&transformer))
MAKER(decoder_layer, rapt_decoder_layer_new(&transformer))
MAKER(encoder, rapt_transformer_encoder_new(&transformer))
MAKER(decoder, rapt_transformer_decoder_new(&transformer))
MAKER(transformer, rapt_transformer_new(&transformer))
MAKER(gpt, rapt_gpt_new(&gpt))

/* A class of one's own around what several constructors make. */
static rapt_module *around(rapt_module *node, void *part)
{
    rapt_module_add_child(node, "part", part);
    return rapt_module_finish(node);
}

static void *make_prefix_modification(void)
{
    RAPT_SCOPE;
    return rapt_prefix_modification_new(rapt_zeros(RAPT_INT64, RAPT_SHAPE(2)));
}

static void *make_attention(void)
{
    rapt_module *node = rapt_module_new(sizeof *node, &node_kind);
    return around(node, rapt_attention_new(rapt_bilinear_scoring_new(2, 3), 0.1));
}

static void *make_sequential(void)
{
    rapt_module *node = rapt_module_new(sizeof *node, &node_kind);
    return around(node, RAPT_SEQUENTIAL(make_linear(), make_activation(), make_linear(), make_dropout()));
}

static void *make_multi_head(void)
{
    rapt_module *node = rapt_module_new(sizeof *node, &node_kind);
    return around(node,
                  rapt_multi_head_attention_new(&(rapt_multi_head_attention_config){
                      .hidden = 4, .heads = 2, .bias = true, .pooling = rapt_additive_attention_new(2, 2, 3, 0)}));
}

static void *make_multi_head_apart(void)
{
    return rapt_multi_head_attention_new(&(rapt_multi_head_attention_config){
        .hidden = 4, .heads = 2, .groups = 1, .key_size = 3, .bias = true, .rotary = rapt_rotary_new()});
}

/* rapt_NAME_new, and how many tensors it makes at least. */
static const struct {
    const char *name;
    void *(*make)(void);
    int tensors;
} constructors[] = {
    {"linear", make_linear, 2},
    {"embedding", make_embedding, 1},
    {"layer_norm", make_layer_norm, 2},
    {"rms_norm", make_rms_norm, 1},
    {"batch_norm", make_batch_norm, 5},
    {"conv1d_layer", make_conv1d_layer, 2},
    {"conv2d_layer", make_conv2d_layer, 2},
    {"dropout", make_dropout, 0},
    {"activation", make_activation, 0},
    {"sequential", make_sequential, 4},
    {"gru", make_gru, 8},
    {"lstm", make_lstm, 8},
    {"bidirectional_gru", make_bidirectional_gru, 16},
    {"bidirectional_lstm", make_bidirectional_lstm, 16},
    {"attention", make_attention, 1},
    {"dot_product_attention", make_dot_product, 0},
    {"additive_attention", make_additive, 3},
    {"dot_product_scoring", make_dot_scoring, 0},
    {"scaled_dot_product_scoring", make_scaled_scoring, 0},
    {"padded_dot_product_scoring", make_padded_scoring, 0},
    {"bilinear_scoring", make_bilinear_scoring, 1},
    {"additive_scoring", make_additive_scoring, 3},
    {"cosine_scoring", make_cosine_scoring, 1},
    {"gaussian_scoring", make_gaussian_scoring, 1},
    {"relative_scoring", make_relative_scoring, 2},
    {"regression_kernel_scoring", make_regression_kernel_scoring, 1},
    {"bahdanau_encoder", make_bahdanau_encoder, 9},
    {"bahdanau_decoder", make_bahdanau_decoder, 14},
    {"multi_head_attention", make_multi_head, 7},
    {"multi_head_attention", make_multi_head_apart, 5},
    {"sinusoidal_positions", make_sinusoidal, 0},
    {"learned_positions", make_learned, 1},
    {"rotary", make_rotary, 0},
    {"alibi", make_alibi, 0},
    {"relative_bias", make_relative_bias, 1},
    {"soft_cap", make_soft_cap, 0},
    {"head_temperature", make_head_temperature, 1},
    {"alibi_modification", make_alibi_modification, 0},
    {"bucketed_bias", make_bucketed_bias, 1},
    {"learned_bias", make_learned_bias, 1},
    {"gaussian_window", make_gaussian_window, 1},
    {"prefix_modification", make_prefix_modification, 0},
    {"feed_forward", make_feed_forward, 4},
    {"add_norm", make_add_norm, 2},
    {"encoder_layer", make_encoder_layer, 14},
    {"decoder_layer", make_decoder_layer, 20},
    {"transformer_encoder", make_encoder, 30},
    {"transformer_decoder", make_decoder, 22},
    {"transformer", make_transformer, 52},
    {"gpt", make_gpt, 28},
};

enum { constructor_count = sizeof constructors / sizeof *constructors };

static bool is_in_table(const char *name)
{
    for (size_t i = 0; i < constructor_count; i++)
        if (strcmp(constructors[i].name, name) == 0) return true;
    return false;
}

Test(every_constructor, is_in_the_table)
{
    static const char *const others[] = {"module", "gpt_cache"}; /* it makes any module; it draws nothing */
    glob_t headers;
    char line[512], name[64];
    int count = 0;
    cr_assert_eq(glob(RAPT_SOURCE_ROOT "/nn/include/rapt/*.h", 0, NULL, &headers), 0);
    for (size_t i = 0; i < headers.gl_pathc; i++) {
        FILE *file = fopen(headers.gl_pathv[i], "r");
        cr_assert(file);
        while (fgets(line, sizeof line, file)) {
            const char *api = strstr(line, "RAPT_API "), *end = api ? strstr(api, "_new(") : NULL;
            const char *start = end ? strstr(api, "*rapt_") : NULL;
            if (!start) continue;
            snprintf(name, sizeof name, "%.*s", (int)(end - start - 6), start + 6);
            if (strcmp(name, others[0]) == 0 || strcmp(name, others[1]) == 0) continue;
            cr_expect(is_in_table(name), "rapt_%s_new is not in the table", name);
            count++;
        }
        fclose(file);
    }
    globfree(&headers);
    cr_expect_eq(count, constructor_count - 1, "%d of %d (one is there twice)", count, constructor_count);
}

Test(every_constructor, without_memory_gives_an_error_and_leaves_nothing)
{
    for (size_t i = 0; i < constructor_count; i++) {
        rapt_random_set_state((rapt_random_state){.seed = 3, .offset = 17});
        int64_t failures = expect_clean_failures(constructors[i].name, constructors[i].make);
        cr_expect(failures >= constructors[i].tensors, "%s: %lld failures", constructors[i].name, (long long)failures);
    }
}

/* Modules and their lists come from there. */
Test(every_constructor, without_memory_of_the_c_library_gives_an_error)
{
    static void *(*const makers[])(void) = {make_linear,   make_gru,          make_bidirectional_lstm,
                                            make_additive, make_rotary,       make_bahdanau_encoder,
                                            make_encoder,  make_decoder,      make_bahdanau_decoder,
                                            make_gpt,      make_learned_bias, make_transformer};
    rapt_module_free(make_transformer()); /* the thread has its scopes then */
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        void *module = NULL;
        for (long after = 0; !module; after++) {
            fail_malloc(after, false);
            module = makers[i]();
            fail_malloc(-1, false);
            if (!module) expect_error(RAPT_ERROR_MEMORY, "no memory");
        }
        expect_no_error();
        rapt_module_free(module);
    }
}

static void *(*constructor)(void);

static bool makes_module(void)
{
    rapt_module *module = constructor();
    rapt_module_free(module);
    return module && !rapt_error(); /* without its own pooling, attention of several heads takes the default */
}

Test(every_constructor, without_memory_of_the_system_gives_an_error_too)
{
    for (size_t i = 0; i < constructor_count; i++) {
        constructor = constructors[i].make;
        try_all_failures(constructors[i].name, makes_module);
    }
}

/* Other kinds of layers of the table, which are described by other words. */
MAKER(plain_gru, rapt_gru_new(2, 3, 1, 0))
MAKER(one_sided_bias, rapt_bucketed_bias_new(2, 8, 20, false))
MAKER(fixed_window, rapt_gaussian_window_new(2, 3, false))
MAKER(plain_conv2d, rapt_conv2d_layer_new(4, 2, (int64_t[]){3, 2}, NULL, RAPT_NO_BIAS))
MAKER(scoring_of_keys, rapt_relative_scoring_new(2, 0, 4))

static void expect_printed(const char *name, void *(*make)(void), const char *words)
{
    RAPT_SCOPE;
    char text[8192] = "";
    FILE *stream = fmemopen(text, sizeof text, "w");
    rapt_module *module = make();
    cr_expect(rapt_module_print(module, stream), "%s: %s", name, rapt_error());
    fclose(stream);
    cr_expect(strncmp(text, module->kind->name, strlen(module->kind->name)) == 0 && strstr(text, words), "%s: %s", name,
              text);
    rapt_module_free(module);
}

Test(every_constructor, makes_what_can_be_printed)
{
    for (size_t i = 0; i < constructor_count; i++) expect_printed(constructors[i].name, constructors[i].make, "");
    expect_printed("GRU", make_gru, "2 layers");
    expect_printed("GRU", make_plain_gru, "1 layer,");
    expect_printed("GRU", make_bidirectional_gru, "bidirectional");
    expect_printed("BucketedBias", make_bucketed_bias, "bidirectional");
    expect_printed("BucketedBias", make_one_sided_bias, "8 buckets");
    expect_printed("GaussianWindow", make_gaussian_window, "2 heads, learned");
    expect_printed("GaussianWindow", make_fixed_window, "2 heads");
    expect_printed("Conv2d", make_conv2d_layer, "3 x 2, bias");
    expect_printed("Conv2d", make_plain_conv2d, "3 x 2");
    expect_printed("RelativeScoring", make_relative_scoring, "reach 4, values");
    expect_printed("RelativeScoring", make_scoring_of_keys, "reach 4");
}

/* --- bad numbers --- */

static rapt_transformer_config with_dropout(double dropout)
{
    rapt_transformer_config config = transformer;
    config.dropout = dropout;
    return config;
}

static rapt_scoring *bad_scoring(int64_t size, void *context)
{
    (void)context;
    return rapt_bilinear_scoring_new(size, -1);
}

/* Each fails after something was drawn, or would have been. */
MAKER(bad_linear, rapt_linear_new(-1, 2, RAPT_BIAS))
MAKER(bad_embedding, rapt_embedding_new(3, -2))
MAKER(bad_gru, rapt_gru_new(2, 3, 2, -0.1))
MAKER(bad_lstm, rapt_lstm_new(2, 3, 0, 0))
MAKER(bad_additive, rapt_additive_attention_new(2, 3, 4, 1.5))
MAKER(bad_bahdanau_encoder, rapt_bahdanau_encoder_new(&(rapt_bahdanau_config){5, 3, 4, 2, .dropout = 2}))
MAKER(bad_bahdanau_decoder, rapt_bahdanau_decoder_new(&(rapt_bahdanau_config){5, 3, 4, 1001, .dropout = 0.1}))
MAKER(bad_learned, rapt_learned_positions_new(3, 4, NAN))
MAKER(bad_feed_forward, rapt_feed_forward_new(&(rapt_feed_forward_config){.in = 2, .inner = 3, .out = -4}))
MAKER(bad_multi_head,
      rapt_multi_head_attention_new(&(rapt_multi_head_attention_config){.hidden = 4, .heads = 2, .dropout = NAN}))
MAKER(bad_multi_head_pooling, rapt_multi_head_attention_new(&(rapt_multi_head_attention_config){
                                  .hidden = 4, .heads = 2, .output_size = INT64_MAX / 2, .rotary = rapt_rotary_new()}))
MAKER(bad_gpt, rapt_gpt_new(&(rapt_gpt_config){.vocabulary = 5, .context = 4, .hidden = 4, .layers = 2, .heads = 3}))
MAKER(bad_gpt_dropout,
      rapt_gpt_new(
          &(rapt_gpt_config){.vocabulary = 5, .context = 4, .hidden = 4, .layers = 2, .heads = 2, .dropout = -1}))

static void *make_bad_transformer(void)
{
    const rapt_transformer_config config = with_dropout(1.1);
    return rapt_transformer_new(&config);
}

static void *make_transformer_without_decoder(void)
{
    rapt_transformer_config config = transformer;
    config.decoder_layers = 0;
    return rapt_transformer_new(&config);
}

static void *make_transformer_with_bad_scoring(void)
{
    rapt_transformer_config config = transformer;
    config.scoring = bad_scoring;
    return rapt_transformer_new(&config);
}

Test(every_constructor, of_bad_numbers_leaves_the_generator_where_it_was)
{
    void *(*const makers[])(void) = {make_bad_linear,
                                     make_bad_embedding,
                                     make_bad_gru,
                                     make_bad_lstm,
                                     make_bad_additive,
                                     make_bad_bahdanau_encoder,
                                     make_bad_bahdanau_decoder,
                                     make_bad_learned,
                                     make_bad_feed_forward,
                                     make_bad_multi_head,
                                     make_bad_multi_head_pooling,
                                     make_bad_gpt,
                                     make_bad_gpt_dropout,
                                     make_bad_transformer,
                                     make_transformer_without_decoder,
                                     make_transformer_with_bad_scoring};
    const int64_t before = live_bytes();
    const rapt_random_state random = {.seed = 3, .offset = 17};
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        rapt_random_set_state(random);
        cr_expect_null(makers[i]());
        cr_expect_not_null(rapt_error(), "number %zu says nothing", i);
        rapt_clear_error();
        cr_expect(same_generator(rapt_random_get_state(), random), "number %zu moved the generator", i);
        cr_expect_eq(live_bytes(), before, "number %zu leaks", i);
    }
}
