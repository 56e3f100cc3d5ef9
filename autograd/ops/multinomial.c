/* Indices drawn with given weights. */
#include <rapt/ops.h>

#include <math.h>

#include "tensor/core.h"
#include "tensor/random.h"

typedef struct multinomial_options {
    int64_t count, replace;
} multinomial_options;

static bool check_options(const rapt_tensor *weights, const multinomial_options *o)
{
    if (!rapt_check_floating("multinomial", weights)) return false;
    if (weights->rank == 0) return rapt_fail(RAPT_ERROR_SHAPE, "multinomial", "weights of rank 0; 1 or more expected");
    if (o->count < 0)
        return rapt_fail(RAPT_ERROR_VALUE, "multinomial", "%lld draws; 0 or more expected", (long long)o->count);
    const int64_t n = weights->shape[weights->rank - 1];
    if (o->replace || o->count <= n) return true;
    return rapt_fail(RAPT_ERROR_VALUE, "multinomial",
                     "%lld draws without replacement; at most %lld expected, one of each weight", (long long)o->count,
                     (long long)n);
}

/* Turns the weights of a row, n of them, into the sums so far. */
static bool sum_row(double *row, int64_t n, int64_t number, const multinomial_options *o)
{
    int64_t drawable = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!(row[i] >= 0) || isinf(row[i]))
            return rapt_fail(RAPT_ERROR_VALUE, "multinomial",
                             "weight %lld of row %lld is %g; finite ones, not below 0, expected", (long long)i,
                             (long long)number, row[i]);
        drawable += row[i] > 0;
        if (i > 0) row[i] += row[i - 1];
    }
    if (o->count == 0) return true;
    if (drawable < (o->replace ? 1 : o->count))
        return rapt_fail(RAPT_ERROR_VALUE, "multinomial",
                         "row %lld has %lld weights above 0; %lld or more expected to draw %lld %s replacement",
                         (long long)number, (long long)drawable, (long long)(o->replace ? 1 : o->count),
                         (long long)o->count, o->replace ? "with" : "without");
    if (isfinite(row[n - 1])) return true;
    return rapt_fail(RAPT_ERROR_VALUE, "multinomial", "the weights of row %lld sum to infinity", (long long)number);
}

/* The first i with sums[i] > share · the whole, or all of it, where the product is rounded to that. */
static int64_t find_above(const double *sums, int64_t n, double share)
{
    const double whole = sums[n - 1], limit = share * whole;
    int64_t first = 0, last = n - 1;
    while (first < last) {
        const int64_t middle = first + (last - first) / 2;
        if (sums[middle] > limit || sums[middle] == whole)
            last = middle;
        else
            first = middle + 1;
    }
    return first;
}

static rapt_tensor *draw_with_replacement(const rapt_tensor *sums, int rank, const int64_t *shape)
{
    const int64_t n = sums->shape[rank - 1], count = shape[rank - 1];
    rapt_tensor *indices = rapt_new("multinomial", RAPT_INT64, rank, shape);
    const rapt_tensor *uniform = indices ? rapt_rand(RAPT_FLOAT64, rank, shape) : NULL;
    if (!uniform) return NULL;
    const double *sum = (const double *)(const void *)sums->data, *u = (const double *)(const void *)uniform->data;
    int64_t *index = (int64_t *)(void *)indices->data;
    for (int64_t i = 0; i < indices->count; i++) index[i] = find_above(sum + i / count * n, n, u[i]);
    return indices;
}

/* By logarithms, so that no quotient overflows. A weight of 0 gives ∞ or, with −log 1, NaN, which comes last too. */
static rapt_tensor *draw_without_replacement(rapt_tensor *weights, int64_t count)
{
    rapt_tensor *uniform = rapt_rand(RAPT_FLOAT64, weights->rank, weights->shape), *indices = NULL;
    rapt_tensor *race = rapt_log(rapt_neg(rapt_log1p(rapt_neg(uniform))));
    rapt_topk(rapt_sub(race, rapt_log(weights)), -1, count, false, &indices);
    return indices;
}

static rapt_tensor *multinomial_forward(rapt_call *call)
{
    RAPT_UNDO_DRAWS;
    const multinomial_options *o = rapt_call_options(call);
    rapt_tensor *weights = rapt_call_input(call, 0);
    if (!check_options(weights, o)) return NULL;
    int64_t shape[RAPT_MAX_RANK];
    const int rank = weights->rank;
    const int64_t n = weights->shape[rank - 1];
    for (int i = 0; i < rank; i++) shape[i] = weights->shape[i];
    shape[rank - 1] = o->count;
    weights = rapt_contiguous(rapt_cast(weights, RAPT_FLOAT64));
    rapt_tensor *sums = rapt_clone(weights);
    if (!sums) return NULL;
    int64_t rows = 1;
    for (int i = 0; i < rank - 1; i++) rows *= shape[i];
    for (int64_t i = 0; i < rows && (n > 0 || o->count > 0); i++)
        if (!sum_row((double *)(void *)sums->data + i * n, n, i, o)) return NULL;
    return o->replace ? draw_with_replacement(sums, rank, shape) : draw_without_replacement(weights, o->count);
}

static const rapt_op multinomial = {.name = "multinomial",
                                    .forward = multinomial_forward,
                                    .options_size = sizeof(multinomial_options),
                                    .no_gradient = "an index has no derivative"};

rapt_tensor *rapt_multinomial(rapt_tensor *weights, int64_t count, bool replace)
{
    return RAPT_APPLY(&multinomial, (&(multinomial_options){.count = count, .replace = replace}), weights);
}
