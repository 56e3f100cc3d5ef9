/* Constructors that fail: bad members, bad names, no memory. */
#include "node.h"

/* A constructor in which one thing fails: it must give NULL, the first error, and free everything. */
static void expect_failed(rapt_module *node, rapt_error_code code, const char *part)
{
    cr_expect(node->failed);
    cr_expect_null(rapt_module_finish(node));
    expect_error(code, part);
}

Test(constructors, bad_members_fail_the_constructor)
{
    const int64_t before = live_bytes();
    char long_name[102] = "";
    memset(long_name, 'a', 101);
    const struct {
        const char *name;
        rapt_error_code code;
        const char *part;
    } bad[] = {{"", RAPT_ERROR_VALUE, "''"},
               {NULL, RAPT_ERROR_NULL, "name"},
               {"a.b", RAPT_ERROR_VALUE, "'a.b'"},
               {long_name, RAPT_ERROR_VALUE, "dot"},
               {"used", RAPT_ERROR_VALUE, "in use"}};
    for (int i = 0; i < 5; i++) {
        RAPT_SCOPE;
        freed = 0;
        rapt_module *node = node_new();
        rapt_module_add_child(node, "child", node_new());
        rapt_module_add_buffer(node, "used", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3)));
        if (i > 0) cr_expect_null(rapt_module_add_child(node, bad[i].name, node_new()), "owned and freed at once");
        cr_expect_eq(freed, i > 0);
        cr_expect_null(rapt_module_add_parameter(node, bad[i].name, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3))));
        expect_failed(node, bad[i].code, bad[i].part);
        cr_expect_eq(freed, 2 + (i > 0));
    }
    cr_expect_eq(live_bytes(), before);
}

Test(constructors, missing_members_fail_the_constructor)
{
    RAPT_SCOPE;
    rapt_module *node = node_new();
    cr_expect_null(rapt_module_add_parameter(node, "weight", NULL));
    expect_failed(node, RAPT_ERROR_NULL, "Node: member 'weight' is NULL");
    node = node_new();
    cr_expect_null(rapt_module_add_child(node, "part", NULL));
    expect_failed(node, RAPT_ERROR_NULL, "'part'");
    node = node_new();
    cr_expect_null(rapt_module_add_parameter(node, "weight", rapt_arange(RAPT_INT64, 0, 3, 1)));
    expect_failed(node, RAPT_ERROR_DTYPE, "int64");
    node = node_new();
    rapt_module_add_buffer(node, "scale", rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(-1)));
    expect_failed(node, RAPT_ERROR_SHAPE, "-1");
    cr_expect_eq(freed, 4);

    cr_expect_null(rapt_module_add_parameter(NULL, "weight", NULL));
    cr_expect_null(rapt_module_add_child(NULL, "part", node_new()));
    cr_expect_eq(freed, 5);
    cr_expect_null(rapt_module_finish(NULL));
    expect_no_error();
    cr_expect_null(rapt_module_new(sizeof(rapt_module), NULL));
    expect_error(RAPT_ERROR_VALUE, "class");
    cr_expect_null(rapt_module_new(sizeof(rapt_module) - 1, &node_kind));
    expect_error(RAPT_ERROR_VALUE, "at least");
}

/* --- every constructor of the folder nn --- */

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
MAKER(dropout, rapt_dropout_new(0.5))
MAKER(activation, rapt_activation_new("relu", rapt_relu))
MAKER(gru, rapt_gru_new(2, 3, 2, 0.1))
MAKER(lstm, rapt_lstm_new(2, 3, 2, 0.1))
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
MAKER(kernel_scoring, rapt_kernel_scoring_new(RAPT_KERNEL_GAUSSIAN, 1, true))
MAKER(bahdanau_encoder, rapt_bahdanau_encoder_new(&bahdanau))
MAKER(bahdanau_decoder, rapt_bahdanau_decoder_new(&bahdanau))
MAKER(sinusoidal, rapt_sinusoidal_positions_new(4, 0.1))
MAKER(learned, rapt_learned_positions_new(3, 4, 0.1))
MAKER(rotary, rapt_rotary_new())
MAKER(alibi, rapt_alibi_new(2))
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

