/* How a batch of matrix products is cut and shared among threads; the products themselves are kernels
 * (kernels/matmul_tmpl.c).
 *
 * A product goes one of four ways, which its shape alone chooses:
 *   - directly, where it is small or narrow: a is read where it lies, and c is cut along its longer side;
 *   - alone: cut into tiles of c, each of which packs its own share of a and b;
 *   - together: where so many tiles would pack the same numbers (multiply_together.c);
 *   - by OpenBLAS, on request, as the reference of the tests. */
#include "multiply.h"
#include "blas.h"
#include "tensor/kernels.h"
#include "tensor/lock.h"
#include "tensor/matmul.h"
#include "tensor/memory.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/system.h"

enum { smallest_cache = 1 << 18, largest_cache = 1 << 21 };
static int64_t cache_bytes = smallest_cache; /* of the second level */

static __attribute__((constructor(RAPT_START_ORDER))) void find_cache(void)
{
    const int64_t found = rapt_system_cache_bytes();
    if (found > smallest_cache) cache_bytes = found < largest_cache ? found : largest_cache;
}

/* The share of p that is one tile, in whole panels. */
static void cut_tile(const rapt_multiplication *w, int64_t tile, rapt_product *p)
{
    const int64_t row = tile / w->column_tiles % w->row_tiles, column = tile % w->column_tiles;
    const int64_t panel = w->kernels->columns, panels = rapt_divide_up(p->n, panel);
    const int64_t row_panels = rapt_divide_up(p->m, w->kernels->rows);
    rapt_product_cut_rows(p, w->item, w->kernels->panel_start(p->m, row_panels * row / w->row_tiles),
                          w->kernels->panel_start(p->m, row_panels * (row + 1) / w->row_tiles));
    rapt_product_cut_columns(p, w->item, panels * column / w->column_tiles * panel,
                             rapt_smaller_of(panels * (column + 1) / w->column_tiles * panel, p->n));
}

/* A share of a product, cut evenly into row_tiles · column_tiles in whole panels; tiles are counted along the columns
 * first, then the rows, then the batch. */
static rapt_product tile_at(const rapt_multiplication *w, int64_t i)
{
    rapt_product p = rapt_product_at(&w->all, i / (w->column_tiles * w->row_tiles));
    cut_tile(w, i, &p);
    return p;
}

static void run_reference(void *context, int64_t first, int64_t last)
{
    const rapt_multiplication *w = context;
    for (int64_t i = first; i < last; i++) {
        const rapt_product p = tile_at(w, i);
        if (!p.accumulate) rapt_product_fill(&p, w->item);
        if (p.k > 0) rapt_blas_add_product(w->all.dtype, &p);
        w->kernels->finish(&p);
    }
}

static void run_directly(void *context, int64_t first, int64_t last)
{
    const rapt_multiplication *w = context;
    for (int64_t i = first; i < last; i++) {
        const rapt_product p = tile_at(w, i);
        w->kernels->multiply_direct(&p);
    }
}

static void run_alone(void *context, int64_t first, int64_t last)
{
    const rapt_multiplication *w = context;
    const int64_t panel = w->kernels->columns;
    char *scratch = rapt_scratch_borrow(&w->scratch);
    for (int64_t i = first; i < last; i++) {
        const rapt_product p = tile_at(w, i);
        const int64_t panels = rapt_divide_up(p.n, panel);
        char *packed = scratch,
             *chunk = packed + w->kernels->columns_bytes(p.n, rapt_smaller_of(p.k, RAPT_BLOCK_DEPTH));
        for (int64_t block = 0; block < rapt_block_count(p.k); block++) {
            w->kernels->pack_block(&p, block, 0, panels, packed);
            w->kernels->multiply_block(&p, block, packed, w->near, chunk, (rapt_ahead){0});
        }
    }
    rapt_scratch_return(&w->scratch, scratch);
}

/* So many tasks make a piece, where each computes that many rows and columns. */
static int64_t grain_of(int64_t rows, int64_t columns, int64_t k)
{
    enum { call = 128 }; /* a call costs as much, however little there is to do */
    return rapt_grain(call + columns * (rows * (k / 64 + 1) + k / 4)); /* of few rows the time is that of reading b */
}

