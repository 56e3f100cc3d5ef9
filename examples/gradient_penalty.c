/* A loss with a gradient inside: a critic of attention learns to tell two kinds of sets apart, and a penalty on its
 * slope keeps it 1-Lipschitz (Gulrajani et al. 2017). The penalty is differentiated through fused attention. */
#include <stdio.h>

#include <rapt.h>

#include "claim.h"
#include "command_line.h"

enum { batch = 32, length = 6, size = 8, steps = 300 };

/* Reads a set of vectors (B, length, size) and gives one number for each. */
typedef struct critic {
    rapt_module module;
    rapt_linear *input, *output;
    rapt_multi_head_attention *attention;
} critic;

static critic *critic_new(int64_t hidden)
{
    static const rapt_module_class kind = {.name = "Critic"};
    const rapt_multi_head_attention_config config = {.hidden = hidden, .heads = 2, .bias = true};
    critic *c = rapt_module_new(sizeof *c, &kind);
    if (!c) return NULL;
    c->input = rapt_module_add_child(&c->module, "input", (rapt_module *)rapt_linear_new(size, hidden, RAPT_BIAS));
    c->output = rapt_module_add_child(&c->module, "output", (rapt_module *)rapt_linear_new(hidden, 1, RAPT_BIAS));
    c->attention =
        rapt_module_add_child(&c->module, "attention", (rapt_module *)rapt_multi_head_attention_new(&config));
    return rapt_module_finish(&c->module);
}

static rapt_tensor *criticise(const critic *c, rapt_tensor *sets)
{
    rapt_tensor *x = rapt_tanh(rapt_linear_forward(c->input, sets));
    x = rapt_add(x, rapt_multi_head_attention_forward(c->attention, x, x, x, NULL, NULL));
    return rapt_linear_forward(c->output, rapt_mean(rapt_tanh(x), RAPT_AXES(1), false));
}

/* Points around the origin, or of two opposite corners. */
static rapt_tensor *draw(bool corners)
{
    rapt_tensor *noise = rapt_mul_scalar(rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(batch, length, size)), 0.3);
    if (!corners) return noise;
    rapt_tensor *side = rapt_cast(rapt_randint(0, 2, RAPT_SHAPE(batch, 1, 1)), RAPT_FLOAT32);
    return rapt_add(noise, rapt_add_scalar(side, -0.5));
}

/* ‖d critic / d set‖ of each set between a real and a false one; with a graph it is part of a loss. */
static rapt_tensor *slopes(const critic *c, rapt_tensor *real, rapt_tensor *fake, int flags)
{
    rapt_tensor *at = rapt_rand(RAPT_FLOAT32, RAPT_SHAPE(batch, 1, 1)), *gradient;
    rapt_tensor *between = rapt_require_gradient(rapt_add(fake, rapt_mul(at, rapt_sub(real, fake))));
    rapt_tensor *root = rapt_sum(criticise(c, between), RAPT_ALL_AXES, false);
    rapt_gradients(1, &root, NULL, 1, &between, &gradient, flags);
    return rapt_sqrt(rapt_add_scalar(rapt_sum(rapt_mul(gradient, gradient), RAPT_AXES(1, 2), false), 1e-12));
}

typedef struct outcome {
    double distance, steepest;
} outcome;

static outcome train(double penalty)
{
    outcome last = {0, 0};
    rapt_seed(1);
    critic *c = critic_new(16);
    rapt_optimizer *adam = rapt_adam_new(&c->module, &(rapt_adam_config){.learning_rate = 5e-3});
    for (int step = 0; step < steps; step++) {
        RAPT_SCOPE;
        rapt_tensor *real = draw(true), *fake = draw(false);
        rapt_tensor *distance = rapt_sub(rapt_mean(criticise(c, real), RAPT_ALL_AXES, false),
                                         rapt_mean(criticise(c, fake), RAPT_ALL_AXES, false));
        rapt_tensor *norms = slopes(c, real, fake, penalty > 0 ? RAPT_CREATE_GRAPH : 0);
        rapt_tensor *excess = rapt_add_scalar(norms, -1), *loss = rapt_neg(distance);
        if (penalty > 0)
            loss = rapt_add(loss, rapt_mul_scalar(rapt_mean(rapt_mul(excess, excess), RAPT_ALL_AXES, false), penalty));
        rapt_backward(loss);
        rapt_optimizer_step(adam);
        last = (outcome){rapt_item(distance), rapt_item(rapt_max(norms, RAPT_ALL_AXES, false))};
    }
    printf("penalty %4g: the critic tells them apart by %7.3f, with slopes up to %7.3f\n", penalty, last.distance,
           last.steepest);
    rapt_optimizer_free(adam);
    rapt_module_free(&c->module);
    return last;
}

int main(int argc, char **argv)
{
    const struct command_line line = {.program = "gradient_penalty",
                                      .summary = "Trains a critic of attention with a penalty on its own gradient."};
    const enum command_line_result result = command_line_parse(&line, argc, argv);
    if (result != COMMAND_LINE_RUN) return result;
    rapt_on_error(rapt_exit_on_error);
    const outcome without = train(0), with = train(10);
    claim(without.steepest > 3, "without a penalty it is steep");
    claim(with.steepest < 1.5, "with one its slope stays near 1");
    claim(with.distance > 0.5, "and it still tells them apart");
    return claim_status("gradient_penalty");
}
