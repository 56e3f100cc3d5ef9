/* RMSprop (Hinton 2012), centered and with momentum as Graves 2013. */
#include <math.h>

#include "core.h"

typedef struct rmsprop {
    rapt_optimizer base;
    double alpha, momentum;
    bool centered;
} rmsprop;

/* g = g + λp; v = αv + (1 − α)g²; d = g / (√v + ε); p = p − ηd. Centered: a = αa + (1 − α)g and v − a² under the root.
 * Momentum μ: b = μb + d and p = p − ηb. */
static void update(const rapt_optimizer *optimizer, const rapt_update *step)
{
    const rmsprop *r = (const rmsprop *)optimizer;
    rapt_rmsprop_numbers numbers = {
        .rate = step->learning_rate,
        .decay = step->weight_decay,
        .alpha = r->alpha,
        .share = 1 - r->alpha,
        .epsilon = r->base.epsilon,
        .momentum = r->momentum,
    };
    rapt_update_run(step, rapt_kernel.optimizer.rmsprop[r->centered][r->momentum > 0], &numbers);
}

static const rapt_optimizer_class rmsprop_class = {.name = "RMSprop", .update = update};

rapt_optimizer *rapt_rmsprop_new(rapt_module *module, const rapt_rmsprop_config *config)
{
    const rapt_rmsprop_config c = config ? *config : (rapt_rmsprop_config){0};
    const char *op = rmsprop_class.name;
    rmsprop *r = rapt_optimizer_new(sizeof *r, &rmsprop_class);
    if (!r) return NULL;
    bool good = rapt_take_number(op, "learning_rate", c.learning_rate, 0.01, INFINITY, &r->base.learning_rate) &&
                rapt_take_number(op, "alpha", c.alpha, 0.99, 1, &r->alpha) &&
                rapt_take_number(op, "epsilon", c.epsilon, 1e-8, INFINITY, &r->base.epsilon) &&
                rapt_take_number(op, "momentum", c.momentum, 0, INFINITY, &r->momentum) &&
                rapt_take_number(op, "weight_decay", c.weight_decay, 0, INFINITY, &r->base.weight_decay);
    r->centered = c.centered;
    rapt_optimizer_add_state(&r->base, "square_avg");
    if (r->centered) rapt_optimizer_add_state(&r->base, "grad_avg");
    if (r->momentum > 0) rapt_optimizer_add_state(&r->base, "momentum_buffer");
    return rapt_optimizer_finish(&r->base, good, module);
}
