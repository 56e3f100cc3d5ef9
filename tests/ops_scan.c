/* Rows: what goes along one axis: running sums and products, the places of extremes, sorting. */
#include <stdlib.h>

#include "ops.h"

static rapt_tensor *call_argmax(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_argmax(in[0], s->axis, s->keep);
}

static rapt_tensor *call_argmin(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_argmin(in[0], s->axis, s->keep);
}

static rapt_tensor *call_cumsum(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_cumsum(in[0], s->axis);
}

static rapt_tensor *call_cumprod(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_cumprod(in[0], s->axis);
}

/* variant: descending, or largest; number: how many of topk */
static rapt_tensor *call_sort(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_sort(in[0], s->axis, s->variant, NULL);
}

static rapt_tensor *call_places_of_sort(rapt_tensor *const *in, const op_sample *s)
{
    rapt_tensor *indices;
    return rapt_sort(in[0], s->axis, s->variant, &indices) ? indices : NULL;
}

static rapt_tensor *call_argsort(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_argsort(in[0], s->axis, s->variant);
}

static rapt_tensor *call_topk(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_topk(in[0], s->axis, s->number[0], s->variant, NULL);
}

static rapt_tensor *call_places_of_topk(rapt_tensor *const *in, const op_sample *s)
{
    rapt_tensor *indices;
    return rapt_topk(in[0], s->axis, s->number[0], s->variant, &indices) ? indices : NULL;
}

/* Makes a line of a line of `count` numbers. */
typedef void line_function(const double *line, int64_t count, const op_sample *s, double *out);

/* Runs the function on each line along the axis; the lines that it makes have `length` numbers. */
static array by_lines(const array *x, const op_sample *s, int64_t length, line_function *f)
{
    const int axis = s->axis < 0 ? s->axis + x->rank : s->axis;
    int64_t shape[RAPT_MAX_RANK], starts_shape[RAPT_MAX_RANK], count = x->shape[axis];
    for (int i = 0; i < x->rank; i++) {
        shape[i] = i == axis ? length : x->shape[i];
        starts_shape[i] = i == axis ? 1 : x->shape[i];
    }
    array y = array_new(x->rank, shape), starts = array_new(x->rank, starts_shape);
    double *line = malloc(sizeof(double) * (size_t)(count + length + 1)), *out = line + count;
    if (!line) abort();
    ARRAY_EACH(starts, w)
    {
        for (int64_t i = 0; i < count; i++) {
            w.index[axis] = i;
            line[i] = *array_at(x, x->rank, w.index);
        }
        f(line, count, s, out);
        for (int64_t i = 0; i < length; i++) {
            w.index[axis] = i;
            *array_at(&y, x->rank, w.index) = out[i];
        }
        w.index[axis] = 0;
    }
    free(line);
    array_free(&starts);
    return y;
}

static void place_of_max(const double *line, int64_t count, const op_sample *s, double *out)
{
    int64_t best = 0;
    (void)s;
    for (int64_t i = 1; i < count; i++) best = line[i] > line[best] ? i : best;
    *out = (double)best;
}

static void place_of_min(const double *line, int64_t count, const op_sample *s, double *out)
{
    int64_t best = 0;
    (void)s;
    for (int64_t i = 1; i < count; i++) best = line[i] < line[best] ? i : best;
    *out = (double)best;
}

static void sums(const double *line, int64_t count, const op_sample *s, double *out)
{
    (void)s;
    for (int64_t i = 0; i < count; i++) out[i] = line[i] + (i ? out[i - 1] : 0);
}

static void products(const double *line, int64_t count, const op_sample *s, double *out)
{
    (void)s;
    for (int64_t i = 0; i < count; i++) out[i] = line[i] * (i ? out[i - 1] : 1);
}

/* By insertion behind equal ones. */
static void places(const double *line, int64_t count, const op_sample *s, double *out)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t to = i;
        for (; to > 0; to--) {
            const double before = line[(int64_t)out[to - 1]];
            if (s->variant ? before >= line[i] : before <= line[i]) break;
            out[to] = out[to - 1];
        }
        out[to] = (double)i;
    }
}

static void in_order(const double *line, int64_t count, const op_sample *s, double *out)
{
    places(line, count, s, out);
    for (int64_t i = 0; i < count; i++) out[i] = line[(int64_t)out[i]];
}

static array without_axis(array y, const op_sample *s)
{
    const int axis = s->axis < 0 ? s->axis + y.rank : s->axis;
    if (s->keep) return y;
    y.rank--;
    for (int i = axis; i < y.rank; i++) y.shape[i] = y.shape[i + 1];
    return y;
}

static int64_t length_of(const array *x, const op_sample *s)
{
    return x->shape[s->axis < 0 ? s->axis + x->rank : s->axis];
}

#define SAME_LENGTH(name, function)                                                                                    \
    static array reference_##name(const array *in, const op_sample *s)                                                 \
    {                                                                                                                  \
        return by_lines(&in[0], s, length_of(&in[0], s), function);                                                    \
    }

SAME_LENGTH(cumsum, sums)
SAME_LENGTH(cumprod, products)
SAME_LENGTH(sort, in_order)
SAME_LENGTH(places_of_sort, places)
SAME_LENGTH(argsort, places)

static array reference_argmax(const array *in, const op_sample *s)
{
    return without_axis(by_lines(&in[0], s, 1, place_of_max), s);
}

static array reference_argmin(const array *in, const op_sample *s)
{
    return without_axis(by_lines(&in[0], s, 1, place_of_min), s);
}

