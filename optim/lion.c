/* Lion (Chen et al. 2023). */
#include <math.h>

#include "core.h"

typedef struct lion {
    rapt_optimizer base;
    double beta1, beta2;
} lion;

/* c = β₁m + (1 − β₁)g; p = (1 − ηλ)p − η sign c; m = β₂m + (1 − β₂)g */
static void update(const rapt_optimizer *optimizer, const rapt_update *step)
{
    const lion *l = (const lion *)optimizer;
    const rapt_lion_numbers numbers = {
        .keep = 1 - step->learning_rate * step->weight_decay,
        .rate = step->learning_rate,
        .share1 = 1 - l->beta1,
        .share2 = 1 - l->beta2,
    };
    rapt_update_run(step, rapt_kernel.optimizer.lion, &numbers);
}

static const rapt_optimizer_class lion_class = {.name = "Lion", .update = update};

rapt_optimizer *rapt_lion_new(rapt_module *module, const rapt_lion_config *config)
{
    const rapt_lion_config c = config ? *config : (rapt_lion_config){0};
    const char *op = lion_class.name;
    lion *l = rapt_optimizer_new(sizeof *l, &lion_class);
    if (!l) return NULL;
    const bool good = rapt_take_number(op, "learning_rate", c.learning_rate, 1e-4, INFINITY, &l->base.learning_rate) &&
                      rapt_take_number(op, "beta1", c.beta1, 0.9, 1, &l->beta1) &&
                      rapt_take_number(op, "beta2", c.beta2, 0.99, 1, &l->beta2) &&
                      rapt_take_number(op, "weight_decay", c.weight_decay, 0, INFINITY, &l->base.weight_decay);
    rapt_optimizer_add_state(&l->base, "exp_avg");
    return rapt_optimizer_finish(&l->base, good, module);
}
