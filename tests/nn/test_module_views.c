/* A module looked at: the summary of a run, and the graph with names. */
#include "../gpt.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <rapt/module_views.h>

#include "../text_stream.h"

static rapt_sequential *perceptron(void)
{
    return RAPT_SEQUENTIAL((rapt_module *)rapt_linear_new(2, 16, RAPT_BIAS), rapt_activation_new("Tanh", rapt_tanh),
                           (rapt_module *)rapt_dropout_new(0.5), (rapt_module *)rapt_linear_new(16, 1, RAPT_NO_BIAS));
}

static __attribute__((noinline)) char *summary(rapt_module *module, rapt_summary_function *function, int count,
                                               rapt_tensor *const *inputs, void *context)
{
    FILE *stream = open_text();
    cr_expect(rapt_module_summarize(module, stream, function, count, inputs, context), "%s", rapt_error());
    return close_text(stream);
}

static const char expected[] = "Sequential()  64 parameters, 256 bytes -> float32 [4, 1]\n"
                               "  0: Linear(2 -> 16, bias)  48 parameters, 192 bytes -> float32 [4, 16]\n"
                               "  1: Activation(Tanh)  0 parameters, 0 bytes -> float32 [4, 16]\n"
                               "  2: Dropout(0.5)  0 parameters, 0 bytes -> float32 [4, 16]\n"
                               "  3: Linear(16 -> 1)  16 parameters, 64 bytes -> float32 [4, 1]\n";

Test(module_views, a_summary_has_shapes_and_changes_nothing)
{
    RAPT_SCOPE;
    rapt_sequential *model = perceptron();
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(4, 2));
    const rapt_random_state before = rapt_random_get_state();
    char *text = summary(&model->module, NULL, 1, &x, NULL);
    const rapt_random_state after = rapt_random_get_state();
    cr_expect_str_eq(text, expected);
    cr_expect_eq(memcmp(&before, &after, sizeof before), 0);
    cr_expect(rapt_is_recording());
    free(text);
    rapt_module_free(&model->module);
    expect_no_error();
}

Test(module_views, a_summary_of_many_modules)
{
    enum { many = 200 };
    RAPT_SCOPE;
    rapt_module *layers[many];
    char line[80];
    for (int i = 0; i < many; i++) layers[i] = rapt_activation_new("Tanh", rapt_tanh);
    rapt_sequential *model = rapt_sequential_new(many, layers);
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(4, 2));
    char *text = summary(&model->module, NULL, 1, &x, NULL);
    for (int i = 0; i < many; i++) {
        snprintf(line, sizeof line, "  %d: Activation(Tanh)  0 parameters, 0 bytes -> float32 [4, 2]\n", i);
        cr_expect(strstr(text, line), "%d", i);
    }
    free(text);
    rapt_module_free(&model->module);
    expect_no_error();
}

Test(module_views, a_summary_says_where_no_op_ran)
{
    RAPT_SCOPE;
    rapt_module *dropout = (rapt_module *)rapt_dropout_new(0.5);
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(4, 2));
    rapt_module_train(dropout, false);
    char *text = summary(dropout, NULL, 1, &x, NULL);
    cr_expect_str_eq(text, "Dropout(0.5)  0 parameters, 0 bytes -> its input\n");
    free(text);
    rapt_module_free(dropout);
    expect_no_error();
}

static rapt_tensor *run_and_fail(rapt_tensor *const *inputs, void *module)
{
    return rapt_matmul(rapt_module_forward(module, inputs[0]), inputs[0]);
}

Test(module_views, a_summary_in_training_leaves_running_statistics_and_mode)
{
    RAPT_SCOPE;
    rapt_batch_norm *trained = rapt_batch_norm_new(2), *frozen = rapt_batch_norm_new(2);
    rapt_sequential *model = RAPT_SEQUENTIAL(&trained->module, &frozen->module);
    rapt_module_train(&frozen->module, false);
    rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(4, 2)), *y = rapt_batch_norm_forward(frozen, x);
    rapt_tensor *mean = rapt_clone(trained->running_mean), *variance = rapt_clone(trained->running_var);
    for (int fails = 0; fails < 2; fails++) {
        if (fails) {
            cr_expect_not(rapt_module_summarize(&model->module, stdout, run_and_fail, 1, &x, model));
            expect_error(RAPT_ERROR_SHAPE, "matmul");
        } else {
            free(summary(&model->module, NULL, 1, &x, NULL));
        }
        cr_expect(same_bits(trained->running_mean, mean) && same_bits(trained->running_var, variance));
        cr_expect_eq(rapt_item(trained->batches), 0);
        cr_expect(model->module.training && trained->module.training && !frozen->module.training);
    }
    cr_expect(rapt_backward(rapt_sum(y, RAPT_ALL_AXES, false)), "buffers that nothing changed count no change: %s",
              rapt_error());
    rapt_module_free(&model->module);
    expect_no_error();
}

