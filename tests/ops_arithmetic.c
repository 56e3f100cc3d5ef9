/* Rows: arithmetic of two tensors, and of a tensor and a number. */
#include <math.h>

#include "ops.h"

BINARY(add, x[0] + x[1])
BINARY(sub, x[0] - x[1])
BINARY(mul, x[0] * x[1])
BINARY(div, x[0] / x[1])
BINARY(pow, pow(x[0], x[1]))
BINARY(maximum, x[0] > x[1] ? x[0] : x[1])
BINARY(minimum, x[0] < x[1] ? x[0] : x[1])

#define WITH_NUMBER(name, formula)                                                                                     \
    static rapt_tensor *call_##name(rapt_tensor *const *in, const op_sample *s)                                        \
    {                                                                                                                  \
        return rapt_##name(in[0], s->real[0]);                                                                         \
    }                                                                                                                  \
    static double value_##name(const double *x, const op_sample *s)                                                    \
    {                                                                                                                  \
        return formula;                                                                                                \
    }

WITH_NUMBER(add_scalar, x[0] + s->real[0])
WITH_NUMBER(mul_scalar, x[0] * s->real[0])
WITH_NUMBER(pow_scalar, pow(x[0], s->real[0]))
WITH_NUMBER(maximum_scalar, x[0] > s->real[0] ? x[0] : s->real[0])
WITH_NUMBER(minimum_scalar, x[0] < s->real[0] ? x[0] : s->real[0])

/* Two tensors of one shape, and all the ways in which shapes broadcast. */
static const op_sample pairs[] = {
    {.in = {SHAPE(2, 3), SHAPE(2, 3)}},
    {.in = {SHAPE(2, 3), SHAPE(3)}},
    {.in = {SHAPE(2, 1, 3), SHAPE(4, 1)}},
    {.in = {SCALAR, SHAPE(2, 2)}},
    {.in = {SHAPE(5), SCALAR}},
    {.in = {SCALAR, SCALAR}},
    {.in = {SHAPE(1), SHAPE(1, 1)}},
    {.in = {SHAPE(0, 3), SHAPE(1, 3)}},
    {.in = {SHAPE(2, 0), SCALAR}},
    {.in = {SHAPE(1, 2, 1, 2, 1), SHAPE(2, 1, 2, 1, 2)}},
    {.in = {SHAPE(37, 1031), SHAPE(37, 1031)}, .large = true},
    {.in = {SHAPE(211, 1, 67), SHAPE(7, 1)}, .large = true},
};

static const op_sample misfits[] = {
    {.in = {SHAPE(2, 3), SHAPE(2, 4)}, .error = RAPT_ERROR_SHAPE},
    {.in = {SHAPE(2, 3), SHAPE(2)}, .error = RAPT_ERROR_SHAPE},
    {.in = {SHAPE(0), SHAPE(2)}, .error = RAPT_ERROR_SHAPE},
};

static const op_sample with_number[] = {
    {.in = {SHAPE(2, 3)}, .real = {2}}, {.in = {SHAPE(4)}, .real = {3}},
    {.in = {SHAPE(2, 2)}, .real = {1}}, {.in = {SHAPE(5)}, .real = {0}},
    {.in = {SCALAR}, .real = {4}},      {.in = {SHAPE(3, 0, 2)}, .real = {2}},
    {.in = {SHAPE(1)}, .real = {2}},    {.in = {SHAPE(61, 1031)}, .real = {3}, .large = true},
};

static const op_sample powers[] = {
    {.in = {SHAPE(2, 3)}, .real = {2}},
    {.in = {SHAPE(2, 3)}, .real = {3}},
    {.in = {SHAPE(4)}, .real = {-1}},
    {.in = {SHAPE(4)}, .real = {2.7}},
    {.in = {SHAPE(4)}, .real = {0.5}},
    {.in = {SHAPE(3)}, .real = {-2}},
    {.in = {SHAPE(3)}, .real = {1}},
    {.in = {SHAPE(3)}, .real = {0}},
    {.in = {SCALAR}, .real = {1.5}},
    {.in = {SHAPE(0, 2)}, .real = {2.5}},
    {.in = {SHAPE(61, 1031)}, .real = {2.5}, .large = true},
};

#define BINARY_ROW(op)                                                                                                 \
    .name = #op, .call = call_##op, .element = value_##op, .differentiable = 3, SAMPLES(pairs), FAILURES(misfits)
#define NUMBER_ROW(op) .name = #op, .call = call_##op, .element = value_##op, .differentiable = 1

static double value_integer_div(const double *x, const op_sample *s)
{
    (void)s;
    return floor(x[0] / x[1]);
}

static const op_row rows[] = {
    {BINARY_ROW(add), .dtypes = number_dtypes},
    {BINARY_ROW(sub), .dtypes = number_dtypes},
    {BINARY_ROW(mul), .dtypes = number_dtypes},
    {BINARY_ROW(div), .dtypes = floating_dtypes, .domain = {any_value, nonzero}},
    {BINARY_ROW(pow), .domain = {positive, any_value}},
    {BINARY_ROW(maximum), .dtypes = number_dtypes},
    {BINARY_ROW(minimum), .dtypes = number_dtypes},
    {NUMBER_ROW(add_scalar), .dtypes = number_dtypes, SAMPLES(with_number)},
    {NUMBER_ROW(mul_scalar), .dtypes = number_dtypes, SAMPLES(with_number)},
    {NUMBER_ROW(pow_scalar), .domain = {positive}, SAMPLES(powers)},
    {NUMBER_ROW(maximum_scalar), .dtypes = number_dtypes, .is_combined = true, SAMPLES(with_number)},
    {NUMBER_ROW(minimum_scalar), .dtypes = number_dtypes, .is_combined = true, SAMPLES(with_number)},
    {.name = "div",
     .call = call_div,
     .element = value_integer_div,
     .domain = {any_value, nonzero},
     .dtypes = number_dtypes & ~floating_dtypes,
     SAMPLES(pairs),
     FAILURES(misfits)},
};

const op_family ops_arithmetic = {rows, sizeof rows / sizeof *rows};
