// Elementary functions of float64, branch-free so that plain loops over them vectorise; within 2 ulp everywhere,
// the normal distribution within 4.
#ifndef RAPT_TENSOR_KERNELS_DOUBLE_MATH_H
#define RAPT_TENSOR_KERNELS_DOUBLE_MATH_H

#include "vector_math.h"

// As for float in vector_math.h, whose notes hold here too. tests/math_accuracy_double.c measures every function.

// A small library calls them.
#ifdef __OPTIMIZE_SIZE__
#define RAPT_MATH_DOUBLE static __attribute__((noinline, unused))
#else
#define RAPT_MATH_DOUBLE RAPT_MATH_INLINE
#endif

#define RAPT_MATH_LN2_HIGH_DOUBLE 0x1.62e42fefp-1 // 33 bits: exact times any exponent
#define RAPT_MATH_LN2_LOW_DOUBLE 0x1.473de6af278edp-34

// 2^k for -1022 <= k <= 1023
RAPT_MATH_INLINE double rapt_math_power_of_two_double(uint64_t k)
{
    return rapt_math_double_from_bits((k << 52) + (1023ull << 52));
}

RAPT_MATH_INLINE double rapt_math_clamp(double x, double low, double high)
{
    double from_low = low > x ? low : x;
    return high < from_low ? high : from_low;
}

// x + rest = k ln 2 + r + error with |r| <= ln 2 / 2, and tail = exp(r) - 1 - r.
struct rapt_math_exp_parts_double {
    double r, error, tail;
    uint64_t k;
};

RAPT_MATH_INLINE struct rapt_math_exp_parts_double rapt_math_exp_split_sum(double x, double rest)
{
    struct rapt_math_exp_parts_double parts;
    double shifted = x * 0x1.71547652b82fep+0 + RAPT_MATH_ROUNDER_DOUBLE;
    double k = shifted - RAPT_MATH_ROUNDER_DOUBLE;
    double high = x - k * RAPT_MATH_LN2_HIGH_DOUBLE;
    double low = k * RAPT_MATH_LN2_LOW_DOUBLE - rest; // rest is no product, which could be fused instead
    double r = high - low;
    // (exp(r) - 1 - r) / r^2; fit 2^-57.9 of exp
    double p = 0x1.ad7f78551a131p-26;
    p = p * r + 0x1.28ad68b8d2320p-22;
    p = p * r + 0x1.71df253bd7005p-19;
    p = p * r + 0x1.a0199a16cd2c5p-16;
    p = p * r + 0x1.a01a012a68f96p-13;
    p = p * r + 0x1.6c16c1842672cp-10;
    p = p * r + 0x1.1111111127b9ep-7;
    p = p * r + 0x1.555555555088cp-5;
    p = p * r + 0x1.55555555554fap-3;
    p = p * r + 0x1.000000000000ap-1;
    parts.r = r;
    parts.error = (high - r) - low;
    parts.tail = r * r * p;
    parts.k = rapt_math_bits_double(shifted) - rapt_math_bits_double(RAPT_MATH_ROUNDER_DOUBLE);
    return parts;
}

RAPT_MATH_INLINE struct rapt_math_exp_parts_double rapt_math_exp_split_double(double x)
{
    return rapt_math_exp_split_sum(x, 0.0);
}

// 2^k in two factors, as for float; few processors shift 64 bits of both signs
RAPT_MATH_INLINE double rapt_math_scaled(double mantissa, uint64_t k)
{
    uint64_t half = ((k + 2048u) >> 1) - 1024u;
    return mantissa * rapt_math_power_of_two_double(half) * rapt_math_power_of_two_double(k - half);
}

RAPT_MATH_DOUBLE double rapt_math_exp(double x)
{
    struct rapt_math_exp_parts_double parts = rapt_math_exp_split_double(rapt_math_clamp(x, -746.0, 710.0));
    return rapt_math_scaled(1.0 + (parts.r + parts.tail), parts.k);
}

// exp(x); 0 below -709, infinite above 709.5: there the power of two has the bits of 0 and of infinity
RAPT_MATH_INLINE double rapt_math_exp_normal_double(double x)
{
    struct rapt_math_exp_parts_double parts = rapt_math_exp_split_double(rapt_math_clamp(x, -709.2, 709.7));
    return (1.0 + (parts.r + parts.tail)) * rapt_math_power_of_two_double(parts.k);
}

