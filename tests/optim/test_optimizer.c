/* What all optimizers share: parameters, groups, learning rate, errors. Steps and the formulas have files of their
 * own. */
#include "optimizing.h"

#include <math.h>

#include "tensor/memory.h"

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
    rapt_tensor *with = add_number(optimizer, "with", 1), *without = add_number(optimizer, "without", 1);
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
    for (int i = 0; i < count; i++) p[i] = add_number(optimizer, names[i], 8);
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

/* As for a warm-up from 0: there is no ratio that a rate of the group's own, or of Muon's AdamW, could follow. */
Test(optimizer, made_with_the_rate_0_has_no_rates_that_follow)
{
    RAPT_SCOPE;
    rapt_optimizer *optimizer = descent(RAPT_ZERO);
    rapt_tensor *p[] = {add_number(optimizer, "weight", 4), add_number(optimizer, "bias", 4)};
    cr_expect_not(rapt_optimizer_group(optimizer, "bias", &(rapt_group_config){.learning_rate = 0.5}));
    expect_error(RAPT_ERROR_VALUE, "by rapt_optimizer_set_learning_rate");
    cr_expect(rapt_optimizer_group(optimizer, "bias", &(rapt_group_config){.learning_rate = RAPT_ZERO}));
    cr_expect(rapt_optimizer_group(optimizer, "*", &(rapt_group_config){.weight_decay = 0.25}));
    cr_expect(rapt_optimizer_set_learning_rate(optimizer, 0.5));
    double moved[2];
    step_of_one(optimizer, 2, p, moved);
    for (int i = 0; i < 2; i++) cr_expect_eq(moved[i], -1);
    rapt_optimizer_free(optimizer);

    cr_expect_null(rapt_muon_new(NULL, &(rapt_muon_config){.learning_rate = RAPT_ZERO}));
    expect_error(RAPT_ERROR_VALUE, "by rapt_optimizer_set_learning_rate");
    optimizer = rapt_muon_new(NULL, &(rapt_muon_config){.learning_rate = RAPT_ZERO, .adamw.learning_rate = RAPT_ZERO});
    cr_expect_not_null(optimizer, "%s", rapt_error());
    rapt_optimizer_free(optimizer);
}

Test(optimizer, group_without_weight_decay)
{
    RAPT_SCOPE;
    rapt_optimizer *optimizer = rapt_sgd_new(NULL, &(rapt_sgd_config){.learning_rate = 0.5, .weight_decay = 0.25});
    rapt_tensor *p[] = {add_number(optimizer, "weight", 4), add_number(optimizer, "bias", 4)};
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
    rapt_tensor *p[] = {add_number(optimizer, "frozen", 4), add_number(optimizer, "free", 4)};
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
    rapt_tensor *p = add_number(optimizer, "p", 1);
    cr_expect_not(rapt_optimizer_add(optimizer, "p", rapt_require_gradient(rapt_scalar(RAPT_FLOAT32, 0))));
    expect_error(RAPT_ERROR_VALUE, "'p' is in use");
    cr_expect_not(rapt_optimizer_add(optimizer, "again", p));
    expect_error(RAPT_ERROR_VALUE, "'again' is there already, as 'p'");
    cr_expect_not(rapt_optimizer_add(optimizer, "constant", rapt_scalar(RAPT_FLOAT32, 0)));
    expect_error(RAPT_ERROR_GRAPH, "'constant' is no leaf");
    cr_expect_not(rapt_optimizer_add(optimizer, "", p));
    expect_error(RAPT_ERROR_VALUE, "0 bytes");
    char long_name[513] = "";
    memset(long_name, 'n', 512);
    cr_expect_not(rapt_optimizer_add(optimizer, long_name, p));
    expect_error(RAPT_ERROR_VALUE, "512 bytes; 1 to 511 expected");
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
