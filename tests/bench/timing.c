/* Timing for the benchmark programs. */
#include "timing.h"

#include <stdlib.h>
#include <time.h>

double timing_now(void)
{
    struct timespec now;
    clock_gettime(getenv("BENCH_BY_PROCESSOR") ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double timing_median(int count, double *times)
{
    qsort(times, (size_t)count, sizeof *times, compare);
    return times[count / 2];
}

double timing_measure(timing_work *work, void *context, double seconds)
{
    enum { longest_run = 10000 };
    static double times[longest_run];
    int count = 0;
    for (double start = timing_now(); count < longest_run && (count < 1 || timing_now() - start < seconds); count++) {
        const double before = timing_now();
        work(context);
        times[count] = timing_now() - before;
    }
    return timing_median(count, times);
}
