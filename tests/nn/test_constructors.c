/* Constructors that fail: bad members, bad names, bad sizes and options. */
#include "node.h"
#include "refused.h"

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

/* What was finished once is no constructor's work any more: numbers drawn since stay drawn. */
Test(constructors, a_later_failure_does_not_turn_the_generator_back)
{
    RAPT_SCOPE;
    rapt_module *modules[] = {(rapt_module *)rapt_linear_new(3, 2, RAPT_BIAS), (rapt_module *)rapt_dropout_new(0.5),
                              (rapt_module *)rapt_rotary_new(), rapt_activation_new("relu", rapt_relu),
                              (rapt_module *)rapt_alibi_new(2)};
    for (int i = 0; i < 5; i++) {
        rapt_rand(RAPT_FLOAT32, RAPT_SHAPE(100));
        const rapt_random_state random = rapt_random_get_state();
        rapt_module_add_parameter(modules[i], "missing", NULL);
        expect_error(RAPT_ERROR_NULL, "missing");
        cr_expect_null(rapt_module_finish(modules[i]));
        cr_expect(same_generator(rapt_random_get_state(), random), "module %d", i);
    }
}

/* The layer that was asked for is named, not the op that makes its parameters. */
Test(constructors, sizes_below_0)
{
    const int64_t before = live_bytes(), window[] = {3, -3};
    rapt_feed_forward_config in = {.in = -1, .inner = 2, .out = 2}, inner = {.in = 2, .inner = -2, .out = 2},
                             out = {.in = 2, .inner = 2, .out = -3};
    BAD_VALUE(rapt_linear_new(-1, 2, RAPT_BIAS), "Linear: input size -1; 0 or more expected");
    BAD_VALUE(rapt_linear_new(1, -2, RAPT_BIAS), "Linear: output size -2; 0 or more expected");
    BAD_VALUE(rapt_embedding_new(-1, 2), "Embedding: count -1; 0 or more expected");
    BAD_VALUE(rapt_embedding_new(1, -2), "Embedding: size -2; 0 or more expected");
    BAD_VALUE(rapt_layer_norm_new(-1, RAPT_BIAS), "LayerNorm: size -1; 0 or more expected");
    BAD_VALUE(rapt_rms_norm_new(-1), "RMSNorm: size -1; 0 or more expected");
    BAD_VALUE(rapt_batch_norm_new(-1), "BatchNorm: size -1; 0 or more expected");
    BAD_VALUE(rapt_conv1d_layer_new(-1, 2, 3, NULL, 0), "Conv1d: input channels -1; 0 or more expected");
    BAD_VALUE(rapt_conv1d_layer_new(1, -2, 3, NULL, 0), "Conv1d: output channels -2; 0 or more expected");
    BAD_VALUE(rapt_conv2d_layer_new(1, 2, window, NULL, 0), "Conv2d: size -3, stride 1, padding 0");
    BAD_VALUE(rapt_learned_positions_new(-1, 2, 0), "LearnedPositions: count -1; 0 or more expected");
    BAD_VALUE(rapt_learned_positions_new(1, -2, 0), "LearnedPositions: size -2; 0 or more expected");
    BAD_VALUE(rapt_add_norm_new(-1, RAPT_BIAS, 0), "AddNorm: size -1; 0 or more expected");
    BAD_VALUE(rapt_feed_forward_new(&in), "FeedForward: input size -1; 0 or more expected");
    BAD_VALUE(rapt_feed_forward_new(&inner), "FeedForward: inner size -2; 0 or more expected");
    BAD_VALUE(rapt_feed_forward_new(&out), "FeedForward: output size -3; 0 or more expected");
    cr_expect_eq(live_bytes(), before);
}

/* What is too large is told how large it may be. */
Test(constructors, sizes_above_their_limit)
{
    rapt_gpt_config gpt = {.vocabulary = 5, .context = INT64_MAX, .hidden = 4, .layers = 1, .heads = 1};
    BAD_VALUE(rapt_gpt_new(&gpt), "GPT: a context of 9223372036854775807; 1 to 1152921504606846975 expected");
    BAD_VALUE(rapt_gru_new(2, INT64_MAX, 1, 0), "hidden sizes of 1 to 3074457345618258602");
    BAD_VALUE(rapt_lstm_new(2, INT64_MAX, 1, 0), "hidden sizes of 1 to 2305843009213693951");
    BAD_VALUE(
        rapt_bahdanau_decoder_new(&(rapt_bahdanau_config){5, INT64_MAX, 4, 1, .dropout = 0}),
        "embedding 9223372036854775807, hidden 4, 1 layers; 1 or more of each, embedding and hidden together up to "
        "9223372036854775807, expected");
}

Test(constructors, options_that_there_are_not)
{
    const int64_t before = live_bytes(), window[] = {3, 3};
    const rapt_parameter_names none = (rapt_parameter_names)77;
    const rapt_transformer_config config =
        {.hidden = 4, .heads = 1, .feed_forward = 4, .encoder_layers = 1, .decoder_layers = 1, .names = none};
    const rapt_multi_head_attention_config heads = {.hidden = 4,
                                                    .heads = 1,
                                                    .names = none,
                                                    .rotary = rapt_rotary_new()};
    BAD_VALUE(rapt_multi_head_attention_new(&heads), "MultiHeadAttention: names 77 are none of rapt_parameter_names");
    BAD_VALUE(rapt_feed_forward_new(&(rapt_feed_forward_config){.in = 2, .inner = 2, .out = 2, .names = none}),
              "FeedForward: names 77 are none of rapt_parameter_names");
    BAD_VALUE(rapt_encoder_layer_new(&config), "EncoderLayer: names 77 are none of rapt_parameter_names");
    BAD_VALUE(rapt_decoder_layer_new(&config), "DecoderLayer: names 77 are none of rapt_parameter_names");
    BAD_VALUE(rapt_transformer_encoder_new(&config), "TransformerEncoder: names 77 are none of rapt_parameter_names");
    BAD_VALUE(rapt_transformer_decoder_new(&config), "TransformerDecoder: names 77 are none of rapt_parameter_names");
    BAD_VALUE(rapt_linear_new(2, 2, 77), "Linear: flags 77; RAPT_NO_BIAS or RAPT_BIAS expected");
    BAD_VALUE(rapt_layer_norm_new(2, 77), "LayerNorm: flags 77; RAPT_NO_BIAS or RAPT_BIAS expected");
    BAD_VALUE(rapt_add_norm_new(2, -1, 0), "AddNorm: flags -1; RAPT_NO_BIAS, RAPT_BIAS or RAPT_RMS_NORM expected");
    BAD_VALUE(rapt_conv1d_layer_new(2, 2, 3, NULL, 2), "Conv1d: flags 2; RAPT_NO_BIAS or RAPT_BIAS expected");
    BAD_VALUE(rapt_conv2d_layer_new(2, 2, window, NULL, 2), "Conv2d: flags 2; RAPT_NO_BIAS or RAPT_BIAS expected");
    cr_expect_eq(live_bytes(), before);
}
