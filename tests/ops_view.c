/* Rows: views, by which index of the input an index of the output shows. */
#include "ops.h"

static rapt_tensor *call_reshape(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_reshape(in[0], s->number_count, s->number);
}

static rapt_tensor *call_transpose(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_transpose(in[0], s->axes[0], s->axes[1]);
}

static rapt_tensor *call_permute(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_permute(in[0], s->axis_count, s->axes);
}

static rapt_tensor *call_slice(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_slice(in[0], s->axis, s->number[0], s->number[1], s->number[2]);
}

static rapt_tensor *call_select(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_select(in[0], s->axis, s->number[0]);
}

static rapt_tensor *call_expand(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_expand(in[0], s->number_count, s->number);
}

static rapt_tensor *call_squeeze(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_squeeze(in[0], s->axis);
}

static rapt_tensor *call_unsqueeze(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_unsqueeze(in[0], s->axis);
}

static rapt_tensor *call_contiguous(rapt_tensor *const *in, const op_sample *s)
{
    (void)s;
    return rapt_contiguous(in[0]);
}

/* y holds x's elements in the order in which they are. */
static array same_elements(const array *x, int rank, const int64_t *shape)
{
    array y = array_new(rank, shape);
    for (int64_t i = 0; i < y.count; i++) y.data[i] = x->data[i];
    return y;
}

static array reference_reshape(const array *in, const op_sample *s)
{
    int64_t shape[RAPT_MAX_RANK], known = 1;
    for (int axis = 0; axis < s->number_count; axis++) known *= s->number[axis] == -1 ? 1 : s->number[axis];
    for (int axis = 0; axis < s->number_count; axis++)
        shape[axis] = s->number[axis] == -1 ? in[0].count / known : s->number[axis];
    return same_elements(&in[0], s->number_count, shape);
}

static array reference_contiguous(const array *in, const op_sample *s)
{
    (void)s;
    return same_elements(&in[0], in[0].rank, in[0].shape);
}

static array reference_squeeze(const array *in, const op_sample *s)
{
    int64_t shape[RAPT_MAX_RANK];
    int rank = 0, dropped = s->axis < 0 ? s->axis + in[0].rank : s->axis;
    for (int axis = 0; axis < in[0].rank; axis++)
        if (axis != dropped) shape[rank++] = in[0].shape[axis];
    return same_elements(&in[0], rank, shape);
}

static array reference_unsqueeze(const array *in, const op_sample *s)
{
    int64_t shape[RAPT_MAX_RANK];
    int added = s->axis < 0 ? s->axis + in[0].rank + 1 : s->axis;
    for (int axis = 0; axis <= in[0].rank; axis++) shape[axis] = axis == added ? 1 : in[0].shape[axis - (axis > added)];
    return same_elements(&in[0], in[0].rank + 1, shape);
}

/* y[i…] = x[j…] with j[axes[k]] = i[k] */
static array reordered(const array *x, const int *axes)
{
    int64_t shape[RAPT_MAX_RANK], from[RAPT_MAX_RANK];
    for (int axis = 0; axis < x->rank; axis++) shape[axis] = x->shape[axes[axis]];
    array y = array_new(x->rank, shape);
    double *to = y.data;
    ARRAY_EACH(y, w)
    {
        for (int axis = 0; axis < x->rank; axis++) from[axes[axis]] = w.index[axis];
        *to++ = *array_at(x, x->rank, from);
    }
    return y;
}

static array reference_transpose(const array *in, const op_sample *s)
{
    int axes[RAPT_MAX_RANK], a = (s->axes[0] + in[0].rank) % in[0].rank, b = (s->axes[1] + in[0].rank) % in[0].rank;
    for (int axis = 0; axis < in[0].rank; axis++) axes[axis] = axis == a ? b : axis == b ? a : axis;
    return reordered(&in[0], axes);
}

static array reference_permute(const array *in, const op_sample *s)
{
    int axes[RAPT_MAX_RANK];
    for (int axis = 0; axis < in[0].rank; axis++) axes[axis] = (s->axes[axis] + in[0].rank) % in[0].rank;
    return reordered(&in[0], axes);
}

