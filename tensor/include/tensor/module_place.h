/* Where in the modules a thread is: errors say it, and so do those who observe. */
#ifndef RAPT_TENSOR_MODULE_PLACE_H
#define RAPT_TENSOR_MODULE_PLACE_H

#include <stdint.h>

#include "tensor/thread.h"

/* The module whose forward runs in this thread, or ran when what a vjp differentiates was recorded. */
typedef struct rapt_module_place {
    const void *module; /* NULL: none, or a vjp */
    const char *path;   /* "GPT transformer.h.3.mlp", as long as the program runs; or NULL */
    int64_t begin;      /* while the profile runs: when it was entered */
} rapt_module_place;

extern RAPT_THREAD_LOCAL rapt_module_place rapt_running_place;

#endif
