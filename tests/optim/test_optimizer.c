/* What all optimizers share: parameters, groups, learning rate, errors, memory, threads. The formulas have a file of
 * their own. */
#include "optimizing.h"

#include <math.h>

#include "tensor/memory.h"

static rapt_optimizer *descent(double learning_rate)
{
    rapt_optimizer *optimizer = rapt_sgd_new(NULL, &(rapt_sgd_config){.learning_rate = learning_rate});
    cr_assert_not_null(optimizer, "%s", rapt_error());
    return optimizer;
}

static rapt_tensor *add_parameter(rapt_optimizer *optimizer, const char *name, double value)
{
    rapt_tensor *p = parameter_from(RAPT_FLOAT64, 1, &value);
    cr_assert(rapt_optimizer_add(optimizer, name, p), "%s", rapt_error());
    return p;
}

/* Gives every parameter the gradient 1, makes a step, and returns how far each went. */
static void step_of_one(rapt_optimizer *optimizer, int count, rapt_tensor *const *p, double *moved)
{
    for (int i = 0; i < count; i++) {
        give_gradient_of(p[i], 1);
        moved[i] = -element(p[i], 0);
    }
    cr_assert(rapt_optimizer_step(optimizer), "%s", rapt_error());
    for (int i = 0; i < count; i++) moved[i] += element(p[i], 0);
}

Test(optimizer, step_drops_gradients_and_skips_what_has_none)
{
    RAPT_SCOPE;
    rapt_optimizer *optimizer = rapt_adam_new(NULL, NULL);
    rapt_tensor *with = add_parameter(optimizer, "with", 1), *without = add_parameter(optimizer, "without", 1);
    give_gradient_of(with, 1);
    cr_expect(rapt_optimizer_step(optimizer));
    cr_expect_lt(element(with, 0), 1);
    cr_expect_eq(element(without, 0), 1);
    cr_expect_null(rapt_gradient(with));
    cr_expect_eq(rapt_optimizer_get_steps(optimizer), 1);

    /* The first step of `without` is the optimizer's second, and corrects its moments as a first one. */
    double moved;
    step_of_one(optimizer, 1, &without, &moved);
    cr_expect_float_eq(moved, -0.001, 1e-9);
    give_gradient_of(with, 1);
    rapt_optimizer_clear_gradients(optimizer);
    cr_expect_null(rapt_gradient(with));
    rapt_optimizer_free(optimizer);
    expect_no_error();
}

Test(optimizer, groups)
{
    RAPT_SCOPE;
    enum { count = 4 };
    rapt_optimizer *optimizer = descent(0.5);
    rapt_tensor *p[count];
    const char *names[count] = {"encoder.weight", "encoder.bias", "decoder.weight", "decoder.bias"};
    for (int i = 0; i < count; i++) p[i] = add_parameter(optimizer, names[i], 8);
    double moved[count];

    cr_expect(rapt_optimizer_group(optimizer, "*.bias", &(rapt_group_config){.learning_rate = 0.25}));
    cr_expect(rapt_optimizer_group(optimizer, "encoder.*", &(rapt_group_config){.weight_decay = 0.125}));
    step_of_one(optimizer, count, p, moved);
    cr_expect_eq(moved[0], -0.5 * (1 + 0.125 * 8));
    cr_expect_eq(moved[1], -0.5 * (1 + 0.125 * 8), "the later group takes it over");
    cr_expect_eq(moved[2], -0.5);
    cr_expect_eq(moved[3], -0.25);

    /* Groups follow the learning rate in its ratio to the first one. */
    cr_expect(rapt_optimizer_set_learning_rate(optimizer, 0.125));
    cr_expect_eq(rapt_optimizer_get_learning_rate(optimizer), 0.125);
    step_of_one(optimizer, count, p, moved);
    cr_expect_eq(moved[2], -0.125);
    cr_expect_eq(moved[3], -0.0625);

    cr_expect(rapt_optimizer_set_learning_rate(optimizer, 0));
    step_of_one(optimizer, count, p, moved);
    for (int i = 0; i < count; i++) cr_expect_eq(moved[i], 0);
    rapt_optimizer_free(optimizer);
    expect_no_error();
}

Test(optimizer, group_without_weight_decay)
{
    RAPT_SCOPE;
    rapt_optimizer *optimizer = rapt_sgd_new(NULL, &(rapt_sgd_config){.learning_rate = 0.5, .weight_decay = 0.25});
    rapt_tensor *p[] = {add_parameter(optimizer, "weight", 4), add_parameter(optimizer, "bias", 4)};
    cr_expect(rapt_optimizer_group(optimizer, "bias", &(rapt_group_config){.weight_decay = RAPT_ZERO}));
    double moved[2];
    step_of_one(optimizer, 2, p, moved);
    cr_expect_eq(moved[0], -1);
    cr_expect_eq(moved[1], -0.5);
    rapt_optimizer_free(optimizer);
}

