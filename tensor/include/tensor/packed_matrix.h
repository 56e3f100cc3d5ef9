/* The right operand of many products, packed once and then read by the tasks that compute them. */
#ifndef RAPT_TENSOR_PACKED_MATRIX_H
#define RAPT_TENSOR_PACKED_MATRIX_H

#include <stddef.h>

#include "tensor/kernel_matmul.h"

typedef struct rapt_packed_matrix {
    rapt_dtype dtype;
    const rapt_matmul_kernels *kernels;
    rapt_product matrix; /* its b, n and k */
    char *panels;        /* NULL: it is read where it lies */
    size_t capacity;
} rapt_packed_matrix;

/* The matrix b, (k, n) of any strides, for products of `rows` rows in all, `together` of which are multiplied at about
 * the same time: for few rows it stays where it is, so that it must live as long as they are computed. False after an
 * error under the op's name (no memory). */
bool rapt_packed_matrix_make(const char *op, rapt_packed_matrix *packed, rapt_dtype dtype, int64_t k, int64_t n,
                             const void *b, int64_t b_row_stride, int64_t b_column_stride, int64_t rows,
                             int64_t together);
void rapt_packed_matrix_free(rapt_packed_matrix *packed);

/* The scratch memory of a product of so many rows. */
size_t rapt_packed_matrix_scratch(const rapt_packed_matrix *packed, int64_t rows);

/* What lies in rows: so many elements from one to the next, and dense in themselves. */
typedef struct rapt_rows {
    char *data;
    int64_t stride;
} rapt_rows;

/* c = a · b, plus bias (n) if it is not NULL, or with accumulate c += a · b, for so many rows of a (k) and c (n), on
 * the calling thread where the matrix is packed. The bias may be one for all rows, whose stride is 0. Each element has
 * the bits that rapt_gemm gives it among `together` rows. `next` is prefetched meanwhile: what the caller reads or
 * writes afterwards. */
void rapt_packed_matrix_multiply(const rapt_packed_matrix *packed, int64_t rows, rapt_rows a, rapt_rows bias,
                                 rapt_rows c, bool accumulate, rapt_ahead next, void *scratch);

#endif