/* Python's rules, written by trying every place. */
static array reference_slice(const array *in, const op_sample *s)
{
    int axis = s->axis < 0 ? s->axis + in[0].rank : s->axis;
    int64_t size = in[0].shape[axis], places[64], count = 0, shape[RAPT_MAX_RANK];
    int64_t start = s->number[0] < 0 ? s->number[0] + size : s->number[0];
    int64_t stop = s->number[1] < 0 ? s->number[1] + size : s->number[1];
    if (start < 0) start = 0;
    for (int64_t i = 0; i < size; i++)
        if (i >= start && i < stop && (i - start) % s->number[2] == 0) places[count++] = i;
    for (int i = 0; i < in[0].rank; i++) shape[i] = i == axis ? count : in[0].shape[i];
    array y = array_new(in[0].rank, shape);
    double *to = y.data;
    ARRAY_EACH(y, w)
    {
        int64_t from[RAPT_MAX_RANK];
        for (int i = 0; i < y.rank; i++) from[i] = i == axis ? places[w.index[i]] : w.index[i];
        *to++ = *array_at(&in[0], y.rank, from);
    }
    return y;
}

static array reference_select(const array *in, const op_sample *s)
{
    int axis = s->axis < 0 ? s->axis + in[0].rank : s->axis;
    int64_t place = s->number[0] < 0 ? s->number[0] + in[0].shape[axis] : s->number[0];
    const op_sample part = {.axis = axis, .number = {place, place + 1, 1}}, drop = {.axis = axis};
    array one = reference_slice(in, &part), y = reference_squeeze(&one, &drop);
    array_free(&one);
    return y;
}

static array reference_expand(const array *in, const op_sample *s)
{
    int64_t shape[RAPT_MAX_RANK];
    int extra = s->number_count - in[0].rank;
    for (int axis = 0; axis < s->number_count; axis++)
        shape[axis] = s->number[axis] == -1 ? in[0].shape[axis - extra] : s->number[axis];
    array y = array_new(s->number_count, shape);
    double *to = y.data;
    ARRAY_EACH(y, w) *to++ = *array_at(&in[0], y.rank, w.index);
    return y;
}

#define NUMBERS(...) .number_count = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .number = {__VA_ARGS__}
#define AXES(...) .axis_count = sizeof((int[]){__VA_ARGS__}) / sizeof(int), .axes = {__VA_ARGS__}
#define FAIL .error = RAPT_ERROR_SHAPE

static const op_sample reshapes[] = {
    {.in = {SHAPE(2, 6)}, NUMBERS(3, 4)},
    {.in = {SHAPE(2, 6)}, NUMBERS(12)},
    {.in = {SHAPE(12)}, NUMBERS(2, -1, 3)},
    {.in = {SHAPE(2, 3, 2)}, NUMBERS(6, 2)},
    {.in = {SHAPE(2, 3, 2)}, NUMBERS(-1)},
    {.in = {SHAPE(1)}, .number_count = 0},
    {.in = {SCALAR}, NUMBERS(1, 1)},
    {.in = {SHAPE(0, 3)}, NUMBERS(3, 0)},
    {.in = {SHAPE(0, 3)}, NUMBERS(-1, 3)},
    {.in = {SHAPE(2, 3)}, NUMBERS(2, 3)},
    {.in = {SHAPE(4, 1, 3)}, NUMBERS(2, 1, 2, 3)},
    {.in = {SHAPE(2, 0)}, NUMBERS(0)},
};
static const op_sample bad_reshapes[] = {
    {.in = {SHAPE(2, 3)}, NUMBERS(4), FAIL},         {.in = {SHAPE(2, 3)}, NUMBERS(-1, -1), FAIL},
    {.in = {SHAPE(2, 3)}, NUMBERS(-1, 4), FAIL},     {.in = {SHAPE(2, 3)}, NUMBERS(-2, 3), FAIL},
    {.in = {SHAPE(0, 3)}, NUMBERS(-1, 0), FAIL},     {.in = {SHAPE(2, 3)}, .number_count = 9, FAIL},
    {.in = {SHAPE(2, 3)}, .number_count = -1, FAIL}, {.in = {SHAPE(2, 3)}, .number_count = 0, FAIL},
};
static const op_sample transposes[] = {
    {.in = {SHAPE(2, 3)}, AXES(0, 1)},    {.in = {SHAPE(2, 3, 4)}, AXES(0, -1)},
    {.in = {SHAPE(2, 3, 2)}, AXES(1, 1)}, {.in = {SHAPE(1, 5)}, AXES(-1, 0)},
    {.in = {SHAPE(0, 3)}, AXES(0, 1)},    {.in = {SHAPE(2, 1, 3, 2)}, AXES(-2, -4)},
};
static const op_sample bad_transposes[] = {{.in = {SHAPE(2, 3)}, AXES(0, 2), FAIL},
                                           {.in = {SHAPE(2, 3)}, AXES(-3, 0), FAIL},
                                           {.in = {SCALAR}, AXES(0, 0), FAIL}};
