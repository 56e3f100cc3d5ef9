/* The cases of optimizers.py: steps on a small problem, and clipping. */
#include "parity.h"

#include <stddef.h>

enum { few = 5, many = 100 };

static rapt_module *problem(parity *p)
{
    rapt_module *first = (rapt_module *)rapt_linear_new(3, 4, RAPT_BIAS);
    rapt_module *last = (rapt_module *)rapt_linear_new(4, 2, RAPT_BIAS);
    return parity_module(p, RAPT_SEQUENTIAL(first, rapt_activation_new("Tanh", rapt_tanh), last));
}

static rapt_tensor *loss_of(rapt_module *net, rapt_tensor *x, rapt_tensor *target)
{
    return rapt_mse_loss(rapt_module_forward(net, x), target, RAPT_REDUCE_MEAN);
}

/* Losses of the steps, and all weights after the last. */
static void train(parity *p, int steps, rapt_module *net, rapt_optimizer *optimizer)
{
    rapt_tensor *x = parity_input(p, "x"), *target = parity_input(p, "target"), *losses[many];
    for (int step = 0; step < steps; step++) {
        losses[step] = loss_of(net, x, target);
        rapt_backward(losses[step]);
        rapt_optimizer_step(optimizer);
        losses[step] = rapt_detach(losses[step]);
    }
    parity_output(p, "losses", rapt_stack(steps, losses, 0));
    static const char *const names[] = {"0.weight", "0.bias", "2.weight", "2.bias"};
    for (int i = 0; i < 4; i++) parity_output(p, names[i], rapt_detach(rapt_module_find(net, names[i])));
    rapt_optimizer_free(optimizer);
}

#define TRAIN(name, steps, kind, config, ...)                                                                          \
    static void name(parity *p)                                                                                        \
    {                                                                                                                  \
        rapt_module *net = problem(p);                                                                                 \
        train(p, steps, net, rapt_##kind##_new(net, &(const rapt_##config##_config){__VA_ARGS__}));                    \
    }
TRAIN(sgd, few, sgd, sgd, .learning_rate = 0.1, .weight_decay = 0.01)
TRAIN(sgd_momentum, few, sgd, sgd, .learning_rate = 0.1, .momentum = 0.9, .dampening = 0.2)
TRAIN(sgd_nesterov, few, sgd, sgd, .learning_rate = 0.1, .momentum = 0.9, .nesterov = true)
TRAIN(adam, few, adam, adam, .learning_rate = 0.02)
TRAIN(adam_decay, few, adam, adam, .learning_rate = 0.02, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6,
      .weight_decay = 0.1)
TRAIN(adamw, few, adamw, adam, .learning_rate = 0.02)
TRAIN(rmsprop, few, rmsprop, rmsprop, .learning_rate = 0.01)
TRAIN(rmsprop_centered, few, rmsprop, rmsprop, .learning_rate = 0.01, .alpha = 0.9, .momentum = 0.5, .centered = true,
      .weight_decay = 0.1)
TRAIN(adagrad, few, adagrad, adagrad, .learning_rate = 0.05)
TRAIN(adagrad_decay, few, adagrad, adagrad, .learning_rate = 0.05, .learning_rate_decay = 0.1,
      .initial_accumulator = 0.5, .weight_decay = 0.1)
TRAIN(adafactor, many, adafactor, adafactor, .learning_rate = 0.02)
TRAIN(adafactor_decay, many, adafactor, adafactor, .learning_rate = 0.005, .beta2_decay = 0.5, .epsilon1 = 1e-3,
      .epsilon2 = 0.1, .clip = 2, .weight_decay = 0.05)
TRAIN(lion, many, lion, lion, .learning_rate = 0.01)
TRAIN(lion_decay, many, lion, lion, .learning_rate = 0.005, .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.2)
TRAIN(muon, many, muon, muon, .learning_rate = 0.004, .adamw.learning_rate = 0.01)
TRAIN(muon_heavy_ball, many, muon, muon, .learning_rate = 0.03, .momentum = 0.8, .weight_decay = 0.01,
      .heavy_ball = true, .match_rms = true)

/* The norm before clipping; the clipped gradients stay with the weights. */
static void clip_to(parity *p, double limit)
{
    rapt_module *net = problem(p);
    rapt_backward(loss_of(net, parity_input(p, "x"), parity_input(p, "target")));
    rapt_optimizer *optimizer = rapt_sgd_new(net, NULL);
    double norm = 0;
    rapt_clip_gradient_norm(optimizer, limit, &norm);
    rapt_optimizer_free(optimizer);
    parity_output(p, "norm", rapt_scalar(p->dtype, norm));
}

static void clip(parity *p)
{
    clip_to(p, 0.1);
}

static void clip_not_reached(parity *p)
{
    clip_to(p, 100);
}

const parity_case parity_optimizers[] = {
    PARITY(sgd),
    PARITY(sgd_momentum),
    PARITY(sgd_nesterov),
    PARITY(adam),
    PARITY(adam_decay),
    PARITY(adamw),
    PARITY(rmsprop),
    PARITY(rmsprop_centered),
    PARITY(adagrad),
    PARITY(adagrad_decay),
    PARITY(adafactor),
    PARITY(adafactor_decay),
    PARITY(lion),
    PARITY(lion_decay),
    PARITY(muon),
    PARITY(muon_heavy_ball),
    PARITY(clip),
    PARITY(clip_not_reached),
    {0},
};
