/* Matrix products of any strides, on all threads. Each element of a result has the bits that its row of a, its
 * column of b and k give it: neither the number of threads nor the sizes of the matrices or of the batch change
 * them; but where processors multiply limbs (kernels/matmul_limbs.c), large products have other bits than small ones.
 */
#ifndef RAPT_TENSOR_MATMUL_H
#define RAPT_TENSOR_MATMUL_H

#include "tensor/core.h"
#include "tensor/kernels.h"

/* c = a · b, or c += a · b, in float32 or float64, where a is (m, k), b (k, n) and c (m, n), of any strides of a and
 * b and a column stride of 1 in c. False after an error under the op's name (no memory); c is then as it was. */
bool rapt_gemm(const char *op, rapt_dtype dtype, int64_t m, int64_t n, int64_t k, const void *a, int64_t a_row_stride,
               int64_t a_column_stride, const void *b, int64_t b_row_stride, int64_t b_column_stride, void *c,
               int64_t c_row_stride, bool accumulate);

/* The same for tensors (…, m, k), (…, k, n) and (…, m, n) of one floating dtype and of rank 2 or more, whose leading
 * axes broadcast to c's, without a graph. c must be dense in its last axis and have rows that do not overlap. bias,
 * if not NULL, is (n) and added to each row; not together with accumulate. */
bool rapt_matmul_into(const char *op, const rapt_tensor *c, const rapt_tensor *a, const rapt_tensor *b,
                      const rapt_tensor *bias, bool accumulate);

/* The same, not accumulated, with an epilogue (NULL: none) that knows c, which is dense, as its c. */
bool rapt_matmul_finished(const char *op, const rapt_tensor *c, const rapt_tensor *a, const rapt_tensor *b,
                          const rapt_tensor *bias, const rapt_epilogue *epilogue);

/* Does OpenBLAS compute all products? RAPT_MATMUL=openblas in the environment says so. */
bool rapt_matmul_uses_blas(void);

/* For tests: whether OpenBLAS computes all products from now on. Returns what it was. */
bool rapt_matmul_set_blas(bool uses_blas);

#endif
