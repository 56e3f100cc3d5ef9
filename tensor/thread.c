/* The state of a thread: made at first use, freed when the thread ends (for the main thread: when the program does). */
#include "tensor/thread.h"

#include <pthread.h>
#include <stdlib.h>

__thread rapt_thread *rapt_thread_in_use;
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

static void thread_free(void *pointer)
{
    rapt_thread *thread = pointer;
    rapt_thread_in_use = thread; /* releasing tensors looks it up */
    rapt_scopes_free(thread);
    rapt_block_cache_free(thread);
    rapt_thread_in_use = NULL;
    free(thread);
}

static void make_key(void)
{
    pthread_key_create(&key, thread_free);
}

rapt_thread *rapt_make_thread(void)
{
    pthread_once(&key_once, make_key);
    rapt_thread *thread = calloc(1, sizeof *thread);
    if (!thread) return NULL;
    pthread_setspecific(key, thread);
    return rapt_thread_in_use = thread;
}

/* Key destructors do not run for the thread that calls exit. */
static __attribute__((destructor)) void free_last_thread(void)
{
    if (rapt_thread_in_use) {
        pthread_setspecific(key, NULL);
        thread_free(rapt_thread_in_use);
    }
    rapt_memory_trim();
}
