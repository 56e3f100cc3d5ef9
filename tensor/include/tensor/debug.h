/* The debugging mode, RAPT_DEBUG=1 in the environment or a debug build: tensors and objects (modules, optimizers and
 * the like) that are gone are kept back for a while, so that their use is an error that names them. */
#ifndef RAPT_TENSOR_DEBUG_H
#define RAPT_TENSOR_DEBUG_H

#include "tensor/core.h"
#include "tensor/thread.h"

/* Set before main. */
extern bool rapt_debugging;

/* The op whose forward runs in this thread: tensors say it made them. */
extern RAPT_THREAD_LOCAL const char *rapt_running_op;

/* False and an error when the tensor is gone, which the debugging mode alone can tell. what it is in the call:
 * "input 1". */
bool rapt_check_alive_now(const char *op, const char *what, const rapt_tensor *tensor);

static inline bool rapt_check_alive(const char *op, const char *what, const rapt_tensor *tensor)
{
    return !rapt_debugging || !tensor || rapt_check_alive_now(op, what, tensor);
}

/* A header whose last share was given back. */
void rapt_mark_gone(rapt_tensor *tensor);

/* Frees memory of malloc's; in the debugging mode later, when many others came behind it, and as it is until then.
 * kind: what it was, "Linear", for as long as the program runs. NULL does nothing. */
void rapt_free_object(void *object, const char *kind);

/* True, and an error, when the object was freed, which the debugging mode alone can tell. NULL was not. */
bool rapt_was_freed_now(const char *op, const void *object);

static inline bool rapt_was_freed(const char *op, const void *object)
{
    return rapt_debugging && object && rapt_was_freed_now(op, object);
}

/* Keeps a free block back. */
void rapt_quarantine_add(void *block, size_t capacity);

/* A block that was kept back long enough, or, with `all`, any; NULL when there is none. */
void *rapt_quarantine_take(bool all, size_t *capacity);

/* Under AddressSanitizer, if the program has it, nobody may touch memory that is only kept for reuse. MemorySanitizer,
 * with which all is compiled or nothing, learns that nobody has set it, kept or taken. */
#if defined __has_feature
#if __has_feature(memory_sanitizer)
#include <sanitizer/msan_interface.h>
#define RAPT_MEMORY_SANITIZER
#endif
#endif

#ifdef RAPT_MEMORY_SANITIZER
static inline bool rapt_forbids(void)
{
    return true;
}

static inline void rapt_forbid(const void *memory, size_t bytes)
{
    __msan_allocated_memory(memory, bytes);
}

static inline void rapt_allow(const void *memory, size_t bytes)
{
    __msan_allocated_memory(memory, bytes);
}
#else
extern void __asan_poison_memory_region(void const volatile *memory, size_t bytes) __attribute__((weak));
extern void __asan_unpoison_memory_region(void const volatile *memory, size_t bytes) __attribute__((weak));

static inline bool rapt_forbids(void)
{
    return __asan_poison_memory_region != NULL;
}

static inline void rapt_forbid(const void *memory, size_t bytes)
{
    if (__asan_poison_memory_region) __asan_poison_memory_region(memory, bytes);
}

static inline void rapt_allow(const void *memory, size_t bytes)
{
    if (__asan_unpoison_memory_region) __asan_unpoison_memory_region(memory, bytes);
}
#endif

#endif
