/* A call that fails draws nothing: the thread's generator is as it was, wherever the failure came. */
#include "modules.h"

#include <rapt/optim.h>

typedef rapt_tensor *forward_function(void *layer, rapt_tensor *x);

static bool same_state(rapt_random_state a, rapt_random_state b)
{
    return a.seed == b.seed && a.offset == b.offset;
}

/* Lets every block that the call asks for be the first that there is not. */
static void check(const char *name, forward_function *forward, void *layer, rapt_tensor *x)
{
    rapt_seed(9);
    const rapt_random_state before = rapt_random_get_state();
    bool done = false;
    for (int64_t blocks = 0; !done && blocks < 3000; blocks++) {
        RAPT_SCOPE;
        rapt_memory_fail_after(blocks);
        done = forward(layer, x) != NULL;
        rapt_memory_fail_after(-1);
        cr_expect(done || same_state(rapt_random_get_state(), before), "%s without block %lld", name,
                  (long long)blocks);
        cr_expect(done || rapt_error(), "%s without block %lld", name, (long long)blocks);
        rapt_clear_error();
    }
    cr_expect(done, "%s never succeeds", name);
    cr_expect_not(same_state(rapt_random_get_state(), before), "%s draws", name);
}

static rapt_tensor *of_drop(void *layer, rapt_tensor *x)
{
    (void)layer;
    return rapt_drop(rapt_add(x, x), 0.5);
}

static rapt_tensor *of_module(void *layer, rapt_tensor *x)
{
    return rapt_module_forward(layer, x);
}

static rapt_tensor *of_attention(void *layer, rapt_tensor *x)
{
    return rapt_attention_forward(layer, x, x, x, RAPT_MASK(.causal = true));
}

static rapt_tensor *of_heads(void *layer, rapt_tensor *x)
{
    return rapt_multi_head_attention_forward(layer, x, x, x, NULL, NULL);
}

static rapt_tensor *of_gru(void *layer, rapt_tensor *x)
{
    rapt_tensor *last;
    return rapt_gru_forward(layer, x, NULL, &last);
}

static rapt_tensor *of_lstm(void *layer, rapt_tensor *x)
{
    rapt_tensor *hidden, *cell;
    return rapt_lstm_forward(layer, x, NULL, NULL, &hidden, &cell);
}

static rapt_tensor *of_padded_gru(void *layer, rapt_tensor *x)
{
    rapt_tensor *last, *lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(3), (int64_t[]){2, 1, 2});
    return rapt_gru_forward_padded(layer, x, lengths, NULL, &last);
}

static rapt_tensor *of_padded_lstm(void *layer, rapt_tensor *x)
{
    rapt_tensor *hidden, *cell, *lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(3), (int64_t[]){2, 1, 2});
    return rapt_lstm_forward_padded(layer, x, lengths, NULL, NULL, &hidden, &cell);
}

static rapt_tensor *of_transformer(void *layer, rapt_tensor *x)
{
    return rapt_transformer_forward(layer, x, x, NULL, RAPT_MASK(.causal = true), NULL);
}

static rapt_tensor *of_gpt(void *layer, rapt_tensor *tokens)
{
    return rapt_gpt_forward(layer, tokens, NULL);
}

static rapt_tensor *of_sample(void *how, rapt_tensor *logits)
{
    return rapt_sample(logits, how);
}

