/* Timing for the benchmark programs: medians of repeated runs. */
#ifndef BENCH_TIMING_H
#define BENCH_TIMING_H

/* Seconds of a clock that never goes back: the wall's; or, with BENCH_BY_PROCESSOR in the environment, the time that
 * the process has used, whatever else the machine does. */
double timing_now(void);

/* The median of one or more times, which it sorts, the smallest first. */
double timing_median(int count, double *times);

typedef void timing_work(void *context);

/* The median of as many runs as take that long, of one at the least, in seconds. */
double timing_measure(timing_work *work, void *context, double seconds);

#endif
