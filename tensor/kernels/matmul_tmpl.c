/* Matrix products for one element type, as Goto and van de Geijn 2008 cut them, with the roles of a and b exchanged. T is
 * the type, SIZE its bytes, DTYPE its dtype, and OF_TYPE(name) the name of another file's function for it.
 *
 *              n                 A block of k at a time: its rows of b are packed into panels of columns (b0, b1, …), and some
 *         ┌──┬──┬──┐             rows of a (a chunk) into panels of rows (a0, a1, …). A panel of a stays in the first-level
 *       k │b0│b1│b2│             cache while the panels of b go by, as many of them as stay in the second-level cache until
 *         └──┴──┴──┘             the next panel of a; and where two panels come together, a tile of c is summed in
 *     k                          registers, over the whole block:
 *   ┌────┐┌──┬──┬──┐
 *   │ a0 ││  │**│  │             tile[i][j] = Σ a[t][i] · b[t][j],  t in the block
 * m ├────┤├──┼──┼──┤
 *   │ a1 ││  │  │  │             and added to c.
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

/* The tile of c where a panel of rows and a panel of columns come together. */
static inline void multiply_panels(const rapt_product *p, bool adds, bool is_first, int64_t k, int64_t row,
                                   int64_t height, int64_t column, const T *a, const T *b)
{
    const int64_t count = smaller_of(panel, p->n - column), wide = panel_width(count);
    packed_tile *sum = packed_tiles[wide > width][height - 1];
    if (is_whole(p, count)) {
        sum(k, a, b, element_of(p, row, column), p->c_row, adds);
    } else {
        T beside[tile_rows * panel];
        sum(k, a, b, beside, panel, false);
        put(p, row, height, column, count, beside, panel, adds);
    }
    if (p->bias && is_first) add_bias(p, row, height, column, count);
}

/* A chunk has so many panels of rows: few enough to keep many threads busy, enough to read b seldom again. */
enum { chunk_panels = 56 / tile_rows };

static size_t chunk_bytes(int64_t m, int64_t k)
{
    const int64_t rows = smaller_of(m, chunk_panels * tile_rows), deepest = smaller_of(k, RAPT_BLOCK_DEPTH);
    return (size_t)(deepest * rows + width) * SIZE;
}

static void pack_block(const rapt_product *p, int64_t block, int64_t first, int64_t last, void *to)
{
    const int64_t done = rapt_block_start(p->k, block), k = rapt_block_start(p->k, block + 1) - done;
    const T *b = (const T *)(const void *)p->b + done * p->b_row + first * panel * p->b_column;
    pack_columns(smaller_of(p->n, last * panel) - first * panel, k, b, p->b_row, p->b_column,
                 (T *)to + first * panel * k);
}

static void multiply_block(const rapt_product *p, int64_t block, const void *packed, int64_t near, void *scratch)
{
    const int64_t done = rapt_block_start(p->k, block), k = rapt_block_start(p->k, block + 1) - done;
    const int64_t panels = (p->m + tile_rows - 1) / tile_rows;
    const T *b = packed;
    const bool adds = done > 0 || p->accumulate;
    for (int64_t first = 0; first < panels; first += chunk_panels) {
        const int64_t last = smaller_of(first + chunk_panels, panels), top = panel_start(p->m, panels, first);
        pack_rows(p, first, last, done, k, scratch);
        for (int64_t left = 0; left < p->n; left += near)
            for (int64_t i = first; i < last; i++) {
                const int64_t row = panel_start(p->m, panels, i), height = panel_start(p->m, panels, i + 1) - row;
                const T *a = (const T *)scratch + (row - top) * k;
                for (int64_t column = left; column < smaller_of(left + near, p->n); column += panel)
                    multiply_panels(p, adds, done == 0, k, row, height, column, a, b + column * k);
            }
    }
}

/* May `multiply_small` have it? b must be dense in whole vectors or small enough to be copied. */
static bool is_small(const rapt_product *p)
{
    const bool direct = p->b_column == 1 && p->n % panel == 0;
    return direct || smaller_of(p->k, RAPT_BLOCK_DEPTH) * packed_width(p->n) <= small_panels;
}

/* The definition, for products that are over before a vector would be filled. */
static void multiply_tiny(const rapt_product *p)
{
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            const T *a = (const T *)(const void *)p->a + i * p->a_row,
                    *b = (const T *)(const void *)p->b + j * p->b_column;
            T sum = 0, *c = element_of(p, i, j);
            for (int64_t t = 0; t < p->k; t++) {
                sum += a[t * p->a_column] * b[t * p->b_row];
                KEEP_IN_REGISTER(sum); /* or gcc would multiply in vectors and round twice */
            }
            *c = p->accumulate ? *c + sum : sum;
            if (p->bias) add_bias(p, i, 1, j, 1);
        }
}

/* Without scratch: a is read where it lies, and b too if its rows are whole panels. */
static void multiply_small(const rapt_product *p)
{
    enum { tiny = 128 };
    if (p->m * p->n * p->k <= tiny) {
        multiply_tiny(p);
        return;
    }
    const int64_t panels = (p->m + strided_rows - 1) / strided_rows;
    const bool direct = p->b_column == 1 && p->n % panel == 0;
    T copy[small_panels], beside[strided_rows * panel];
    for (int64_t block = 0; block < rapt_block_count(p->k); block++) {
        const int64_t done = rapt_block_start(p->k, block), k = rapt_block_start(p->k, block + 1) - done;
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
        .rows = chunk_panels * tile_rows,
        .columns = panel,
        .vector = width,
        .pack_block = pack_block,
        .chunk_bytes = chunk_bytes,
        .multiply_block = multiply_block,
        .is_small = is_small,
        .multiply_small = multiply_small,
    };
}
