/* Products that are small or have few rows: without scratch, a is read where it lies, and b too where its rows are
 * dense. */

enum { together = 4 }; /* sums that wait for themselves keep the processor busy */

/* The definition, for products that are over before more is thought of. */
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

/* A block of k of an element of c. */
typedef struct element_part {
    int64_t row, column, block, k;
    const T *a, *b;
} element_part;

static element_part element_part_at(const rapt_product *p, int64_t i)
{
    const int64_t blocks = rapt_block_count(p->k);
    const int64_t element = blocks == 1 ? i : i / blocks, row = p->n == 1 ? element : element / p->n;
    element_part e = {.row = row, .column = element - row * p->n, .block = i - element * blocks};
    const int64_t done = rapt_block_start(p->k, e.block);
    e.k = rapt_block_start(p->k, e.block + 1) - done;
    e.a = (const T *)(const void *)p->a + e.row * p->a_row + done * p->a_column;
    e.b = (const T *)(const void *)p->b + e.column * p->b_column + done * p->b_row;
    return e;
}

/* For a few elements of c: parts of them side by side, since each sum waits for itself. */
static void multiply_elements(const rapt_product *p)
{
    const int64_t count = p->m * p->n * rapt_block_count(p->k), a_step = p->a_column, b_step = p->b_row;
    for (int64_t first = 0; first < count; first += together) {
        element_part e[together];
        T sums[together] = {0};
        int64_t shortest = p->k;
        for (int64_t i = 0; i < together; i++) {
            e[i] = element_part_at(p, smaller_of(first + i, count - 1));
            shortest = smaller_of(shortest, e[i].k);
        }
        T s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        for (int64_t t = 0, in_a = 0, in_b = 0; t < shortest; t++, in_a += a_step, in_b += b_step) {
            s0 += e[0].a[in_a] * e[0].b[in_b], s1 += e[1].a[in_a] * e[1].b[in_b];
            s2 += e[2].a[in_a] * e[2].b[in_b], s3 += e[3].a[in_a] * e[3].b[in_b];
            KEEP_IN_REGISTER(s0);
            KEEP_IN_REGISTER(s1);
            KEEP_IN_REGISTER(s2);
            KEEP_IN_REGISTER(s3);
        }
        sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;
        for (int64_t i = 0; i < together && first + i < count; i++) {
            T *c = element_of(p, e[i].row, e[i].column);
            for (int64_t t = shortest; t < e[i].k; t++) {
                sums[i] += e[i].a[t * a_step] * e[i].b[t * b_step];
                KEEP_IN_REGISTER(sums[i]);
            }
            *c = e[i].block > 0 || p->accumulate ? *c + sums[i] : sums[i];
            if (p->bias && e[i].block == 0) add_bias(p, e[i].row, 1, e[i].column, 1);
        }
    }
}

enum { widest_turned = 4 * width }; /* columns of a tile that is to be turned */

/* A block of k, and some columns of b in it whose rows are dense. */
typedef struct part_of_b {
    int64_t done, k, column, count;
    const T *b;
    int64_t b_row;
} part_of_b;

/* Those columns, for tiles of equal height from a row on. */
static void multiply_tiles(const rapt_product *p, const part_of_b *from, int which, int64_t row, int64_t height,
                           int64_t tiles)
{
    const T *a = (const T *)(const void *)p->a + row * p->a_row + from->done * p->a_column;
    const bool adds = from->done > 0 || p->accumulate;
    strided_tile *sum = strided_tiles[which][height - 1];
    if (p->c_column == 1) {
        sum(tiles, from->k, a, p->a_row, p->a_column, from->b, from->b_row, element_of(p, row, from->column), p->c_row,
            from->count, adds);
    } else {
        T beside[(narrow_rows + lane_width) * widest_turned];
        for (int64_t i = 0; i < tiles; i++, a += height * p->a_row) {
            sum(1, from->k, a, p->a_row, p->a_column, from->b, from->b_row, beside, widest_turned, from->count, false);
            put_turned(p, row + i * height, height, from->column, from->count, beside, widest_turned, adds);
        }
    }
    if (p->bias && from->done == 0) add_bias(p, row, height * tiles, from->column, from->count);
}

static const int64_t tile_columns[] = {width, 2 * width, 4 * width, 8 * width, width / 2};

enum { fewest_halves = 6 }; /* rows: fewer sums of half vectors wait for themselves */

/* How tiles of a width cut the rows: into panels of that height, but for the last ones, which are lower by a row. */
typedef struct row_cut {
    int64_t panels, height, lower;
} row_cut;

