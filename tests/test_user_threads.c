/* Programs of several threads of their own: each trains, several ask one model, one saves meanwhile; and how they begin
 * and end. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rapt.h>

#include "expect.h"
#include "same_bits.h"

enum { threads = 8, steps = 20, rounds = 20 };

/* What a thread is given, and what came of it. */
typedef struct task {
    void *(*work)(void *task);
    rapt_gpt *gpt;
    rapt_tensor *tokens;
    const char *path;
    int number, fails;
    float loss;
    rapt_batch_norm *norm;
} task;

static pthread_barrier_t start; /* of all threads, at one moment */

static void *begin(void *context)
{
    pthread_barrier_wait(&start);
    return ((task *)context)->work(context);
}

/* Runs all of them at once; how often they failed. */
static int run_all(int count, task *tasks)
{
    pthread_t thread[threads];
    int fails = 0;
    cr_assert_eq(pthread_barrier_init(&start, NULL, (unsigned)count), 0);
    for (int i = 0; i < count; i++) cr_assert_eq(pthread_create(&thread[i], NULL, begin, &tasks[i]), 0);
    for (int i = 0; i < count; i++) {
        pthread_join(thread[i], NULL);
        fails += tasks[i].fails;
    }
    pthread_barrier_destroy(&start);
    return fails;
}

/* --- a model each --- */

static void *train(void *context)
{
    task *t = context;
    RAPT_SCOPE;
    rapt_seed(5);
    rapt_sequential *model =
        RAPT_SEQUENTIAL((rapt_module *)rapt_linear_new(4, 16, RAPT_BIAS), rapt_activation_new("Tanh", rapt_tanh),
                        (rapt_module *)rapt_dropout_new(0.1), (rapt_module *)rapt_linear_new(16, 1, RAPT_BIAS));
    rapt_optimizer *adam = rapt_adam_new(&model->module, &(rapt_adam_config){.learning_rate = 0.01});
    rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(32, 4)), *target = rapt_sum(x, RAPT_AXES(1), true);
    for (int step = 0; step < steps; step++) {
        RAPT_SCOPE;
        rapt_tensor *loss = rapt_mse_loss(rapt_sequential_forward(model, x), target, RAPT_REDUCE_MEAN);
        t->loss = (float)rapt_item(loss);
        t->fails += !rapt_backward(loss) || !rapt_optimizer_step_clipped(adam, 1, NULL);
    }
    rapt_optimizer_free(adam);
    rapt_module_free(&model->module);
    return NULL;
}

/* The first use of the library by any thread is theirs, too. */
Test(user_threads, eight_train_models_of_their_own_with_the_same_bits)
{
    static task tasks[threads], alone;
    for (int i = 0; i < threads; i++) tasks[i].work = train;
    cr_expect_eq(run_all(threads, tasks), 0);
    train(&alone);
    expect_no_error();
    for (int i = 0; i < threads; i++) cr_expect_eq(tasks[i].loss, alone.loss, "thread %d", i);
}

/* --- one model --- */

static rapt_gpt *small_gpt(void)
{
    rapt_seed(3);
    rapt_gpt *gpt = rapt_gpt_new(&(rapt_gpt_config){.vocabulary = 11,
                                                    .context = 16,
                                                    .hidden = 16,
                                                    .layers = 2,
                                                    .heads = 2,
                                                    .positions = RAPT_POSITIONS_SINUSOIDAL});
    rapt_module_train(&gpt->module, false);
    return gpt;
}

/* Whole sequences, and token by token with a cache of the thread's own, agree each time. */
static void *infer(void *context)
{
    task *t = context;
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_tensor *first = rapt_gpt_forward(t->gpt, t->tokens, NULL);
    for (int round = 0; round < rounds; round++) {
        RAPT_SCOPE;
        rapt_gpt_cache *cache = rapt_gpt_cache_new(t->gpt);
        t->fails += !same_bits(rapt_gpt_forward(t->gpt, t->tokens, NULL), first);
        t->fails += !rapt_gpt_forward(t->gpt, rapt_slice(t->tokens, 1, 0, 1, 1), cache);
        t->fails += !rapt_gpt_forward(t->gpt, rapt_slice(t->tokens, 1, 1, 9, 1), cache);
        rapt_gpt_cache_free(cache);
    }
    t->loss = (float)rapt_item(rapt_sum(first, RAPT_ALL_AXES, false));
    return NULL;
}

