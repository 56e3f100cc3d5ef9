/* The trace and the profile: what runs is named with its shapes and module, and the times are those of the clock. */
#include "profiled.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../text_stream.h"

static int count(const char *text, const char *part)
{
    int found = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part)) found++;
    return found;
}

/* --- the trace --- */

/* What a step writes, and an op that fails; freed by the caller. */
static __attribute__((noinline)) char *trace(rapt_sequential *model, rapt_tensor *x)
{
    FILE *stream = open_text();
    cr_expect_null(rapt_trace(stream));
    cr_expect(rapt_backward(loss_of(model, x)), "%s", rapt_error());
    cr_expect_null(rapt_matmul(x, x));
    cr_expect_eq(rapt_trace(NULL), stream);
    rapt_clear_error();
    rapt_tanh(x);
    return close_text(stream);
}

Test(trace, has_a_line_for_each_op_and_each_gradient)
{
    RAPT_SCOPE;
    rapt_sequential *model = perceptron(3);
    char *text = trace(model, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3)));
    cr_expect(strstr(text, "forward  affine: float32 [2, 3], float32 [3, 3], float32 [3] -> float32 [2, 3]; in "
                           "Sequential 0\n"),
              "%s", text);
    cr_expect(strstr(text, "forward  tanh: float32 [2, 3] -> float32 [2, 3]; in Sequential 1\n"), "%s", text);
    cr_expect(strstr(text, "forward  mean: float32 [2, 3] -> float32 []\n"), "%s", text);
    cr_expect(strstr(text, "backward affine: float32 [2, 3] -> float32 [2, 3], float32 [3, 3], float32 [3]; in "
                           "Sequential 2\n"),
              "%s", text);
    cr_expect(strstr(text, "backward affine: float32 [2, 3] -> -, float32 [3, 3], float32 [3]; in Sequential 0\n"),
              "%s", text);
    cr_expect(strstr(text, "forward  matmul: float32 [2, 3], float32 [2, 3] -> an error\n"), "%s", text);
    cr_expect_eq(count(text, "\n"), 9, "%s", text);
    free(text);
    rapt_module_free(&model->module);
}

/* --- the profile --- */

static void train(rapt_gpt *gpt, rapt_optimizer *optimizer, rapt_tensor *tokens, int steps)
{
    for (int step = 0; step < steps; step++) {
        RAPT_SCOPE;
        cr_assert(rapt_backward(rapt_gpt_loss(gpt, tokens, tokens, NULL)), "%s", rapt_error());
        cr_assert(rapt_clip_gradient_norm(optimizer, 1, NULL));
        cr_assert(rapt_optimizer_step(optimizer));
    }
}

/* The test's own clock, around the same steps. Another program may take the processor between two of the clocks, so
 * that it may happen once, but not in each of some attempts. */
Test(profile, sums_are_the_time_of_the_clock)
{
    RAPT_SCOPE;
    const rapt_gpt_config c = {.vocabulary = 500, .context = 64, .hidden = 128, .layers = 2, .heads = 4, .bias = true};
    double share = 0;
    for (int recompute = 0; recompute < 2; recompute++) {
        rapt_gpt_config kind = c;
        kind.recompute = recompute;
        rapt_gpt *gpt = rapt_gpt_new(&kind);
        rapt_optimizer *optimizer = rapt_adam_new(&gpt->module, &(rapt_adam_config){.learning_rate = 1e-3});
        rapt_tensor *tokens = rapt_randint(0, c.vocabulary, RAPT_SHAPE(4, 64));
        train(gpt, optimizer, tokens, 1);
        share = 0;
        for (int attempt = 0; attempt < 5 && (share < 0.95 || share > 1); attempt++) {
            const double started = now();
            cr_assert(rapt_profile_start(NULL), "%s", rapt_error());
            const double begin = now();
            train(gpt, optimizer, tokens, 3);
            const double wall = now() - begin;
            cr_assert(rapt_profile_stop(), "%s", rapt_error());
            const double whole = now() - started;
            const rapt_profile_times t = rapt_profile_get_times();
            share = (t.forward + t.backward + t.walk + t.step) / wall;
            cr_expect_eq(t.threads, 1);
            cr_expect_eq(t.lost, 0);
            cr_expect_gt(t.step, 0);
            cr_expect_gt(t.walk, 0);
            cr_expect_gt(t.own, 0);
            cr_expect_float_eq(t.all, t.forward + t.backward + t.walk + t.step + t.own + t.outside, 1e-9);
            cr_expect(t.all >= wall && t.all <= whole, "%g s, not from %g to %g", t.all, wall, whole);
        }
        cr_expect(share >= 0.95 && share <= 1, "%g of the clock's time", share);
        rapt_optimizer_free(optimizer);
        rapt_module_free(&gpt->module);
    }
}

