/* The register tile of all products, those of matrices and those inside of fused attention, dot-product and additive:
 * sums of a few rows and vectors of columns, which stay in registers while their terms go by. T is the element type,
 * SIZE its bytes. */

enum { widest_tile = 8, highest_tile = 14 }; /* vectors; rows */

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

/* So many rows of b ahead are they prefetched: what the second-level cache takes to answer. line: bytes of a
 * cache's. */
enum { rows_ahead = 12, line = 64 };
/* Where the panel of a that a tile reads does not stay in the first-level cache beside one of b, it is prefetched too:
 * panels of the longest vectors are 14 and 32 KB. Where it stays, a prefetch for each term costs a fifteenth. */
enum { prefetches_a = RAPT_VECTOR_BYTES == 64 };

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

/* What is summed: ab; the same but for terms whose a is 0, which take nothing even of what is not finite; or
 * −½ (a − b)². */
enum tile_terms { all_products, chosen_products, squared_differences };

/* What the compiler knows of a tile. */
typedef struct tile_kind {
    int rows, vectors;
    bool packed; /* a and b lie as matmul_pack_tmpl.c lays them: `rows` elements of a for each t, whole vectors of b */
    bool whole;  /* all of its vectors are read and written */
    enum tile_terms terms;
} tile_kind;

/* Lines of an array that is read soon, column of lines by column. They are prefetched while tiles are summed, few at a
 * time, or the tile would wait for its own: `each` of them before so many terms. */
#if defined __AVX__ || defined __aarch64__
enum { interrupts_tiles = 1 };
#else
enum { interrupts_tiles = 0 }; /* its tiles are small, and are slower by a fifteenth with another loop around */
#endif
typedef struct lines_ahead {
    const char *next;
    int64_t step, back, rows, row; /* bytes to the next row, and from behind the last one to the next column's first */
    int64_t each, between, left;
} lines_ahead;

static inline __attribute__((always_inline)) void prefetch_lines(lines_ahead *lines)
{
    for (int64_t i = lines->left < lines->each ? lines->left : lines->each; i > 0; i--) {
        __builtin_prefetch(lines->next, 0, 2);
        lines->next += lines->step;
        lines->left--;
        if (++lines->row == lines->rows) lines->row = 0, lines->next += lines->back;
    }
}

/* Adds `k` terms: element (i, t) of a is at i·a_row + t·a_step. Of b nothing is read behind the last vector's first
 * lanes, `rest` of them, unless it is packed or whole. */
static inline __attribute__((always_inline)) void
add_to_tile(const tile_kind kind, const bool prefetches, int64_t k, const T *restrict a, const int64_t a_row,
            const int64_t a_step, const T *restrict b, const int64_t b_row, const some_lanes rest, tile_sums sums)
{
    const int last = (kind.vectors - 1) * width;
    row_elements elements = row_elements_of(kind.rows, a, a_row);
#pragma GCC unroll 2
    for (int64_t t = 0; t < k; t++, a += kind.packed ? kind.rows : 0, b += b_row) {
        vector row[widest_tile];
        if (prefetches) prefetch(b + rows_ahead * b_row, kind.vectors * RAPT_VECTOR_BYTES, 0);
        if (kind.packed && prefetches_a) prefetch(a + rows_ahead * kind.rows, 1, 0);
#pragma GCC unroll 8
        for (int j = 0; j < kind.vectors; j++)
            row[j] = kind.packed || kind.whole || j * width < last ? *(const vector *)(const void *)(b + j * width)
                                                                   : load_part(b + last, rest);
#pragma GCC unroll 16
        for (int i = 0; i < kind.rows; i++) {
            const T element = kind.packed ? a[i] : row_element(&elements, i);
            if (kind.terms == chosen_products && element == 0) continue;
            vector factor = element - (vector){0};
            if (kind.vectors > 1) KEEP_IN_REGISTER(factor);
#pragma GCC unroll 8
            for (int j = 0; j < kind.vectors; j++) {
                const vector difference = factor - row[j];
                sums[i][j] += kind.terms == squared_differences ? difference * difference : factor * row[j];
            }
            if (kind.vectors > 1) KEEP_IN_REGISTER(factor);
        }
        if (!kind.packed) next_elements(&elements, kind.rows, a_step);
    }
}

