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
enum { panel = panel_vectors * width };

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

enum { line = 64 }; /* bytes of the cache */

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

/* out = Σ ab, or out + Σ ab, for `rows` rows and `vectors` vectors of columns. Element (i, t) of a is at i·a_row +
 * t·a_step. */
static inline __attribute__((always_inline)) void tile(const int rows, const int vectors, int64_t k,
                                                       const T *restrict a, const int64_t a_row, const int64_t a_step,
                                                       const T *restrict b, const int64_t b_row, T *restrict out,
                                                       int64_t out_row, bool adds)
{
    vector sums[tile_rows][panel_vectors];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++) sums[i][j] = (vector){0};
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) prefetch(out + i * out_row, vectors * RAPT_VECTOR_BYTES, 1);
#pragma GCC unroll 2
    for (int64_t t = 0; t < k; t++, a += a_step, b += b_row) {
        vector row[panel_vectors];
        prefetch(b + rows_ahead * b_row, vectors * RAPT_VECTOR_BYTES, 0);
        if (a_row == 1) prefetch(a + rows_ahead * a_step, 1, 0);
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++) row[j] = *(const vector *)(const void *)(b + j * width);
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            vector factor = a[i * a_row] - (vector){0};
            KEEP_IN_REGISTER(factor);
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++) sums[i][j] += factor * row[j];
            KEEP_IN_REGISTER(factor);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++, out += out_row)
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++) {
            vector *to = (vector *)(void *)(out + j * width);
            if (adds) sums[i][j] += *to;
            *to = sums[i][j];
        }
}

/* A function for each height and for the width of a panel or a vector: `packed` ones read a and b as
 * matmul_pack_tmpl.c lays them down. */
typedef void packed_tile(int64_t k, const T *a, const T *b, T *out, int64_t out_row, bool adds);
typedef void strided_tile(int64_t k, const T *a, int64_t a_row, int64_t a_step, const T *b, int64_t b_row, T *out,
                          int64_t out_row, bool adds);

#define PACKED_TILE(name, rows, vectors)                                                                               \
    static __attribute__((noinline)) void name(int64_t k, const T *a, const T *b, T *out, int64_t out_row, bool adds)  \
    {                                                                                                                  \
        tile(rows, vectors, k, a, 1, rows, b, vectors *width, out, out_row, adds);                                     \
    }
#define STRIDED_TILE(name, rows, vectors)                                                                              \
    static __attribute__((noinline)) void name(int64_t k, const T *a, int64_t a_row, int64_t a_step, const T *b,       \
                                               int64_t b_row, T *out, int64_t out_row, bool adds)                      \
    {                                                                                                                  \
        tile(rows, vectors, k, a, a_row, a_step, b, b_row, out, out_row, adds);                                        \
    }

#define TO_2(X)                                                                                                        \
    X(1)                                                                                                               \
    X(2)
#define TO_4(X)                                                                                                        \
    TO_2(X) X(3)                                                                                                       \
    X(4)
#define TO_6(X)                                                                                                        \
    TO_4(X) X(5)                                                                                                       \
    X(6)
#define TO_14(X)                                                                                                       \
    TO_6(X) X(7)                                                                                                       \
    X(8)                                                                                                               \
    X(9)                                                                                                               \
    X(10)                                                                                                              \
    X(11)                                                                                                              \
    X(12)                                                                                                              \
    X(13)                                                                                                              \
    X(14)
#if defined __AVX512F__
#define PACKED_HEIGHTS TO_14
#define STRIDED_HEIGHTS TO_6
enum { strided_rows = 6 };
#elif defined __AVX__ || defined __aarch64__
#define PACKED_HEIGHTS TO_6
#define STRIDED_HEIGHTS TO_4
enum { strided_rows = 4 };
#else
#define PACKED_HEIGHTS TO_2
#define STRIDED_HEIGHTS TO_2
enum { strided_rows = 2 };
#endif

#define BOTH_PACKED(rows) PACKED_TILE(packed_##rows, rows, panel_vectors) PACKED_TILE(packed_##rows##_narrow, rows, 1)
#define BOTH_STRIDED(rows)                                                                                             \
    STRIDED_TILE(strided_##rows, rows, panel_vectors) STRIDED_TILE(strided_##rows##_narrow, rows, 1)
PACKED_HEIGHTS(BOTH_PACKED)
STRIDED_HEIGHTS(BOTH_STRIDED)

#define NAME(rows) packed_##rows,
#define NARROW_NAME(rows) packed_##rows##_narrow,
static packed_tile *const packed_tiles[2][tile_rows] = {{PACKED_HEIGHTS(NARROW_NAME)}, {PACKED_HEIGHTS(NAME)}};
#undef NAME
#undef NARROW_NAME
#define NAME(rows) strided_##rows,
#define NARROW_NAME(rows) strided_##rows##_narrow,
static strided_tile *const strided_tiles[2][strided_rows] = {{STRIDED_HEIGHTS(NARROW_NAME)}, {STRIDED_HEIGHTS(NAME)}};
