/* Mistakes with threads, forks, streams and settings. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mistakes.h"

static bool no_threads(void)
{
    return !rapt_set_threads(0);
}

/* Of what comes after it only the child has a say; its parent ends as it ends. */
static bool threads_after_fork(void)
{
#if defined(__SANITIZE_THREAD__) || !defined(_OPENMP)
    return !rapt_fail(RAPT_ERROR_UNSUPPORTED, "test", "threads asked for in a forked child: not made here");
#else
    if (!rapt_set_threads(2)) return false;
    rapt_tensor *x = ones(RAPT_SHAPE(1 << 20));
    if (!rapt_exp(rapt_exp(x))) return false;
    const pid_t child = fork();
    if (child == 0) return !rapt_set_threads(2) && rapt_exp(x);
    int status = -1;
    waitpid(child, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
#endif
}

static bool work_after_fork(void)
{
    rapt_tensor *x = leaf(RAPT_SHAPE(1000)), *loss = total(rapt_exp(x));
    const pid_t child = fork();
    if (child == 0) return rapt_backward(loss) && rapt_gradient(x);
    int status = -1;
    waitpid(child, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static void *fail_here(void *error)
{
    rapt_mul(NULL, NULL);
    *(bool *)error = rapt_error() != NULL;
    return NULL;
}

static bool error_of_other_thread(void)
{
    bool has_error = false;
    pthread_t thread;
    if (pthread_create(&thread, NULL, fail_here, &has_error) != 0) return false;
    pthread_join(thread, NULL);
    return has_error && !rapt_error();
}

static void *leave_scopes_open(void *unused)
{
    rapt_scope_begin();
    ones(RAPT_SHAPE(100000));
    rapt_scope_begin();
    ones(RAPT_SHAPE(100000));
    return unused;
}

static bool scopes_left_open(void)
{
    const int64_t before = rapt_memory_get_statistics().live_bytes;
    pthread_t thread;
    if (pthread_create(&thread, NULL, leave_scopes_open, NULL) != 0) return false;
    pthread_join(thread, NULL);
    return rapt_memory_get_statistics().live_bytes < before + 100000;
}

static void *ask_recording(void *recording)
{
    *(bool *)recording = rapt_is_recording();
    return NULL;
}

static bool recording_of_other_thread(void)
{
    RAPT_NO_GRADIENT;
    bool records = false;
    pthread_t thread;
    if (pthread_create(&thread, NULL, ask_recording, &records) != 0) return false;
    pthread_join(thread, NULL);
    return records && !rapt_is_recording();
}

static void *draw(void *number)
{
    *(double *)number = rapt_item(rapt_rand(RAPT_FLOAT64, 0, NULL));
    return NULL;
}

static bool generator_of_other_thread(void)
{
    double here, there = 0;
    pthread_t thread;
    rapt_seed(7);
    if (pthread_create(&thread, NULL, draw, &there) != 0) return false;
    pthread_join(thread, NULL);
    draw(&here);
    return here != there;
}

static bool closed_stream(void)
{
    FILE *stream = fopen("/dev/null", "r");
    return stream && !rapt_print_to(stream, ones(RAPT_SHAPE(2)), NULL);
}

static bool later_error(void)
{
    rapt_mul(NULL, ones(RAPT_SHAPE(2)));
    rapt_matmul(ones(RAPT_SHAPE(2, 3)), ones(RAPT_SHAPE(2, 3)));
    return true;
}

static bool error_not_cleared(void)
{
    rapt_mul(NULL, ones(RAPT_SHAPE(2)));
    return rapt_exp(ones(RAPT_SHAPE(2))) != NULL;
}

const mistake process_mistakes[] = {
    {"No threads", no_threads, FAILS, RAPT_ERROR_VALUE, "0 threads asked for; 1 to 4096 expected",
     "1 is none beside yours."},
    {"Several threads in a forked child, after the parent used several", threads_after_fork, FAILS,
     RAPT_ERROR_UNSUPPORTED, "threads asked for in a forked child", "Fork first, or start the child by exec."},
    {"Backward in a forked child of a graph from before the fork", work_after_fork, WORKS, RAPT_OK,
     "it gives the same bits", "None needed."},
    {"A thread looks for the error of another", error_of_other_thread, WORKS, RAPT_OK, "each thread has its own",
     "Ask in the thread that failed, or `rapt_on_error`, which hears of all."},
    {"A thread ends with open scopes", scopes_left_open, WORKS, RAPT_OK, "they end with it, and their tensors go",
     "None needed."},
    {"`RAPT_NO_GRADIENT` is to hold for other threads", recording_of_other_thread, WORKS, RAPT_OK,
     "it holds for the calling thread alone", "Say it in each."},
    {"`rapt_seed` is to hold for other threads", generator_of_other_thread, WORKS, RAPT_OK,
     "each thread has a generator of its own", "Seed in each thread."},
    {"A stream that cannot be written", closed_stream, FAILS, RAPT_ERROR_FILE, "the stream cannot be written",
     "Open it for writing."},
    {"An error is not looked at before the next one", later_error, FAILS, RAPT_ERROR_NULL, "mul: input 0 is NULL",
     "The first is kept, since those after it are its consequences."},
    {"An error is not cleared", error_not_cleared, FAILS, RAPT_ERROR_NULL, "mul: input 0 is NULL",
     "Ops go on working; `rapt_clear_error` makes room for the next error."},
    {0},
};
