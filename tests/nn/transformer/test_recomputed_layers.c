/* Transformers whose layers are computed again in backward: the same weights after training, in less memory. */
#include "../../gpt.h"

#include <rapt/optim.h>

enum { steps = 50 };

static bool add_bytes(const char *name, rapt_tensor *parameter, void *hash)
{
    (void)name;
    const unsigned char *bytes = rapt_data(parameter);
    for (int64_t i = 0; i < rapt_count(parameter) * (int64_t)sizeof(float); i++)
        *(uint64_t *)hash = (*(uint64_t *)hash ^ bytes[i]) * UINT64_C(1099511628211);
    return true;
}

static uint64_t hash_of(const rapt_module *module)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    cr_assert(rapt_module_visit(module, RAPT_PARAMETERS, add_bytes, &hash));
    return hash;
}

static rapt_tensor *gpt_loss(rapt_module *module)
{
    rapt_tensor *tokens = random_tokens(3, 8), *targets = random_tokens(3, 8);
    return rapt_gpt_loss((rapt_gpt *)module, tokens, targets, NULL);
}

static rapt_tensor *transformer_loss(rapt_module *module)
{
    rapt_tensor *source = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, 5, 8));
    rapt_tensor *target = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, 4, 8));
    rapt_mask padding = {.valid_lengths = lengths_of(5, 2)}, causal = {.causal = true};
    rapt_tensor *y = rapt_transformer_forward((rapt_transformer *)module, source, target, &padding, &causal, &padding);
    return rapt_mse_loss(y, target, RAPT_REDUCE_MEAN);
}

static uint64_t train(rapt_module *module, rapt_tensor *(*loss)(rapt_module *))
{
    cr_assert(module, "%s", rapt_error());
    rapt_optimizer *adam = rapt_adam_new(module, &(rapt_adam_config){.learning_rate = 1e-2});
    for (int step = 0; step < steps; step++) {
        RAPT_SCOPE;
        rapt_backward(loss(module));
        rapt_optimizer_step(adam);
    }
    expect_no_error();
    const uint64_t hash = hash_of(module);
    rapt_optimizer_free(adam);
    rapt_module_free(module);
    return hash;
}

static uint64_t train_gpt(rapt_gpt_positions positions, bool recompute)
{
    rapt_gpt_config c = tiny;
    c.dropout = 0.2;
    c.positions = positions;
    c.recompute = recompute;
    rapt_seed(1);
    return train((rapt_module *)rapt_gpt_new(&c), gpt_loss);
}

Test(recomputed_layers, a_gpt_learns_the_same_bits)
{
    for (int positions = 0; positions < 4; positions++)
        cr_expect_eq(train_gpt((rapt_gpt_positions)positions, false), train_gpt((rapt_gpt_positions)positions, true),
                     "positions %d", positions);
}

static uint64_t train_transformer(bool norm_first, bool recompute)
{
    config c = small;
    c.norm_first = norm_first;
    c.dropout = c.attention_dropout = c.feed_forward_dropout = 0.1;
    c.recompute = recompute;
    rapt_seed(2);
    return train((rapt_module *)rapt_transformer_new(&c), transformer_loss);
}

Test(recomputed_layers, a_transformer_learns_the_same_bits)
{
    for (int norm_first = 0; norm_first < 2; norm_first++)
        cr_expect_eq(train_transformer(norm_first, false), train_transformer(norm_first, true));
}

static int64_t peak_of(bool recompute)
{
    RAPT_SCOPE;
    rapt_gpt_config c = {.vocabulary = 50, .context = 256, .hidden = 32, .layers = 12, .heads = 2, .bias = true};
    c.recompute = recompute;
    rapt_gpt *gpt = rapt_gpt_new(&c);
    rapt_tensor *tokens = rapt_randint(0, 50, RAPT_SHAPE(4, 256));
    rapt_memory_reset_peak();
    cr_assert(rapt_backward(rapt_gpt_loss(gpt, tokens, tokens, NULL)), "%s", rapt_error());
    const int64_t peak = rapt_memory_get_statistics().peak_bytes;
    rapt_module_free(&gpt->module);
    return peak;
}

Test(recomputed_layers, need_a_fraction_of_the_memory)
{
    const int64_t plain = peak_of(false), recomputed = peak_of(true);
    cr_expect_lt((double)recomputed, 0.4 * (double)plain, "%lld bytes of %lld", (long long)recomputed,
                 (long long)plain);
}

