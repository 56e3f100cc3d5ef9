/* Arithmetic and comparisons of two operands, conversion between dtypes, and the changes in place. */
#include <math.h>

#include "loop.h"
#include "vector_math.h"

/* Integers wrap around, as unsigned arithmetic does; their division rounds down, and by 0 gives 0 (ops refuse it). */
static inline int64_t floor_divide(int64_t a, int64_t b)
{
    if (b == 0) return 0;
    if (b == -1) return (int64_t)(0 - (uint64_t)a);
    int64_t quotient = a / b;
    return a % b != 0 && (a % b < 0) != (b < 0) ? quotient - 1 : quotient;
}

#define WRAP(operator, other) (int64_t)((uint64_t)a operator(uint64_t)(other))
#define GREATER (a > b ? a : b)
#define LESSER (a < b ? a : b)

#define INTEGER_ARITHMETIC(T, dtype)                                                                                   \
    RAPT_BINARY_LOOP(add_##dtype, T, T, WRAP(+, b))                                                                    \
    RAPT_BINARY_LOOP(sub_##dtype, T, T, WRAP(-, b))                                                                    \
    RAPT_BINARY_LOOP(mul_##dtype, T, T, WRAP(*, b))                                                                    \
    RAPT_BINARY_LOOP(div_##dtype, T, T, floor_divide((int64_t)a, (int64_t)b))                                          \
    RAPT_BINARY_LOOP(maximum_##dtype, T, T, GREATER)                                                                   \
    RAPT_BINARY_LOOP(minimum_##dtype, T, T, LESSER)                                                                    \
    RAPT_UNARY_LOOP(scale_##dtype, T, T, WRAP(*, option))                                                              \
    RAPT_UNARY_LOOP(shift_##dtype, T, T, WRAP(+, option))

INTEGER_ARITHMETIC(int64_t, int64)
INTEGER_ARITHMETIC(int32_t, int32)
INTEGER_ARITHMETIC(uint8_t, uint8)

/* a + b − b·0 … a NaN on either side wins, as in numpy's maximum. */
#define FLOATING_ARITHMETIC(T, dtype, POW)                                                                             \
    RAPT_BINARY_LOOP(add_##dtype, T, T, a + b)                                                                         \
    RAPT_BINARY_LOOP(sub_##dtype, T, T, a - b)                                                                         \
    RAPT_BINARY_LOOP(mul_##dtype, T, T, a *b)                                                                          \
    RAPT_BINARY_LOOP(div_##dtype, T, T, a / b)                                                                         \
    RAPT_BINARY_LOOP(pow_##dtype, T, T, POW(a, b))                                                                     \
    RAPT_BINARY_LOOP(maximum_##dtype, T, T, a > b || a != a ? a : b)                                                   \
    RAPT_BINARY_LOOP(minimum_##dtype, T, T, a < b || a != a ? a : b)                                                   \
    RAPT_BINARY_LOOP(share_##dtype, T, T, a == b ? (T)0.5 : a < b ? (T)0 : (T)1)                                       \
    RAPT_UNARY_LOOP(scale_##dtype, T, T, a *option)                                                                    \
    RAPT_UNARY_LOOP(shift_##dtype, T, T, a + option)                                                                   \
    RAPT_BINARY_LOOP(add_scaled_##dtype, T, T, RAPT_MULTIPLY_ADD(option, b, a))

FLOATING_ARITHMETIC(float, float32, rapt_math_powf)
FLOATING_ARITHMETIC(double, float64, pow)

/* function(a, b) is other(b, a). */
#define EXCHANGED(function, other)                                                                                     \
    static void function(int64_t count, char *const *data, const int64_t *strides, const void *options)                \
    {                                                                                                                  \
        other(count, (char *const[]){data[0], data[2], data[1]}, (int64_t[]){strides[0], strides[2], strides[1]},      \
              options);                                                                                                \
    }

#define COMPARISONS(T, dtype)                                                                                          \
    RAPT_BINARY_LOOP(equal_##dtype, uint8_t, T, a == b)                                                                \
    RAPT_BINARY_LOOP(not_equal_##dtype, uint8_t, T, a != b)                                                            \
    RAPT_BINARY_LOOP(less_##dtype, uint8_t, T, a < b)                                                                  \
    RAPT_BINARY_LOOP(less_equal_##dtype, uint8_t, T, a <= b)                                                           \
    EXCHANGED(greater_##dtype, less_##dtype)                                                                           \
    EXCHANGED(greater_equal_##dtype, less_equal_##dtype)

COMPARISONS(float, float32)
COMPARISONS(double, float64)
COMPARISONS(int64_t, int64)
COMPARISONS(int32_t, int32)
COMPARISONS(uint8_t, uint8)

/* Conversion as C defines it; where C does not (NaN, out of range), to the nearest value, NaN to 0. */
static inline double bounded(double a, double low, double high)
{
    return a != a ? 0 : a < low ? low : a > high ? high : a;
}

static inline int64_t int64_of(double a)
{
    return a >= 9223372036854775808.0 ? INT64_MAX : (int64_t)bounded(a, -9223372036854775808.0, 9223372036854774784.0);
}

#define CASTS(FROM, from, TO_INT64, TO_INT32, TO_UINT8)                                                                \
    RAPT_UNARY_LOOP(cast_float32_##from, float, FROM, a)                                                               \
    RAPT_UNARY_LOOP(cast_float64_##from, double, FROM, a)                                                              \
    RAPT_UNARY_LOOP(cast_int64_##from, int64_t, FROM, TO_INT64)                                                        \
    RAPT_UNARY_LOOP(cast_int32_##from, int32_t, FROM, TO_INT32)                                                        \
    RAPT_UNARY_LOOP(cast_uint8_##from, uint8_t, FROM, TO_UINT8)                                                        \
    RAPT_UNARY_LOOP(cast_bool_##from, uint8_t, FROM, a != 0)

#define FLOATING_CASTS(FROM, from)                                                                                     \
    CASTS(FROM, from, int64_of((double)a), bounded((double)a, INT32_MIN, INT32_MAX), bounded((double)a, 0, UINT8_MAX))
#define INTEGER_CASTS(FROM, from) CASTS(FROM, from, a, a, a)

FLOATING_CASTS(float, float32)
FLOATING_CASTS(double, float64)
INTEGER_CASTS(int64_t, int64)
INTEGER_CASTS(int32_t, int32)
INTEGER_CASTS(uint8_t, uint8)

/* Copies, of rows read backwards too. */
#define COPY(T, dtype)                                                                                                 \
    static void copy_##dtype(int64_t count, char *const *data, const int64_t *strides, const void *options)            \
    {                                                                                                                  \
        if (strides[0] != sizeof(T) || strides[1] != -(int64_t)sizeof(T)) {                                            \
            cast_##dtype##_##dtype(count, data, strides, options);                                                     \
            return;                                                                                                    \
        }                                                                                                              \
        T *out = (T *)(void *)data[0];                                                                                 \
        const T *in = (const T *)(void *)data[1];                                                                      \
        RAPT_SIMD for (int64_t i = 0; i < count; i++) out[i] = in[-i];                                                 \
    }

COPY(float, float32)
COPY(double, float64)

#define FILL(T, dtype)                                                                                                 \
    static void fill_##dtype(int64_t count, char *const *data, const int64_t *strides, const void *options)            \
    {                                                                                                                  \
        const T value = *(const T *)options;                                                                           \
        T *out = (T *)(void *)data[0];                                                                                 \
        if (strides[0] == sizeof(T)) {                                                                                 \
            RAPT_SIMD_OF(T) for (int64_t i = 0; i < count; i++) out[i] = value;                                        \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < count; i++) *(T *)(void *)(data[0] + i * strides[0]) = value;                          \
    }

FILL(float, float32)
FILL(double, float64)
FILL(int64_t, int64)
FILL(int32_t, int32)
FILL(uint8_t, uint8)

RAPT_BINARY_LOOP(logical_and_bool, uint8_t, uint8_t, (a != 0) & (b != 0))
RAPT_BINARY_LOOP(logical_or_bool, uint8_t, uint8_t, (a | b) != 0)
RAPT_UNARY_LOOP(logical_not_bool, uint8_t, uint8_t, a == 0)

/* Choosing copies bits, whatever they mean. */
RAPT_CHOICE_LOOP(where_int64, int64_t)
RAPT_CHOICE_LOOP(where_int32, int32_t)
RAPT_CHOICE_LOOP(where_uint8, uint8_t)

void RAPT_AT_LEVEL(rapt_fill_elementwise)(rapt_kernels *kernels)
{
    kernels->elementwise = (rapt_elementwise_kernels){
        .add = RAPT_NUMBER_ROW(add),
        .sub = RAPT_NUMBER_ROW(sub),
        .mul = RAPT_NUMBER_ROW(mul),
        .div = RAPT_NUMBER_ROW(div),
        .pow = {RAPT_FLOATING_ROW(pow)},
        .maximum = RAPT_NUMBER_ROW(maximum),
        .minimum = RAPT_NUMBER_ROW(minimum),
        .equal = RAPT_FULL_ROW(equal),
        .not_equal = RAPT_FULL_ROW(not_equal),
        .less = RAPT_FULL_ROW(less),
        .less_equal = RAPT_FULL_ROW(less_equal),
        .greater = RAPT_FULL_ROW(greater),
        .greater_equal = RAPT_FULL_ROW(greater_equal),
        .cast = {[RAPT_FLOAT32] = RAPT_FULL_ROW(cast_float32),
                 [RAPT_FLOAT64] = RAPT_FULL_ROW(cast_float64),
                 [RAPT_INT64] = RAPT_FULL_ROW(cast_int64),
                 [RAPT_INT32] = RAPT_FULL_ROW(cast_int32),
                 [RAPT_UINT8] = RAPT_FULL_ROW(cast_uint8),
                 [RAPT_BOOL] = RAPT_FULL_ROW(cast_bool)},
        .fill = RAPT_FULL_ROW(fill),
        .share = {RAPT_FLOATING_ROW(share)},
        .logical_and = {[RAPT_BOOL] = logical_and_bool},
        .logical_or = {[RAPT_BOOL] = logical_or_bool},
        .logical_not = {[RAPT_BOOL] = logical_not_bool},
        .where = {[RAPT_FLOAT32] = where_int32,
                  [RAPT_FLOAT64] = where_int64,
                  RAPT_INTEGER_ROW(where),
                  [RAPT_BOOL] = where_uint8},
        .scale = RAPT_NUMBER_ROW(scale),
        .shift = RAPT_NUMBER_ROW(shift),
        .add_scaled = {RAPT_FLOATING_ROW(add_scaled)},
    };
    kernels->elementwise.cast[RAPT_FLOAT32][RAPT_FLOAT32] = copy_float32;
    kernels->elementwise.cast[RAPT_FLOAT64][RAPT_FLOAT64] = copy_float64;
}