/* out = sums, to which is added what is `before`, out itself or a bias, times the row's factor. before may be NULL for
 * nothing, factors for 1; the factor 0 forgets even what is not finite. */
static inline __attribute__((always_inline)) void put_tile(const tile_kind kind, tile_sums sums, T *out,
                                                           int64_t out_row, int64_t count, const T *before,
                                                           int64_t before_row, const T *factors)
{
#pragma GCC unroll 8
    for (int j = 0; j < kind.vectors; j++) {
        const int64_t left = count - j * width;
        const some_lanes lanes = first_lanes(kind.whole || left > width ? width : left < 0 ? 0 : left);
#pragma GCC unroll 16
        for (int i = 0; i < kind.rows; i++) {
            T *to = out + i * out_row + j * width;
            if (before && !(factors && factors[i] == 0)) {
                const T *from = before + i * before_row + j * width;
                const vector there = kind.whole ? *(const vector *)(const void *)from : load_part(from, lanes);
                if (factors)
                    sums[i][j] += factors[i] * there;
                else
                    sums[i][j] += there;
            }
            if (kind.whole)
                *(vector *)(void *)to = sums[i][j];
            else
                store_part(to, lanes, sums[i][j]);
        }
    }
}

/* out = Σ terms for the tile's rows and the first `count` of its columns, put as above. */
static inline __attribute__((always_inline)) void tile(const tile_kind kind, int64_t k, const T *restrict a,
                                                       const int64_t a_row, const int64_t a_step, const T *restrict b,
                                                       const int64_t b_row, T *out, int64_t out_row, int64_t count,
                                                       const T *before, int64_t before_row, const T *factors,
                                                       bool prefetches, lines_ahead *ahead)
{
    tile_sums sums;
    /* a zero that gcc does not see through: it would begin with other code, whose zeros take the register of a sum */
    vector zero = {0};
    KEEP_IN_REGISTER(zero);
    const some_lanes rest = first_lanes(kind.packed || kind.whole ? 0 : count - (kind.vectors - 1) * width);
#pragma GCC unroll 16
    for (int i = 0; i < kind.rows; i++)
#pragma GCC unroll 8
        for (int j = 0; j < kind.vectors; j++) sums[i][j] = zero;
    if (kind.packed) {
#pragma GCC unroll 16
        for (int i = 0; i < kind.rows; i++) prefetch(out + i * out_row, kind.vectors * RAPT_VECTOR_BYTES, 1);
        const int64_t between = ahead->left > 0 ? ahead->between : k;
        if (!interrupts_tiles) {
            prefetch_lines(ahead);
            add_to_tile(kind, true, k, a, a_row, a_step, b, b_row, rest, sums);
        }
        for (int64_t t = 0; interrupts_tiles && t < k; t += between) {
            prefetch_lines(ahead);
            add_to_tile(kind, true, k - t < between ? k - t : between, a + t * kind.rows, a_row, a_step, b + t * b_row,
                        b_row, rest, sums);
        }
    } else { /* not what lies behind the block, which may never be read */
        const int64_t first = prefetches && k > rows_ahead ? k - rows_ahead : 0;
        if (first > 0) add_to_tile(kind, true, first, a, a_row, a_step, b, b_row, rest, sums);
        add_to_tile(kind, false, k - first, a + first * a_step, a_row, a_step, b + first * b_row, b_row, rest, sums);
    }
    if (kind.terms == squared_differences)
#pragma GCC unroll 16
        for (int i = 0; i < kind.rows; i++)
#pragma GCC unroll 8
            for (int j = 0; j < kind.vectors; j++) sums[i][j] *= (T)-0.5;
    const tile_kind whole = {kind.rows, kind.vectors, .whole = true};
    if (kind.whole || (!kind.packed && count == kind.vectors * width))
        put_tile(whole, sums, out, out_row, count, before, before_row, factors);
    else
        put_tile(kind, sums, out, out_row, count, before, before_row, factors);
}
