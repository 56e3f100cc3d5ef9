/* Rows: comparisons and logic, choice, conversion. */
#include <math.h>

#include "ops.h"

/* For floats all inputs differ; variant 1 compares a tensor with itself. */
BINARY(equal, x[0] == x[1])
BINARY(not_equal, x[0] != x[1])
BINARY(less, x[0] < x[1])
BINARY(less_equal, x[0] <= x[1])
BINARY(greater, x[0] > x[1])
BINARY(greater_equal, x[0] >= x[1])
BINARY(logical_and, x[0] != 0 && x[1] != 0)
BINARY(logical_or, x[0] != 0 || x[1] != 0)

#define WITH_NUMBER(name, operator)                                                                                    \
    static rapt_tensor *call_##name##_scalar(rapt_tensor *const *in, const op_sample *s)                               \
    {                                                                                                                  \
        return rapt_##name##_scalar(in[0], s->real[0]);                                                                \
    }                                                                                                                  \
    static double value_##name##_scalar(const double *x, const op_sample *s)                                           \
    {                                                                                                                  \
        return x[0] operator s->real[0];                                                                               \
    }
WITH_NUMBER(equal, ==)
WITH_NUMBER(not_equal, !=)
WITH_NUMBER(less, <)
WITH_NUMBER(less_equal, <=)
WITH_NUMBER(greater, >)
WITH_NUMBER(greater_equal, >=)

static rapt_tensor *call_logical_not(rapt_tensor *const *in, const op_sample *s)
{
    (void)s;
    return rapt_logical_not(in[0]);
}

static double value_logical_not(const double *x, const op_sample *s)
{
    (void)s;
    return x[0] == 0;
}

static rapt_tensor *call_isfinite(rapt_tensor *const *in, const op_sample *s)
{
    (void)s;
    return rapt_isfinite(in[0]);
}

/* What is below −1 is made infinite, what is above 1 NaN. */
static rapt_tensor *call_isfinite_of_any(rapt_tensor *const *in, const op_sample *s)
{
    (void)s;
    rapt_tensor *far = rapt_mul_scalar(in[0], (double)INFINITY);
    return rapt_isfinite(rapt_where(rapt_less_scalar(in[0], -1), far,
                                    rapt_where(rapt_greater_scalar(in[0], 1), rapt_sub(far, far), in[0])));
}

static double value_isfinite(const double *x, const op_sample *s)
{
    (void)x, (void)s;
    return 1;
}

static double value_is_near(const double *x, const op_sample *s)
{
    (void)s;
    return fabs(x[0]) <= 1;
}

static rapt_tensor *call_where(rapt_tensor *const *in, const op_sample *s)
{
    (void)s;
    return rapt_where(in[0], in[1], in[2]);
}

static double value_where(const double *x, const op_sample *s)
{
    (void)s;
    return x[0] != 0 ? x[1] : x[2];
}

static rapt_tensor *call_masked_fill(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_masked_fill(in[0], in[1], s->real[0]);
}

static double value_masked_fill(const double *x, const op_sample *s)
{
    return x[1] != 0 ? s->real[0] : x[0];
}

static rapt_tensor *call_triu(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_triu(in[0], s->number[0]);
}

static rapt_tensor *call_tril(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_tril(in[0], s->number[0]);
}

/* What is on the diagonal, and on one side of it. */
static array triangle(const array *x, int64_t diagonal, int side)
{
    array y = array_new(x->rank, x->shape);
    ARRAY_EACH(y, w)
    {
        const int64_t place = w.index[y.rank - 1] - w.index[y.rank - 2];
        if (side > 0 ? place >= diagonal : place <= diagonal)
            *array_at(&y, y.rank, w.index) = *array_at(x, y.rank, w.index);
    }
    return y;
}

static array reference_triu(const array *in, const op_sample *s)
{
    return triangle(&in[0], s->number[0], 1);
}

static array reference_tril(const array *in, const op_sample *s)
{
    return triangle(&in[0], s->number[0], -1);
}

static rapt_tensor *call_cast(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_cast(in[0], (rapt_dtype)s->variant);
}

static double value_cast(const double *x, const op_sample *s)
{
    switch (s->variant) {
    case RAPT_BOOL:
        return x[0] != 0;
    case RAPT_UINT8:
        return x[0] < 0 && x[0] != trunc(x[0]) ? 0 : x[0] < 0 ? x[0] + 256 : trunc(x[0]);
    case RAPT_INT64:
    case RAPT_INT32:
        return trunc(x[0]);
    default:
        return x[0];
    }
}

static rapt_dtype cast_result(rapt_dtype dtype, const op_sample *s)
{
    (void)dtype;
    return (rapt_dtype)s->variant;
}