static void *save(void *context)
{
    task *t = context;
    for (int round = 0; round < rounds; round++) t->fails += !rapt_module_save(&t->gpt->module, t->path);
    return NULL;
}

Test(user_threads, several_ask_one_model_and_one_saves_it)
{
    RAPT_SCOPE;
    enum { asking = 3 };
    char path[] = "/tmp/rapt-test-XXXXXX";
    const int descriptor = mkstemp(path);
    cr_assert_geq(descriptor, 0);
    close(descriptor);
    task tasks[asking + 1] = {0}, alone = {0};
    rapt_gpt *gpt = small_gpt(), *loaded = small_gpt();
    rapt_tensor *tokens = rapt_randint(0, 11, RAPT_SHAPE(2, 12));
    for (int i = 0; i <= asking; i++)
        tasks[i] = (task){.work = i < asking ? infer : save, .gpt = gpt, .tokens = tokens, .path = path};
    cr_expect_eq(run_all(asking + 1, tasks), 0);
    alone = (task){.gpt = loaded, .tokens = tokens};
    cr_expect(rapt_module_load(&loaded->module, path), "%s", rapt_error());
    infer(&alone);
    for (int i = 0; i < asking; i++) cr_expect_eq(tasks[i].loss, alone.loss, "thread %d", i);
    rapt_module_free(&gpt->module);
    rapt_module_free(&loaded->module);
    unlink(path);
    expect_no_error();
}

enum { norm_rounds = 200 };

static void *normalize(void *context)
{
    task *t = context;
    for (int round = 0; round < norm_rounds; round++) {
        RAPT_SCOPE;
        t->fails += !rapt_batch_norm_forward(t->norm, t->tokens);
    }
    return NULL;
}

/* No forward's statistics are lost, or half another's. */
Test(user_threads, running_statistics_follow_the_forwards_of_all_threads)
{
    RAPT_SCOPE;
    enum { normalizing = 4 };
    rapt_batch_norm *shared = rapt_batch_norm_new(300), *alone = rapt_batch_norm_new(300);
    shared->momentum = alone->momentum = 1e-3;
    rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, 300));
    task tasks[normalizing];
    for (int i = 0; i < normalizing; i++) tasks[i] = (task){.work = normalize, .norm = shared, .tokens = x};
    cr_expect_eq(run_all(normalizing, tasks), 0);
    for (int i = 0; i < normalizing; i++) normalize(&(task){.norm = alone, .tokens = x});
    cr_expect_eq(rapt_item(shared->batches), normalizing * norm_rounds);
    cr_expect(same_bits(shared->running_mean, alone->running_mean));
    cr_expect(same_bits(shared->running_var, alone->running_var));
    rapt_module_free(&shared->module);
    rapt_module_free(&alone->module);
    expect_no_error();
}

/* --- errors and ends --- */

static void *fail_often(void *context)
{
    task *t = context;
    char part[64];
    snprintf(part, sizeof part, "axis %d of a tensor of rank 1", 10 + t->number);
    for (int round = 0; round < 10 * rounds; round++) {
        RAPT_SCOPE;
        rapt_tensor *wrong = rapt_transpose(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3)), 0, 10 + t->number);
        t->fails += wrong || rapt_error_get_code() != RAPT_ERROR_SHAPE || !strstr(rapt_error(), part);
        rapt_clear_error();
        t->fails += rapt_error() != NULL;
    }
    rapt_matmul(NULL, NULL); /* it ends with an error */
    return NULL;
}

/* Frames of a build that is not optimised are larger, and so are the sanitizers'. */
#if defined __OPTIMIZE__ && !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__ && !defined __clang__
enum { least_stack = 128 << 10 };

/* What needs most. */
static void *use_stack(void *context)
{
    task *t = context;
    RAPT_SCOPE;
    rapt_attention *attention = rapt_additive_attention_new(16, 16, 32, 0);
    rapt_attention_modify(attention, "cap", rapt_soft_cap_new(2));
    rapt_module_cast(&attention->module, RAPT_FLOAT64);
    rapt_tensor *x = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 140, 16)));
    rapt_tensor *y = rapt_attention_forward(attention, x, x, x, RAPT_MASK(.causal = true));
    t->fails += !rapt_backward(rapt_sum(y, RAPT_ALL_AXES, false));
    rapt_module_free(&attention->module);
    t->fails += !rapt_save_npy(t->path, y) || !rapt_load_npy(t->path);
    return NULL;
}

