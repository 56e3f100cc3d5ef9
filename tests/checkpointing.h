/* Small runs of training for the tests of checkpoints, and a file for them. */
#ifndef RAPT_TESTS_CHECKPOINTING_H
#define RAPT_TESTS_CHECKPOINTING_H

#include "optimizer_kinds.h"
#include "optimizing.h"

#include <unistd.h>

#include "temporary_file.h"

static const rapt_module_class model_class = {.name = "Model"};

/* Two parameters and a buffer, all zero. */
static inline rapt_module *model_of(const rapt_module_class *kind)
{
    rapt_module *module = rapt_module_new(sizeof *module, kind);
    rapt_module_add_parameter(module, "weight", rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(7, 3)));
    rapt_module_add_parameter(module, "bias", rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(3)));
    rapt_module_add_buffer(module, "mean", rapt_zeros(RAPT_INT32, RAPT_SHAPE(2)));
    return rapt_module_finish(module);
}

/* One step with random gradients, the learning rate going down. */
static inline void train_step(rapt_module *module, rapt_optimizer *optimizer, bool with_bias)
{
    RAPT_SCOPE;
    rapt_tensor *weight = rapt_module_find(module, "weight"), *bias = rapt_module_find(module, "bias");
    give_gradient(weight, rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(7, 3)));
    if (with_bias) give_gradient(bias, rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(3)));
    cr_assert(rapt_optimizer_set_learning_rate(optimizer, rapt_optimizer_get_learning_rate(optimizer) * 0.9));
    cr_assert(rapt_optimizer_step(optimizer), "%s", rapt_error());
}

static char path[32];

static inline void new_path(void)
{
    write_temporary_file(path, "", 0);
}

static inline void remove_path(void)
{
    unlink(path);
}

/* A run that loads, and everything a failed load must leave as it was. */
typedef struct run {
    rapt_module *module;
    rapt_optimizer *optimizer;
    rapt_checkpoint checkpoint;
    rapt_tensor *weight, *bias, *moment; /* copies */
    rapt_archive *state;
} run;

static inline run start_run(void)
{
    run r = {.module = model_of(&model_class)};
    r.optimizer = optimizer_of(1, r.module);
    rapt_seed(11);
    for (int i = 0; i < 3; i++) train_step(r.module, r.optimizer, true);
    r.weight = rapt_clone(rapt_module_find(r.module, "weight"));
    r.bias = rapt_clone(rapt_module_find(r.module, "bias"));
    r.state = rapt_archive_new();
    cr_assert(rapt_optimizer_to_archive(r.optimizer, "o.", r.state), "%s", rapt_error());
    r.moment = rapt_clone(rapt_archive_find(r.state, "o.weight.exp_avg_sq"));
    rapt_random_set_state((rapt_random_state){21, 22});
    r.checkpoint = (rapt_checkpoint){.module = r.module, .optimizer = r.optimizer, .step = 77, .order = r.weight};
    return r;
}

static inline void expect_unchanged(const run *r)
{
    cr_expect(same_bits(rapt_module_find(r->module, "weight"), r->weight));
    cr_expect(same_bits(rapt_module_find(r->module, "bias"), r->bias));
    rapt_archive *now = rapt_archive_new();
    cr_assert(rapt_optimizer_to_archive(r->optimizer, "o.", now));
    cr_expect_eq(rapt_archive_find(now, "o.weight.exp_avg_sq"), rapt_archive_find(r->state, "o.weight.exp_avg_sq"));
    cr_expect(same_bits(rapt_archive_find(now, "o.weight.exp_avg_sq"), r->moment));
    cr_expect_eq(rapt_optimizer_get_steps(r->optimizer), 3);
    cr_expect_float_eq(rapt_optimizer_get_learning_rate(r->optimizer), 0.001 * 0.9 * 0.9 * 0.9, 1e-12);
    cr_expect_eq(rapt_random_get_state().seed, 21);
    cr_expect_eq(rapt_random_get_state().offset, 22);
    cr_expect_eq(r->checkpoint.step, 77);
    cr_expect_eq(r->checkpoint.order, r->weight);
    rapt_archive_free(now);
}

static inline void end_run(run *r)
{
    rapt_archive_free(r->state);
    rapt_optimizer_free(r->optimizer);
    rapt_module_free(r->module);
}

#endif