/* Between floats cast is differentiable; gradcheck wants float64 out, so it goes through float32 never. */
static rapt_tensor *call_cast_back(rapt_tensor *const *in, const op_sample *s)
{
    (void)s;
    return rapt_cast(in[0], RAPT_FLOAT64);
}

static double value_same(const double *x, const op_sample *s)
{
    (void)s;
    return x[0];
}

static rapt_dtype result_float64(rapt_dtype dtype, const op_sample *s)
{
    (void)dtype, (void)s;
    return RAPT_FLOAT64;
}

static const op_sample pairs[] = {
    {.in = {SHAPE(4, 6), SHAPE(4, 6)}},
    {.in = {SHAPE(2, 1, 3), SHAPE(4, 1)}},
    {.in = {SCALAR, SHAPE(5)}},
    {.in = {SCALAR, SCALAR}},
    {.in = {SHAPE(0, 2), SHAPE(2)}},
    {.in = {SHAPE(1), SHAPE(1, 1)}},
    {.in = {SHAPE(37, 1031), SHAPE(1031)}, .large = true},
};

static const op_sample misfits[] = {{.in = {SHAPE(2, 3), SHAPE(4, 3)}, .error = RAPT_ERROR_SHAPE}};

static const op_sample singles[] = {{.in = {SHAPE(3, 4)}}, {.in = {SCALAR}},
                                    {.in = {SHAPE(0, 2)}}, {.in = {SHAPE(2, 1, 5)}},
                                    {.in = {SHAPE(19)}},   {.in = {SHAPE(61, 1031)}, .large = true}};

/* A number that bool has too. */
static const op_sample with_number[] = {
    {.in = {SHAPE(3, 4)}, .real = {1}},
    {.in = {SHAPE(5)}, .real = {0}},
    {.in = {SCALAR}, .real = {1}},
    {.in = {SHAPE(2, 0)}, .real = {1}},
    {.in = {SHAPE(61, 1031)}, .real = {1}, .large = true},
};

static const op_sample filled[] = {
    {.in = {SHAPE(3, 4), SHAPE(3, 4)}, .real = {1}},
    {.in = {SHAPE(2, 3, 4), SHAPE(3, 1)}, .real = {0}},
    {.in = {SHAPE(5), SCALAR}, .real = {1}},
    {.in = {SCALAR, SCALAR}, .real = {1}},
    {.in = {SHAPE(2, 0), SHAPE(2, 1)}, .real = {1}},
    {.in = {SHAPE(37, 1031), SHAPE(37, 1)}, .real = {1}, .large = true},
};

/* A mask must broadcast to what it fills, not the other way round. */
static const op_sample misfit_masks[] = {
    {.in = {SHAPE(3), SHAPE(2)}, .real = {1}, .error = RAPT_ERROR_SHAPE},
    {.in = {SHAPE(3), SHAPE(2, 3)}, .real = {1}, .error = RAPT_ERROR_SHAPE},
    {.in = {SHAPE(1), SHAPE(3)}, .real = {1}, .error = RAPT_ERROR_SHAPE},
};

static const op_sample triples[] = {
    {.in = {SHAPE(3, 4), SHAPE(3, 4), SHAPE(3, 4)}},
    {.in = {SHAPE(3, 1), SHAPE(4), SHAPE(2, 1, 1)}},
    {.in = {SHAPE(5), SCALAR, SCALAR}},
    {.in = {SCALAR, SHAPE(2), SHAPE(2)}},
    {.in = {SHAPE(2, 0), SHAPE(2, 1), SCALAR}},
    {.in = {SHAPE(37, 1031), SHAPE(37, 1), SHAPE(1031)}, .large = true},
};

static const op_sample misfit_triples[] = {
    {.in = {SHAPE(3), SHAPE(2), SHAPE(2)}, .error = RAPT_ERROR_SHAPE},
    {.in = {SHAPE(3), SHAPE(3), SHAPE(2)}, .error = RAPT_ERROR_SHAPE},
};

static const op_sample diagonals[] = {
    {.in = {SHAPE(3, 4)}, .number = {0}},
    {.in = {SHAPE(4, 3)}, .number = {1}},
    {.in = {SHAPE(2, 3, 5)}, .number = {-1}},
    {.in = {SHAPE(3, 3)}, .number = {7}},
    {.in = {SHAPE(3, 3)}, .number = {-7}},
    {.in = {SHAPE(2, 2)}, .number = {INT64_MAX}},
    {.in = {SHAPE(2, 2)}, .number = {INT64_MIN}},
    {.in = {SHAPE(0, 2)}, .number = {0}},
    {.in = {SHAPE(61, 1031)}, .number = {3}, .large = true},
};

