/* Packing: a block of an operand is copied into the order in which the register tile reads it. */

/* Rows are cut into panels of nearly equal heights, so that none of them is too low to keep the processor busy. */
static inline int64_t row_panels(int64_t rows)
{
    return divide_up(rows, tile_rows);
}

static inline int64_t panel_start(int64_t rows, int64_t panels, int64_t i)
{
    return rows * i / panels;
}

static inline void copy_vector(T *to, const T *from)
{
    *(vector *)(void *)to = *(const vector *)(const void *)from;
}

/* to[t][i] = from[i][t] for a lane of rows, or fewer, that are dense along k, as below. */
static void pack_lane_of_rows(int64_t count, int64_t k, const T *from, int64_t from_row, T *to, int64_t to_row,
                              int64_t whole)
{
    const T *rows[lane_width];
    for (int64_t i = 0; i < lane_width; i++) rows[i] = from + smaller_of(i, count - 1) * from_row;
    int64_t t = 0;
    for (; t + lane_width <= k; t += lane_width) {
        lane_vector block[lane_width];
#pragma GCC unroll 4
        for (int i = 0; i < lane_width; i++) block[i] = *(const lane_vector *)(const void *)(rows[i] + t);
        transpose_lane(block);
#pragma GCC unroll 4
        for (int i = 0; i < lane_width; i++)
            if (t + i < whole)
                *(lane_vector *)(void *)(to + (t + i) * to_row) = block[i];
            else
                store_lane_part(to + (t + i) * to_row, count, block[i]);
    }
    for (; t < k; t++)
        for (int64_t i = 0; i < count; i++) to[t * to_row + i] = rows[i][t];
}

/* to[t][i] = from[i][t] for some rows that are dense along k. Whole vectors are written: what is too much of one holds
 * nothing of use, and may be where the next vector goes, which is why the last rows go first; but nothing is written
 * beyond the end. The rows of the next panel are prefetched. */
static void pack_dense_rows(int64_t height, int64_t k, const T *from, int64_t from_row, T *to, int64_t to_row)
{
    for (int64_t first = (height - 1) / width * width; first >= 0; first -= width) {
        const int64_t count = smaller_of(height - first, width), whole = k - (first + width - 1) / to_row;
        if (count <= width / 2 || k < width) {
            for (int64_t i = (count - 1) / lane_width * lane_width; i >= 0; i -= lane_width)
                pack_lane_of_rows(smaller_of(count - i, lane_width), k, from + (first + i) * from_row, from_row,
                                  to + first + i, to_row, k - (first + i + lane_width - 1) / to_row);
            continue;
        }
        const T *rows[width];
        for (int64_t lane = 0; lane < width; lane++)
            rows[lane] = from + (first + smaller_of(lane, count - 1)) * from_row;
        for (int64_t done = 0; done < k; done += width) {
            const int64_t t = smaller_of(done, k - width); /* the last block overlaps the one before */
            vector block[width];
#pragma GCC unroll 16
            for (int lane = 0; lane < width; lane++) {
                block[lane] = *(const vector *)(const void *)(rows[lane] + t);
                __builtin_prefetch(rows[lane] + t + height * from_row, 0, 2);
            }
            transpose_block(block);
            T beside[width][width], *out = to + t * to_row + first;
            const bool spills = t + width > whole;
            T *const in = spills ? beside[0] : out;
            const int64_t in_row = spills ? width : to_row;
#pragma GCC unroll 16
            for (int lane = 0; lane < width; lane++) *(vector *)(void *)(in + lane * in_row) = block[lane];
            for (int64_t lane = 0; spills && lane < width; lane++)
                memcpy(out + lane * to_row, beside[lane], (size_t)count * SIZE);
        }
    }
}

/* So many columns ahead are they prefetched, where each lies on a page of its own. */
enum { columns_ahead = 8 };

/* The same for `count` panels of rows whose columns are dense, column by column: those from starts[0] to starts[count].
 * Here the next panel's beginning is written before this one's end, so that nothing may be written beyond. */
static void pack_dense_columns(const rapt_product *p, int64_t count, const int64_t *starts, int64_t k, const T *a,
                               T *to)
{
    for (int64_t t = 0; t < k; t++, a += p->a_column) {
        for (int64_t i = starts[0]; i < starts[count]; i += line / SIZE)
            prefetch(a + columns_ahead * p->a_column + i, line, 0);
        for (int64_t i = 0; i < count; i++) {
            const int64_t start = starts[i], height = starts[i + 1] - start;
            const int64_t readable = p->m - start, writable = height * (k - t);
            T *out = to + (start - starts[0]) * k + t * height;
            int64_t j = 0;
            for (; j < height && j + width <= smaller_of(readable, writable); j += width)
                copy_vector(out + j, a + start + j);
            for (; j < height; j++) out[j] = a[start + j];
        }
    }
}

