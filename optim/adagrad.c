/* Adagrad (Duchi et al. 2011). */
#include <math.h>

#include "core.h"

typedef struct adagrad {
    rapt_optimizer base;
    double learning_rate_decay;
} adagrad;

/* g = g + λp; s = s + g²; p = p − η/(1 + (t − 1)κ) · g / (√s + ε) */
static void update(const rapt_optimizer *optimizer, const rapt_update *step)
{
    const adagrad *a = (const adagrad *)optimizer;
    rapt_adagrad_numbers numbers = {
        .rate = step->learning_rate / (1 + (double)(step->step - 1) * a->learning_rate_decay),
        .decay = step->weight_decay,
        .epsilon = a->base.epsilon,
    };
    rapt_update_run(step, rapt_kernel.optimizer.adagrad, &numbers);
}

static const rapt_optimizer_class adagrad_class = {.name = "Adagrad", .update = update};

rapt_optimizer *rapt_adagrad_new(rapt_module *module, const rapt_adagrad_config *config)
{
    const rapt_adagrad_config c = config ? *config : (rapt_adagrad_config){0};
    const char *op = adagrad_class.name;
    adagrad *a = rapt_optimizer_new(sizeof *a, &adagrad_class);
    if (!a) return NULL;
    bool good =
        rapt_take_number(op, "learning_rate", c.learning_rate, 0.01, INFINITY, &a->base.learning_rate) &&
        rapt_take_number(op, "learning_rate_decay", c.learning_rate_decay, 0, INFINITY, &a->learning_rate_decay) &&
        rapt_take_number(op, "initial_accumulator", c.initial_accumulator, 0, INFINITY, &a->base.first_state) &&
        rapt_take_number(op, "epsilon", c.epsilon, 1e-10, INFINITY, &a->base.epsilon) &&
        rapt_take_number(op, "weight_decay", c.weight_decay, 0, INFINITY, &a->base.weight_decay);
    rapt_optimizer_add_state(&a->base, "sum");
    return rapt_optimizer_finish(&a->base, good, module);
}