Test(optimizer, frozen_group_keeps_parameters_and_state)
{
    RAPT_SCOPE;
    rapt_optimizer *optimizer = rapt_adam_new(NULL, NULL);
    rapt_tensor *p[] = {add_parameter(optimizer, "frozen", 4), add_parameter(optimizer, "free", 4)};
    cr_expect(rapt_optimizer_group(optimizer, "frozen", &(rapt_group_config){.learning_rate = RAPT_ZERO}));
    double moved[2];
    for (int i = 0; i < 3; i++) step_of_one(optimizer, 2, p, moved);
    cr_expect_eq(element(p[0], 0), 4);
    cr_expect_lt(element(p[1], 0), 4);
    cr_expect_null(rapt_gradient(p[0]));
    rapt_archive *archive = rapt_archive_new();
    cr_expect(rapt_optimizer_to_archive(optimizer, NULL, archive));
    cr_expect_eq(rapt_item(rapt_archive_find(archive, "frozen.step")), 0);
    cr_expect_null(rapt_archive_find(archive, "frozen.exp_avg"));
    cr_expect_eq(rapt_item(rapt_archive_find(archive, "free.step")), 3);
    rapt_archive_free(archive);
    rapt_optimizer_free(optimizer);
    expect_no_error();
}

static const rapt_module_class pair_class = {.name = "Pair"};

/* A module that has one tensor under two names, and a buffer. */
static rapt_module *shared_pair(rapt_tensor *weight)
{
    rapt_module *module = rapt_module_new(sizeof *module, &pair_class);
    rapt_module_add_parameter(module, "weight", weight);
    rapt_module_add_parameter(module, "tied", weight);
    rapt_module_add_buffer(module, "mean", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2)));
    return rapt_module_finish(module);
}

Test(optimizer, takes_a_modules_parameters_once_and_outlives_it)
{
    const int64_t before = rapt_memory_get_statistics().live_bytes;
    rapt_optimizer *optimizer;
    {
        RAPT_SCOPE;
        rapt_tensor *weight = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2));
        rapt_module *module = shared_pair(weight);
        optimizer = rapt_sgd_new(module, &(rapt_sgd_config){.learning_rate = 0.5, .momentum = 0.5});
        give_gradient_of(weight, 1);
        cr_expect(rapt_optimizer_step(optimizer));
        cr_expect_eq(element(weight, 0), 0.5, "a tied parameter is changed once");
        rapt_module_free(module);
    }
    cr_expect(rapt_optimizer_step(optimizer));
    rapt_optimizer_free(optimizer);
    rapt_optimizer_free(NULL);
    cr_expect_eq(rapt_memory_get_statistics().live_bytes, before);
    expect_no_error();
}

Test(optimizer, refuses_bad_numbers)
{
    cr_expect_null(rapt_sgd_new(NULL, &(rapt_sgd_config){.learning_rate = -1}));
    expect_error(RAPT_ERROR_VALUE, "learning_rate is -1");
    cr_expect_null(rapt_sgd_new(NULL, &(rapt_sgd_config){.nesterov = true}));
    expect_error(RAPT_ERROR_VALUE, "momentum above 0");
    cr_expect_null(rapt_adam_new(NULL, &(rapt_adam_config){.beta1 = 1}));
    expect_error(RAPT_ERROR_VALUE, "Adam: beta1 is 1");
    cr_expect_null(rapt_adamw_new(NULL, &(rapt_adam_config){.epsilon = (double)NAN}));
    expect_error(RAPT_ERROR_VALUE, "AdamW: epsilon");
    cr_expect_null(rapt_rmsprop_new(NULL, &(rapt_rmsprop_config){.momentum = (double)INFINITY}));
    expect_error(RAPT_ERROR_VALUE, "momentum is inf");
    cr_expect_null(rapt_adagrad_new(NULL, &(rapt_adagrad_config){.initial_accumulator = -0.5}));
    expect_error(RAPT_ERROR_VALUE, "initial_accumulator");
    cr_expect_null(rapt_lion_new(NULL, &(rapt_lion_config){.beta2 = 1}));
    expect_error(RAPT_ERROR_VALUE, "Lion: beta2 is 1");
    cr_expect_null(rapt_muon_new(NULL, &(rapt_muon_config){.momentum = 1.5}));
    expect_error(RAPT_ERROR_VALUE, "Muon: momentum is 1.5");
    cr_expect_null(rapt_muon_new(NULL, &(rapt_muon_config){.iterations = -1}));
    expect_error(RAPT_ERROR_VALUE, "Muon: -1 iterations");
    cr_expect_null(rapt_muon_new(NULL, &(rapt_muon_config){.adamw.beta1 = 2}));
    expect_error(RAPT_ERROR_VALUE, "Muon's AdamW: beta1 is 2");
    cr_expect_null(rapt_adafactor_new(NULL, &(rapt_adafactor_config){.clip = RAPT_ZERO}));
    expect_error(RAPT_ERROR_VALUE, "Adafactor: clip is 0");
    cr_expect_null(rapt_adafactor_new(NULL, &(rapt_adafactor_config){.epsilon1 = -1}));
    expect_error(RAPT_ERROR_VALUE, "Adafactor: epsilon1 is -1");
    rapt_optimizer *optimizer = descent(0.5);
    cr_expect_not(rapt_optimizer_set_learning_rate(optimizer, (double)NAN));
    expect_error(RAPT_ERROR_VALUE, "learning_rate");
    cr_expect_eq(rapt_optimizer_get_learning_rate(optimizer), 0.5);
    rapt_optimizer_free(optimizer);
}

