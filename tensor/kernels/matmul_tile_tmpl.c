/* The register tile of matrix products: sums of a few rows and vectors of columns that stay in registers over a
 * block of k. */

/* As many rows as the registers hold beside a panel of b and one element of a. */
#if defined __AVX512F__
enum { tile_rows = 14, panel_vectors = 2 };
#elif defined __AVX__
enum { tile_rows = 6, panel_vectors = 2 };
#elif defined __aarch64__
enum { tile_rows = 6, panel_vectors = 4 };
#else
enum { tile_rows = 2, panel_vectors = 4 };
#endif
enum { panel = panel_vectors * width, widest_tile = 8, highest_tile = 14 }; /* columns; vectors; rows */

/* Keeps an element of a in a register until here: gcc would read it anew for each product, or give its register to a
 * sum. */
#if defined __AVX512F__
#define KEEP_IN_REGISTER(vector) __asm__ volatile("" : "+v"(vector))
#elif defined __x86_64__
#define KEEP_IN_REGISTER(vector) __asm__ volatile("" : "+x"(vector))
#elif defined __aarch64__
#define KEEP_IN_REGISTER(vector) __asm__ volatile("" : "+w"(vector))
#else
#define KEEP_IN_REGISTER(vector) ((void)0)
#endif

/* So many rows of b ahead are they prefetched: what the second-level cache takes to answer. */
enum { rows_ahead = 12 };

/* Bytes: of a cache's line, and of a row so long that the processor does not see the next one come. */
enum { line = 64, far_row = 512 };

/* Prefetches so many bytes, to be written or only read. */
static inline __attribute__((always_inline)) void prefetch(const void *from, const int bytes, const int writes)
{
#pragma GCC unroll 4
    for (int done = 0; done < bytes; done += line)
        if (writes)
            __builtin_prefetch((const char *)from + done, 1);
        else
            __builtin_prefetch((const char *)from + done, 0);
}

/* Keeps gcc from working out an address of its own for each row or column, for which there are no registers. */
#define HIDE(number) __asm__("" : "+r"(number))

/* The element of each row that comes next: of every fourth row where it is, of those between how far. */
typedef struct row_elements {
    const char *at[(highest_tile + 3) / 4];
    int64_t row, row_3; /* bytes, once and three times */
} row_elements;

static inline __attribute__((always_inline)) row_elements row_elements_of(const int rows, const T *a, int64_t a_row)
{
    row_elements e = {.row = a_row * SIZE, .row_3 = 3 * a_row * SIZE};
    HIDE(e.row);
    HIDE(e.row_3);
#pragma GCC unroll 4
    for (int i = 0; i < rows; i += 4) {
        e.at[i / 4] = (const char *)(a + i * a_row);
        HIDE(e.at[i / 4]);
    }
    return e;
}

static inline __attribute__((always_inline)) T row_element(const row_elements *e, const int i)
{
    return *(const T *)(const void *)(e->at[i / 4] + (i % 4 == 3 ? e->row_3 : i % 4 * e->row));
}

static inline __attribute__((always_inline)) void next_elements(row_elements *e, const int rows, int64_t a_step)
{
#pragma GCC unroll 4
    for (int i = 0; i < rows; i += 4) e->at[i / 4] += a_step * SIZE;
}

typedef vector tile_sums[highest_tile][widest_tile];

/* What a tile multiplies: element (i, t) of a is at i·a_row + t·a_step. Rows of b are `padded` to whole vectors, or
 * nothing is read behind the last, which has so many lanes. */
static inline __attribute__((always_inline)) void add_to_tile(const int rows, const int vectors, const bool padded,
                                                              const bool prefetches, int64_t k, const T *restrict a,
                                                              const int64_t a_row, const int64_t a_step,
                                                              const T *restrict b, const int64_t b_row, const part rest,
                                                              tile_sums sums)
{
    const int last = (vectors - 1) * width;
    row_elements elements = row_elements_of(rows, a, a_row);
#pragma GCC unroll 2
    for (int64_t t = 0; t < k; t++, a += padded ? rows : 0, b += b_row) {
        vector row[widest_tile];
        if (prefetches) prefetch(b + rows_ahead * b_row, vectors * RAPT_VECTOR_BYTES, 0);
        if (padded) prefetch(a + rows_ahead * rows, 1, 0);
#pragma GCC unroll 8
        for (int j = 0; j < vectors; j++)
            row[j] =
                padded || j * width < last ? *(const vector *)(const void *)(b + j * width) : load_part(b + last, rest);
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            vector factor = (padded ? a[i] : row_element(&elements, i)) - (vector){0};
            if (vectors > 1) KEEP_IN_REGISTER(factor);
#pragma GCC unroll 8
            for (int j = 0; j < vectors; j++) sums[i][j] += factor * row[j];
            if (vectors > 1) KEEP_IN_REGISTER(factor);
        }
        if (!padded) next_elements(&elements, rows, a_step);
    }
}

/* out = Σ ab for `rows` rows and the first `count` of `vectors` vectors of columns, all of them where they are `whole`;
 * to which is added what is `before`: out itself, a bias, or nothing (NULL). */
