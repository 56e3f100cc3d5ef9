/* Matrix products of any size and strides: against plain sums in double, with the same bits however they are cut. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <rapt.h>

#include "expect.h"
#include "matrix.h"
#include "tensor/matmul.h"
#include "tensor/memory.h"

/* c = a · b or c += a · b, for the rows and columns of c from (top, left) on. */
static bool multiply_part(const matrix *a, const matrix *b, const matrix *c, bool accumulate, int64_t top, int64_t left,
                          int64_t rows, int64_t columns)
{
    return rapt_gemm("products", a->dtype, rows, columns, a->columns, element(a, top, 0), a->row, a->column,
                     element(b, 0, left), b->row, b->column, element(c, top, left), c->row, accumulate);
}

static bool same_bits(const matrix *x, const matrix *y)
{
    for (int64_t i = 0; i < x->rows; i++)
        if (memcmp(element(x, i, 0), element(y, i, 0), (size_t)x->columns * rapt_dtype_size(x->dtype)) != 0)
            return false;
    return true;
}

/* The elements of a product, (rows, columns), and what is added for each without its sign. */
typedef struct exact_product {
    int64_t terms;
    long double *sums, *sizes;
} exact_product;

/* Its numbers, row by row; turned, column by column. */
static double *copy_of(const matrix *x, bool turned)
{
    double *copy = malloc((size_t)(x->rows * x->columns) * sizeof *copy);
    cr_assert(copy);
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->columns; j++)
            copy[turned ? j * x->rows + i : i * x->columns + j] = number_at(x, i, j);
    return copy;
}

/* One element after the other would wait for each addition: two at a time. */
static void sum_two(int64_t k, const double *row, const double *const columns[2], long double *sums, long double *sizes)
{
    long double sum_0 = 0, size_0 = 0, sum_1 = 0, size_1 = 0;
    for (int64_t t = 0; t < k; t++) {
        const long double factor = (long double)row[t], term_0 = factor * (long double)columns[0][t],
                          term_1 = factor * (long double)columns[1][t];
        sum_0 += term_0, size_0 += fabsl(term_0);
        sum_1 += term_1, size_1 += fabsl(term_1);
    }
    sums[0] = sum_0, sizes[0] = size_0;
    sums[1] = sum_1, sizes[1] = size_1;
}

static exact_product multiply_exactly(const matrix *a, const matrix *b)
{
    const int64_t m = a->rows, n = b->columns, k = a->columns;
    exact_product exact = {k, malloc((size_t)(m * n) * sizeof *exact.sums),
                           malloc((size_t)(m * n) * sizeof *exact.sizes)};
    double *rows = copy_of(a, false), *columns = copy_of(b, true);
    cr_assert(exact.sums && exact.sizes);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j += 2) {
            long double sums[2], sizes[2];
            const bool both = j + 1 < n;
            sum_two(k, rows + i * k, (const double *const[]){columns + j * k, columns + (j + both) * k}, sums, sizes);
            for (int of = 0; of <= both; of++) {
                exact.sums[i * n + j + of] = sums[of];
                exact.sizes[i * n + j + of] = sizes[of];
            }
        }
    free(rows), free(columns);
    return exact;
}

static void exact_free(const exact_product *exact)
{
    free(exact->sums), free(exact->sizes);
}

/* What a sum of k products may lose (Higham 2002, 3.1), however it is ordered: k roundings of all that is added. */
static void check_sums(const exact_product *exact, const matrix *c, const matrix *before, const char *name)
{
    const double rounding = c->dtype == RAPT_FLOAT32 ? (double)FLT_EPSILON : DBL_EPSILON;
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t j = 0; j < c->columns; j++) {
            const long double first = before ? (long double)number_at(before, i, j) : 0;
            const long double sum = first + exact->sums[i * c->columns + j];
            const long double size = fabsl(first) + exact->sizes[i * c->columns + j];
            const double error = fabs(number_at(c, i, j) - (double)sum);
            const double most = (double)(exact->terms + 1) * rounding * (double)size;
            cr_assert(error <= most, "%s (%lld, %lld, %lld): element (%lld, %lld) is off by %g, more than %g", name,
                      (long long)c->rows, (long long)exact->terms, (long long)c->columns, (long long)i, (long long)j,
                      error, most);
        }
}

static void check_sums_of(const matrix *a, const matrix *b, const matrix *c, const char *name)
{
    const exact_product exact = multiply_exactly(a, b);
    check_sums(&exact, c, NULL, name);
    exact_free(&exact);
}