static void see_even(const rapt_mask_tile *tile, uint8_t *seen)
{
    const int64_t *numbers = tile->captured[0];
    for (int64_t n = 0; n < tile->rows * tile->columns; n++)
        seen[n] = numbers[tile->first_key + n % tile->columns] % 2 == tile->numbers[0];
}

Test(recomputed_layers, live_until_backward_has_used_them)
{
    const int64_t before = live_bytes();
    {
        RAPT_SCOPE;
        config c = small;
        c.recompute = true;
        rapt_encoder_layer *layer = in_float64(rapt_encoder_layer_new(&c));
        rapt_tensor *x = rapt_require_gradient(random_input(2, 3, 8)), *loss;
        {
            RAPT_SCOPE;
            rapt_tensor *bias = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(3, 3));
            rapt_tensor *numbers = rapt_from(RAPT_INT64, RAPT_SHAPE(3), (int64_t[]){1, 4, 3});
            rapt_mask mask = {.bias = bias,
                              .valid_lengths = lengths_of(3, 2),
                              .rule = {.see = see_even, .numbers = {1}, .captured = {numbers}}};
            loss = rapt_keep(rapt_sum(rapt_encoder_layer_forward(layer, x, &mask, NULL), RAPT_ALL_AXES, false));
            memset(&mask, 0xff, sizeof mask);
        }
        rapt_module_free(&layer->module);
        cr_expect(rapt_backward(loss), "%s", rapt_error());
        cr_expect_not_null(rapt_gradient(x));
    }
    cr_expect_eq(live_bytes(), before);
}

/* The layer keeps weights whose graph holds the layer. */
Test(recomputed_layers, that_keep_weights_are_freed_without_a_backward)
{
    for (int differentiates = 0; differentiates < 2; differentiates++) {
        const int64_t before = live_bytes();
        {
            RAPT_SCOPE;
            config c = small;
            c.recompute = true;
            rapt_encoder_layer *layer = in_float64(rapt_encoder_layer_new(&c));
            rapt_attention_keep_weights(&layer->module, true);
            rapt_tensor *x = rapt_require_gradient(random_input(2, 3, 8));
            rapt_tensor *loss = rapt_sum(rapt_encoder_layer_forward(layer, x, NULL, NULL), RAPT_ALL_AXES, false);
            cr_expect_not_null(layer->self_attn->pooling->weights);
            rapt_module_free(&layer->module);
            if (differentiates) cr_expect(rapt_backward(loss), "%s", rapt_error());
        }
        cr_expect_eq(live_bytes(), before);
    }
}

Test(recomputed_layers, keep_the_weights_of_the_last_call)
{
    RAPT_SCOPE;
    config c = small;
    c.recompute = true;
    rapt_encoder_layer *layer = in_float64(rapt_encoder_layer_new(&c));
    rapt_attention_keep_weights(&layer->module, true);
    rapt_tensor *first = rapt_encoder_layer_forward(layer, random_input(1, 3, 8), NULL, NULL);
    rapt_tensor *second = rapt_encoder_layer_forward(layer, random_input(1, 5, 8), NULL, NULL);
    cr_expect(second && rapt_backward(rapt_sum(first, RAPT_ALL_AXES, false)), "%s", rapt_error());
    cr_expect_eq(rapt_size(layer->self_attn->pooling->weights, -1), 5);
    rapt_module_free(&layer->module);
}

static rapt_tensor *run_layer(rapt_tensor *const *inputs, void *layer)
{
    return rapt_decoder_layer_forward(layer, inputs[0], inputs[1], RAPT_MASK(.causal = true), NULL, NULL);
}

Test(recomputed_layers, derivatives_of_both_orders)
{
    RAPT_SCOPE;
    rapt_seed(3);
    config c = small;
    c.recompute = true;
    c.dropout = c.attention_dropout = 0.2;
    rapt_decoder_layer *layer = in_float64(rapt_decoder_layer_new(&c));
    rapt_tensor *inputs[] = {rapt_require_gradient(random_input(2, 3, 8)),
                             rapt_require_gradient(random_input(2, 2, 8))};
    for (int second = 0; second < 2; second++) {
        const rapt_gradcheck_options options = {.context = layer, .second_order = second, .random_projection = second};
        const rapt_gradcheck_result r = rapt_module_gradcheck(&layer->module, run_layer, 2, inputs, &options);
        cr_expect(r.passed, "%s", r.message);
    }
    rapt_module_free(&layer->module);
}

