/* Matrix products for one element type, as Goto and van de Geijn 2008 cut them, with the roles of a and b exchanged.
 * T is the type, SIZE its bytes, DTYPE its dtype, and OF_TYPE(name) the name of another file's function for it.
 *
 *              n           A block of k at a time: its rows of b are packed into panels of columns (b0, b1, …), and
 *         ┌──┬──┬──┐       some rows of a (a chunk) into panels of rows (a0, a1, …). A panel of a stays in the
 *       k │b0│b1│b2│       first-level cache while the panels of b go by, as many of them as stay in the second-level
 *         └──┴──┴──┘       cache until the next panel of a; and where two panels come together, a tile of c is
 *     k                    summed in registers, over the whole block:
 *   ┌────┐┌──┬──┬──┐
 *   │ a0 ││  │**│  │       tile[i][j] = Σ a[t][i] · b[t][j],  t in the block
 * m ├────┤├──┼──┼──┤
 *   │ a1 ││  │  │  │       and added to c.
 *   └────┘└──┴──┴──┘
 *
 * Each element of c is one sum, in the order of k within a block, and the blocks are added in order: it depends on
 * its row of a, its column of b and k alone, not on where tiles, chunks and threads cut. */
#include <string.h>

#include "loop.h"

#ifdef __clang__
#pragma clang fp contract(fast) /* as gcc does: or it fuses within a statement alone, and not in all tiles alike */
#endif

#include "transpose_tmpl.c"

#include "vector_part_tmpl.c"

#include "register_tile_tmpl.c"

#include "matmul_tile_tmpl.c"

#include "matmul_pack_tmpl.c"

static inline T *element_of(const rapt_product *p, int64_t row, int64_t column)
{
    return (T *)(void *)p->c + row * p->c_row + column * p->c_column;
}

/* c = tile or c + tile, where the columns of c are dense: transposed in registers, some rows of the tile at a time,
 * which become pieces of 16 bytes. The tile is padded to so many rows and to vectors. */
static void put_turned(const rapt_product *p, int64_t row, int64_t height, int64_t column, int64_t count, const T *from,
                       int64_t from_row, bool adds)
{
    for (int64_t i = 0; i < height; i += lane_width)
        for (int64_t j = 0; j < count; j += width) {
            vector block[lane_width];
#pragma GCC unroll 4
            for (int lane = 0; lane < lane_width; lane++)
                block[lane] = *(const vector *)(const void *)(from + (i + lane) * from_row + j);
            transpose_lanes(block);
            T pieces[lane_width][width];
#pragma GCC unroll 4
            for (int lane = 0; lane < lane_width; lane++) *(vector *)(void *)pieces[lane] = block[lane];
            const int64_t columns = smaller_of(count - j, width), rows = smaller_of(height - i, lane_width);
            T *c = element_of(p, row + i, column + j);
            if (rows == lane_width && columns == width) {
#pragma GCC unroll 16
                for (int t = 0; t < width; t++, c += p->c_column) {
                    lane_vector *to = (lane_vector *)(void *)c;
                    lane_vector piece =
                        *(const lane_vector *)(const void *)(pieces[t % lane_width] + t / lane_width * lane_width);
                    if (adds) piece += *to;
                    *to = piece;
                }
                continue;
            }
            for (int64_t t = 0; t < columns; t++, c += p->c_column) {
                const T *from_lane = pieces[t % lane_width] + t / lane_width * lane_width;
                lane_vector piece = *(const lane_vector *)(const void *)from_lane;
                for (int64_t lane = 0; adds && lane < rows; lane++) piece[lane] += c[lane];
                store_lane_part(c, rows, piece);
            }
        }
}

static void add_bias(const rapt_product *p, int64_t row, int64_t height, int64_t column, int64_t count)
{
    const T *bias = (const T *)(const void *)p->bias + row * p->bias_row + column * p->bias_column;
    if (p->c_column == 1 && p->bias_column == 1) {
        for (int64_t i = 0; i < height; i++, bias += p->bias_row) {
            T *restrict c = element_of(p, row + i, column);
            for (int64_t j = 0; j < count; j++) c[j] += bias[j];
        }
        return;
    }
    for (int64_t i = 0; i < height; i++)
        for (int64_t j = 0; j < count; j++)
            *element_of(p, row + i, column + j) += bias[i * p->bias_row + j * p->bias_column];
}

/* The epilogue of the elements at those rows and columns, along whichever are dense in c. Of the next line what is
 * written is prefetched: lines are too short for the processor to see it come. */
static void finish_part(const rapt_product *p, int64_t top, int64_t bottom, int64_t left, int64_t right)
{
    const rapt_epilogue *e = p->epilogue;
    const bool by_rows = p->c_column == 1 && (p->c_row != 1 || right - left >= bottom - top);
    const int64_t step = by_rows ? p->c_row : p->c_column, strides[2] = {SIZE, SIZE};
    int64_t lines = by_rows ? bottom - top : right - left, count = by_rows ? right - left : bottom - top;
    if (step == count) count *= lines, lines = 1;
    T *c = element_of(p, top, left);
    for (int64_t i = 0; i < lines; i++, c += step) {
        const int64_t place = c - (const T *)(const void *)e->c;
        T *y = (T *)(void *)e->y + place;
        if (y != c && i + 1 < lines) prefetch(y + step, (int)(count * SIZE), 1);
        e->function(count, (char *[]){(char *)y, (char *)c}, strides, NULL);
        if (e->dropout) e->dropout(e->state, place, count, y, y, e->keep, e->scale);
    }
}