Test(profile, time_goes_on_while_it_runs)
{
    RAPT_SCOPE;
    cr_assert(rapt_profile_start(NULL), "%s", rapt_error());
    rapt_tanh(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2)));
    const double begin = now();
    while (now() - begin < 0.002) {
    }
    cr_expect_geq(rapt_profile_get_times().all, 0.002);
    cr_expect(rapt_profile_stop());
}

Test(profile, a_thread_that_has_ended_counts_until_then)
{
    const int steps = 3;
    pthread_t thread;
    const double started = now();
    cr_assert(rapt_profile_start(NULL), "%s", rapt_error());
    const double begin = now();
    pthread_create(&thread, NULL, run_model, (void *)&steps);
    pthread_join(thread, NULL);
    const double of_thread = now() - begin;
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    const double all = rapt_profile_get_times().all, whole = now() - started;
    cr_expect(all <= whole + of_thread, "%g s, more than %g and the thread's %g", all, whole, of_thread);
    cr_assert(rapt_profile_stop(), "%s", rapt_error());
}

static __attribute__((noinline)) char *report(void)
{
    FILE *stream = open_text();
    cr_expect(rapt_profile_report(stream), "%s", rapt_error());
    return close_text(stream);
}

/* What is read and what is written, in millions of bytes. */
Test(profile, reports_megabytes)
{
    RAPT_SCOPE;
    cr_assert(rapt_profile_start(NULL), "%s", rapt_error());
    rapt_exp(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(250, 1000)));
    cr_assert(rapt_profile_stop());
    char *text = report();
    const char *row = strstr(text, "\nexp ");
    double seconds, share, megabytes = 0;
    cr_assert(row && sscanf(row, " exp forward 1 %lf %lf%% %lf", &seconds, &share, &megabytes) == 3, "%s", text);
    cr_expect_eq(megabytes, 2, "%s", text);
    free(text);
}

static rapt_tensor *made_of_others(rapt_call *call)
{
    rapt_tensor *x = rapt_call_input(call, 0);
    return rapt_exp(rapt_mul(x, x));
}

Test(profile, ops_within_an_op_are_part_of_it)
{
    RAPT_SCOPE;
    static const rapt_op op = {.name = "made_of_others", .forward = made_of_others};
    cr_assert(rapt_profile_start(NULL), "%s", rapt_error());
    cr_assert_not_null(RAPT_APPLY(&op, NULL, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2))), "%s", rapt_error());
    cr_expect_eq(rapt_profile_get_times().calls, 1);
    cr_expect(rapt_profile_stop());
}

/* 2 m n k forward, and twice that backward */
Test(profile, counts_the_flops_of_products)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(5, 7)));
    rapt_tensor *y = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(7, 11)));
    cr_assert(rapt_profile_start(NULL));
    rapt_tensor *root = rapt_sum(rapt_matmul(x, y), RAPT_ALL_AXES, false);
    cr_expect_eq(rapt_profile_get_times().flops, 2. * 5 * 7 * 11);
    cr_assert(rapt_backward(root));
    cr_expect_eq(rapt_profile_get_times().flops, 6. * 5 * 7 * 11);
    rapt_tensor *many = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 4, 5));
    cr_assert(rapt_profile_start(NULL));
    cr_assert_not_null(rapt_matmul(many, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(5, 6))));
    cr_expect_eq(rapt_profile_get_times().flops, 2. * 2 * 3 * 4 * 5 * 6);
    cr_assert(rapt_profile_stop());
    rapt_matmul(x, y);
    cr_expect_eq(rapt_profile_get_times().flops, 2. * 2 * 3 * 4 * 5 * 6);
    cr_expect_eq(rapt_profile_get_times().calls, 1);
}

/* Of pairs that a causal mask leaves: 2 · 2 · size each forward, 2 · 5 · size backward */
Test(profile, counts_the_flops_of_pairs_in_range)
{
    RAPT_SCOPE;
    enum { heads = 2, length = 9, size = 4 };
    rapt_attention *attention = rapt_attention_new(rapt_dot_product_scoring_new(), 0);
    rapt_tensor *x = rapt_require_gradient(rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(3, length, size)));
    for (int causal = 0; causal < 2; causal++) {
        const double pairs = 3. * (causal ? length * (length + 1) / 2 : length * length);
        cr_assert(rapt_profile_start(NULL));
        rapt_tensor *y = rapt_attention_forward(attention, x, x, x, &(rapt_mask){.causal = causal});
        cr_assert_not_null(y, "%s", rapt_error());
        cr_expect_float_eq(rapt_profile_get_times().flops, 4 * size * pairs, 0.5, "%g", rapt_profile_get_times().flops);
        cr_assert(rapt_backward(rapt_sum(y, RAPT_ALL_AXES, false)), "%s", rapt_error());
        cr_expect_float_eq(rapt_profile_get_times().flops, 14 * size * pairs, 0.5);
    }
    rapt_profile_stop();
    rapt_module_free(&attention->module);
}

