/* Rows: reductions over any axes. */
#include <math.h>
#include <stdlib.h>

#include "ops.h"

#define REDUCTION(name)                                                                                                \
    static rapt_tensor *call_##name(rapt_tensor *const *in, const op_sample *s)                                        \
    {                                                                                                                  \
        return rapt_##name(in[0], s->axis_count, s->axes, s->keep);                                                    \
    }

REDUCTION(sum)
REDUCTION(mean)
REDUCTION(max)
REDUCTION(min)
REDUCTION(logsumexp)
REDUCTION(prod)

static rapt_tensor *call_var(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_var(in[0], s->axis_count, s->axes, s->keep, s->variant);
}

static rapt_tensor *call_std(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_std(in[0], s->axis_count, s->axes, s->keep, s->variant);
}

static rapt_tensor *call_norm(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_norm(in[0], s->real[0], s->axis_count, s->axes, s->keep);
}

static rapt_tensor *call_any(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_any(in[0], s->axis_count, s->axes, s->keep);
}

static rapt_tensor *call_all(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_all(in[0], s->axis_count, s->axes, s->keep);
}

static bool is_reduced(const op_sample *s, int axis, int rank)
{
    for (int i = 0; i < s->axis_count; i++)
        if (s->axes[i] == axis || s->axes[i] + rank == axis) return true;
    return s->axis_count == 0;
}

typedef double fold(const double *values, int64_t count, const op_sample *s);

/* Gathers what goes into each result, and folds it. */
static array reduce(const array *x, const op_sample *s, fold *f)
{
    int64_t shape[RAPT_MAX_RANK], kept_shape[RAPT_MAX_RANK], folded = 1;
    int rank = 0;
    for (int axis = 0; axis < x->rank; axis++) {
        bool reduced = is_reduced(s, axis, x->rank);
        kept_shape[axis] = reduced ? 1 : x->shape[axis];
        if (reduced) folded *= x->shape[axis];
        if (!reduced || s->keep) shape[rank++] = kept_shape[axis];
    }
    array y = array_new(rank, shape), kept = array_new(x->rank, kept_shape);
    double *values = malloc(sizeof(double) * (size_t)(y.count * folded + 1));
    int64_t *counts = calloc((size_t)y.count + 1, sizeof *counts);
    if (!values || !counts) abort();
    ARRAY_EACH(*x, w)
    {
        int64_t to = array_at(&kept, x->rank, w.index) - kept.data;
        values[to * folded + counts[to]++] = *array_at(x, x->rank, w.index);
    }
    for (int64_t i = 0; i < y.count; i++) y.data[i] = f(values + i * folded, folded, s);
    free(values);
    free(counts);
    array_free(&kept);
    return y;
}

static double sum_of(const double *values, int64_t count, const op_sample *s)
{
    long double total = 0;
    (void)s;
    for (int64_t i = 0; i < count; i++) total += (long double)values[i];
    return (double)total;
}

static double mean_of(const double *values, int64_t count, const op_sample *s)
{
    return sum_of(values, count, s) / (double)count;
}

static double float32_mean_of(const double *values, int64_t count, const op_sample *s)
{
    return (double)(float)mean_of(values, count, s);
}

static double variance_of(const double *values, int64_t count, const op_sample *s)
{
    double center = mean_of(values, count, s), total = 0;
    for (int64_t i = 0; i < count; i++) total += (values[i] - center) * (values[i] - center);
    return total / (double)(count - s->variant);
}

static double max_of(const double *values, int64_t count, const op_sample *s)
{
    double best = values[0];
    (void)s;
    for (int64_t i = 1; i < count; i++) best = values[i] > best ? values[i] : best;
    return best;
}

static double min_of(const double *values, int64_t count, const op_sample *s)
{
    double best = values[0];
    (void)s;
    for (int64_t i = 1; i < count; i++) best = values[i] < best ? values[i] : best;
    return best;
}

static double deviation_of(const double *values, int64_t count, const op_sample *s)
{
    return sqrt(variance_of(values, count, s));
}

static double product_of(const double *values, int64_t count, const op_sample *s)
{
    double product = 1;
    (void)s;
    for (int64_t i = 0; i < count; i++) product *= values[i];
    return product;
}

static double norm_of(const double *values, int64_t count, const op_sample *s)
{
    const double order = s->real[0];
    double total = 0, largest = 0, smallest = INFINITY;
    for (int64_t i = 0; i < count; i++) {
        const double size = fabs(values[i]);
        total += order == 0 ? size != 0 : pow(size, order);
        largest = fmax(largest, size);
        smallest = fmin(smallest, size);
    }
    return isinf(order) ? order > 0 ? largest : smallest : order == 0 ? total : pow(total, 1 / order);
}

static double any_of(const double *values, int64_t count, const op_sample *s)
{
    (void)s;
    for (int64_t i = 0; i < count; i++)
        if (values[i] != 0) return 1;
    return 0;
}