Test(optimizer, refuses_bad_parameters_and_groups)
{
    RAPT_SCOPE;
    rapt_optimizer *optimizer = descent(0.5);
    rapt_tensor *p = add_parameter(optimizer, "p", 1);
    cr_expect_not(rapt_optimizer_add(optimizer, "p", rapt_require_gradient(rapt_scalar(RAPT_FLOAT32, 0))));
    expect_error(RAPT_ERROR_VALUE, "'p' is in use");
    cr_expect_not(rapt_optimizer_add(optimizer, "again", p));
    expect_error(RAPT_ERROR_VALUE, "'again' is there already, as 'p'");
    cr_expect_not(rapt_optimizer_add(optimizer, "constant", rapt_scalar(RAPT_FLOAT32, 0)));
    expect_error(RAPT_ERROR_GRAPH, "'constant' is no leaf");
    cr_expect_not(rapt_optimizer_add(optimizer, "", p));
    expect_error(RAPT_ERROR_VALUE, "0 bytes");
    cr_expect_not(rapt_optimizer_add(optimizer, "none", NULL));
    expect_error(RAPT_ERROR_NULL, "'none' is NULL");
    cr_expect_not(rapt_optimizer_add(optimizer, NULL, p));
    expect_error(RAPT_ERROR_NULL, "name");
    rapt_tensor *expanded = rapt_require_gradient(rapt_expand(rapt_scalar(RAPT_FLOAT32, 1), RAPT_SHAPE(3)));
    cr_expect_not(rapt_optimizer_add(optimizer, "expanded", expanded));
    expect_error(RAPT_ERROR_SHAPE, "'expanded' is expanded");

    cr_expect_not(rapt_optimizer_group(optimizer, "q*", &(rapt_group_config){0}));
    expect_error(RAPT_ERROR_VALUE, "matches 'q*'");
    cr_expect_not(rapt_optimizer_group(optimizer, "p", &(rapt_group_config){.weight_decay = -1}));
    expect_error(RAPT_ERROR_VALUE, "weight_decay is -1");
    cr_expect_not(rapt_optimizer_group(optimizer, "p", NULL));
    expect_error(RAPT_ERROR_NULL, "config");
    rapt_optimizer_free(optimizer);
}

Test(optimizer, null)
{
    cr_expect_not(rapt_optimizer_step(NULL));
    expect_error(RAPT_ERROR_NULL, "optimizer is NULL");
    cr_expect_not(rapt_optimizer_add(NULL, "p", NULL));
    expect_error(RAPT_ERROR_NULL, "optimizer is NULL");
    cr_expect_not(rapt_optimizer_group(NULL, "p", NULL));
    expect_error(RAPT_ERROR_NULL, "optimizer is NULL");
    cr_expect(isnan(rapt_optimizer_get_learning_rate(NULL)));
    expect_error(RAPT_ERROR_NULL, "optimizer is NULL");
    cr_expect_not(rapt_optimizer_set_learning_rate(NULL, 1));
    expect_error(RAPT_ERROR_NULL, "optimizer is NULL");
    cr_expect_eq(rapt_optimizer_get_steps(NULL), 0);
    expect_error(RAPT_ERROR_NULL, "optimizer is NULL");
    rapt_optimizer_clear_gradients(NULL);
    expect_no_error();
}

