/* One row or two times columns that are dense along k and stay in the cache: they are turned in registers. Sums in the
 * lanes of vectors would need no turning, and take half the time or a third; but a row alone would then have other bits
 * than among others, whose sums are in the order of k: a word decoded alone than in a batch, a packed sequence that
 * goes on alone than a padded one, a tile of c with one column than one with two. */

/* 16 bytes of each column of one or two vectors of them. Lanes are put together as they are loaded, which costs less
 * than to move them in registers. Which columns make a vector: those of one pointer and each `lane` bytes further. */
typedef struct lane_columns {
    const char *first[lane_width];
    int64_t lane, lane_3, lane_5, lane_7; /* bytes, once and several times */
} lane_columns;

/* gcc would move lanes of what it has loaded, where these instructions load them. */
#if RAPT_VECTOR_BYTES >= 32
#define TWO_LANES(a, b) _mm256_insertf128_pd(_mm256_castpd128_pd256((__m128d)(a)), (__m128d)(b), 1)
#endif
#if RAPT_VECTOR_BYTES == 64
#define FOUR_LANES(a, b) _mm512_insertf64x4(_mm512_castpd256_pd512(a), b, 1)
#endif

static inline __attribute__((always_inline)) lane_vector load_lane(const lane_columns *from, int i, int number)
{
    const int64_t lane = from->lane;
    const int64_t offsets[8] = {0,        lane,         2 * lane,         from->lane_3,
                                4 * lane, from->lane_5, 2 * from->lane_3, from->lane_7};
    return *(const lane_vector *)(const void *)(from->first[i] + offsets[number]);
}

/* The vector number `j` of columns. */
static inline __attribute__((always_inline)) void load_turned(const lane_columns *from, const int j, vector *rows)
{
#pragma GCC unroll 4
    for (int i = 0; i < lane_width; i++) {
#define LANE(number) load_lane(from, i, lanes_of_vector *j + (number))
#if RAPT_VECTOR_BYTES == 64
        rows[i] = (vector)FOUR_LANES(TWO_LANES(LANE(0), LANE(1)), TWO_LANES(LANE(2), LANE(3)));
#elif RAPT_VECTOR_BYTES == 32
        rows[i] = (vector)TWO_LANES(LANE(0), LANE(1));
#else
        rows[i] = LANE(0);
#endif
#undef LANE
    }
    transpose_lanes(rows);
}

/* One step of 16 bytes: the elements from `first` on, of lane_width. */
static inline __attribute__((always_inline)) void add_turned(const int rows, const int vectors, const int64_t first,
                                                             const T *a, const int64_t a_row, lane_columns *from,
                                                             vector sums[2][2])
{
#pragma GCC unroll 2
    for (int j = 0; j < vectors; j++) {
        vector turned[lane_width];
        load_turned(from, j, turned);
#pragma GCC unroll 4
        for (int lane = 0; lane < lane_width; lane++)
            if (lane >= first)
#pragma GCC unroll 2
                for (int i = 0; i < rows; i++) sums[i][j] += a[i * a_row + lane] * turned[lane];
    }
#pragma GCC unroll 4
    for (int i = 0; i < lane_width; i++) from->first[i] += 16;
}

/* out = Σ ab, or out + Σ ab, for one row or two, dense along k, and one or two whole vectors of columns; k is
 * lane_width or more. */
static inline __attribute__((always_inline)) void column_tile(const int rows, const int vectors, int64_t k, const T *a,
                                                              const int64_t a_row, const T *b, int64_t b_column, T *out,
                                                              int64_t out_row, bool adds)
{
    vector sums[2][2];
    lane_columns from = {.lane = lane_width * b_column * SIZE};
    from.lane_3 = 3 * from.lane, from.lane_5 = 5 * from.lane, from.lane_7 = 7 * from.lane;
    HIDE(from.lane);
    HIDE(from.lane_3);
    HIDE(from.lane_5);
    HIDE(from.lane_7);
#pragma GCC unroll 4
    for (int i = 0; i < lane_width; i++) {
        from.first[i] = (const char *)(b + i * b_column);
        HIDE(from.first[i]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++) sums[i][j] = (vector){0};
    const T *const end = a + k;
    while (a + lane_width <= end) {
        add_turned(rows, vectors, 0, a, a_row, &from, sums);
        a += lane_width;
    }
    if (a < end) { /* the last step overlaps the one before */
        const int64_t again = lane_width - (end - a);
#pragma GCC unroll 4
        for (int i = 0; i < lane_width; i++) from.first[i] -= again * SIZE;
        add_turned(rows, vectors, again, a - again, a_row, &from, sums);
    }
#pragma GCC unroll 2
    for (int i = 0; i < rows; i++, out += out_row)
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++) {
            vector *to = (vector *)(void *)(out + j * width);
            if (adds) sums[i][j] += *to;
            *to = sums[i][j];
        }
}

enum { column_rows = 2 };
typedef void columns_tile(int64_t k, const T *a, int64_t a_row, const T *b, int64_t b_column, T *out, int64_t out_row,
                          bool adds);
#define COLUMNS_TILE(name, rows, vectors)                                                                              \
    static __attribute__((noinline)) void name(int64_t k, const T *a, int64_t a_row, const T *b, int64_t b_column,     \
                                               T *out, int64_t out_row, bool adds)                                     \
    {                                                                                                                  \
        column_tile(rows, vectors, k, a, a_row, b, b_column, out, out_row, adds);                                      \
    }
COLUMNS_TILE(columns_1_by_1, 1, 1)
COLUMNS_TILE(columns_1_by_2, 1, 2)
COLUMNS_TILE(columns_2_by_1, 2, 1)
COLUMNS_TILE(columns_2_by_2, 2, 2)
static columns_tile *const columns_tiles[2][column_rows] = {{columns_1_by_1, columns_2_by_1},
                                                            {columns_1_by_2, columns_2_by_2}};
