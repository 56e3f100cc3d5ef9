/* The calls of OpenBLAS, which always runs on the calling thread alone: the threads are ours (parallel.c). */
#include "tensor/blas.h"

#include <cblas.h>
#include <omp.h>
#include <string.h>

#include "tensor/matmul.h"

/* OpenBLAS's OpenMP build asks OpenMP for the number of threads at each call, the others keep what they were told. */
static bool asks_openmp;

void rapt_blas_start(void)
{
    int threads = omp_get_max_threads();
    asks_openmp = openblas_get_parallel() == OPENBLAS_OPENMP;
    openblas_set_num_threads(1);
    omp_set_num_threads(threads);
}

void rapt_blas_normalize(int64_t rows, int64_t columns, int64_t *row_stride, int64_t *column_stride)
{
    if (columns == 1) {
        *column_stride = 1;
        if (rows == 1) *row_stride = 1;
    } else if (rows == 1) {
        *row_stride = *column_stride == 1 ? columns : 1;
    }
}

/* What c begins with when BLAS is to add to it. */
static void begin(const rapt_blas_tile *t, size_t item)
{
    size_t row = (size_t)t->n * item;
    for (int64_t i = 0; i < t->m; i++) {
        char *c = t->c + (size_t)(i * t->c_row) * item;
        if (t->bias)
            memcpy(c, t->bias, row);
        else
            memset(c, 0, row);
    }
}

/* c = beta · c + a · b. A matrix of one row or column is a vector to BLAS. */
#define MULTIPLY(T, name, x)                                                                                           \
    static void multiply_##name(const rapt_blas_tile *t, const void *a_data, const void *b_data, int k, T beta)        \
    {                                                                                                                  \
        const T *a = a_data, *b = b_data;                                                                              \
        T *c = (T *)(void *)t->c;                                                                                      \
        const bool a_rows = t->a_column == 1, b_rows = t->b_column == 1;                                               \
        const int a_stride = (int)(a_rows ? t->a_row : t->a_column);                                                   \
        const int b_stride = (int)(b_rows ? t->b_row : t->b_column);                                                   \
        if (t->n == 1)                                                                                                 \
            cblas_##x##gemv(CblasRowMajor, a_rows ? CblasNoTrans : CblasTrans, a_rows ? t->m : k, a_rows ? k : t->m,   \
                            1, a, a_stride, b, (int)t->b_row, beta, c, (int)t->c_row);                                 \
        else if (t->m == 1)                                                                                            \
            cblas_##x##gemv(CblasRowMajor, b_rows ? CblasTrans : CblasNoTrans, b_rows ? k : t->n, b_rows ? t->n : k,   \
                            1, b, b_stride, a, (int)t->a_column, beta, c, 1);                                          \
        else                                                                                                           \
            cblas_##x##gemm(CblasRowMajor, a_rows ? CblasNoTrans : CblasTrans, b_rows ? CblasNoTrans : CblasTrans,     \
                            t->m, t->n, k, 1, a, a_stride, b, b_stride, beta, c, (int)t->c_row);                       \
    }

MULTIPLY(float, float32, s)
MULTIPLY(double, float64, d)

/* Longer sums are cut: OpenBLAS's kernels for small matrices add one product after the other, and lose digits. */
enum { longest_sum = 2048, small_tile = 1200, longest_small_sum = 512 };

void rapt_blas_run(const rapt_blas_tile *tile, int64_t k)
{
    size_t item = rapt_dtype_size(tile->dtype);
    bool adds = tile->accumulate;
    if (!adds && (tile->bias || k == 0 || tile->m == 1 || tile->n == 1)) {
        begin(tile, item);
        adds = true;
    }
    int threads = asks_openmp ? omp_get_max_threads() : 1;
    if (threads > 1) omp_set_num_threads(1);
    const int64_t longest = (int64_t)tile->m * tile->n <= small_tile ? longest_small_sum : longest_sum;
    for (int64_t done = 0; done < k; adds = true) {
        int part = (int)(k - done < longest ? k - done : longest);
        const char *a = tile->a + (size_t)(done * tile->a_column) * item,
                   *b = tile->b + (size_t)(done * tile->b_row) * item;
        if (tile->dtype == RAPT_FLOAT32)
            multiply_float32(tile, a, b, part, adds);
        else
            multiply_float64(tile, a, b, part, adds);
        done += part;
    }
    if (threads > 1) omp_set_num_threads(threads);
}
