/* The state of a thread: made at first use, freed when the thread ends (for the main thread: when the program does). */
#include "tensor/thread.h"

#include <pthread.h>
#include <stdlib.h>

static __thread __attribute__((tls_model("initial-exec"))) rapt_thread *this_thread;
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

static void thread_free(void *pointer)
{
    rapt_thread *thread = pointer;
    this_thread = thread; /* releasing tensors looks it up */
    rapt_scopes_free(thread);
    rapt_block_cache_free(thread);
    this_thread = NULL;
    free(thread);
}

static void make_key(void)
{
    pthread_key_create(&key, thread_free);
}

static rapt_thread *make_thread(void)
{
    pthread_once(&key_once, make_key);
    rapt_thread *thread = calloc(1, sizeof *thread);
    if (!thread) return NULL;
    pthread_setspecific(key, thread);
    return this_thread = thread;
}

rapt_thread *rapt_this_thread(void)
{
    return this_thread ? this_thread : make_thread();
}

/* Key destructors do not run for the thread that calls exit. */
static __attribute__((destructor)) void free_last_thread(void)
{
    if (this_thread) {
        pthread_setspecific(key, NULL);
        thread_free(this_thread);
    }
    rapt_memory_trim();
}
