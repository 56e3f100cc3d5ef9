/* Matrix products over OpenBLAS: fixed tiles of the output, on all threads, with the same bits on any number of them. */
#ifndef RAPT_TENSOR_MATMUL_H
#define RAPT_TENSOR_MATMUL_H

#include "tensor/core.h"

/* Can BLAS read a matrix of those strides (in elements)? One of them must be 1 and the other no less than the size of
 * that axis; the stride of an axis of size 1 does not matter. */
bool rapt_matrix_fits(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride);

/* c = a · b, or c += a · b, in float32 or float64, where a is (m, k), b (k, n) and c (m, n), with strides of a and b that
 * fit and a column stride of 1 in c. */
void rapt_gemm(rapt_dtype dtype, int64_t m, int64_t n, int64_t k, const void *a, int64_t a_row_stride,
               int64_t a_column_stride, const void *b, int64_t b_row_stride, int64_t b_column_stride, void *c,
               int64_t c_row_stride, bool accumulate);

/* The same for tensors (…, m, k), (…, k, n) and (…, m, n) of one floating dtype and of rank 2 or more, whose leading axes
 * broadcast to c's, without a graph. Operands of other strides are copied. c must be dense in its last axis and have
 * rows that do not overlap. bias, if not NULL, is (n) and added to each row. False after an error (no memory). */
bool rapt_matmul_into(const rapt_tensor *c, const rapt_tensor *a, const rapt_tensor *b, const rapt_tensor *bias,
                      bool accumulate);

/* At start-up: one thread for each call of OpenBLAS, whichever of its builds is installed. */
void rapt_blas_start(void);

#endif
