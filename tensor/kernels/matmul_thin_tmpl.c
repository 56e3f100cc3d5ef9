/* Products with sums of a few terms, where the time is that of writing c: its rows are written from end to end, and
 * what they need of a stays in registers. Some at a time share b, where c stays in the first-level cache; elsewhere one
 * after the other, for a single stream of stores takes half the time of several. */

enum { most_thin_rows = 4 };

/* For so many rows at a time are there registers. */
#if defined __AVX512F__
#define THIN_ROWS(k) ((k) <= 4 ? 4 : 2)
#else
#define THIN_ROWS(k) ((k) <= 2 ? 4 : (k) <= 4 ? 2 : 1)
#endif

/* out = Σ ab, or out + Σ ab, for `rows` rows and the first lanes of a vector of columns. */
static inline __attribute__((always_inline)) void thin_vector(const int rows, const int k,
                                                              const vector factors[][RAPT_THIN_TERMS], const bool whole,
                                                              some_lanes lanes, const T *b, int64_t b_row, T *out,
                                                              int64_t out_row, bool adds)
{
    vector row[RAPT_THIN_TERMS];
#pragma GCC unroll 8
    for (int t = 0; t < k; t++, b += b_row) row[t] = whole ? *(const vector *)(const void *)b : load_part(b, lanes);
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++, out += out_row) {
        vector sum = {0};
#pragma GCC unroll 8
        for (int t = 0; t < k; t++) sum += factors[i][t] * row[t];
        if (adds) sum += whole ? *(const vector *)(const void *)out : load_part(out, lanes);
        if (whole)
            *(vector *)(void *)out = sum;
        else
            store_part(out, lanes, sum);
    }
}

/* The same for `count` columns. */
static inline __attribute__((always_inline)) void thin_rows(const int rows, const int k, const T *a, int64_t a_row,
                                                            int64_t a_step, const T *b, int64_t b_row, T *out,
                                                            int64_t out_row, int64_t count, bool adds)
{
    vector factors[most_thin_rows][RAPT_THIN_TERMS]; /* an array of another size would stay in memory */
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
        for (int t = 0; t < k; t++) {
            factors[i][t] = a[i * a_row + t * a_step] - (vector){0};
            KEEP_IN_REGISTER(factors[i][t]);
        }
    int64_t j = 0;
    for (; j + width <= count; j += width)
        thin_vector(rows, k, factors, true, first_lanes(width), b + j, b_row, out + j, out_row, adds);
    if (j < count) thin_vector(rows, k, factors, false, first_lanes(count - j), b + j, b_row, out + j, out_row, adds);
}

typedef void thin_product(int64_t m, const T *a, int64_t a_row, int64_t a_step, const T *b, int64_t b_row, T *out,
                          int64_t out_row, int64_t count, bool adds, bool streams);
#define THIN(k)                                                                                                        \
    static __attribute__((noinline)) void thin_##k(int64_t m, const T *a, int64_t a_row, int64_t a_step, const T *b,   \
                                                   int64_t b_row, T *out, int64_t out_row, int64_t count, bool adds,   \
                                                   bool streams)                                                       \
    {                                                                                                                  \
        const int rows = THIN_ROWS(k);                                                                                 \
        for (; !streams && m >= rows; m -= rows, a += rows * a_row, out += rows * out_row)                             \
            thin_rows(rows, k, a, a_row, a_step, b, b_row, out, out_row, count, adds);                                 \
        for (; m > 0; m--, a += a_row, out += out_row)                                                                 \
            thin_rows(1, k, a, a_row, a_step, b, b_row, out, out_row, count, adds);                                    \
    }
THIN(1)
THIN(2)
THIN(3)
THIN(4)
THIN(5)
THIN(6)
THIN(7)
THIN(8)
static thin_product *const thin_products[RAPT_THIN_TERMS] = {thin_1, thin_2, thin_3, thin_4,
                                                             thin_5, thin_6, thin_7, thin_8};

/* Of short rows, what is kept of a would be used too seldom. */
static inline bool is_thin(int64_t n, int64_t k, int64_t c_column)
{
    return k <= RAPT_THIN_TERMS && n >= width && n >= 8 * k && c_column == 1;
}

/* to[t][j] = b[t][j] for columns that are not dense side by side. */
static void pack_thin(int64_t count, int64_t k, const T *b, int64_t b_row, int64_t b_column, T *to, int64_t to_row)
{
    for (int64_t t = 0; t < k; t++, b += b_row, to += to_row)
        for (int64_t j = 0; j < count; j++) to[j] = b[j * b_column];
}

/* As many columns at a time as stay in the first-level cache while the rows go by. */
static void multiply_thin(const rapt_product *p)
{
    enum { near_columns = nearest / 2 / SIZE / RAPT_THIN_TERMS / width * width };
    const bool streams = p->m * p->n > nearest / SIZE * 5 / 4;
    T copy[RAPT_THIN_TERMS * near_columns];
    for (int64_t column = 0, count; column < p->n; column += count) {
        const T *b = (const T *)(const void *)p->b + column * p->b_column;
        int64_t b_row = p->b_row;
        count = smaller_of(p->n - column, near_columns);
        if (p->b_column != 1) {
            pack_thin(count, p->k, b, p->b_row, p->b_column, copy, near_columns);
            b = copy;
            b_row = near_columns;
        }
        thin_products[p->k - 1](p->m, (const T *)(const void *)p->a, p->a_row, p->a_column, b, b_row,
                                element_of(p, 0, column), p->c_row, count, p->accumulate, streams);
        if (p->bias) add_bias(p, 0, p->m, column, count);
    }
}