static inline __attribute__((always_inline)) void tile(const int rows, const int vectors, const bool padded,
                                                       const bool whole, int64_t k, const T *restrict a,
                                                       const int64_t a_row, const int64_t a_step, const T *restrict b,
                                                       const int64_t b_row, T *out, int64_t out_row, int64_t count,
                                                       const T *before, int64_t before_row, bool prefetches)
{
    tile_sums sums;
    const part rest = part_of(padded ? 0 : count - (vectors - 1) * width);
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
        for (int j = 0; j < vectors; j++) sums[i][j] = (vector){0};
    if (padded) {
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) prefetch(out + i * out_row, vectors * RAPT_VECTOR_BYTES, 1);
        add_to_tile(rows, vectors, true, true, k, a, a_row, a_step, b, b_row, rest, sums);
    } else { /* not what lies behind the block, which may never be read */
        const int64_t first = prefetches && k > rows_ahead ? k - rows_ahead : 0;
        if (first > 0) add_to_tile(rows, vectors, false, true, first, a, a_row, a_step, b, b_row, rest, sums);
        add_to_tile(rows, vectors, false, false, k - first, a + first * a_step, a_row, a_step, b + first * b_row, b_row,
                    rest, sums);
    }
    if (whole || (!padded && count == vectors * width)) {
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
            for (int j = 0; j < vectors; j++) {
                if (before) sums[i][j] += *(const vector *)(const void *)(before + i * before_row + j * width);
                *(vector *)(void *)(out + i * out_row + j * width) = sums[i][j];
            }
        return;
    }
#pragma GCC unroll 8
    for (int j = 0; j < vectors; j++) {
        const int64_t left = count - j * width;
        const part lanes = part_of(left < 0 ? 0 : left < width ? left : width);
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            if (before) sums[i][j] += load_part(before + i * before_row + j * width, lanes);
            store_part(out + i * out_row + j * width, lanes, sums[i][j]);
        }
    }
}

#ifdef RAPT_HALF_VECTORS
/* The same for up to half a vector of columns. */
static inline __attribute__((always_inline)) void half_tile(const int rows, int64_t k, const T *restrict a,
                                                            const int64_t a_row, const int64_t a_step,
                                                            const T *restrict b, const int64_t b_row, T *restrict out,
                                                            int64_t out_row, int64_t count, bool adds)
{
    half_vector sums[highest_tile];
    const part lanes = part_of(count);
    row_elements elements = row_elements_of(rows, a, a_row);
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) sums[i] = (half_vector){0};
#pragma GCC unroll 2
    for (int64_t t = 0; t < k; t++, b += b_row) {
        const half_vector row = load_half_part(b, lanes);
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            sums[i] += row_element(&elements, i) * row;
        }
        next_elements(&elements, rows, a_step);
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++, out += out_row) {
        if (adds) sums[i] += load_half_part(out, lanes);
        store_half_part(out, lanes, sums[i]);
    }
}
#endif

/* A function for each height and width: `packed` ones read a and b as matmul_pack_tmpl.c lays them down, `strided` ones
 * go down a column of tiles. */
typedef void packed_tile(int64_t k, const T *a, const T *b, T *out, int64_t out_row, int64_t count, const T *before,
                         int64_t before_row);
typedef void strided_tile(int64_t tiles, int64_t k, const T *a, int64_t a_row, int64_t a_step, const T *b,
                          int64_t b_row, T *out, int64_t out_row, int64_t count, bool adds);

#define PACKED_TILE(name, rows, vectors, whole)                                                                        \
    static __attribute__((noinline)) void name(int64_t k, const T *a, const T *b, T *out, int64_t out_row,             \
                                               int64_t count, const T *before, int64_t before_row)                     \
    {                                                                                                                  \
        tile(rows, vectors, true, whole, k, a, 1, rows, b, vectors *width, out, out_row, count, before, before_row,    \
             true);                                                                                                    \
    }
#define STRIDED_TILE(name, rows, vectors)                                                                              \
    static __attribute__((noinline)) void name(int64_t tiles, int64_t k, const T *a, int64_t a_row, int64_t a_step,    \
                                               const T *b, int64_t b_row, T *out, int64_t out_row, int64_t count,      \
                                               bool adds)                                                              \
    {                                                                                                                  \
        bool prefetches = b_row * SIZE >= far_row;                                                                     \
        for (; tiles > 0; tiles--, a += rows * a_row, out += rows * out_row, prefetches = false)                       \
            tile(rows, vectors, false, false, k, a, a_row, a_step, b, b_row, out, out_row, count, adds ? out : NULL,   \
                 out_row, prefetches);                                                                                 \
    }
#ifdef RAPT_HALF_VECTORS
#define HALF_TILE(rows)                                                                                                \
    static __attribute__((noinline)) void half_##rows(int64_t tiles, int64_t k, const T *a, int64_t a_row,             \
                                                      int64_t a_step, const T *b, int64_t b_row, T *out,               \
                                                      int64_t out_row, int64_t count, bool adds)                       \
    {                                                                                                                  \
        for (; tiles > 0; tiles--, a += rows * a_row, out += rows * out_row)                                           \
            half_tile(rows, k, a, a_row, a_step, b, b_row, out, out_row, count, adds);                                 \
    }
