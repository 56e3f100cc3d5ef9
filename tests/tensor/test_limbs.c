/* Products of float32 by limbs: as exact as float32's own, whatever numbers meet; each element has the bits that its
 * row, its column and no others give it. */
#include <float.h>
#include <math.h>
#include <signal.h>
#include <string.h>

#include <rapt.h>

#include "expect.h"
#include "matrix.h"
#include "tensor/matmul.h"

/* A product that is large enough. */
static matrix product_of(const matrix *a, const matrix *b)
{
    cr_assert(rapt_matmul_kernels_for(RAPT_FLOAT32, a->rows, b->columns, a->columns)->multiplies_limbs,
              "it is too small, or the system does not allow it");
    const matrix c = make(RAPT_FLOAT32, a->rows, b->columns, DENSE_ROWS);
    cr_assert(rapt_gemm("limbs", RAPT_FLOAT32, a->rows, b->columns, a->columns, a->data, a->row, a->column, b->data,
                        b->row, b->column, c.data, c.row, false),
              "%s", rapt_error());
    return c;
}

/* In units of 2⁻²³ Σ |a·b|. */
static double largest_error(const matrix *a, const matrix *b, const matrix *c, double *mean)
{
    double worst = 0, total = 0;
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t j = 0; j < c->columns; j++) {
            double sum = 0, size = 0;
            for (int64_t t = 0; t < a->columns; t++) {
                const double term = number_at(a, i, t) * number_at(b, t, j);
                sum += term;
                size += fabs(term);
            }
            const double error = (number_at(c, i, j) - sum) / (FLT_EPSILON * size);
            cr_assert_not(isnan(error), "(%lld, %lld)", (long long)i, (long long)j);
            total += error;
            worst = fmax(worst, fabs(error));
        }
    if (mean) *mean = total / (double)(c->rows * c->columns);
    return worst;
}

/* Of numbers of one sign nothing cancels, so that the error is one of the result itself. 16 terms are rounded one after
 * the other, and then their sums: float32's own products, all of whose terms are, lose two to three times as much. What
 * is left out has either sign, as limbs are rounded to the nearest; were they cut off, all sums would be too small. */
Test(limbs, digits_where_nothing_cancels)
{
    uint64_t state = 1;
    const int64_t depths[] = {33, 256, 700, 3000};
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
        const matrix a = draw_matrix(&state, RAPT_FLOAT32, 140, depths[i], DENSE_ROWS);
        const matrix b = draw_matrix(&state, RAPT_FLOAT32, depths[i], 1100, DENSE_COLUMNS);
        for (int64_t t = 0; t < depths[i]; t++) {
            for (int64_t r = 0; r < a.rows; r++) put(&a, r, t, 2 + fabs(number_at(&a, r, t)));
            for (int64_t j = 0; j < b.columns; j++) put(&b, t, j, 2 + fabs(number_at(&b, t, j)));
        }
        const matrix c = product_of(&a, &b);
        double mean;
        const double error = largest_error(&a, &b, &c, &mean);
        cr_expect_leq(error, 4, "%lld terms: an error of %g", (long long)depths[i], error);
        cr_expect_leq(fabs(mean), 0.1, "%lld terms: a mean error of %g", (long long)depths[i], mean);
        give(&a), give(&b), give(&c);
    }
}

/* Every digit of a number counts: ±1 and one other number in a row and a column, whose product float32 has. */
Test(limbs, all_digits_of_a_number)
{
    uint64_t state = 2;
    const int64_t m = 160, k = 64, n = 1000;
    const matrix a = make(RAPT_FLOAT32, m, k, DENSE_ROWS), b = make(RAPT_FLOAT32, k, n, DENSE_ROWS);
    for (int64_t i = 0; i < m; i++)
        for (int64_t t = 0; t < k; t++) put(&a, i, t, t == i % k ? (i % 2 ? -1 : 1) * ldexp(1, (int)(i % 40)) : 0);
    for (int64_t t = 0; t < k; t++)
        for (int64_t j = 0; j < n; j++)
            put(&b, t, j, ldexp((double)(0x800000 | (draw(&state) & 0x7fffff)), (int)(j % 60) - 50));
    const matrix c = product_of(&a, &b);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            cr_assert_eq(number_at(&c, i, j), number_at(&a, i, i % k) * number_at(&b, i % k, j));
    give(&a), give(&b), give(&c);
}

/* --- lines that are left to the level below --- */

static const double special[] = {NAN, INFINITY, -INFINITY, FLT_MAX, -0x1p55, 0x1p-71, 1e-45, 0x1p-126};
enum { specials = sizeof special / sizeof *special };

static bool is_special(int64_t line)
{
    return line % 7 == 3 || line == 0;
}

/* Row or column `line` of x holds a special number: one at a place, or where it is small all over. */
static void spoil(const matrix *x, int64_t line, bool is_row)
{
    const double number = special[line % specials];
    const int64_t count = is_row ? x->columns : x->rows, only = line * 5 % count;
    for (int64_t t = 0; t < count; t++)
        if (t == only || fabs(number) < 1) put(x, is_row ? line : t, is_row ? t : line, number);
}

