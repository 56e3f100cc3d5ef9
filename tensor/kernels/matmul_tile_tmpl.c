/* The tiles of matrix products: a function for each height and width, over a block of k. Part of matmul_tmpl.c. */

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
enum { panel = panel_vectors * width }; /* columns */

enum { far_row = 512 }; /* bytes of a row so long that the processor does not see the next one come */

#ifdef RAPT_HALF_VECTORS
/* out = Σ ab, or out + Σ ab, for up to half a vector of columns. */
static inline __attribute__((always_inline)) void half_tile(const int rows, int64_t k, const T *restrict a,
                                                            const int64_t a_row, const int64_t a_step,
                                                            const T *restrict b, const int64_t b_row, T *restrict out,
                                                            int64_t out_row, int64_t count, bool adds)
{
    half_vector sums[highest_tile];
    const some_lanes lanes = first_lanes(count);
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
                         int64_t before_row, lines_ahead *ahead);
typedef void strided_tile(int64_t tiles, int64_t k, const T *a, int64_t a_row, int64_t a_step, const T *b,
                          int64_t b_row, T *out, int64_t out_row, int64_t count, bool adds);

#define PACKED_TILE(name, rows, vectors, whole)                                                                        \
    static __attribute__((noinline)) void name(int64_t k, const T *a, const T *b, T *out, int64_t out_row,             \
                                               int64_t count, const T *before, int64_t before_row, lines_ahead *ahead) \
    {                                                                                                                  \
        tile((tile_kind){rows, vectors, true, whole, all_products}, k, a, 1, rows, b, vectors *width, out, out_row,    \
             count, before, before_row, NULL, true, ahead);                                                            \
    }
#define STRIDED_TILE(name, rows, vectors)                                                                              \
    static __attribute__((noinline)) void name(int64_t tiles, int64_t k, const T *a, int64_t a_row, int64_t a_step,    \
                                               const T *b, int64_t b_row, T *out, int64_t out_row, int64_t count,      \
                                               bool adds)                                                              \
    {                                                                                                                  \
        bool prefetches = b_row * SIZE >= far_row;                                                                     \
        for (; tiles > 0; tiles--, a += rows * a_row, out += rows * out_row, prefetches = false)                       \
            tile((tile_kind){rows, vectors, false, false, all_products}, k, a, a_row, a_step, b, b_row, out, out_row,  \
                 count, adds ? out : NULL, out_row, NULL, prefetches, NULL);                                           \
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

/* What half a vector takes of a whole one's time, and a panel of one vector of a whole panel's. */
#if defined __AVX512F__
static const double half_time = 0.55, narrow_time = 0.55;
#else
static const double half_time = 1, narrow_time = 0.8;
#endif

/* Is a rest of so many columns one vector and half a one, rather than two? */
static inline bool ends_in_half(int64_t columns)
{
    return half_time < 1 && columns > width && columns <= width + width / 2;
}

/* Which of them for so many columns of panels of a height. Where `halves`, the end may be half a vector. */
static inline int tile_width(int64_t rows, int64_t columns, bool halves)
{
#ifdef RAPT_HALF_VECTORS
    if (columns <= half_width) return 4;
#endif
    const int64_t vectors = (columns + width - 1) / width;
    const int widest = rows == 1 ? 3 : rows <= wide_rows ? 2 : 1;
    if (halves && ends_in_half(columns)) return 0;
    if (vectors >= 8 && widest == 3) return 3;
    if (vectors >= 4 && widest >= 2 && !(halves && ends_in_half(columns - 2 * width))) return 2;
    return vectors >= 2 ? 1 : 0;
}
