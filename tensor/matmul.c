/* Matrix products: batches and tiles of one, cut by shape alone and handed to OpenBLAS a tile at a time. */
#include "tensor/matmul.h"

#include <limits.h>
#include <string.h>

#include "tensor/blas.h"
#include "tensor/kernels.h"
#include "tensor/parallel.h"

enum { largest_batch_rank = RAPT_MAX_RANK - 2 };

typedef struct product {
    rapt_blas_tile whole; /* one matrix of each operand */
    int64_t m, n, k;
    size_t item;
    int batch_rank;
    int64_t batch_shape[largest_batch_rank];
    int64_t batch_strides[3][largest_batch_rank]; /* of a, b, c; in elements */
    int64_t tile_rows, tile_columns, row_tiles, column_tiles;
    bool small; /* work for our own kernel */
} product;

/* Without BLAS: c = a · b, or where that has the longer rows, cᵀ = bᵀ · aᵀ. */
static void run_small(const rapt_blas_tile *t, int64_t k)
{
    rapt_small_product p = {.m = t->m, .n = t->n, .k = k, .bias = t->bias, .c = t->c, .accumulate = t->accumulate};
    if (t->n >= t->m || t->n >= 8) {
        p.a = t->a, p.a_row = t->a_row, p.a_column = t->a_column;
        p.b = t->b, p.b_row = t->b_row, p.b_column = t->b_column;
        p.c_row = t->c_row, p.c_column = 1, p.bias_column = 1;
    } else {
        p.m = t->n, p.n = t->m;
        p.a = t->b, p.a_row = t->b_column, p.a_column = t->b_row;
        p.b = t->a, p.b_row = t->a_column, p.b_column = t->a_row;
        p.c_row = 1, p.c_column = t->c_row, p.bias_row = 1;
    }
    rapt_kernel.matmul.small[t->dtype](&p);
}

/* Tiles are counted along the columns first, then the rows, then the batch. */
static void run_tiles(void *context, int64_t first, int64_t last)
{
    const product *p = context;
    const int64_t item = (int64_t)p->item;
    for (int64_t i = first; i < last; i++) {
        rapt_blas_tile tile = p->whole;
        int64_t column = i % p->column_tiles * p->tile_columns;
        int64_t row = i / p->column_tiles % p->row_tiles * p->tile_rows;
        int64_t matrix = i / (p->column_tiles * p->row_tiles);
        int64_t offsets[3] = {row * tile.a_row, column * tile.b_column, row * tile.c_row + column};
        for (int axis = p->batch_rank - 1; axis >= 0; axis--) {
            int64_t position = matrix % p->batch_shape[axis];
            matrix /= p->batch_shape[axis];
            for (int k = 0; k < 3; k++) offsets[k] += position * p->batch_strides[k][axis];
        }
        tile.a += offsets[0] * item;
        tile.b += offsets[1] * item;
        tile.c += offsets[2] * item;
        if (tile.bias) tile.bias += column * item;
        tile.m = (int)(p->m - row < p->tile_rows ? p->m - row : p->tile_rows);
        tile.n = (int)(p->n - column < p->tile_columns ? p->n - column : p->tile_columns);
        if (p->small)
            run_small(&tile, p->k);
        else
            rapt_blas_run(&tile, p->k);
    }
}

static int64_t round_up(int64_t size, int64_t step)
{
    return (size + step - 1) / step * step;
}

/* Not worth a call of BLAS. */
static bool choose_no_tiles(product *p)
{
    enum { work = 4096, longest = 32 }; /* longer rows are worth BLAS's own kernels */
    p->small = p->m <= RAPT_SMALL_SIDE && p->n <= RAPT_SMALL_SIDE && p->k <= longest && p->m * p->n * p->k <= work;
    p->tile_rows = p->m;
    p->tile_columns = p->n;
    return p->small;
}

/* Where one side is short, OpenBLAS does best by its kernels for small matrices, which pack nothing: they take tiles of
 * up to 1200 elements and 10⁶ multiplications, so longer sums go in parts. */
static bool choose_small_tiles(product *p)
{
    enum { short_side = 256, tile_side = 32, tile_area = 1152, smallest_k = 128, largest_k = 4096 };
    int64_t lesser = p->m < p->n ? p->m : p->n;
    if (lesser > 1 && (lesser > short_side || p->k < smallest_k || p->k > largest_k)) return false;
    int64_t parts = (lesser + tile_side - 1) / tile_side;
    int64_t side = (lesser + parts - 1) / parts;
    int64_t other = tile_area / side / 16 * 16;
    p->tile_rows = p->m < p->n ? side : other;
    p->tile_columns = p->m < p->n ? other : side;
    return true;
}

/* Else tiles as square as can be: enough of them to keep threads busy, none so small that packing costs, none so large
 * that many threads would wait for few. */
static void choose_large_tiles(product *p, int64_t batch)
{
    enum { tiles = 16, largest_side = 512, smallest_side = 32 };
    const double tile_work = 1 << 21;
    double work = (double)p->m * (double)p->n * (double)p->k;
    double wanted = work * (double)batch / tile_work;
    wanted = (wanted > tiles ? tiles : wanted) / (double)batch;
    p->tile_rows = p->m;
    p->tile_columns = p->n;
    for (double count = 1; count < wanted || p->tile_rows > largest_side || p->tile_columns > largest_side;
         count *= 2) {
        int64_t *longer = p->tile_rows >= p->tile_columns ? &p->tile_rows : &p->tile_columns;
        if (*longer <= smallest_side) break;
        *longer = round_up((*longer + 1) / 2, 16);
    }
}

