/* Products of small matrices whose sums stay in registers, and the copies that prepare them. T is the element type,
 * SIZE its bytes. */
#include "transpose_tmpl.c"

#include "vector_part_tmpl.c"

#include "register_tile_tmpl.c"

/* A block whose rows are no whole vectors: rows that are not to be read, and elements that are not there, count as
 * zeros. */
static void take_edge(int64_t rows, int64_t columns, const T *from, int64_t from_row, const uint8_t *used,
                      T edge[width][width])
{
    memset(edge, 0, sizeof(T[width][width]));
    for (int64_t i = 0; i < rows; i++)
        if (!used || used[i]) memcpy(edge[i], from + i * from_row, (size_t)columns * sizeof(T));
}

/* to[t][i] = from[i][t] for `rows` rows of `columns` elements; a row whose byte in `used` is 0 is not read and
 * counts as zeros, and so do rows up to the next whole vector of them. */
static void transpose(int64_t rows, int64_t columns, const T *from, int64_t from_row, const uint8_t *used, T *to,
                      int64_t to_row)
{
    static const T zeros[width];
    for (int64_t i = 0; i < rows; i += width) {
        const int64_t height = rows - i < width ? rows - i : width;
        const T *in[width];
        for (int64_t lane = 0; lane < width; lane++)
            in[lane] = lane < height && (!used || used[i + lane]) ? from + (i + lane) * from_row : NULL;
        for (int64_t t = 0; t < columns; t += width) {
            const int64_t count = columns - t < width ? columns - t : width;
            T edge[width][width], *out = to + t * to_row + i;
            vector block[width]; /* only indexed by constants, or it would not stay in registers */
            int64_t out_row = to_row;
            if (count < width) {
                take_edge(height, count, from + i * from_row + t, from_row, used ? used + i : NULL, edge);
#pragma GCC unroll 16
                for (int lane = 0; lane < width; lane++) block[lane] = *(const vector *)(const void *)edge[lane];
            } else {
#pragma GCC unroll 16
                for (int lane = 0; lane < width; lane++)
                    block[lane] = *(const vector *)(const void *)(in[lane] ? in[lane] + t : zeros);
            }
            transpose_block(block);
            if (count < width) out = edge[0], out_row = width;
#pragma GCC unroll 16
            for (int lane = 0; lane < width; lane++) *(vector *)(void *)(out + lane * out_row) = block[lane];
            for (int64_t lane = 0; count < width && lane < count; lane++)
                memcpy(to + (t + lane) * to_row + i, edge[lane], sizeof *edge);
        }
    }
}

/* Products of RAPT_TILE_ROWS rows and any number of whole vectors of columns: c = Σ terms, c + Σ or factor · c + Σ. One
 * noinline function for each kind keeps the loops small. */
#define PRODUCT(name, terms, adds, scales)                                                                             \
    static __attribute__((noinline)) void name(int64_t vectors, int64_t k, const T *restrict a, int64_t a_row,         \
                                               int64_t a_step, const T *restrict b, int64_t b_row, T *restrict c,      \
                                               int64_t c_row, const T *factors)                                        \
    {                                                                                                                  \
        int64_t j = 0;                                                                                                 \
        for (; j + 2 <= vectors; j += 2, b += 2 * width, c += 2 * width)                                               \
            tile((tile_kind){RAPT_TILE_ROWS, 2, false, true, terms}, k, a, a_row, a_step, b, b_row, c, c_row,          \
                 2 * width, adds ? c : NULL, c_row, scales ? factors : NULL, false, NULL);                             \
        if (j < vectors)                                                                                               \
            tile((tile_kind){RAPT_TILE_ROWS, 1, false, true, terms}, k, a, a_row, a_step, b, b_row, c, c_row, width,   \
                 adds ? c : NULL, c_row, scales ? factors : NULL, false, NULL);                                        \
    }

PRODUCT(product, all_products, false, false)
PRODUCT(product_added, all_products, true, false)
PRODUCT(product_scaled, all_products, true, true)
PRODUCT(product_chosen, chosen_products, true, true)
PRODUCT(log_gaussian, squared_differences, false, false)
#undef PRODUCT

/* to = from · factor, row by row; unused rows are zeros, and so is what fills the rows up to whole vectors. */
static void copy_rows(int64_t rows, int64_t columns, const T *from, int64_t from_row, const uint8_t *used, T factor,
                      T *to, int64_t to_row)
{
    for (int64_t i = 0; i < rows; i++) {
        const T *in = from + i * from_row;
        T *out = to + i * to_row;
        int64_t done = 0;
        if (!used || used[i]) {
            RAPT_SIMD for (int64_t j = 0; j < columns; j++) out[j] = in[j] * factor;
            done = columns;
        }
        for (int64_t j = done; j < to_row; j++) out[j] = 0;
    }
}