/* Where some panels of rows begin, worked out once for all columns: divisions take long. */
static void pack_panels_of_columns(const rapt_product *p, int64_t first, int64_t last, int64_t k, const T *a, T *to)
{
    enum { at_once = 16 };
    const int64_t panels = row_panels(p->m), top = panel_start(p->m, panels, first);
    int64_t starts[at_once + 1];
    for (; first < last; first += at_once) {
        const int64_t count = smaller_of(last - first, at_once);
        for (int64_t i = 0; i <= count; i++) starts[i] = panel_start(p->m, panels, first + i);
        pack_dense_columns(p, count, starts, k, a, to + (starts[0] - top) * k);
    }
}

/* The panels `first` to `last` of rows, one behind the other, each of them [k][height]. */
static void pack_row_panels(const rapt_product *p, int64_t first, int64_t last, int64_t done, int64_t k, T *to)
{
    const T *a = (const T *)(const void *)p->a + done * p->a_column;
    const int64_t panels = row_panels(p->m), top = panel_start(p->m, panels, first);
    if (p->a_row == 1 && p->a_column != 1) {
        pack_panels_of_columns(p, first, last, k, a, to);
        return;
    }
    for (int64_t i = first; i < last; i++) {
        const int64_t start = panel_start(p->m, panels, i), height = panel_start(p->m, panels, i + 1) - start;
        const T *from = a + start * p->a_row;
        T *out = to + (start - top) * k;
        if (p->a_column == 1) {
            pack_dense_rows(height, k, from, p->a_row, out, height);
            continue;
        }
        for (int64_t t = 0; t < k; t++)
            for (int64_t j = 0; j < height; j++) out[t * height + j] = from[j * p->a_row + t * p->a_column];
    }
}

/* How wide a panel of `count` columns is. */
static inline int64_t panel_width(int64_t count)
{
    return count > width ? panel : width;
}

/* Whole panels of b whose rows are dense: a strip of them row by row, so that long pieces are read. */
static void pack_dense_panels(int64_t columns, int64_t k, const T *b, int64_t b_row, T *to)
{
    enum { strip = 4 * panel };
    for (int64_t first = 0; first < columns; first += strip) {
        const int64_t last = smaller_of(first + strip, columns);
        for (int64_t t = 0; t < k; t++) {
            for (int64_t j = first; j < last; j += line / SIZE) prefetch(b + (t + rows_ahead) * b_row + j, line, 0);
            for (int64_t j = first; j < last; j += panel)
#pragma GCC unroll 4
                for (int lane = 0; lane < panel; lane += width)
                    copy_vector(to + j * k + t * panel + lane, b + t * b_row + j + lane);
        }
    }
}

/* A panel whose rows are dense but no whole panels. Beyond their ends is the next row, but for the last ones. */
static void pack_dense_rest(int64_t count, int64_t wide, int64_t k, const T *b, int64_t b_row, T *to)
{
    for (int64_t t = 0; t < k; t++, b += b_row, to += wide) {
        int64_t j = 0;
        for (; j < wide && j + width <= b_row * (k - 1 - t) + count; j += width) copy_vector(to + j, b + j);
        for (; j < wide; j++) to[j] = j < count ? b[j] : 0;
    }
}

/* Panels of columns, one behind the other, each of them [k][panel_width]. What is too much of a panel is any number. */
static void pack_columns(int64_t columns, int64_t k, const T *b, int64_t b_row, int64_t b_column, T *to)
{
    int64_t first = 0;
    if (b_column == 1) {
        first = columns / panel * panel;
        pack_dense_panels(first, k, b, b_row, to);
    }
    for (int64_t j = first; j < columns; j += panel) {
        const int64_t count = smaller_of(columns - j, panel), wide = panel_width(count);
        const T *from = b + j * b_column;
        T *out = to + j * k;
        if (b_column == 1 && b_row >= count) {
            pack_dense_rest(count, wide, k, from, b_row, out);
            continue;
        }
        if (b_row == 1) {
            for (int64_t t = 0; t < k && count <= wide - width; t++)
                memset(out + t * wide + count, 0, (size_t)(wide - count) * SIZE);
            pack_dense_rows(count, k, from, b_column, out, wide);
            continue;
        }
        for (int64_t t = 0; t < k; t++)
            for (int64_t lane = 0; lane < wide; lane++)
                out[t * wide + lane] = lane < count ? from[t * b_row + lane * b_column] : 0;
    }
}
