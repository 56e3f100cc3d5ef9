/* The vector of a level, and transposing blocks in registers. T is the element type, SIZE its bytes. */
#include "vector_width.h"

typedef T vector __attribute__((vector_size(RAPT_VECTOR_BYTES), aligned(SIZE), may_alias));
enum { width = RAPT_VECTOR_BYTES / SIZE };

/* Two vectors, interleaved: a0 b0 a1 b1 …, the first and the second half of it. */
#if RAPT_VECTOR_BYTES / SIZE == 16
#define ZIP_LOW(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define ZIP_HIGH(a, b) __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif RAPT_VECTOR_BYTES / SIZE == 8
#define ZIP_LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define ZIP_HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#elif RAPT_VECTOR_BYTES / SIZE == 4
#define ZIP_LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define ZIP_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#else
#define ZIP_LOW(a, b) __builtin_shufflevector(a, b, 0, 2)
#define ZIP_HIGH(a, b) __builtin_shufflevector(a, b, 1, 3)
#endif

/* rows[i][j] becomes rows[j][i]: each round interleaves the first half of the rows with the second. */
static inline __attribute__((always_inline)) void transpose_block(vector *rows)
{
    vector next[width];
#pragma GCC unroll 4
    for (int round = 1; round < width; round *= 2) {
#pragma GCC unroll 8
        for (int i = 0; i < width / 2; i++) {
            next[2 * i] = ZIP_LOW(rows[i], rows[i + width / 2]);
            next[2 * i + 1] = ZIP_HIGH(rows[i], rows[i + width / 2]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < width; i++) rows[i] = next[i];
    }
}