static inline row_cut cut_rows(int64_t rows, int64_t highest)
{
    if (rows <= highest) return (row_cut){1, rows, 0};
    const int64_t panels = (rows + highest - 1) / highest, height = (rows + panels - 1) / panels;
    return (row_cut){panels, height, panels * height - rows};
}

/* The same for all rows. */
static void multiply_rows_directly(const rapt_product *p, part_of_b from)
{
    const bool dense = p->c_column == 1;
    const row_cut usual = cut_rows(p->m, dense ? strided_rows : turned_rows);
    const row_cut narrow = cut_rows(p->m, dense ? narrow_rows : turned_narrow_rows);
    const int64_t end = from.column + from.count;
    while (from.column < end) {
        const int64_t left = end - from.column;
        const int which = tile_width(usual.height, dense ? left : smaller_of(left, widest_turned),
                                     dense && narrow.height >= fewest_halves);
        const row_cut cut = tile_columns[which] <= width ? narrow : usual;
        const int64_t high = cut.panels - cut.lower;
        from.count = smaller_of(left, tile_columns[which]);
        multiply_tiles(p, &from, which, 0, cut.height, high);
        if (cut.lower > 0) multiply_tiles(p, &from, which, high * cut.height, cut.height - 1, cut.lower);
        from.b += from.count;
        from.column += from.count;
    }
}

/* Columns that are dense along k and stay in the cache are read one group after the other. Returns how many: whole
 * vectors. */
static int64_t multiply_near_columns(const rapt_product *p)
{
    const T *a = (const T *)(const void *)p->a, *b = (const T *)(const void *)p->b;
    const int64_t columns = p->n / width * width;
    const bool turned = p->c_column != 1;
    for (int64_t column = 0, count; column < columns; column += count) {
        count = smaller_of(columns - column, 2 * width);
        columns_tile *sum = columns_tiles[count > width][p->m - 1];
        for (int64_t block = 0; block < rapt_block_count(p->k); block++) {
            const int64_t done = rapt_block_start(p->k, block), k = rapt_block_start(p->k, block + 1) - done;
            const bool adds = done > 0 || p->accumulate;
            T beside[(column_rows + lane_width) * panel], *out = turned ? beside : element_of(p, 0, column);
            sum(k, a + done, p->a_row, b + column * p->b_column + done, p->b_column, out, turned ? panel : p->c_row,
                adds && !turned);
            if (turned) put_turned(p, 0, p->m, column, count, beside, panel, adds);
            if (p->bias && block == 0) add_bias(p, 0, p->m, column, count);
        }
    }
    return columns;
}

/* Columns that are dense along k, for few rows: how many of them are done so, from the first on. */
static int64_t multiply_dense_columns(const rapt_product *p)
{
    if (p->b_row != 1 || p->b_column == 1) return 0;
    if (p->n * p->b_column > nearest / SIZE) return p->m <= few_rows && p->k >= width ? multiply_far_columns(p) : 0;
    return p->m <= column_rows && p->k >= lane_width && p->a_column == 1 ? multiply_near_columns(p) : 0;
}

/* Is b worth a copy whose rows lie side by side? Where they are dense, only for many rows of a that read it again. */
static inline bool is_copied(int64_t m, int64_t b_row, int64_t b_column)
{
    enum { many = 8 * strided_rows, far = 1024 }; /* rows; bytes */
    return b_column != 1 || (m >= many && b_row * SIZE >= far);
}

static inline bool is_tiny(const rapt_product *p)
{
    enum { tiny = 32, narrow = 4 }; /* multiplications; elements */
    return p->m * p->n * p->k <= tiny && p->n <= narrow;
}

/* One tile or two: over before it is known what would be better. */
static inline bool is_small(const rapt_product *p)
{
    return p->m <= 2 * narrow_rows && p->n <= width && p->b_column == 1 && p->c_column == 1 && p->k <= width &&
           p->m * p->n > together;
}

static void multiply_small(const rapt_product *p)
{
    const int64_t first = p->m <= narrow_rows ? p->m : p->m / 2;
    strided_tile *const *tiles = strided_tiles[tile_width(p->m, p->n, false)];
    const T *a = (const T *)(const void *)p->a, *b = (const T *)(const void *)p->b;
    T *c = (T *)(void *)p->c;
    tiles[first - 1](1, p->k, a, p->a_row, p->a_column, b, p->b_row, c, p->c_row, p->n, p->accumulate);
    if (first < p->m)
        tiles[p->m - first - 1](1, p->k, a + first * p->a_row, p->a_row, p->a_column, b, p->b_row, c + first * p->c_row,
                                p->c_row, p->n, p->accumulate);
    if (p->bias) add_bias(p, 0, p->m, 0, p->n);
}

