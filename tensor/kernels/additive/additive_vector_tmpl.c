/* Vectors of T, and the tanh that is made of exponentials. Part of additive_tmpl.c. */

#define LOW_OF_16(x) __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7)
#define HIGH_OF_16(x) __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15)
#define LOW_OF_8(x) __builtin_shufflevector(x, x, 0, 1, 2, 3)
#define HIGH_OF_8(x) __builtin_shufflevector(x, x, 4, 5, 6, 7)
#define LOW_OF_4(x) __builtin_shufflevector(x, x, 0, 1)
#define HIGH_OF_4(x) __builtin_shufflevector(x, x, 2, 3)

static inline __attribute__((always_inline)) vector load(const T *from)
{
    return *(const vector *)(const void *)from;
}

static inline __attribute__((always_inline)) void store(T *to, vector x)
{
    *(vector *)(void *)to = x;
}

/* The first `count` lanes, which may be more than there are; zeros behind them. */
static inline vector load_some(const T *from, int64_t count)
{
    if (count >= width) return load(from);
    T lanes[width] = {0};
    for (int64_t lane = 0; lane < count; lane++) lanes[lane] = from[lane];
    return load(lanes);
}

static inline void store_some(T *to, vector x, int64_t count)
{
    if (count >= width) {
        store(to, x);
        return;
    }
    for (int64_t lane = 0; lane < count; lane++) to[lane] = x[lane];
}

/* The sum of all lanes, by halves that stay in registers. */
static inline __attribute__((always_inline)) T sum_of_lanes(vector x)
{
#if RAPT_VECTOR_BYTES / SIZE == 16
    const __typeof__(LOW_OF_16(x)) eight = LOW_OF_16(x) + HIGH_OF_16(x);
#elif RAPT_VECTOR_BYTES / SIZE == 8
    const vector eight = x;
#endif
#if RAPT_VECTOR_BYTES / SIZE >= 8
    const __typeof__(LOW_OF_8(eight)) four = LOW_OF_8(eight) + HIGH_OF_8(eight);
#elif RAPT_VECTOR_BYTES / SIZE == 4
    const vector four = x;
#endif
#if RAPT_VECTOR_BYTES / SIZE >= 4
    const __typeof__(LOW_OF_4(four)) two = LOW_OF_4(four) + HIGH_OF_4(four);
#else
    const vector two = x;
#endif
    return two[0] + two[1];
}

/* w − 1 / x */
static inline __attribute__((always_inline)) vector minus_reciprocal(vector w, vector x)
{
#if defined __AVX512F__ && SIZE == 4
    /* an approximation r to 14 bits, and Newton's step to r (2 − x r) */
    const vector r = (vector)_mm512_rcp14_ps((__m512)x);
    return w - r * (2 - x * r);
#else
    return w - 1 / x;
#endif
}
