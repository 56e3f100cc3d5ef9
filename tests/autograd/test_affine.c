/* Affine maps of any size: against plain sums in long double, and with the same bits in a batch and in parts of it. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>

#include <rapt.h>

#include "draw.h"
#include "same_bits.h"
#include "tensor/kernels.h"

typedef struct problem {
    rapt_tensor *x, *weight, *bias;
} problem;

enum lie { DENSE_ROWS, DENSE_COLUMNS, SCATTERED, LIES };

static rapt_tensor *draw_tensor(rapt_dtype dtype, int64_t rows, int64_t columns, enum lie lie)
{
    if (lie == DENSE_COLUMNS) return rapt_transpose(rapt_randn(dtype, RAPT_SHAPE(columns, rows)), 0, 1);
    if (lie == SCATTERED) return rapt_slice(rapt_randn(dtype, RAPT_SHAPE(rows, 2 * columns)), 1, 0, 2 * columns, 2);
    return rapt_randn(dtype, RAPT_SHAPE(rows, columns));
}

static double at(const rapt_tensor *x, int64_t i, int64_t j)
{
    return rapt_at(x, rapt_rank(x) == 1 ? (const int64_t[]){j} : (const int64_t[]){i, j});
}

/* What a sum of k products and a bias may lose (Higham 2002, 3.1), however it is ordered. */
static void check_sums(const problem *p, const rapt_tensor *y)
{
    const double rounding = rapt_get_dtype(y) == RAPT_FLOAT32 ? (double)FLT_EPSILON : DBL_EPSILON;
    const int64_t k = rapt_size(p->x, 1);
    for (int64_t i = 0; i < rapt_size(y, 0); i++)
        for (int64_t j = 0; j < rapt_size(y, 1); j++) {
            long double sum = (long double)at(p->bias, 0, j), size = fabsl(sum);
            for (int64_t t = 0; t < k; t++) {
                const long double term = (long double)at(p->x, i, t) * (long double)at(p->weight, j, t);
                sum += term;
                size += fabsl(term);
            }
            const double error = fabs(at(y, i, j) - (double)sum), most = (double)(k + 2) * rounding * (double)size;
            cr_assert(error <= most, "(%lld, %lld) of %lld terms is off by %g, more than %g", (long long)i,
                      (long long)j, (long long)k, error, most);
        }
}

static rapt_tensor *part(rapt_tensor *x, int axis, int64_t first, int64_t last)
{
    return rapt_slice(x, axis, first, last, 1);
}

/* The rows from `top` to `bottom` and the columns from `left` to `right` alone. */
static void check_part(const problem *p, rapt_tensor *y, int64_t top, int64_t bottom, int64_t left, int64_t right)
{
    rapt_tensor *there = part(part(y, 0, top, bottom), 1, left, right);
    rapt_tensor *alone =
        rapt_affine(part(p->x, 0, top, bottom), part(p->weight, 0, left, right), part(p->bias, 0, left, right));
    cr_assert(alone && there, "%s", rapt_error());
    char of[2][128];
    cr_assert(same_bits(alone, there),
              "rows %lld to %lld, columns %lld to %lld have other bits alone; x is %s, the weight %s", (long long)top,
              (long long)bottom, (long long)left, (long long)right, rapt_describe(p->x, of[0], sizeof of[0]),
              rapt_describe(p->weight, of[1], sizeof of[1]));
}

static void check_affine(uint64_t *state, int64_t m, int64_t k, int64_t n, enum lie x, enum lie weight)
{
    RAPT_SCOPE;
    const rapt_dtype dtype = draw_chance(state, 50) ? RAPT_FLOAT32 : RAPT_FLOAT64;
    const problem p = {.x = draw_tensor(dtype, m, k, x),
                       .weight = draw_tensor(dtype, n, k, weight),
                       .bias = rapt_randn(dtype, RAPT_SHAPE(n))};
    rapt_tensor *y = rapt_affine(p.x, p.weight, p.bias);
    cr_assert(y, "%s", rapt_error());
    check_sums(&p, y);
    if (rapt_matmul_kernels_for(dtype, m, n, k)->multiplies_limbs) return; /* its parts are not */
    const int64_t row = draw_below(state, m), column = draw_below(state, n);
    check_part(&p, y, row, row + 1, 0, n);
    check_part(&p, y, 0, m, column, column + 1);
    check_part(&p, y, row, row + 1, column, column + 1);
    check_part(&p, y, row, m, column, n);
}

static void check_lies(uint64_t *state, int64_t m, int64_t k, int64_t n)
{
    for (int lies = 0; lies < LIES * LIES; lies++)
        check_affine(state, m, k, n, (enum lie)(lies % LIES), (enum lie)(lies / LIES));
}

Test(affine, small_sizes_one_after_the_other)
{
    uint64_t state = 1;
    for (int64_t m = 1; m <= 14; m++)
        for (int64_t n = 1; n <= 36; n += n < 8 ? 1 : 5)
            for (int64_t k = 1; k <= 19; k += 6)
                check_affine(&state, m, k, n, (enum lie)draw_below(&state, LIES), (enum lie)draw_below(&state, LIES));
}

/* Sums that are cut into blocks, of one element to many. */
Test(affine, deep_sizes)
{
    uint64_t state = 2;
    const int64_t sizes[][2] = {{1, 1},  {1, 2},  {2, 2}, {4, 1},  {1, 5},  {7, 1},
                                {3, 20}, {30, 3}, {3, 9}, {2, 99}, {40, 35}};
    for (int64_t k = 300; k <= 1300; k += 500)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) check_lies(&state, sizes[i][0], k, sizes[i][1]);
}

Test(affine, long_and_thin_sizes)
{
    uint64_t state = 3;
    const int64_t sizes[][3] = {{300, 1, 3},  {3, 2, 300},   {200, 30, 1}, {1, 4, 200},   {150, 5, 8},
                                {9, 6, 170},  {170, 7, 33},  {60, 90, 70}, {120, 600, 1}, {1, 600, 150},
                                {7, 520, 64}, {60, 600, 20}, {13, 300, 52}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) check_lies(&state, sizes[i][0], sizes[i][1], sizes[i][2]);
}

/* Sums that stay elsewhere until the last block, since the rows of the result are whole pages apart. */
Test(affine, rows_of_whole_pages)
{
    uint64_t state = 4;
    for (int lies = 0; lies < 4; lies++)
        check_affine(&state, 50, 340, 1024, (enum lie)(lies % 2), (enum lie)(lies / 2));
}

Test(affine, large_sizes)
{
    uint64_t state = 5;
    const int64_t sizes[][3] = {{128, 300, 512}, {131, 520, 333}, {400, 60, 257}};
    for (int i = 0; i < 9; i++)
        check_affine(&state, sizes[i % 3][0], sizes[i % 3][1], sizes[i % 3][2], (enum lie)draw_below(&state, LIES),
                     (enum lie)draw_below(&state, LIES));
}
