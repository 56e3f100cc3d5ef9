/* A batch of matrix products, ready to be computed. */
#ifndef RAPT_TENSOR_PRODUCTS_H
#define RAPT_TENSOR_PRODUCTS_H

#include <rapt/tensor.h>

#include "tensor/kernel_matmul.h"

enum { RAPT_LARGEST_BATCH_RANK = RAPT_MAX_RANK - 2 };

typedef struct rapt_products {
    rapt_dtype dtype;
    rapt_product first;
    int rank;
    int64_t shape[RAPT_LARGEST_BATCH_RANK], strides[3][RAPT_LARGEST_BATCH_RANK]; /* of a, b, c; in elements */
} rapt_products;

/* Computes them all, on all threads. False after an error under the op's name (no memory); c is then as it was. */
bool rapt_multiply(const char *op, const rapt_products *products);

#endif