// exp(x) for x <= 708, as rapt_math_exp_weightf: below -708 it is 0
RAPT_MATH_INLINE double rapt_math_exp_weight(double x)
{
    struct rapt_math_exp_parts_double parts = rapt_math_exp_split_double(-708.0 > x ? -708.0 : x);
    double y = (1.0 + (parts.r + parts.tail)) * rapt_math_power_of_two_double(parts.k);
    return x < -708.0 ? 0.0 : y;
}

// (exp(x) - 1) / 2 for -40 <= x <= 710, and what its rounding left out
RAPT_MATH_INLINE double rapt_math_half_expm1(double x, double *error)
{
    struct rapt_math_exp_parts_double parts = rapt_math_exp_split_double(x);
    double scale = rapt_math_power_of_two_double(parts.k - 1u);
    double large = scale * parts.r + (scale - 0.5), small = scale * (parts.tail + parts.error);
    double half = large + small;
    *error = small - (half - large);
    return half;
}

RAPT_MATH_DOUBLE double rapt_math_expm1(double x)
{
    double error, half = rapt_math_half_expm1(rapt_math_clamp(x, -40.0, 710.0), &error);
    return fabs(x) < 0x1p-54 ? x : 2.0 * half;
}

// With h = (exp(2 |x|) - 1) / 2: y = h / (h + 1), and 1 / (h + 1) = 1 - y turns the errors of h and of h + 1 into y's
RAPT_MATH_DOUBLE double rapt_math_tanh(double x)
{
    double magnitude = fabs(x);
    double error, half = rapt_math_half_expm1(2.0 * (magnitude > 20.0 ? 20.0 : magnitude), &error);
    double sum = half + 1.0, added = sum - half;
    double sum_error = (half - (sum - added)) + (1.0 - added) + error; // Knuth's TwoSum
    double y = half / sum;
    return copysign(y + (error - y * sum_error) * (1.0 - y), x);
}

// As for float
RAPT_MATH_DOUBLE double rapt_math_sigmoid(double x)
{
    double e = rapt_math_exp(-fabs(x));
    double q = e / (1.0 + e);
    uint64_t negative = 0u - (rapt_math_bits_double(x) >> 63);
    double whole =
        rapt_math_double_from_bits((rapt_math_bits_double(e) & negative) | (rapt_math_bits_double(1.0) & ~negative));
    return whole - whole * q;
}

// exponent * ln 2 + log(1 + f) for sqrt(1/2) <= 1 + f < sqrt(2)
RAPT_MATH_INLINE double rapt_math_log_sum_double(double exponent, double f)
{
    // log(1 + f) = 2 artanh s = 2 s (1 + z / 3 + z^2 / 5 + ...) with s = f / (2 + f), z = s^2; and 2 s = f - s f
    double s = f / (2.0 + f);
    double z = s * s;
    double p = 2.0 / 21.0; // what is left out is below 2^-60 of f
    p = p * z + 2.0 / 19.0;
    p = p * z + 2.0 / 17.0;
    p = p * z + 2.0 / 15.0;
    p = p * z + 2.0 / 13.0;
    p = p * z + 2.0 / 11.0;
    p = p * z + 2.0 / 9.0;
    p = p * z + 2.0 / 7.0;
    p = p * z + 2.0 / 5.0;
    p = p * z + 2.0 / 3.0;
    // s f = f^2 / 2 - s f^2 / 2, of which the first product is the most exact
    double half_square = 0.5 * f * f;
    double tail = RAPT_MULTIPLY_ADD(s, half_square + z * p, exponent * RAPT_MATH_LN2_LOW_DOUBLE);
    return exponent * RAPT_MATH_LN2_HIGH_DOUBLE - ((half_square - tail) - f);
}

// The exponent, plus 1023, of the power of two to divide x > 0 by so that the quotient lies between the square roots of
// 1/2 and 2.
RAPT_MATH_INLINE uint64_t rapt_math_exponent_double(double x)
{
    return (rapt_math_bits_double(x) - 0x3fe6a09e667f3bcdull + (1023ull << 52)) >> 52;
}

// The exponent without the 1023
RAPT_MATH_INLINE double rapt_math_unbiased(uint64_t exponent)
{
    uint64_t shifted = exponent - 1023u + rapt_math_bits_double(RAPT_MATH_ROUNDER_DOUBLE);
    return rapt_math_double_from_bits(shifted) - RAPT_MATH_ROUNDER_DOUBLE;
}

