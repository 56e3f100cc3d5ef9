/* The template of a fold over one dense row: lanes that vectorise, folded pairwise, then the rest. */
#ifndef RAPT_KERNELS_ROW_H
#define RAPT_KERNELS_ROW_H

#include "loop.h"

enum { lane_count = 32, exponential_lanes = 16, exponentials_a_block = 256 };

/* A pass of the pairwise fold of the lanes. */
#define RAPT_FOLD_LANES_(A, half, merge)                                                                               \
    RAPT_SIMD for (int lane = 0; lane < half; lane++)                                                                  \
    {                                                                                                                  \
        const A m = lanes[lane], a = lanes[lane + half];                                                               \
        lanes[lane] = merge;                                                                                           \
    }

#define RAPT_ROW_FOLD_(function, T, A, C, start, step, merge, begin, each_lane, end)                                   \
    static A function(int64_t count, const T *in, C c)                                                                 \
    {                                                                                                                  \
        (void)c;                                                                                                       \
        A lanes[lane_count], rest = start;                                                                             \
        int64_t i = 0;                                                                                                 \
        if (count >= lane_count) {                                                                                     \
            for (int lane = 0; lane < lane_count; lane++) lanes[lane] = start;                                         \
            begin;                                                                                                     \
            for (; i + lane_count <= count; i += lane_count) {                                                         \
                RAPT_SIMD_OF(T) for (int lane = 0; lane < lane_count; lane++)                                          \
                {                                                                                                      \
                    const A m = lanes[lane];                                                                           \
                    const T a = in[i + lane];                                                                          \
                    each_lane;                                                                                         \
                }                                                                                                      \
            }                                                                                                          \
            end;                                                                                                       \
            RAPT_FOLD_LANES_(A, 16, merge)                                                                             \
            RAPT_FOLD_LANES_(A, 8, merge)                                                                              \
            RAPT_FOLD_LANES_(A, 4, merge)                                                                              \
            RAPT_FOLD_LANES_(A, 2, merge)                                                                              \
            RAPT_FOLD_LANES_(A, 1, merge)                                                                              \
            rest = lanes[0];                                                                                           \
        }                                                                                                              \
        for (; i < count; i++) {                                                                                       \
            const A m = rest;                                                                                          \
            const T a = in[i];                                                                                         \
            rest = step;                                                                                               \
        }                                                                                                              \
        return rest;                                                                                                   \
    }

/* A function (count, in, c) that folds a row: `step` gives the new accumulator from the old one m, the element a and
 * the number c; `merge` from two accumulators m and a. */
#define RAPT_ROW_FOLD(function, T, A, start, step, merge)                                                              \
    RAPT_ROW_FOLD_(function, T, A, A, start, step, merge, (void)0, lanes[lane] = step, (void)0)

/* The larger of two; a NaN is the largest. */
#define RAPT_GREATER(a, m) ((a) > (m) || (a) != (a) ? (a) : (m))

/* A function (count, in, c) that gives the extreme element of a row: the one that is `beyond`, a condition of a and m,
 * all others, or NaN if there is one. Lanes compare numbers alone, which takes one instruction; NaN is kept apart. */
#define RAPT_ROW_EXTREME(function, T, start, beyond)                                                                   \
    RAPT_ROW_FOLD_(function, T, T, double, start, ((beyond) || a != a ? a : m), ((beyond) || a != a ? a : m),          \
                   T nans[lane_count] = {0}, nans[lane] = a != a ? a : nans[lane];                                     \
                   lanes[lane] = (beyond) ? a : m,                                                                     \
                   for (int lane = 0; lane < lane_count; lane++) if (nans[lane] != nans[lane]) lanes[lane] =           \
                       nans[lane])

