// The instruction-set level that a test of the kernels' functions is compiled for, and its numbers drawn by a hash.
#ifndef RAPT_TESTS_MATH_LEVEL_H
#define RAPT_TESTS_MATH_LEVEL_H

#include <stdbool.h>
#include <stdint.h>

enum { SKIPPED = 77 };

static inline const char *level(void)
{
#if defined(__AVX512F__)
    return "x86-64-v4";
#elif defined(__AVX2__)
    return "x86-64-v3";
#else
    return "baseline";
#endif
}

static inline bool processor_has_level(void)
{
#if defined(__AVX512F__)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
#elif defined(__AVX2__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
#else
    return true;
#endif
}

static inline uint64_t mix(uint64_t z)
{ // splitmix64's finaliser
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

#endif
