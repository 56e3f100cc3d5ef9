/* Timing for the benchmark programs: medians of repeated runs. */
#ifndef BENCH_TIMING_H
#define BENCH_TIMING_H

#include <stdint.h>

/* Seconds of a clock that never goes back. */
double timing_now(void);

/* The median of one or more times, which it sorts, the smallest first. */
double timing_median(int count, double *times);

typedef void timing_work(void *context);

/* Runs the work a few times unmeasured, then `repetitions` times; prints "name: median ms (smallest … largest)",
 * divided by `units` of the work in one run where that is more than 1, in nanoseconds each. Returns the median in
 * seconds. */
double timing_report(const char *name, int repetitions, int64_t units, timing_work *work, void *context);

#endif