/* Nothing but c is written: what lies between its rows is NaN still. */
static void check_gaps(const matrix *c)
{
    for (int64_t i = 0; i + 1 < c->rows; i++)
        for (int64_t j = c->columns; j < c->row; j++) cr_assert(isnan(number_at(c, i, j)), "written beside c");
}

/* Whole, added to, and in four parts. */
static void check_product(uint64_t *state, rapt_dtype dtype, int64_t m, int64_t k, int64_t n, enum lie a_lie,
                          enum lie b_lie)
{
    const matrix a = draw_matrix(state, dtype, m, k, a_lie), b = draw_matrix(state, dtype, k, n, b_lie);
    const matrix c = make(dtype, m, n, DENSE_ROWS), parts = make(dtype, m, n, DENSE_ROWS);
    const matrix before = draw_matrix(state, dtype, m, n, DENSE_ROWS), sum = make(dtype, m, n, DENSE_ROWS);
    const exact_product exact = multiply_exactly(&a, &b);
    cr_assert(multiply_part(&a, &b, &c, false, 0, 0, m, n), "%s", rapt_error());
    check_sums(&exact, &c, NULL, "a product");
    check_gaps(&c);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) put(&sum, i, j, number_at(&before, i, j));
    cr_assert(multiply_part(&a, &b, &sum, true, 0, 0, m, n), "%s", rapt_error());
    check_sums(&exact, &sum, &before, "an accumulated product");
    check_gaps(&sum);
    exact_free(&exact);
    const int64_t top = draw_below(state, m + 1), left = draw_below(state, n + 1);
    cr_assert(multiply_part(&a, &b, &parts, false, 0, 0, top, left) &&
              multiply_part(&a, &b, &parts, false, 0, left, top, n - left) &&
              multiply_part(&a, &b, &parts, false, top, 0, m - top, left) &&
              multiply_part(&a, &b, &parts, false, top, left, m - top, n - left));
    cr_assert(same_bits(&c, &parts), "(%lld, %lld, %lld) cut at row %lld and column %lld has other bits", (long long)m,
              (long long)k, (long long)n, (long long)top, (long long)left);
    for (const matrix *const *x = (const matrix *const[]){&a, &b, &c, &parts, &before, &sum, NULL}; *x; x++) give(*x);
}

static int64_t draw_size(uint64_t *state, int64_t largest)
{
    return 1 + (int64_t)((double)largest * pow((double)draw_below(state, 1000) / 1000, 2.5));
}

Test(products, small_sizes_one_after_the_other)
{
    uint64_t state = 1;
    for (int64_t m = 1; m <= 18; m++)
        for (int64_t n = 1; n <= 36; n += n < 8 ? 1 : 3)
            for (int64_t k = 1; k <= 19; k += 6)
                check_product(&state, draw_chance(&state, 50) ? RAPT_FLOAT32 : RAPT_FLOAT64, m, k, n,
                              (enum lie)draw_below(&state, LIES), (enum lie)draw_below(&state, LIES));
}

/* Long in one direction, short in the others: each has a kernel of its own. */
Test(products, tall_wide_and_deep_sizes)
{
    uint64_t state = 9;
    const int64_t sizes[][3] = {{300, 1, 3},   {3, 2, 300},   {200, 3, 1},   {1, 4, 200},   {150, 5, 8},
                                {9, 6, 170},   {170, 7, 33},  {40, 8, 130},  {6, 5, 700},   {700, 3, 6},
                                {100, 70, 4},  {5, 90, 100},  {1, 600, 150}, {2, 600, 99},  {120, 600, 1},
                                {77, 600, 2},  {1, 1100, 1},  {2, 900, 2},   {3, 1300, 1},  {7, 520, 5},
                                {60, 600, 20}, {13, 300, 52}, {15, 3, 1214}, {153, 3, 133}, {41, 8, 450}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int lies = 0; lies < 2 * LIES * LIES; lies++)
            check_product(&state, lies % 2 ? RAPT_FLOAT32 : RAPT_FLOAT64, sizes[i][0], sizes[i][1], sizes[i][2],
                          (enum lie)(lies / 2 % LIES), (enum lie)(lies / 2 / LIES));
}

Test(products, sums_that_are_cut_into_blocks)
{
    uint64_t state = 2;
    for (int64_t k = 254; k <= 770; k += k == 258 ? 252 : k == 514 ? 252 : 1)
        for (int lies = 0; lies < LIES * LIES; lies++)
            check_product(&state, lies % 2 ? RAPT_FLOAT32 : RAPT_FLOAT64, draw_size(&state, 40), k,
                          draw_size(&state, 100), (enum lie)(lies % LIES), (enum lie)(lies / LIES));
}

