/* Threads of the caller's own, and forked children: what may be shared gives the right bits, the rest is an error. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#ifndef _WIN32
#include <sys/wait.h>
#endif

#include <rapt.h>

#include "expect.h"
#include "same_bits.h"

enum { threads = 4, rounds = 12, length = 5, hidden = 8, most_parameters = 64 };

/* A model that has whatever keeps something between two calls: tables of positions, weights of attention. */
typedef struct model {
    rapt_gru *gru;
    rapt_sinusoidal_positions *positions;
    rapt_multi_head_attention *attention;
    rapt_module *root;
    rapt_tensor *parameters[most_parameters];
    int count;
} model;

static bool list_parameter(const char *name, rapt_tensor *parameter, void *context)
{
    model *m = context;
    (void)name;
    m->parameters[m->count++] = parameter;
    return true;
}

static model model_new(void)
{
    static const rapt_module_class kind = {.name = "Model"};
    rapt_seed(3);
    model m = {.root = rapt_module_new(sizeof(rapt_module), &kind)};
    m.gru = rapt_module_add_child(m.root, "gru", (rapt_module *)rapt_gru_new(hidden, hidden, 1, 0));
    m.positions = rapt_module_add_child(m.root, "positions", (rapt_module *)rapt_sinusoidal_positions_new(hidden, 0));
    m.attention =
        rapt_module_add_child(m.root, "attention",
                              (rapt_module *)rapt_multi_head_attention_new(&(rapt_multi_head_attention_config){
                                  .hidden = hidden, .heads = 2, .bias = true, .rotary = rapt_rotary_new()}));
    rapt_attention_keep_weights(m.root, true);
    cr_assert(rapt_module_visit(m.root, RAPT_PARAMETERS, list_parameter, &m), "%s", rapt_error());
    return m;
}

/* The loss of a sequence that depends on the number; longer ones make tables grow. */
static rapt_tensor *loss_of(const model *m, int number)
{
    rapt_seed((uint64_t)number);
    rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(length + number, 2, hidden));
    rapt_tensor *states = rapt_transpose(rapt_gru_forward(m->gru, x, NULL, NULL), 0, 1);
    states = rapt_sinusoidal_positions_forward(m->positions, states, 0);
    rapt_tensor *y =
        rapt_multi_head_attention_forward(m->attention, states, states, states, RAPT_MASK(.causal = true), NULL);
    return rapt_sum(rapt_mul(y, y), RAPT_ALL_AXES, false);
}

/* One thread's work and what came of it. */
typedef struct worker {
    const model *m;
    int first, fails;
    bool backward;
    rapt_tensor *gradients[rounds][most_parameters];
} worker;

static void *run(void *context)
{
    worker *w = context;
    for (int round = 0; round < rounds; round++) {
        RAPT_SCOPE;
        rapt_tensor *loss = loss_of(w->m, w->first + round);
        bool good = w->backward ? rapt_backward(loss)
                                : rapt_gradients(1, &loss, NULL, w->m->count, w->m->parameters, w->gradients[round], 0);
        for (int i = 0; i < w->m->count && good && !w->backward; i++) rapt_retain(w->gradients[round][i]);
        if (!good) w->fails++;
    }
    return NULL;
}

static void run_all(worker *workers, const model *m, bool at_once, bool backward)
{
    pthread_t thread[threads];
    for (int i = 0; i < threads; i++) {
        workers[i] = (worker){.m = m, .first = i * rounds, .backward = backward};
        cr_assert_eq(pthread_create(&thread[i], NULL, run, &workers[i]), 0);
        if (!at_once) pthread_join(thread[i], NULL);
    }
    for (int i = 0; i < threads && at_once; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < threads; i++) cr_expect_eq(workers[i].fails, 0);
}

Test(threads, gradients_of_one_model_at_once)
{
    static worker alone[threads], at_once[threads];
    model m = model_new();
    run_all(at_once, &m, true, false);
    run_all(alone, &m, false, false);
    for (int t = 0; t < threads; t++)
        for (int round = 0; round < rounds; round++)
            for (int i = 0; i < m.count; i++) {
                cr_expect(same_bits(at_once[t].gradients[round][i], alone[t].gradients[round][i]),
                          "thread %d, round %d, parameter %d", t, round, i);
                rapt_release(at_once[t].gradients[round][i]);
                rapt_release(alone[t].gradients[round][i]);
            }
    for (int i = 0; i < m.count; i++) cr_expect_null(rapt_gradient(m.parameters[i]));
    rapt_module_free(m.root);
}

/* Their sums differ by the order of the threads alone. */
Test(threads, backward_into_one_model_at_once)
{
    RAPT_SCOPE;
    static worker workers[threads];
    rapt_tensor *expected[most_parameters];
    model m = model_new();
    run_all(workers, &m, false, true);
    for (int i = 0; i < m.count; i++) expected[i] = rapt_clone(rapt_gradient(m.parameters[i]));
    rapt_module_clear_gradients(m.root);
    run_all(workers, &m, true, true);
    for (int i = 0; i < m.count; i++) {
        rapt_tensor *difference = rapt_abs(rapt_sub(rapt_gradient(m.parameters[i]), expected[i]));
        const double largest = rapt_item(rapt_max(rapt_abs(expected[i]), RAPT_ALL_AXES, false));
        cr_expect_leq(rapt_item(rapt_max(difference, RAPT_ALL_AXES, false)), 1e-5 * largest + 1e-6, "parameter %d", i);
    }
    rapt_module_free(m.root);
    expect_no_error();
}

