/* Locks that a forked child finds open, whichever threads its parent had. */
#ifndef RAPT_TENSOR_LOCK_H
#define RAPT_TENSOR_LOCK_H

#include <pthread.h>

#include "tensor/system.h"

/* Defines the functions name_take and name_give. A thread that has a lock may take those of a lower order, no
 * others; a fork takes all of them from the highest down, which constructors that run in rising order see to. */
#define RAPT_LOCK(name, order)                                                                                         \
    static pthread_mutex_t name = PTHREAD_MUTEX_INITIALIZER;                                                           \
    static void name##_take(void)                                                                                      \
    {                                                                                                                  \
        pthread_mutex_lock(&name);                                                                                     \
    }                                                                                                                  \
    static void name##_give(void)                                                                                      \
    {                                                                                                                  \
        pthread_mutex_unlock(&name);                                                                                   \
    }                                                                                                                  \
    static __attribute__((constructor(RAPT_LOCK_ORDER_##order))) void name##_survives_forks(void)                      \
    {                                                                                                                  \
        rapt_system_at_fork(name##_take, name##_give, name##_give);                                                    \
    }

#define RAPT_LOCK_ORDER_MEMORY 201
#define RAPT_LOCK_ORDER_FIELDS 202
#define RAPT_LOCK_ORDER_TEXTS 203
#define RAPT_LOCK_ORDER_PROFILE 204
#define RAPT_LOCK_ORDER_SUMMARIES 205
#define RAPT_LOCK_ORDER_TRACE 206
#define RAPT_LOCK_ORDER_GRADIENTS 207 /* held while gradients are added by ops, which are profiled and traced */
#define RAPT_LOCK_ORDER_STATISTICS 208

/* The rest of starting up: before a program's own constructors and C++'s objects, which may call the library. Those of
 * a program that is linked with it statically would otherwise come first. */
#define RAPT_START_ORDER 209

#endif
