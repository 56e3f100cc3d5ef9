/* The right operand of many products, packed once: where the same weights meet a few rows again and again, packing
 * takes as long as the product. */
#include "tensor/packed_matrix.h"

#include "blas.h"
#include "products.h"
#include "tensor/kernels.h"
#include "tensor/matmul.h"
#include "tensor/memory.h"
#include "tensor/parallel.h"

static int64_t panels_of(const rapt_packed_matrix *packed)
{
    return rapt_divide_up(packed->matrix.n, packed->kernels->columns);
}

/* The bytes of the blocks of k before one. */
static int64_t bytes_before(const rapt_packed_matrix *packed, int64_t block)
{
    const rapt_product *p = &packed->matrix;
    int64_t bytes = 0;
    for (int64_t i = 0; i < block; i++)
        bytes += packed->kernels->columns_bytes(p->n, rapt_block_start(p->k, i + 1) - rapt_block_start(p->k, i));
    return bytes;
}

static void pack_panels(void *context, int64_t first, int64_t last)
{
    const rapt_packed_matrix *packed = context;
    for (int64_t block = 0; block < rapt_block_count(packed->matrix.k); block++)
        packed->kernels->pack_block(&packed->matrix, block, first, last, packed->panels + bytes_before(packed, block));
}

bool rapt_packed_matrix_make(const char *op, rapt_packed_matrix *packed, rapt_dtype dtype, int64_t k, int64_t n,
                             const void *b, int64_t b_row_stride, int64_t b_column_stride, int64_t rows,
                             int64_t together)
{
    const rapt_matmul_kernels *kernels = rapt_matmul_kernels_for(dtype, together, n, k);
    *packed = (rapt_packed_matrix){
        .dtype = dtype,
        .kernels = kernels,
        .matrix = {.n = n, .k = k, .b = b, .b_row = b_row_stride, .b_column = b_column_stride, .c_column = 1}};
    if (n == 0 || k == 0 || rows <= kernels->few_rows || rapt_matmul_uses_blas()) return true;
    packed->panels = rapt_block_take(op, (size_t)bytes_before(packed, rapt_block_count(k)), &packed->capacity);
    if (packed->panels) rapt_parallel(panels_of(packed), rapt_grain(k * kernels->columns), pack_panels, packed);
    return packed->panels != NULL;
}

void rapt_packed_matrix_free(rapt_packed_matrix *packed)
{
    if (packed->panels) rapt_block_give(packed->panels, packed->capacity);
    packed->panels = NULL;
}

size_t rapt_packed_matrix_scratch(const rapt_packed_matrix *packed, int64_t rows)
{
    return packed->panels ? packed->kernels->chunk_bytes(rows, packed->matrix.k) : 0;
}

/* Where nothing is packed, by columns: on all threads, unless this is a task already. */
static void multiply_columns(void *context, int64_t first, int64_t last)
{
    const rapt_packed_matrix *part = context;
    rapt_product p = part->matrix;
    rapt_product_cut_columns(&p, (int64_t)rapt_dtype_size(part->dtype), first, last);
    part->kernels->multiply_direct(&p);
}

/* All blocks of k, each beside its share of what comes next. */
static void multiply_blocks(const rapt_packed_matrix *packed, const rapt_product *p, rapt_ahead next, void *scratch)
{
    enum { near_panels = 8 }; /* that stay in any second-level cache */
    const rapt_matmul_kernels *kernels = packed->kernels;
    const int64_t blocks = rapt_block_count(p->k);
    for (int64_t block = 0; block < blocks; block++) {
        const int64_t first = next.bytes * block / blocks, last = next.bytes * (block + 1) / blocks;
        const char *panels = packed->panels + bytes_before(packed, block);
        rapt_ahead share = next;
        if (next.rows > 0) share.from += first, share.bytes = last - first;
        kernels->multiply_block(p, block, panels, near_panels * kernels->columns, scratch, share);
    }
}

void rapt_packed_matrix_multiply(const rapt_packed_matrix *packed, int64_t rows, rapt_rows a, rapt_rows bias,
                                 rapt_rows c, bool accumulate, rapt_ahead next, void *scratch)
{
    rapt_product p = packed->matrix;
    p.m = rows;
    p.a = a.data;
    p.a_row = a.stride;
    p.a_column = 1;
    p.bias = bias.data;
    p.bias_row = bias.stride;
    p.bias_column = 1;
    p.c = c.data;
    p.c_row = c.stride;
    p.accumulate = accumulate;
    if (p.m == 0 || p.n == 0) return;
    if (p.k == 0 || rapt_matmul_uses_blas()) {
        if (!accumulate) rapt_product_fill(&p, (int64_t)rapt_dtype_size(packed->dtype));
        if (p.k > 0) rapt_blas_add_product(packed->dtype, &p);
    } else if (!packed->panels) {
        enum { fewest_columns = 256 };
        const int64_t grain = rapt_grain(p.m * (p.k / 64 + 1));
        rapt_parallel(p.n, grain < fewest_columns ? fewest_columns : grain, multiply_columns,
                      &(rapt_packed_matrix){.dtype = packed->dtype, .kernels = packed->kernels, .matrix = p});
    } else {
        multiply_blocks(packed, &p, next, scratch);
    }
}
