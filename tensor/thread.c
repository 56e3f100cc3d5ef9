/* The end of a thread: whoever has something of its own there gives it back. */
#include "tensor/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "tensor/system.h"

static void (*_Atomic ends[RAPT_THREAD_PARTS])(void);
static pthread_key_t key;
static _Atomic bool has_key; /* a process may have no more of them; other threads may run while it ends */
static RAPT_THREAD_LOCAL bool is_listed;
static _Atomic bool process_ends;

static void end_thread(void *unused)
{
    (void)unused;
    is_listed = false;
    for (int part = 0; part < RAPT_THREAD_PARTS; part++) {
        void (*end)(void) = atomic_load(&ends[part]);
        if (end) end();
    }
}

/* At exit, before the destructors of libraries, when it was asked for after they were loaded; where a plugin is
 * unloaded only after its own. Without memory to ask for it, and before main, a process ends as a plugin does. */
static void begin_end(void)
{
    process_ends = true;
}

/* Before anything local to a thread is touched: on Windows gcc has a key for all that, keys end in the order in which
 * they were made, and behind its key nothing would be left to give back. */
static __attribute__((constructor(101))) void make_key(void)
{
    has_key = pthread_key_create(&key, end_thread) == 0;
}

void rapt_at_thread_end(rapt_thread_part part, void (*end)(void))
{
    static atomic_flag is_asked_for = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&is_asked_for)) atexit(begin_end);
    atomic_store(&ends[part], end);
    if (is_listed || !has_key) return;
    pthread_setspecific(key, &is_listed); /* any address will do: the key's destructor runs for what is not NULL */
    is_listed = true;
}

/* Key destructors do not run for the thread that calls exit. Those of threads that outlive the library, which in a
 * plugin may be unloaded from under them, would run where it was: what they have is left. So is what this thread has
 * when the process ends beside other threads, which may be computing with it until the last moment. */
static __attribute__((destructor)) void end_last_thread(void)
{
    if (has_key) pthread_key_delete(key);
    has_key = false;
    if (is_listed && (!process_ends || rapt_system_is_alone())) end_thread(NULL);
}
