/* Timing for the benchmark programs. */
#include "timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

double timing_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
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

double timing_report(const char *name, int repetitions, int64_t units, timing_work *work, void *context)
{
    enum { warm_up = 3 };
    double *seconds = calloc((size_t)repetitions, sizeof *seconds);
    if (!seconds || repetitions < 1) {
        free(seconds);
        return 0;
    }
    for (int i = 0; i < warm_up; i++) work(context);
    for (int i = 0; i < repetitions; i++) {
        double start = timing_now();
        work(context);
        seconds[i] = timing_now() - start;
    }
    double median = timing_median(repetitions, seconds), scale = units > 1 ? 1e9 / (double)units : 1e3;
    printf("%-40s %10.3f %s (%.3f … %.3f)\n", name, median * scale, units > 1 ? "ns each" : "ms", seconds[0] * scale,
           seconds[repetitions - 1] * scale);
    fflush(stdout);
    free(seconds);
    return median;
}