/* Tiles as square as can be, since each packs its share of a and b anew: enough of them to keep threads busy. */
static void choose_tiles(rapt_multiplication *w, int64_t count)
{
    enum { tiles = 16, largest_side = 512, smallest_rows = 32 };
    const double tile_work = 1 << 21;
    const rapt_product *p = &w->all.first;
    const int64_t panels = rapt_divide_up(p->n, w->kernels->columns);
    double wanted = (double)p->m * (double)p->n * (double)p->k * (double)count / tile_work;
    wanted = (wanted > (double)tiles ? (double)tiles : wanted) / (double)count;
    w->row_tiles = rapt_divide_up(p->m, largest_side);
    w->column_tiles = rapt_divide_up(p->n, largest_side);
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

/* Along the longer side; but where sums have so few terms that the time is that of writing c, along its rows, so that
 * no thread prefetches what another one writes. */
static void multiply_directly(rapt_multiplication *w, int64_t count)
{
    enum { smallest_side = 64, tiles = 64, smallest_work = 1 << 16 };
    const rapt_product *p = &w->all.first;
    const double worth = (double)p->m * (double)p->n * (double)p->k / (double)smallest_work;
    const int64_t most =
        rapt_smaller_of(rapt_divide_up(tiles, count), worth < (double)tiles ? 1 + (int64_t)worth : tiles);
    const int64_t lowest = p->b_column == 1 ? 1 : 32; /* rows that are worth a copy of b's columns as rows */
    if (p->k <= RAPT_THIN_TERMS && p->c_column == 1 && p->m >= lowest * most)
        w->row_tiles = rapt_smaller_of(rapt_divide_up(p->m, w->kernels->rows), most); /* none without a panel */
    else if (p->n >= p->m)
        w->column_tiles = rapt_smaller_of(rapt_divide_up(p->n, smallest_side), most);
    else
        w->row_tiles = rapt_smaller_of(rapt_divide_up(p->m, smallest_side), most);
    const int64_t rows = rapt_divide_up(p->m, w->row_tiles), columns = rapt_divide_up(p->n, w->column_tiles);
    const int64_t tasks = count * w->row_tiles * w->column_tiles;
    const int64_t pieces = rapt_divide_up(tasks, grain_of(rows, columns, p->k));
    /* neighbours on one thread, which prefetches what comes next */
    rapt_parallel_evenly(tasks, rapt_divide_up(tasks, pieces), run_directly, w);
}

/* Packing a takes as long as the few columns that would use it. */
static bool is_direct(const rapt_multiplication *w, const rapt_product *p)
{
    return p->m <= w->kernels->columns || p->n <= w->kernels->columns || p->m * p->n <= RAPT_SMALL_PRODUCT / p->k;
}

static bool multiply_alone(const char *op, rapt_multiplication *w, int64_t count)
{
    const rapt_product *p = &w->all.first;
    const int64_t panel = w->kernels->columns;
    choose_tiles(w, count);
    const int64_t tasks = count * w->row_tiles * w->column_tiles;
    const int64_t rows = rapt_divide_up(rapt_divide_up(p->m, w->kernels->rows), w->row_tiles) * w->kernels->rows;
    const int64_t columns = rapt_divide_up(rapt_divide_up(p->n, panel), w->column_tiles) * panel;
    const size_t packed = (size_t)w->kernels->columns_bytes(columns, rapt_smaller_of(p->k, RAPT_BLOCK_DEPTH));
    if (!rapt_scratch_take(op, &w->scratch, tasks, packed + w->kernels->chunk_bytes(rows, p->k))) return false;
    /* threads far apart: side by side, each would prefetch lines of c that another one writes */
    rapt_parallel_evenly(tasks, grain_of(rows, columns, p->k), run_alone, w);
    rapt_scratch_give(&w->scratch);
    return true;
}

/* One product that is over before a batch would be planned. */
static bool multiply_at_once(rapt_dtype dtype, const rapt_product *p)
{
    const int64_t most = 1 << 15; /* multiplications: too few for several threads */
    const rapt_matmul_kernels *kernels = &rapt_kernel.matmul[dtype];
    if (p->k == 0 || p->m * p->n == 0 || p->m * p->n > most / p->k || rapt_matmul_uses_blas()) return false;
    if (kernels->is_better_turned(p)) {
        const rapt_product turned = rapt_product_turn(p);
        kernels->multiply_direct(&turned);
    } else {
        kernels->multiply_direct(p);
    }
    return true;
}

bool rapt_multiply_one(const char *op, rapt_dtype dtype, const rapt_product *product)
{
    return multiply_at_once(dtype, product) || rapt_multiply(op, &(rapt_products){.dtype = dtype, .first = *product});
}

bool rapt_multiply(const char *op, const rapt_products *products)
{
    if (products->rank == 0 && multiply_at_once(products->dtype, &products->first)) return true;
    const int64_t large = 1 << 24; /* multiplications of a product */
    rapt_multiplication w = {.all = *products,
                             .kernels = &rapt_kernel.matmul[products->dtype],
                             .row_tiles = 1,
                             .column_tiles = 1};
    const rapt_product *p = &w.all.first;
    int64_t count = 1;
    for (int axis = 0; axis < w.all.rank; axis++) count *= w.all.shape[axis];
    if (count == 0 || p->m == 0 || p->n == 0) return true;
    w.item = (int64_t)rapt_dtype_size(w.all.dtype);
    if (p->k == 0 || rapt_matmul_uses_blas()) {
        if (p->k > 0) choose_tiles(&w, count);
        rapt_parallel(count * w.row_tiles * w.column_tiles, 1, run_reference, &w);
        return true;
    }
    const bool direct = is_direct(&w, p);
    if (!direct) w.kernels = rapt_matmul_kernels_for(w.all.dtype, p->m, p->n, p->k);
    rapt_products_turn(w.kernels, &w.all);
    if (direct) {
        multiply_directly(&w, count);
        return true;
    }
    const int64_t panel_bytes = w.kernels->columns_bytes(w.kernels->columns, RAPT_BLOCK_DEPTH);
    w.near = cache_bytes / 2 / panel_bytes * w.kernels->columns;
    if (p->m * p->n >= large / p->k) return rapt_multiply_together(op, &w, count);
    return multiply_alone(op, &w, count);
}