static void *make_attention(void)
{
    rapt_module *node = node_new();
    return around(node, rapt_attention_new(rapt_bilinear_scoring_new(2, 3), 0.1));
}

static void *make_sequential(void)
{
    rapt_module *node = node_new();
    return around(node, RAPT_SEQUENTIAL(make_linear(), make_activation(), make_linear(), make_dropout()));
}

static void *make_multi_head(void)
{
    rapt_module *node = node_new();
    return around(node,
                  rapt_multi_head_attention_new(&(rapt_multi_head_attention_config){
                      .hidden = 4, .heads = 2, .bias = true, .pooling = rapt_additive_attention_new(2, 2, 3, 0)}));
}

static void *make_multi_head_apart(void)
{
    return rapt_multi_head_attention_new(&(rapt_multi_head_attention_config){
        .hidden = 4, .heads = 2, .groups = 1, .key_size = 3, .bias = true, .rotary = rapt_rotary_new()});
}

Test(constructors, without_memory_they_give_an_error_and_leave_nothing)
{
    const struct {
        const char *name;
        void *(*make)(void);
        int tensors;
    } layers[] = {{"Linear", make_linear, 2},
                  {"Embedding", make_embedding, 1},
                  {"LayerNorm", make_layer_norm, 2},
                  {"Dropout", make_dropout, 0},
                  {"Activation", make_activation, 0},
                  {"Sequential", make_sequential, 4},
                  {"GRU", make_gru, 8},
                  {"LSTM", make_lstm, 8},
                  {"attention", make_attention, 1},
                  {"dot product", make_dot_product, 0},
                  {"additive", make_additive, 3},
                  {"dot product's scores", make_dot_scoring, 0},
                  {"scaled dot product's scores", make_scaled_scoring, 0},
                  {"padded dot product's scores", make_padded_scoring, 0},
                  {"bilinear scores", make_bilinear_scoring, 1},
                  {"additive scores", make_additive_scoring, 3},
                  {"cosine scores", make_cosine_scoring, 1},
                  {"Gaussian scores", make_gaussian_scoring, 1},
                  {"relative scores", make_relative_scoring, 2},
                  {"kernel's scores", make_kernel_scoring, 1},
                  {"Bahdanau's encoder", make_bahdanau_encoder, 9},
                  {"Bahdanau's decoder", make_bahdanau_decoder, 14},
                  {"multi-head", make_multi_head, 7},
                  {"multi-head, apart", make_multi_head_apart, 5},
                  {"sinusoidal positions", make_sinusoidal, 0},
                  {"learned positions", make_learned, 1},
                  {"rotary positions", make_rotary, 0},
                  {"ALiBi", make_alibi, 0},
                  {"relative bias", make_relative_bias, 1},
                  {"feed-forward", make_feed_forward, 4},
                  {"add and norm", make_add_norm, 2},
                  {"encoder layer", make_encoder_layer, 14},
                  {"decoder layer", make_decoder_layer, 20},
                  {"encoder", make_encoder, 30},
                  {"decoder", make_decoder, 22},
                  {"Transformer", make_transformer, 52},
                  {"GPT", make_gpt, 28}};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        rapt_random_set_state((rapt_random_state){.seed = 3, .offset = 17});
        int64_t failures = expect_clean_failures(layers[i].name, layers[i].make);
        cr_expect(failures >= layers[i].tensors, "%s: %lld failures", layers[i].name, (long long)failures);
    }
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

Test(constructors, bad_numbers_leave_the_generator_where_it_was)
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

/* What was finished once is no constructor's work any more: numbers drawn since stay drawn. */
Test(constructors, a_later_failure_does_not_turn_the_generator_back)
{
    RAPT_SCOPE;
    rapt_module *modules[] = {make_linear(), make_dropout(), make_rotary(), make_activation(), make_alibi()};
    for (int i = 0; i < 5; i++) {
        rapt_rand(RAPT_FLOAT32, RAPT_SHAPE(100));
        const rapt_random_state random = rapt_random_get_state();
        rapt_module_add_parameter(modules[i], "missing", NULL);
        expect_error(RAPT_ERROR_NULL, "missing");
        cr_expect_null(rapt_module_finish(modules[i]));
        cr_expect(same_generator(rapt_random_get_state(), random), "module %d", i);
    }
}