static void run_product(product *p)
{
    int64_t batch = 1;
    for (int axis = 0; axis < p->batch_rank; axis++) batch *= p->batch_shape[axis];
    if (batch == 0 || p->m == 0 || p->n == 0) return;
    if (!choose_no_tiles(p) && !choose_small_tiles(p)) choose_large_tiles(p, batch);
    p->row_tiles = (p->m + p->tile_rows - 1) / p->tile_rows;
    p->column_tiles = (p->n + p->tile_columns - 1) / p->tile_columns;
    int64_t rows = p->m < p->tile_rows ? p->m : p->tile_rows;
    int64_t columns = p->n < p->tile_columns ? p->n : p->tile_columns;
    bool vector = rows == 1 || columns == 1;
    const int64_t call = 128; /* what a call costs, however little there is to do */
    int64_t cost = call + rows * columns * (p->k / (vector ? 16 : 64) + 1);
    rapt_parallel(batch * p->row_tiles * p->column_tiles, rapt_grain(cost), run_tiles, p);
}

bool rapt_matrix_fits(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride)
{
    rapt_blas_normalize(rows, columns, &row_stride, &column_stride);
    if (row_stride > INT_MAX || column_stride > INT_MAX) return false;
    return (column_stride == 1 && row_stride >= columns) || (row_stride == 1 && column_stride >= rows);
}

void rapt_gemm(rapt_dtype dtype, int64_t m, int64_t n, int64_t k, const void *a, int64_t a_row_stride,
               int64_t a_column_stride, const void *b, int64_t b_row_stride, int64_t b_column_stride, void *c,
               int64_t c_row_stride, bool accumulate)
{
    rapt_blas_normalize(m, k, &a_row_stride, &a_column_stride);
    rapt_blas_normalize(k, n, &b_row_stride, &b_column_stride);
    rapt_blas_tile whole = {
        .dtype = dtype,
        .a = a,
        .b = b,
        .c = c,
        .a_row = a_row_stride,
        .a_column = a_column_stride,
        .b_row = b_row_stride,
        .b_column = b_column_stride,
        .c_row = m == 1 ? n : c_row_stride,
        .accumulate = accumulate,
    };
    run_product(&(product){.m = m, .n = n, .k = k, .item = rapt_dtype_size(dtype), .whole = whole});
}

/* The tensor, or a copy that BLAS can read, in which leading axes that repeat are not written out. */
static const rapt_tensor *readable(const rapt_tensor *x)
{
    int rank = x->rank;
    if (rapt_matrix_fits(x->shape[rank - 2], x->shape[rank - 1], x->strides[rank - 2], x->strides[rank - 1])) return x;
    x = rapt_without_repeats(x, rank - 2);
    return x ? rapt_clone(x) : NULL;
}

static void batch_strides(const rapt_tensor *x, const rapt_tensor *c, int64_t *strides)
{
    rapt_tensor batch = rapt_header_of(x);
    batch.rank = (uint8_t)(x->rank - 2);
    int64_t full[RAPT_MAX_RANK];
    rapt_broadcast_strides(&batch, c->rank - 2, c->shape, full);
    memcpy(strides, full, largest_batch_rank * sizeof *strides);
}

/* The innermost batch axes become rows where they lie behind the rows in a and c and b is one matrix for all of them. */
static void fold_batch(product *p)
{
    while (p->batch_rank > 0) {
        int last = p->batch_rank - 1;
        int64_t size = p->batch_shape[last];
        bool folds =
            size == 1 || (p->batch_strides[1][last] == 0 && p->batch_strides[0][last] == p->m * p->whole.a_row &&
                          p->batch_strides[2][last] == p->m * p->whole.c_row &&
                          rapt_matrix_fits(p->m * size, p->k, p->whole.a_row, p->whole.a_column));
        if (!folds) return;
        p->m *= size;
        p->batch_rank = last;
    }
}

bool rapt_matmul_into(const rapt_tensor *c, const rapt_tensor *a, const rapt_tensor *b, const rapt_tensor *bias,
                      bool accumulate)
{
    a = readable(a);
    b = readable(b);
    const rapt_tensor *dense_bias = rapt_as_contiguous(bias);
    if (!a || !b || (bias && !dense_bias)) return false;
    product p = {.m = a->shape[a->rank - 2], .n = b->shape[b->rank - 1], .k = a->shape[a->rank - 1]};
    p.item = rapt_dtype_size((rapt_dtype)c->dtype);
    p.batch_rank = c->rank - 2;
    memcpy(p.batch_shape, c->shape, (size_t)p.batch_rank * sizeof *p.batch_shape);
    batch_strides(a, c, p.batch_strides[0]);
    batch_strides(b, c, p.batch_strides[1]);
    batch_strides(c, c, p.batch_strides[2]);
    p.whole = (rapt_blas_tile){
        .dtype = (rapt_dtype)c->dtype,
        .a = a->data,
        .b = b->data,
        .c = c->data,
        .bias = bias ? dense_bias->data : NULL,
        .a_row = a->strides[a->rank - 2],
        .a_column = a->strides[a->rank - 1],
        .b_row = b->strides[b->rank - 2],
        .b_column = b->strides[b->rank - 1],
        .c_row = p.m == 1 ? p.n : c->strides[c->rank - 2],
        .accumulate = accumulate,
    };
    rapt_blas_normalize(p.m, p.k, &p.whole.a_row, &p.whole.a_column);
    rapt_blas_normalize(p.k, p.n, &p.whole.b_row, &p.whole.b_column);
    fold_batch(&p);
    run_product(&p);
    return true;
}
