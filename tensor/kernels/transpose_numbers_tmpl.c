/* Transposing matrices of numbers of SIZE bytes, whatever they mean: T is an integer of that size, OF_SIZE(name) the
 * name of another file's function for it. */
#include "loop.h"
#include "transpose_tmpl.c"

/* to[i][j] = from[j][i] for what whole vectors leave over. */
static void transpose_rest(int64_t first_row, int64_t rows, int64_t first_column, int64_t columns, const char *from,
                           int64_t from_stride, char *to, int64_t to_stride)
{
    for (int64_t i = first_row; i < rows; i++)
        for (int64_t j = first_column; j < columns; j++)
            ((T *)(void *)(to + i * to_stride))[j] = ((const T *)(const void *)(from + j * from_stride))[i];
}

/* Whole lines of `from` are read and whole lines of `to` written, so that none has to stay in a cache. */
static void transpose(int64_t rows, int64_t columns, const char *from, int64_t from_stride, char *to, int64_t to_stride)
{
    const int64_t whole_rows = rows / width * width, whole_columns = columns / width * width;
    for (int64_t j = 0; j < whole_columns; j += width) {
        for (int64_t i = 0; i < whole_rows; i += width) {
            const char *in = from + j * from_stride + i * SIZE;
            char *out = to + i * to_stride + j * SIZE;
            vector block[width];
#pragma GCC unroll 16
            for (int lane = 0; lane < width; lane++)
                block[lane] = *(const vector *)(const void *)(in + lane * from_stride);
            transpose_block(block);
#pragma GCC unroll 16
            for (int lane = 0; lane < width; lane++) *(vector *)(void *)(out + lane * to_stride) = block[lane];
        }
    }
    transpose_rest(0, whole_rows, whole_columns, columns, from, from_stride, to, to_stride);
    transpose_rest(whole_rows, rows, 0, columns, from, from_stride, to, to_stride);
}

void RAPT_AT_LEVEL(OF_SIZE(rapt_fill_transpose))(rapt_kernels *kernels)
{
    kernels->transpose[SIZE / 4 - 1] = transpose;
}