/* --- one graph, walked by several threads: each is told or succeeds --- */

typedef struct walker {
    rapt_tensor *loss, *x;
    int good, refused, other;
} walker;

static void *walk(void *context)
{
    walker *w = context;
    for (int round = 0; round < 200; round++) {
        RAPT_SCOPE;
        rapt_tensor *gradient;
        if (rapt_gradients(1, &w->loss, NULL, 1, &w->x, &gradient, RAPT_RETAIN_GRAPH))
            w->good += gradient && rapt_item(gradient) == 64;
        else if (rapt_error_get_code() == RAPT_ERROR_GRAPH && strstr(rapt_error(), "another backward"))
            w->refused++;
        else
            w->other++;
        rapt_clear_error();
    }
    return NULL;
}

Test(threads, one_graph_belongs_to_one_walk_at_a_time)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_require_gradient(rapt_ones(RAPT_FLOAT64, 0, NULL)), *y = x;
    for (int i = 0; i < 6; i++) y = rapt_add(y, y);
    walker walkers[threads];
    pthread_t thread[threads];
    for (int i = 0; i < threads; i++) {
        walkers[i] = (walker){.loss = y, .x = x};
        cr_assert_eq(pthread_create(&thread[i], NULL, walk, &walkers[i]), 0);
    }
    int good = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
        cr_expect_eq(walkers[i].other, 0);
        cr_expect_eq(walkers[i].good + walkers[i].refused, 200);
        good += walkers[i].good;
    }
    cr_expect_gt(good, 0);
}

/* A vjp that walks the graph that it is part of. */
static rapt_tensor *own_root;

static rapt_tensor *copy_forward(rapt_call *call)
{
    return rapt_clone(rapt_call_input(call, 0));
}

static bool circular_vjp(rapt_call *call)
{
    return rapt_backward(own_root) && rapt_call_give(call, 0, rapt_call_gradient(call, 0));
}

Test(threads, a_walk_inside_a_walk_of_the_same_graph)
{
    RAPT_SCOPE;
    static const rapt_op circular = {.name = "circular", .forward = copy_forward, .vjp = circular_vjp};
    rapt_tensor *x = rapt_require_gradient(rapt_ones(RAPT_FLOAT64, 0, NULL));
    own_root = RAPT_APPLY(&circular, NULL, x);
    cr_expect_not(rapt_backward(own_root));
    expect_error(RAPT_ERROR_GRAPH, "backward: another backward goes through the graph of circular");
}

/* --- forks --- */

#ifndef _WIN32 /* which has none */

/* The child's exit status, 0 when it finds the same sum; a child that hangs is killed by its alarm. */
static int sum_in_child(const model *m, double expected, bool sets_threads)
{
    fflush(NULL);
    const pid_t child = fork();
    cr_assert(child >= 0);
    if (child == 0) {
        alarm(30);
        const bool good = !sets_threads || rapt_set_threads(2) || strstr(rapt_error(), "forked child");
        rapt_clear_error();
        rapt_tensor *loss = loss_of(m, 400);
        _exit(good && loss && rapt_backward(loss) && rapt_item(loss) == expected ? 0 : 1);
    }
    int status = -1;
    cr_assert_eq(waitpid(child, &status, 0), child);
    return status;
}

static void *allocate_without_end(void *stop)
{
    while (!__atomic_load_n((bool *)stop, __ATOMIC_RELAXED)) {
        RAPT_SCOPE;
        for (int i = 0; i < 50; i++) rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(100000));
    }
    return NULL;
}

Test(threads, a_forked_child_computes_the_same)
{
    RAPT_SCOPE;
    model m = model_new();
    rapt_tensor *loss = loss_of(&m, 400);
    const double expected = rapt_item(loss);
    cr_expect_eq(sum_in_child(&m, expected, false), 0);
#ifndef __SANITIZE_THREAD__ /* which does not know how OpenMP's threads wait for each other */
    cr_expect_eq(sum_in_child(&m, expected, true), 0);
#endif
    bool stop = false; /* while another thread takes and gives locks */
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, allocate_without_end, &stop), 0);
    for (int i = 0; i < 20; i++) cr_expect_eq(sum_in_child(&m, expected, false), 0);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    rapt_module_free(m.root);
}

/* Gradients that are nobody's own are added by ops, which a profile measures. */
static void *add_gradients_without_end(void *stop)
{
    rapt_tensor *leaf = rapt_require_gradient(rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2)));
    while (!__atomic_load_n((bool *)stop, __ATOMIC_RELAXED)) {
        RAPT_SCOPE;
        rapt_tensor *start = rapt_ones_like(leaf);
        cr_assert(rapt_backward_from(1, &leaf, &start, 0), "%s", rapt_error());
    }
    return NULL;
}

Test(threads, a_child_is_forked_beside_a_backward_that_is_profiled, .timeout = 120)
{
    bool stop = false;
    pthread_t thread;
    cr_assert(rapt_profile_start(NULL));
    cr_assert_eq(pthread_create(&thread, NULL, add_gradients_without_end, &stop), 0);
    for (int i = 0; i < 600; i++) {
        const pid_t child = fork();
        cr_assert(child >= 0);
        if (child == 0) _exit(0);
        cr_assert_eq(waitpid(child, NULL, 0), child);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    cr_expect(rapt_profile_stop());
}

#endif
