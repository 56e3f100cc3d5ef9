/* Matrix products beside those of OpenBLAS on the same threads: the two take turns, and what is printed are medians.
 *
 *     products [--float64] [--random COUNT | M K N LAYOUT...]
 *
 * Without a shape, those of models; --random draws so many, always the same ones, and sorts them by their ratio, the
 * worst first. LAYOUT is nn, nt, tn or tt: which operands lie transposed in memory.
 *
 * OpenBLAS chooses its kernels by a list of processors; where yours is newer than the list,
 * OPENBLAS_CORETYPE=SkylakeX (or Haswell without AVX-512) gives it its best ones. */
#include <cblas.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rapt.h>

#include "peak.h"
#include "tensor/matmul.h"
#include "timing.h"

/* c (m, n) = a · b; a transposed operand is stored with its axes swapped. */
typedef struct product {
    const char *name;
    int64_t m, k, n;
    bool is_a_transposed, is_b_transposed;
} product;

static const product products[] = {
    {"square", 128, 128, 128, false, false},
    {"square", 256, 256, 256, false, false},
    {"square", 512, 512, 512, false, false},
    {"square", 1024, 1024, 1024, false, false},
    {"square", 2048, 2048, 2048, false, false},
    {"GPT-2 expanding, forward", 1024, 768, 3072, false, true},
    {"GPT-2 expanding, backward", 1024, 3072, 768, false, false},
    {"GPT-2 expanding, weight", 3072, 1024, 768, true, false},
    {"GPT-2 projecting, forward", 256, 768, 2304, false, true},
    {"GPT-2 projecting, backward", 256, 2304, 768, false, false},
    {"GPT-2 projecting, weight", 2304, 256, 768, true, false},
    {"GPT-2 logits", 256, 768, 50257, false, true},
    {"recurrent step", 128, 256, 1024, false, true},
    {"recurrent step, backward", 128, 1024, 256, false, false},
    {"translator, forward", 1280, 256, 1024, false, true},
    {"head, 64 rows", 64, 64, 64, false, true},
    {"16 rows", 16, 768, 768, false, true},
    {"4 rows", 4, 768, 3072, false, true},
    {"1 row", 1, 768, 3072, false, true},
    {"1 row, plain", 1, 3072, 3072, false, false},
    {"1 column", 3072, 3072, 1, false, false},
    {"32", 32, 32, 32, false, false},
    {"16", 16, 16, 16, false, false},
    {"8", 8, 8, 8, false, false},
};

typedef struct operands {
    product shape;
    rapt_dtype dtype;
    rapt_tensor *a, *b, *c;
    int repetitions;
} operands;

static void multiply(const operands *o)
{
    const product *s = &o->shape;
    const int64_t a_row = s->is_a_transposed ? 1 : s->k, a_column = s->is_a_transposed ? s->m : 1;
    const int64_t b_row = s->is_b_transposed ? 1 : s->n, b_column = s->is_b_transposed ? s->k : 1;
    for (int i = 0; i < o->repetitions; i++)
        rapt_gemm("products", o->dtype, s->m, s->n, s->k, rapt_data(o->a), a_row, a_column, rapt_data(o->b), b_row,
                  b_column, rapt_data_for_writing(o->c), s->n, false);
}

static void multiply_by_openblas(const operands *o)
{
    const product *s = &o->shape;
    const CBLAS_TRANSPOSE a = s->is_a_transposed ? CblasTrans : CblasNoTrans;
    const CBLAS_TRANSPOSE b = s->is_b_transposed ? CblasTrans : CblasNoTrans;
    const int m = (int)s->m, k = (int)s->k, n = (int)s->n, a_row = s->is_a_transposed ? m : k;
    const int b_row = s->is_b_transposed ? k : n;
    for (int i = 0; i < o->repetitions; i++)
        if (o->dtype == RAPT_FLOAT32)
            cblas_sgemm(CblasRowMajor, a, b, m, n, k, 1, rapt_data(o->a), a_row, rapt_data(o->b), b_row, 0,
                        rapt_data_for_writing(o->c), n);
        else
            cblas_dgemm(CblasRowMajor, a, b, m, n, k, 1, rapt_data(o->a), a_row, rapt_data(o->b), b_row, 0,
                        rapt_data_for_writing(o->c), n);
}

/* OpenBLAS with all threads while it is measured; inside of the library it always has one. */
static double time_openblas(const operands *o)
{
    openblas_set_num_threads(rapt_get_threads());
    const double start = timing_now();
    multiply_by_openblas(o);
    const double seconds = timing_now() - start;
    openblas_set_num_threads(1);
    omp_set_num_threads(rapt_get_threads());
    return seconds;
}

static double time_ours(const operands *o)
{
    const double start = timing_now();
    multiply(o);
    return timing_now() - start;
}

static operands make_operands(const product *shape, rapt_dtype dtype)
{
    operands o = {.shape = *shape, .dtype = dtype};
    o.a = rapt_randn(dtype, RAPT_SHAPE(shape->m, shape->k));
    o.b = rapt_randn(dtype, RAPT_SHAPE(shape->k, shape->n));
    o.c = rapt_zeros(dtype, RAPT_SHAPE(shape->m, shape->n));
    o.repetitions = 1;
    const double enough = 1e-3;
    double seconds = time_ours(&o);
    while ((seconds = time_ours(&o)) < enough) o.repetitions *= seconds < enough / 8 ? 8 : 2;
    return o;
}

