/* What stands for OpenBLAS in a library that is built without it: it can be asked for, and is never used. */
#include "blas.h"

#include <stdio.h>
#include <stdlib.h>

#include "tensor/matmul.h"

bool rapt_matmul_uses_blas(void)
{
    return false;
}

bool rapt_matmul_set_blas(bool now)
{
    (void)now;
    return false;
}

void rapt_blas_start(void)
{
    const char *wanted = getenv("RAPT_MATMUL");
    if (wanted && *wanted)
        fprintf(stderr, "rapt: RAPT_MATMUL=%s: this library is built without OpenBLAS; using its own products\n",
                wanted);
}

const char *rapt_blas_describe(void)
{
    return "nobody";
}

bool rapt_blas_reads(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride)
{
    (void)rows, (void)columns, (void)row_stride, (void)column_stride;
    return false;
}

/* Called where rapt_matmul_uses_blas alone. */
void rapt_blas_add_product(rapt_dtype dtype, const rapt_product *product)
{
    (void)dtype, (void)product;
    abort();
}