static double all_of(const double *values, int64_t count, const op_sample *s)
{
    (void)s;
    for (int64_t i = 0; i < count; i++)
        if (values[i] == 0) return 0;
    return 1;
}

static double logsumexp_of(const double *values, int64_t count, const op_sample *s)
{
    double total = 0;
    (void)s;
    for (int64_t i = 0; i < count; i++) total += exp(values[i]);
    return log(total);
}

#define REFERENCE(name, fold)                                                                                          \
    static array reference_##name(const array *in, const op_sample *s)                                                 \
    {                                                                                                                  \
        return reduce(&in[0], s, fold);                                                                                \
    }

REFERENCE(sum, sum_of)
REFERENCE(mean, mean_of)
REFERENCE(integer_mean, float32_mean_of)
REFERENCE(var, variance_of)
REFERENCE(max, max_of)
REFERENCE(min, min_of)
REFERENCE(logsumexp, logsumexp_of)
REFERENCE(prod, product_of)
REFERENCE(std, deviation_of)
REFERENCE(norm, norm_of)
REFERENCE(any, any_of)
REFERENCE(all, all_of)

static rapt_dtype sum_result(rapt_dtype dtype, const op_sample *s)
{
    (void)s;
    return rapt_dtype_is_floating(dtype) ? dtype : RAPT_INT64;
}

static rapt_dtype result_float32(rapt_dtype dtype, const op_sample *s)
{
    (void)dtype, (void)s;
    return RAPT_FLOAT32;
}

#define AXES(...) .axis_count = sizeof((int[]){__VA_ARGS__}) / sizeof(int), .axes = {__VA_ARGS__}

/* What every reduction can do. variant: correction of var. */
#define FULL_SAMPLES                                                                                                   \
    {.in = {SHAPE(3, 4)}}, {.in = {SHAPE(3, 4)}, .keep = true}, {.in = {SHAPE(3, 4)}, AXES(0)},                        \
        {.in = {SHAPE(3, 4)}, AXES(1), .keep = true}, {.in = {SHAPE(2, 3, 4)}, AXES(0, 2)},                            \
        {.in = {SHAPE(2, 3, 4)}, AXES(-1, 0), .keep = true}, {.in = {SHAPE(2, 3, 4)}, AXES(-2)},                       \
        {.in = {SHAPE(2, 2, 2, 2, 2)}, AXES(3, 1, 4)}, {.in = {SHAPE(6)}, AXES(-1), .variant = 1},                     \
        {.in = {SHAPE(3, 4)}, AXES(0), .variant = 2}, {.in = {SHAPE(0, 3)}, AXES(1)},                                  \
        {.in = {SHAPE(2, 0, 3)}, AXES(0)}, {.in = {SHAPE(41, 1031)}, AXES(1), .large = true},                          \
        {.in = {SHAPE(1031, 41)}, AXES(0), .large = true}, {.in = {SHAPE(70001)}, .large = true},                      \
    {                                                                                                                  \
        .in = {SHAPE(13, 211, 17)}, AXES(0, 2), .large = true                                                          \
    }

static const op_sample full_samples[] = {FULL_SAMPLES};
static const op_sample with_scalar[] = {FULL_SAMPLES,
                                        {.in = {SCALAR}},
                                        {.in = {SHAPE(1)}},
                                        {.in = {SHAPE(1, 3)}, AXES(0)}};
static const op_sample with_several[] = {FULL_SAMPLES};
static const op_sample with_empty[] = {FULL_SAMPLES,
                                       {.in = {SCALAR}},
                                       {.in = {SHAPE(1)}},
                                       {.in = {SHAPE(0)}},
                                       {.in = {SHAPE(0, 3)}, AXES(0)},
                                       {.in = {SHAPE(3, 0)}}};

