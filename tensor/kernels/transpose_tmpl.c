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

/* The same within lanes of 16 bytes, and lanes of even and of odd number of two vectors, as vectors of doubles. */
enum { lane_width = 16 / SIZE, lanes_of_vector = RAPT_VECTOR_BYTES / 16 };
typedef double vector_of_pairs __attribute__((vector_size(RAPT_VECTOR_BYTES), may_alias));
#if RAPT_VECTOR_BYTES == 64
#define EVEN_LANES(a, b) __builtin_shufflevector(a, b, 0, 1, 4, 5, 8, 9, 12, 13)
#define ODD_LANES(a, b) __builtin_shufflevector(a, b, 2, 3, 6, 7, 10, 11, 14, 15)
#if SIZE == 4
#define ZIP_LANES_LOW(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
#define ZIP_LANES_HIGH(a, b) __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
#else
#define ZIP_LANES_LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14)
#define ZIP_LANES_HIGH(a, b) __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15)
#endif
#elif RAPT_VECTOR_BYTES == 32
#define EVEN_LANES(a, b) __builtin_shufflevector(a, b, 0, 1, 4, 5)
#define ODD_LANES(a, b) __builtin_shufflevector(a, b, 2, 3, 6, 7)
#if SIZE == 4
#define ZIP_LANES_LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define ZIP_LANES_HIGH(a, b) __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#else
#define ZIP_LANES_LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 2, 6)
#define ZIP_LANES_HIGH(a, b) __builtin_shufflevector(a, b, 1, 5, 3, 7)
#endif
#else
#define EVEN_LANES(a, b) (a)
#define ODD_LANES(a, b) (b)
#define ZIP_LANES_LOW(a, b) ZIP_LOW(a, b)
#define ZIP_LANES_HIGH(a, b) ZIP_HIGH(a, b)
#endif

/* The same within lanes of 16 bytes, for as many vectors as such a lane has elements: by rounds that interleave the
 * first half of them with the second. */
static inline __attribute__((always_inline)) void transpose_lanes(vector *rows)
{
    vector next[lane_width];
#pragma GCC unroll 2
    for (int round = 1; round < lane_width; round *= 2) {
#pragma GCC unroll 2
        for (int i = 0; i < lane_width / 2; i++) {
            const vector a = rows[i], b = rows[i + lane_width / 2];
            next[2 * i] = ZIP_LANES_LOW(a, b);
            next[2 * i + 1] = ZIP_LANES_HIGH(a, b);
        }
#pragma GCC unroll 4
        for (int i = 0; i < lane_width; i++) rows[i] = next[i];
    }
}

/* rows[i][j] becomes rows[j][i]: blocks of a lane's width first, each in its lane; then the lanes, by rounds that do
 * the reverse. */
static inline __attribute__((always_inline)) void transpose_block(vector *rows)
{
    vector next[width];
#pragma GCC unroll 4
    for (int lane = 0; lane < width; lane += lane_width) transpose_lanes(rows + lane);
#pragma GCC unroll 2
    for (int round = 1; round < lanes_of_vector; round *= 2) {
#pragma GCC unroll 4
        for (int i = 0; i < lane_width; i++)
#pragma GCC unroll 2
            for (int lane = 0; lane < lanes_of_vector / 2; lane++) {
                const vector_of_pairs a = (vector_of_pairs)rows[2 * lane * lane_width + i],
                                      b = (vector_of_pairs)rows[(2 * lane + 1) * lane_width + i];
                next[lane * lane_width + i] = (vector)EVEN_LANES(a, b);
                next[(lane + lanes_of_vector / 2) * lane_width + i] = (vector)ODD_LANES(a, b);
            }
#pragma GCC unroll 16
        for (int i = 0; i < width; i++) rows[i] = next[i];
    }
}
