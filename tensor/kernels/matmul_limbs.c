/* Matrix products of float32 by an instruction that multiplies matrices of bfloat16 (AMX).
 *
 * A float32 is the sum of three bfloat16, its limbs, without a remainder: 24 = 8 + 8 + 8 digits. Of the nine products
 * of limbs the six largest are summed, in float32:
 *
 *     (a0 + a1 + a2) · (b0 + b1 + b2) ≈ a0·b0 + a0·b1 + a1·b0 + a0·b2 + a1·b1 + a2·b0
 *
 * What is left out is below 2⁻²³ |a·b|, and in most cases far below it, so that sums are as close as those of float32's
 * own products. (The method is that of Henry, Tang and Heinecke 2019, "Leveraging the bfloat16 artificial intelligence
 * datatype for higher-precision computations".) Six such products take a third of the time of one in float32.
 *
 * The instruction takes denormal numbers for 0, and limbs of infinities would be NaN. So lines (rows of a, columns of
 * b) whose largest number in a block of k is not in [2⁻⁷⁰, 2⁵⁵) nor 0 are left to the kernels below (AVX-512). Whether
 * a line is, says it alone: each element of c has the bits of its row and its column, whatever lies beside them. */
#include "limb_panels.h"

enum { chunk_panels = 8 };

static rapt_matmul_kernels below; /* of the level below */

static int64_t start_of_panel(int64_t m, int64_t i)
{
    return smaller_of(i * panel, m);
}

/* A block of k of some lines. */
static void pack_lines(packing lines, const rapt_product *p, int64_t block, int64_t first, int64_t last)
{
    const int64_t done = rapt_block_start(p->k, block);
    lines.k = rapt_block_start(p->k, block + 1) - done;
    lines.from += done * lines.along;
    pack_panels(&lines, first, last);
}

static void pack_rows(const rapt_product *p, int64_t block, int64_t first, int64_t last, void *to)
{
    const float *a = (const float *)(const void *)p->a;
    const packing rows = {.lines = p->m, .across = p->a_row, .along = p->a_column, .from = a, .to = to};
    pack_lines(rows, p, block, first, last);
}

static void pack_block(const rapt_product *p, int64_t block, int64_t first, int64_t last, void *to)
{
    const float *b = (const float *)(const void *)p->b;
    const packing columns =
        {.lines = p->n, .across = p->b_column, .along = p->b_row, .from = b, .has_lines = true, .to = to};
    pack_lines(columns, p, block, first, last);
}

/* Tiles 0 to 3 are sums, 4 and 5 of a, 6 and 7 of b; each of 16 rows of 64 bytes. */
static void configure_tiles(void)
{
    struct {
        uint8_t palette, start, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } tiles = {.palette = 1};
    for (int i = 0; i < 8; i++) tiles.row_bytes[i] = 64, tiles.rows[i] = tile_lines;
    _tile_loadconfig(&tiles);
}

#define LOAD_A(limb)                                                                                                   \
    _tile_loadd(4, a + (limb)*limb_bytes, 64);                                                                         \
    if (rows == 2) _tile_loadd(5, a + (limb)*limb_bytes + tile_bytes, 64)
#define LOAD_B(limb)                                                                                                   \
    _tile_loadd(6, b + (limb)*limb_bytes, 64);                                                                         \
    if (columns == 2) _tile_loadd(7, b + (limb)*limb_bytes + tile_bytes, 64)
#define ADD_PRODUCTS()                                                                                                 \
    _tile_dpbf16ps(0, 4, 6);                                                                                           \
    if (columns == 2) _tile_dpbf16ps(1, 4, 7);                                                                         \
    if (rows == 2) _tile_dpbf16ps(2, 5, 6);                                                                            \
    if (rows == 2 && columns == 2) _tile_dpbf16ps(3, 5, 7)

/* sums = Σ of the products of limbs of a panel of rows and one of columns, of which one or two tiles are used. The
 * small products come first, in an order that changes one operand at a time. */
