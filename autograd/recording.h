/* Whether a thread records a graph, as the engine itself reads it. */
#ifndef RAPT_AUTOGRAD_RECORDING_H
#define RAPT_AUTOGRAD_RECORDING_H

#include <stdbool.h>

#include "tensor/thread.h"

extern RAPT_THREAD_LOCAL bool rapt_recording_is_off;

#endif
