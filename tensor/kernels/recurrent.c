/* The gates of recurrent cells: what lies between the matrix products of a step, for some rows of a batch. */
#include <math.h>

#include "double_math.h"
#include "loop.h"

#define IN(T, part, width) ((const T *)(void *)data->part + row * (width)*hidden)
#define OUT(T, part, width) ((T *)(void *)data->part + row * (width)*hidden)

#define GRU(T, dtype, SIGMOID, TANH)                                                                                   \
    /* r = σ(i_r + h_r), z = σ(i_z + h_z), n = tanh(i_n + r·h_n), h' = (1 − z)·n + z·h; kept: r, z, n, h_n */   \
    static void gru_forward_##dtype(int64_t first, int64_t last, int64_t hidden, const rapt_cell_data *data)           \
    {                                                                                                                  \
        for (int64_t row = first; row < last; row++) {                                                                 \
            const T *i = IN(T, from_input, 3), *h = IN(T, from_hidden, 3), *old = IN(T, state, 1);                     \
            T *next = OUT(T, next_state, 1), *kept = OUT(T, kept, 4);                                                  \
            RAPT_SIMD for (int64_t k = 0; k < hidden; k++)                                                             \
            {                                                                                                          \
                const T r = SIGMOID(i[k] + h[k]);                                                                      \
                const T z = SIGMOID(i[hidden + k] + h[hidden + k]);                                                    \
                const T h_n = h[2 * hidden + k];                                                                       \
                const T n = TANH(i[2 * hidden + k] + r * h_n);                                                         \
                kept[k] = r;                                                                                           \
                kept[hidden + k] = z;                                                                                  \
                kept[2 * hidden + k] = n;                                                                              \
                kept[3 * hidden + k] = h_n;                                                                            \
                next[k] = RAPT_MULTIPLY_ADD(1 - z, n, z * old[k]);                                                     \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    /* backward of h' = (1 − z)·n + z·h, n = tanh(i_n + r·h_n), r and z = σ(i + h) */                            \
    static void gru_backward_##dtype(int64_t first, int64_t last, int64_t hidden, const rapt_cell_data *data)          \
    {                                                                                                                  \
        for (int64_t row = first; row < last; row++) {                                                                 \
            const T *g = IN(T, gradient, 1), *kept = IN(T, kept, 4), *old = IN(T, state, 1);                           \
            T *di = OUT(T, from_input, 3), *dh = OUT(T, from_hidden, 3), *carry = OUT(T, carry, 1);                    \
            RAPT_SIMD for (int64_t k = 0; k < hidden; k++)                                                             \
            {                                                                                                          \
                const T r = kept[k], z = kept[hidden + k], n = kept[2 * hidden + k], h_n = kept[3 * hidden + k];       \
                const T d = g[k] + carry[k];                                                                           \
                const T dz = d * (old[k] - n) * z * (1 - z);                                                           \
                const T dn = d * (1 - z) * (1 - n * n);                                                                \
                const T dr = dn * h_n * r * (1 - r);                                                                   \
                carry[k] = d * z;                                                                                      \
                di[k] = dh[k] = dr;                                                                                    \
                di[hidden + k] = dh[hidden + k] = dz;                                                                  \
                di[2 * hidden + k] = dn;                                                                               \
                dh[2 * hidden + k] = dn * r;                                                                           \
            }                                                                                                          \
        }                                                                                                              \
    }

GRU(float, float32, rapt_math_sigmoidf, rapt_math_tanhf)
GRU(double, float64, rapt_math_sigmoid, rapt_math_tanh)

#define LSTM(T, dtype, SIGMOID, TANH)                                                                                  \
    /* i, f, o = σ, g = tanh of the sums; c' = f·c + i·g, h' = o·tanh(c'); kept: i, f, g, o */                     \
    static void lstm_forward_##dtype(int64_t first, int64_t last, int64_t hidden, const rapt_cell_data *data)          \
    {                                                                                                                  \
        for (int64_t row = first; row < last; row++) {                                                                 \
            const T *a = IN(T, from_input, 4), *b = IN(T, from_hidden, 4), *c = IN(T, cell, 1);                        \
            T *next = OUT(T, next_state, 1), *next_c = OUT(T, next_cell, 1), *kept = OUT(T, kept, 4);                  \
            RAPT_SIMD for (int64_t k = 0; k < hidden; k++)                                                             \
            {                                                                                                          \
                const T i = SIGMOID(a[k] + b[k]);                                                                      \
                const T f = SIGMOID(a[hidden + k] + b[hidden + k]);                                                    \
                const T g = TANH(a[2 * hidden + k] + b[2 * hidden + k]);                                               \
                const T o = SIGMOID(a[3 * hidden + k] + b[3 * hidden + k]);                                            \
                const T c_new = RAPT_MULTIPLY_ADD(f, c[k], i * g);                                                     \
                kept[k] = i;                                                                                           \
                kept[hidden + k] = f;                                                                                  \
                kept[2 * hidden + k] = g;                                                                              \
                kept[3 * hidden + k] = o;                                                                              \
                next_c[k] = c_new;                                                                                     \
                next[k] = o * TANH(c_new);                                                                             \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    /* backward of h' = o·tanh(c') and c' = f·c + i·g; the sums of input and hidden have one gradient */            \
    static void lstm_backward_##dtype(int64_t first, int64_t last, int64_t hidden, const rapt_cell_data *data)         \
    {                                                                                                                  \
        for (int64_t row = first; row < last; row++) {                                                                 \
            const T *g_h = IN(T, gradient, 1), *g_c = IN(T, cell_gradient, 1), *kept = IN(T, kept, 4);                 \
            const T *c = IN(T, cell, 1), *c_new = IN(T, next_cell, 1);                                                 \
            T *d = OUT(T, from_hidden, 4), *carry = OUT(T, carry, 1), *carry_c = OUT(T, cell_carry, 1);                \
            RAPT_SIMD for (int64_t k = 0; k < hidden; k++)                                                             \
            {                                                                                                          \
                const T i = kept[k], f = kept[hidden + k], g = kept[2 * hidden + k], o = kept[3 * hidden + k];         \
                const T t = TANH(c_new[k]);                                                                            \
                const T dh = g_h[k] + carry[k];                                                                        \
                const T dc = g_c[k] + carry_c[k] + dh * o * (1 - t * t);                                               \
                d[k] = dc * g * i * (1 - i);                                                                           \
                d[hidden + k] = dc * c[k] * f * (1 - f);                                                               \
                d[2 * hidden + k] = dc * i * (1 - g * g);                                                              \
                d[3 * hidden + k] = dh * t * o * (1 - o);                                                              \
                carry[k] = 0;                                                                                          \
                carry_c[k] = dc * f;                                                                                   \
            }                                                                                                          \
        }                                                                                                              \
    }

LSTM(float, float32, rapt_math_sigmoidf, rapt_math_tanhf)
LSTM(double, float64, rapt_math_sigmoid, rapt_math_tanh)

void RAPT_AT_LEVEL(rapt_fill_recurrent)(rapt_kernels *kernels)
{
    kernels->recurrent = (rapt_recurrent_kernels){
        .gru_forward = {RAPT_FLOATING_ROW(gru_forward)},
        .gru_backward = {RAPT_FLOATING_ROW(gru_backward)},
        .lstm_forward = {RAPT_FLOATING_ROW(lstm_forward)},
        .lstm_backward = {RAPT_FLOATING_ROW(lstm_backward)},
    };
}
