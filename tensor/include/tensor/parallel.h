/* Work cut into pieces by size, never by the number of threads, so that results have the same bits on any number. */
#ifndef RAPT_TENSOR_PARALLEL_H
#define RAPT_TENSOR_PARALLEL_H

#include <stdint.h>

/* Works on the items [first, last). */
typedef void rapt_task(void *context, int64_t first, int64_t last);

/* Calls task for [0, count) in pieces of `grain` items, on all threads when there is more than one piece. */
void rapt_parallel(int64_t count, int64_t grain, rapt_task *task, void *context);

/* The same for items that cost alike: each thread begins with a share of pieces side by side, the same one in every
 * such call, so that it finds in its caches what it wrote before; then it helps the others. */
void rapt_parallel_evenly(int64_t count, int64_t grain, rapt_task *task, void *context);

/* A grain that makes a piece about 16,384 elements of work when an item costs `cost` of them. */
int64_t rapt_grain(int64_t cost);

static inline int64_t rapt_divide_up(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

static inline int64_t rapt_smaller_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

#endif
