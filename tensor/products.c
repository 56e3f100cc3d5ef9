/* Products, cut into shares, found in a batch, and turned: cᵀ = bᵀ · aᵀ. */
#include "products.h"

#include <string.h>

void rapt_product_fill(const rapt_product *p, int64_t item)
{
    for (int64_t i = 0; i < p->m; i++) {
        char *c = p->c + i * p->c_row * item;
        if (p->bias)
            memcpy(c, p->bias, (size_t)(p->n * item));
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

/* How long c = a · b takes, in vectors of a panel: each row takes as long as a panel even where it fills less of
 * one. */
static double time_of(const rapt_matmul_kernels *kernels, int64_t m, int64_t n)
{
    const double narrow = 0.8; /* of a panel's time: elements of a are loaded as often for a single vector */
    const int64_t rest = n % kernels->columns, lowest = 4; /* rows that keep the processor busy */
    const double panels = (double)(n / kernels->columns) + (rest == 0 ? 0 : rest <= kernels->vector ? narrow : 1);
    return panels * (double)(m < lowest ? lowest : m);
}

/* What writing a row of a tile takes, as elements of k: whole vectors, parts of them, or element after element. */
static double time_to_write(const rapt_matmul_kernels *kernels, int64_t n, int64_t c_column)
{
    const double whole = 4, part = 16, turned = 48;
    return c_column != 1 ? turned : n % kernels->vector != 0 ? part : whole;
}

bool rapt_product_is_better_turned(const rapt_matmul_kernels *kernels, const rapt_product *p)
{
    const double k = (double)(p->k < RAPT_BLOCK_DEPTH ? p->k : RAPT_BLOCK_DEPTH);
    const double as_it_is = time_of(kernels, p->m, p->n) * (k + time_to_write(kernels, p->n, p->c_column));
    return as_it_is > time_of(kernels, p->n, p->m) * (k + time_to_write(kernels, p->m, p->c_row));
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
                          .accumulate = p->accumulate};
}

void rapt_products_turn(const rapt_matmul_kernels *kernels, rapt_products *products)
{
    if (!rapt_product_is_better_turned(kernels, &products->first)) return;
    products->first = rapt_product_turn(&products->first);
    for (int axis = 0; axis < products->rank; axis++) {
        const int64_t stride = products->strides[0][axis];
        products->strides[0][axis] = products->strides[1][axis];
        products->strides[1][axis] = stride;
    }
}