/* Up to 16,777,216 multiplications each tile packs alone, above it all threads pack together; rows of c that are whole
 * pages apart (1,021 and 509 columns and a gap of 3) are summed elsewhere. */
Test(products, large_sizes, .timeout = 200)
{
    uint64_t state = 3;
    const int64_t sizes[][3] = {{130, 300, 140}, {64, 1000, 530},  {300, 256, 300}, {257, 257, 257}, {900, 40, 500},
                                {113, 600, 650}, {57, 1200, 1000}, {5, 2000, 1700}, {1700, 900, 11}, {1, 3000, 3001},
                                {3001, 3000, 1}, {60, 530, 1021},  {180, 300, 509}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int lies = 0; lies < 4; lies++)
            check_product(&state, (i + (size_t)lies) % 2 ? RAPT_FLOAT32 : RAPT_FLOAT64, sizes[i][0], sizes[i][1],
                          sizes[i][2], (enum lie)(lies % 2), (enum lie)(lies / 2));
}

Test(products, any_number_of_threads_gives_the_same_bits)
{
    uint64_t state = 4;
    const int64_t sizes[][3] = {{3000, 300, 20}, {20, 300, 3000}, {1, 3000, 700}, {700, 3000, 1},  {9000, 8, 16},
                                {9, 130, 4000},  {4000, 130, 5},  {2, 5000, 300}, {70, 260, 1300}, {1100, 70, 300},
                                {15, 3, 2914},   {153, 3, 433},   {41, 8, 3000}};
    enum { given = sizeof sizes / sizeof *sizes, drawn = 12 };
    for (int trial = 0; trial < drawn + given; trial++) {
        const rapt_dtype dtype = trial % 2 ? RAPT_FLOAT32 : RAPT_FLOAT64;
        const int64_t *size = trial < drawn ? NULL : sizes[trial - drawn];
        const int64_t m = size ? size[0] : draw_size(&state, 500), k = size ? size[1] : draw_size(&state, 900);
        const int64_t n = size ? size[2] : draw_size(&state, 700);
        const matrix a = draw_matrix(&state, dtype, m, k, DENSE_ROWS);
        const matrix b = draw_matrix(&state, dtype, k, n, (enum lie)(trial / 2 % 2));
        const matrix c = make(dtype, m, n, DENSE_ROWS), other = make(dtype, m, n, DENSE_ROWS);
        rapt_set_threads(1);
        cr_assert(multiply_part(&a, &b, &c, false, 0, 0, m, n));
        for (int threads = 2; threads <= 8; threads++) {
            rapt_set_threads(threads);
            cr_assert(multiply_part(&a, &b, &other, false, 0, 0, m, n));
            cr_expect(same_bits(&c, &other), "(%lld, %lld, %lld) on %d threads", (long long)m, (long long)k,
                      (long long)n, threads);
        }
        give(&a), give(&b), give(&c), give(&other);
    }
}

/* The library's own products and OpenBLAS's are the two that are compared, so they must not be the same code. */
Test(products, openblas_agrees)
{
    uint64_t state = 5;
    const matrix a = draw_matrix(&state, RAPT_FLOAT64, 200, 300, DENSE_ROWS);
    const matrix b = draw_matrix(&state, RAPT_FLOAT64, 300, 150, DENSE_COLUMNS);
    const matrix c = make(RAPT_FLOAT64, 200, 150, DENSE_ROWS), other = make(RAPT_FLOAT64, 200, 150, DENSE_ROWS);
    cr_assert(multiply_part(&a, &b, &c, false, 0, 0, 200, 150));
    cr_expect_not(rapt_matmul_set_blas(true));
    if (!rapt_matmul_uses_blas()) cr_skip_test("built without OpenBLAS");
    cr_assert(multiply_part(&a, &b, &other, false, 0, 0, 200, 150));
    cr_expect(rapt_matmul_set_blas(false));
    check_sums_of(&a, &b, &other, "OpenBLAS's product");
    cr_expect_not(same_bits(&c, &other), "OpenBLAS adds in another order");
    give(&a), give(&b), give(&c), give(&other);
}

Test(products, an_empty_sum_is_zero_and_adds_nothing)
{
    const matrix c = make(RAPT_FLOAT32, 3, 5, DENSE_ROWS);
    const float nothing = 0;
    cr_assert(rapt_gemm("products", RAPT_FLOAT32, 3, 5, 0, &nothing, 0, 1, &nothing, 5, 1, c.data, c.row, false));
    for (int64_t i = 0; i < 15; i++) cr_expect_eq(number_at(&c, i / 5, i % 5), 0);
    for (int64_t i = 0; i < 15; i++) put(&c, i / 5, i % 5, (double)i);
    cr_assert(rapt_gemm("products", RAPT_FLOAT32, 3, 5, 0, &nothing, 0, 1, &nothing, 5, 1, c.data, c.row, true));
    for (int64_t i = 0; i < 15; i++) cr_expect_eq(number_at(&c, i / 5, i % 5), (double)i);
    check_gaps(&c);
    cr_expect(rapt_gemm("products", RAPT_FLOAT32, 0, 5, 4, &nothing, 4, 1, &nothing, 5, 1, NULL, 5, false));
    give(&c);
}

