/* The vector of a level, and transposing in registers. T is the element type, SIZE its bytes. */
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

/* A block at an edge: rows that are not to be read, and elements that are not there, count as zeros. */
static void take_edge(int64_t rows, int64_t columns, const T *from, int64_t from_row, const uint8_t *used,
                      T edge[width][width])
{
    memset(edge, 0, sizeof(T[width][width]));
    for (int64_t i = 0; i < rows; i++)
        if (!used || used[i]) memcpy(edge[i], from + i * from_row, (size_t)columns * sizeof(T));
}

/* to[t][i] = from[i][t] for `rows` rows of `columns` elements; a row whose byte in `used` is 0 is not read and counts as
 * zeros, and so do rows up to the next whole vector of them. */
static void transpose(int64_t rows, int64_t columns, const T *from, int64_t from_row, const uint8_t *used, T *to,
                      int64_t to_row)
{
    for (int64_t i = 0; i < rows; i += width) {
        const int64_t height = rows - i < width ? rows - i : width;
        bool whole = height == width;
        for (int64_t lane = 0; used && lane < height; lane++) whole = whole && used[i + lane];
        for (int64_t t = 0; t < columns; t += width) {
            const int64_t count = columns - t < width ? columns - t : width;
            const T *in = from + i * from_row + t;
            T edge[width][width], *out = to + t * to_row + i;
            vector block[width]; /* only indexed by constants, or it would not stay in registers */
            int64_t in_row = from_row, out_row = to_row;
            if (!whole || count < width) {
                take_edge(height, count, in, from_row, used ? used + i : NULL, edge);
                in = edge[0], in_row = width;
            }
#pragma GCC unroll 16
            for (int lane = 0; lane < width; lane++) block[lane] = *(const vector *)(const void *)(in + lane * in_row);
            transpose_block(block);
            if (count < width) out = edge[0], out_row = width;
#pragma GCC unroll 16
            for (int lane = 0; lane < width; lane++) *(vector *)(void *)(out + lane * out_row) = block[lane];
            for (int64_t lane = 0; count < width && lane < count; lane++)
                memcpy(to + (t + lane) * to_row + i, edge[lane], sizeof *edge);
        }
    }
}