Test(optimizer, out_of_memory_changes_no_parameter)
{
    RAPT_SCOPE;
    rapt_optimizer *optimizer = rapt_adam_new(NULL, NULL);
    rapt_tensor *p[] = {add_parameter(optimizer, "first", 1), add_parameter(optimizer, "second", 1)};
    for (int i = 0; i < 2; i++) give_gradient_of(p[i], 1);
    int failures = 0;
    for (;; failures++) {
        rapt_memory_fail_after(failures);
        bool good = rapt_optimizer_step(optimizer);
        rapt_memory_fail_after(-1);
        if (good) break;
        expect_error(RAPT_ERROR_MEMORY, "no memory");
        for (int i = 0; i < 2; i++) {
            cr_expect_eq(element(p[i], 0), 1);
            cr_expect_not_null(rapt_gradient(p[i]));
        }
        cr_expect_eq(rapt_optimizer_get_steps(optimizer), 0);
    }
    cr_expect_geq(failures, 2);
    for (int i = 0; i < 2; i++) cr_expect_float_eq(element(p[i], 0), 0.999, 1e-9);
    rapt_optimizer_free(optimizer);
}

Test(optimizer, cast_after_the_first_step_is_an_error)
{
    RAPT_SCOPE;
    rapt_tensor *weight = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2));
    rapt_module *module = shared_pair(weight);
    rapt_optimizer *optimizer = rapt_adam_new(module, NULL);
    give_gradient_of(weight, 1);
    cr_expect(rapt_optimizer_step(optimizer));
    cr_expect(rapt_module_cast(module, RAPT_FLOAT64), "%s", rapt_error());
    const double before = element(weight, 0);
    give_gradient_of(weight, 1);
    cr_expect_not(rapt_optimizer_step(optimizer));
    expect_error(RAPT_ERROR_DTYPE, "'weight' is float64 now, its exp_avg is float32");
    cr_expect_eq(element(weight, 0), before);
    rapt_optimizer_free(optimizer);
    rapt_module_free(module);
}

/* A gradient that is a view of the parameter itself: the step must not read what it has just written. */
Test(optimizer, gradient_that_shares_the_parameters_memory)
{
    RAPT_SCOPE;
    const double values[] = {1, 2, 3, 4};
    rapt_tensor *p = rapt_require_gradient(rapt_from(RAPT_FLOAT64, RAPT_SHAPE(2, 2), values));
    rapt_tensor *gradient = rapt_transpose(rapt_detach(p), 0, 1);
    cr_assert(rapt_backward_from(1, &p, &gradient, RAPT_CREATE_GRAPH), "%s", rapt_error());
    rapt_optimizer *optimizer = descent(0.5);
    rapt_optimizer_add(optimizer, "p", p);
    cr_expect(rapt_optimizer_step(optimizer), "%s", rapt_error());
    const double expected[] = {0.5, 0.5, 2, 2};
    cr_expect_arr_eq(rapt_data(p), expected, sizeof expected);
    rapt_optimizer_free(optimizer);
}

Test(optimizer, nan_gradient_reaches_its_elements_only)
{
    RAPT_SCOPE;
    const double values[] = {1, 1, 1}, gradient[] = {1, (double)NAN, 1};
    rapt_tensor *p = parameter_from(RAPT_FLOAT64, 3, values);
    rapt_optimizer *optimizer = rapt_adam_new(NULL, NULL);
    rapt_optimizer_add(optimizer, "p", p);
    give_gradient(p, rapt_from(RAPT_FLOAT64, RAPT_SHAPE(3), gradient));
    cr_expect(rapt_optimizer_step(optimizer));
    cr_expect(isnan(element(p, 1)));
    cr_expect_float_eq(element(p, 0), 0.999, 1e-9);
    cr_expect_float_eq(element(p, 2), 0.999, 1e-9);
    rapt_optimizer_free(optimizer);
}

Test(optimizer, steady_step_asks_the_system_for_nothing)
{
    RAPT_SCOPE;
    rapt_optimizer *optimizer = rapt_rmsprop_new(NULL, &(rapt_rmsprop_config){.momentum = 0.5, .centered = true});
    rapt_tensor *p = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(300, 200)));
    rapt_optimizer_add(optimizer, "p", p);
    int64_t before = 0;
    for (int i = 0; i < 20; i++) {
        if (i == 10) before = rapt_memory_get_statistics().system_allocations;
        give_gradient_of(p, i);
        cr_expect(rapt_clip_gradient_norm(optimizer, 1, NULL));
        cr_expect(rapt_clip_gradient_value(optimizer, 0.5));
        cr_expect(rapt_optimizer_step(optimizer));
    }
    cr_expect_eq(rapt_memory_get_statistics().system_allocations, before);
    rapt_optimizer_free(optimizer);
    expect_no_error();
}

