/* What the kernels of matrix products are told: raw numbers and strides. */
#ifndef RAPT_TENSOR_KERNEL_MATMUL_H
#define RAPT_TENSOR_KERNEL_MATMUL_H

#include <rapt/base.h>

/* c = a · b, plus bias or, with accumulate, plus c: a is (m, k), b (k, n) and c (m, n). Any strides, in elements. bias may be
 * NULL, and repeats where a stride is 0. Of m, n and k none is 0. */
typedef struct rapt_product {
    int64_t m, n, k;
    const char *a, *b, *bias;
    char *c;
    int64_t a_row, a_column, b_row, b_column, bias_row, bias_column, c_row, c_column;
    bool accumulate;
} rapt_product;

/* Each element of c has the bits that its row of a, its column of b and k give it, whatever m, n and the strides are, and
 * whichever of these functions computes it. */
typedef struct rapt_matmul_kernels {
    int64_t rows, columns, vector;                             /* of a register tile, and columns of a vector */
    size_t (*multiply_bytes)(int64_t m, int64_t n, int64_t k); /* of scratch */
    void (*multiply)(const rapt_product *product, void *scratch);
    bool (*is_small)(const rapt_product *product);
    void (*multiply_small)(const rapt_product *product); /* if is_small: without scratch, and without copying a */
} rapt_matmul_kernels;

#endif
