// Compares every elementary function of tensor/kernels/double_math.h with the C library's of long double: beyond its
// bound, 2 ulp but for the normal distribution, it fails, and where an element has other bits alone than in a loop.
// Where long double is no wider it is skipped (status 77), as on a processor without the instruction-set level it is
// compiled for.
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../tensor/kernels/double_math.h"
#include "math_level.h"

enum { BLOCK = 4096, BLOCKS = 250 };

#define UNARY(name)                                                                                                    \
    static void many_##name(const double *x, double *y)                                                                \
    {                                                                                                                  \
        _Pragma("omp simd") for (int i = 0; i < BLOCK; i++) y[i] = rapt_math_##name(x[i]);                             \
    }                                                                                                                  \
    static __attribute__((noinline)) double one_##name(double x)                                                       \
    {                                                                                                                  \
        return rapt_math_##name(x);                                                                                    \
    }

// For large angles loops ask the C library.
RAPT_MATH_INLINE double rapt_math_sin(double x)
{
    return rapt_math_sin_quadrants(x, 0);
}

RAPT_MATH_INLINE double rapt_math_cos(double x)
{
    return rapt_math_sin_quadrants(x, 1);
}

UNARY(sin)
UNARY(cos)
UNARY(exp)
UNARY(exp_weight)
UNARY(expm1)
UNARY(tanh)
UNARY(sigmoid)
UNARY(log)
UNARY(log1p)
UNARY(erf)
UNARY(normal_double)

static long double exp_weight(long double x)
{
    return x < -708.0L ? 0.0L : expl(x);
}

static long double sigmoid(long double x)
{
    return 1.0L / (1.0L + expl(-x));
}

// erfc(z) / 2 of z = -x / sqrt(2), whose rounding erfc would magnify: with its slope times what z lost
static long double normal(long double x)
{
    const long double root = 0.707106781186547524400844362104849039L, z = -x * root;
    const long double lost = fmal(-x, root, -z) - x * 0x1.65f626cdd52b0p-66L;
    return 0.5L * (erfcl(z) - (isinf(x) ? 0.0L : (long double)M_2_SQRTPI * expl(-z * z) * lost));
}

// Arguments from `least` to `largest` are tried, of which most results are ordinary up to `usual`.
struct function {
    const char *name;
    void (*many)(const double *x, double *y);
    double (*one)(double x);
    long double (*reference)(long double x);
    double usual, least, largest, limit;
};

static const struct function FUNCTIONS[] = {
    {"sin", many_sin, one_sin, sinl, 1e3, -RAPT_MATH_LARGEST_ANGLE, RAPT_MATH_LARGEST_ANGLE, 2.0},
    {"cos", many_cos, one_cos, cosl, 1e3, -RAPT_MATH_LARGEST_ANGLE, RAPT_MATH_LARGEST_ANGLE, 2.0},
    {"exp", many_exp, one_exp, expl, 746.0, -INFINITY, INFINITY, 2.0},
    {"exp_weight", many_exp_weight, one_exp_weight, exp_weight, 708.0, -INFINITY, 708.0, 2.0},
    {"expm1", many_expm1, one_expm1, expm1l, 710.0, -INFINITY, INFINITY, 2.0},
    {"tanh", many_tanh, one_tanh, tanhl, 20.0, -INFINITY, INFINITY, 2.0},
    {"sigmoid", many_sigmoid, one_sigmoid, sigmoid, 740.0, -INFINITY, INFINITY, 2.0},
    {"log", many_log, one_log, logl, 4.0, -INFINITY, INFINITY, 2.0},
    {"log1p", many_log1p, one_log1p, log1pl, 4.0, -INFINITY, INFINITY, 2.0},
    {"erf", many_erf, one_erf, erfl, 6.0, -INFINITY, INFINITY, 2.0},
    {"normal", many_normal_double, one_normal_double, normal, 40.0, -INFINITY, INFINITY, 4.0},
};
enum { FUNCTION_COUNT = sizeof FUNCTIONS / sizeof FUNCTIONS[0] };

