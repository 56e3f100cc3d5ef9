/* How a thread computes: which way it rounds, and whether subnormal numbers are 0 to it. A new thread begins with the
 * mode that the thread which made it has at that moment; what either changes later stays its own. */
#ifndef RAPT_TENSOR_ROUNDING_H
#define RAPT_TENSOR_ROUNDING_H

#if defined __SSE__
#include <xmmintrin.h>

typedef unsigned rapt_rounding;

static inline rapt_rounding rapt_rounding_get(void)
{
    enum { denormals_are_zero = 0x40 };
    return _mm_getcsr() & (_MM_ROUND_MASK | _MM_FLUSH_ZERO_MASK | denormals_are_zero);
}

/* What has happened, and what traps, stays the thread's own. */
static inline void rapt_rounding_set(rapt_rounding rounding)
{
    _mm_setcsr((_mm_getcsr() ^ rapt_rounding_get()) | rounding);
}
#elif defined __aarch64__ && defined __GNUC__
#include <stdint.h>

typedef uint64_t rapt_rounding;

static inline uint64_t rapt_fpcr(void)
{
    uint64_t word;
    __asm__ volatile("mrs %0, fpcr" : "=r"(word));
    return word;
}

/* Without what traps, as above. */
static inline rapt_rounding rapt_rounding_get(void)
{
    enum { inputs_and_alternate = 0x3, halves = 1 << 19, mode = 0x3 << 22, flush_to_zero = 1 << 24, nan = 1 << 25 };
    return rapt_fpcr() & (uint64_t)(inputs_and_alternate | halves | mode | flush_to_zero | nan);
}

static inline void rapt_rounding_set(rapt_rounding rounding)
{
    __asm__ volatile("msr fpcr, %0" : : "r"((rapt_fpcr() ^ rapt_rounding_get()) | rounding));
}
#else
#include <fenv.h> /* which way alone */

typedef int rapt_rounding;

static inline rapt_rounding rapt_rounding_get(void)
{
    return fegetround();
}

static inline void rapt_rounding_set(rapt_rounding rounding)
{
    fesetround(rounding);
}
#endif

#endif
