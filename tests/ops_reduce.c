/* Rows: reductions over any axes, and running sums. */
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

static rapt_tensor *call_var(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_var(in[0], s->axis_count, s->axes, s->keep, s->variant);
}

static rapt_tensor *call_any(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_any(in[0], s->axis_count, s->axes, s->keep);
}

static rapt_tensor *call_all(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_all(in[0], s->axis_count, s->axes, s->keep);
}

static rapt_tensor *call_argmax(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_argmax(in[0], s->axis, s->keep);
}

static rapt_tensor *call_cumsum(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_cumsum(in[0], s->axis);
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

static double place_of_max(const double *values, int64_t count, const op_sample *s)
{
    double best = max_of(values, count, s);
    int64_t place = 0;
    while (values[place] != best) place++;
    return (double)place;
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
REFERENCE(any, any_of)
REFERENCE(all, all_of)

static array reference_argmax(const array *in, const op_sample *s)
{
    op_sample along = {.axis_count = 1, .axes = {s->axis}, .keep = s->keep};
    return reduce(&in[0], &along, place_of_max);
}

static array reference_cumsum(const array *in, const op_sample *s)
{
    array y = array_new(in[0].rank, in[0].shape);
    int axis = s->axis < 0 ? s->axis + y.rank : s->axis;
    ARRAY_EACH(y, w)
    {
        double *here = array_at(&y, y.rank, w.index);
        *here = *array_at(&in[0], y.rank, w.index);
        if (w.index[axis]-- > 0) *here += *array_at(&y, y.rank, w.index);
        w.index[axis]++;
    }
    return y;
}

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
static const op_sample with_empty[] = {FULL_SAMPLES,
                                       {.in = {SCALAR}},
                                       {.in = {SHAPE(1)}},
                                       {.in = {SHAPE(0)}},
                                       {.in = {SHAPE(0, 3)}, AXES(0)},
                                       {.in = {SHAPE(3, 0)}}};

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

/* Of ops along one axis. */
static const op_sample along[] = {
    {.in = {SHAPE(3, 4)}, .axis = 0},
    {.in = {SHAPE(3, 4)}, .axis = -1, .keep = true},
    {.in = {SHAPE(2, 3, 4)}, .axis = 1},
    {.in = {SHAPE(5)}, .axis = 0},
    {.in = {SHAPE(1)}, .axis = 0, .keep = true},
    {.in = {SHAPE(0, 3)}, .axis = 1},
    {.in = {SHAPE(41, 1031)}, .axis = 1, .large = true},
    {.in = {SHAPE(1031, 41)}, .axis = 0, .large = true},
};

static const op_sample bad_axis[] = {
    {.in = {SHAPE(2, 3)}, .axis = 2, .error = RAPT_ERROR_SHAPE},
    {.in = {SHAPE(2, 3)}, .axis = -3, .error = RAPT_ERROR_SHAPE},
    {.in = {SCALAR}, .axis = 0, .error = RAPT_ERROR_SHAPE},
};

static const op_sample bad_or_empty_axis[] = {
    {.in = {SHAPE(2, 3)}, .axis = 2, .error = RAPT_ERROR_SHAPE},
    {.in = {SHAPE(2, 3)}, .axis = -3, .error = RAPT_ERROR_SHAPE},
    {.in = {SHAPE(0, 3)}, .axis = 0, .error = RAPT_ERROR_SHAPE},
};

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
    {ROW(max), .differentiable = 1, .dtypes = all_dtypes, SAMPLES(with_scalar), FAILURES(bad_or_nothing)},
    {ROW(min), .differentiable = 1, .dtypes = all_dtypes, SAMPLES(with_scalar), FAILURES(bad_or_nothing)},
    {ROW(logsumexp), .differentiable = 1, SAMPLES(full_samples), FAILURES(bad_axes)},
    {ROW(any), .error = "sum", .is_combined = true, .dtypes = all_dtypes, .result = result_bool, SAMPLES(with_empty),
     FAILURES(bad_axes)},
    {ROW(all), .error = "sum", .is_combined = true, .dtypes = all_dtypes, .result = result_bool, SAMPLES(with_empty),
     FAILURES(bad_axes)},
    {ROW(argmax), .dtypes = all_dtypes, .result = result_int64, SAMPLES(along), FAILURES(bad_or_empty_axis)},
    {ROW(cumsum), .differentiable = 1, .dtypes = all_dtypes, .result = sum_result, SAMPLES(along), FAILURES(bad_axis)},
};

const op_family ops_reduce = {rows, sizeof rows / sizeof *rows};