static rapt_encoder_layer *layer_new(bool keep_weights)
{
    const rapt_transformer_config c = {.hidden = 4,
                                       .heads = 2,
                                       .feed_forward = 6,
                                       .encoder_layers = 1,
                                       .recompute = true};
    rapt_encoder_layer *layer = rapt_encoder_layer_new(&c);
    cr_assert_not_null(layer, "%s", rapt_error());
    rapt_attention_keep_weights(&layer->module, keep_weights);
    return layer;
}

/* Gives its parameters gradients that are part of a graph, which needs the layer. */
static void differentiate(rapt_encoder_layer *layer)
{
    rapt_tensor *y = rapt_encoder_layer_forward(layer, rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 4)), NULL, NULL),
                *loss = rapt_sum(rapt_mul(y, y), RAPT_ALL_AXES, false);
    cr_assert(rapt_backward_from(1, &loss, NULL, RAPT_CREATE_GRAPH), "%s", rapt_error());
}

static const char some_weight[] = "linear1.weight";

Test(recomputed_layers, go_though_their_gradients_are_part_of_a_graph)
{
    const int64_t before = live_bytes();
    for (int keep_weights = 0; keep_weights < 2; keep_weights++) {
        RAPT_SCOPE;
        rapt_encoder_layer *layer = layer_new(keep_weights);
        differentiate(layer);
        rapt_module_free(&layer->module);
    }
    cr_expect_eq(live_bytes(), before, "of one layer");
    for (int steps_before = 0; steps_before < 2; steps_before++) {
        RAPT_SCOPE;
        rapt_gpt_config c = tiny;
        c.recompute = true;
        rapt_gpt *gpt = rapt_gpt_new(&c);
        rapt_optimizer *adam = rapt_adam_new(&gpt->module, NULL);
        rapt_tensor *loss = gpt_loss(&gpt->module);
        cr_assert(rapt_backward_from(1, &loss, NULL, RAPT_CREATE_GRAPH), "%s", rapt_error());
        if (steps_before) cr_assert(rapt_optimizer_step(adam), "%s", rapt_error());
        rapt_optimizer_free(adam);
        rapt_module_free(&gpt->module);
    }
    cr_expect_eq(live_bytes(), before, "of a whole model");
    expect_no_error();
}

/* What the program has a share of is there as before: a gradient, and with a parameter its gradient. */
Test(recomputed_layers, leave_gradients_to_who_has_them)
{
    const int64_t before = live_bytes();
    {
        RAPT_SCOPE;
        rapt_encoder_layer *layer = layer_new(false);
        rapt_tensor *weight = rapt_retain(rapt_module_find(&layer->module, some_weight));
        cr_assert_not_null(weight);
        differentiate(layer);
        rapt_module_free(&layer->module);
        cr_expect_not_null(rapt_gradient(weight));
        rapt_clear_gradient(weight);
        rapt_release(weight);
    }
    cr_expect_eq(live_bytes(), before, "of a parameter that was held");
    {
        RAPT_SCOPE;
        rapt_encoder_layer *layer = layer_new(false);
        rapt_tensor *x = rapt_require_gradient(rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 4))), *slope,
                    *y = rapt_encoder_layer_forward(layer, x, NULL, NULL),
                    *loss = rapt_sum(rapt_mul(y, y), RAPT_ALL_AXES, false);
        cr_assert(rapt_backward_from(1, &loss, NULL, RAPT_CREATE_GRAPH), "%s", rapt_error());
        rapt_tensor *gradient = rapt_retain(rapt_gradient(rapt_module_find(&layer->module, some_weight)));
        rapt_module_free(&layer->module);
        rapt_tensor *total = rapt_sum(rapt_mul(gradient, gradient), RAPT_ALL_AXES, false);
        cr_expect(rapt_gradients(1, &total, NULL, 1, &x, &slope, 0) && slope, "%s", rapt_error());
        rapt_release(gradient);
    }
    cr_expect_eq(live_bytes(), before, "of a gradient that was held");
    expect_no_error();
}
