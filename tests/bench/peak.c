/* The most that the machine can do: multiply-adds in registers, for each instruction-set level, and reading memory. */
#include "peak.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rapt.h>

#include "timing.h"

enum { sums = 12 }; /* independent ones: more than two pipes of a latency of four or five can take */

/* The sums stay in registers only as variables of their own, not as an array. The result keeps them from being left
 * out. */
#define PEAK_LOOP(function, T, bytes, attribute)                                                                       \
    typedef T vector_##function __attribute__((vector_size(bytes)));                                                   \
    attribute static double function(int64_t count)                                                                    \
    {                                                                                                                  \
        typedef vector_##function vector;                                                                              \
        vector a = (vector){0} + (T)0.5, b = (vector){0} + (T)count;                                                   \
        vector s0 = b, s1 = b + 1, s2 = b + 2, s3 = b + 3, s4 = b + 4, s5 = b + 5; /* equal ones would be merged */    \
        vector s6 = b + 6, s7 = b + 7, s8 = b + 8, s9 = b + 9, s10 = b + 10, s11 = b + 11;                             \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            s0 = s0 * a + b, s1 = s1 * a + b, s2 = s2 * a + b, s3 = s3 * a + b;                                        \
            s4 = s4 * a + b, s5 = s5 * a + b, s6 = s6 * a + b, s7 = s7 * a + b;                                        \
            s8 = s8 * a + b, s9 = s9 * a + b, s10 = s10 * a + b, s11 = s11 * a + b;                                    \
        }                                                                                                              \
        s0 += s1 * s2 + s3 * s4 + s5 * s6 + s7 * s8 + s9 * s10 + s11;                                                  \
        return (double)s0[0];                                                                                          \
    }

PEAK_LOOP(float_baseline, float, 16, )
PEAK_LOOP(double_baseline, double, 16, )
#ifdef __x86_64__
PEAK_LOOP(float_v3, float, 32, __attribute__((target("avx2,fma"))))
PEAK_LOOP(double_v3, double, 32, __attribute__((target("avx2,fma"))))
PEAK_LOOP(float_v4, float, 64, __attribute__((target("avx512f,fma"))))
PEAK_LOOP(double_v4, double, 64, __attribute__((target("avx512f,fma"))))
#endif

typedef struct level {
    const char *name;
    int bytes; /* of a vector */
    double (*loops[2])(int64_t count);
} level;

static const level levels[] = {
    {"baseline", 16, {float_baseline, double_baseline}},
#ifdef __x86_64__
    {"x86-64-v3", 32, {float_v3, double_v3}},
    {"x86-64-v4", 64, {float_v4, double_v4}},
#endif
};

static const level *level_in_use(void)
{
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (strncmp(levels[i].name, rapt_get_level(), strlen(levels[i].name)) == 0) return &levels[i];
    return levels;
}

double peak_flops(bool is_float64)
{
    enum { steps = 1 << 20, repetitions = 5 };
    const level *used = level_in_use();
    const int threads = rapt_get_threads();
    double best = 0, result = 0;
    for (int i = 0; i < repetitions; i++) {
        const double start = timing_now();
#pragma omp parallel for num_threads(threads) reduction(+ : result)
        for (int thread = 0; thread < threads; thread++) result += used->loops[is_float64](steps + thread);
        const double work = 2.0 * sums * steps * threads * used->bytes / (is_float64 ? 8 : 4);
        const double rate = work / (timing_now() - start);
        if (rate > best) best = rate;
    }
    return result != 0 ? best : 0;
}

double peak_bandwidth(void)
{
    enum { bytes = 512 << 20, count = bytes / sizeof(uint64_t), repetitions = 5 };
    const int threads = rapt_get_threads();
    uint64_t *memory = malloc(bytes), sum = 0;
    if (!memory) return 0;
    double best = 0;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < count; i++) memory[i] = (uint64_t)i;
    for (int i = 0; i < repetitions; i++) {
        const double start = timing_now();
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : sum)
        for (int64_t j = 0; j < count; j++) sum += memory[j];
        const double rate = bytes / (timing_now() - start);
        if (rate > best) best = rate;
    }
    free(memory);
    return sum != 0 ? best : 0;
}

static int64_t live_before;

void peak_memory_reset(void)
{
    rapt_memory_reset_peak();
    live_before = rapt_memory_get_statistics().live_bytes;
}

double peak_memory(void)
{
    return (double)(rapt_memory_get_statistics().peak_bytes - live_before);
}