#endif

#define TO_2(X)                                                                                                        \
    X(1)                                                                                                               \
    X(2)
#define TO_4(X)                                                                                                        \
    TO_2(X) X(3)                                                                                                       \
    X(4)
#define TO_6(X)                                                                                                        \
    TO_4(X) X(5)                                                                                                       \
    X(6)
#define TO_8(X)                                                                                                        \
    TO_6(X) X(7)                                                                                                       \
    X(8)
#define TO_12(X)                                                                                                       \
    TO_8(X) X(9)                                                                                                       \
    X(10)                                                                                                              \
    X(11)                                                                                                              \
    X(12)
#define TO_14(X)                                                                                                       \
    TO_12(X) X(13)                                                                                                     \
    X(14)
#if defined __AVX512F__
#define PACKED_HEIGHTS TO_14
#define STRIDED_HEIGHTS TO_6
#define NARROW_HEIGHTS TO_12
#define WIDE_HEIGHTS TO_6
enum { strided_rows = 6, narrow_rows = 12, wide_rows = 6 };
#elif defined __AVX__ || defined __aarch64__
#define PACKED_HEIGHTS TO_6
#define STRIDED_HEIGHTS TO_4
#define NARROW_HEIGHTS TO_8
#define WIDE_HEIGHTS TO_2
enum { strided_rows = 4, narrow_rows = 8, wide_rows = 2 };
#else
#define PACKED_HEIGHTS TO_2
#define STRIDED_HEIGHTS TO_2
#define NARROW_HEIGHTS TO_2
#define WIDE_HEIGHTS TO_2
enum { strided_rows = 2, narrow_rows = 2, wide_rows = 2 };
#endif
/* Where c lies in columns, whole lanes of rows are turned. */
#if defined __AVX__ || defined __aarch64__
enum { turned_rows = 4, turned_narrow_rows = 8 };
#else
enum { turned_rows = strided_rows, turned_narrow_rows = narrow_rows };
#endif

/* Of whole panels, which are most and keep their registers for sums, and of a part: up to a vector or more. */
#define ALL_PACKED(rows)                                                                                               \
    PACKED_TILE(packed_##rows, rows, panel_vectors, true)                                                              \
    PACKED_TILE(packed_##rows##_part, rows, panel_vectors, false)                                                      \
    PACKED_TILE(packed_##rows##_narrow, rows, 1, false)
#define NARROW_STRIDED(rows) STRIDED_TILE(strided_##rows##_by_1, rows, 1)
#define WHOLE_STRIDED(rows) STRIDED_TILE(strided_##rows##_by_2, rows, 2)
#define WIDE_STRIDED(rows) STRIDED_TILE(strided_##rows##_by_4, rows, 4)
PACKED_HEIGHTS(ALL_PACKED)
NARROW_HEIGHTS(NARROW_STRIDED)
STRIDED_HEIGHTS(WHOLE_STRIDED)
WIDE_HEIGHTS(WIDE_STRIDED)
STRIDED_TILE(strided_1_by_8, 1, 8)
#ifdef RAPT_HALF_VECTORS
NARROW_HEIGHTS(HALF_TILE)
#endif

#define NAME(rows) packed_##rows,
#define PART_NAME(rows) packed_##rows##_part,
#define NARROW_NAME(rows) packed_##rows##_narrow,
static packed_tile *const packed_tiles[3][tile_rows] = {{PACKED_HEIGHTS(NARROW_NAME)},
                                                        {PACKED_HEIGHTS(PART_NAME)},
                                                        {PACKED_HEIGHTS(NAME)}};
#undef NAME
#undef PART_NAME
#undef NARROW_NAME
#define BY_1(rows) strided_##rows##_by_1,
#define BY_2(rows) strided_##rows##_by_2,
#define BY_4(rows) strided_##rows##_by_4,
/* Of 1, 2, 4 and 8 vectors, and of half a one. */
static strided_tile *const strided_tiles[5][narrow_rows] = {
    {NARROW_HEIGHTS(BY_1)},    {STRIDED_HEIGHTS(BY_2)}, {WIDE_HEIGHTS(BY_4)}, {strided_1_by_8},
#ifdef RAPT_HALF_VECTORS
#define BY_HALF(rows) half_##rows,
    {NARROW_HEIGHTS(BY_HALF)},
#endif
};

/* Which of them for so many columns. */
static inline int tile_width(int64_t rows, int64_t columns)
{
#ifdef RAPT_HALF_VECTORS
    if (columns <= half_width) return 4;
#endif
    const int64_t vectors = (columns + width - 1) / width;
    const int widest = rows == 1 ? 3 : rows <= wide_rows ? 2 : 1;
    return vectors >= 8 && widest == 3 ? 3 : vectors >= 4 && widest >= 2 ? 2 : vectors >= 2 ? 1 : 0;
}
