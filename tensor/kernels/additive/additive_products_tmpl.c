/* Products of a tile of weights or scores and rows of vectors. Part of additive_tmpl.c. */

/* out[r][c] = factor_r · out[r][c] + Σ_i left[r][i] · right[i][c] for R rows and C vectors of columns; factors NULL: 1.
 * The factor 0 forgets what was there. */
#define PRODUCT_BLOCK(name, R, C)                                                                                      \
    static inline __attribute__((always_inline)) void name(int64_t count, const T *left, int64_t left_row,             \
                                                           int64_t left_step, const T *right, int64_t right_row,       \
                                                           T *out, int64_t out_row, const T *factors)                  \
    {                                                                                                                  \
        vector sum[R][C] = {0};                                                                                        \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            vector part[C];                                                                                            \
            for (int c = 0; c < C; c++) part[c] = load(right + i * right_row + c * width);                             \
            for (int r = 0; r < R; r++)                                                                                \
                for (int c = 0; c < C; c++) sum[r][c] += left[r * left_row + i * left_step] * part[c];                 \
        }                                                                                                              \
        for (int r = 0; r < R; r++) {                                                                                  \
            for (int c = 0; c < C; c++) {                                                                              \
                T *to = out + r * out_row + c * width;                                                                 \
                if (!factors) sum[r][c] += load(to);                                                                   \
                if (factors && factors[r] != 0) sum[r][c] += factors[r] * load(to);                                    \
                store(to, sum[r][c]);                                                                                  \
            }                                                                                                          \
        }                                                                                                              \
    }

PRODUCT_BLOCK(product_block, 4, product_columns)
PRODUCT_BLOCK(product_row, 1, product_columns)
PRODUCT_BLOCK(narrow_block, 4, 1)
PRODUCT_BLOCK(narrow_row, 1, 1)
#undef PRODUCT_BLOCK

/* No more columns than a vector has elements. chooses: what is 0 in left takes nothing, even of what is not finite. */
static void product_rest(int64_t rows, int64_t columns, int64_t count, const T *left, int64_t left_row,
                         int64_t left_step, const T *right, int64_t right_row, T *out, int64_t out_row,
                         const T *factors, bool chooses)
{
    for (int64_t r = 0; r < rows; r++) {
        T sum[width] = {0};
        for (int64_t i = 0; i < count; i++)
            for (int64_t c = 0; c < columns && !(chooses && left[r * left_row + i * left_step] == 0); c++)
                sum[c] += left[r * left_row + i * left_step] * right[i * right_row + c];
        for (int64_t c = 0; c < columns; c++) {
            T *to = out + r * out_row + c;
            *to = sum[c] + (!factors ? *to : factors[r] != 0 ? factors[r] * *to : 0);
        }
    }
}

static void product(int64_t rows, int64_t columns, int64_t count, const T *left, int64_t left_row, int64_t left_step,
                    const T *right, int64_t right_row, T *out, int64_t out_row, const T *factors)
{
    enum { wide = product_columns * width };
    int64_t c = 0;
    for (; c + width <= columns;) {
        const bool is_wide = c + wide <= columns;
        int64_t r = 0;
        for (; r < rows; r += r + 4 <= rows ? 4 : 1) {
            const T *from = left + r * left_row, *factor = factors ? factors + r : NULL;
            T *to = out + r * out_row + c;
            if (is_wide && r + 4 <= rows)
                product_block(count, from, left_row, left_step, right + c, right_row, to, out_row, factor);
            else if (is_wide)
                product_row(count, from, left_row, left_step, right + c, right_row, to, out_row, factor);
            else if (r + 4 <= rows)
                narrow_block(count, from, left_row, left_step, right + c, right_row, to, out_row, factor);
            else
                narrow_row(count, from, left_row, left_step, right + c, right_row, to, out_row, factor);
        }
        c += is_wide ? wide : width;
    }
    if (c < columns)
        product_rest(rows, columns - c, count, left, left_row, left_step, right + c, right_row, out + c, out_row,
                     factors, false);
}

/* The same where what is 0 in left takes nothing. */
static void product_chosen(int64_t rows, int64_t columns, int64_t count, const T *left, int64_t left_row,
                           int64_t left_step, const T *right, int64_t right_row, T *out, int64_t out_row,
                           const T *factors)
{
    for (int64_t c = 0; c < columns; c += width)
        product_rest(rows, columns - c < width ? columns - c : width, count, left, left_row, left_step, right + c,
                     right_row, out + c, out_row, factors, true);
}

/* out[r][k] = Σ_c left[r][c] · right[k][c] for R rows of each */
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
