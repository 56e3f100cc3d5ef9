// Elementary functions of float32, branch-free so that plain loops over them vectorise; within 2 ulp everywhere.
#ifndef RAPT_TENSOR_KERNELS_VECTOR_MATH_H
#define RAPT_TENSOR_KERNELS_VECTOR_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "multiply_add.h"
#include "trig_table.h"

// Every polynomial is a minimax fit by our own Remez exchange (1500 Chebyshev nodes, 50 digits), its coefficients then
// rounded to the type used. "fit 2^-k" is the error before that rounding, relative to the function the comment names.
// The code is right with and without fused multiply-add: an exact product stays exact when it is fused.
// tests/math_accuracy.c measures every function over all float32.

#define RAPT_MATH_INLINE static inline __attribute__((always_inline))

RAPT_MATH_INLINE uint32_t rapt_math_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

RAPT_MATH_INLINE float rapt_math_from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

RAPT_MATH_INLINE uint64_t rapt_math_bits_double(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

RAPT_MATH_INLINE double rapt_math_double_from_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// Written so that NaN passes through, as the vector instructions for it do.
RAPT_MATH_INLINE float rapt_math_clampf(float x, float low, float high)
{
    float from_low = low > x ? low : x;
    return high < from_low ? high : from_low;
}

// Adding 1.5 * 2^23 (2^52 in double) rounds to an integer, which then stands in the low bits of the sum.
#define RAPT_MATH_ROUNDER 0x1.8p23f
#define RAPT_MATH_ROUNDER_DOUBLE 0x1.8p52

#define RAPT_MATH_LN2_HIGH 0x1.62e4p-1f // 15 bits: exact times any exponent
#define RAPT_MATH_LN2_LOW 0x1.7f7d1cp-20f

// 2^k for -126 <= k <= 127; k may be any integer whose low nine bits are right.
RAPT_MATH_INLINE float rapt_math_power_of_two(uint32_t k)
{
    return rapt_math_from_bits((k << 23) + 0x3f800000u);
}

// x = k ln 2 + r + error with |r| <= ln 2 / 2, and tail = exp(r) - 1 - r.
struct rapt_math_exp_parts {
    float r, error, tail;
    uint32_t k;
};

RAPT_MATH_INLINE struct rapt_math_exp_parts rapt_math_exp_split(float x)
{
    struct rapt_math_exp_parts parts;
    float shifted = x * 0x1.715476p+0f + RAPT_MATH_ROUNDER;
    float k = shifted - RAPT_MATH_ROUNDER;
    float high = x - k * RAPT_MATH_LN2_HIGH;
    float r = high - k * RAPT_MATH_LN2_LOW;
    // (exp(r) - 1 - r) / r^2; fit 2^-26.2 of expm1
    float p = 0x1.6bebf6p-10f;
    p = p * r + 0x1.1227e4p-7f;
    p = p * r + 0x1.555674p-5f;
    p = p * r + 0x1.5554b0p-3f;
    p = p * r + 0x1.fffffep-2f;
    parts.r = r;
    parts.error = (high - r) - k * RAPT_MATH_LN2_LOW;
    parts.tail = r * r * p;
    parts.k = rapt_math_bits(shifted) - rapt_math_bits(RAPT_MATH_ROUNDER);
    return parts;
}

// exp(x) for -104 <= x <= 89
RAPT_MATH_INLINE float rapt_math_exp_clamped(float x)
{
    struct rapt_math_exp_parts parts = rapt_math_exp_split(x);
    // 2^k in two factors: k = 128 overflows and k < -126 becomes denormal only in the last product
    uint32_t half = (uint32_t)((int32_t)parts.k >> 1);
    float mantissa = 1.0f + (parts.r + parts.tail);
    return mantissa * rapt_math_power_of_two(half) * rapt_math_power_of_two(parts.k - half);
}

// exp(x) for |x| <= 87
RAPT_MATH_INLINE float rapt_math_exp_normal(float x)
{
    struct rapt_math_exp_parts parts = rapt_math_exp_split(x);
    return (1.0f + (parts.r + parts.tail)) * rapt_math_power_of_two(parts.k);
}

RAPT_MATH_INLINE float rapt_math_expf(float x)
{
    return rapt_math_exp_clamped(rapt_math_clampf(x, -104.0f, 89.0f));
}

// exp(x) for x <= 87, for weights beside one of about 1: below -87 it is 0, so that denormals never come up
RAPT_MATH_INLINE float rapt_math_exp_weightf(float x)
{
    struct rapt_math_exp_parts parts = rapt_math_exp_split(-87.0f > x ? -87.0f : x);
    float y = (1.0f + (parts.r + parts.tail)) * rapt_math_power_of_two(parts.k);
    return x < -87.0f ? 0.0f : y;
}

RAPT_MATH_INLINE float rapt_math_expm1f(float x)
{
    struct rapt_math_exp_parts parts = rapt_math_exp_split(rapt_math_clampf(x, -20.0f, 89.0f));
    // half of 2^k (1 + r + error + tail) - 1, because 2^128 is not a float
    float scale = rapt_math_power_of_two(parts.k - 1u);
    float half = (scale * parts.r + (scale - 0.5f)) + scale * (parts.tail + parts.error);
    return fabsf(x) < 0x1p-25f ? x : 2.0f * half;
}

// An odd polynomial for |x| < 0.55, else 1 - 2 / (exp(2 |x|) + 1).
RAPT_MATH_INLINE float rapt_math_tanhf(float x)
{
    float magnitude = fabsf(x);
    float square = x * x;
    float p = -0x1.9b3046p-8f; // (tanh(x) / x - 1) / x^2 in x^2; fit 2^-29.8 of tanh
    p = p * square + 0x1.593d08p-6f;
    p = p * square - 0x1.b9287ap-5f;
    p = p * square + 0x1.110d26p-3f;
    p = p * square - 0x1.55554ap-2f;
    float lower = magnitude + magnitude * (square * p);
    float upper = 1.0f - 2.0f / (1.0f + rapt_math_exp_normal(2.0f * (magnitude > 10.0f ? 10.0f : magnitude)));
    return copysignf(magnitude < 0.55f ? lower : upper, x);
}

// With e = exp(-|x|) and q = e / (1 + e): 1 - q, and for negative x q = e - e q (there 1 + e's rounding weighs less).
RAPT_MATH_INLINE float rapt_math_sigmoidf(float x)
{
    float magnitude = fabsf(x);
    float e = rapt_math_exp_clamped(magnitude > 104.0f ? -104.0f : -magnitude);
    float q = e / (1.0f + e);
    // e where x < 0, else 1; chosen without a branch, across which compilers would not contract the line after
    uint32_t negative = 0u - (rapt_math_bits(x) >> 31);
    float whole = rapt_math_from_bits((rapt_math_bits(e) & negative) | (rapt_math_bits(1.0f) & ~negative));
    return whole - whole * q;
}

// exponent * ln 2 + log(1 + f) for |f| <= 1/3.
RAPT_MATH_INLINE float rapt_math_log_sum(float exponent, float f)
{
    // (log(1 + f) - f + f^2 / 2) / f^3; fit 2^-27.7 of log(1 + f)
    float p = -0x1.08058ep-3f;
    p = p * f + 0x1.1e66b8p-3f;
    p = p * f - 0x1.f3113cp-4f;
    p = p * f + 0x1.1ed718p-3f;
    p = p * f - 0x1.559dccp-3f;
    p = p * f + 0x1.99d028p-3f;
    p = p * f - 0x1.fffef0p-3f;
    p = p * f + 0x1.555506p-2f;
    float square = f * f;
    float tail = RAPT_MULTIPLY_ADD(f * square, p, exponent * RAPT_MATH_LN2_LOW);
    return (f + (tail - 0.5f * square)) + exponent * RAPT_MATH_LN2_HIGH;
}

// The power of two to divide x > 0 by so that the quotient lies in [2/3, 4/3).
RAPT_MATH_INLINE int32_t rapt_math_exponent(float x)
{
    return (int32_t)(rapt_math_bits(x) - 0x3f2aaaabu) >> 23;
}

RAPT_MATH_INLINE float rapt_math_logf(float x)
{
    int denormal = x < 0x1p-126f;
    float normal = denormal ? x * 0x1p23f : x;
    int32_t exponent = rapt_math_exponent(normal);
    float mantissa = rapt_math_from_bits(rapt_math_bits(normal) - ((uint32_t)exponent << 23));
    float y = rapt_math_log_sum((float)(denormal ? exponent - 23 : exponent), mantissa - 1.0f);
    y = x < INFINITY ? y : x;
    y = x < 0.0f ? NAN : y;
    return x == 0.0f ? -INFINITY : y;
}

RAPT_MATH_INLINE float rapt_math_log1pf(float x)
{
    int32_t exponent = rapt_math_exponent(1.0f + x);
    // 2^-exponent by way of its fourfold, which is never denormal
    float scale = 0.25f * rapt_math_power_of_two(2u - (uint32_t)exponent);
    float y = rapt_math_log_sum((float)exponent, x * scale + (scale - 1.0f));
    y = fabsf(x) < 0x1p-25f ? x : y;
    y = x < INFINITY ? y : x;
    y = x < -1.0f ? NAN : y;
    return x == -1.0f ? -INFINITY : y;
}

RAPT_MATH_INLINE float rapt_math_erff(float x)
{
    float magnitude = fabsf(x);
    // erf(x) / x - 1 in x^2 for |x| <= 0.92; fit 2^-26.0 of erf
    float square = x * x;
    float p = -0x1.3a8aa4p-11f;
    p = p * square + 0x1.475756p-8f;
    p = p * square - 0x1.b68ff4p-6f;
    p = p * square + 0x1.ce1abap-4f;
    p = p * square - 0x1.8126e8p-2f;
    p = p * square + 0x1.06eba6p-3f;
    // -log(1 - erf(|x|)) for 0.92 <= |x| <= 3.95; fit 2^-29.3 of erf. Beyond, erf rounds to 1.
    float far = magnitude > 3.95f ? 3.95f : magnitude;
    float q = -0x1.9ae8cep-13f;
    q = q * far + 0x1.8ee150p-9f;
    q = q * far - 0x1.6c2a68p-6f;
    q = q * far + 0x1.a9b426p-4f;
    q = q * far + 0x1.463cc2p-1f;
    q = q * far + 0x1.20af5ap+0f;
    q = q * far + 0x1.9a5e78p-13f;
    float upper = 1.0f - rapt_math_exp_normal(-q);
    return magnitude < 0.92f ? x + x * p : copysignf(upper, x);
}

// sin and cos of |r| <= pi/4
RAPT_MATH_INLINE float rapt_math_sin_polynomial(float r)
{
    float square = r * r;
    float p = -0x1.994302p-13f; // (sin(r) / r - 1) / r^2 in r^2; fit 2^-28.0 of sin
    p = p * square + 0x1.110738p-7f;
    p = p * square - 0x1.555546p-3f;
    return copysignf(r + r * (square * p), r);
}

RAPT_MATH_INLINE float rapt_math_cos_polynomial(float r)
{
    float square = r * r;
    float p = 0x1.99ead0p-16f; // (cos(r) - 1 + r^2 / 2) / r^4 in r^2; fit 2^-33.0 of cos
    p = p * square - 0x1.6c0c30p-10f;
    p = p * square + 0x1.55554ap-5f;
    return 1.0f + RAPT_MULTIPLY_ADD(square * square, p, -0.5f * square);
}

// sin(r + quadrant * pi/2)
RAPT_MATH_INLINE float rapt_math_sin_quadrant(float r, uint32_t quadrant)
{
    float y = quadrant & 1u ? rapt_math_cos_polynomial(r) : rapt_math_sin_polynomial(r);
    return rapt_math_from_bits(rapt_math_bits(y) ^ ((quadrant & 2u) << 30));
}

// The row of the table of turns for x
RAPT_MATH_INLINE int32_t rapt_math_turn_row(float x)
{
    int32_t exponent = (int32_t)(rapt_math_bits(fabsf(x)) >> 23) - RAPT_MATH_TURN_FIRST_EXPONENT;
    return exponent < 0 ? 0 : exponent;
}

// sin(x + quadrants * pi/2) for every finite x, which is r + quadrant * pi/2 (modulo 2 pi), by the numbers of its row.
// After Payne and Hanek (1983).
RAPT_MATH_INLINE float rapt_math_sin_turned(float x, double high, double low, uint32_t quadrants)
{
    double rest = (double)x * low; // high's product is exact
    double shifted = RAPT_MULTIPLY_ADD((double)x, high, rest) + RAPT_MATH_ROUNDER_DOUBLE;
    double turn = RAPT_MULTIPLY_ADD((double)x, high, -(shifted - RAPT_MATH_ROUNDER_DOUBLE)) + rest; // of -0: -0
    uint32_t quadrant = (uint32_t)rapt_math_bits_double(shifted) + quadrants;
    return rapt_math_sin_quadrant((float)(turn * 0x1.921fb54442d18p+0), quadrant);
}

// log2 of x >= 0 in double
RAPT_MATH_INLINE double rapt_math_log2_double(float x)
{
    int denormal = x < 0x1p-126f;
    float normal = denormal ? x * 0x1p23f : x;
    int32_t exponent = (int32_t)(rapt_math_bits(normal) - 0x3f3504f3u) >> 23;
    double mantissa = (double)rapt_math_from_bits(rapt_math_bits(normal) - ((uint32_t)exponent << 23));
    // log2(m) = s p(s^2) with s = (m - 1) / (m + 1); fit 2^-45.1 of log2
    double s = (mantissa - 1.0) / (mantissa + 1.0);
    double square = s * s;
    double p = 0x1.21b32f83dec64p-2;
    p = p * square + 0x1.47952fafe1264p-2;
    p = p * square + 0x1.a61a2fabd9439p-2;
    p = p * square + 0x1.2776c29233da1p-1;
    p = p * square + 0x1.ec709dc53d3f3p-1;
    p = p * square + 0x1.71547652b8251p+1;
    double y = (double)(denormal ? exponent - 23 : exponent) + s * p;
    y = x < INFINITY ? y : (double)x;
    return x == 0.0f ? (double)-INFINITY : y;
}

// 2^z within 2^-34, to be rounded to float; 0 up to z = -1023, infinite from 1024 on
RAPT_MATH_INLINE double rapt_math_exp2_short(double z)
{
    z = -1023.0 > z ? -1023.0 : z;
    z = 1024.0 < z ? 1024.0 : z;
    double shifted = z + RAPT_MATH_ROUNDER_DOUBLE;
    double r = z - (shifted - RAPT_MATH_ROUNDER_DOUBLE);
    double p = 0x1.fe1782d166d75p-17; // fit 2^-34.5
    p = p * r + 0x1.446a1fc25cb43p-13;
    p = p * r + 0x1.5d8a7088e8a46p-10;
    p = p * r + 0x1.3b29dc40f5385p-7;
    p = p * r + 0x1.c6b08aaf2eba4p-5;
    p = p * r + 0x1.ebfbe0a4be5c0p-3;
    p = p * r + 0x1.62e42ff116287p-1;
    p = p * r + 0x1.ffffffffabbd0p-1;
    return p * rapt_math_double_from_bits((rapt_math_bits_double(shifted) << 52) + (1023ull << 52));
}

// All bits where the condition holds: a mask stays a number when the compiler moves it out of a loop.
RAPT_MATH_INLINE uint32_t rapt_math_mask(int condition)
{
    return condition ? 0xffffffffu : 0u;
}

RAPT_MATH_INLINE uint32_t rapt_math_is_integer(float magnitude)
{
    return rapt_math_mask(magnitude >= 0x1p23f) | rapt_math_mask((magnitude + 0x1p23f) - 0x1p23f == magnitude);
}

// base^exponent with C's special cases (C11, F.10.4.4)
RAPT_MATH_INLINE float rapt_math_powf(float base, float exponent)
{
    float magnitude = fabsf(base);
    float y = (float)rapt_math_exp2_short((double)exponent * rapt_math_log2_double(magnitude));
    uint32_t integer = rapt_math_is_integer(fabsf(exponent));
    uint32_t odd = integer & ~rapt_math_is_integer(0.5f * fabsf(exponent));
    y = rapt_math_from_bits(rapt_math_bits(y) ^ (odd & rapt_math_bits(base) & 0x80000000u));
    uint32_t undefined = rapt_math_mask(base < 0.0f) & rapt_math_mask(magnitude < INFINITY) & ~integer;
    y = undefined ? NAN : y;
    uint32_t one = rapt_math_mask(base == 1.0f) | rapt_math_mask(exponent == 0.0f) |
                   (rapt_math_mask(base == -1.0f) & rapt_math_mask(fabsf(exponent) == INFINITY));
    return one ? 1.0f : y;
}

#endif
