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

/* The product at a place of the batch, whose places are counted along the last axis first. */
rapt_product rapt_product_at(const rapt_products *products, int64_t place);

/* Leaves of a product its share in the columns [left, right) or the rows [top, bottom); item: bytes of an element. */
void rapt_product_cut_columns(rapt_product *product, int64_t item, int64_t left, int64_t right);
void rapt_product_cut_rows(rapt_product *product, int64_t item, int64_t top, int64_t bottom);

/* c = bias, whose rows are dense, or 0: what an empty sum gives, and what OpenBLAS adds to. */
void rapt_product_fill(const rapt_product *product, int64_t item);

/* cᵀ = bᵀ · aᵀ; all products of a batch are turned where that is better. */
rapt_product rapt_product_turn(const rapt_product *product);
void rapt_products_turn(const rapt_matmul_kernels *kernels, rapt_products *products);

/* Computes them all, on all threads. False after an error under the op's name (no memory); c is then as it was. */
bool rapt_multiply(const char *op, const rapt_products *products);

/* The same for a single one. */
bool rapt_multiply_one(const char *op, rapt_dtype dtype, const rapt_product *product);

#endif
