/* Sums over rows that are read where they lie: the products of one row with many, and the weighted sum of many. Part of
 * dot_tmpl.c. */

typedef __typeof__((vector){0} < (vector){0}) lane_mask;

/* How vectors cover a row of elements: whole ones, and if that leaves a rest, one more that ends where the row ends. Of
 * its lanes those count that the mask has; the others repeat elements, or are past a row shorter than a vector. */
typedef struct cover {
    int64_t size, whole, rest_at, row; /* whole: elements in whole vectors; row: elements of all vectors */
    lane_mask mask;
} cover;

static cover cover_of(int64_t size)
{
    cover c = {.size = size, .whole = size / width * width, .row = round_up(size, width)};
    c.rest_at = larger_of(size - width, 0);
    for (int lane = 0; lane < width; lane++)
        c.mask[lane] = c.rest_at + lane >= c.whole && c.rest_at + lane < size ? -1 : 0;
    return c;
}

static inline vector load(const T *from)
{
    return *(const vector *)(const void *)from;
}

/* A row, multiplied by a factor, as its vectors: zeros where the mask has none. */
static void spread_row(const cover *c, const T *row, T factor, T *vectors)
{
    RAPT_SIMD for (int64_t t = 0; t < c->whole; t++) vectors[t] = row[t] * factor;
    for (int64_t lane = 0; lane < c->row - c->whole; lane++)
        vectors[c->whole + lane] = c->mask[lane] ? row[c->rest_at + lane] * factor : 0;
}

/* The other way round. */
static void gather_row(const cover *c, const T *vectors, T factor, T *row)
{
    RAPT_SIMD for (int64_t t = 0; t < c->whole; t++) row[t] = vectors[t] * factor;
    for (int64_t lane = 0; lane < c->row - c->whole; lane++)
        if (c->mask[lane]) row[c->rest_at + lane] = vectors[c->whole + lane] * factor;
}

/* Rows that vectors can read. Elements so far `ahead` are prefetched meanwhile: the processor does not guess where,
 * since the rows of a head lie apart. */
typedef struct rows_in_place {
    const T *first;
    int64_t stride, ahead;
} rows_in_place;

/* Those rows where they lie, or copies if they are shorter than a vector. */
static rows_in_place in_place_or_copied(const cover *c, int64_t count, rows_in_place rows, T *copies)
{
    if (c->size >= width) return rows;
    copy_rows(count, c->size, rows.first, rows.stride, NULL, 1, copies, width);
    return (rows_in_place){copies, width, 0};
}

static inline rows_in_place part_of(rows_in_place rows, int64_t skipped)
{
    rows.first += skipped * rows.stride;
    return rows;
}

/* Loads a vector, and prefetches what is so far ahead. */
static inline __attribute__((always_inline)) vector load_and_prefetch(const T *from, int64_t ahead,
                                                                      const bool prefetches)
{
    if (prefetches) __builtin_prefetch(from + ahead, 0, 2);
    return load(from);
}

/* Element i becomes the sum of the elements of vector i. */
static inline __attribute__((always_inline)) vector sum_each(vector *vectors)
{
#pragma GCC unroll 4
    for (int half = width / 2; half > 0; half /= 2)
#pragma GCC unroll 8
        for (int i = 0; i < half; i++)
            vectors[i] = ZIP_LOW(vectors[i], vectors[i + half]) + ZIP_HIGH(vectors[i], vectors[i + half]);
    return vectors[0];
}

/* The products of a row with `width` rows. */
static inline __attribute__((always_inline)) vector dot_rows(const cover *c, const T *row, rows_in_place others,
                                                             const bool prefetches)
{
    vector sums[width];
#pragma GCC unroll 16
    for (int i = 0; i < width; i++) sums[i] = (vector){0};
    for (int64_t t = 0; t < c->whole; t += width) {
        const vector here = load(row + t);
#pragma GCC unroll 16
        for (int i = 0; i < width; i++) {
            sums[i] += here * load_and_prefetch(others.first + i * others.stride + t, others.ahead, prefetches);
        }
    }
    if (c->whole < c->size) {
        const vector here = load(row + c->whole);
#pragma GCC unroll 16
        for (int i = 0; i < width; i++) {
            const vector there = (vector)((lane_mask)load(others.first + i * others.stride + c->rest_at) & c->mask);
            sums[i] += here * there;
        }
    }
    return sum_each(sums);
}

/* The products with `count` rows; edge has room for one vector's number of. */
static inline __attribute__((always_inline)) void dot_all(const cover *c, const T *row, rows_in_place others,
                                                          int64_t count, T *edge, const bool prefetches, T *out)
{
    for (int64_t j = 0; j < count; j += width, others.first += width * others.stride) {
        if (count - j < width) {
            copy_rows(count - j, c->size, others.first, others.stride, NULL, 1, edge, c->row);
            others = (rows_in_place){edge, c->row, 0};
        }
        *(vector *)(void *)(out + j) = dot_rows(c, row, others, prefetches);
    }
}

/* out = out · factor + Σ weights[j] · rows[places[j]] for some vectors of columns, `together` rows side by side. */
static inline __attribute__((always_inline)) void add_columns(const int vectors, const int together, int64_t count,
                                                              const T *restrict weights, const int64_t *places,
                                                              rows_in_place rows, T factor, T *restrict out)
{
    vector sums[4][8];
#pragma GCC unroll 4
    for (int n = 0; n < together; n++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) sums[n][v] = (vector){0};
    int64_t j = 0;
    for (; j + together <= count; j += together)
#pragma GCC unroll 4
        for (int n = 0; n < together; n++) {
            const T *row = rows.first + places[j + n] * rows.stride, weight = weights[j + n];
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++)
                sums[n][v] += weight * load_and_prefetch(row + v * width, rows.ahead, true);
        }
    for (; j < count; j++) {
        const T *row = rows.first + places[j] * rows.stride, weight = weights[j];
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) sums[0][v] += weight * load(row + v * width);
    }
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) {
#pragma GCC unroll 4
        for (int n = 1; n < together; n++) sums[0][v] += sums[n][v];
        vector *to = (vector *)(void *)(out + v * width);
        if (factor != 0) sums[0][v] += *to * factor; /* 0 forgets even what is not finite */
        *to = sums[0][v];
    }
}

/* The same for all columns; out has them as spread_row gives them. */
static __attribute__((noinline)) void add_rows(const cover *c, int64_t count, const T *weights, const int64_t *places,
                                               rows_in_place rows, T factor, T *out)
{
    const T *first = rows.first;
    int64_t t = 0;
    for (; t + 8 * width <= c->whole; t += 8 * width, rows.first = first + t)
        add_columns(8, 1, count, weights, places, rows, factor, out + t);
    for (; t + 4 * width <= c->whole; t += 4 * width, rows.first = first + t)
        add_columns(4, 2, count, weights, places, rows, factor, out + t);
    for (; t < c->row; t += width) {
        rows.first = first + (t < c->whole ? t : c->rest_at);
        add_columns(1, 4, count, weights, places, rows, factor, out + t);
    }
}
