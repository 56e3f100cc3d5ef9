/* The same bits where a library's threads meet others: inside parallel regions of the caller's own, and behind forks.
 *
 * same_bits regions         four models, trained in regions of every kind
 * same_bits calls N         N calls of ops from all threads of a region; a hang ends by SIGALRM
 * same_bits forks           four models, trained in children of a process without and with a team of threads */
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "models.h"

enum { steps = 2, threads = 4, patience = 600 };

static uint64_t *expected; /* of each model; children write here too */
static int failures;

static void expect(bool good, const char *what)
{
    if (good) return;
    fprintf(stderr, "same_bits: not so: %s\n", what);
#pragma omp atomic
    failures++;
}

/* Trains all models; the first time tells what is expected of the others. */
static void train_all(const char *where)
{
    for (int which = 0; which < num_models; which++) {
        const uint64_t hash = model_train(which, steps);
        if (!expected[which]) expected[which] = hash;
        char what[128];
        snprintf(what, sizeof what, "%s %s: the same bits", model_names[which], where);
        expect(hash != 0 && hash == expected[which], what);
    }
}

/* --- regions --- */

static void in_regions(void)
{
#pragma omp parallel num_threads(threads)
    train_all("in each thread of a region");
#pragma omp parallel num_threads(threads)
#pragma omp single
    train_all("in one thread of a region");
#pragma omp parallel num_threads(threads)
#pragma omp single
    for (int task = 0; task < threads; task++)
#pragma omp task
        train_all("in a task");
    omp_set_max_active_levels(3);
#pragma omp parallel num_threads(2)
#pragma omp parallel num_threads(2)
    train_all("in a region inside a region");
#pragma omp parallel num_threads(1)
    train_all("in a region of one thread");
    train_all("behind the regions");
}

/* --- calls --- */

enum { size = 200, kinds = 6 };

static rapt_tensor *call(int kind, rapt_tensor *x)
{
    switch (kind) {
    case 0:
        return rapt_matmul(x, x);
    case 1:
        return rapt_add(x, rapt_exp(x));
    case 2:
        return rapt_softmax(x, -1);
    case 3:
        return rapt_sum(x, RAPT_ALL_AXES, false);
    case 4:
        return rapt_transpose(x, 0, 1);
    default:
        return rapt_tanh(x);
    }
}

static bool same(const rapt_tensor *a, const rapt_tensor *b)
{
    if (!a || !b || rapt_count(a) != rapt_count(b)) return false;
    RAPT_SCOPE;
    const void *numbers_a = rapt_data(rapt_contiguous((rapt_tensor *)a));
    const void *numbers_b = rapt_data(rapt_contiguous((rapt_tensor *)b));
    return memcmp(numbers_a, numbers_b, (size_t)rapt_count(a) * sizeof(float)) == 0;
}

static void calls(int count)
{
    RAPT_SCOPE;
    rapt_seed(7);
    rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(size, size)), *results[kinds];
    for (int kind = 0; kind < kinds; kind++) results[kind] = call(kind, x);
    int different = 0;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 16) reduction(+ : different)
    for (int i = 0; i < count; i++) {
        RAPT_SCOPE;
        different += !same(call(i % kinds, x), results[i % kinds]);
    }
    expect(different == 0, "calls from all threads of a region: the same bits");
    expect(same(call(0, x), results[0]), "behind the region: the same bits");
}

/* --- forks --- */

static void *train_on_thread(void *where)
{
    expect(rapt_set_threads(2), "a thread of the child's own may set a number of threads");
    train_all(where);
    return NULL;
}

/* The work of a child; may_set: it may have several threads. */
static void be_child(const char *where, bool may_set)
{
    alarm(patience);
    failures = 0;
    train_all(where);
    const bool set = rapt_set_threads(threads);
    expect(set == may_set, "a child has threads when its parent had none when it forked");
    expect(set || strstr(rapt_error(), "forked child"), "what is refused is said");
    rapt_clear_error();
    train_all(where);
    pthread_t thread;
    if (pthread_create(&thread, NULL, train_on_thread, "on a thread of a child") == 0) pthread_join(thread, NULL);
}

static void fork_one(const char *where, bool may_set)
{
    int status = -1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        be_child(where, may_set);
        _exit(failures ? 1 : 0);
    }
    char what[128];
    snprintf(what, sizeof what, "a child %s ends well", where);
    expect(child > 0 && waitpid(child, &status, 0) == child && status == 0, what);
}

/* Each child's child, which has what its parent had. */
static void fork_twice(void)
{
    int status = -1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        fork_one("of a child", false);
        _exit(failures ? 1 : 0);
    }
    expect(child > 0 && waitpid(child, &status, 0) == child && status == 0, "a child with a child ends well");
}

/* A library that is loaded may have started threads, too. */
static void fork_before_ops(void)
{
    struct stat tasks;
    const bool is_alone = stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == 3;
    fork_one("before the first op", is_alone);
    int members = 0;
#pragma omp parallel num_threads(threads) reduction(+ : members)
    members++;
    expect(members > 1, "a region of the program's own has several threads");
    fork_one("behind a region of the program's own", false);
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "";
    expected = mmap(NULL, num_models * sizeof *expected, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (expected == MAP_FAILED) return 1;
    alarm(patience);
    if (strcmp(what, "forks") == 0) fork_before_ops();
    rapt_set_threads(threads);
    train_all("on several threads");
    if (strcmp(what, "regions") == 0) {
        in_regions();
    } else if (strcmp(what, "calls") == 0 && count == 3) {
        calls(atoi(arguments[2]));
    } else if (strcmp(what, "forks") == 0) {
        fork_one("behind the first op", false);
#pragma omp parallel num_threads(threads)
        if (omp_get_thread_num() == 0) fork_one("from inside a region", false);
        fork_twice();
        train_all("in the parent of children");
    } else {
        fprintf(stderr, "usage: same_bits regions|calls N|forks\n");
        return 2;
    }
    for (int which = 0; which < num_models; which++)
        printf("%s%016llx", which ? " " : "", (unsigned long long)expected[which]);
    printf("\n");
    return failures ? 1 : 0;
}
