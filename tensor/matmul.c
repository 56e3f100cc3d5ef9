/* Matrix products of tensors and of plain memory: batches whose leading axes broadcast. */
#include "tensor/matmul.h"

#include <string.h>

#include "blas.h"
#include "products.h"
#include "tensor/core.h"
#include "tensor/flops.h"

RAPT_THREAD_LOCAL double *rapt_flops;

bool rapt_gemm(const char *op, rapt_dtype dtype, int64_t m, int64_t n, int64_t k, const void *a, int64_t a_row_stride,
               int64_t a_column_stride, const void *b, int64_t b_row_stride, int64_t b_column_stride, void *c,
               int64_t c_row_stride, bool accumulate)
{
    const rapt_product first = {
        .m = m,
        .n = n,
        .k = k,
        .a = a,
        .b = b,
        .c = c,
        .a_row = a_row_stride,
        .a_column = a_column_stride,
        .b_row = b_row_stride,
        .b_column = b_column_stride,
        .c_row = c_row_stride,
        .c_column = 1,
        .accumulate = accumulate,
    };
    rapt_count_flops(2 * (double)m * (double)n * (double)k);
    return rapt_multiply_one(op, dtype, &first);
}

/* The tensor, or for BLAS a copy that it can read, in which leading axes that repeat are not written out. */
static const rapt_tensor *readable(const rapt_tensor *x)
{
    const int rank = x->rank;
    const int64_t *shape = x->shape + rank - 2, *strides = x->strides + rank - 2;
    if (!rapt_matmul_uses_blas() || rapt_blas_reads(shape[0], shape[1], strides[0], strides[1])) return x;
    x = rapt_without_repeats(x, rank - 2);
    return x ? rapt_clone(x) : NULL;
}

static void batch_strides(const rapt_tensor *x, const rapt_tensor *c, int64_t *strides)
{
    rapt_tensor leading = rapt_header_of(x);
    leading.rank = (uint8_t)(x->rank - 2);
    int64_t full[RAPT_MAX_RANK];
    rapt_broadcast_strides(&leading, c->rank - 2, c->shape, full);
    memcpy(strides, full, RAPT_LARGEST_BATCH_RANK * sizeof *strides);
}

/* The innermost axes become rows where they lie behind the rows in a and c and b is one matrix for all of them. */
static void fold(rapt_products *w)
{
    rapt_product *p = &w->first;
    for (; w->rank > 0; w->rank--) {
        const int last = w->rank - 1;
        const int64_t size = w->shape[last], in_a = w->strides[0][last], in_c = w->strides[2][last];
        const int64_t a_row = p->m == 1 ? in_a : p->a_row, c_row = p->m == 1 ? in_c : p->c_row;
        if (size == 1) continue;
        const bool behind = w->strides[1][last] == 0 && in_a == p->m * a_row && in_c == p->m * c_row;
        if (!behind || (rapt_matmul_uses_blas() && !rapt_blas_reads(p->m * size, p->k, a_row, p->a_column))) return;
        p->m *= size;
        p->a_row = a_row;
        p->c_row = c_row;
    }
}

static bool multiply(const char *op, const rapt_tensor *c, const rapt_tensor *a, const rapt_tensor *b,
                     const rapt_tensor *bias, bool accumulate, const rapt_epilogue *epilogue)
{
    a = readable(a);
    b = readable(b);
    const rapt_tensor *dense_bias = rapt_as_contiguous(bias);
    if (!a || !b || (bias && !dense_bias)) return false;
    rapt_products w = {.dtype = c->dtype};
    w.first = (rapt_product){
        .m = a->shape[a->rank - 2],
        .n = b->shape[b->rank - 1],
        .k = a->shape[a->rank - 1],
        .a = a->data,
        .b = b->data,
        .bias = bias ? dense_bias->data : NULL,
        .c = c->data,
        .a_row = a->strides[a->rank - 2],
        .a_column = a->strides[a->rank - 1],
        .b_row = b->strides[b->rank - 2],
        .b_column = b->strides[b->rank - 1],
        .bias_column = 1,
        .c_row = c->strides[c->rank - 2],
        .c_column = 1,
        .accumulate = accumulate,
        .epilogue = epilogue,
    };
    w.rank = c->rank - 2;
    memcpy(w.shape, c->shape, (size_t)w.rank * sizeof *w.shape);
    batch_strides(a, c, w.strides[0]);
    batch_strides(b, c, w.strides[1]);
    batch_strides(c, c, w.strides[2]);
    fold(&w);
    rapt_count_flops(2 * (double)c->count * (double)w.first.k);
    return rapt_multiply(op, &w);
}

bool rapt_matmul_into(const char *op, const rapt_tensor *c, const rapt_tensor *a, const rapt_tensor *b,
                      const rapt_tensor *bias, bool accumulate)
{
    return multiply(op, c, a, b, bias, accumulate, NULL);
}

bool rapt_matmul_finished(const char *op, const rapt_tensor *c, const rapt_tensor *a, const rapt_tensor *b,
                          const rapt_tensor *bias, const rapt_epilogue *epilogue)
{
    return multiply(op, c, a, b, bias, false, epilogue);
}
