/* Matrices of any strides, with NaN between their elements, and nothing behind the last one that may be touched. */
#ifndef RAPT_TESTS_MATRIX_H
#define RAPT_TESTS_MATRIX_H

#include <math.h>
#include <stdlib.h>

#include <rapt.h>

#include "draw.h"
#include "fenced.h"

/* How an operand lies in memory: dense rows, dense columns, or neither; NaN lies between. */
enum lie { DENSE_ROWS, DENSE_COLUMNS, SCATTERED, LIES };

typedef struct matrix {
    rapt_dtype dtype;
    int64_t rows, columns, row, column; /* sizes and strides */
    void *data;
} matrix;

static inline char *element(const matrix *x, int64_t i, int64_t j)
{
    return (char *)x->data + (i * x->row + j * x->column) * (int64_t)rapt_dtype_size(x->dtype);
}

static inline double number_at(const matrix *x, int64_t i, int64_t j)
{
    const char *at = element(x, i, j);
    return x->dtype == RAPT_FLOAT32 ? (double)*(const float *)(const void *)at : *(const double *)(const void *)at;
}

static inline void put(const matrix *x, int64_t i, int64_t j, double value)
{
    char *at = element(x, i, j);
    if (x->dtype == RAPT_FLOAT32)
        *(float *)(void *)at = (float)value;
    else
        *(double *)(void *)at = value;
}

static inline int64_t places_of(const matrix *x)
{
    return (x->rows - 1) * x->row + (x->columns - 1) * x->column + 1;
}

static inline matrix make(rapt_dtype dtype, int64_t rows, int64_t columns, enum lie lie)
{
    enum { gap = 3 };
    matrix x = {.dtype = dtype, .rows = rows, .columns = columns};
    x.row = lie == DENSE_ROWS ? columns + gap : lie == DENSE_COLUMNS ? 1 : 2 * columns + gap;
    x.column = lie == DENSE_ROWS ? 1 : lie == DENSE_COLUMNS ? rows + gap : 2;
    const int64_t places = places_of(&x);
    x.data = fenced_take((size_t)places * rapt_dtype_size(dtype));
    matrix all = x;
    all.row = 1;
    for (int64_t i = 0; i < places; i++) put(&all, i, 0, (double)NAN);
    return x;
}

static inline void give(const matrix *x)
{
    fenced_give(x->data, (size_t)places_of(x) * rapt_dtype_size(x->dtype));
}

static inline matrix draw_matrix(uint64_t *state, rapt_dtype dtype, int64_t rows, int64_t columns, enum lie lie)
{
    matrix x = make(dtype, rows, columns, lie);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) put(&x, i, j, draw_number(state));
    return x;
}

#endif
