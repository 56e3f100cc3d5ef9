/* What the library asks of OpenMP, and what one thread answers where it is built without. */
#ifndef RAPT_TENSOR_OPENMP_H
#define RAPT_TENSOR_OPENMP_H

#ifdef _OPENMP
#include <omp.h>
#else
static inline int omp_get_max_threads(void)
{
    return 1;
}

static inline void omp_set_num_threads(int threads)
{
    (void)threads;
}

static inline int omp_get_thread_num(void)
{
    return 0;
}

static inline int omp_in_parallel(void)
{
    return 0;
}
#endif

#endif
