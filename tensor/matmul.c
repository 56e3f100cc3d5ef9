/* Matrix products: batches, cut into tiles of c for the kernels (kernels/matmul_tmpl.c), on all threads. */
#include "tensor/matmul.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tensor/blas.h"
#include "tensor/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

enum { largest_batch_rank = RAPT_MAX_RANK - 2 };

static bool uses_blas;
static int64_t cache_bytes; /* of the second level */

void rapt_matmul_start(void)
{
    enum { smallest_cache = 1 << 18, largest_cache = 1 << 21 };
    const char *wanted = getenv("RAPT_MATMUL");
    uses_blas = wanted && strcmp(wanted, "openblas") == 0;
    if (wanted && *wanted && !uses_blas)
        fprintf(stderr, "rapt: RAPT_MATMUL=%s is not known (openblas); using the library's own products\n", wanted);
    cache_bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (cache_bytes < smallest_cache) cache_bytes = smallest_cache;
    if (cache_bytes > largest_cache) cache_bytes = largest_cache;
}

bool rapt_matmul_set_blas(bool now)
{
    const bool before = uses_blas;
    uses_blas = now;
    return before;
}

/* A batch of products, and how each is cut: into row_tiles · column_tiles tiles, or, as `small` ones are, not at all. */
typedef struct batch {
    rapt_dtype dtype;
    int64_t item; /* bytes of an element */
    rapt_product one;
    int rank;
    int64_t shape[largest_batch_rank], strides[3][largest_batch_rank]; /* of a, b, c; in elements */
    int64_t row_tiles, column_tiles;
    bool small;
    rapt_scratch scratch;
} batch;

static inline int64_t divide_up(int64_t size, int64_t part)
{
    return (size + part - 1) / part;
}

/* c = bias, or 0 */
static void fill(const batch *w, const rapt_product *p)
{
    for (int64_t i = 0; i < p->m && !p->accumulate; i++) {
        char *c = p->c + i * p->c_row * w->item;
        if (p->bias)
            memcpy(c, p->bias, (size_t)(p->n * w->item));
        else
            memset(c, 0, (size_t)(p->n * w->item));
    }
}

/* The share of p that is tile `row`, `column`: rows as they come, columns in whole panels. */
static void cut(const batch *w, int64_t row, int64_t column, rapt_product *p)
{
    const int64_t panel = rapt_kernel.matmul[w->dtype].columns, panels = divide_up(p->n, panel);
    const int64_t first = p->m * row / w->row_tiles, last = p->m * (row + 1) / w->row_tiles;
    const int64_t left = panels * column / w->column_tiles * panel,
                  right = panels * (column + 1) / w->column_tiles * panel;
    p->m = last - first;
    p->n = (right < p->n ? right : p->n) - left;
    p->a += first * p->a_row * w->item;
    p->b += left * p->b_column * w->item;
    p->c += (first * p->c_row + left * p->c_column) * w->item;
    if (p->bias) p->bias += (first * p->bias_row + left * p->bias_column) * w->item;
}

/* Tiles are counted along the columns first, then the rows, then the batch. */
static void run_tiles(void *context, int64_t first, int64_t last)
{
    const batch *w = context;
    const rapt_matmul_kernels *kernels = &rapt_kernel.matmul[w->dtype];
    void *scratch = w->scratch.block ? rapt_scratch_borrow(&w->scratch) : NULL;
    for (int64_t i = first; i < last; i++) {
        rapt_product p = w->one;
        int64_t matrix = i / (w->column_tiles * w->row_tiles), offsets[3] = {0};
        for (int axis = w->rank - 1; axis >= 0; axis--) {
            int64_t position = matrix % w->shape[axis];
            matrix /= w->shape[axis];
            for (int k = 0; k < 3; k++) offsets[k] += position * w->strides[k][axis];
        }
        p.a += offsets[0] * w->item;
        p.b += offsets[1] * w->item;
        p.c += offsets[2] * w->item;
        cut(w, i / w->column_tiles % w->row_tiles, i % w->column_tiles, &p);
        if (p.k == 0)
            fill(w, &p);
        else if (uses_blas)
            rapt_blas_multiply(w->dtype, &p);
        else if (w->small)
            kernels->multiply_small(&p);
        else
            kernels->multiply(&p, scratch);
    }
    if (scratch) rapt_scratch_return(&w->scratch, scratch);
}

