/* The hunt for what is not finite, and where in the modules it goes on. */
#ifndef RAPT_AUTOGRAD_HUNT_H
#define RAPT_AUTOGRAD_HUNT_H

#include <stdatomic.h>

#include <rapt/graph.h>

#include "tensor/thread.h"

extern atomic_bool rapt_hunting;

static inline bool rapt_is_hunting(void)
{
    return __builtin_expect(atomic_load_explicit(&rapt_hunting, memory_order_relaxed), 0);
}

/* The module whose forward runs in this thread, while the hunt is on. */
typedef struct rapt_module_place {
    const void *module; /* NULL: none */
    const char *path;   /* "GPT transformer.h.3.mlp", as long as the program runs */
} rapt_module_place;

extern RAPT_THREAD_LOCAL rapt_module_place rapt_running_place;

/* The text as one that stays; NULL, without an error, when there is no memory for it. */
const char *rapt_lasting_text(const char *text);

#endif
