/* Products that are small or have few rows: without scratch, a is read where it lies, and b too where its rows are
 * dense. */

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

/* out = Σ ab, or out + Σ ab, for `rows` rows and a vector of columns that are dense along k: blocks of them are
 * transposed in registers. Meanwhile those `ahead` elements further are prefetched: the columns that are next. */
static inline __attribute__((always_inline)) void column_tile(const int rows, int64_t k, const T *a,
                                                              const int64_t a_row, const int64_t a_step,
                                                              const T *const *columns, int64_t ahead, T *out,
                                                              int64_t out_row, bool adds)
{
    vector sums[strided_rows];
    int64_t t = 0;
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) sums[i] = (vector){0};
    for (; t + width <= k; t += width) {
        vector block[width];
#pragma GCC unroll 16
        for (int lane = 0; lane < width; lane++) {
            __builtin_prefetch(columns[lane] + t + ahead, 0, 2);
            block[lane] = *(const vector *)(const void *)(columns[lane] + t);
        }
        transpose_block(block);
#pragma GCC unroll 16
        for (int lane = 0; lane < width; lane++, a += a_step)
#pragma GCC unroll 16
            for (int i = 0; i < rows; i++) sums[i] += a[i * a_row] * block[lane];
    }
    for (; t < k; t++, a += a_step) {
        vector row;
        for (int lane = 0; lane < width; lane++) row[lane] = columns[lane][t];
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) sums[i] += a[i * a_row] * row;
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++, out += out_row) {
        vector *to = (vector *)(void *)out;
        if (adds) sums[i] += *to;
        *to = sums[i];
    }
}

/* A function for each height. */
typedef void columns_tile(int64_t k, const T *a, int64_t a_row, int64_t a_step, const T *const *columns, int64_t ahead,
                          T *out, int64_t out_row, bool adds);
#define COLUMNS_TILE(rows)                                                                                             \
    static __attribute__((noinline)) void columns_##rows(int64_t k, const T *a, int64_t a_row, int64_t a_step,         \
                                                         const T *const *columns, int64_t ahead, T *out,               \
                                                         int64_t out_row, bool adds)                                   \
    {                                                                                                                  \
        column_tile(rows, k, a, a_row, a_step, columns, ahead, out, out_row, adds);                                    \
    }
STRIDED_HEIGHTS(COLUMNS_TILE)
#undef NAME
#define NAME(rows) columns_##rows,
static columns_tile *const columns_tiles[strided_rows] = {STRIDED_HEIGHTS(NAME)};

/* A block of k of a panel of columns: rows of b, or columns that are dense along k. */
typedef struct panel_of_b {
    int64_t column, count, done, k;
    const T *b;
    int64_t b_row, skipped;  /* the last panel is read from some columns before it, which fill its vectors */
    const T *columns[width]; /* or NULL first */
    int64_t ahead;
} panel_of_b;

/* That panel, for all rows. */
static void multiply_panel(const rapt_product *p, const panel_of_b *from)
{
    const T *a = (const T *)(const void *)p->a + from->done * p->a_column;
    const int64_t panels = (p->m + strided_rows - 1) / strided_rows, column = from->column, count = from->count;
    const bool adds = from->done > 0 || p->accumulate, columns = from->columns[0] != NULL;
    const bool whole = columns ? p->c_column == 1 && count == width : is_whole(p, count);
    T beside[strided_rows * panel + width];
    for (int64_t i = 0; i < panels; i++) {
        const int64_t row = panel_start(p->m, panels, i), height = panel_start(p->m, panels, i + 1) - row;
        const T *rows = a + row * p->a_row;
        T *out = whole ? element_of(p, row, column) : beside;
        const int64_t out_row = whole ? p->c_row : panel;
        if (columns)
            columns_tiles[height - 1](from->k, rows, p->a_row, p->a_column, from->columns, from->ahead, out, out_row,
                                      whole && adds);
        else
            strided_tiles[count > width][height - 1](from->k, rows, p->a_row, p->a_column, from->b, from->b_row, out,
                                                     out_row, whole && adds);
        if (!whole) put(p, row, height, column, count, beside + from->skipped, adds);
        if (p->bias && from->done == 0) add_bias(p, row, height, column, count);
    }
}

/* Columns that are dense along k are read one group after the other, each from its beginning to its end. */
static void multiply_dense_columns(const rapt_product *p)
{
    enum { farthest = 1 << 18 }; /* bytes of a group: the next stays in the second-level cache until it is used */
    const int64_t group = width * p->b_column;
    for (int64_t column = 0; column < p->n; column += width) {
        panel_of_b b = {.column = column, .count = smaller_of(width, p->n - column)};
        b.ahead = group <= farthest / SIZE ? group : farthest / SIZE / width;
        for (int64_t lane = 0; lane < width; lane++)
            b.columns[lane] = (const T *)(const void *)p->b + (column + smaller_of(lane, b.count - 1)) * p->b_column;
        for (int64_t block = 0; block < rapt_block_count(p->k); block++, b.done += b.k) {
            b.k = rapt_block_start(p->k, block + 1) - b.done;
            multiply_panel(p, &b);
            for (int64_t lane = 0; lane < width; lane++) b.columns[lane] += b.k;
        }
    }
}

static void multiply_direct(const rapt_product *p)
{
    enum { tiny = 128 };
    if (p->m * p->n * p->k <= tiny) {
        multiply_tiny(p);
        return;
    }
    if (p->b_row == 1 && p->b_column != 1 && p->k >= width) {
        multiply_dense_columns(p);
        return;
    }
    T copy[RAPT_BLOCK_DEPTH * panel];
    for (int64_t block = 0; block < rapt_block_count(p->k); block++) {
        panel_of_b b = {.done = rapt_block_start(p->k, block)};
        b.k = rapt_block_start(p->k, block + 1) - b.done;
        for (b.column = 0; b.column < p->n; b.column += b.count) {
            const T *from = (const T *)(const void *)p->b + b.done * p->b_row + b.column * p->b_column;
            const int64_t rest = p->n - b.column;
            b.count = rest >= panel ? panel : rest > width && p->n < panel && p->b_column == 1 ? width : rest;
            const int64_t wide = panel_width(b.count);
            const bool reads_b = p->b_column == 1 && p->n >= wide;
            b.skipped = reads_b ? wide - b.count : 0;
            if (!reads_b) pack_columns(b.count, b.k, from, p->b_row, p->b_column, copy);
            b.b = reads_b ? from - b.skipped : copy;
            b.b_row = reads_b ? p->b_row : wide;
            multiply_panel(p, &b);
        }
    }
}
