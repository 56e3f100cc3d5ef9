/* Adam (Kingma & Ba 2015) and AdamW (Loshchilov & Hutter 2019). */
#include <math.h>

#include "core.h"

typedef struct adam {
    rapt_optimizer base;
    double beta1, beta2, epsilon;
} adam;

/* m = β₁m + (1 − β₁)g, v = β₂v + (1 − β₂)g², p = p − η · m/(1 − β₁ᵗ) / (√v/√(1 − β₂ᵗ) + ε) */
static void run(const rapt_optimizer *optimizer, const rapt_update *step, double decay, double keep)
{
    const adam *a = (const adam *)optimizer;
    double t = (double)step->step;
    rapt_adam_numbers numbers = {
        .decay = decay,
        .keep = keep,
        .share1 = 1 - a->beta1,
        .beta2 = a->beta2,
        .share2 = 1 - a->beta2,
        .rate = step->learning_rate / (1 - pow(a->beta1, t)),
        .correction = 1 / sqrt(1 - pow(a->beta2, t)),
        .epsilon = a->epsilon,
    };
    rapt_update_run(step, rapt_kernel.optimizer.adam, &numbers);
}

/* g = g + λp first */
static void update_adam(const rapt_optimizer *optimizer, const rapt_update *step)
{
    run(optimizer, step, step->weight_decay, 1);
}

/* p = (1 − ηλ)p first */
static void update_adamw(const rapt_optimizer *optimizer, const rapt_update *step)
{
    run(optimizer, step, 0, 1 - step->learning_rate * step->weight_decay);
}

static const rapt_optimizer_class adam_class = {"Adam", update_adam}, adamw_class = {"AdamW", update_adamw};

static rapt_optimizer *make(const rapt_optimizer_class *kind, rapt_module *module, const rapt_adam_config *config,
                            double default_decay)
{
    const rapt_adam_config c = config ? *config : (rapt_adam_config){0};
    adam *a = rapt_optimizer_new(sizeof *a, kind);
    if (!a) return NULL;
    bool good =
        rapt_take_number(kind->name, "learning_rate", c.learning_rate, 0.001, INFINITY, &a->base.learning_rate) &&
        rapt_take_number(kind->name, "beta1", c.beta1, 0.9, 1, &a->beta1) &&
        rapt_take_number(kind->name, "beta2", c.beta2, 0.999, 1, &a->beta2) &&
        rapt_take_number(kind->name, "epsilon", c.epsilon, 1e-8, INFINITY, &a->epsilon) &&
        rapt_take_number(kind->name, "weight_decay", c.weight_decay, default_decay, INFINITY, &a->base.weight_decay);
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
