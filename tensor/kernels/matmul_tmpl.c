/* Matrix products for one element type, as Goto and van de Geijn 2008 cut them. T is the type, SIZE its bytes, DTYPE its
 * dtype, and OF_TYPE(name) the name of another file's function for it.
 *
 *              n                 A block of k at a time: its rows of b are packed into panels (lines below), which stay in the
 *         ┌──┬──┬──┐             second-level cache while all of a goes by; some rows of a (a chunk) are packed into panels
 *       k │b0│b1│b2│             too. A panel of b stays in the first-level cache while it meets the panels of the chunk one
 *         └──┴──┴──┘             after the other, and where two panels meet a tile of c is summed in registers, over the
 *     k                          whole block:
 *   ┌────┐┌──┬──┬──┐
 *   │ a0 ││  │  │  │             tile[i][j] = Σ a[t][i] · b[t][j],  t in the block
 * m ├────┤├──┼──┼──┤
 *   │ a1 ││  │**│  │             and added to c.
 *   └────┘└──┴──┴──┘
 *
 * Each element of c is one sum, in the order of k within a block, and the blocks are added in order: it depends on its row
 * of a, its column of b and k alone, not on where tiles, chunks and threads cut. */
#include <string.h>

#include "loop.h"

static inline int64_t smaller_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t round_up(int64_t size, int64_t step)
{
    return (size + step - 1) / step * step;
}

#include "transpose_tmpl.c"

#include "matmul_tile_tmpl.c"

#include "matmul_pack_tmpl.c"

/* A constant, since bits depend on it: a panel of b of that depth takes 32 KB at most. */
enum { block_depth = 256 };

/* Bytes of a chunk of packed rows: what is left in a small second-level cache beside the panels of b that come and go. */
enum { chunk_bytes = 1 << 17 };

/* Elements of b that a small product copies, on the stack. */
enum { small_panels = 4096 };

static inline T *element_of(const rapt_product *p, int64_t row, int64_t column)
{
    return (T *)(void *)p->c + row * p->c_row + column * p->c_column;
}

/* c = tile or c + tile, where c does not lie in whole vectors. */
static void put(const rapt_product *p, int64_t row, int64_t height, int64_t column, int64_t count, const T *from,
                int64_t from_row, bool adds)
{
    for (int64_t i = 0; i < height; i++)
        for (int64_t j = 0; j < count; j++) {
            T *c = element_of(p, row + i, column + j);
            *c = adds ? *c + from[i * from_row + j] : from[i * from_row + j];
        }
}

static void add_bias(const rapt_product *p, int64_t row, int64_t height, int64_t column, int64_t count)
{
    const T *bias = (const T *)(const void *)p->bias + row * p->bias_row + column * p->bias_column;
    for (int64_t i = 0; i < height; i++)
        for (int64_t j = 0; j < count; j++)
            *element_of(p, row + i, column + j) += bias[i * p->bias_row + j * p->bias_column];
}

/* Does the tile at this column lie in c as whole vectors? Then it is summed there, else beside it. */
static inline bool is_whole(const rapt_product *p, int64_t count)
{
    return p->c_column == 1 && count == panel_width(count);
}

/* The panels of a chunk of rows against all panels of columns, for a block of k that begins at `done`. */
static void multiply_chunk(const rapt_product *p, int64_t done, int64_t k, int64_t first_row, int64_t rows,
                           int64_t panels, const T *a, const T *b)
{
    const bool adds = done > 0 || p->accumulate;
    T beside[tile_rows * panel];
    for (int64_t column = 0; column < p->n; column += panel) {
        const int64_t count = smaller_of(panel, p->n - column), wide = panel_width(count);
        const bool whole = is_whole(p, count);
        for (int64_t i = 0; i < panels; i++) {
            const int64_t start = panel_start(rows, panels, i), height = panel_start(rows, panels, i + 1) - start;
            const int64_t row = first_row + start;
            packed_tile *sum = packed_tiles[wide > width][height - 1];
            if (whole) {
                sum(k, a + start * k, b + column * k, element_of(p, row, column), p->c_row, adds);
            } else {
                sum(k, a + start * k, b + column * k, beside, panel, false);
                put(p, row, height, column, count, beside, panel, adds);
            }
            if (p->bias && done == 0) add_bias(p, row, height, column, count);
        }
    }
}

