/* Squared distances of vectors, summed from the differences themselves. */
#include <string.h>

#include "loop.h"

/* out[i][j] = Σ (q_i − k_j)², a tile of keys at a time with its sums in registers. Keys that do not fill a tile take
 * the same way, so that the bits of a distance do not depend on how many keys there are. */
#define SQUARED_DISTANCE(T, dtype)                                                                                     \
    static void squared_distance_##dtype(int64_t rows, int64_t keys, int64_t size, const void *queries,                \
                                         const void *transposed_keys, void *out)                                       \
    {                                                                                                                  \
        const int64_t tiles = (keys + RAPT_DISTANCE_TILE - 1) / RAPT_DISTANCE_TILE;                                    \
        for (int64_t row = 0; row < rows; row++) {                                                                     \
            const T *q = (const T *)queries + row * size;                                                              \
            T *to = (T *)out + row * keys;                                                                             \
            for (int64_t first = 0; first < keys; first += RAPT_DISTANCE_TILE) {                                       \
                const int64_t count = keys - first < RAPT_DISTANCE_TILE ? keys - first : RAPT_DISTANCE_TILE;           \
                const T *k = (const T *)transposed_keys + first;                                                       \
                T sums[RAPT_DISTANCE_TILE] = {0};                                                                      \
                for (int64_t i = 0; i < size; i++, k += tiles * RAPT_DISTANCE_TILE) {                                  \
                    RAPT_SIMD for (int j = 0; j < RAPT_DISTANCE_TILE; j++) sums[j] += (q[i] - k[j]) * (q[i] - k[j]);   \
                }                                                                                                      \
                memcpy(to + first, sums, (size_t)count * sizeof(T));                                                   \
            }                                                                                                          \
        }                                                                                                              \
    }

SQUARED_DISTANCE(float, float32)
SQUARED_DISTANCE(double, float64)

void RAPT_AT_LEVEL(rapt_fill_distance)(rapt_kernels *kernels)
{
    kernels->distance = (rapt_distance_kernels){.squared = {squared_distance_float32, squared_distance_float64}};
}
