/* Products, cut into shares, found in a batch, and turned: cᵀ = bᵀ · aᵀ. */
#include "products.h"

#include <string.h>

void rapt_product_fill(const rapt_product *p, int64_t item)
{
    for (int64_t i = 0; i < p->m; i++) {
        char *c = p->c + i * p->c_row * item;
        if (p->bias)
            memcpy(c, p->bias + i * p->bias_row * item, (size_t)(p->n * item));
        else
            memset(c, 0, (size_t)(p->n * item));
    }
}

rapt_product rapt_product_at(const rapt_products *products, int64_t place)
{
    const int64_t item = (int64_t)rapt_dtype_size(products->dtype);
    rapt_product p = products->first;
    for (int axis = products->rank - 1; axis >= 0; axis--) {
        const int64_t position = place % products->shape[axis] * item;
        place /= products->shape[axis];
        p.a += position * products->strides[0][axis];
        p.b += position * products->strides[1][axis];
        p.c += position * products->strides[2][axis];
    }
    return p;
}

void rapt_product_cut_columns(rapt_product *p, int64_t item, int64_t left, int64_t right)
{
    p->n = right - left;
    p->b += left * p->b_column * item;
    p->c += left * p->c_column * item;
    if (p->bias) p->bias += left * p->bias_column * item;
}

void rapt_product_cut_rows(rapt_product *p, int64_t item, int64_t top, int64_t bottom)
{
    p->m = bottom - top;
    p->a += top * p->a_row * item;
    p->c += top * p->c_row * item;
    if (p->bias) p->bias += top * p->bias_row * item;
}

rapt_product rapt_product_turn(const rapt_product *p)
{
    return (rapt_product){.m = p->n,
                          .n = p->m,
                          .k = p->k,
                          .a = p->b,
                          .b = p->a,
                          .bias = p->bias,
                          .c = p->c,
                          .a_row = p->b_column,
                          .a_column = p->b_row,
                          .b_row = p->a_column,
                          .b_column = p->a_row,
                          .bias_row = p->bias_column,
                          .bias_column = p->bias_row,
                          .c_row = p->c_column,
                          .c_column = p->c_row,
                          .accumulate = p->accumulate,
                          .epilogue = p->epilogue};
}

void rapt_products_turn(const rapt_matmul_kernels *kernels, rapt_products *products)
{
    if (!kernels->is_better_turned(&products->first)) return;
    products->first = rapt_product_turn(&products->first);
    for (int axis = 0; axis < products->rank; axis++) {
        const int64_t stride = products->strides[0][axis];
        products->strides[0][axis] = products->strides[1][axis];
        products->strides[1][axis] = stride;
    }
}