/* Ten steps, clipped, of parameters of several sizes, one of them strided; they are left in results. */
static void train(int threads, rapt_tensor *results[3])
{
    cr_assert(rapt_set_threads(threads));
    rapt_seed(7);
    rapt_optimizer *optimizer = rapt_adam_new(NULL, &(rapt_adam_config){.weight_decay = 0.01});
    rapt_tensor *p[] = {rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(100003)),
                        rapt_transpose(rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(217, 341)), 0, 1),
                        rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(20011))};
    const char *names[] = {"large", "strided", "double"};
    for (int i = 0; i < 3; i++)
        cr_assert(rapt_optimizer_add(optimizer, names[i], rapt_require_gradient(p[i])), "%s", rapt_error());
    for (int t = 0; t < 10; t++) {
        for (int i = 0; i < 3; i++)
            give_gradient(p[i], rapt_randn(rapt_get_dtype(p[i]), rapt_rank(p[i]), rapt_shape(p[i])));
        cr_assert(rapt_clip_gradient_norm(optimizer, 1, NULL), "%s", rapt_error());
        cr_assert(rapt_optimizer_step(optimizer), "%s", rapt_error());
    }
    for (int i = 0; i < 3; i++) results[i] = rapt_clone(p[i]);
    rapt_optimizer_free(optimizer);
}

Test(optimizer, same_bits_with_any_number_of_threads)
{
    RAPT_SCOPE;
    rapt_tensor *expected[3], *results[3];
    train(1, expected);
    for (int threads = 2; threads <= 4; threads++) {
        train(threads, results);
        for (int i = 0; i < 3; i++)
            cr_expect(same_bits(results[i], expected[i]), "%d threads, parameter %d", threads, i);
    }
    expect_no_error();
}

/* --- warnings --- */

static char warned[1100];

static void remember(const char *message)
{
    snprintf(warned, sizeof warned, "%s", message);
}

/* What the first step says when of five parameters those with a bit in `reached` have a gradient. */
static const char *first_step_of(int reached)
{
    static const char *const names[] = {"encoder.weight", "encoder.bias", "decoder.weight", "frozen.group", "frozen"};
    RAPT_SCOPE;
    rapt_tensor *p[5];
    rapt_optimizer *optimizer = descent(0.1);
    rapt_on_warning(remember);
    for (int i = 0; i < 5; i++) p[i] = add_parameter(optimizer, names[i], 1);
    for (int i = 0; i < 5; i++)
        if (reached >> i & 1) give_gradient_of(p[i], 1);
    rapt_optimizer_group(optimizer, "frozen.group", &(rapt_group_config){.learning_rate = RAPT_ZERO});
    rapt_refuse_gradient(p[4]);
    *warned = '\0';
    cr_expect(rapt_optimizer_step(optimizer), "%s", rapt_error());
    static char first[sizeof warned];
    strcpy(first, warned);
    *warned = '\0';
    cr_expect(rapt_optimizer_step(optimizer), "%s", rapt_error());
    cr_expect_str_empty(warned, "the second step said: %s", warned);
    rapt_optimizer_free(optimizer);
    return first;
}

Test(optimizer, first_step_names_what_has_no_gradient_once)
{
    cr_expect_str_eq(first_step_of(7), "");
    cr_expect_str_eq(first_step_of(1), "SGD: 2 of 3 parameters got no gradient by the first step: encoder.bias, "
                                       "decoder.weight; freeze those that are not to be trained (rapt_module_freeze)");
    cr_expect(strstr(first_step_of(0), "SGD: no parameter has a gradient at the first step; rapt_backward"));
}

Test(optimizer, names_as_many_as_fit)
{
    RAPT_SCOPE;
    char name[400];
    rapt_optimizer *optimizer = descent(0.1);
    rapt_on_warning(remember);
    give_gradient_of(add_parameter(optimizer, "reached", 1), 1);
    for (int i = 0; i < 9; i++) {
        snprintf(name, sizeof name, "%0*d", 380, i);
        add_parameter(optimizer, name, 1);
    }
    cr_expect(rapt_optimizer_step(optimizer));
    cr_expect(strstr(warned, "9 of 10 parameters") && strstr(warned, "01 and others; freeze"), "%s", warned);
    rapt_optimizer_free(optimizer);
}