Test(draws, a_forward_without_memory)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_require_gradient(rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 4)));
    rapt_dropout *dropout = rapt_dropout_new(0.5);
    rapt_attention *dot = rapt_dot_product_attention_new(0.5), *plain = rapt_dot_product_attention_new(0.5),
                   *additive = rapt_additive_attention_new(4, 4, 6, 0.5);
    plain->plain = true;
    rapt_multi_head_attention *heads = rapt_multi_head_attention_new(
        &(rapt_multi_head_attention_config){.hidden = 4, .heads = 2, .bias = true, .dropout = 0.5});
    rapt_gru *gru = rapt_gru_new(4, 4, 2, 0.5);
    rapt_lstm *lstm = rapt_lstm_new(4, 4, 2, 0.5);
    rapt_sinusoidal_positions *positions = rapt_sinusoidal_positions_new(4, 0.5);
    rapt_transformer *transformer = rapt_transformer_new(&(rapt_transformer_config){.hidden = 4,
                                                                                    .heads = 2,
                                                                                    .feed_forward = 8,
                                                                                    .encoder_layers = 1,
                                                                                    .decoder_layers = 1,
                                                                                    .dropout = 0.5,
                                                                                    .attention_dropout = 0.5});
    rapt_gpt *gpt = rapt_gpt_new(
        &(rapt_gpt_config){.vocabulary = 7, .context = 4, .hidden = 4, .layers = 1, .heads = 2, .dropout = 0.5});
    cr_assert(dropout && dot && plain && additive && heads && gru && lstm && positions && transformer && gpt, "%s",
              rapt_error());
    rapt_tensor *tokens = rapt_from(RAPT_INT64, RAPT_SHAPE(1, 3), (int64_t[]){1, 2, 3});
    check("drop", of_drop, NULL, x);
    check("dropout", of_module, dropout, x);
    check("attention", of_attention, dot, x);
    check("plain attention", of_attention, plain, x);
    check("additive attention", of_attention, additive, x);
    check("multi-head attention", of_heads, heads, x);
    check("gru", of_gru, gru, x);
    check("lstm", of_lstm, lstm, x);
    check("padded gru", of_padded_gru, gru, x);
    check("padded lstm", of_padded_lstm, lstm, x);
    check("positions", of_module, positions, x);
    check("transformer", of_transformer, transformer, x);
    check("gpt", of_gpt, gpt, tokens);
    rapt_generation how = {.temperature = 1, .top_k = 2};
    check("sample", of_sample, &how, rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(5, 7)));
    rapt_module *modules[] = {&dropout->module,     &dot->module,       &plain->module,      &additive->module,
                              &heads->module,       (rapt_module *)gru, (rapt_module *)lstm, &positions->module,
                              &transformer->module, &gpt->module};
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) rapt_module_free(modules[i]);
    expect_no_error();
}

static rapt_tensor *draws_and_fails(rapt_call *call)
{
    (void)call;
    rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(10));
    return NULL;
}

Test(draws, bad_input)
{
    RAPT_SCOPE;
    static const rapt_op failing = {.name = "failing", .forward = draws_and_fails};
    rapt_seed(9);
    const rapt_random_state before = rapt_random_get_state();
    rapt_tensor *integers = rapt_ones(RAPT_INT64, RAPT_SHAPE(3)),
                *nothing = rapt_full(RAPT_FLOAT32, RAPT_SHAPE(1, 3), NAN);
    rapt_generation how = {.temperature = 1};
    cr_expect_null(rapt_drop(integers, 0.5));
    expect_error(RAPT_ERROR_DTYPE, "drop: not defined for int64");
    cr_expect_null(rapt_sample(nothing, &how));
    expect_error(RAPT_ERROR_VALUE, "row 0 of the logits is no distribution");
    cr_expect_null(RAPT_APPLY(&failing, NULL, integers));
    expect_error(RAPT_ERROR_VALUE, "failing: its forward failed without a reason");
    cr_expect(same_state(rapt_random_get_state(), before));
}

static rapt_tensor *tries_and_does_without(rapt_tensor *const *inputs, void *context)
{
    (void)context;
    if (!rapt_reshape(inputs[0], RAPT_SHAPE(7, -1))) rapt_clear_error();
    return rapt_drop(inputs[0], 0.5);
}

static rapt_tensor *trying_forward(rapt_module *module, rapt_tensor *x)
{
    return tries_and_does_without(&x, module);
}

/* What meets an error, clears it and succeeds has drawn, and draws other numbers the next time. */
Test(draws, an_error_that_was_cleared_undoes_nothing)
{
    static const rapt_module_class trying = {.name = "Trying", .forward = trying_forward};
    RAPT_SCOPE;
    rapt_tensor *x = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(16)));
    rapt_module *module = rapt_module_finish(rapt_module_new(sizeof *module, &trying));
    for (int way = 0; way < 2; way++) {
        rapt_seed(9);
        const rapt_random_state before = rapt_random_get_state();
        cr_assert(way ? rapt_module_forward(module, x) : rapt_recompute(tries_and_does_without, 1, &x, NULL, NULL),
                  "%s", rapt_error());
        expect_no_error();
        cr_expect_not(same_state(rapt_random_get_state(), before), "way %d", way);
    }
    rapt_module_free(module);
}
