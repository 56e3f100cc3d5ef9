/* Products of small matrices whose sums stay in registers, and the copies that prepare them. T is the element type,
 * SIZE its bytes. */
#include "transpose_tmpl.c"

/* A block at an edge: rows that are not to be read, and elements that are not there, count as zeros. */
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
    for (int64_t i = 0; i < rows; i += width) {
        const int64_t height = rows - i < width ? rows - i : width;
        bool whole = height == width;
        for (int64_t lane = 0; used && lane < height; lane++) whole = whole && used[i + lane];
        for (int64_t t = 0; t < columns; t += width) {
            const int64_t count = columns - t < width ? columns - t : width;
            const T *in = from + i * from_row + t;
            T edge[width][width], *out = to + t * to_row + i;
            vector block[width]; /* only indexed by constants, or it would not stay in registers */
            int64_t in_row = from_row, out_row = to_row;
            if (!whole || count < width) {
                take_edge(height, count, in, from_row, used ? used + i : NULL, edge);
                in = edge[0], in_row = width;
            }
#pragma GCC unroll 16
            for (int lane = 0; lane < width; lane++) block[lane] = *(const vector *)(const void *)(in + lane * in_row);
            transpose_block(block);
            if (count < width) out = edge[0], out_row = width;
#pragma GCC unroll 16
            for (int lane = 0; lane < width; lane++) *(vector *)(void *)(out + lane * out_row) = block[lane];
            for (int64_t lane = 0; count < width && lane < count; lane++)
                memcpy(to + (t + lane) * to_row + i, edge[lane], sizeof *edge);
        }
    }
}

/* What is summed, and what becomes of it: c = Σ ab, c + Σ ab, factor · c + Σ ab, the same but for terms whose a is
 * 0, or −½ Σ (a − b)². */
enum sum_kind { sets, adds, scales, chooses, compares };

/* c = a · b for RAPT_TILE_ROWS rows and one or two vectors of columns. Element (i, t) of a is at i·a_row + t·a_step. */
static inline __attribute__((always_inline)) void tile_product(const int vectors, int64_t k, const T *restrict a,
                                                               int64_t a_row, int64_t a_step, const T *restrict b,
                                                               int64_t b_row, T *restrict c, int64_t c_row,
                                                               const T *factors, enum sum_kind kind)
{
    enum { rows = RAPT_TILE_ROWS };
    vector sums[rows][2];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++) sums[i][j] = (vector){0};
    for (int64_t t = 0; t < k; t++) {
        vector row[2];
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++) row[j] = *(const vector *)(const void *)(b + t * b_row + j * width);
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            const T factor = a[i * a_row + t * a_step];
            if (kind == chooses && factor == 0) continue;
#pragma GCC unroll 2
            for (int j = 0; j < vectors; j++) {
                const vector difference = factor - row[j];
                sums[i][j] += kind == compares ? difference * difference : factor * row[j];
            }
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++) {
            vector *out = (vector *)(void *)(c + i * c_row + j * width);
            if (kind == sets)
                *out = sums[i][j];
            else if (kind == adds)
                *out += sums[i][j];
            else if (kind == chooses && factors[i] == 0)
                *out = sums[i][j];
            else if (kind == scales || kind == chooses)
                *out = *out * factors[i] + sums[i][j];
            else
                *out = sums[i][j] * (T)-0.5;
        }
    }
}

/* The same for any number of vectors of columns; one noinline function for each kind keeps the loops small. */
#define PRODUCT(name, kind)                                                                                            \
    static __attribute__((noinline)) void name(int64_t vectors, int64_t k, const T *restrict a, int64_t a_row,         \
                                               int64_t a_step, const T *restrict b, int64_t b_row, T *restrict c,      \
                                               int64_t c_row, const T *factors)                                        \
    {                                                                                                                  \
        int64_t j = 0;                                                                                                 \
        for (; j + 2 <= vectors; j += 2)                                                                               \
            tile_product(2, k, a, a_row, a_step, b + j * width, b_row, c + j * width, c_row, factors, kind);           \
        if (j < vectors)                                                                                               \
            tile_product(1, k, a, a_row, a_step, b + j * width, b_row, c + j * width, c_row, factors, kind);           \
    }

PRODUCT(product, sets)
PRODUCT(product_added, adds)
PRODUCT(product_scaled, scales)
PRODUCT(product_chosen, chooses)
PRODUCT(log_gaussian, compares)
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
