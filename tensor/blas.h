/* Products by OpenBLAS on the calling thread: the reference that ours are compared with, and no part of what runs by
 * default, on no processor: its bits depend on the shape, so that a row alone would have others than in a batch, and
 * out of memory it ends the process. Where it is faster is known, and the user's to choose: large products on x86 with
 * AVX and without AVX2, of 2011 to 2013, for which our kernels are those of SSE2 (1024³ on one thread of a Zen 4 with
 * kernels for Sandy Bridge: 26 ms against 61; with those for Nehalem 66). */
#ifndef RAPT_TENSOR_BLAS_H
#define RAPT_TENSOR_BLAS_H

#include "tensor/kernel_matmul.h"

/* At start-up: reads RAPT_MATMUL of the environment, and loads OpenBLAS if it asks for that. */
void rapt_blas_start(void);

/* Which OpenBLAS; called only where it is used. */
const char *rapt_blas_describe(void);

/* Can BLAS read a matrix of those strides? One of them must be 1 and the other no less than the size of that axis; the
 * stride of an axis of size 1 does not matter. */
bool rapt_blas_reads(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride);

/* c += a · b, for matrices that it reads, of any size, and a c whose rows are dense; the bias is not looked at. */
void rapt_blas_add_product(rapt_dtype dtype, const rapt_product *product);

#endif