static rapt_tensor *decode(rapt_tensor *const *inputs, void *gpt)
{
    return rapt_gpt_loss(gpt, inputs[0], inputs[1], NULL);
}

Test(module_views, a_summary_of_a_function_of_several_inputs)
{
    RAPT_SCOPE;
    rapt_gpt *gpt = drawn_gpt(&tiny);
    rapt_tensor *tokens = random_tokens(3, 5), *inputs[] = {tokens, tokens};
    char *text = summary(&gpt->module, decode, 2, inputs, gpt);
    cr_expect(strncmp(text, "GPT(", 4) == 0, "%s", text);
    cr_expect(strstr(text, "transformer.h.1.mlp: FeedForward("), "%s", text);
    cr_expect(strstr(text, " -> float64 [3, 5, 8]\n"), "%s", text);
    free(text);
    rapt_module_free(&gpt->module);
    expect_no_error();
}

static rapt_tensor *add_mean(rapt_module *module, rapt_tensor *x)
{
    rapt_tensor *y = rapt_add(x, rapt_scalar(RAPT_FLOAT32, 1));
    rapt_add_in_place(rapt_module_find(module, "mean"), rapt_mean(x, RAPT_AXES(0), false), 0.1);
    return y;
}

Test(module_views, a_summary_has_what_forward_gives_and_not_a_buffers_new_value)
{
    RAPT_SCOPE;
    static const rapt_module_class kind = {.name = "Mean", .forward = add_mean};
    rapt_module *layer = rapt_module_new(sizeof *layer, &kind);
    rapt_module_add_buffer(layer, "mean", rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(3)));
    rapt_module_finish(layer);
    rapt_sequential *model = RAPT_SEQUENTIAL(layer, (rapt_module *)rapt_dropout_new(0));
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(4, 3));
    char *text = summary(&model->module, NULL, 1, &x, NULL);
    cr_expect_str_eq(text, "Sequential()  0 parameters, 12 bytes -> float32 [4, 3]\n"
                           "  0: Mean()  0 parameters, 12 bytes -> float32 [4, 3]\n"
                           "  1: Dropout(0)  0 parameters, 0 bytes -> float32 [4, 3]\n");
    free(text);
    rapt_module_free(&model->module);
    expect_no_error();
}

/* The same layer twice, and one that is not run. */
static rapt_tensor *first_twice(rapt_tensor *const *inputs, void *module)
{
    rapt_tensor *y = rapt_module_forward(module, inputs[0]);
    return rapt_module_forward(module, y);
}

Test(module_views, a_summary_counts_calls)
{
    RAPT_SCOPE;
    rapt_module *linear = (rapt_module *)rapt_linear_new(3, 3, RAPT_NO_BIAS);
    rapt_sequential *model = RAPT_SEQUENTIAL(linear, (rapt_module *)rapt_linear_new(3, 2, RAPT_NO_BIAS));
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(4, 3));
    char *text = summary(&model->module, first_twice, 1, &x, linear);
    cr_expect_str_eq(text, "Sequential()  15 parameters, 60 bytes -> it did not run\n"
                           "  0: Linear(3 -> 3)  9 parameters, 36 bytes -> float32 [4, 3], 2 times\n"
                           "  1: Linear(3 -> 2)  6 parameters, 24 bytes -> it did not run\n");
    free(text);
    rapt_module_free(&model->module);
    expect_no_error();
}

static void *summarize(void *unused)
{
    (void)unused;
    for (int i = 0; i < 50; i++) {
        RAPT_SCOPE;
        rapt_sequential *model = perceptron();
        rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(4, 2));
        char *text = summary(&model->module, NULL, 1, &x, NULL);
        cr_expect_str_eq(text, expected);
        free(text);
        rapt_module_free(&model->module);
    }
    return NULL;
}

Test(module_views, summaries_in_several_threads)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, summarize, NULL);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
}

static rapt_tensor *evaluate(rapt_tensor *const *inputs, void *module)
{
    rapt_module_train(module, false);
    return inputs[0] ? rapt_module_forward(module, inputs[0]) : NULL;
}

Test(module_views, a_summary_leaves_each_module_its_mode)
{
    RAPT_SCOPE;
    rapt_module *dropout = (rapt_module *)rapt_dropout_new(0.5);
    rapt_sequential *model = RAPT_SEQUENTIAL((rapt_module *)rapt_linear_new(2, 16, RAPT_BIAS), dropout);
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(4, 2)), *nothing = NULL;
    for (int mode = 0; mode < 4; mode++) {
        rapt_module_train(&model->module, mode & 1);
        rapt_module_train(dropout, mode & 2);
        free(summary(&model->module, evaluate, 1, &x, model));
        cr_expect_eq(model->module.training, (mode & 1) != 0, "mode %d", mode);
        cr_expect_eq(dropout->training, (mode & 2) != 0, "mode %d", mode);
        cr_expect_not(rapt_module_summarize(&model->module, stdout, evaluate, 1, &nothing, model));
        expect_error(RAPT_ERROR_VALUE, "the function failed without a reason");
        cr_expect_eq(model->module.training, (mode & 1) != 0, "mode %d, after an error", mode);
        cr_expect_eq(dropout->training, (mode & 2) != 0, "mode %d, after an error", mode);
    }
    rapt_module_free(&model->module);
}