static const op_sample permutes[] = {
    {.in = {SHAPE(2, 3, 4)}, AXES(2, 0, 1)},
    {.in = {SHAPE(2, 3, 4)}, AXES(-1, 1, -3)},
    {.in = {SHAPE(2, 1, 2, 3)}, AXES(3, 1, 0, 2)},
    {.in = {SHAPE(4)}, AXES(0)},
    {.in = {SCALAR}, .axis_count = 0},
    {.in = {SHAPE(2, 0, 3)}, AXES(1, 2, 0)},
};
static const op_sample bad_permutes[] = {
    {.in = {SHAPE(2, 3)}, AXES(0), FAIL},     {.in = {SHAPE(2, 3)}, AXES(0, 0), FAIL},
    {.in = {SHAPE(2, 3)}, AXES(1, -1), FAIL}, {.in = {SHAPE(2, 3)}, AXES(0, 2), FAIL},
    {.in = {SHAPE(2, 3)}, AXES(0, -3), FAIL}, {.in = {SHAPE(2, 3)}, AXES(0, 1, 2), FAIL},
};
static const op_sample slices[] = {
    {.in = {SHAPE(5)}, .number = {1, 4, 1}},
    {.in = {SHAPE(7)}, .number = {0, 7, 3}},
    {.in = {SHAPE(3, 6)}, .axis = 1, .number = {1, 6, 2}},
    {.in = {SHAPE(3, 6)}, .axis = -2, .number = {-2, INT64_MAX, 1}},
    {.in = {SHAPE(2, 5, 2)}, .axis = 1, .number = {-100, -1, 2}},
    {.in = {SHAPE(4)}, .number = {3, 1, 1}},
    {.in = {SHAPE(4)}, .number = {2, 100, 100}},
    {.in = {SHAPE(4)}, .number = {0, 4, INT64_MAX}},
    {.in = {SHAPE(0, 2)}, .number = {0, 5, 1}},
    {.in = {SHAPE(3, 0)}, .number = {1, 3, 1}},
};
static const op_sample bad_slices[] = {
    {.in = {SHAPE(5)}, .number = {0, 5, 0}, .error = RAPT_ERROR_VALUE},
    {.in = {SHAPE(5)}, .number = {0, 5, -1}, .error = RAPT_ERROR_VALUE},
    {.in = {SHAPE(5)}, .axis = 1, .number = {0, 5, 1}, FAIL},
    {.in = {SHAPE(5)}, .axis = -2, .number = {0, 5, 1}, FAIL},
    {.in = {SCALAR}, .number = {0, 1, 1}, FAIL},
};
static const op_sample selects[] = {
    {.in = {SHAPE(3, 4)}, .axis = 0, .number = {1}},      {.in = {SHAPE(3, 4)}, .axis = 1, .number = {-1}},
    {.in = {SHAPE(2, 3, 2)}, .axis = -2, .number = {-3}}, {.in = {SHAPE(4)}, .axis = 0, .number = {2}},
    {.in = {SHAPE(3, 0)}, .axis = 0, .number = {2}},      {.in = {SHAPE(1, 1)}, .axis = 1, .number = {0}},
};
static const op_sample bad_selects[] = {
    {.in = {SHAPE(3, 4)}, .axis = 0, .number = {3}, .error = RAPT_ERROR_VALUE},
    {.in = {SHAPE(3, 4)}, .axis = 0, .number = {-4}, .error = RAPT_ERROR_VALUE},
    {.in = {SHAPE(0, 4)}, .axis = 0, .number = {0}, .error = RAPT_ERROR_VALUE},
    {.in = {SHAPE(3, 4)}, .axis = 2, FAIL},
    {.in = {SCALAR}, .axis = 0, FAIL},
};
static const op_sample expands[] = {
    {.in = {SHAPE(3)}, NUMBERS(2, 3)},
    {.in = {SHAPE(2, 1)}, NUMBERS(2, 4)},
    {.in = {SHAPE(2, 1, 3)}, NUMBERS(2, 2, -1, 2, 3)},
    {.in = {SHAPE(1, 3)}, NUMBERS(3, -1)},
    {.in = {SCALAR}, NUMBERS(2, 2)},
    {.in = {SCALAR}, .number_count = 0},
    {.in = {SHAPE(1, 3)}, NUMBERS(0, 3)},
    {.in = {SHAPE(0, 1)}, NUMBERS(0, 2)},
    {.in = {SHAPE(2, 3)}, NUMBERS(2, 3)},
};
static const op_sample bad_expands[] = {
    {.in = {SHAPE(3)}, NUMBERS(3, 2), FAIL},      {.in = {SHAPE(2, 3)}, NUMBERS(3), FAIL},
    {.in = {SHAPE(3)}, NUMBERS(-1, 3), FAIL},     {.in = {SHAPE(1)}, NUMBERS(-2), FAIL},
    {.in = {SHAPE(0)}, NUMBERS(2), FAIL},         {.in = {SHAPE(3)}, .number_count = 9, FAIL},
    {.in = {SHAPE(3)}, .number_count = -1, FAIL},
};
static const op_sample squeezes[] = {
    {.in = {SHAPE(2, 1, 3)}, .axis = 1}, {.in = {SHAPE(1, 4)}, .axis = 0}, {.in = {SHAPE(4, 1)}, .axis = -1},
    {.in = {SHAPE(1)}, .axis = 0},       {.in = {SHAPE(0, 1)}, .axis = 1},
};
static const op_sample bad_squeezes[] = {{.in = {SHAPE(2, 1)}, .axis = 0, FAIL},
                                         {.in = {SHAPE(2, 1)}, .axis = 2, FAIL},
                                         {.in = {SCALAR}, .axis = 0, FAIL},
                                         {.in = {SHAPE(0)}, .axis = 0, FAIL}};
