/* Template of additive.c, included once for each type T: products of a tile of weights or scores and rows of vectors. */

/* out[r][c] = factor_r · out[r][c] + Σ_i left[r][i] · right[i][c] for R rows and C vectors of columns; factors NULL: 1. The
 * factor 0 forgets what was there. */
#define PRODUCT_BLOCK(name, R, C)                                                                                      \
    static inline __attribute__((always_inline)) void TYPED(                                                           \
        name)(int64_t count, const T *left, int64_t left_row, int64_t left_step, const T *right, int64_t right_row,    \
              T *out, int64_t out_row, const T *factors)                                                               \
    {                                                                                                                  \
        TYPED(vector) sum[R][C] = {0};                                                                                 \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            TYPED(vector) part[C];                                                                                     \
            for (int c = 0; c < C; c++) part[c] = TYPED(load)(right + i * right_row + c * TYPED(width));               \
            for (int r = 0; r < R; r++)                                                                                \
                for (int c = 0; c < C; c++) sum[r][c] += left[r * left_row + i * left_step] * part[c];                 \
        }                                                                                                              \
        for (int r = 0; r < R; r++) {                                                                                  \
            for (int c = 0; c < C; c++) {                                                                              \
                T *to = out + r * out_row + c * TYPED(width);                                                          \
                if (!factors) sum[r][c] += TYPED(load)(to);                                                            \
                if (factors && factors[r] != 0) sum[r][c] += factors[r] * TYPED(load)(to);                             \
                TYPED(store)(to, sum[r][c]);                                                                           \
            }                                                                                                          \
        }                                                                                                              \
    }

PRODUCT_BLOCK(product_block, 4, product_columns)
PRODUCT_BLOCK(product_row, 1, product_columns)
PRODUCT_BLOCK(narrow_block, 4, 1)
PRODUCT_BLOCK(narrow_row, 1, 1)
#undef PRODUCT_BLOCK

/* No more columns than a vector has elements. chooses: what is 0 in left takes nothing, even of what is not finite. */
static void TYPED(product_rest)(int64_t rows, int64_t columns, int64_t count, const T *left, int64_t left_row,
                                int64_t left_step, const T *right, int64_t right_row, T *out, int64_t out_row,
                                const T *factors, bool chooses)
{
    for (int64_t r = 0; r < rows; r++) {
        T sum[TYPED(width)] = {0};
        for (int64_t i = 0; i < count; i++)
            for (int64_t c = 0; c < columns && !(chooses && left[r * left_row + i * left_step] == 0); c++)
                sum[c] += left[r * left_row + i * left_step] * right[i * right_row + c];
        for (int64_t c = 0; c < columns; c++) {
            T *to = out + r * out_row + c;
            *to = sum[c] + (!factors ? *to : factors[r] != 0 ? factors[r] * *to : 0);
        }
    }
}

static void TYPED(product)(int64_t rows, int64_t columns, int64_t count, const T *left, int64_t left_row,
                           int64_t left_step, const T *right, int64_t right_row, T *out, int64_t out_row,
                           const T *factors)
{
    enum { wide = product_columns * TYPED(width) };
    int64_t c = 0;
    for (; c + TYPED(width) <= columns;) {
        const bool is_wide = c + wide <= columns;
        int64_t r = 0;
        for (; r < rows; r += r + 4 <= rows ? 4 : 1) {
            const T *from = left + r * left_row, *factor = factors ? factors + r : NULL;
            T *to = out + r * out_row + c;
            if (is_wide && r + 4 <= rows)
                TYPED(product_block)(count, from, left_row, left_step, right + c, right_row, to, out_row, factor);
            else if (is_wide)
                TYPED(product_row)(count, from, left_row, left_step, right + c, right_row, to, out_row, factor);
            else if (r + 4 <= rows)
                TYPED(narrow_block)(count, from, left_row, left_step, right + c, right_row, to, out_row, factor);
            else
                TYPED(narrow_row)(count, from, left_row, left_step, right + c, right_row, to, out_row, factor);
        }
        c += is_wide ? wide : TYPED(width);
    }
    if (c < columns) TYPED(product_rest)
    (rows, columns - c, count, left, left_row, left_step, right + c, right_row, out + c, out_row, factors, false);
}

/* The same where what is 0 in left takes nothing. */
static void TYPED(product_chosen)(int64_t rows, int64_t columns, int64_t count, const T *left, int64_t left_row,
                                  int64_t left_step, const T *right, int64_t right_row, T *out, int64_t out_row,
                                  const T *factors)
{
    for (int64_t c = 0; c < columns; c += TYPED(width)) TYPED(product_rest)
    (rows, columns - c < TYPED(width) ? columns - c : TYPED(width), count, left, left_row, left_step, right + c,
     right_row, out + c, out_row, factors, true);
}

/* out[r][k] = Σ_c left[r][c] · right[k][c] for R rows of each */
#define DOT_BLOCK(name, R, C)                                                                                          \
    static void TYPED(name)(int64_t size, const T *left, int64_t left_row, const T *right, int64_t right_row, T *out,  \
                            int64_t out_row)                                                                           \
    {                                                                                                                  \
        TYPED(vector) sum[R][C] = {0};                                                                                 \
        int64_t i = 0;                                                                                                 \
        for (; i + TYPED(width) <= size; i += TYPED(width)) {                                                          \
            TYPED(vector) part[C];                                                                                     \
            for (int c = 0; c < C; c++) part[c] = TYPED(load)(right + c * right_row + i);                              \
            for (int r = 0; r < R; r++) {                                                                              \
                const TYPED(vector) l = TYPED(load)(left + r * left_row + i);                                          \
                for (int c = 0; c < C; c++) sum[r][c] += l * part[c];                                                  \
            }                                                                                                          \
        }                                                                                                              \
        for (int r = 0; r < R; r++) {                                                                                  \
            for (int c = 0; c < C; c++) {                                                                              \
                T rest = TYPED(total)(sum[r][c]);                                                                      \
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

static void TYPED(dots)(int64_t rows, int64_t columns, int64_t size, const T *left, int64_t left_row, const T *right,
                        int64_t right_row, T *out, int64_t out_row)
{
    for (int64_t r = 0; r < rows;) {
        const bool is_block = r + score_rows <= rows;
        const T *from = left + r * left_row;
        T *to = out + r * out_row;
        int64_t c = 0;
        for (; c + score_columns <= columns; c += score_columns)
            (is_block ? TYPED(dot_block) : TYPED(dot_row))(size, from, left_row, right + c * right_row, right_row,
                                                           to + c, out_row);
        for (; c < columns; c++)
            (is_block ? TYPED(dot_column) : TYPED(dot_pair))(size, from, left_row, right + c * right_row, right_row,
                                                             to + c, out_row);
        r += is_block ? score_rows : 1;
    }
}