static __attribute__((noinline)) char *graph(const rapt_module *module, const rapt_tensor *tensor, bool dot)
{
    FILE *stream = open_text();
    cr_expect(rapt_module_print_graph(module, stream, tensor, dot), "%s", rapt_error());
    return close_text(stream);
}

Test(module_views, leaves_of_a_graph_have_their_names)
{
    RAPT_SCOPE;
    rapt_sequential *model = perceptron();
    rapt_tensor *x = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(4, 2)));
    FILE *nowhere = tmpfile();
    rapt_trace(nowhere);
    rapt_tensor *y = rapt_sequential_forward(model, x);
    rapt_trace(NULL);
    fclose(nowhere);
    char *text = graph(&model->module, y, true);
    cr_expect(strstr(text, "[label=\"0.weight\\nfloat32 [16, 2]\", shape=box];\n"), "%s", text);
    cr_expect(strstr(text, "[label=\"3.weight\\nfloat32 [1, 16]\", shape=box];\n"), "%s", text);
    cr_expect(strstr(text, "[label=\"leaf\\nfloat32 [4, 2]\", shape=box];\n"), "%s", text);
    cr_expect(strstr(text, "[label=\"tanh\\nfloat32 [4, 16]\\nSequential 1\"];\n"), "%s", text);
    free(text);
    text = graph(&model->module, y, false);
    cr_expect(strstr(text, " 0.bias float32 [16]\n"), "%s", text);
    free(text);
    rapt_module_free(&model->module);
    expect_no_error();
}

Test(module_views, bad_arguments)
{
    RAPT_SCOPE;
    rapt_sequential *model = perceptron();
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(4, 3));
    rapt_module *m = &model->module;
    cr_expect_not(rapt_module_summarize(NULL, stdout, NULL, 1, &x, NULL));
    expect_error(RAPT_ERROR_NULL, "module_summarize: module is NULL");
    cr_expect_not(rapt_module_summarize(m, NULL, NULL, 1, &x, NULL));
    expect_error(RAPT_ERROR_NULL, "module_summarize: stream is NULL");
    cr_expect_not(rapt_module_summarize(m, stdout, NULL, 2, &x, NULL));
    expect_error(RAPT_ERROR_VALUE, "module_summarize: 2 inputs; one, for rapt_module_forward, expected");
    cr_expect_not(rapt_module_summarize(m, stdout, NULL, 1, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "module_summarize: the list of inputs is NULL");
    cr_expect_not(rapt_module_summarize(m, stdout, NULL, 1, &x, NULL));
    expect_error(RAPT_ERROR_SHAPE, "affine");
    cr_expect_not(rapt_module_print_graph(NULL, stdout, x, false));
    expect_error(RAPT_ERROR_NULL, "module_print_graph: module is NULL");
    cr_expect_not(rapt_module_print_graph(m, NULL, x, false));
    expect_error(RAPT_ERROR_NULL, "module_print_graph: stream is NULL");
    cr_expect_not(rapt_module_print_graph(m, stdout, NULL, false));
    expect_error(RAPT_ERROR_NULL, "module_print_graph: tensor is NULL");
    rapt_module_free(m);
}

/* Positions are modules without weights, whose calls count too. */
static rapt_tensor *all_positions(rapt_tensor *const *inputs, void *positions)
{
    rapt_module *const *p = positions;
    rapt_tensor *x = rapt_rotary_forward((rapt_rotary *)p[0], inputs[0], 0);
    x = rapt_rotary_forward_at((rapt_rotary *)p[0], x, rapt_arange(RAPT_INT64, 0, 3, 1));
    return rapt_add(rapt_relative_bias_forward((rapt_relative_bias *)p[2]),
                    rapt_alibi_forward((rapt_alibi *)p[1], RAPT_FLOAT32, 3));
}

Test(module_views, a_summary_of_positions)
{
    RAPT_SCOPE;
    rapt_module *p[] = {(rapt_module *)rapt_rotary_new(), (rapt_module *)rapt_alibi_new(2),
                        (rapt_module *)rapt_relative_bias_new(2, 3)};
    rapt_sequential *model = rapt_sequential_new(3, p);
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3, 4));
    char *text = summary(&model->module, all_positions, 1, &x, p);
    const char *const lines[] = {"-> float32 [3, 4], 2 times", "-> float32 [2, 1, 7]\n  2", "-> float32 [2, 1, 7]\n"};
    for (int i = 0; i < 3; i++) cr_expect(strstr(text, lines[i]), "%s", text);
    free(text);
    rapt_module_free(&model->module);
    expect_no_error();
}