RAPT_MATH_DOUBLE double rapt_math_log(double x)
{
    int denormal = x < 0x1p-1022;
    double normal = denormal ? x * 0x1p54 : x;
    uint64_t exponent = rapt_math_exponent_double(normal);
    double mantissa = rapt_math_double_from_bits(rapt_math_bits_double(normal) - ((exponent - 1023u) << 52));
    double y = rapt_math_log_sum_double(rapt_math_unbiased(exponent - (denormal ? 54u : 0u)), mantissa - 1.0);
    y = x < INFINITY ? y : x;
    y = x < 0.0 ? (double)NAN : y;
    return x == 0.0 ? (double)-INFINITY : y;
}

RAPT_MATH_DOUBLE double rapt_math_log1p(double x)
{
    uint64_t exponent = rapt_math_exponent_double(1.0 + x);
    // 2^-exponent by way of its fourfold, which is never denormal
    double scale = 0.25 * rapt_math_power_of_two_double(1025u - exponent);
    double y = rapt_math_log_sum_double(rapt_math_unbiased(exponent), x * scale + (scale - 1.0));
    y = fabs(x) < 0x1p-54 ? x : y;
    y = x < INFINITY ? y : x;
    y = x < -1.0 ? (double)NAN : y;
    return x == -1.0 ? (double)-INFINITY : y;
}

// erf(x) for |x| <= 0.84
RAPT_MATH_DOUBLE double rapt_math_erf_near(double x)
{
    double square = x * x;
    double p = 0x1.712d50c009b06p-27; // erf(x) / x - 1 in x^2; fit 2^-56.6 of erf
    p = p * square - 0x1.519719f579c0ap-23;
    p = p * square + 0x1.b84c9a1dcddf9p-20;
    p = p * square - 0x1.f4b48f474e933p-17;
    p = p * square + 0x1.f9a1c095a269fp-14;
    p = p * square - 0x1.c02da9249b16cp-11;
    p = p * square + 0x1.565bccd9bff5bp-8;
    p = p * square - 0x1.b82ce3115ddabp-6;
    p = p * square + 0x1.ce2f21a03f561p-4;
    p = p * square - 0x1.812746b0379a9p-2;
    p = p * square + 0x1.06eba8214db68p-3;
    return x + x * p;
}

// The normal distribution at -(a + rest) for 0.5 <= a <= 39, where half_square + half_rest is half of the square.
RAPT_MATH_DOUBLE double rapt_math_normal_tail(double a, double rest, double half_square, double half_rest)
{
    struct rapt_math_exp_parts_double parts = rapt_math_exp_split_sum(-half_square, -half_rest);
    double t = 1.0 / (4.0 + a);
    double u = (1.0 - a) * t + 0.390625;
    double p = 0x1.902dd97407974p-15; // exp(a^2 / 2) (4 + a) of the distribution at -a, in u; fit 2^-56.3
    p = p * u + 0x1.0008c93ff3822p-13;
    p = p * u - 0x1.c0cbe381fca7ep-13;
    p = p * u - 0x1.313f38a31f53fp-12;
    p = p * u + 0x1.30671482d37f7p-11;
    p = p * u + 0x1.6682b05e72f77p-12;
    p = p * u - 0x1.52491c79cadc3p-10;
    p = p * u - 0x1.4e8c2969e0173p-13;
    p = p * u + 0x1.66778f4e79806p-9;
    p = p * u - 0x1.6d612eaedf982p-12;
    p = p * u - 0x1.944fbccde5e36p-8;
    p = p * u + 0x1.bf53c29fadeffp-11;
    p = p * u + 0x1.035da9bdf5bd7p-6;
    p = p * u + 0x1.ca27fd381f4d5p-9;
    p = p * u - 0x1.6b5794e8d1caep-5;
    p = p * u - 0x1.b6bdfa35e9171p-5;
    p = p * u + 0x1.5957b1f1e4325p-4;
    p = p * u + 0x1.8ec6c6a334b84p-2;
    p = p * u + 0x1.7a99841a98a26p-1;
    p = p * u + 0x1.e9635fc21fa6bp-1;
    p = p * u + 0x1.e26a4a75b8fbep-1;
    p = p * u + 0x1.7b0c1cbe527d9p-1;
    // y = exp(a^2 / 2) times the distribution has the slope a y - 1 / sqrt(2 pi), and that one a slope + y
    double y = t * p, slope = a * y - 0x1.9884533d43651p-2;
    double more = rest * (slope + 0.5 * rest * (a * slope + y));
    more = RAPT_MULTIPLY_ADD(y + more, parts.r + (parts.tail + parts.error), more);
    return rapt_math_scaled(y + more, parts.k);
}