Test(user_threads, need_no_large_stack)
{
    char path[] = "/tmp/rapt-test-XXXXXX";
    const int descriptor = mkstemp(path);
    cr_assert_geq(descriptor, 0);
    close(descriptor);
    task t = {.path = path};
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, least_stack);
    cr_assert_eq(pthread_create(&thread, &attributes, use_stack, &t), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    cr_expect_eq(t.fails, 0);
    unlink(path);
}
#endif

Test(user_threads, errors_are_each_threads_own)
{
    task tasks[threads];
    for (int i = 0; i < threads; i++) tasks[i] = (task){.work = fail_often, .number = i};
    cr_expect_eq(run_all(threads, tasks), 0);
    expect_no_error();
}

/* --- leaves that go meanwhile --- */

enum { leaves = 200 };

typedef struct backward_task {
    rapt_tensor *losses[leaves];
    _Atomic int begun;
    int fails;
} backward_task;

static void *go_backward(void *context)
{
    backward_task *t = context;
    for (int i = 0; i < leaves; i++) {
        t->begun++;
        RAPT_SCOPE;
        t->fails += !rapt_backward(t->losses[i]);
        rapt_release(t->losses[i]);
    }
    return NULL;
}

/* ThreadSanitizer sees it where it does not crash. */
Test(user_threads, a_leaf_goes_while_another_thread_goes_backward)
{
    const int64_t before = rapt_memory_get_statistics().live_bytes;
    backward_task t = {0};
    rapt_tensor *x[leaves];
    for (int i = 0; i < leaves; i++) {
        RAPT_SCOPE;
        x[i] = rapt_retain(rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(8))));
        rapt_backward(rapt_sum(x[i], RAPT_ALL_AXES, false));
        t.losses[i] = rapt_retain(rapt_sum(rapt_mul(x[i], x[i]), RAPT_ALL_AXES, false));
    }
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, go_backward, &t), 0);
    for (int i = 0; i < leaves; i++) {
        while (t.begun <= i) continue;
        rapt_release(x[i]);
    }
    pthread_join(thread, NULL);
    cr_expect_eq(t.fails, 0);
    cr_expect_eq(rapt_memory_get_statistics().live_bytes, before);
}

/* --- the end --- */

static bool ends_slowly;
static _Atomic bool computes;

/* Behind the library's own end. */
static __attribute__((destructor(101))) void end_slowly(void)
{
    if (ends_slowly) usleep(200000);
}

static void *compute_on(void *x)
{
    for (;;) {
        RAPT_SCOPE;
        rapt_exp(x);
        computes = true;
    }
    return NULL;
}

static void *read_on(void *x)
{
    for (double sum = 0; sum >= 0; computes = true)
        for (int64_t i = 0; i < rapt_count(x); i++) sum += rapt_at(x, &i);
    return NULL;
}

enum { status_of_end = 7 };

static void end_beside(void *(*work)(void *))
{
    pthread_t thread;
    ends_slowly = true;
    cr_assert(rapt_set_threads(1));
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(4 << 20));
    cr_assert_eq(pthread_create(&thread, NULL, work, x), 0);
    while (!computes) usleep(1000);
    exit(status_of_end);
}

Test(user_threads, compute_until_the_program_has_ended, .exit_code = status_of_end)
{
    end_beside(compute_on);
}

Test(user_threads, read_until_the_program_has_ended, .exit_code = status_of_end)
{
    end_beside(read_on);
}

/* Open scopes, tensors of none, and a graph that nobody goes back through. */
static void *leave_all(void *context)
{
    rapt_tensor *x = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(20000)));
    for (int i = 0; i < 5; i++) {
        ((task *)context)->fails += rapt_scope_begin() < 0;
        x = rapt_exp(rapt_mul(x, x));
    }
    return NULL;
}

Test(user_threads, what_a_thread_leaves_goes_with_it)
{
    static task tasks[threads];
    const int64_t before = rapt_memory_get_statistics().live_bytes;
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < threads; i++) tasks[i] = (task){.work = leave_all};
        cr_expect_eq(run_all(threads, tasks), 0);
    }
    cr_expect_eq(rapt_memory_get_statistics().live_bytes, before);
}
