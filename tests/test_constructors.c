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

static const rapt_bahdanau_config small = {.vocabulary = 5, .embedding = 3, .hidden = 4, .layers = 2, .dropout = 0.1};

static void *make_linear(void)
{
    return rapt_linear_new(3, 2, RAPT_BIAS);
}
static void *make_embedding(void)
{
    return rapt_embedding_new(3, 2);
}
static void *make_layer_norm(void)
{
    return rapt_layer_norm_new(4, RAPT_BIAS);
}
static void *make_dropout(void)
{
    return rapt_dropout_new(0.5);
}
static void *make_activation(void)
{
    return rapt_activation_new("relu", rapt_relu);
}
static void *make_sequential(void)
{
    return RAPT_SEQUENTIAL(make_linear(), make_activation(), make_linear(), make_dropout());
}
static void *make_gru(void)
{
    return rapt_gru_new(2, 3, 2, 0.1);
}
static void *make_lstm(void)
{
    return rapt_lstm_new(2, 3, 2, 0.1);
}
static void *make_dot_product(void)
{
    return rapt_dot_product_attention_new(0.1);
}
static void *make_additive(void)
{
    return rapt_additive_attention_new(2, 3, 4, 0.1);
}
static void *make_encoder(void)
{
    return rapt_bahdanau_encoder_new(&small);
}
static void *make_decoder(void)
{
    return rapt_bahdanau_decoder_new(&small);
}

static void *make_multi_head(void)
{
    return rapt_multi_head_attention_new(
        &(rapt_multi_head_attention_config){.hidden = 4,
                                            .heads = 2,
                                            .bias = true,
                                            .pooling = rapt_additive_attention_new(2, 2, 3, 0)});
}

static void *make_multi_head_apart(void)
{
    return rapt_multi_head_attention_new(&(rapt_multi_head_attention_config){
        .hidden = 4, .heads = 2, .groups = 1, .key_size = 3, .bias = true, .rotary = rapt_rotary_new()});
}
static void *make_sinusoidal(void)
{
    return rapt_sinusoidal_positions_new(4, 0.1);
}
static void *make_learned(void)
{
    return rapt_learned_positions_new(3, 4, 0.1);
}
static void *make_relative_bias(void)
{
    return rapt_relative_bias_new(2, 3);
}

Test(constructors, constructors_without_memory_give_an_error_and_leave_nothing)
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
                  {"dot product", make_dot_product, 0},
                  {"additive", make_additive, 3},
                  {"encoder", make_encoder, 9},
                  {"decoder", make_decoder, 14},
                  {"multi-head", make_multi_head, 7},
                  {"multi-head, apart", make_multi_head_apart, 5},
                  {"sinusoidal positions", make_sinusoidal, 0},
                  {"learned positions", make_learned, 1},
                  {"relative bias", make_relative_bias, 1}};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        int64_t failures = expect_clean_failures(layers[i].name, layers[i].make);
        cr_expect(failures >= layers[i].tensors, "%s: %lld failures", layers[i].name, (long long)failures);
    }
}
