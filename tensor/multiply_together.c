/* Large products, one after the other: the smaller operand is packed once for all threads. */
#include "multiply.h"
#include "tensor/kernels.h"
#include "tensor/memory.h"
#include "tensor/parallel.h"

#include <rapt/runtime.h>

/* Where a block of k begins in the slab. */
static char *block_in_slab(const rapt_multiplication *w, int64_t block)
{
    return w->slab + (block - w->first_block) * w->block_bytes;
}

static void pack_rows_of_slab(void *context, int64_t first, int64_t last)
{
    const rapt_multiplication *w = context;
    for (int64_t block = w->first_block; block < w->last_block; block++)
        w->kernels->pack_rows(&w->all.first, block, first, last, block_in_slab(w, block));
}

static void pack_columns_of_slab(void *context, int64_t first, int64_t last)
{
    const rapt_multiplication *w = context;
    for (int64_t block = w->first_block; block < w->last_block; block++)
        w->kernels->pack_block(&w->all.first, block, first, last, block_in_slab(w, block));
}

/* Of `count` things the one that comes as number i, where each thread takes neighbours. */
static int64_t spread(int64_t i, int64_t count, int64_t threads)
{
    const int64_t thread = i % threads, each = count / threads, left = count % threads;
    return thread * each + rapt_smaller_of(thread, left) + i / threads;
}

/* What is computed at the same time lies far apart: side by side, each processor would prefetch lines of c that another
 * one writes. */
static int64_t place_of(const rapt_multiplication *w, int64_t i)
{
    const int64_t whole = w->whole_tiles;
    return i < whole ? spread(i, whole, w->threads) : whole + spread(i - whole, w->tiles - whole, w->threads);
}

static int64_t tile_start(const rapt_multiplication *w, int64_t tile)
{
    return tile <= w->whole_tiles ? tile * w->tile_panels : w->whole_tiles * (w->tile_panels - 1) + tile;
}

static rapt_product tile_at(const rapt_multiplication *w, int64_t i)
{
    const int64_t tile = place_of(w, i), first = tile_start(w, tile), last = tile_start(w, tile + 1);
    const int64_t panel = w->kernels->columns;
    rapt_product p = w->all.first;
    if (w->shares_a) {
        rapt_product_cut_columns(&p, w->item, first * panel, rapt_smaller_of(last * panel, p.n));
    } else {
        rapt_product_cut_rows(&p, w->item, w->kernels->panel_start(p.m, first), w->kernels->panel_start(p.m, last));
    }
    return p;
}

/* What this thread probably packs next, after a block of a tile: the next block, or the first one of another tile. */
static rapt_ahead ahead_of(const rapt_multiplication *w, int64_t tile, int64_t block)
{
    const bool is_last = block + 1 == w->last_block;
    if (is_last) tile += w->threads;
    if (tile >= w->tiles) return (rapt_ahead){0};
    const rapt_product p = tile_at(w, tile);
    block = is_last ? w->first_block : block + 1;
    return w->shares_a ? rapt_ahead_in_b(&p, block, w->item) : rapt_ahead_in_a(&p, block, w->item);
}

/* Elements from one row of a tile's sums to the next: no multiple of a page. */
static int64_t sums_row(const rapt_multiplication *w, int64_t columns)
{
    enum { line = 64 };
    return rapt_divide_up(columns, w->kernels->columns) * w->kernels->columns + line / w->item;
}

static rapt_product summing_tile_at(const rapt_multiplication *w, int64_t i, char *scratch)
{
    rapt_product p = tile_at(w, i);
    if (w->sums > 0) p.sums = scratch + w->sums, p.sums_row = sums_row(w, p.n);
    return p;
}

/* All rows of some columns. */
static void run_sharing_a(void *context, int64_t first, int64_t last)
{
    const rapt_multiplication *w = context;
    char *packed = rapt_scratch_borrow(&w->scratch);
    for (int64_t i = first; i < last; i++) {
        const rapt_product p = summing_tile_at(w, i, packed);
        const int64_t panels = rapt_divide_up(p.n, w->kernels->columns);
        for (int64_t block = w->first_block; block < w->last_block; block++) {
            w->kernels->pack_block(&p, block, 0, panels, packed);
            w->kernels->multiply_packed(&p, block, block_in_slab(w, block), packed, w->near, ahead_of(w, i, block));
        }
    }
    rapt_scratch_return(&w->scratch, packed);
}

/* All columns of some rows. */
static void run_sharing_b(void *context, int64_t first, int64_t last)
{
    const rapt_multiplication *w = context;
    char *chunk = rapt_scratch_borrow(&w->scratch);
    for (int64_t i = first; i < last; i++) {
        const rapt_product p = summing_tile_at(w, i, chunk);
        for (int64_t block = w->first_block; block < w->last_block; block++)
            w->kernels->multiply_block(&p, block, block_in_slab(w, block), w->near, chunk, ahead_of(w, i, block));
    }
    rapt_scratch_return(&w->scratch, chunk);
}

/* Cuts panels into tiles: enough to keep threads equally busy, of no more than `most` panels each, and of no fewer than
 * three where there are many, since each tile reads all of the shared side; of no fewer than eight where products of
 * limbs would wait for a side that is not in the second-level cache. The last tiles have one panel each, so that no
 * thread waits long for another. */
