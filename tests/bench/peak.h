/* What the machine can do at most: the measuring rod of the benchmark programs. */
#ifndef BENCH_PEAK_H
#define BENCH_PEAK_H

#include <stdbool.h>

/* FLOP/s of multiply-adds that never leave the registers, on all threads that ops use, with the vectors of the level in
 * use (rapt_get_level). It takes about 20 ms. Other programs take their share, so measure beside each case. Products
 * by limbs, which AMX multiplies, go beyond it. */
double peak_flops(bool is_float64);

/* Bytes a second that all threads together read from memory, one after the other and far more than caches hold. It
 * takes about 300 ms, and 512 MB for that time; 0 without them. */
double peak_bandwidth(void);

/* Bytes that the library's tensors came to at the most since peak_memory_reset, beyond what there was then. */
void peak_memory_reset(void);
double peak_memory(void);

#endif
