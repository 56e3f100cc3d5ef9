/* Rows: functions of one tensor, element by element. */
#include <math.h>

#include "ops.h"

#define UNARY(name, formula)                                                                                           \
    static rapt_tensor *call_##name(rapt_tensor *const *in, const op_sample *s)                                        \
    {                                                                                                                  \
        (void)s;                                                                                                       \
        return rapt_##name(in[0]);                                                                                     \
    }                                                                                                                  \
    static double value_##name(const double *values, const op_sample *s)                                               \
    {                                                                                                                  \
        const double x = values[0];                                                                                    \
        (void)s;                                                                                                       \
        return formula;                                                                                                \
    }

UNARY(neg, -x)
UNARY(abs, fabs(x))
UNARY(exp, exp(x))
UNARY(log, log(x))
UNARY(expm1, expm1(x))
UNARY(log1p, log1p(x))
UNARY(sqrt, sqrt(x))
UNARY(rsqrt, 1 / sqrt(x))
UNARY(sin, sin(x))
UNARY(cos, cos(x))
UNARY(tanh, tanh(x))
UNARY(sigmoid, 1 / (1 + exp(-x)))
UNARY(erf, erf(x))
UNARY(relu, x > 0 ? x : 0)
UNARY(gelu, x * 0.5 * erfc(-x / sqrt(2)))
UNARY(gelu_tanh, 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x))))
UNARY(silu, x / (1 + exp(-x)))
UNARY(softplus, log(1 + exp(x)))
UNARY(mish, x *tanh(log(1 + exp(x))))
UNARY(sign, x > 0 ? 1 : -1)
UNARY(floor, floor(x))
UNARY(ceil, ceil(x))
UNARY(round, floor(x + 0.5))

#define WITH_NUMBER(name, formula)                                                                                     \
    static rapt_tensor *call_##name(rapt_tensor *const *in, const op_sample *s)                                        \
    {                                                                                                                  \
        return rapt_##name(in[0], s->real[0]);                                                                         \
    }                                                                                                                  \
    static double value_##name(const double *values, const op_sample *s)                                               \
    {                                                                                                                  \
        const double x = values[0];                                                                                    \
        return x > 0 ? x : formula;                                                                                    \
    }

WITH_NUMBER(leaky_relu, x * s->real[0])
WITH_NUMBER(elu, s->real[0] * (exp(x) - 1))

static rapt_tensor *call_clamp(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_clamp(in[0], s->real[0], s->real[1]);
}

static double value_clamp(const double *x, const op_sample *s)
{
    return x[0] < s->real[0] ? s->real[0] : x[0] > s->real[1] ? s->real[1] : x[0];
}

static const op_sample shapes[] = {
    {.in = {SHAPE(2, 3)}},
    {.in = {SHAPE(3, 2, 4)}},
    {.in = {SCALAR}},
    {.in = {SHAPE(1)}},
    {.in = {SHAPE(1, 40)}},
    {.in = {SHAPE(3, 0)}},
    {.in = {SHAPE(2, 1, 3, 1, 2)}},
    {.in = {SHAPE(61, 1031)}, .large = true},
};

static const op_sample slopes[] = {
    {.in = {SHAPE(4, 5)}, .real = {0.25}}, {.in = {SHAPE(2, 1, 3)}, .real = {1.5}},
    {.in = {SHAPE(7)}, .real = {-0.5}},    {.in = {SCALAR}, .real = {0.125}},
    {.in = {SHAPE(0)}, .real = {0.25}},    {.in = {SHAPE(61, 1031)}, .real = {0.25}, .large = true},
};

static const op_sample bounds[] = {
    {.in = {SHAPE(4, 5)}, .real = {-0.5, 0.5}},
    {.in = {SHAPE(2, 3)}, .real = {-0.25, INFINITY}},
    {.in = {SHAPE(7)}, .real = {-INFINITY, 0.125}},
    {.in = {SHAPE(3)}, .real = {0.25, 0.25}},
    {.in = {SCALAR}, .real = {-1, 1}},
    {.in = {SHAPE(0)}, .real = {-1, 1}},
    {.in = {SHAPE(61, 1031)}, .real = {-1, 1.5}, .large = true},
};

static const op_sample crossed_bounds[] = {
    {.in = {SHAPE(3)}, .real = {1, -1}, .error = RAPT_ERROR_VALUE},
    {.in = {SHAPE(3)}, .real = {NAN, 1}, .error = RAPT_ERROR_VALUE},
    {.in = {SHAPE(3)}, .real = {0, NAN}, .error = RAPT_ERROR_VALUE},
};

#define ROW(op) .name = #op, .call = call_##op, .element = value_##op, .differentiable = 1

static const op_row rows[] = {
    {ROW(neg), .dtypes = number_dtypes, SAMPLES(shapes)},
    {ROW(abs), .dtypes = number_dtypes, SAMPLES(shapes)},
    {ROW(exp), SAMPLES(shapes)},
    {ROW(log), .domain = {positive}, SAMPLES(shapes)},
    {ROW(expm1), SAMPLES(shapes)},
    {ROW(log1p), .domain = {small}, SAMPLES(shapes)},
    {ROW(sqrt), .domain = {positive}, SAMPLES(shapes)},
    {ROW(rsqrt), .domain = {positive}, SAMPLES(shapes)},
    {ROW(sin), SAMPLES(shapes)},
    {ROW(cos), SAMPLES(shapes)},
    {ROW(tanh), SAMPLES(shapes)},
    {ROW(sigmoid), SAMPLES(shapes)},
    {ROW(erf), SAMPLES(shapes)},
    {ROW(relu), SAMPLES(shapes)},
    {ROW(gelu), SAMPLES(shapes)},
    {ROW(gelu_tanh), SAMPLES(shapes)},
    {ROW(silu), SAMPLES(shapes)},
    {ROW(softplus), SAMPLES(shapes)},
    {ROW(mish), SAMPLES(shapes)},
    {ROW(sign), SAMPLES(shapes)},
    {ROW(floor), SAMPLES(shapes)},
    {ROW(ceil), SAMPLES(shapes)},
    {ROW(round), SAMPLES(shapes)},
    {ROW(leaky_relu), SAMPLES(slopes)},
    {ROW(elu), SAMPLES(slopes)},
    {ROW(clamp), SAMPLES(bounds), FAILURES(crossed_bounds)},
};

const op_family ops_unary = {rows, sizeof rows / sizeof *rows};