static inline __attribute__((always_inline)) void multiply_tiles(const int rows, const int columns, int64_t steps,
                                                                 const char *a, const char *b, float *sums)
{
    _tile_zero(0);
    if (columns == 2) _tile_zero(1);
    if (rows == 2) _tile_zero(2);
    if (rows == 2 && columns == 2) _tile_zero(3);
    for (int64_t step = 0; step < steps; step++, a += step_bytes, b += step_bytes) {
        LOAD_A(0);
        LOAD_B(2);
        ADD_PRODUCTS();
        LOAD_B(1);
        ADD_PRODUCTS();
        LOAD_A(1);
        ADD_PRODUCTS();
        LOAD_B(0);
        ADD_PRODUCTS();
        LOAD_A(2);
        ADD_PRODUCTS();
        LOAD_A(0);
        ADD_PRODUCTS();
    }
    enum { row_bytes = panel * sizeof(float) };
    _tile_stored(0, sums, row_bytes);
    if (columns == 2) _tile_stored(1, sums + tile_lines, row_bytes);
    if (rows == 2) _tile_stored(2, sums + tile_lines * panel, row_bytes);
    if (rows == 2 && columns == 2) _tile_stored(3, sums + tile_lines * panel + tile_lines, row_bytes);
}

static void multiply_panels(int64_t height, int64_t count, int64_t k, const char *a, const char *b, float *sums)
{
    const int64_t steps = divide_up(k, step_terms);
    a += head_bytes, b += head_bytes;
    if (height > tile_lines && count > tile_lines)
        multiply_tiles(2, 2, steps, a, b, sums);
    else if (height > tile_lines)
        multiply_tiles(2, 1, steps, a, b, sums);
    else if (count > tile_lines)
        multiply_tiles(1, 2, steps, a, b, sums);
    else
        multiply_tiles(1, 1, steps, a, b, sums);
}

static inline uint32_t left_out_of(const char *of_panel)
{
    return ((const panel_head *)(const void *)of_panel)->left_out;
}

/* Adds a block of k to the rows [top, bottom) and the columns [left, right) of c, by the level below. */
static void add_below(const rapt_product *p, int64_t block, int64_t top, int64_t bottom, int64_t left, int64_t right)
{
    const int64_t done = rapt_block_start(p->k, block), k = rapt_block_start(p->k, block + 1) - done;
    const bool in_sums = p->sums && done + k < p->k;
    const rapt_product part = {.m = bottom - top,
                               .n = right - left,
                               .k = k,
                               .a = p->a + (top * p->a_row + done * p->a_column) * SIZE,
                               .b = p->b + (done * p->b_row + left * p->b_column) * SIZE,
                               .c = in_sums ? p->sums + (top * p->sums_row + left) * SIZE
                                            : p->c + (top * p->c_row + left * p->c_column) * SIZE,
                               .a_row = p->a_row,
                               .a_column = p->a_column,
                               .b_row = p->b_row,
                               .b_column = p->b_column,
                               .c_row = in_sums ? p->sums_row : p->c_row,
                               .c_column = p->c_column,
                               .accumulate = true};
    below.multiply_direct(&part);
}

/* The end of a run of lines from `first` on that are, or are not, among those left out. */
static int64_t run_end(uint32_t left_out, int64_t first, int64_t last)
{
    const uint32_t wanted = left_out >> first & 1;
    while (first < last && (left_out >> first & 1) == wanted) first++;
    return first;
}

/* What was left out of a panel of rows and some panels of columns, the first of which lies at b. */
static void add_left_out(const rapt_product *p, int64_t block, int64_t row, int64_t height, uint32_t rows, int64_t left,
                         int64_t right, const char *b, int64_t panel_size)
{
    for (int64_t i = 0, end; i < height; i = end) {
        end = run_end(rows, i, height);
        if (rows >> i & 1) {
            add_below(p, block, row + i, row + end, left, right);
            continue;
        }
        const char *next = b;
        for (int64_t column = left; column < right; column += panel, next += panel_size) {
            const int64_t count = smaller_of(panel, right - column);
            for (int64_t j = 0, stop; left_out_of(next) && j < count; j = stop) {
                stop = run_end(left_out_of(next), j, count);
                if (left_out_of(next) >> j & 1) add_below(p, block, row + i, row + end, column + j, column + stop);
            }
        }
    }
}