static void multiply_vectors(const rapt_product *p)
{
    const int64_t first = multiply_dense_columns(p);
    const int64_t b_column = p->k == 1 && p->n == 1 ? 1 : p->b_column;
    const bool copies = is_copied(p->m, p->b_row, b_column);
    T copy[RAPT_BLOCK_DEPTH * panel];
    for (int64_t block = 0; block < rapt_block_count(p->k) && first < p->n; block++) {
        part_of_b from = {.done = rapt_block_start(p->k, block), .b_row = p->b_row};
        from.k = rapt_block_start(p->k, block + 1) - from.done;
        const T *b = (const T *)(const void *)p->b + from.done * p->b_row;
        for (from.column = first; from.column < p->n; from.column += from.count) {
            from.b = b + from.column * b_column;
            from.count = p->n - from.column;
            if (copies) {
                from.count = smaller_of(from.count, panel);
                pack_columns(from.count, from.k, from.b, p->b_row, b_column, copy);
                from.b = copy;
                from.b_row = panel_width(from.count);
            }
            multiply_rows_directly(p, from);
        }
    }
}

static void multiply_direct(const rapt_product *p)
{
    if (is_small(p))
        multiply_small(p);
    else if (is_tiny(p))
        multiply_tiny(p);
    else if (p->m * p->n <= together)
        multiply_elements(p);
    else if (is_thin(p->n, p->k, p->c_column))
        multiply_thin(p);
    else
        multiply_vectors(p);
    finish(p);
}

/* What a product that stays in the cache takes, in multiply-adds of a vector: sums, what they wait for, b's way into
 * vectors and c's out of them. */
static double time_of(int64_t m, int64_t n, int64_t k, int64_t a_column, int64_t b_row, int64_t b_column,
                      int64_t c_column)
{
    const double waiting = 4, narrow = 1.05; /* each row, for other columns than a whole panel's */
    const double turn = 9, turn_at_once = 4, gather = 2 * width, copy = 2; /* a vector of b */
    const double store = 2, store_turned = 12, store_lanes = 45; /* a vector of c, whose rows fill lanes or do not */
    const int64_t whole = (n + width - 1) / width, lanes = m / lane_width * lane_width;
    const double vectors = (double)whole, tiles = (double)(m * whole), depth = (double)k;
    const bool halves = c_column == 1 && m >= fewest_halves && ends_in_half((n - 1) % (2 * width) + 1);
    const double sums = tiles < waiting  ? waiting
                        : n <= width / 2 ? half_time * tiles
                        : whole == 1     ? narrow * tiles
                                         : tiles - (halves ? (1 - half_time) * (double)m : 0);
    const double dense_columns = m <= column_rows && a_column == 1 ? turn_at_once : turn,
                 dense_rows = is_copied(m, b_row, 1) ? copy : 0;
    const double load = b_column == 1 || n == 1 ? dense_rows : b_row == 1 ? dense_columns : gather;
    const double turned = (double)lanes * store_turned + (m > lanes ? (double)lane_width * store_lanes : 0);
    return sums * depth + vectors * depth * load +
           (c_column == 1 ? tiles * store : vectors * turned) * (double)rapt_block_count(k);
}

/* What a larger one takes, of which both a and b are packed, or b comes from memory: each row as long as a panel, even
 * where it fills less of one. */
static double far_time_of(int64_t m, int64_t n, int64_t k, int64_t c_column)
{
    const double whole = 4, rests = 16, turned = 48; /* a row of a tile of c */
    const int64_t rest = n % panel, lowest = 4;      /* rows that keep the processor busy */
    const double panels = (double)(n / panel) + (rest == 0 ? 0 : rest <= width ? narrow_time : 1);
    const double store = c_column != 1 ? turned : n % width != 0 ? rests : whole;
    return panels * (double)(m < lowest ? lowest : m) * ((double)smaller_of(k, RAPT_BLOCK_DEPTH) + store);
}

static bool is_better_turned(const rapt_product *p)
{
    if (p->m * p->n <= together || is_tiny(p) || is_small(p) || is_thin(p->n, p->k, p->c_column)) return false;
    if (is_thin(p->m, p->k, p->c_row)) return true;
    if (p->k * p->m > farthest / SIZE || p->k * p->n > farthest / SIZE)
        return far_time_of(p->m, p->n, p->k, p->c_column) > far_time_of(p->n, p->m, p->k, p->c_row);
    return time_of(p->m, p->n, p->k, p->a_column, p->b_row, p->b_column, p->c_column) >
           time_of(p->n, p->m, p->k, p->b_row, p->a_column, p->a_row, p->c_row);
}
