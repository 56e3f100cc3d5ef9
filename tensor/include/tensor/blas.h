/* The calls of OpenBLAS: one product of matrices small enough for its 32-bit sizes, on the calling thread. */
#ifndef RAPT_TENSOR_BLAS_H
#define RAPT_TENSOR_BLAS_H

#include <rapt/base.h>

/* c = a · b (+ bias in each row), or c += a · b. Strides in elements, normalised; c is dense along its rows. */
typedef struct rapt_blas_tile {
    rapt_dtype dtype;
    int m, n;
    const char *a, *b, *bias; /* bias: NULL for none; not together with accumulate */
    char *c;
    int64_t a_row, a_column, b_row, b_column, c_row;
    bool accumulate;
} rapt_blas_tile;

void rapt_blas_run(const rapt_blas_tile *tile, int64_t k);

/* Gives the axes of size 1, whose strides say nothing, strides that BLAS takes. */
void rapt_blas_normalize(int64_t rows, int64_t columns, int64_t *row_stride, int64_t *column_stride);

#endif