// Each is tried with both signs.
static const double SPECIALS[] = {
    0.0,       0x1p-1074,
    0x1p-1022, 0x1.fffffffffffffp-1023,
    0x1p-55,   0x1p-54,
    0x1p-53,   0x1p-27,
    0.5,       1.0,
    0x1p-52,   19.0,
    20.0,      0x1.6a09e667f3bcdp-1,
    M_SQRT2,   708.0,
    708.3,     708.4,
    709.0,     709.7,
    709.78,    709.79,
    710.0,     745.1,
    745.2,     746.0,
    1e4,       0x1p52,
    1e300,     DBL_MAX,
    40.0,      INFINITY,
    NAN,       0x1.fffffffffffffp-1,
    0.34657,   0.346574,
    2.0,       0x1p1023,
};
enum { SPECIAL_COUNT = 2 * sizeof SPECIALS / sizeof SPECIALS[0] };

// The distance in units in the last place of float64 at the exact result; infinite where the kind of result is wrong.
static double error_in_ulp(double result, long double exact)
{
    if (isnan(exact) || isnan(result)) return isnan(exact) && isnan(result) ? 0.0 : INFINITY;
    if (isinf(exact)) return (long double)result == exact ? 0.0 : INFINITY;
    if (!signbit(exact) != !signbit(result)) return INFINITY;
    if (exact == 0.0L) return result == 0.0 ? 0.0 : INFINITY;
    const long double most = 0x1p1024L, found = isinf(result) ? most : fabsl((long double)result);
    const long double expected = fminl(fabsl(exact), most);
    const int exponent = ilogbl(expected);
    return (double)(fabsl(found - expected) / ldexpl(1.0L, (exponent < -1022  ? -1022
                                                            : exponent > 1023 ? 1023
                                                                              : exponent) -
                                                               52));
}

// Any bits; uniform; small; near 1, where logarithms vanish; or special.
static double argument(const struct function *function, int64_t i)
{
    const uint64_t random = mix((uint64_t)i);
    const double uniform = (double)(random >> 11) * 0x1p-52 - 1.0;
    double x = i % 5 == 0   ? rapt_math_double_from_bits(random)
               : i % 5 == 1 ? function->usual * uniform
               : i % 5 == 2 ? uniform
               : i % 5 == 3 ? ldexp(uniform, -(int)(random & 63u))
                            : 1.0 + 0.5 * uniform;
    if (i < SPECIAL_COUNT) x = i % 2 ? -SPECIALS[i / 2] : SPECIALS[i / 2];
    return x > function->largest ? function->largest : x < function->least ? function->least : x;
}

static bool try_function(const struct function *function)
{
    double worst = 0.0, at = 0.0;
    int64_t others = 0;
    for (int64_t block = 0; block < BLOCKS; block++) {
        double x[BLOCK], y[BLOCK];
        for (int i = 0; i < BLOCK; i++) x[i] = argument(function, block * BLOCK + i);
        function->many(x, y);
        for (int i = 0; i < BLOCK; i++) {
            const double error = error_in_ulp(y[i], function->reference((long double)x[i])),
                         alone = function->one(x[i]);
            others += memcmp(&alone, &y[i], sizeof alone) != 0 && !isnan(alone);
            if (error <= worst) continue;
            worst = error;
            at = x[i];
        }
    }
    const bool good = worst <= function->limit && others == 0;
    printf("%-10s %6.3f ulp at %a, %lld with other bits alone%s\n", function->name, worst, at, (long long)others,
           good ? "" : "   FAILED");
    return good;
}

int main(void)
{
    if (!processor_has_level() || LDBL_MANT_DIG <= DBL_MANT_DIG) {
        printf("skipped: this processor does not have %s, or no wider long double\n", level());
        return SKIPPED;
    }
    bool good = true;
    for (int i = 0; i < FUNCTION_COUNT; i++) good &= try_function(&FUNCTIONS[i]);
    return good ? 0 : 1;
}
