/* Numbers of a step that the parameter's dtype has not: an epsilon that is 0 in float32, a rate that is infinite there.
 * Each is refused by its name where such a parameter is stepped, and changes nothing. */
#include "optimizing.h"

#include <float.h>
#include <math.h>

#include <rapt/module_values.h>

/* A parameter of ones, of which one half has a gradient. */
static rapt_tensor *add_ones(rapt_optimizer *optimizer, const char *name, rapt_dtype dtype)
{
    const double values[] = {1, 1};
    rapt_tensor *p = parameter_from(dtype, 2, values);
    cr_assert(rapt_optimizer_add(optimizer, name, p), "%s", rapt_error());
    return p;
}

static void give_half(rapt_tensor *p)
{
    RAPT_SCOPE;
    const double gradient[] = {0, 1};
    give_gradient(p, rapt_cast(rapt_from(RAPT_FLOAT64, RAPT_SHAPE(2), gradient), rapt_get_dtype(p)));
}

/* Some steps, of which each is an error with that text, or none where that is NULL. Frees the optimizer. */
static void check(rapt_optimizer *optimizer, rapt_dtype dtype, const char *text)
{
    RAPT_SCOPE;
    cr_assert_not_null(optimizer, "%s", rapt_error());
    rapt_tensor *other = add_ones(optimizer, "other", RAPT_FLOAT64), *p = add_ones(optimizer, "p", dtype);
    for (int step = 0; step < 2; step++) {
        give_half(other), give_half(p);
        cr_expect_eq(rapt_optimizer_step(optimizer), !text, "%s", text ? text : rapt_error());
        if (text) expect_error(RAPT_ERROR_VALUE, text);
        cr_expect_eq(element(p, 0), 1, "%g: %s", element(p, 0), text ? text : "no error");
        cr_expect_eq(isfinite(element(p, 1)) && element(p, 1) < 1, !text, "%g", element(p, 1));
        cr_expect_eq(element(other, 1) < 1, !text);
    }
    rapt_optimizer_free(optimizer);
}

/* And of the same in float64 there is none. */
static void check_float32(rapt_optimizer *optimizer, rapt_optimizer *in_double, const char *text)
{
    check(optimizer, RAPT_FLOAT32, text);
    check(in_double, RAPT_FLOAT64, NULL);
}