static bool leaves_out_columns(int64_t panels, const char *b, int64_t panel_size)
{
    uint32_t any = 0;
    for (; panels > 0; panels--, b += panel_size) any |= left_out_of(b);
    return any != 0;
}

static void finish_part(const rapt_product *p, int64_t top, int64_t bottom, int64_t left, int64_t right)
{
    rapt_product part = *p;
    part.m = bottom - top, part.n = right - left;
    part.c += (top * p->c_row + left * p->c_column) * SIZE;
    below.finish(&part);
}

/* The panels of rows from `first` to `last`, which lie at a. */
static void multiply_rows(const rapt_product *p, int64_t block, int64_t first, int64_t last, const char *a,
                          const char *b, int64_t near)
{
    const int64_t done = rapt_block_start(p->k, block), k = rapt_block_start(p->k, block + 1) - done;
    const int64_t panel_size = panel_bytes(k);
    const bool finishes = p->epilogue && done + k == p->k;
    configure_tiles();
    for (int64_t left = 0; left < p->n; left += near) {
        const int64_t right = smaller_of(left + near, p->n);
        const char *b_near = b + left / panel * panel_size;
        const bool leaves_out = leaves_out_columns(divide_up(right - left, panel), b_near, panel_size);
        for (int64_t i = first; i < last; i++) {
            const int64_t row = i * panel, height = smaller_of(p->m - row, panel);
            const char *rows = a + (i - first) * panel_size, *next = b_near;
            for (int64_t column = left; column < right; column += panel, next += panel_size) {
                __attribute__((aligned(64))) float sums[panel * panel];
                multiply_panels(height, smaller_of(p->n - column, panel), k, rows, next, sums);
                below.put(p, block, row, height, column, sums);
            }
            if (leaves_out || left_out_of(rows))
                add_left_out(p, block, row, height, left_out_of(rows), left, right, b_near, panel_size);
            if (finishes) finish_part(p, row, row + height, left, right);
        }
    }
    _tile_release();
}

static void multiply_packed(const rapt_product *p, int64_t block, const void *a, const void *b, int64_t near,
                            rapt_ahead ahead)
{
    (void)ahead; /* prefetches would keep tiles waiting */
    multiply_rows(p, block, 0, divide_up(p->m, panel), a, b, near);
}

static size_t chunk_bytes(int64_t m, int64_t k)
{
    return (size_t)lines_bytes(smaller_of(m, chunk_panels * panel), smaller_of(k, RAPT_BLOCK_DEPTH));
}

static void multiply_block(const rapt_product *p, int64_t block, const void *b, int64_t near, void *scratch,
                           rapt_ahead ahead)
{
    (void)ahead;
    const int64_t panels = divide_up(p->m, panel);
    const int64_t k = rapt_block_start(p->k, block + 1) - rapt_block_start(p->k, block);
    for (int64_t first = 0; first < panels; first += chunk_panels) {
        const int64_t last = smaller_of(first + chunk_panels, panels);
        pack_rows(p, block, first, last, (char *)scratch - first * panel_bytes(k));
        multiply_rows(p, block, first, last, scratch, b, near);
    }
}

/* Sums are put into dense rows, and either c or its transpose has some. */
static bool is_better_turned(const rapt_product *p)
{
    return p->c_column != 1;
}

void rapt_fill_matmul_limbs(rapt_kernels *kernels);

void rapt_fill_matmul_limbs(rapt_kernels *kernels)
{
    static rapt_matmul_kernels of_limbs;
    below = of_limbs = kernels->matmul[RAPT_FLOAT32];
    of_limbs.rows = panel;
    of_limbs.columns = panel;
    of_limbs.multiplies_limbs = true;
    of_limbs.panel_start = start_of_panel;
    of_limbs.rows_bytes = lines_bytes;
    of_limbs.columns_bytes = lines_bytes;
    of_limbs.pack_rows = pack_rows;
    of_limbs.pack_block = pack_block;
    of_limbs.multiply_packed = multiply_packed;
    of_limbs.chunk_bytes = chunk_bytes;
    of_limbs.chunk_panels = chunk_panels;
    of_limbs.multiply_block = multiply_block;
    of_limbs.is_better_turned = is_better_turned;
    kernels->limbs = &of_limbs;
}