static void finish(const rapt_product *p)
{
    if (p->epilogue) finish_part(p, 0, p->m, 0, p->n);
}

/* Where the sums of a panel of rows and one of columns go, in rows, and what is added to them. */
typedef struct sums_place {
    T *to;
    const T *before; /* NULL: nothing */
    int64_t to_row, before_row;
    bool has_bias; /* as what is before */
} sums_place;

static inline sums_place place_of_sums(const rapt_product *p, int64_t done, int64_t k, int64_t row, int64_t column)
{
    const bool is_first = done == 0, is_last = done + k == p->k;
    T *c = element_of(p, row, column), *sums = p->sums ? (T *)(void *)p->sums + row * p->sums_row + column : c;
    const int64_t sums_row = p->sums ? p->sums_row : p->c_row;
    sums_place place = {.to = is_last ? c : sums, .to_row = is_last ? p->c_row : sums_row};
    if (p->bias && is_first && p->bias_column == 1) {
        place.has_bias = true;
        place.before = (const T *)(const void *)p->bias + row * p->bias_row + column;
        place.before_row = p->bias_row;
    } else if (!is_first || p->accumulate) {
        place.before = is_first ? c : sums;
        place.before_row = is_first ? p->c_row : sums_row;
    }
    return place;
}

/* The tile of c where a panel of rows and a panel of columns come together, for k terms after the first `done`. */
static inline void multiply_panels(const rapt_product *p, int64_t done, int64_t k, int64_t row, int64_t height,
                                   int64_t column, const T *a, const T *b, lines_ahead *ahead)
{
    const bool is_first = done == 0, adds = !is_first || p->accumulate;
    const int64_t count = smaller_of(panel, p->n - column);
    const int64_t stored = p->c_column == 1 ? count : panel_width(count);
    packed_tile *sum = packed_tiles[(stored > width) + (stored == panel)][height - 1];
    const bool biased = p->bias && is_first;
    if (p->c_column == 1) {
        const sums_place place = place_of_sums(p, done, k, row, column);
        sum(k, a, b, place.to, place.to_row, count, place.before, place.before_row, ahead);
        if (place.has_bias) return;
    } else {
        T beside[(tile_rows + lane_width) * panel];
        sum(k, a, b, beside, panel, stored, NULL, 0, ahead);
        put_turned(p, row, height, column, count, beside, panel, adds);
    }
    if (biased) add_bias(p, row, height, column, count);
}

/* Of another's products, for c with dense rows. */
static void put(const rapt_product *p, int64_t block, int64_t row, int64_t height, int64_t column, const void *of_panel)
{
    const int64_t done = rapt_block_start(p->k, block), k = rapt_block_start(p->k, block + 1) - done;
    const int64_t count = smaller_of(panel, p->n - column);
    const T *sums = of_panel;
    const sums_place place = place_of_sums(p, done, k, row, column);
    for (int64_t i = 0; i < height; i++)
        for (int64_t j = 0; j < count; j += width) {
            const some_lanes lanes = first_lanes(smaller_of(count - j, width));
            vector sum = *(const vector *)(const void *)(sums + i * panel + j);
            if (place.before) sum += load_part(place.before + i * place.before_row + j, lanes);
            store_part(place.to + i * place.to_row + j, lanes, sum);
        }
    if (p->bias && done == 0 && !place.has_bias) add_bias(p, row, height, column, count);
}

static int64_t start_of_panel(int64_t m, int64_t i)
{
    return panel_start(m, row_panels(m), i);
}

static int64_t rows_bytes(int64_t m, int64_t k)
{
    return m * k * SIZE;
}

static int64_t columns_bytes(int64_t n, int64_t k)
{
    return divide_up(n, panel) * panel * k * SIZE;
}

/* A chunk has so many panels of rows: few enough to keep many threads busy, enough to read b seldom again. */
enum { chunk_panels = 56 / tile_rows };

static size_t chunk_bytes(int64_t m, int64_t k)
{
    const int64_t rows = smaller_of(m, chunk_panels * tile_rows), deepest = smaller_of(k, RAPT_BLOCK_DEPTH);
    return (size_t)(deepest * rows) * SIZE;
}

static void pack_rows(const rapt_product *p, int64_t block, int64_t first, int64_t last, void *to)
{
    const int64_t done = rapt_block_start(p->k, block), k = rapt_block_start(p->k, block + 1) - done;
    pack_row_panels(p, first, last, done, k, (T *)to + panel_start(p->m, row_panels(p->m), first) * k);
}

