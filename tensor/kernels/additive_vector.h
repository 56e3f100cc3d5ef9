/* Template of additive.c, included once for each type T: vectors of T, and the tanh that is made of exponentials. */

typedef T TYPED(vector) __attribute__((vector_size(RAPT_VECTOR_BYTES), aligned(sizeof(T)), may_alias));
enum { TYPED(width) = RAPT_VECTOR_BYTES / SIZE };

static inline __attribute__((always_inline)) TYPED(vector) TYPED(load)(const T *from)
{
    return *(const TYPED(vector) *)(const void *)from;
}

static inline __attribute__((always_inline)) void TYPED(store)(T *to, TYPED(vector) x)
{
    *(TYPED(vector) *)(void *)to = x;
}

/* The first `count` lanes, which may be more than there are; zeros behind them. */
static inline TYPED(vector) TYPED(load_some)(const T *from, int64_t count)
{
    if (count >= TYPED(width)) return TYPED(load)(from);
    T lanes[TYPED(width)] = {0};
    for (int64_t lane = 0; lane < count; lane++) lanes[lane] = from[lane];
    return TYPED(load)(lanes);
}

static inline void TYPED(store_some)(T *to, TYPED(vector) x, int64_t count)
{
    if (count >= TYPED(width)) {
        TYPED(store)(to, x);
        return;
    }
    for (int64_t lane = 0; lane < count; lane++) to[lane] = x[lane];
}

/* The sum of all lanes, by halves that stay in registers. */
static inline __attribute__((always_inline)) T TYPED(total)(TYPED(vector) x)
{
#if RAPT_VECTOR_BYTES / SIZE == 16
    const __typeof__(LOW_OF_16(x)) eight = LOW_OF_16(x) + HIGH_OF_16(x);
#elif RAPT_VECTOR_BYTES / SIZE == 8
    const TYPED(vector) eight = x;
#endif
#if RAPT_VECTOR_BYTES / SIZE >= 8
    const __typeof__(LOW_OF_8(eight)) four = LOW_OF_8(eight) + HIGH_OF_8(eight);
#elif RAPT_VECTOR_BYTES / SIZE == 4
    const TYPED(vector) four = x;
#endif
#if RAPT_VECTOR_BYTES / SIZE >= 4
    const __typeof__(LOW_OF_4(four)) two = LOW_OF_4(four) + HIGH_OF_4(four);
#else
    const TYPED(vector) two = x;
#endif
    return two[0] + two[1];
}