enum kind { IS_FINITE, IS_INFINITE, IS_NAN };

/* A function that stays one: gcc 14 draws wrong conclusions from isnan and isinf where both are asked of one number. */
static __attribute__((noinline)) enum kind kind_of(double x)
{
    return isnan(x) ? IS_NAN : isinf(x) ? IS_INFINITE : IS_FINITE;
}

/* 0 · ∞ is NaN: nothing is left out because a factor is 0. */
Test(products, infinities_and_nan_are_multiplied_like_other_numbers)
{
    uint64_t state = 6;
    for (int trial = 0; trial < 6; trial++) {
        const int64_t m = trial < 3 ? 5 : 150, k = trial < 3 ? 9 : 700, n = trial < 3 ? 7 : 170;
        const matrix a = draw_matrix(&state, RAPT_FLOAT32, m, k, (enum lie)(trial % LIES));
        const matrix b = draw_matrix(&state, RAPT_FLOAT32, k, n, DENSE_ROWS), c = make(RAPT_FLOAT32, m, n, DENSE_ROWS);
        put(&a, 1, 3, 0);
        put(&b, 3, 2, (double)INFINITY);
        put(&a, 4, 5, (double)NAN);
        cr_assert(multiply_part(&a, &b, &c, false, 0, 0, m, n));
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                const double value = number_at(&c, i, j);
                const enum kind expected = i == 4 || (j == 2 && i == 1) ? IS_NAN : j == 2 ? IS_INFINITE : IS_FINITE;
                cr_assert_eq(kind_of(value), expected, "(%lld, %lld): %g", (long long)i, (long long)j, value);
            }
        give(&a), give(&b), give(&c);
    }
}

Test(products, without_memory_c_is_as_it_was)
{
    uint64_t state = 7;
    for (int trial = 0; trial < 2; trial++) {
        const int64_t m = trial ? 400 : 90, k = 300, n = 300;
        const matrix a = draw_matrix(&state, RAPT_FLOAT32, m, k, DENSE_ROWS);
        const matrix b = draw_matrix(&state, RAPT_FLOAT32, k, n, DENSE_ROWS);
        const matrix c = make(RAPT_FLOAT32, m, n, DENSE_ROWS);
        int64_t failures = 0;
        for (bool good = false; !good; failures++) {
            rapt_memory_fail_after(failures);
            good = multiply_part(&a, &b, &c, false, 0, 0, m, n);
            rapt_memory_fail_after(-1);
            if (good) break;
            expect_error(RAPT_ERROR_MEMORY, "products: ");
            for (int64_t i = 0; i < m * n; i++) cr_assert(isnan(number_at(&c, i / n, i % n)));
        }
        cr_expect_geq(failures, 1);
        check_sums_of(&a, &b, &c, "after failures");
        give(&a), give(&b), give(&c);
    }
}

static bool same_tensors(rapt_tensor *a, rapt_tensor *b)
{
    return memcmp(rapt_data(rapt_contiguous(a)), rapt_data(rapt_contiguous(b)),
                  (size_t)rapt_count(a) * sizeof(float)) == 0;
}

/* Batches whose axes repeat, of dense and of turned matrices: against one product after the other. */
Test(products, batches_broadcast)
{
    RAPT_SCOPE;
    rapt_seed(8);
    rapt_tensor *a = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(3, 1, 20, 33)),
                *b = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(4, 33, 17));
    rapt_tensor *turned = rapt_transpose(rapt_contiguous(rapt_transpose(a, 2, 3)), 2, 3);
    rapt_tensor *c = rapt_matmul(a, b), *same = rapt_matmul(turned, b);
    for (int64_t i = 0; i < 3; i++)
        for (int64_t j = 0; j < 4; j++) {
            rapt_tensor *one = rapt_matmul(rapt_select(rapt_select(a, 0, i), 0, 0), rapt_select(b, 0, j));
            cr_expect(same_tensors(one, rapt_select(rapt_select(c, 0, i), 0, j)));
            cr_expect(same_tensors(one, rapt_select(rapt_select(same, 0, i), 0, j)));
        }
    expect_no_error();
}