static bool has_same_bits(const matrix *x, const matrix *y, int64_t i, int64_t j)
{
    return memcmp(element(x, i, j), element(y, i, j), sizeof(float)) == 0;
}

/* c as the level below has it: products of one row are never by limbs. */
static matrix row_by_row(const matrix *a, const matrix *b)
{
    const matrix c = make(RAPT_FLOAT32, a->rows, b->columns, DENSE_ROWS);
    for (int64_t i = 0; i < a->rows; i++)
        cr_assert(rapt_gemm("limbs", RAPT_FLOAT32, 1, b->columns, a->columns, element(a, i, 0), a->row, a->column,
                            b->data, b->row, b->column, element(&c, i, 0), c.row, false));
    return c;
}

static void check_special_lines(int64_t m, int64_t k, int64_t n, enum lie a_lie, enum lie b_lie)
{
    uint64_t state = 3, again = 3;
    const matrix a = draw_matrix(&state, RAPT_FLOAT32, m, k, a_lie), b = draw_matrix(&state, RAPT_FLOAT32, k, n, b_lie);
    const matrix bad_a = draw_matrix(&again, RAPT_FLOAT32, m, k, a_lie);
    const matrix bad_b = draw_matrix(&again, RAPT_FLOAT32, k, n, b_lie);
    for (int64_t i = 0; i < m; i++)
        if (is_special(i)) spoil(&bad_a, i, true);
    for (int64_t j = 0; j < n; j++)
        if (is_special(j)) spoil(&bad_b, j, false);
    const matrix c = product_of(&a, &b), spoilt = product_of(&bad_a, &bad_b), below = row_by_row(&bad_a, &bad_b);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            if (!is_special(i) && !is_special(j)) {
                cr_assert(has_same_bits(&spoilt, &c, i, j), "(%lld, %lld) depends on others", (long long)i,
                          (long long)j);
                continue;
            }
            const double found = number_at(&spoilt, i, j), expected = number_at(&below, i, j);
            cr_assert(k > RAPT_BLOCK_DEPTH || found == expected || (isnan(found) && isnan(expected)),
                      "(%lld, %lld) is %g, not %g", (long long)i, (long long)j, found, expected);
            cr_assert_eq(isnan(found), isnan(expected));
            if (!isfinite(expected)) cr_assert(isnan(found) || found == expected);
        }
    for (const matrix *const *x = (const matrix *const[]){&a, &b, &bad_a, &bad_b, &c, &spoilt, &below, NULL}; *x; x++)
        give(*x);
}

Test(limbs, a_line_of_other_numbers_is_right_and_changes_no_other, .timeout = 200)
{
    const int64_t sizes[][3] = {{257, 200, 300}, {145, 256, 430}, {430, 170, 141}, {130, 600, 1021}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int lies = 0; lies < LIES * LIES; lies++)
            check_special_lines(sizes[i][0], sizes[i][1], sizes[i][2], (enum lie)(lies % LIES),
                                (enum lie)(lies / LIES));
}

/* --- c --- */

/* Rows of 1,021 and 509 numbers and a gap of 3 are whole pages apart: their sums are kept elsewhere until the last. */
Test(limbs, what_is_there_is_added_to_and_nothing_beside_it_written)
{
    uint64_t state = 6;
    const int64_t sizes[][3] = {{130, 600, 1021}, {300, 300, 509}, {200, 700, 333}, {600, 40, 400}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int64_t m = sizes[i][0], k = sizes[i][1], n = sizes[i][2];
        const matrix a = draw_matrix(&state, RAPT_FLOAT32, m, k, DENSE_ROWS);
        const matrix b = draw_matrix(&state, RAPT_FLOAT32, k, n, DENSE_ROWS), c = product_of(&a, &b);
        const matrix sum = draw_matrix(&state, RAPT_FLOAT32, m, n, DENSE_ROWS), before = make(RAPT_FLOAT32, m, n, 0);
        for (int64_t r = 0; r < m; r++)
            for (int64_t j = 0; j < n; j++) put(&before, r, j, number_at(&sum, r, j));
        cr_assert(
            rapt_gemm("limbs", RAPT_FLOAT32, m, n, k, a.data, a.row, 1, b.data, b.row, 1, sum.data, sum.row, true));
        for (int64_t r = 0; r < m; r++) {
            for (int64_t j = 0; j < n; j++)
                cr_assert_float_eq(number_at(&sum, r, j), number_at(&before, r, j) + number_at(&c, r, j), 1e-4);
            for (int64_t j = n; r + 1 < m && j < c.row; j++)
                cr_assert(isnan(number_at(&c, r, j)) && isnan(number_at(&sum, r, j)), "written beside c");
        }
        cr_expect_leq(largest_error(&a, &b, &c, NULL), (double)k / 16);
        for (const matrix *const *x = (const matrix *const[]){&a, &b, &c, &sum, &before, NULL}; *x; x++) give(*x);
    }
}

static int64_t draw_between(uint64_t *state, int64_t least, int64_t most)
{
    return least + draw_below(state, most - least + 1);
}

