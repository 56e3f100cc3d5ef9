/* Products of matrices so small that a call of BLAS would take longer than the work. */
#include <string.h>

#include "loop.h"

/* A vector of columns and four rows of c are summed side by side, in registers. */
#if defined __AVX512F__
enum { vector_bytes = 64 };
#elif defined __AVX__
enum { vector_bytes = 32 };
#else
enum { vector_bytes = 16 };
#endif

#define SMALL_PRODUCT(T, dtype)                                                                                        \
    typedef T vector_##dtype __attribute__((vector_size(vector_bytes), aligned(sizeof(T)), may_alias));                \
    enum { width_##dtype = vector_bytes / sizeof(T) };                                                                 \
                                                                                                                       \
    /* b, or a copy of it with dense rows padded to whole vectors. */                                                  \
    static const T *padded_##dtype(const rapt_small_product *p, T *copy, int64_t *stride)                              \
    {                                                                                                                  \
        const T *b = p->b;                                                                                             \
        *stride = p->b_row;                                                                                            \
        if (p->b_column == 1 && p->n % width_##dtype == 0) return b;                                                   \
        *stride = (p->n + width_##dtype - 1) / width_##dtype * width_##dtype;                                          \
        memset(copy, 0, (size_t)(p->k * *stride) * sizeof(T));                                                         \
        for (int64_t i = 0; i < p->k; i++)                                                                             \
            for (int64_t j = 0; j < p->n; j++) copy[i * *stride + j] = b[i * p->b_row + j * p->b_column];              \
        return copy;                                                                                                   \
    }                                                                                                                  \
                                                                                                                       \
    static inline __attribute__((always_inline)) void put_##dtype(const rapt_small_product *p, int64_t row,            \
                                                                  int64_t column, vector_##dtype sum)                  \
    {                                                                                                                  \
        T *c = (T *)p->c + row * p->c_row + column * p->c_column;                                                      \
        const T *bias = p->bias ? (const T *)p->bias + row * p->bias_row + column * p->bias_column : NULL;             \
        if (p->c_column == 1 && !p->accumulate && column + width_##dtype <= p->n && (!bias || p->bias_column == 1)) {  \
            if (bias) sum += *(const vector_##dtype *)(const void *)bias;                                              \
            *(vector_##dtype *)(void *)c = sum;                                                                        \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t j = 0; j < width_##dtype && column + j < p->n; j++) {                                             \
            const T before = p->accumulate ? c[j * p->c_column] : bias ? bias[j * p->bias_column] : 0;                 \
            c[j * p->c_column] = before + sum[j];                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void small_product_##dtype(const rapt_small_product *p)                                                     \
    {                                                                                                                  \
        T copy[RAPT_SMALL_SIDE * RAPT_SMALL_SIDE];                                                                     \
        int64_t stride;                                                                                                \
        const T *b = padded_##dtype(p, copy, &stride), *a = p->a;                                                      \
        for (int64_t column = 0; column < p->n; column += width_##dtype) {                                             \
            int64_t row = 0;                                                                                           \
            for (; row + 4 <= p->m; row += 4) {                                                                        \
                vector_##dtype sum0 = {0}, sum1 = {0}, sum2 = {0}, sum3 = {0};                                         \
                const T *a0 = a + row * p->a_row, *a1 = a0 + p->a_row, *a2 = a1 + p->a_row, *a3 = a2 + p->a_row;       \
                for (int64_t i = 0; i < p->k; i++) {                                                                   \
                    const vector_##dtype part = *(const vector_##dtype *)(const void *)(b + i * stride + column);      \
                    sum0 += a0[i * p->a_column] * part;                                                                \
                    sum1 += a1[i * p->a_column] * part;                                                                \
                    sum2 += a2[i * p->a_column] * part;                                                                \
                    sum3 += a3[i * p->a_column] * part;                                                                \
                }                                                                                                      \
                put_##dtype(p, row, column, sum0);                                                                     \
                put_##dtype(p, row + 1, column, sum1);                                                                 \
                put_##dtype(p, row + 2, column, sum2);                                                                 \
                put_##dtype(p, row + 3, column, sum3);                                                                 \
            }                                                                                                          \
            for (; row < p->m; row++) {                                                                                \
                vector_##dtype sum = {0};                                                                              \
                for (int64_t i = 0; i < p->k; i++)                                                                     \
                    sum += a[row * p->a_row + i * p->a_column] *                                                       \
                           *(const vector_##dtype *)(const void *)(b + i * stride + column);                           \
                put_##dtype(p, row, column, sum);                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

SMALL_PRODUCT(float, float32)
SMALL_PRODUCT(double, float64)

void RAPT_AT_LEVEL(rapt_fill_matmul)(rapt_kernels *kernels)
{
    kernels->matmul = (rapt_matmul_kernels){.small = {small_product_float32, small_product_float64}};
}