RAPT_MATH_DOUBLE double rapt_math_erf(double x)
{
    double magnitude = fabs(x), most = magnitude > 6.0 ? 6.0 : magnitude;
    double upper = 1.0 - 2.0 * rapt_math_normal_tail(M_SQRT2 * most, 0.0, most * most, 0.0);
    return magnitude < 0.84 ? rapt_math_erf_near(x) : copysign(upper, x);
}

// The normal distribution
RAPT_MATH_DOUBLE double rapt_math_normal_double(double x)
{
    double a = fabs(x);
    a = a > 39.0 ? 39.0 : a;
    double high = rapt_math_double_from_bits(rapt_math_bits_double(a) & ~0x7ffffffull), rest = a - high; // 26 bits
    double half_rest = RAPT_MULTIPLY_ADD(0.5 * rest, a + high, 0.0);
    double tail = rapt_math_normal_tail(high, rest, 0.5 * high * high, half_rest);
    double below = a < 0.5 ? 0.5 - 0.5 * rapt_math_erf_near(M_SQRT1_2 * a) : tail;
    return x < 0.0 ? below : 1.0 - below;
}

// sin and cos of larger angles need more digits of pi than these.
#define RAPT_MATH_LARGEST_ANGLE 0x1p20

// sin(x + quadrants * pi/2) for |x| <= RAPT_MATH_LARGEST_ANGLE
RAPT_MATH_INLINE double rapt_math_sin_quadrants(double x, uint64_t quadrants)
{
    double shifted = x * 0x1.45f306dc9c883p-1 + RAPT_MATH_ROUNDER_DOUBLE;
    double n = shifted - RAPT_MATH_ROUNDER_DOUBLE;
    uint64_t quadrant = rapt_math_bits_double(shifted) + quadrants;
    // x - n pi/2 = r + error, after Cody and Waite (1980): pi/2 in parts, of which three have 33 bits, exact times n
    double second = n * 0x1.0b4611a6p-34, third = n * 0x1.3198a2ep-69, last = n * 0x1.b839a252049c1p-104;
    double a = x - n * 0x1.921fb544p+0, b = a - second, c = b - third, r = c - last;
    double error = ((c - r) - last) + (((b - c) - third) + ((a - b) - second));
    double square = r * r;
    double p = 0x1.952c77030ad4ap-49; // (sin(r) / r - 1) / r^2 in r^2, the series up to 1 / 17!
    p = p * square - 0x1.ae7f3e733b81fp-41;
    p = p * square + 0x1.6124613a86d09p-33;
    p = p * square - 0x1.ae64567f544e4p-26;
    p = p * square + 0x1.71de3a556c734p-19;
    p = p * square - 0x1.a01a01a01a01ap-13;
    p = p * square + 0x1.1111111111111p-7;
    p = p * square - 0x1.5555555555555p-3;
    double sine = copysign(r + (r * square * p + error * (1.0 - 0.5 * square)), r);
    double q = 0x1.ae7f3e733b81fp-45; // (cos(r) - 1 + r^2 / 2) / r^4 in r^2, up to 1 / 16!
    q = q * square - 0x1.93974a8c07c9dp-37;
    q = q * square + 0x1.1eed8eff8d898p-29;
    q = q * square - 0x1.27e4fb7789f5cp-22;
    q = q * square + 0x1.a01a01a01a01ap-16;
    q = q * square - 0x1.6c16c16c16c17p-10;
    q = q * square + 0x1.5555555555555p-5;
    double half = 0.5 * square, most = 1.0 - half;
    double cosine = most + ((((1.0 - most) - half) - r * error) + square * square * q);
    uint64_t odd = 0u - (quadrant & 1u);
    uint64_t bits = (rapt_math_bits_double(cosine) & odd) | (rapt_math_bits_double(sine) & ~odd);
    return rapt_math_double_from_bits(bits ^ ((quadrant & 2u) << 62));
}

#endif
