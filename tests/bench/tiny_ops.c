/* What an op costs when its tensors are tiny: a chain on 16 numbers, and steps of the smallest training loop. */
#include <stdlib.h>

#include <rapt.h>

#include "rows.h"

/* --- the chain --- */

enum { links = 334 };

struct chain {
    rapt_tensor *x, *a, *c, *ones;
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
    rapt_tensor *y = run_chain(chain);
    rapt_backward_from(1, &y, &chain->ones, 0);
    rapt_clear_gradient(chain->x);
}

static void *make_chain(const void *row, const void *context)
{
    (void)row, (void)context;
    static struct chain chain;
    chain = (struct chain){.x = rapt_require_gradient(rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(16))),
                           .a = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(16)),
                           .c = rapt_full(RAPT_FLOAT32, RAPT_SHAPE(16), 1.01),
                           .ones = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(16))};
    return &chain;
}

static void end_chain(void *made)
{
    (void)made;
}

/* --- the loop --- */

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

static void *make_loop(const void *row, const void *context)
{
    (void)row, (void)context;
    static struct loop loop;
    const float inputs[] = {0, 0, 0, 1, 1, 0, 1, 1}, targets[] = {0, 1, 1, 0};
    loop = (struct loop){.model = RAPT_SEQUENTIAL((rapt_module *)rapt_linear_new(2, 8, RAPT_BIAS),
                                                  rapt_activation_new("Tanh", rapt_tanh),
                                                  (rapt_module *)rapt_linear_new(8, 1, RAPT_BIAS)),
                         .x = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(4, 2), inputs),
                         .target = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(4, 1), targets)};
    loop.optimizer = rapt_sgd_new(&loop.model->module, &(rapt_sgd_config){.learning_rate = 0.1});
    return &loop;
}

static void end_loop(void *made)
{
    struct loop *loop = made;
    rapt_optimizer_free(loop->optimizer);
    rapt_module_free(&loop->model->module);
}

int main(int count, char **arguments)
{
    static const char *const chains[] = {"chain_1002"}, *const loops[] = {"xor_2_8_1"};
    const row_family families[] = {
        {ROWS_OF(chains), .phases = {"fwd", "record", "fwd_bwd"}, .work = {forward, record, forward_and_backward},
         .make = make_chain, .end = end_chain,
         .note = "a chain of 1002 ops: microseconds an op, if you take the ms for them"},
        {ROWS_OF(loops), .phases = {"steps"}, .work = {train}, .make = make_loop, .end = end_loop,
         .note = "1000 steps"},
    };
    return rows_main(count, arguments, families, 2);
}
