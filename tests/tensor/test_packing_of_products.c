/* What products pack of a and b: every element is in its place, and nothing is written behind the last one. */
#include <rapt.h>

#include "matrix.h"
#include "tensor/kernels.h"

/* Panels of rows are cut evenly, [k][height]: to[start · k + t · height + i] = a[start + i][t]. */
static void check_rows(const rapt_matmul_kernels *kernels, const matrix *a, int64_t block)
{
    const int64_t m = a->rows, done = rapt_block_start(a->columns, block);
    const int64_t k = rapt_block_start(a->columns, block + 1) - done, panels = (m + kernels->rows - 1) / kernels->rows;
    const rapt_product p =
        {.m = m, .n = 1, .k = a->columns, .a = (const char *)a->data, .a_row = a->row, .a_column = a->column};
    const matrix to = make(a->dtype, 1, m * k, DENSE_ROWS);
    kernels->pack_rows(&p, block, panels / 2, panels, to.data);
    kernels->pack_rows(&p, block, 0, panels / 2, to.data);
    for (int64_t i = 0; i < panels; i++) {
        const int64_t start = m * i / panels, height = m * (i + 1) / panels - start;
        for (int64_t t = 0; t < k; t++)
            for (int64_t j = 0; j < height; j++)
                cr_assert_eq(number_at(&to, 0, start * k + t * height + j), number_at(a, start + j, done + t),
                             "row %lld, term %lld of (%lld, %lld)", (long long)(start + j), (long long)t, (long long)m,
                             (long long)k);
    }
    give(&to);
}

static bool is_panel(const matrix *to, int64_t at, int64_t wide, const matrix *b, int64_t first, int64_t done,
                     int64_t k)
{
    for (int64_t t = 0; t < k; t++)
        for (int64_t j = 0; j < wide && first + j < b->columns; j++)
            if (number_at(to, 0, at + t * wide + j) != number_at(b, done + t, first + j)) return false;
    return true;
}

/* Panels of columns, [k][columns]; the last one may be narrower, of a vector, which is a half or a quarter. */
static void check_columns(const rapt_matmul_kernels *kernels, const matrix *b, int64_t block)
{
    const int64_t n = b->columns, panel = kernels->columns, panels = (n + panel - 1) / panel;
    const int64_t done = rapt_block_start(b->rows, block), k = rapt_block_start(b->rows, block + 1) - done;
    const rapt_product p =
        {.m = 1, .n = n, .k = b->rows, .b = (const char *)b->data, .b_row = b->row, .b_column = b->column};
    const matrix to = make(b->dtype, 1, panels * panel * k, DENSE_ROWS);
    kernels->pack_block(&p, block, 0, panels / 2, to.data);
    kernels->pack_block(&p, block, panels / 2, panels, to.data);
    for (int64_t i = 0; i < panels; i++) {
        const int64_t count = n - i * panel < panel ? n - i * panel : panel;
        bool good = is_panel(&to, i * panel * k, panel, b, i * panel, done, k);
        for (int64_t vectors = 2; !good && vectors <= 4; vectors *= 2)
            good = count <= panel / vectors && is_panel(&to, i * panel * k, panel / vectors, b, i * panel, done, k);
        cr_assert(good, "panel %lld of (%lld, %lld)", (long long)i, (long long)k, (long long)n);
    }
    give(&to);
}

static void check_sizes(rapt_dtype dtype, enum lie lie)
{
    static const int64_t depths[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 20, 33, 260};
    const rapt_matmul_kernels *kernels = &rapt_kernel.matmul[dtype];
    uint64_t state = 1;
    for (size_t depth = 0; depth < sizeof depths / sizeof *depths; depth++)
        for (int64_t count = 1; count <= 3 * kernels->columns + 2; count += count < 40 ? 1 : 5) {
            const int64_t k = depths[depth];
            const matrix a = draw_matrix(&state, dtype, count, k, lie), b = draw_matrix(&state, dtype, k, count, lie);
            for (int64_t block = 0; block < rapt_block_count(k); block++) {
                check_rows(kernels, &a, block);
                check_columns(kernels, &b, block);
            }
            give(&a), give(&b);
        }
}

Test(packing_of_products, float32)
{
    for (int lie = 0; lie < LIES; lie++) check_sizes(RAPT_FLOAT32, (enum lie)lie);
}

Test(packing_of_products, float64)
{
    for (int lie = 0; lie < LIES; lie++) check_sizes(RAPT_FLOAT64, (enum lie)lie);
}