typedef struct result {
    product shape;
    double rate, ratio; /* multiplications and additions a second; OpenBLAS's time over ours */
} result;

static result measure(const product *shape, rapt_dtype dtype)
{
    enum { fewest = 7, most = 31 };
    const double patience = 0.1; /* seconds */
    RAPT_NO_GRADIENT;
    RAPT_SCOPE;
    const operands o = make_operands(shape, dtype);
    double ours[most], theirs[most], spent = 0;
    int rounds = 0;
    time_openblas(&o);
    while (rounds < fewest || (rounds < most && spent < patience)) {
        theirs[rounds] = time_openblas(&o);
        ours[rounds] = time_ours(&o);
        spent += theirs[rounds] + ours[rounds];
        rounds++;
    }
    const double work = 2.0 * (double)shape->m * (double)shape->k * (double)shape->n * o.repetitions;
    const double seconds = timing_median(rounds, ours);
    return (result){*shape, work / seconds, timing_median(rounds, theirs) / seconds};
}

static void print(const result *r, double peak)
{
    const product *s = &r->shape;
    printf("%-28s %5lld %5lld %5lld %s%s  %7.1f GFLOP/s  %5.1f %% of the peak  %5.2f x OpenBLAS\n", s->name,
           (long long)s->m, (long long)s->k, (long long)s->n, s->is_a_transposed ? "t" : "n",
           s->is_b_transposed ? "t" : "n", r->rate * 1e-9, 100 * r->rate / peak, r->ratio);
    fflush(stdout);
}

static int compare(const void *a, const void *b)
{
    const double x = ((const result *)a)->ratio, y = ((const result *)b)->ratio;
    return (x > y) - (x < y);
}

/* Sizes from 1 to 4096, each power of 2 as often. */
static int64_t draw_side(void)
{
    const double largest = 12;
    return (int64_t)exp2(largest * rapt_item(rapt_rand(RAPT_FLOAT64, RAPT_SHAPE(1))));
}

static product draw_product(int i)
{
    RAPT_SCOPE;
    const double largest_work = 2e9;
    for (;;) {
        const int64_t m = draw_side(), k = draw_side(), n = draw_side();
        if ((double)m * (double)k * (double)n <= largest_work)
            return (product){"random", m, k, n, i % 2 == 1, i / 2 % 2 == 1};
    }
}

static int measure_random(int count, rapt_dtype dtype, double peak)
{
    result *results = calloc((size_t)count, sizeof *results);
    if (!results) return 1;
    double sum = 0;
    int slower = 0;
    for (int i = 0; i < count; i++) results[i].shape = draw_product(i);
    for (int i = 0; i < count; i++) {
        results[i] = measure(&results[i].shape, dtype);
        sum += log(results[i].ratio);
        slower += results[i].ratio < 0.95;
    }
    qsort(results, (size_t)count, sizeof *results, compare);
    for (int i = 0; i < count; i++) print(&results[i], peak);
    printf("%d random shapes: %.2f x OpenBLAS in the geometric mean, %.2f in the median, %.2f at the least, %d under "
           "0.95\n",
           count, exp(sum / count), results[count / 2].ratio, results[0].ratio, slower);
    free(results);
    return 0;
}

static int usage(const char *program)
{
    fprintf(stderr, "usage: %s [--float64] [--random COUNT | M K N LAYOUT...]\n", program);
    return 2;
}

static bool read_product(char **arguments, product *shape)
{
    *shape = (product){"",
                       atoll(arguments[0]),
                       atoll(arguments[1]),
                       atoll(arguments[2]),
                       arguments[3][0] == 't',
                       arguments[3][0] != '\0' && arguments[3][1] == 't'};
    return shape->m > 0 && shape->k > 0 && shape->n > 0;
}

int main(int count, char **arguments)
{
    RAPT_SCOPE;
    enum { words = 4 };
    rapt_on_error(rapt_exit_on_error);
    rapt_seed(1);
    rapt_dtype dtype = RAPT_FLOAT32;
    int next = 1, random = 0;
    if (next < count && strcmp(arguments[next], "--float64") == 0) dtype = RAPT_FLOAT64, next++;
    if (next + 2 == count && strcmp(arguments[next], "--random") == 0) {
        random = atoi(arguments[next + 1]);
        if (random < 1) return usage(arguments[0]);
    } else if ((count - next) % words != 0) {
        return usage(arguments[0]);
    }
    rapt_set_threads(rapt_get_threads()); /* whatever else the machine does */
    printf("%s; %s with kernels for %s\n", rapt_describe_runtime(), openblas_get_config(), openblas_get_corename());
    const double peak = peak_flops(dtype == RAPT_FLOAT64);
    if (random > 0) return measure_random(random, dtype, peak);
    for (size_t i = 0; next == count && i < sizeof products / sizeof *products; i++) {
        const result r = measure(&products[i], dtype);
        print(&r, peak);
    }
    for (; next < count; next += words) {
        product shape;
        if (!read_product(arguments + next, &shape)) return usage(arguments[0]);
        const result r = measure(&shape, dtype);
        print(&r, peak);
    }
    return 0;
}
