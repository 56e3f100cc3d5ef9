/* What each thread has of its own: error, scopes, generator, recording mode, block cache. */
#ifndef RAPT_TENSOR_THREAD_H
#define RAPT_TENSOR_THREAD_H

#include <rapt/tensor.h>

#define RAPT_MESSAGE_SIZE 512

typedef struct rapt_thread {
    rapt_error_code error;
    char error_op[64];
    char error_message[RAPT_MESSAGE_SIZE];
    uint64_t failures; /* how often something failed, also while an error stood */
    uintptr_t *owned;  /* tensors of all open scopes, innermost last; bit 0 set: to be kept once */
    int64_t owned_count;
    int64_t owned_capacity;
    int64_t *scope_starts; /* where in `owned` each open scope begins */
    int64_t scope_count;
    int64_t scope_capacity;
    rapt_random_state random;
    bool recording_off;
    const char *op; /* whose forward runs; in the debugging mode */
    void *block_cache;
} rapt_thread;

extern __thread __attribute__((tls_model("initial-exec"), visibility("hidden"))) rapt_thread *rapt_thread_in_use;
rapt_thread *rapt_make_thread(void);

/* The calling thread's state, made at first use. NULL when there is no memory even for that. */
static inline rapt_thread *rapt_this_thread(void)
{
    return rapt_thread_in_use ? rapt_thread_in_use : rapt_make_thread();
}

/* For the end of a thread. */
void rapt_scopes_free(rapt_thread *thread);
void rapt_block_cache_free(rapt_thread *thread);

#endif