Test(profile, reports_ops_and_modules)
{
    RAPT_SCOPE;
    rapt_sequential *model = perceptron(4);
    rapt_optimizer *optimizer = rapt_sgd_new(&model->module, &(rapt_sgd_config){.learning_rate = 0.1});
    cr_assert(rapt_profile_start(NULL));
    for (int step = 0; step < 3; step++) {
        RAPT_SCOPE;
        cr_assert(rapt_backward(loss_of(model, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 4)))));
        cr_assert(rapt_optimizer_step(optimizer));
    }
    cr_assert(rapt_profile_stop());
    char *text = report();
    cr_expect(strstr(text, "affine                               forward          6 "), "%s", text);
    cr_expect(strstr(text, "affine                               backward         6 "), "%s", text);
    cr_expect(strstr(text, "backward                             walk             3 "), "%s", text);
    cr_expect(strstr(text, "SGD                                  step             3 "), "%s", text);
    cr_expect(strstr(text, "\nSequential 0 "), "%s", text);
    cr_expect(strstr(text, "\n1 thread, "), "%s", text);
    cr_expect_eq(count(text, "tanh "), 2, "%s", text);
    free(text);
    rapt_optimizer_free(optimizer);
    rapt_module_free(&model->module);
}

typedef struct outer_module {
    rapt_module module;
    rapt_module *part;
} outer_module;

static rapt_tensor *outer_forward(rapt_module *module, rapt_tensor *x)
{
    return rapt_tanh(rapt_module_forward(((outer_module *)module)->part, x));
}

/* What the report says of the time of a module in hundredths: its own, and with those below. */
static void shares_of(const char *text, const char *path, double *own, double *with_those_below)
{
    const char *line = strstr(text, path);
    cr_assert(line && sscanf(line + strlen(path), "%*f %*f %lf%% %lf%%", own, with_those_below) == 2, "%s", text);
}

Test(profile, reports_a_module_with_those_below)
{
    RAPT_SCOPE;
    static const rapt_module_class kind = {.name = "Outer", .forward = outer_forward};
    outer_module *outer = rapt_module_new(sizeof *outer, &kind);
    outer->part = rapt_module_add_child(&outer->module, "part", rapt_activation_new("Exp", rapt_exp));
    cr_assert(rapt_module_finish(&outer->module));
    cr_assert(rapt_profile_start(NULL));
    rapt_module_forward(&outer->module, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1000, 1000)));
    cr_assert(rapt_profile_stop());
    char *text = report();
    double own, part, all, of_part;
    shares_of(text, "\nOuter ", &own, &all);
    shares_of(text, "\nOuter part ", &part, &of_part);
    cr_expect(own > 0 && part > 0 && fabs(own + part - all) < 0.2 && part == of_part, "%s", text);
    free(text);
    rapt_module_free(&outer->module);
}

/* --- threads --- */

/* There is room for more of them than at first. */
Test(profile, many_threads_and_many_modules)
{
    enum { many = 100 };
    const int64_t once = calls_of(1, 2, NULL), calls = calls_of(9, 2, NULL);
    cr_expect_eq(calls, 9 * once, "%lld, %lld", (long long)calls, (long long)once);
    RAPT_SCOPE;
    rapt_module *layers[many];
    for (int i = 0; i < many; i++) layers[i] = (rapt_module *)rapt_linear_new(2, 2, RAPT_BIAS);
    rapt_sequential *model = rapt_sequential_new(many, layers);
    cr_assert(rapt_profile_start(NULL));
    cr_assert(rapt_backward(loss_of(model, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 2)))), "%s", rapt_error());
    cr_assert(rapt_profile_stop());
    char *text = report();
    cr_expect_eq(count(text, "\nSequential "), many, "%s", text);
    cr_expect_eq(rapt_profile_get_times().calls, 2 * many + 3, "%s", text);
    free(text);
    rapt_module_free(&model->module);
}

Test(profile, bad_calls_are_errors)
{
    cr_expect_not(rapt_profile_start("/nowhere/at/all.json"));
    expect_error(RAPT_ERROR_FILE, "profile_start: '/nowhere/at/all.json' cannot be written");
    cr_expect_not(rapt_profile_report(NULL));
    expect_error(RAPT_ERROR_NULL, "profile_report: stream");
    cr_expect(rapt_profile_stop());
    cr_expect(rapt_profile_start("/dev/full"));
    run_model(&(int){1});
    cr_expect_not(rapt_profile_stop());
    expect_error(RAPT_ERROR_FILE, "profile_stop: '/dev/full' could not be written whole: No space left on device");
}
