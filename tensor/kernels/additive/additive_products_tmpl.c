/* Products of a tile of weights or scores and rows of vectors. Part of additive_tmpl.c. */

/* The tile of out at row r and column c. */
#define PRODUCT_TILE(rows, vectors, whole, terms)                                                                      \
    tile((tile_kind){rows, vectors, false, whole, terms}, count, left + r * left_row, left_row, left_step, right + c,  \
         right_row, out + r * out_row + c, out_row, smaller_of(columns - c, vectors * width), out + r * out_row + c,   \
         out_row, factors ? factors + r : NULL, false, NULL)

/* out[r][c] = factor_r · out[r][c] + Σ_i left[r][i] · right[i][c]; factors NULL: 1. */
static void product(int64_t rows, int64_t columns, int64_t count, const T *left, int64_t left_row, int64_t left_step,
                    const T *right, int64_t right_row, T *out, int64_t out_row, const T *factors)
{
    enum { high = 4, wide = product_columns * width };
    int64_t c = 0;
    for (; c + wide <= columns; c += wide) {
        int64_t r = 0;
        for (; r + high <= rows; r += high) PRODUCT_TILE(high, product_columns, true, all_products);
        for (; r < rows; r++) PRODUCT_TILE(1, product_columns, true, all_products);
    }
    for (; c < columns; c += width) {
        int64_t r = 0;
        for (; r + high <= rows; r += high) PRODUCT_TILE(high, 1, false, all_products);
        for (; r < rows; r++) PRODUCT_TILE(1, 1, false, all_products);
    }
}

/* The same where what is 0 in left takes nothing. */
static void product_chosen(int64_t rows, int64_t columns, int64_t count, const T *left, int64_t left_row,
                           int64_t left_step, const T *right, int64_t right_row, T *out, int64_t out_row,
                           const T *factors)
{
    for (int64_t c = 0; c < columns; c += width)
        for (int64_t r = 0; r < rows; r++) PRODUCT_TILE(1, 1, false, chosen_products);
}
#undef PRODUCT_TILE

/* out[r][k] = Σ_c left[r][c] · right[k][c] for R rows of each. Both are dense along the sum, so that vectors are parts
 * of it, and no register tile with its columns side by side. */
#define DOT_BLOCK(name, R, C)                                                                                          \
    static void name(int64_t size, const T *left, int64_t left_row, const T *right, int64_t right_row, T *out,         \
                     int64_t out_row)                                                                                  \
    {                                                                                                                  \
        vector sum[R][C] = {0};                                                                                        \
        int64_t i = 0;                                                                                                 \
        for (; i + width <= size; i += width) {                                                                        \
            vector part[C];                                                                                            \
            for (int c = 0; c < C; c++) part[c] = load(right + c * right_row + i);                                     \
            for (int r = 0; r < R; r++) {                                                                              \
                const vector l = load(left + r * left_row + i);                                                        \
                for (int c = 0; c < C; c++) sum[r][c] += l * part[c];                                                  \
            }                                                                                                          \
        }                                                                                                              \
        for (int r = 0; r < R; r++) {                                                                                  \
            for (int c = 0; c < C; c++) {                                                                              \
                T rest = sum_of_lanes(sum[r][c]);                                                                      \
                for (int64_t k = i; k < size; k++) rest += left[r * left_row + k] * right[c * right_row + k];          \
                out[r * out_row + c] = rest;                                                                           \
            }                                                                                                          \
        }                                                                                                              \
    }

DOT_BLOCK(dot_block, score_rows, score_columns)
DOT_BLOCK(dot_column, score_rows, 1)
DOT_BLOCK(dot_row, 1, score_columns)
DOT_BLOCK(dot_pair, 1, 1)
#undef DOT_BLOCK

static void dots(int64_t rows, int64_t columns, int64_t size, const T *left, int64_t left_row, const T *right,
                 int64_t right_row, T *out, int64_t out_row)
{
    for (int64_t r = 0; r < rows;) {
        const bool is_block = r + score_rows <= rows;
        const T *from = left + r * left_row;
        T *to = out + r * out_row;
        int64_t c = 0;
        for (; c + score_columns <= columns; c += score_columns)
            (is_block ? dot_block : dot_row)(size, from, left_row, right + c * right_row, right_row, to + c, out_row);
        for (; c < columns; c++)
            (is_block ? dot_column : dot_pair)(size, from, left_row, right + c * right_row, right_row, to + c, out_row);
        r += is_block ? score_rows : 1;
    }
}
