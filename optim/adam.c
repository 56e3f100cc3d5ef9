/* Adam (Kingma & Ba 2015) and AdamW (Loshchilov & Hutter 2019). */
#include <math.h>

#include "core.h"

typedef struct adam {
    rapt_optimizer base;
    rapt_adam_terms terms;
} adam;

static double rate_of(const rapt_adam_terms *terms, const rapt_update *update)
{
    return terms->learning_rate / (1 - pow(terms->beta1, (double)update->step));
}

bool rapt_adam_check(const rapt_adam_terms *terms, const rapt_optimizer *optimizer, const rapt_update *update)
{
    return rapt_check_step_number(optimizer, update, "learning rate / (1 - beta1^t)", rate_of(terms, update), true) &&
           rapt_check_step_number(optimizer, update, "epsilon", terms->epsilon, false) &&
           rapt_check_decay(optimizer, update, terms->learning_rate, terms->weight_decay);
}

/* m = β₁m + (1 − β₁)g, v = β₂v + (1 − β₂)g², p = p − η · m/(1 − β₁ᵗ) / (√v/√(1 − β₂ᵗ) + ε) */
void rapt_adam_run(const rapt_adam_terms *terms, double decay, double keep, const rapt_update *update)
{
    const rapt_adam_numbers numbers = {
        .decay = decay,
        .keep = keep,
        .share1 = 1 - terms->beta1,
        .beta2 = terms->beta2,
        .share2 = 1 - terms->beta2,
        .rate = rate_of(terms, update),
        .correction = 1 / sqrt(1 - pow(terms->beta2, (double)update->step)),
        .epsilon = terms->epsilon,
    };
    rapt_update_run(update, rapt_kernel.optimizer.adam, &numbers);
}

static rapt_adam_terms terms_of(const rapt_optimizer *optimizer, const rapt_update *step)
{
    rapt_adam_terms terms = ((const adam *)optimizer)->terms;
    terms.learning_rate = step->learning_rate;
    terms.weight_decay = step->weight_decay;
    return terms;
}

static bool check(const rapt_optimizer *optimizer, const rapt_update *step)
{
    const rapt_adam_terms terms = terms_of(optimizer, step);
    return rapt_adam_check(&terms, optimizer, step);
}

/* g = g + λp first */
static void update_adam(const rapt_optimizer *optimizer, const rapt_update *step)
{
    const rapt_adam_terms terms = terms_of(optimizer, step);
    rapt_adam_run(&terms, step->weight_decay, 1, step);
}

/* p = (1 − ηλ)p first */
static void update_adamw(const rapt_optimizer *optimizer, const rapt_update *step)
{
    const rapt_adam_terms terms = terms_of(optimizer, step);
    rapt_adam_run(&terms, 0, 1 - step->learning_rate * step->weight_decay, step);
}

static const rapt_optimizer_class adam_class = {.name = "Adam", .check = check, .update = update_adam},
                                  adamw_class = {.name = "AdamW", .check = check, .update = update_adamw};

bool rapt_adam_take_config(const char *op, const rapt_adam_config *config, double default_decay, rapt_adam_terms *terms)
{
    const rapt_adam_config c = config ? *config : (rapt_adam_config){0};
    return rapt_take_number(op, "learning_rate", c.learning_rate, 0.001, INFINITY, &terms->learning_rate) &&
           rapt_take_number(op, "beta1", c.beta1, 0.9, 1, &terms->beta1) &&
           rapt_take_number(op, "beta2", c.beta2, 0.999, 1, &terms->beta2) &&
           rapt_take_number(op, "epsilon", c.epsilon, 1e-8, INFINITY, &terms->epsilon) &&
           rapt_take_number(op, "weight_decay", c.weight_decay, default_decay, INFINITY, &terms->weight_decay);
}

static rapt_optimizer *make(const rapt_optimizer_class *kind, rapt_module *module, const rapt_adam_config *config,
                            double default_decay)
{
    adam *a = rapt_optimizer_new(sizeof *a, kind);
    if (!a) return NULL;
    const bool good = rapt_adam_take_config(kind->name, config, default_decay, &a->terms);
    a->base.learning_rate = a->terms.learning_rate;
    a->base.weight_decay = a->terms.weight_decay;
    rapt_optimizer_add_state(&a->base, "exp_avg");
    rapt_optimizer_add_state(&a->base, "exp_avg_sq");
    return rapt_optimizer_finish(&a->base, good, module);
}

rapt_optimizer *rapt_adam_new(rapt_module *module, const rapt_adam_config *config)
{
    return make(&adam_class, module, config, 0);
}

rapt_optimizer *rapt_adamw_new(rapt_module *module, const rapt_adam_config *config)
{
    return make(&adamw_class, module, config, 0.01);
}