#define CHECK_FLOAT32(kind, text, ...)                                                                                 \
    check_float32(rapt_##kind##_new(NULL, &__VA_ARGS__), rapt_##kind##_new(NULL, &__VA_ARGS__), text)

Test(step_numbers, epsilons)
{
    const char *const small = "the epsilon of 'p' is 1e-50; 1.4013e-45 to 3.40282e+38 expected in float32";
    const char *const large = "the epsilon of 'p' is 1e+39; 1.4013e-45 to 3.40282e+38 expected in float32";
    const double rate = 1e38; /* so that float64 shows a step by so large an epsilon */
    CHECK_FLOAT32(adam, small, (rapt_adam_config){.epsilon = 1e-50});
    CHECK_FLOAT32(adamw, small, (rapt_adam_config){.epsilon = 1e-50, .weight_decay = RAPT_ZERO});
    CHECK_FLOAT32(rmsprop, small, (rapt_rmsprop_config){.epsilon = 1e-50});
    CHECK_FLOAT32(adagrad, small, (rapt_adagrad_config){.epsilon = 1e-50});
    CHECK_FLOAT32(muon, small, (rapt_muon_config){.adamw = {.epsilon = 1e-50, .weight_decay = RAPT_ZERO}});
    CHECK_FLOAT32(rmsprop, large, (rapt_rmsprop_config){.epsilon = 1e39, .learning_rate = rate});
    CHECK_FLOAT32(adagrad, large, (rapt_adagrad_config){.epsilon = 1e39, .learning_rate = rate});
    CHECK_FLOAT32(adafactor, "the epsilon1 of 'p' is 1e+39; 0 to 3.40282e+38 expected in float32",
                  (rapt_adafactor_config){.epsilon1 = 1e39, .epsilon2 = rate});
    CHECK_FLOAT32(adagrad, "the initial_accumulator of 'p' is 1e+39; 0 to 3.40282e+38 expected in float32",
                  (rapt_adagrad_config){.initial_accumulator = 1e39, .learning_rate = rate});
}

Test(step_numbers, subnormal_epsilons_do)
{
    check(rapt_adam_new(NULL, &(rapt_adam_config){.epsilon = 1e-40}), RAPT_FLOAT32, NULL);
    check(rapt_rmsprop_new(NULL, &(rapt_rmsprop_config){.epsilon = 1e-44}), RAPT_FLOAT32, NULL);
    check(rapt_adagrad_new(NULL, &(rapt_adagrad_config){.epsilon = (double)FLT_TRUE_MIN}), RAPT_FLOAT32, NULL);
}

Test(step_numbers, learning_rates)
{
    const char *const text = "the learning rate of 'p' is 1e+39; 0 to 3.40282e+38 expected in float32";
    CHECK_FLOAT32(sgd, text, (rapt_sgd_config){.learning_rate = 1e39});
    CHECK_FLOAT32(sgd, text, (rapt_sgd_config){.learning_rate = 1e39, .momentum = 0.5});
    CHECK_FLOAT32(rmsprop, text, (rapt_rmsprop_config){.learning_rate = 1e39});
    CHECK_FLOAT32(adagrad, text, (rapt_adagrad_config){.learning_rate = 1e39});
    CHECK_FLOAT32(lion, text, (rapt_lion_config){.learning_rate = 1e39});
    CHECK_FLOAT32(adam, "the learning rate / (1 - beta1^t) of 'p' is 4e+38; 0 to 3.40282e+38 expected in float32",
                  (rapt_adam_config){.learning_rate = 2e38, .beta1 = 0.5});
    check(rapt_adam_new(NULL, &(rapt_adam_config){.learning_rate = 1e38, .beta1 = 0.5}), RAPT_FLOAT32, NULL);
    CHECK_FLOAT32(muon, "the learning rate / (1 - beta1^t) of 'p' is 1e+39",
                  (rapt_muon_config){.adamw = {.learning_rate = 5e38, .beta1 = 0.5, .weight_decay = RAPT_ZERO}});
    /* Adafactor's is at most 1/√t. */
    check(rapt_adafactor_new(NULL, &(rapt_adafactor_config){.learning_rate = 1e300}), RAPT_FLOAT32, NULL);
}

/* In float32 an infinite decay would make NaN of a parameter that is 0. */
Test(step_numbers, weight_decays)
{
    const char *const decay = "the weight decay of 'p' is 1e+39; 0 to 3.40282e+38 expected in float32";
    const char *const share = "the learning rate * weight decay of 'p' is 1e+40; 0 to 3.40282e+38 expected in float32";
    check(rapt_sgd_new(NULL, &(rapt_sgd_config){.learning_rate = 1e-3, .weight_decay = 1e39}), RAPT_FLOAT32, decay);
    check(rapt_adam_new(NULL, &(rapt_adam_config){.weight_decay = 1e39}), RAPT_FLOAT32, decay);
    check(rapt_adamw_new(NULL, &(rapt_adam_config){.weight_decay = 1e39}), RAPT_FLOAT32, decay);
    check(rapt_rmsprop_new(NULL, &(rapt_rmsprop_config){.weight_decay = 1e39}), RAPT_FLOAT32, decay);
    check(rapt_adagrad_new(NULL, &(rapt_adagrad_config){.weight_decay = 1e39}), RAPT_FLOAT32, decay);
    check(rapt_lion_new(NULL, &(rapt_lion_config){.weight_decay = 1e39}), RAPT_FLOAT32, decay);
    check(rapt_adafactor_new(NULL, &(rapt_adafactor_config){.weight_decay = 1e39}), RAPT_FLOAT32, decay);
    check(rapt_muon_new(NULL, &(rapt_muon_config){.adamw.weight_decay = 1e39}), RAPT_FLOAT32, decay);
    check(rapt_adamw_new(NULL, &(rapt_adam_config){.learning_rate = 1e30, .weight_decay = 1e10}), RAPT_FLOAT32, share);
    check(rapt_lion_new(NULL, &(rapt_lion_config){.learning_rate = 1e30, .weight_decay = 1e10}), RAPT_FLOAT32, share);
    check(rapt_adafactor_new(NULL, &(rapt_adafactor_config){.learning_rate = 1e30, .weight_decay = 1e10}), RAPT_FLOAT32,
          share);
    rapt_optimizer *in_double = rapt_sgd_new(NULL, &(rapt_sgd_config){.learning_rate = 1e-3, .weight_decay = 1e39});
    rapt_tensor *p = add_ones(in_double, "p", RAPT_FLOAT64);
    give_half(p);
    cr_expect(rapt_optimizer_step(in_double), "%s", rapt_error());
    cr_expect_float_eq(element(p, 0) / -1e36, 1, 1e-12);
    rapt_optimizer_free(in_double);
}

/* What a group or a schedule makes of a rate counts, and only where a parameter is stepped by it. */
Test(step_numbers, rates_of_groups_and_schedules)
{
    RAPT_SCOPE;
    rapt_optimizer *optimizer = descent(0.5);
    rapt_tensor *p = add_ones(optimizer, "p", RAPT_FLOAT32), *q = add_ones(optimizer, "q", RAPT_FLOAT32);
    cr_assert(rapt_optimizer_group(optimizer, "q", &(rapt_group_config){.learning_rate = 1e38}));
    give_half(p), give_half(q);
    cr_assert(rapt_optimizer_set_learning_rate(optimizer, 5));
    cr_expect_not(rapt_optimizer_step(optimizer));
    expect_error(RAPT_ERROR_VALUE, "the learning rate of 'q' is 1e+39");
    cr_expect_not(rapt_optimizer_prepare(optimizer));
    expect_error(RAPT_ERROR_VALUE, "the learning rate of 'q' is 1e+39");
    cr_expect_not(rapt_optimizer_step_clipped(optimizer, 0.5, NULL));
    expect_error(RAPT_ERROR_VALUE, "the learning rate of 'q' is 1e+39");
    cr_expect_eq(element(rapt_gradient(p), 1), 1);
    cr_expect_eq(element(p, 1), 1);
    cr_expect_eq(rapt_optimizer_get_steps(optimizer), 0);
    cr_assert(rapt_optimizer_group(optimizer, "q", &(rapt_group_config){.learning_rate = RAPT_ZERO}));
    cr_expect(rapt_optimizer_step(optimizer), "%s", rapt_error());
    cr_expect_eq(element(p, 1), -4);
    cr_expect_eq(element(q, 1), 1);
    const double rates[] = {0, 1e-50, 1e-300};
    for (int i = 0; i < 3; i++) { /* as far as a schedule falls: no step */
        cr_assert(rapt_optimizer_set_learning_rate(optimizer, rates[i]));
        give_half(p);
        cr_expect(rapt_optimizer_step(optimizer), "%s", rapt_error());
        cr_expect_eq(element(p, 1), -4);
    }
    rapt_optimizer_free(optimizer);
}

Test(step_numbers, of_matrices)
{
    RAPT_SCOPE;
    rapt_optimizer *optimizer =
        rapt_muon_new(NULL,
                      &(rapt_muon_config){.learning_rate = 1e39, .adamw.epsilon = 1e-50}); /* which no parameter has */
    rapt_tensor *p = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 2)));
    cr_assert(rapt_optimizer_add(optimizer, "p", p));
    give_gradient_of(p, 1);
    cr_expect_not(rapt_optimizer_step_clipped(optimizer, 0.5, NULL));
    expect_error(RAPT_ERROR_VALUE, "Muon: the learning rate of 'p' is 1e+39");
    cr_expect_eq(rapt_at(rapt_gradient(p), (int64_t[]){0, 0}), 1);
    cr_assert(rapt_optimizer_set_learning_rate(optimizer, 0.5) &&
              rapt_optimizer_group(optimizer, "p", &(rapt_group_config){.weight_decay = 1e39}));
    cr_expect_not(rapt_optimizer_step(optimizer));
    expect_error(RAPT_ERROR_VALUE, "Muon: the weight decay of 'p' is 1e+39");
    cr_assert(rapt_optimizer_group(optimizer, "p", &(rapt_group_config){.weight_decay = RAPT_ZERO}));
    cr_assert(rapt_optimizer_set_learning_rate(optimizer, 0.5));
    cr_expect(rapt_optimizer_step(optimizer), "%s", rapt_error());
    cr_expect_lt(rapt_at(p, (int64_t[]){0, 0}), 1);
    rapt_optimizer_free(optimizer);
}

