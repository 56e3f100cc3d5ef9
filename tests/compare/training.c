/* Training of a program's inputs: the steps of the program are the model, its roots with their gradients the loss. */
#include "judge.h"

/* 0 in a configuration is a default; here it is a 0. */
static double number(const record *how, const char *key)
{
    double value = record_real(how, key);
    return value != 0 ? value : RAPT_ZERO;
}

static rapt_optimizer *optimizer_of(rapt_module *module, const record *how)
{
    const double rate = number(how, "rate"), decay = number(how, "decay"), epsilon = number(how, "epsilon");
    if (record_says(how, "kind", "sgd"))
        return rapt_sgd_new(module, &(rapt_sgd_config){.learning_rate = rate,
                                                       .weight_decay = decay,
                                                       .momentum = number(how, "momentum"),
                                                       .dampening = number(how, "dampening"),
                                                       .nesterov = record_integer(how, "nesterov")});
    if (record_says(how, "kind", "rmsprop"))
        return rapt_rmsprop_new(module, &(rapt_rmsprop_config){.learning_rate = rate,
                                                               .weight_decay = decay,
                                                               .epsilon = epsilon,
                                                               .alpha = number(how, "alpha"),
                                                               .momentum = number(how, "momentum"),
                                                               .centered = record_integer(how, "centered")});
    if (record_says(how, "kind", "adagrad"))
        return rapt_adagrad_new(module, &(rapt_adagrad_config){.learning_rate = rate,
                                                               .weight_decay = decay,
                                                               .epsilon = epsilon,
                                                               .learning_rate_decay = number(how, "rate_decay"),
                                                               .initial_accumulator = number(how, "initial")});
    if (record_says(how, "kind", "adafactor"))
        return rapt_adafactor_new(module, &(rapt_adafactor_config){.learning_rate = rate,
                                                                   .weight_decay = decay,
                                                                   .beta2_decay = number(how, "beta2_decay"),
                                                                   .epsilon1 = number(how, "epsilon1"),
                                                                   .epsilon2 = number(how, "epsilon2"),
                                                                   .clip = number(how, "clip")});
    if (record_says(how, "kind", "lion"))
        return rapt_lion_new(module, &(rapt_lion_config){.learning_rate = rate,
                                                         .weight_decay = decay,
                                                         .beta1 = number(how, "beta1"),
                                                         .beta2 = number(how, "beta2")});
    if (record_says(how, "kind", "muon"))
        return rapt_muon_new(module, &(rapt_muon_config){.learning_rate = rate,
                                                         .weight_decay = decay,
                                                         .epsilon = epsilon,
                                                         .momentum = number(how, "momentum"),
                                                         .heavy_ball = record_integer(how, "heavy_ball"),
                                                         .match_rms = record_integer(how, "match_rms"),
                                                         .adamw = {.learning_rate = number(how, "adamw_rate"),
                                                                   .weight_decay = number(how, "adamw_decay")}});
    const rapt_adam_config adam = {.learning_rate = rate,
                                   .weight_decay = decay,
                                   .epsilon = epsilon,
                                   .beta1 = number(how, "beta1"),
                                   .beta2 = number(how, "beta2")};
    return record_says(how, "kind", "adam") ? rapt_adam_new(module, &adam) : rapt_adamw_new(module, &adam);
}

/* The inputs that are trained, named "p" and the number of their value. */
static rapt_module *parameters_of(run *r, const record *how)
{
    static const rapt_module_class kind = {.name = "Parameters"};
    int64_t numbers[most_values];
    rapt_module *module = rapt_module_new(sizeof *module, &kind);
    int count = record_integers(how, "parameters", numbers, most_values);
    for (int i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "p%lld", (long long)numbers[i]);
        rapt_module_add_parameter(module, name, r->values[numbers[i]]);
    }
    return module ? r->modules[r->module_count++] = module : NULL;
}

static bool set_group(rapt_optimizer *optimizer, const record *how)
{
    char name[32];
    if (!record_text(how, "group")) return true;
    snprintf(name, sizeof name, "p%lld", (long long)record_integer(how, "group"));
    return rapt_optimizer_group(optimizer, name,
                                &(rapt_group_config){.learning_rate = number(how, "group_rate"),
                                                     .weight_decay = number(how, "group_decay")});
}

static bool train_once(run *r, const record *how, rapt_optimizer *optimizer)
{
    RAPT_SCOPE;
    const double norm = record_real(how, "clip_norm"), value = record_real(how, "clip_value");
    return run_forward(r, true) && run_backward(r, 0) &&
           (!(norm > 0) || rapt_clip_gradient_norm(optimizer, norm, NULL)) &&
           (!(value > 0) || rapt_clip_gradient_value(optimizer, value)) && rapt_optimizer_step(optimizer);
}

bool run_training(run *r, const record *how)
{
    rapt_optimizer *optimizer = optimizer_of(parameters_of(r, how), how);
    bool good = optimizer && set_group(optimizer, how);
    const int64_t steps = record_integer(how, "steps"), half = steps / 2;
    for (int64_t step = 0; step < steps && good; step++) {
        if (step == half && record_text(how, "later_rate"))
            good = rapt_optimizer_set_learning_rate(optimizer, number(how, "later_rate"));
        good = good && train_once(r, how, optimizer);
    }
    rapt_optimizer_free(optimizer);
    r->step = how;
    if (!good) report(r, rapt_error());
    return good;
}
