// Compares every elementary function of tensor/kernels/vector_math.h with libm's double one and fails beyond 2 ulp.
//
//     math_accuracy [--all | --stride N] [function ...]
//
// Tries every N-th float32 bit pattern (257 unless told; --all: 1) and, always, the values where functions go wrong.
// It tests the instruction-set level it is compiled for, and skips (status 77) on a processor without it.
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tensor/kernels/vector_math.h"
#include "math_level.h"

enum { BLOCK = 4096 };
static const double LIMIT = 2.0;

#define UNARY(name)                                                                                                    \
    static void rapt_##name(const float *x, const float *unused, float *y)                                             \
    {                                                                                                                  \
        (void)unused;                                                                                                  \
        _Pragma("omp simd") for (int i = 0; i < BLOCK; i++) y[i] = rapt_math_##name##f(x[i]);                          \
    }                                                                                                                  \
    static double reference_##name(double x, double unused)                                                            \
    {                                                                                                                  \
        (void)unused;                                                                                                  \
        return name(x);                                                                                                \
    }

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

// Promised up to 87; 0 where floats begin to be denormal.
static float weight_argument(float x)
{
    return x > 87.0f ? 87.0f : x;
}

static void rapt_exp_weight(const float *x, const float *unused, float *y)
{
    (void)unused;
    _Pragma("omp simd") for (int i = 0; i < BLOCK; i++) y[i] = rapt_math_exp_weightf(weight_argument(x[i]));
}

static double reference_exp_weight(double x, double unused)
{
    (void)unused;
    return x < -87.0 ? 0.0 : exp(x > 87.0 ? 87.0 : x);
}

UNARY(exp)
UNARY(expm1)
UNARY(log)
UNARY(log1p)
UNARY(tanh)
UNARY(sigmoid)
UNARY(erf)
#ifndef _WIN32 // in double, MinGW's of large numbers have no digits to compare with

static inline float turned(float x, uint32_t quadrants)
{
    const int64_t row = rapt_math_turn_row(x);
    return rapt_math_sin_turned(x, rapt_math_turn_high[row], rapt_math_turn_low[row], quadrants);
}

#define rapt_math_sinf(x) turned(x, 0)
#define rapt_math_cosf(x) turned(x, 1)
UNARY(sin)
UNARY(cos)
#endif

static void rapt_pow(const float *x, const float *exponent, float *y)
{
    _Pragma("omp simd") for (int i = 0; i < BLOCK; i++) y[i] = rapt_math_powf(x[i], exponent[i]);
}

struct function {
    const char *name;
    bool binary;
    void (*compute)(const float *x, const float *exponent, float *y);
    double (*reference)(double x, double exponent);
};

static const struct function FUNCTIONS[] = {
    {"exp", false, rapt_exp, reference_exp},
    {"expm1", false, rapt_expm1, reference_expm1},
    {"log", false, rapt_log, reference_log},
    {"log1p", false, rapt_log1p, reference_log1p},
    {"tanh", false, rapt_tanh, reference_tanh},
    {"sigmoid", false, rapt_sigmoid, reference_sigmoid},
    {"erf", false, rapt_erf, reference_erf},
#ifndef _WIN32
    {"sin", false, rapt_sin, reference_sin},
    {"cos", false, rapt_cos, reference_cos},
#endif
    {"pow", true, rapt_pow, pow},
    {"exp_weight", false, rapt_exp_weight, reference_exp_weight},
};
enum { FUNCTION_COUNT = sizeof FUNCTIONS / sizeof FUNCTIONS[0] };

// Each is tried with both signs, and for pow with each other one.
static const float SPECIALS[] = {
    0.0f,          0x1p-149f,   0x1p-127f,      0x1p-126f,      0x1.fffffep-127f,
    0x1p-26f,      0x1p-24f,    0x1p-12f,       0.5f,           0.92f,
    1.0f,          1.5f,        2.0f,           3.0f,           0x1.fffffep-1f,
    0x1.000002p0f, 8.0f,        9.0f,           10.0f,          17.5f,
    87.5f,         88.5f,       88.73f,         89.0f,          103.5f,
    104.0f,        105.0f,      0x1p22f,        0x1p23f,        8388609.0f,
    0x1p24f,       16777213.0f, 8388607.5f,     4194303.5f,     0x1p25f,
    0x1p26f,       1e10f,       1e38f,          0x1p127f,       FLT_MAX,
    INFINITY,      NAN,         0x1.2d97c8p+0f, 0x1.f37c8ap95f,
};
enum { SPECIAL_COUNT = 2 * sizeof SPECIALS / sizeof SPECIALS[0] };

static float special(unsigned i)
{
    float value = SPECIALS[i / 2];
    return i % 2 ? -value : value;
}

struct outcome {
    double worst; // in ulp; infinite for a wrong special value
    float x, exponent, result;
};