/* How many panels a chunk has. */
static int64_t chunk_panels(int64_t k)
{
    const int64_t fitting = chunk_bytes / (smaller_of(k, block_depth) * tile_rows * SIZE);
    return fitting > 1 ? fitting : 1;
}

static size_t multiply_bytes(int64_t m, int64_t n, int64_t k)
{
    const int64_t rows = smaller_of(m, chunk_panels(k) * tile_rows);
    return (size_t)(smaller_of(k, block_depth) * (packed_width(n) + rows) + width) * SIZE;
}

static void multiply(const rapt_product *p, void *scratch)
{
    const int64_t panels = (p->m + tile_rows - 1) / tile_rows, chunk = chunk_panels(p->k);
    T *b = scratch, *a = b + smaller_of(p->k, block_depth) * packed_width(p->n);
    for (int64_t done = 0; done < p->k; done += block_depth) {
        const int64_t k = smaller_of(block_depth, p->k - done);
        pack_columns(p->n, k, (const T *)(const void *)p->b + done * p->b_row, p->b_row, p->b_column, b);
        for (int64_t first = 0; first < panels; first += chunk) {
            const int64_t last = smaller_of(first + chunk, panels);
            const int64_t row = panel_start(p->m, panels, first), rows = panel_start(p->m, panels, last) - row;
            pack_rows(rows, last - first, k, (const T *)(const void *)p->a + row * p->a_row + done * p->a_column,
                      p->a_row, p->a_column, a);
            multiply_chunk(p, done, k, row, rows, last - first, a, b);
        }
    }
}

/* May `multiply_small` have it? b must be dense in whole vectors or small enough to be copied. */
static bool is_small(const rapt_product *p)
{
    const bool direct = p->b_column == 1 && p->n % panel == 0;
    return direct || smaller_of(p->k, block_depth) * packed_width(p->n) <= small_panels;
}

/* Without scratch: a is read where it lies, and b too if its rows are whole panels. */
static void multiply_small(const rapt_product *p)
{
    const int64_t panels = (p->m + strided_rows - 1) / strided_rows;
    const bool direct = p->b_column == 1 && p->n % panel == 0;
    T copy[small_panels], beside[strided_rows * panel];
    for (int64_t done = 0; done < p->k; done += block_depth) {
        const int64_t k = smaller_of(block_depth, p->k - done);
        const T *b = (const T *)(const void *)p->b + done * p->b_row;
        const T *a = (const T *)(const void *)p->a + done * p->a_column;
        const bool adds = done > 0 || p->accumulate;
        if (!direct) pack_columns(p->n, k, b, p->b_row, p->b_column, copy);
        for (int64_t column = 0; column < p->n; column += panel) {
            const int64_t count = smaller_of(panel, p->n - column), wide = panel_width(count);
            const T *columns = direct ? b + column : copy + column * k;
            const bool whole = is_whole(p, count);
            for (int64_t i = 0; i < panels; i++) {
                const int64_t row = panel_start(p->m, panels, i), height = panel_start(p->m, panels, i + 1) - row;
                strided_tile *sum = strided_tiles[wide > width][height - 1];
                sum(k, a + row * p->a_row, p->a_row, p->a_column, columns, direct ? p->b_row : wide,
                    whole ? element_of(p, row, column) : beside, whole ? p->c_row : panel, whole && adds);
                if (!whole) put(p, row, height, column, count, beside, panel, adds);
                if (p->bias && done == 0) add_bias(p, row, height, column, count);
            }
        }
    }
}

void RAPT_AT_LEVEL(OF_TYPE(rapt_fill_matmul))(rapt_kernels *kernels)
{
    kernels->matmul[DTYPE] = (rapt_matmul_kernels){
        .rows = tile_rows,
        .columns = panel,
        .vector = width,
        .multiply_bytes = multiply_bytes,
        .multiply = multiply,
        .is_small = is_small,
        .multiply_small = multiply_small,
    };
}
