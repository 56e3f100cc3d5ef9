/* Sparsemax and entmax with α = 1.5 along dense rows. The threshold is found by Newton's steps from below, which end in
 * the exact one of the elements above it; one more takes off what a step from afar was rounded by. Sums are kept in
 * double. */
#include <math.h>
#include <stddef.h>

#include "row.h"

/* Of the elements of a row above a threshold: how many, Σ d and Σ d² of their distances d to it, and the least d. */
typedef struct above {
    double count, sum, squares, least;
} above;

/* y = max(x − t, 0) with Σ y = 1 (Martins & Astudillo 2016): t += (Σ d − 1) / n. True at the end: none of the n falls
 * below the new threshold. */
static bool step_sparsemax(const above *a, double *threshold)
{
    const double step = (a->sum - 1) / a->count;
    *threshold += step;
    return step <= a->least;
}

/* y = max(x / 2 − t, 0)² with Σ y = 1 (Peters et al. 2019). Among the same n, n δ² − 2 Σ d δ + Σ d² = 1; where one of
 * them falls below, a step towards √Σ d² = 1, which is convex in t, does not go too far. */
static bool step_entmax15(const above *a, double *threshold)
{
    const double excess = a->squares - 1, square = RAPT_MULTIPLY_ADD(a->sum, a->sum, -a->count * excess);
    const double step = square >= 0 ? excess / (a->sum + sqrt(square)) : INFINITY;
    const bool ends = step <= a->least;
    *threshold += ends ? step : (a->squares - sqrt(a->squares)) / a->sum;
    return ends;
}

/* A row of −∞ only gives zeros, one with NaN or +∞ gives NaN. `factor` of x is what the formulas above are about, t is
 * counted from the largest of them, `power` of d is y. */
#define SPARSE_SOFTMAX(name, T, dtype, factor, power)                                                                  \
    static above find_above_##name##_##dtype(int64_t n, const T *x, T largest, double threshold)                       \
    {                                                                                                                  \
        double count = 0, sum = 0, squares = 0, least = INFINITY;                                                      \
        _Pragma("omp simd reduction(+ : count, sum, squares) reduction(min : least)") for (int64_t i = 0; i < n; i++)  \
        {                                                                                                              \
            const double d = factor * ((double)x[i] - (double)largest) - threshold;                                    \
            count += d > 0 ? 1 : 0;                                                                                    \
            sum += d > 0 ? d : 0;                                                                                      \
            squares += d > 0 ? d * d : 0;                                                                              \
            least = d > 0 && d < least ? d : least;                                                                    \
        }                                                                                                              \
        return (above){count, sum, squares, least};                                                                    \
    }                                                                                                                  \
                                                                                                                       \
    static void name##_row_##dtype(int64_t n, const T *x, T *out)                                                      \
    {                                                                                                                  \
        enum { most_steps = 1000 };                                                                                    \
        const T largest = greatest_##dtype(n, x, 0);                                                                   \
        double threshold = -1;                                                                                         \
        if (!(largest < (T)INFINITY && largest > -(T)INFINITY)) {                                                      \
            for (int64_t i = 0; i < n; i++) out[i] = largest == -(T)INFINITY ? 0 : (T)NAN;                             \
            return;                                                                                                    \
        }                                                                                                              \
        bool ends = false, ended = false;                                                                              \
        for (int step = 0; step < most_steps && !ended; step++) {                                                      \
            const above a = find_above_##name##_##dtype(n, x, largest, threshold);                                     \
            ended = ends;                                                                                              \
            ends = step_##name(&a, &threshold);                                                                        \
        }                                                                                                              \
        RAPT_SIMD for (int64_t i = 0; i < n; i++)                                                                      \
        {                                                                                                              \
            const double d = factor * ((double)x[i] - (double)largest) - threshold;                                    \
            out[i] = d > 0 ? (T)(power) : 0;                                                                           \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void name##_##dtype(int64_t count, char *const *data, const int64_t *strides, const void *options)          \
    {                                                                                                                  \
        const int64_t n = *(const int64_t *)options;                                                                   \
        for (int64_t j = 0; j < count; j++)                                                                            \
            name##_row_##dtype(n, (const T *)(void *)(data[1] + j * strides[1]),                                       \
                               (T *)(void *)(data[0] + j * strides[0]));                                               \
    }

#define FAMILY(T, dtype)                                                                                               \
    RAPT_ROW_EXTREME(greatest_##dtype, T, -(T)INFINITY, a > m)                                                         \
    SPARSE_SOFTMAX(sparsemax, T, dtype, 1, d)                                                                          \
    SPARSE_SOFTMAX(entmax15, T, dtype, 0.5, d *d)

FAMILY(float, float32)
FAMILY(double, float64)

void RAPT_AT_LEVEL(rapt_fill_sparse_softmax)(rapt_kernels *kernels)
{
    kernels->sparse_softmax = (rapt_sparse_softmax_kernels){
        .sparsemax = {RAPT_FLOATING_ROW(sparsemax)},
        .entmax15 = {RAPT_FLOATING_ROW(entmax15)},
    };
}