/* The first places of all along the axis. */
static array first(array all, const op_sample *s)
{
    int64_t shape[RAPT_MAX_RANK];
    const int axis = s->axis < 0 ? s->axis + all.rank : s->axis;
    for (int i = 0; i < all.rank; i++) shape[i] = i == axis ? s->number[0] : all.shape[i];
    array y = array_new(all.rank, shape);
    double *to = y.data;
    ARRAY_EACH(y, w) *to++ = *array_at(&all, all.rank, w.index);
    array_free(&all);
    return y;
}

static array reference_topk(const array *in, const op_sample *s)
{
    return first(reference_sort(in, s), s);
}

static array reference_places_of_topk(const array *in, const op_sample *s)
{
    return first(reference_argsort(in, s), s);
}

static rapt_dtype sum_result(rapt_dtype dtype, const op_sample *s)
{
    (void)s;
    return rapt_dtype_is_floating(dtype) ? dtype : RAPT_INT64;
}

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
static const op_sample short_lines[] = {
    {.in = {SHAPE(3, 4)}, .axis = 0},
    {.in = {SHAPE(3, 4)}, .axis = -1},
    {.in = {SHAPE(2, 3, 4)}, .axis = 1},
    {.in = {SHAPE(5)}, .axis = 0},
    {.in = {SHAPE(1)}, .axis = 0},
    {.in = {SHAPE(0, 3)}, .axis = 1},
    {.in = {SHAPE(2, 0)}, .axis = 1},
    {.in = {SHAPE(20011, 5)}, .axis = 1, .large = true},
    {.in = {SHAPE(5, 20011)}, .axis = 0, .large = true},
};
static const op_sample sorts[] = {
    {.in = {SHAPE(3, 4)}, .axis = 0},
    {.in = {SHAPE(3, 4)}, .axis = -1, .variant = true},
    {.in = {SHAPE(2, 5, 3)}, .axis = 1},
    {.in = {SHAPE(7)}, .axis = 0, .variant = true},
    {.in = {SHAPE(1)}, .axis = 0},
    {.in = {SHAPE(0, 3)}, .axis = 1},
    {.in = {SHAPE(3, 0)}, .axis = 1},
    {.in = {SHAPE(61, 257)}, .axis = 1, .large = true},
    {.in = {SHAPE(257, 61)}, .axis = 0, .variant = true, .large = true},
    {.in = {SHAPE(2, 47, 20)}, .axis = 1, .large = true},
};
static const op_sample firsts[] = {
    {.in = {SHAPE(3, 4)}, .axis = 0, .number = {2}},
    {.in = {SHAPE(3, 4)}, .axis = -1, .number = {1}, .variant = true},
    {.in = {SHAPE(2, 5, 3)}, .axis = 1, .number = {5}},
    {.in = {SHAPE(7)}, .axis = 0, .number = {3}, .variant = true},
    {.in = {SHAPE(7)}, .axis = 0, .number = {0}},
    {.in = {SHAPE(0, 3)}, .axis = 1, .number = {2}},
    {.in = {SHAPE(3, 0)}, .axis = 1, .number = {0}},
    {.in = {SHAPE(61, 1031)}, .axis = 1, .number = {10}, .variant = true, .large = true},
    {.in = {SHAPE(61, 1031)}, .axis = 1, .number = {200}, .large = true},
    {.in = {SHAPE(257, 61)}, .axis = 0, .number = {200}, .variant = true, .large = true},
    {.in = {SHAPE(1031, 41)}, .axis = 0, .number = {1}, .large = true},
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
static const op_sample bad_firsts[] = {
    {.in = {SHAPE(2, 3)}, .axis = 2, .number = {1}, .error = RAPT_ERROR_SHAPE},
    {.in = {SCALAR}, .axis = 0, .number = {1}, .error = RAPT_ERROR_SHAPE},
    {.in = {SHAPE(2, 3)}, .axis = 1, .number = {4}, .error = RAPT_ERROR_VALUE},
    {.in = {SHAPE(2, 3)}, .axis = 1, .number = {-1}, .error = RAPT_ERROR_VALUE},
};

#define ROW(op) .name = #op, .call = call_##op, .reference = reference_##op
#define PLACES(op)                                                                                                     \
    .name = #op, .call = call_places_of_##op, .reference = reference_places_of_##op, .dtypes = all_dtypes,             \
    .result = result_int64

static const op_row rows[] = {
    {ROW(argmax), .dtypes = all_dtypes, .result = result_int64, SAMPLES(along), FAILURES(bad_or_empty_axis)},
    {ROW(argmin), .dtypes = all_dtypes, .result = result_int64, SAMPLES(along), FAILURES(bad_or_empty_axis)},
    {ROW(cumsum), .differentiable = 1, .dtypes = all_dtypes, .result = sum_result, SAMPLES(along), FAILURES(bad_axis)},
    {ROW(cumprod), .differentiable = 1, .dtypes = all_dtypes, .result = sum_result, SAMPLES(short_lines),
     FAILURES(bad_axis)},
    {ROW(sort), .differentiable = 1, .dtypes = all_dtypes, SAMPLES(sorts), FAILURES(bad_axis)},
    {PLACES(sort), SAMPLES(sorts)},
    {ROW(argsort), .dtypes = all_dtypes, .result = result_int64, SAMPLES(sorts), FAILURES(bad_axis)},
    {ROW(topk), .differentiable = 1, .dtypes = all_dtypes, SAMPLES(firsts), FAILURES(bad_firsts)},
    {PLACES(topk), SAMPLES(firsts)},
};

const op_family ops_scan = {rows, sizeof rows / sizeof *rows};
