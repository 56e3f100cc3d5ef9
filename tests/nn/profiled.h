/* What the tests of the profile run, and their own clock. */
#ifndef RAPT_TESTS_NN_PROFILED_H
#define RAPT_TESTS_NN_PROFILED_H

#include "../gpt.h"

#include <pthread.h>
#include <time.h>

#include <rapt/optim.h>
#include <rapt/profile.h>

static inline double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static inline rapt_sequential *perceptron(int64_t size)
{
    return RAPT_SEQUENTIAL((rapt_module *)rapt_linear_new(size, size, RAPT_BIAS),
                           rapt_activation_new("Tanh", rapt_tanh),
                           (rapt_module *)rapt_linear_new(size, size, RAPT_BIAS));
}

static inline rapt_tensor *loss_of(rapt_sequential *model, rapt_tensor *x)
{
    return rapt_mean(rapt_sequential_forward(model, x), RAPT_ALL_AXES, false);
}

/* In a thread: so many steps. */
static inline void *run_model(void *steps)
{
    RAPT_SCOPE;
    rapt_sequential *model = perceptron(8);
    for (int step = 0; step < *(const int *)steps; step++) {
        RAPT_SCOPE;
        cr_expect(rapt_backward(loss_of(model, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 8)))), "%s", rapt_error());
        rapt_module_clear_gradients(&model->module);
    }
    rapt_module_free(&model->module);
    return NULL;
}

static inline int64_t calls_of(int threads, int steps, const char *file)
{
    pthread_t thread[9];
    cr_assert(rapt_profile_start(file), "%s", rapt_error());
    for (int i = 0; i < threads; i++) pthread_create(&thread[i], NULL, run_model, &steps);
    for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
    cr_assert(rapt_profile_stop(), "%s", rapt_error());
    cr_expect_eq(rapt_profile_get_times().threads, threads + 1);
    return rapt_profile_get_times().calls;
}

#endif