/* How long c = a · b takes, in vectors of a panel: each row takes as long as a panel even where it fills less of one. */
static double time_of(const rapt_matmul_kernels *kernels, int64_t m, int64_t n)
{
    const double narrow =
        0.8; /* what a tile of single vectors takes of the time of a whole one: elements of a are loaded as often */
    const int64_t rest = n % kernels->columns;
    const double panels = (double)(n / kernels->columns) + (rest == 0 ? 0 : rest <= kernels->vector ? narrow : 1);
    const int64_t lowest = 4; /* rows that keep the processor busy */
    return panels * (double)(m < lowest ? lowest : m);
}

/* Where that wastes less of the vectors: cᵀ = bᵀ · aᵀ. */
static void turn(batch *w)
{
    const rapt_matmul_kernels *kernels = &rapt_kernel.matmul[w->dtype];
    const double penalty = 1.1; /* of tiles that have to be turned when they are written */
    const rapt_product p = w->one;
    if (time_of(kernels, p.m, p.n) <= penalty * time_of(kernels, p.n, p.m)) return;
    w->one = (rapt_product){.m = p.n,
                            .n = p.m,
                            .k = p.k,
                            .a = p.b,
                            .b = p.a,
                            .bias = p.bias,
                            .c = p.c,
                            .a_row = p.b_column,
                            .a_column = p.b_row,
                            .b_row = p.a_column,
                            .b_column = p.a_row,
                            .bias_row = p.bias_column,
                            .bias_column = p.bias_row,
                            .c_row = p.c_column,
                            .c_column = p.c_row,
                            .accumulate = p.accumulate};
    for (int axis = 0; axis < w->rank; axis++) {
        const int64_t stride = w->strides[0][axis];
        w->strides[0][axis] = w->strides[1][axis];
        w->strides[1][axis] = stride;
    }
}

/* Cuts by shape: tiles as square as can be, since each packs its share of a and b anew; so wide at most that a block of b
 * stays in half of the second-level cache, and enough of them to keep threads busy. */
static void choose_tiles(batch *w, int64_t count)
{
    enum { tiles = 16, tallest = 512, smallest_rows = 32, block_depth = 256 };
    const double tile_work = 1 << 21;
    const rapt_matmul_kernels *kernels = &rapt_kernel.matmul[w->dtype];
    const rapt_product *p = &w->one;
    const int64_t panels = divide_up(p->n, kernels->columns);
    const int64_t widest = cache_bytes / 2 / (block_depth * w->item);
    double wanted = (double)p->m * (double)p->n * (double)p->k * (double)count / tile_work;
    wanted = (wanted > tiles ? tiles : wanted) / (double)count;
    w->row_tiles = divide_up(p->m, tallest);
    w->column_tiles = divide_up(p->n, widest);
    while ((double)(w->row_tiles * w->column_tiles) < wanted) {
        const bool by_rows = p->m * w->column_tiles >= p->n * w->row_tiles;
        if (by_rows && p->m / w->row_tiles >= 2 * smallest_rows)
            w->row_tiles *= 2;
        else if (w->column_tiles * 2 <= panels)
            w->column_tiles *= 2;
        else
            break;
    }
}

