/* What an op costs when its tensors are tiny: chains on 16 numbers, and a step of the smallest training loop. */
#include <stdio.h>
#include <stdlib.h>

#include <rapt.h>

#include "timing.h"

enum { links = 334, ops = 3 * links };

struct chain {
    rapt_tensor *x, *a, *c;
};

static rapt_tensor *run_chain(const struct chain *chain)
{
    rapt_tensor *y = chain->x;
    for (int i = 0; i < links; i++) y = rapt_tanh(rapt_mul(rapt_add(y, chain->a), chain->c));
    return y;
}

static void forward(void *context)
{
    RAPT_NO_GRADIENT;
    RAPT_SCOPE;
    run_chain(context);
}

static void record(void *context)
{
    RAPT_SCOPE;
    run_chain(context);
}

static void forward_and_backward(void *context)
{
    RAPT_SCOPE;
    struct chain *chain = context;
    rapt_tensor *y = run_chain(chain), *ones = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(16));
    rapt_backward_from(1, &y, &ones, 0);
    rapt_clear_gradient(chain->x);
}

struct loop {
    rapt_sequential *model;
    rapt_optimizer *optimizer;
    rapt_tensor *x, *target;
};

static void train(void *context)
{
    struct loop *loop = context;
    for (int step = 0; step < 1000; step++) {
        RAPT_SCOPE;
        rapt_backward(rapt_mse_loss(rapt_sequential_forward(loop->model, loop->x), loop->target, RAPT_REDUCE_MEAN));
        rapt_optimizer_step(loop->optimizer);
    }
}

int main(void)
{
    RAPT_SCOPE;
    rapt_on_error(rapt_exit_on_error);
    rapt_seed(1);
    puts(rapt_describe_runtime());
    struct chain chain = {.x = rapt_require_gradient(rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(16))),
                          .a = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(16)),
                          .c = rapt_full(RAPT_FLOAT32, RAPT_SHAPE(16), 1.01)};
    timing_report("chain of 1002 ops: forward", 101, ops, forward, &chain);
    timing_report("chain of 1002 ops: forward, recorded", 101, ops, record, &chain);
    timing_report("chain of 1002 ops: forward + backward", 101, ops, forward_and_backward, &chain);

    const float inputs[] = {0, 0, 0, 1, 1, 0, 1, 1}, targets[] = {0, 1, 1, 0};
    struct loop loop = {.model = RAPT_SEQUENTIAL((rapt_module *)rapt_linear_new(2, 8, RAPT_BIAS),
                                                 rapt_activation_new("Tanh", rapt_tanh),
                                                 (rapt_module *)rapt_linear_new(8, 1, RAPT_BIAS)),
                        .x = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(4, 2), inputs),
                        .target = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(4, 1), targets)};
    loop.optimizer = rapt_sgd_new(&loop.model->module, &(rapt_sgd_config){.learning_rate = 0.1});
    timing_report("exclusive or 2-8-1: a training step", 21, 1000, train, &loop);
    rapt_optimizer_free(loop.optimizer);
    rapt_module_free(&loop.model->module);
    return EXIT_SUCCESS;
}