static const op_sample no_matrices[] = {{.in = {SHAPE(3)}, .error = RAPT_ERROR_SHAPE},
                                        {.in = {SCALAR}, .error = RAPT_ERROR_SHAPE}};

static const op_sample dtypes[] = {
    {.in = {SHAPE(3, 4)}, .variant = RAPT_FLOAT32}, {.in = {SHAPE(3, 4)}, .variant = RAPT_FLOAT64},
    {.in = {SHAPE(3, 4)}, .variant = RAPT_INT64},   {.in = {SHAPE(3, 4)}, .variant = RAPT_INT32},
    {.in = {SHAPE(5)}, .variant = RAPT_BOOL},       {.in = {SCALAR}, .variant = RAPT_FLOAT32},
    {.in = {SHAPE(0, 2)}, .variant = RAPT_INT32},   {.in = {SHAPE(61, 1031)}, .variant = RAPT_FLOAT32, .large = true},
};

static const op_sample no_dtypes[] = {
    {.in = {SHAPE(3)}, .variant = RAPT_DTYPE_COUNT, .error = RAPT_ERROR_DTYPE},
    {.in = {SHAPE(3)}, .variant = -1, .error = RAPT_ERROR_DTYPE},
};

#define COMPARISON(op)                                                                                                 \
    {                                                                                                                  \
        .name = #op, .call = call_##op, .element = value_##op, .dtypes = all_dtypes, .result = result_bool,            \
        SAMPLES(pairs), FAILURES(misfits)                                                                              \
    }
#define COMPARISON_WITH_NUMBER(op)                                                                                     \
    {                                                                                                                  \
        .name = #op "_scalar", .call = call_##op##_scalar, .element = value_##op##_scalar, .dtypes = all_dtypes,       \
        .result = result_bool, SAMPLES(with_number)                                                                    \
    }
#define LOGIC(op) .name = #op, .call = call_##op, .element = value_##op, .dtypes = bool_dtype

#define TRIANGLE(op)                                                                                                   \
    {                                                                                                                  \
        .name = #op, .call = call_##op, .reference = reference_##op, .is_combined = true, .differentiable = 1,         \
        .dtypes = all_dtypes, SAMPLES(diagonals), FAILURES(no_matrices)                                                \
    }

static const op_row rows[] = {
    TRIANGLE(triu),
    TRIANGLE(tril),
    COMPARISON(equal),
    COMPARISON(not_equal),
    COMPARISON(less),
    COMPARISON(less_equal),
    COMPARISON(greater),
    COMPARISON(greater_equal),
    COMPARISON_WITH_NUMBER(equal),
    COMPARISON_WITH_NUMBER(not_equal),
    COMPARISON_WITH_NUMBER(less),
    COMPARISON_WITH_NUMBER(less_equal),
    COMPARISON_WITH_NUMBER(greater),
    COMPARISON_WITH_NUMBER(greater_equal),
    {LOGIC(logical_and), SAMPLES(pairs), FAILURES(misfits)},
    {LOGIC(logical_or), SAMPLES(pairs), FAILURES(misfits)},
    {LOGIC(logical_not), SAMPLES(singles)},
    {.name = "isfinite",
     .call = call_isfinite,
     .element = value_isfinite,
     .is_combined = true,
     .dtypes = all_dtypes,
     .result = result_bool,
     SAMPLES(singles)},
    {.name = "isfinite",
     .call = call_isfinite_of_any,
     .element = value_is_near,
     .is_combined = true,
     .result = result_bool,
     SAMPLES(singles)},
    {.name = "where",
     .call = call_where,
     .element = value_where,
     .domain = {boolean},
     .differentiable = 6,
     .dtypes = all_dtypes,
     SAMPLES(triples),
     FAILURES(misfit_triples)},
    {.name = "masked_fill",
     .call = call_masked_fill,
     .element = value_masked_fill,
     .domain = {any_value, boolean},
     .differentiable = 1,
     .dtypes = all_dtypes,
     SAMPLES(filled),
     FAILURES(misfit_masks)},
    {.name = "cast",
     .call = call_cast,
     .element = value_cast,
     .dtypes = all_dtypes,
     .result = cast_result,
     SAMPLES(dtypes),
     FAILURES(no_dtypes)},
    {.name = "cast",
     .call = call_cast_back,
     .element = value_same,
     .differentiable = 1,
     .result = result_float64,
     .dtypes = all_dtypes,
     SAMPLES(singles)},
};

const op_family ops_compare = {rows, sizeof rows / sizeof *rows};