// The distance in units in the last place of float32 at the exact result; infinite where the kind of result is wrong.
static double error_in_ulp(float result, double exact)
{
    if (isnan(exact) || isnan(result)) return isnan(exact) && isnan(result) ? 0.0 : INFINITY;
    if (isinf(exact)) return (double)result == exact ? 0.0 : INFINITY;
    if (!signbit(exact) != !signbit(result)) return INFINITY;
    if (exact == 0.0) return result == 0.0f ? 0.0 : INFINITY;
    double found = isinf(result) ? 0x1p128 : fabs((double)result), expected = fmin(fabs(exact), 0x1p128);
    int exponent = ilogb(expected);
    return fabs(found - expected) / ldexp(1.0, (exponent < -126 ? -126 : exponent > 127 ? 127 : exponent) - 23);
}

static struct outcome worse(struct outcome a, struct outcome b)
{
    return b.worst > a.worst ? b : a;
}

static struct outcome try_block(const struct function *function, const float *x, const float *exponent, int count)
{
    static const struct outcome none = {-1.0, 0.0f, 0.0f, 0.0f};
    struct outcome outcome = none;
    float y[BLOCK];
    function->compute(x, exponent, y);
    for (int i = 0; i < count; i++) {
        double error = error_in_ulp(y[i], function->reference((double)x[i], (double)exponent[i]));
        outcome = worse(outcome, (struct outcome){error, x[i], exponent[i], y[i]});
    }
    return outcome;
}

// An exponent to try with x: any bits, a small one, a half or an integer, or one whose result is of any finite size.
static float sample_exponent(uint64_t i, float x)
{
    uint64_t random = mix(i);
    double uniform = (double)(random >> 11) * 0x1p-53;
    switch (random & 3u) {
    case 0:
        return rapt_math_from_bits((uint32_t)(random >> 32));
    case 1:
        return (float)(32.0 * uniform - 16.0);
    case 2:
        return (float)(floor(64.0 * uniform) - 32.0) * 0.5f;
    default:
        return (float)((290.0 * uniform - 155.0) / log2(fabs((double)x)));
    }
}

static struct outcome try_specials(const struct function *function)
{
    struct outcome outcome = {-1.0, 0.0f, 0.0f, 0.0f};
    float x[BLOCK] = {0}, exponent[BLOCK] = {0};
    for (unsigned j = 0; j < (function->binary ? SPECIAL_COUNT : 1); j++) {
        for (unsigned i = 0; i < SPECIAL_COUNT; i++) {
            x[i] = special(i);
            exponent[i] = special(j);
        }
        outcome = worse(outcome, try_block(function, x, exponent, SPECIAL_COUNT));
    }
    return outcome;
}

static struct outcome try_function(const struct function *function, uint64_t stride)
{
    struct outcome outcome = try_specials(function);
    int64_t blocks = (int64_t)(((UINT64_C(1) << 32) - 1) / (stride * BLOCK) + 1);
#pragma omp parallel for schedule(dynamic, 16)
    for (int64_t block = 0; block < blocks; block++) {
        float x[BLOCK], exponent[BLOCK] = {0};
        for (int i = 0; i < BLOCK; i++) {
            uint64_t index = (uint64_t)block * BLOCK + (uint64_t)i;
            x[i] = rapt_math_from_bits((uint32_t)(index * stride));
            if (function->binary) exponent[i] = sample_exponent(index, x[i]);
        }
        struct outcome found = try_block(function, x, exponent, BLOCK);
#pragma omp critical
        outcome = worse(outcome, found);
    }
    return outcome;
}

static bool report(const struct function *function, struct outcome outcome)
{
    bool good = outcome.worst <= LIMIT;
    printf("%-10s %6.3f ulp at %s(%a", function->name, outcome.worst, function->name, (double)outcome.x);
    if (function->binary) printf(", %a", (double)outcome.exponent);
    printf(") = %a%s\n", (double)outcome.result, good ? "" : "   FAILED");
    fflush(stdout);
    return good;
}

static bool parse_stride(const char *text, uint64_t *stride)
{
    char *end;
    *stride = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && *stride > 0 && *stride <= UINT32_MAX;
}

int main(int argc, char **argv)
{
    uint64_t stride = 257;
    bool wanted[FUNCTION_COUNT] = {false}, any = false, good = true;
    for (int i = 1; i < argc; i++) {
        bool known = false;
        if (strcmp(argv[i], "--all") == 0) {
            stride = 1;
            known = true;
        } else if (strcmp(argv[i], "--stride") == 0 && i + 1 < argc) {
            known = parse_stride(argv[++i], &stride);
        }
        for (int f = 0; !known && f < FUNCTION_COUNT; f++) {
            if (strcmp(argv[i], FUNCTIONS[f].name) == 0) known = wanted[f] = any = true;
        }
        if (!known) {
            fprintf(stderr,
                    "math_accuracy: bad argument \"%s\": expected --all, --stride N (1 to 2^32 - 1) or a function\n",
                    argv[i]);
            return 2;
        }
    }
    if (!processor_has_level()) {
        printf("skipped: this processor does not have %s\n", level());
        return SKIPPED;
    }
    printf("%s, every %llu-th float32\n", level(), (unsigned long long)stride);
    for (int f = 0; f < FUNCTION_COUNT; f++) {
        if (!any || wanted[f]) good &= report(&FUNCTIONS[f], try_function(&FUNCTIONS[f], stride));
    }
    return good ? 0 : 1;
}