static const op_sample unsqueezes[] = {
    {.in = {SHAPE(2, 3)}, .axis = 0},  {.in = {SHAPE(2, 3)}, .axis = -1}, {.in = {SHAPE(2, 3)}, .axis = 2},
    {.in = {SHAPE(2, 3)}, .axis = -3}, {.in = {SCALAR}, .axis = 0},       {.in = {SHAPE(0, 2)}, .axis = 1},
};
static const op_sample bad_unsqueezes[] = {{.in = {SHAPE(2, 3)}, .axis = 3, FAIL},
                                           {.in = {SHAPE(2, 3)}, .axis = -4, FAIL},
                                           {.in = {SCALAR}, .axis = 1, FAIL}};
static const op_sample any_shapes[] = {{.in = {SHAPE(2, 3)}},
                                       {.in = {SCALAR}},
                                       {.in = {SHAPE(0, 2)}},
                                       {.in = {SHAPE(2, 1, 3)}},
                                       {.in = {SHAPE(61, 1031)}, .large = true}};

#define ROW(op)                                                                                                        \
    .name = #op, .call = call_##op, .reference = reference_##op, .differentiable = 1, .dtypes = all_dtypes,            \
    .is_view = true

static const op_row rows[] = {
    {ROW(reshape), SAMPLES(reshapes), FAILURES(bad_reshapes)},
    {ROW(transpose), SAMPLES(transposes), FAILURES(bad_transposes)},
    {ROW(permute), SAMPLES(permutes), FAILURES(bad_permutes)},
    {ROW(slice), SAMPLES(slices), FAILURES(bad_slices)},
    {ROW(select), SAMPLES(selects), FAILURES(bad_selects)},
    {ROW(expand), SAMPLES(expands), FAILURES(bad_expands)},
    {ROW(squeeze), SAMPLES(squeezes), FAILURES(bad_squeezes)},
    {ROW(unsqueeze), SAMPLES(unsqueezes), FAILURES(bad_unsqueezes)},
    {ROW(contiguous), SAMPLES(any_shapes)},
};

const op_family ops_view = {rows, sizeof rows / sizeof *rows};
