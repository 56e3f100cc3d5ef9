/* The one place where threads are started. */
#include "tensor/parallel.h"

#include <omp.h>

#include <rapt/runtime.h>

enum { elements_a_piece = 16384 };

int64_t rapt_grain(int64_t cost)
{
    return cost <= 1 ? elements_a_piece : cost >= elements_a_piece ? 1 : elements_a_piece / cost;
}

void rapt_parallel(int64_t count, int64_t grain, rapt_task *task, void *context)
{
    int64_t pieces = (count + grain - 1) / grain;
    int threads = rapt_get_threads();
    if (threads > pieces) threads = (int)pieces;
    if (threads <= 1 || omp_in_parallel()) {
        for (int64_t first = 0; first < count; first += grain)
            task(context, first, first + grain < count ? first + grain : count);
        return;
    }
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t piece = 0; piece < pieces; piece++) {
        int64_t first = piece * grain;
        task(context, first, first + grain < count ? first + grain : count);
    }
}
