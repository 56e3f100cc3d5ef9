/* Few rows times columns that are dense along k and come from memory: whole lines of a vector of columns are turned in
 * registers as they arrive, so that none has to stay in a cache, where columns a power of two apart would drive each
 * other out. */

/* few_rows: for which the time is that of reading b; nearest: bytes that stay in the first-level cache (a product here
 * may be a share of a large one, which comes from memory); farthest: that stay in the second-level cache until they are
 * used. */
enum { few_rows = 2 * strided_rows, nearest = 1 << 15, farthest = 1 << 18 };

/* out = Σ ab, or out + Σ ab, for `rows` rows and a vector of columns. Meanwhile those `ahead` elements further are
 * prefetched. */
static inline __attribute__((always_inline)) void far_tile(const int rows, int64_t k, const T *a, const int64_t a_row,
                                                           const int64_t a_step, const T *const *columns, int64_t ahead,
                                                           T *out, int64_t out_row, bool adds)
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
typedef void far_columns_tile(int64_t k, const T *a, int64_t a_row, int64_t a_step, const T *const *columns,
                              int64_t ahead, T *out, int64_t out_row, bool adds);
#define FAR_TILE(rows)                                                                                                 \
    static __attribute__((noinline)) void far_columns_##rows(int64_t k, const T *a, int64_t a_row, int64_t a_step,     \
                                                             const T *const *columns, int64_t ahead, T *out,           \
                                                             int64_t out_row, bool adds)                               \
    {                                                                                                                  \
        far_tile(rows, k, a, a_row, a_step, columns, ahead, out, out_row, adds);                                       \
    }
STRIDED_HEIGHTS(FAR_TILE)
#define NAME(rows) far_columns_##rows,
static far_columns_tile *const far_columns_tiles[strided_rows] = {STRIDED_HEIGHTS(NAME)};
#undef NAME

/* A block of k of a vector of columns, for all rows. */
static void multiply_far_vector(const rapt_product *p, int64_t column, int64_t block, int64_t ahead)
{
    const int64_t done = rapt_block_start(p->k, block), k = rapt_block_start(p->k, block + 1) - done;
    const int64_t panels = (p->m + strided_rows - 1) / strided_rows;
    const bool adds = done > 0 || p->accumulate, turned = p->c_column != 1;
    const T *columns[width], *a = (const T *)(const void *)p->a + done * p->a_column;
    for (int64_t lane = 0; lane < width; lane++)
        columns[lane] = (const T *)(const void *)p->b + (column + lane) * p->b_column + done;
    for (int64_t i = 0; i < panels; i++) {
        const int64_t row = panel_start(p->m, panels, i), height = panel_start(p->m, panels, i + 1) - row;
        T beside[(strided_rows + lane_width) * width], *out = turned ? beside : element_of(p, row, column);
        far_columns_tiles[height - 1](k, a + row * p->a_row, p->a_row, p->a_column, columns, ahead, out,
                                      turned ? width : p->c_row, adds && !turned);
        if (turned) put_turned(p, row, height, column, width, beside, width, adds);
    }
    if (p->bias && block == 0) add_bias(p, 0, p->m, column, width);
}

/* One vector of columns after the other, each from its beginning to its end. Returns how many: whole vectors. */
static int64_t multiply_far_columns(const rapt_product *p)
{
    const int64_t columns = p->n / width * width, group = width * p->b_column;
    const int64_t ahead = group <= farthest / SIZE ? group : farthest / SIZE / width;
    for (int64_t column = 0; column < columns; column += width)
        for (int64_t block = 0; block < rapt_block_count(p->k); block++) multiply_far_vector(p, column, block, ahead);
    return columns;
}