static bool run_batch(const char *op, batch *w)
{
    enum { small_work = 1 << 18 };
    const rapt_product *p = &w->one;
    const rapt_matmul_kernels *kernels = &rapt_kernel.matmul[w->dtype];
    int64_t count = 1;
    for (int axis = 0; axis < w->rank; axis++) count *= w->shape[axis];
    if (count == 0 || p->m == 0 || p->n == 0) return true;
    w->row_tiles = w->column_tiles = 1;
    const bool packs = p->k > 0 && !uses_blas;
    if (packs) turn(w);
    w->small = packs && p->m * p->n <= small_work / p->k && kernels->is_small(p);
    if (!w->small) choose_tiles(w, count);
    const int64_t rows = divide_up(p->m, w->row_tiles);
    const int64_t columns = divide_up(divide_up(p->n, kernels->columns), w->column_tiles) * kernels->columns;
    const int64_t tasks = count * w->row_tiles * w->column_tiles;
    if (packs && !w->small && !rapt_scratch_take(op, &w->scratch, tasks, kernels->multiply_bytes(rows, columns, p->k)))
        return false;
    const int64_t call = 128; /* what a call costs, however little there is to do */
    rapt_parallel(tasks, rapt_grain(call + rows * columns * (p->k / 64 + 1)), run_tiles, w);
    if (w->scratch.block) rapt_scratch_give(&w->scratch);
    return true;
}

bool rapt_gemm(const char *op, rapt_dtype dtype, int64_t m, int64_t n, int64_t k, const void *a, int64_t a_row_stride,
               int64_t a_column_stride, const void *b, int64_t b_row_stride, int64_t b_column_stride, void *c,
               int64_t c_row_stride, bool accumulate)
{
    const rapt_product one = {
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
    return run_batch(op, &(batch){.dtype = dtype, .item = (int64_t)rapt_dtype_size(dtype), .one = one});
}

/* The tensor, or for BLAS a copy that it can read, in which leading axes that repeat are not written out. */
static const rapt_tensor *readable(const rapt_tensor *x)
{
    const int rank = x->rank;
    const int64_t *shape = x->shape + rank - 2, *strides = x->strides + rank - 2;
    if (!uses_blas || rapt_blas_reads(shape[0], shape[1], strides[0], strides[1])) return x;
    x = rapt_without_repeats(x, rank - 2);
    return x ? rapt_clone(x) : NULL;
}

static void batch_strides(const rapt_tensor *x, const rapt_tensor *c, int64_t *strides)
{
    rapt_tensor leading = rapt_header_of(x);
    leading.rank = (uint8_t)(x->rank - 2);
    int64_t full[RAPT_MAX_RANK];
    rapt_broadcast_strides(&leading, c->rank - 2, c->shape, full);
    memcpy(strides, full, largest_batch_rank * sizeof *strides);
}

/* The innermost axes become rows where they lie behind the rows in a and c and b is one matrix for all of them. */
static void fold(batch *w)
{
    rapt_product *p = &w->one;
    for (; w->rank > 0; w->rank--) {
        const int last = w->rank - 1;
        const int64_t size = w->shape[last], in_a = w->strides[0][last], in_c = w->strides[2][last];
        const int64_t a_row = p->m == 1 ? in_a : p->a_row, c_row = p->m == 1 ? in_c : p->c_row;
        if (size == 1) continue;
        const bool behind = w->strides[1][last] == 0 && in_a == p->m * a_row && in_c == p->m * c_row;
        if (!behind || (uses_blas && !rapt_blas_reads(p->m * size, p->k, a_row, p->a_column))) return;
        p->m *= size;
        p->a_row = a_row;
        p->c_row = c_row;
    }
}

bool rapt_matmul_into(const char *op, const rapt_tensor *c, const rapt_tensor *a, const rapt_tensor *b,
                      const rapt_tensor *bias, bool accumulate)
{
    a = readable(a);
    b = readable(b);
    const rapt_tensor *dense_bias = rapt_as_contiguous(bias);
    if (!a || !b || (bias && !dense_bias)) return false;
    batch w = {.dtype = (rapt_dtype)c->dtype, .item = (int64_t)rapt_dtype_size((rapt_dtype)c->dtype)};
    w.one = (rapt_product){
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
    };
    w.rank = c->rank - 2;
    memcpy(w.shape, c->shape, (size_t)w.rank * sizeof *w.shape);
    batch_strides(a, c, w.strides[0]);
    batch_strides(b, c, w.strides[1]);
    batch_strides(c, c, w.strides[2]);
    fold(&w);
    return run_batch(op, &w);
}