static void choose_tiles(rapt_multiplication *w, int64_t panels, int64_t most, bool is_far)
{
    const bool waits = is_far && w->kernels->multiplies_limbs;
    const int64_t tiles = 24, least_tiles = waits ? 4 : 8, fewest = waits ? 8 : 3;
    const int64_t enough = rapt_divide_up(panels, most), wanted = rapt_smaller_of(tiles, panels / fewest);
    int64_t count = enough > wanted ? enough : wanted;
    if (count < least_tiles) count = least_tiles;
    w->tile_panels = rapt_divide_up(panels, count);
    const int64_t single = rapt_smaller_of(waits ? 4 : 2 * w->tile_panels, panels / 2);
    w->whole_tiles = rapt_smaller_of(rapt_divide_up(panels - single, w->tile_panels), panels / w->tile_panels);
    w->tiles = w->whole_tiles + panels - w->whole_tiles * w->tile_panels;
}

/* One product, or as much of it as the slab holds of its shared side for one block of k. */
static void multiply_part(rapt_multiplication *w, int64_t slab_bytes)
{
    enum { panels_at_once = 2 };
    const rapt_product *p = &w->all.first;
    const int64_t blocks = rapt_block_count(p->k);
    const int64_t panels =
        w->shares_a ? rapt_divide_up(p->m, w->kernels->rows) : rapt_divide_up(p->n, w->kernels->columns);
    const int64_t depth = rapt_smaller_of(p->k, RAPT_BLOCK_DEPTH);
    w->block_bytes = w->shares_a ? w->kernels->rows_bytes(p->m, depth) : w->kernels->columns_bytes(p->n, depth);
    const int64_t fitting = slab_bytes / w->block_bytes;
    for (w->first_block = 0; w->first_block < blocks; w->first_block = w->last_block) {
        w->last_block = rapt_smaller_of(w->first_block + fitting, blocks);
        rapt_parallel(panels, panels_at_once, w->shares_a ? pack_rows_of_slab : pack_columns_of_slab, w);
        rapt_parallel(w->tiles, 1, w->shares_a ? run_sharing_a : run_sharing_b, w);
    }
}

/* The bytes of a tile's sums, if they should not stay in c: of rows that are whole pages apart, caches hold few. They
 * can not where the slab has not all blocks of k, and need not of a single one. */
static size_t sums_bytes(const rapt_multiplication *w, bool slab_has_all)
{
    enum { page = 4096, largest = 1 << 20 };
    const rapt_product *p = &w->all.first;
    const int64_t rows = w->shares_a ? p->m : w->tile_panels * w->kernels->rows;
    const int64_t columns = w->shares_a ? w->tile_panels * w->kernels->columns : p->n;
    const int64_t bytes = rows * sums_row(w, columns) * w->item;
    const bool stay_in_c = p->c_column != 1 || p->c_row * w->item % page != 0 || (p->bias && p->bias_column != 1);
    return stay_in_c || !slab_has_all || p->k <= RAPT_BLOCK_DEPTH || bytes > largest ? 0 : (size_t)bytes;
}

bool rapt_multiply_together(const char *op, const rapt_multiplication *whole, int64_t count)
{
    enum { largest_slab = 1 << 23 };
    rapt_multiplication w = *whole;
    const rapt_product *p = &w.all.first;
    const bool shares_a = p->m <= p->n / 3; /* a tile of many rows of c would be far from dense */
    const int64_t panel = w.kernels->columns, m = p->m, n = p->n, depth = rapt_smaller_of(p->k, RAPT_BLOCK_DEPTH);
    const int64_t row_panels = rapt_divide_up(m, w.kernels->rows), column_panels = rapt_divide_up(n, panel);
    w.shares_a = shares_a;
    w.threads = rapt_get_threads();
    const int64_t near_bytes = w.kernels->columns_bytes(w.near, RAPT_BLOCK_DEPTH);
    if (shares_a)
        choose_tiles(&w, column_panels, rapt_divide_up(w.near / 2, panel), w.kernels->rows_bytes(m, p->k) > near_bytes);
    else
        choose_tiles(&w, row_panels, w.kernels->chunk_panels, w.kernels->columns_bytes(n, p->k) > near_bytes);
    const size_t own =
        shares_a ? (size_t)w.kernels->columns_bytes(w.tile_panels * panel, depth) : w.kernels->chunk_bytes(m, p->k);
    const int64_t unit = shares_a ? w.kernels->rows : panel;
    const int64_t unit_bytes =
        shares_a ? w.kernels->rows_bytes(unit, RAPT_BLOCK_DEPTH) : w.kernels->columns_bytes(unit, RAPT_BLOCK_DEPTH);
    const int64_t units = rapt_smaller_of(rapt_divide_up(shares_a ? m : n, unit), largest_slab / unit_bytes);
    const int64_t block_bytes = units * unit_bytes;
    const int64_t slab_bytes = block_bytes * rapt_smaller_of(rapt_block_count(p->k), largest_slab / block_bytes);
    const size_t sums = sums_bytes(&w, slab_bytes >= block_bytes * rapt_block_count(p->k));
    size_t capacity;
    if (sums > 0) w.sums = (int64_t)own;
    if (!rapt_scratch_take(op, &w.scratch, m * n, own + sums)) return false;
    w.slab = rapt_block_take(op, (size_t)slab_bytes, &capacity);
    for (int64_t place = 0; w.slab && place < count; place++)
        for (int64_t done = 0; done < (shares_a ? m : n); done += units * unit) {
            const int64_t end = done + units * unit;
            w.all.first = rapt_product_at(&whole->all, place);
            if (shares_a)
                rapt_product_cut_rows(&w.all.first, w.item, done, rapt_smaller_of(end, m));
            else
                rapt_product_cut_columns(&w.all.first, w.item, done, rapt_smaller_of(end, n));
            multiply_part(&w, slab_bytes);
        }
    rapt_scratch_give(&w.scratch);
    if (w.slab) rapt_block_give(w.slab, capacity);
    return w.slab != NULL;
}
