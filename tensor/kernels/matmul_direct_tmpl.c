/* Products that are small or have few rows: without scratch, a is read where it lies, and b too where its rows are
 * dense. */

/* The definition, for products that are over before a vector would be filled. */
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

/* One panel of columns for all rows, for a block of k: b_row apart are the rows of b. */
static void multiply_panel(const rapt_product *p, int64_t done, int64_t k, int64_t column, const T *b, int64_t b_row)
{
    const T *a = (const T *)(const void *)p->a + done * p->a_column;
    const int64_t panels = (p->m + strided_rows - 1) / strided_rows, count = smaller_of(panel, p->n - column);
    const bool adds = done > 0 || p->accumulate, whole = is_whole(p, count);
    T beside[strided_rows * panel];
    for (int64_t i = 0; i < panels; i++) {
        const int64_t row = panel_start(p->m, panels, i), height = panel_start(p->m, panels, i + 1) - row;
        strided_tile *sum = strided_tiles[count > width][height - 1];
        sum(k, a + row * p->a_row, p->a_row, p->a_column, b, b_row, whole ? element_of(p, row, column) : beside,
            whole ? p->c_row : panel, whole && adds);
        if (!whole) put(p, row, height, column, count, beside, adds);
        if (p->bias && done == 0) add_bias(p, row, height, column, count);
    }
}

static void multiply_direct(const rapt_product *p)
{
    enum { tiny = 128 };
    if (p->m * p->n * p->k <= tiny) {
        multiply_tiny(p);
        return;
    }
    T copy[RAPT_BLOCK_DEPTH * panel];
    for (int64_t block = 0; block < rapt_block_count(p->k); block++) {
        const int64_t done = rapt_block_start(p->k, block), k = rapt_block_start(p->k, block + 1) - done;
        for (int64_t column = 0; column < p->n; column += panel) {
            const T *b = (const T *)(const void *)p->b + done * p->b_row + column * p->b_column;
            const int64_t count = smaller_of(panel, p->n - column);
            const bool reads_b = p->b_column == 1 && count == panel;
            if (!reads_b) pack_columns(count, k, b, p->b_row, p->b_column, copy);
            multiply_panel(p, done, k, column, reads_b ? b : copy, reads_b ? p->b_row : panel_width(count));
        }
    }
}