/* However tiles are cut: nothing is left as it was, and what is looked at is the sum. */
Test(limbs, every_element_of_any_size_is_written)
{
    uint64_t state = 7;
    for (int i = 0; i < 80; i++) {
        const int64_t m = draw_between(&state, 128, 1300), n = draw_between(&state, 128, 1300);
        const int64_t k = draw_between(&state, (1 << 22) / (m * n) + 1, 900);
        const matrix a = draw_matrix(&state, RAPT_FLOAT32, m, k, DENSE_ROWS);
        const matrix b = draw_matrix(&state, RAPT_FLOAT32, k, n, DENSE_COLUMNS), c = product_of(&a, &b);
        for (int64_t r = 0; r < m; r++)
            for (int64_t j = 0; j < n; j++)
                cr_assert_not(isnan(number_at(&c, r, j)), "(%lld, %lld) of (%lld, %lld, %lld)", (long long)r,
                              (long long)j, (long long)m, (long long)k, (long long)n);
        for (int sample = 0; sample < 300; sample++) {
            const int64_t row = draw_below(&state, m), column = draw_below(&state, n);
            double sum = 0;
            for (int64_t t = 0; t < k; t++) sum += number_at(&a, row, t) * number_at(&b, t, column);
            cr_assert_float_eq(number_at(&c, row, column), sum, 1e-3);
        }
        give(&a), give(&b), give(&c);
    }
}

/* --- cuts, threads, and a system that refuses --- */

Test(limbs, the_same_bits_in_any_large_part_and_on_any_number_of_threads)
{
    uint64_t state = 4;
    const int64_t m = 700, k = 500, n = 900, top = 129, left = 335;
    const matrix a = draw_matrix(&state, RAPT_FLOAT32, m, k, DENSE_ROWS);
    const matrix b = draw_matrix(&state, RAPT_FLOAT32, k, n, DENSE_ROWS), whole = product_of(&a, &b);
    for (int threads = 1; threads <= 5; threads++) {
        cr_assert(rapt_set_threads(threads));
        const matrix again = product_of(&a, &b);
        matrix lower = a, right = b;
        lower.rows = m - top, lower.data = element(&a, top, 0);
        right.columns = n - left, right.data = element(&b, 0, left);
        const matrix part = product_of(&lower, &right);
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                cr_assert(has_same_bits(&again, &whole, i, j), "%d threads", threads);
                if (i < top || j < left) continue;
                cr_assert(memcmp(element(&part, i - top, j - left), element(&whole, i, j), sizeof(float)) == 0);
            }
        give(&again), give(&part);
    }
    give(&a), give(&b), give(&whole);
}

static bool is_of_limbs(rapt_dtype dtype, int64_t m, int64_t n, int64_t k)
{
    return rapt_matmul_kernels_for(dtype, m, n, k)->multiplies_limbs;
}

/* As docs/speed.md says. */
Test(limbs, which_products_are_large)
{
    cr_expect(is_of_limbs(RAPT_FLOAT32, 128, 128, 257));
    cr_expect_not(is_of_limbs(RAPT_FLOAT32, 128, 128, 256));
    cr_expect_not(is_of_limbs(RAPT_FLOAT32, 127, 1000, 1000));
    cr_expect_not(is_of_limbs(RAPT_FLOAT32, 1000, 127, 1000));
    cr_expect_not(is_of_limbs(RAPT_FLOAT64, 1000, 1000, 1000));
    cr_expect_not(is_of_limbs(RAPT_FLOAT32, 1000, 1000, 0));
}

#ifndef _WIN32
static char warned[512];

static void note(const char *message)
{
    snprintf(warned, sizeof warned, "%s", message);
}

/* Linux refuses the registers where a thread's alternate signal stack has no room for them: that is told once. */
Test(limbs, without_the_registers_products_are_those_of_the_level_below)
{
    static char small[6144];
    cr_assert_eq(sigaltstack(&(stack_t){.ss_sp = small, .ss_size = sizeof small}, NULL), 0);
    rapt_on_warning(note);
    uint64_t state = 5;
    const matrix a = draw_matrix(&state, RAPT_FLOAT32, 200, 300, DENSE_ROWS);
    const matrix b = draw_matrix(&state, RAPT_FLOAT32, 300, 300, DENSE_ROWS), below = row_by_row(&a, &b);
    cr_assert_not(rapt_matmul_kernels_for(RAPT_FLOAT32, 200, 300, 300)->multiplies_limbs);
    cr_expect(strstr(warned, "alternate signal stack"), "%s", warned);
    *warned = '\0';
    const matrix c = make(RAPT_FLOAT32, 200, 300, DENSE_ROWS);
    cr_assert(
        rapt_gemm("limbs", RAPT_FLOAT32, 200, 300, 300, a.data, a.row, 1, b.data, b.row, 1, c.data, c.row, false));
    for (int64_t i = 0; i < 200; i++)
        for (int64_t j = 0; j < 300; j++) cr_assert(has_same_bits(&c, &below, i, j));
    cr_expect_str_eq(warned, "");
    give(&a), give(&b), give(&c), give(&below);
}
#endif
