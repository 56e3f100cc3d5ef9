/* Running the normalisation kernels over all rows of a tensor, on all threads. */
#include "autograd/normalize.h"

#include <string.h>

#include "tensor/kernels.h"
#include "tensor/memory.h"
#include "tensor/parallel.h"

/* A row of what is NULL is NULL. */
static char *row_of(const rapt_tensor *tensor, int64_t row, int64_t length)
{
    return tensor ? tensor->data + row * length * (int64_t)rapt_dtype_size((rapt_dtype)tensor->dtype) : NULL;
}

/* The row's mean or scale. */
static double *statistic_of(const rapt_tensor *tensor, int64_t row)
{
    return (double *)(void *)row_of(tensor, row, 1);
}

static bool make_contiguous(const rapt_tensor **tensor)
{
    return !*tensor || (*tensor = rapt_as_contiguous(*tensor)) != NULL;
}

typedef struct forward_work {
    int64_t n;
    double epsilon;
    const rapt_tensor *x, *weight, *bias;
    rapt_tensor *mean, *scale, *y;
} forward_work;

static void forward_rows(void *context, int64_t first, int64_t last)
{
    const forward_work *w = context;
    rapt_kernel.normalize.forward[w->y->dtype](last - first, w->n, w->epsilon, row_of(w->x, first, w->n),
                                               row_of(w->weight, 0, 0), row_of(w->bias, 0, 0),
                                               statistic_of(w->mean, first), statistic_of(w->scale, first),
                                               row_of(w->y, first, w->n));
}

bool rapt_normalize_rows(double epsilon, const rapt_tensor *x, const rapt_tensor *weight, const rapt_tensor *bias,
                         rapt_tensor *mean, rapt_tensor *scale, rapt_tensor *y)
{
    forward_work w = {x->shape[x->rank - 1], epsilon, x, weight, bias, mean, scale, y};
    if (!make_contiguous(&w.x) || !make_contiguous(&w.weight) || !make_contiguous(&w.bias)) return false;
    rapt_parallel(scale->count, rapt_grain(4 * w.n), forward_rows, &w);
    return true;
}

/* Rows whose share of dweight and dbias is summed in the tensor's own dtype; the shares are then summed in double. */
enum { rows_a_slice = 32 };

typedef struct backward_work {
    int64_t n, rows;
    const rapt_tensor *g, *x, *weight, *scale, *mean;
    rapt_tensor *dx;
    char *shares; /* for each slice n of dweight and n of dbias; NULL when they are not wanted */
    size_t share_bytes;
} backward_work;

static void backward_slices(void *context, int64_t first, int64_t last)
{
    const backward_work *w = context;
    for (int64_t slice = first; slice < last; slice++) {
        int64_t row = slice * rows_a_slice, rest = w->rows - row;
        char *share = w->shares ? w->shares + (size_t)slice * w->share_bytes : NULL;
        if (share) memset(share, 0, w->share_bytes);
        rapt_kernel.normalize.backward[w->dx->dtype](rest < rows_a_slice ? rest : rows_a_slice, w->n,
                                                     row_of(w->g, row, w->n), row_of(w->x, row, w->n),
                                                     row_of(w->weight, 0, 0), statistic_of(w->mean, row),
                                                     statistic_of(w->scale, row), row_of(w->dx, row, w->n), share,
                                                     share ? share + w->share_bytes / 2 : NULL);
    }
}

/* Sums what the slices found, in double. */
static void sum_shares(const backward_work *w, int64_t slices, double *sums, rapt_tensor *dweight, rapt_tensor *dbias)
{
    rapt_dtype dtype = (rapt_dtype)w->dx->dtype;
    int64_t size = (int64_t)rapt_dtype_size(dtype), strides[] = {size, sizeof *sums};
    for (int64_t i = 0; i < 2 * w->n; i++) sums[i] = 0;
    rapt_kernel.reduce.sum.columns[dtype](2 * w->n, size, slices, (int64_t)w->share_bytes, w->shares, sums, NULL);
    rapt_loop *convert = rapt_kernel.elementwise.cast[dtype][RAPT_FLOAT64];
    convert(w->n, (char *[]){dweight->data, (char *)sums}, strides, NULL);
    convert(w->n, (char *[]){dbias->data, (char *)(sums + w->n)}, strides, NULL);
}

bool rapt_normalize_rows_backward(const rapt_tensor *const inputs[5], rapt_tensor *dx, rapt_tensor *dweight,
                                  rapt_tensor *dbias)
{
    int64_t n = dx->shape[dx->rank - 1];
    backward_work w = {.n = n, .rows = inputs[3]->count, .g = inputs[0], .x = inputs[1], .weight = inputs[2], .dx = dx};
    w.scale = inputs[3];
    w.mean = inputs[4];
    if (!make_contiguous(&w.g) || !make_contiguous(&w.x) || !make_contiguous(&w.weight)) return false;
    int64_t slices = (w.rows + rows_a_slice - 1) / rows_a_slice;
    w.share_bytes = 2 * (size_t)n * rapt_dtype_size((rapt_dtype)dx->dtype);
    size_t sum_bytes = 2 * (size_t)n * sizeof(double), capacity;
    char *block = NULL;
    if (dweight) {
        block = rapt_block_take("normalize_backward", sum_bytes + (size_t)slices * w.share_bytes, &capacity);
        if (!block) return false;
        w.shares = block + sum_bytes;
    }
    rapt_parallel(slices, rapt_grain(6 * n * rows_a_slice), backward_slices, &w);
    if (dweight) {
        sum_shares(&w, slices, (double *)(void *)block, dweight, dbias);
        rapt_block_give(block, capacity);
    }
    return true;
}
