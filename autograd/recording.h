/* Whether a thread records a graph, and what it may overwrite where it does not. */
#ifndef RAPT_AUTOGRAD_RECORDING_H
#define RAPT_AUTOGRAD_RECORDING_H

#include <stdbool.h>

#include <rapt/tensor.h>

#include "tensor/thread.h"

extern RAPT_THREAD_LOCAL bool rapt_recording_is_off;

/* What a vjp reads for the last time, while nothing is recorded: an elementwise op may write its result there. */
extern RAPT_THREAD_LOCAL rapt_tensor *rapt_spare_gradient;

#endif
