/* Stochastic gradient descent, with momentum (Polyak 1964; Nesterov 1983, as Sutskever et al. 2013 write it). */
#include <math.h>

#include "core.h"

typedef struct sgd {
    rapt_optimizer base;
    double momentum, dampening;
    bool nesterov;
} sgd;

/* g = g + λp; v = μv + (1 − δ)g, at first g; p = p − ηd with d = v, or g + μv (Nesterov), or g (no momentum) */
static void update(const rapt_optimizer *optimizer, const rapt_update *step)
{
    const sgd *s = (const sgd *)optimizer;
    rapt_sgd_numbers numbers = {
        .rate = step->learning_rate,
        .decay = step->weight_decay,
        .momentum = s->momentum,
        .share = step->step == 1 ? 1 : 1 - s->dampening,
        .nesterov = s->nesterov,
    };
    rapt_update_run(step, s->momentum > 0 ? rapt_kernel.optimizer.sgd_momentum : rapt_kernel.optimizer.sgd, &numbers);
}

static const rapt_optimizer_class sgd_class = {.name = "SGD", .update = update};

rapt_optimizer *rapt_sgd_new(rapt_module *module, const rapt_sgd_config *config)
{
    const rapt_sgd_config c = config ? *config : (rapt_sgd_config){0};
    const char *op = sgd_class.name;
    sgd *s = rapt_optimizer_new(sizeof *s, &sgd_class);
    if (!s) return NULL;
    bool good = rapt_take_number(op, "learning_rate", c.learning_rate, 0.01, INFINITY, &s->base.learning_rate) &&
                rapt_take_number(op, "momentum", c.momentum, 0, INFINITY, &s->momentum) &&
                rapt_take_number(op, "dampening", c.dampening, 0, INFINITY, &s->dampening) &&
                rapt_take_number(op, "weight_decay", c.weight_decay, 0, INFINITY, &s->base.weight_decay);
    s->nesterov = c.nesterov;
    if (good && s->nesterov && (s->momentum == 0 || s->dampening > 0))
        good = rapt_fail(RAPT_ERROR_VALUE, op, "Nesterov's form needs momentum above 0 and no dampening, not %g and %g",
                         s->momentum, s->dampening);
    if (s->momentum > 0) rapt_optimizer_add_state(&s->base, "momentum_buffer");
    return rapt_optimizer_finish(&s->base, good, module);
}
