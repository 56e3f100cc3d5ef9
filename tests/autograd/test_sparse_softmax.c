/* Sparsemax and entmax against their definitions, solved by sorting in long double, on rows of every hard kind. */
#include <criterion/criterion.h>
#include <rapt/autograd.h>

#include <math.h>
#include <stdlib.h>

static int descend(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* The threshold of the k largest elements, for the largest k that lie above it; counted from the largest. */
static long double threshold_of(int64_t n, const double *sorted, bool is_entmax)
{
    long double sum = 0, squares = 0, threshold = 0;
    for (int64_t k = 1; k <= n; k++) {
        const long double z = ((long double)sorted[k - 1] - sorted[0]) * (is_entmax ? 0.5L : 1), count = k;
        if (isinf(z)) break;
        sum += z;
        squares += z * z;
        const long double square = sum * sum - count * (squares - 1);
        const long double here = is_entmax ? (sum - sqrtl(fmaxl(square, 0))) / count : (sum - 1) / count;
        if (here < z && square >= (is_entmax ? 0 : square)) threshold = here;
    }
    return threshold;
}

/* Rows of normal numbers of many sizes, of equal ones, of ties, and with −∞ among them. */
static void draw_row(int64_t n, uint64_t row, const double *normal, double *out)
{
    static const double sizes[] = {1, 0.1, 10, 1e-3, 1000, 1e-9, 0.5, 3};
    const double size = sizes[row % 8], offset = row % 5 == 0 ? 100 : 0;
    for (int64_t i = 0; i < n; i++) {
        out[i] = offset + size * normal[i];
        if (row % 11 == 0) out[i] = offset;
        if (row % 7 == 0) out[i] = offset + floor(4 * normal[i]) / 4;
        if (row % 13 == 0 && i % 3 == 1) out[i] = -(double)INFINITY;
    }
}

static double worst_error(int64_t n, const double *x, const double *y, bool is_entmax, double *sorted)
{
    double worst = 0;
    long double total = 0;
    for (int64_t i = 0; i < n; i++) sorted[i] = x[i];
    qsort(sorted, (size_t)n, sizeof *sorted, descend);
    const long double threshold = threshold_of(n, sorted, is_entmax);
    for (int64_t i = 0; i < n; i++) {
        const long double z = ((long double)x[i] - sorted[0]) * (is_entmax ? 0.5L : 1);
        const long double above = isinf(z) ? 0 : fmaxl(z - threshold, 0);
        worst = fmax(worst, fabs((double)((is_entmax ? above * above : above) - y[i])));
        total += y[i];
    }
    return fmax(worst, fabs((double)(total - 1)));
}

/* 100,000 rows of 1 to 100 elements of each function; float32 is compared where its input is exact. */
static void check_rows(bool is_entmax, rapt_dtype dtype, double tolerance)
{
    enum { widths = 100, rows = 1000 };
    double sorted[widths];
    for (int64_t n = 1; n <= widths; n++) {
        RAPT_SCOPE;
        rapt_seed((uint64_t)n);
        rapt_tensor *x = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(rows, n));
        cr_assert_not_null(x, "%s", rapt_error());
        double *numbers = rapt_data_for_writing(x);
        for (int64_t row = 0; row < rows; row++) draw_row(n, (uint64_t)(row + n), numbers + row * n, numbers + row * n);
        x = rapt_cast(x, dtype);
        rapt_tensor *y = is_entmax ? rapt_entmax15(x, -1) : rapt_sparsemax(x, -1);
        cr_assert_not_null(y, "%s", rapt_error());
        const double *inputs = rapt_data(rapt_cast(x, RAPT_FLOAT64)), *outputs = rapt_data(rapt_cast(y, RAPT_FLOAT64));
        for (int64_t row = 0; row < rows; row++) {
            const double error = worst_error(n, inputs + row * n, outputs + row * n, is_entmax, sorted);
            cr_assert(error <= tolerance, "row %d of %d: off by %g", (int)row, (int)n, error);
        }
    }
}

Test(sparse_softmax, sparsemax_is_its_definition)
{
    check_rows(false, RAPT_FLOAT64, 1e-14);
    check_rows(false, RAPT_FLOAT32, 2e-6);
}

Test(sparse_softmax, entmax15_is_its_definition)
{
    check_rows(true, RAPT_FLOAT64, 1e-14);
    check_rows(true, RAPT_FLOAT32, 2e-6);
}

/* Large numbers of elements, of which all or few have weight. */
Test(sparse_softmax, long_rows)
{
    enum { n = 200000 };
    RAPT_SCOPE;
    double *sorted = malloc(n * sizeof *sorted);
    rapt_seed(1);
    for (int trial = 0; trial < 4; trial++) {
        rapt_tensor *x = rapt_mul_scalar(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(n)), trial < 2 ? 1 : 1e-7);
        rapt_tensor *y = trial % 2 ? rapt_entmax15(x, 0) : rapt_sparsemax(x, 0);
        cr_assert_not_null(y, "%s", rapt_error());
        const double error = worst_error(n, rapt_data(x), rapt_data(y), trial % 2, sorted);
        cr_expect(error <= 1e-12, "trial %d: off by %g", trial, error);
    }
    free(sorted);
}

Test(sparse_softmax, rows_without_an_answer)
{
    RAPT_SCOPE;
    const double low = -(double)INFINITY, high = (double)INFINITY, nan = (double)NAN;
    rapt_tensor *x =
        rapt_from(RAPT_FLOAT64, RAPT_SHAPE(4, 3), (double[]){low, low, low, 1, nan, 2, 0, high, 0, low, 5, low});
    for (int which = 0; which < 2; which++) {
        const double *y = rapt_data(which ? rapt_entmax15(x, -1) : rapt_sparsemax(x, -1));
        for (int i = 0; i < 3; i++) {
            cr_expect_eq(y[i], 0);
            cr_expect(isnan(y[3 + i]) && isnan(y[6 + i]));
            cr_expect_eq(y[9 + i], i == 1);
        }
    }
}
