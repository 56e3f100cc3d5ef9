/* Products by OpenBLAS, which always runs on the calling thread alone: the threads are ours (parallel.c). It is loaded
 * when it is asked for: to load it takes longer than a small model's first step. */
#include "blas.h"

#include <cblas.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "openmp.h"
#include "tensor/matmul.h"

/* OpenBLAS's OpenMP build asks OpenMP for the number of threads at each call, the others keep what they were told. */
static bool asks_openmp;

static bool is_wanted;

/* What is called of it, by its own names and types. */
static struct openblas {
    bool loaded;
    __typeof__(&openblas_set_num_threads) openblas_set_num_threads;
    __typeof__(&openblas_get_parallel) openblas_get_parallel;
    __typeof__(&openblas_get_config) openblas_get_config;
    __typeof__(&cblas_sgemm) cblas_sgemm;
    __typeof__(&cblas_dgemm) cblas_dgemm;
    __typeof__(&cblas_sgemv) cblas_sgemv;
    __typeof__(&cblas_dgemv) cblas_dgemv;
} openblas;

/* NULL when OpenBLAS is there, else why not. */
static const char *load(void)
{
    if (openblas.loaded) return NULL;
    const int threads = omp_get_max_threads();
    void *library = dlopen(RAPT_OPENBLAS, RTLD_NOW | RTLD_LOCAL);
    if (!library) return dlerror();
#define FIND(name) (*(void **)&openblas.name = dlsym(library, #name))
    if (!FIND(openblas_set_num_threads) || !FIND(openblas_get_parallel) || !FIND(openblas_get_config) ||
        !FIND(cblas_sgemm) || !FIND(cblas_dgemm) || !FIND(cblas_sgemv) || !FIND(cblas_dgemv))
        return dlerror();
    if (openblas.openblas_get_parallel() == OPENBLAS_SEQUENTIAL)
        return "OpenBLAS's serial build gives wrong results when several threads call it at once";
    asks_openmp = openblas.openblas_get_parallel() == OPENBLAS_OPENMP;
    openblas.openblas_set_num_threads(1);
    omp_set_num_threads(threads);
    openblas.loaded = true;
    return NULL;
}

bool rapt_matmul_uses_blas(void)
{
    return is_wanted;
}

bool rapt_matmul_set_blas(bool now)
{
    const bool before = is_wanted;
    is_wanted = now && !load();
    return before;
}

void rapt_blas_start(void)
{
    const char *wanted = getenv("RAPT_MATMUL");
    if (!wanted || !*wanted) return;
    if (strcmp(wanted, "openblas") != 0) {
        fprintf(stderr, "rapt: RAPT_MATMUL=%s is not known (openblas); using the library's own products\n", wanted);
        return;
    }
    const char *why_not = load();
    is_wanted = !why_not;
    if (why_not) fprintf(stderr, "rapt: RAPT_MATMUL=openblas: %s; using the library's own products\n", why_not);
}

const char *rapt_blas_describe(void)
{
    return openblas.openblas_get_config();
}

/* Gives the axes of size 1, whose strides say nothing, strides that BLAS takes. */
static void normalize(int64_t rows, int64_t columns, int64_t *row_stride, int64_t *column_stride)
{
    if (columns == 1) {
        *column_stride = 1;
        if (rows == 1) *row_stride = 1;
    } else if (rows == 1) {
        *row_stride = *column_stride == 1 ? columns : 1;
    }
}

bool rapt_blas_reads(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride)
{
    normalize(rows, columns, &row_stride, &column_stride);
    if (row_stride > INT_MAX || column_stride > INT_MAX) return false;
    return (column_stride == 1 && row_stride >= columns) || (row_stride == 1 && column_stride >= rows);
}

/* c += a · b. A matrix of one row or column is a vector to BLAS. */
#define MULTIPLY(T, name, x)                                                                                           \
    static void multiply_##name(const rapt_product *p)                                                                 \
    {                                                                                                                  \
        const T *a = (const T *)(const void *)p->a, *b = (const T *)(const void *)p->b;                                \
        T *c = (T *)(void *)p->c;                                                                                      \
        const bool a_rows = p->a_column == 1, b_rows = p->b_column == 1;                                               \
        const int m = (int)p->m, n = (int)p->n, k = (int)p->k, c_row = (int)(m == 1 ? p->n : p->c_row);                \
        const int a_stride = (int)(a_rows ? p->a_row : p->a_column);                                                   \
        const int b_stride = (int)(b_rows ? p->b_row : p->b_column);                                                   \
        if (n == 1)                                                                                                    \
            openblas.cblas_##x##gemv(CblasRowMajor, a_rows ? CblasNoTrans : CblasTrans, a_rows ? m : k,                \
                                     a_rows ? k : m, 1, a, a_stride, b, (int)p->b_row, 1, c, c_row);                   \
        else if (m == 1)                                                                                               \
            openblas.cblas_##x##gemv(CblasRowMajor, b_rows ? CblasTrans : CblasNoTrans, b_rows ? k : n,                \
                                     b_rows ? n : k, 1, b, b_stride, a, (int)p->a_column, 1, c, 1);                    \
        else                                                                                                           \
            openblas.cblas_##x##gemm(CblasRowMajor, a_rows ? CblasNoTrans : CblasTrans,                                \
                                     b_rows ? CblasNoTrans : CblasTrans, m, n, k, 1, a, a_stride, b, b_stride, 1, c,   \
                                     c_row);                                                                           \
    }

MULTIPLY(float, float32, s)
MULTIPLY(double, float64, d)

/* In parts of a million rows and columns, since BLAS counts in 32 bits. Sums in parts too: OpenBLAS's kernels for small
 * matrices add one product after the other, and lose digits. */
enum { largest_side = 1 << 20, longest_sum = 512 };

static int64_t part_of(int64_t size, int64_t done, int64_t largest)
{
    return size - done < largest ? size - done : largest;
}

void rapt_blas_add_product(rapt_dtype dtype, const rapt_product *whole)
{
    const int64_t item = (int64_t)rapt_dtype_size(dtype);
    rapt_product p = *whole;
    normalize(p.m, p.k, &p.a_row, &p.a_column);
    normalize(p.k, p.n, &p.b_row, &p.b_column);
    const int threads = asks_openmp ? omp_get_max_threads() : 1;
    if (threads > 1) omp_set_num_threads(1);
    for (int64_t row = 0; row < whole->m; row += largest_side)
        for (int64_t column = 0; column < whole->n; column += largest_side)
            for (int64_t done = 0; done < whole->k; done += longest_sum) {
                p.m = part_of(whole->m, row, largest_side);
                p.n = part_of(whole->n, column, largest_side);
                p.k = part_of(whole->k, done, longest_sum);
                p.a = whole->a + (row * p.a_row + done * p.a_column) * item;
                p.b = whole->b + (done * p.b_row + column * p.b_column) * item;
                p.c = whole->c + (row * p.c_row + column) * item;
                (dtype == RAPT_FLOAT32 ? multiply_float32 : multiply_float64)(&p);
            }
    if (threads > 1) omp_set_num_threads(threads);
}
