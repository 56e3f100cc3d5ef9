/* Optimizers of every kind, by numbers, for the tests. */
#ifndef RAPT_TESTS_OPTIMIZER_KINDS_H
#define RAPT_TESTS_OPTIMIZER_KINDS_H

#include <rapt/optim.h>

/* So many kinds there are; the first ones step each number by itself. */
enum { kinds = 8, elementwise_kinds = 6 };

static inline rapt_optimizer *optimizer_of(int kind, rapt_module *module)
{
    switch (kind) {
    case 0:
        return rapt_sgd_new(module, &(rapt_sgd_config){.momentum = 0.9});
    case 1:
        return rapt_adam_new(module, NULL);
    case 2:
        return rapt_adamw_new(module, NULL);
    case 3:
        return rapt_rmsprop_new(module, &(rapt_rmsprop_config){.momentum = 0.5, .centered = true});
    case 4:
        return rapt_lion_new(module, NULL);
    case 5:
        return rapt_adagrad_new(module, &(rapt_adagrad_config){.learning_rate_decay = 0.1});
    case 6:
        return rapt_adafactor_new(module, NULL);
    default:
        return rapt_muon_new(module, NULL);
    }
}

#endif