static const op_sample products[] = {
    {.in = {SHAPE(3, 4)}},
    {.in = {SHAPE(3, 4)}, .keep = true},
    {.in = {SHAPE(2, 3, 2)}, AXES(0, 2)},
    {.in = {SHAPE(2, 3, 2)}, AXES(-1, 0), .keep = true},
    {.in = {SHAPE(2, 3, 4)}, AXES(-2)},
    {.in = {SHAPE(1, 3)}, AXES(0)},
    {.in = {SHAPE(6)}, AXES(0)},
    {.in = {SHAPE(2, 66)}, AXES(0)},
    {.in = {SHAPE(5, 3)}, AXES(1)},
    {.in = {SCALAR}},
    {.in = {SHAPE(0)}},
    {.in = {SHAPE(0, 3)}, AXES(0)},
    {.in = {SHAPE(3, 0)}, AXES(0)},
    {.in = {SHAPE(40011, 5)}, AXES(1), .large = true},
    {.in = {SHAPE(5, 40011)}, AXES(0), .large = true},
};
static const op_sample norms[] = {
    {.in = {SHAPE(3, 4)}, .real = {2}},
    {.in = {SHAPE(2, 3, 4)}, AXES(0, 2), .real = {2}, .keep = true},
    {.in = {SHAPE(3, 4)}, AXES(-1), .real = {1}},
    {.in = {SHAPE(3, 4)}, AXES(0), .real = {INFINITY}},
    {.in = {SHAPE(3, 4)}, AXES(0), .real = {-INFINITY}, .keep = true},
    {.in = {SHAPE(3, 4)}, AXES(1), .real = {0}},
    {.in = {SHAPE(3, 4)}, AXES(1), .real = {3}},
    {.in = {SHAPE(2, 3)}, AXES(1), .real = {0.5}, .keep = true},
    {.in = {SHAPE(5)}, .real = {1.5}},
    {.in = {SHAPE(5)}, .real = {-1}},
    {.in = {SCALAR}, .real = {2}},
    {.in = {SHAPE(0)}, .real = {2}},
    {.in = {SHAPE(0, 3)}, AXES(0), .real = {2.5}},
    {.in = {SHAPE(3, 0)}, AXES(0), .real = {INFINITY}},
    {.in = {SHAPE(41, 1031)}, AXES(1), .real = {2}, .large = true},
    {.in = {SHAPE(1031, 41)}, AXES(0), .real = {3}, .large = true},
};
static const op_sample bad_norms[] = {
    {.in = {SHAPE(2, 3)}, AXES(2), .real = {2}, .error = RAPT_ERROR_SHAPE},
    {.in = {SHAPE(2, 3)}, AXES(0, -2), .real = {INFINITY}, .error = RAPT_ERROR_SHAPE},
    {.in = {SHAPE(2, 3)}, .real = {NAN}, .error = RAPT_ERROR_VALUE},
    {.in = {SHAPE(0, 3)}, AXES(0), .real = {INFINITY}, .error = RAPT_ERROR_SHAPE},
};

#define BAD_AXES                                                                                                       \
    {.in = {SHAPE(2, 3)}, AXES(2), .error = RAPT_ERROR_SHAPE},                                                         \
        {.in = {SHAPE(2, 3)}, AXES(-3), .error = RAPT_ERROR_SHAPE},                                                    \
        {.in = {SHAPE(2, 3)}, AXES(0, 0), .error = RAPT_ERROR_SHAPE},                                                  \
        {.in = {SHAPE(2, 3)}, AXES(1, -1), .error = RAPT_ERROR_SHAPE},                                                 \
        {.in = {SCALAR}, AXES(0), .error = RAPT_ERROR_SHAPE},                                                          \
    {                                                                                                                  \
        .in = {SHAPE(2, 3)}, .axis_count = -1, .error = RAPT_ERROR_SHAPE                                               \
    }

static const op_sample bad_axes[] = {BAD_AXES};
static const op_sample bad_or_nothing[] = {BAD_AXES,
                                           {.in = {SHAPE(0)}, .error = RAPT_ERROR_SHAPE},
                                           {.in = {SHAPE(0, 3)}, AXES(0), .error = RAPT_ERROR_SHAPE},
                                           {.in = {SHAPE(2, 0)}, .error = RAPT_ERROR_SHAPE}};

#define ROW(op) .name = #op, .call = call_##op, .reference = reference_##op

static const op_row rows[] = {
    {ROW(sum), .differentiable = 1, .dtypes = all_dtypes, .result = sum_result, SAMPLES(with_empty),
     FAILURES(bad_axes)},
    {ROW(mean), .differentiable = 1, SAMPLES(with_scalar), FAILURES(bad_axes)},
    {.name = "mean",
     .call = call_mean,
     .reference = reference_integer_mean,
     .dtypes = all_dtypes & ~floating_dtypes,
     .result = result_float32,
     SAMPLES(with_scalar),
     FAILURES(bad_axes)},
    {ROW(var), .differentiable = 1, SAMPLES(with_scalar), FAILURES(bad_axes)},
    {ROW(prod), .differentiable = 1, .dtypes = all_dtypes, .result = sum_result, SAMPLES(products), FAILURES(bad_axes)},
    {ROW(std), .differentiable = 1, SAMPLES(with_several), FAILURES(bad_axes)},
    {ROW(norm), .is_combined = true, .differentiable = 1, SAMPLES(norms), FAILURES(bad_norms)},
    {ROW(max), .differentiable = 1, .dtypes = all_dtypes, SAMPLES(with_scalar), FAILURES(bad_or_nothing)},
    {ROW(min), .differentiable = 1, .dtypes = all_dtypes, SAMPLES(with_scalar), FAILURES(bad_or_nothing)},
    {ROW(logsumexp), .differentiable = 1, SAMPLES(full_samples), FAILURES(bad_axes)},
    {ROW(any), .is_combined = true, .dtypes = all_dtypes, .result = result_bool, SAMPLES(with_empty),
     FAILURES(bad_axes)},
    {ROW(all), .is_combined = true, .dtypes = all_dtypes, .result = result_bool, SAMPLES(with_empty),
     FAILURES(bad_axes)},
};

const op_family ops_reduce = {rows, sizeof rows / sizeof *rows};