static void pack_block(const rapt_product *p, int64_t block, int64_t first, int64_t last, void *to)
{
    const int64_t done = rapt_block_start(p->k, block), k = rapt_block_start(p->k, block + 1) - done;
    const T *b = (const T *)(const void *)p->b + done * p->b_row + first * panel * p->b_column;
    pack_columns(smaller_of(p->n, last * panel) - first * panel, k, b, p->b_row, p->b_column,
                 (T *)to + first * panel * k);
}

/* The lines of what is packed next, spread over so many tiles. */
static inline lines_ahead spread_lines(rapt_ahead ahead, int64_t tiles, int64_t k)
{
    enum { at_once = 4, fewest_terms = 8 }; /* even, as the tile's loop is unrolled */
    if (ahead.rows == 0) return (lines_ahead){0};
    const int64_t into = (int64_t)((uintptr_t)ahead.from % line), columns = (into + ahead.bytes + line - 1) / line;
    const int64_t lines = columns * ahead.rows, times = (lines + tiles * at_once - 1) / (tiles * at_once);
    int64_t between = (k + 2 * times - 1) / (2 * times) * 2;
    if (between < fewest_terms) between = fewest_terms;
    if (!interrupts_tiles) between = k;
    const int64_t all_times = tiles * ((k + between - 1) / between);
    return (lines_ahead){.next = ahead.from - into,
                         .step = ahead.step,
                         .back = line - ahead.rows * ahead.step,
                         .rows = ahead.rows,
                         .each = (lines + all_times - 1) / all_times,
                         .between = between,
                         .left = lines};
}

/* The panels of rows from `first` to `last`, which lie at a; `ahead` is prefetched. */
static inline void multiply_rows(const rapt_product *p, int64_t block, int64_t first, int64_t last, const T *a,
                                 const T *b, int64_t near, rapt_ahead ahead)
{
    const int64_t done = rapt_block_start(p->k, block), k = rapt_block_start(p->k, block + 1) - done;
    const int64_t panels = row_panels(p->m), top = panel_start(p->m, panels, first);
    const bool finishes = p->epilogue && done + k == p->k;
    lines_ahead lines = spread_lines(ahead, (last - first) * divide_up(p->n, panel), k);
    for (int64_t left = 0; left < p->n; left += near) {
        const int64_t right = smaller_of(left + near, p->n);
        for (int64_t i = first; i < last; i++) {
            const int64_t row = panel_start(p->m, panels, i), height = panel_start(p->m, panels, i + 1) - row;
            for (int64_t column = left; column < right; column += panel)
                multiply_panels(p, done, k, row, height, column, a + (row - top) * k, b + column * k, &lines);
            if (finishes && p->c_column == 1) finish_part(p, row, row + height, left, right);
        }
        if (finishes && p->c_column != 1) finish_part(p, top, panel_start(p->m, panels, last), left, right);
    }
}

static void multiply_packed(const rapt_product *p, int64_t block, const void *a, const void *b, int64_t near,
                            rapt_ahead ahead)
{
    multiply_rows(p, block, 0, row_panels(p->m), a, b, near, ahead);
}

/* A block of k of the chunk that begins with a panel. */
static rapt_ahead chunk_ahead(const rapt_product *p, int64_t block, int64_t first)
{
    const int64_t panels = row_panels(p->m), row = panel_start(p->m, panels, first);
    rapt_product chunk = *p;
    chunk.m = panel_start(p->m, panels, smaller_of(first + chunk_panels, panels)) - row;
    chunk.a += row * p->a_row * SIZE;
    return rapt_ahead_in_a(&chunk, block, SIZE);
}

static void multiply_block(const rapt_product *p, int64_t block, const void *b, int64_t near, void *scratch,
                           rapt_ahead ahead)
{
    const int64_t done = rapt_block_start(p->k, block), k = rapt_block_start(p->k, block + 1) - done;
    const int64_t panels = row_panels(p->m);
    for (int64_t first = 0; first < panels; first += chunk_panels) {
        const int64_t last = smaller_of(first + chunk_panels, panels);
        pack_row_panels(p, first, last, done, k, scratch);
        const rapt_ahead next = last < panels ? chunk_ahead(p, block, last) : ahead;
        multiply_rows(p, block, first, last, scratch, b, near, next);
    }
}

#include "matmul_columns_tmpl.c"

#include "matmul_far_columns_tmpl.c"

#include "matmul_thin_tmpl.c"

#include "matmul_direct_tmpl.c"

void RAPT_AT_LEVEL(OF_TYPE(rapt_fill_matmul))(rapt_kernels *kernels)
{
    kernels->matmul[DTYPE] = (rapt_matmul_kernels){
        .rows = tile_rows,
        .columns = panel,
        .panel_start = start_of_panel,
        .rows_bytes = rows_bytes,
        .columns_bytes = columns_bytes,
        .put = put,
        .pack_rows = pack_rows,
        .pack_block = pack_block,
        .multiply_packed = multiply_packed,
        .chunk_bytes = chunk_bytes,
        .chunk_panels = chunk_panels,
        .multiply_block = multiply_block,
        .few_rows = few_rows,
        .multiply_direct = multiply_direct,
        .is_better_turned = is_better_turned,
        .finish = finish,
    };
}