/* A parameter that comes later, or is cast, is looked at when it is stepped. */
Test(step_numbers, of_parameters_as_they_are_now)
{
    RAPT_SCOPE;
    rapt_linear *linear = rapt_linear_new(2, 1, RAPT_NO_BIAS);
    rapt_optimizer *optimizer = rapt_adam_new(&linear->module, &(rapt_adam_config){.epsilon = 1e-50});
    give_gradient_of(linear->weight, 1);
    cr_expect_not(rapt_optimizer_step(optimizer));
    expect_error(RAPT_ERROR_VALUE, "the epsilon of 'weight' is 1e-50");
    cr_assert(rapt_module_cast(&linear->module, RAPT_FLOAT64), "%s", rapt_error());
    give_gradient_of(linear->weight, 1);
    cr_expect(rapt_optimizer_step(optimizer), "%s", rapt_error());
    rapt_tensor *later = add_ones(optimizer, "later", RAPT_FLOAT32);
    give_gradient_of(linear->weight, 1);
    cr_expect(rapt_optimizer_step(optimizer), "%s", rapt_error()); /* it has no gradient yet */
    give_half(later);
    cr_expect_not(rapt_optimizer_step(optimizer));
    expect_error(RAPT_ERROR_VALUE, "the epsilon of 'later' is 1e-50");
    cr_expect_eq(element(later, 0), 1);
    rapt_optimizer_free(optimizer);
    rapt_module_free(&linear->module);
}