/* A function that folds the lanes in pairs: halves first, which stay in registers; `merge` is of a and b. */
#define RAPT_LANE_FOLD(function, T, merge)                                                                             \
    static inline T function(const T *lanes)                                                                           \
    {                                                                                                                  \
        enum { half = exponential_lanes / 2, quarter = half / 2 };                                                     \
        T halves[half], quarters[quarter], last[2];                                                                    \
        RAPT_SIMD for (int lane = 0; lane < half; lane++)                                                              \
        {                                                                                                              \
            const T a = lanes[lane], b = lanes[lane + half];                                                           \
            halves[lane] = merge;                                                                                      \
        }                                                                                                              \
        RAPT_SIMD for (int lane = 0; lane < quarter; lane++)                                                           \
        {                                                                                                              \
            const T a = halves[lane], b = halves[lane + quarter];                                                      \
            quarters[lane] = merge;                                                                                    \
        }                                                                                                              \
        for (int lane = 0; lane < 2; lane++) {                                                                         \
            const T a = quarters[lane], b = quarters[lane + 2];                                                        \
            last[lane] = merge;                                                                                        \
        }                                                                                                              \
        const T a = last[0], b = last[1];                                                                              \
        return merge;                                                                                                  \
    }

/* A function (n, x) that gives the largest of a row, −∞ for an empty one; NaN does not count. What does not fill the
 * lanes leaves some idle. */
#define RAPT_ROW_LARGEST(function, T) RAPT_ROW_LARGEST_(function, T)
#define RAPT_ROW_LARGEST_(function, T)                                                                                 \
    RAPT_LANE_FOLD(function##_of_lanes, T, (a > b ? a : b))                                                            \
    static T function(int64_t n, const T *x)                                                                           \
    {                                                                                                                  \
        T lanes[exponential_lanes];                                                                                    \
        int64_t i = 0;                                                                                                 \
        for (int lane = 0; lane < exponential_lanes; lane++) lanes[lane] = -(T)INFINITY;                               \
        for (; i + exponential_lanes <= n; i += exponential_lanes) {                                                   \
            RAPT_SIMD for (int lane = 0; lane < exponential_lanes; lane++)                                             \
            {                                                                                                          \
                const T a = x[i + lane];                                                                               \
                lanes[lane] = a > lanes[lane] ? a : lanes[lane];                                                       \
            }                                                                                                          \
        }                                                                                                              \
        RAPT_SIMD for (int lane = 0; lane < (i < n ? exponential_lanes : 0); lane++)                                   \
        {                                                                                                              \
            const T a = i + lane < n ? x[i + lane] : -(T)INFINITY;                                                     \
            lanes[lane] = a > lanes[lane] ? a : lanes[lane];                                                           \
        }                                                                                                              \
        return function##_of_lanes(lanes);                                                                             \
    }

/* A function (n, x, m, out) that gives Σ exp(x − m) over a row and stores the exponentials, perhaps over x, unless
 * out is NULL. Blocks are summed in lanes of T, their sums in double. Lanes as above. */
#define RAPT_ROW_EXPONENTIALS(function, T, EXP)                                                                        \
    RAPT_LANE_FOLD(function##_of_lanes, T, a + b)                                                                      \
    static double function(int64_t n, const T *x, T m, T *out)                                                         \
    {                                                                                                                  \
        double total = 0;                                                                                              \
        for (int64_t start = 0; start < n; start += exponentials_a_block) {                                            \
            const int64_t end = n - start < exponentials_a_block ? n : start + exponentials_a_block;                   \
            T lanes[exponential_lanes] = {0};                                                                          \
            int64_t i = start;                                                                                         \
            for (; i + exponential_lanes <= end; i += exponential_lanes) {                                             \
                RAPT_SIMD for (int lane = 0; lane < exponential_lanes; lane++)                                         \
                {                                                                                                      \
                    const T e = EXP(x[i + lane] - m);                                                                  \
                    if (out) out[i + lane] = e;                                                                        \
                    lanes[lane] += e;                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
            RAPT_SIMD for (int lane = 0; lane < (i < end ? exponential_lanes : 0); lane++)                             \
            {                                                                                                          \
                const bool inside = i + lane < end;                                                                    \
                const T e = inside ? EXP(x[i + lane] - m) : 0;                                                         \
                if (inside && out) out[i + lane] = e;                                                                  \
                lanes[lane] += e;                                                                                      \
            }                                                                                                          \
            total += (double)function##_of_lanes(lanes);                                                               \
        }                                                                                                              \
        return total;                                                                                                  \
    }

#endif
