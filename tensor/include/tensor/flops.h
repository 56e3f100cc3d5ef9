/* Counting floating-point operations, for whoever wants to know them while an op runs. */
#ifndef RAPT_TENSOR_FLOPS_H
#define RAPT_TENSOR_FLOPS_H

#include <stddef.h>

#include "tensor/thread.h"

/* Where this thread's are added up; NULL: nobody wants to know. */
extern RAPT_THREAD_LOCAL double *rapt_flops;

/* To be called in the thread that runs the op, with what all threads compute; a multiply-add is two. */
static inline void rapt_count_flops(double flops)
{
    if (__builtin_expect(rapt_flops != NULL, 0)) *rapt_flops += flops;
}

#endif
