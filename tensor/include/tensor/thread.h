/* What each thread has of its own: a variable beside the code that owns it, and its end. */
#ifndef RAPT_TENSOR_THREAD_H
#define RAPT_TENSOR_THREAD_H

/* Of each thread one, zero at first. Reading it costs an instruction and cannot fail. */
#define RAPT_THREAD_LOCAL __thread __attribute__((tls_model("initial-exec")))

/* What must be given back when a thread ends, in this order: tensors that no scope ended go to the block cache. */
typedef enum rapt_thread_part {
    RAPT_THREAD_SCOPES,
    RAPT_THREAD_BLOCKS,
    RAPT_THREAD_ERROR,
    RAPT_THREAD_PARTS
} rapt_thread_part;

/* For the owner of a part that the calling thread has from now on: `end` will be called in the thread when it ends
 * (the main thread: when the program does). It is the same function for all threads, and called in those too that
 * have no such part. */
void rapt_at_thread_end(rapt_thread_part part, void (*end)(void));

#endif
