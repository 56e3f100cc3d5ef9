/* Rows: elements chosen by indices. */
#include "ops.h"

static rapt_tensor *call_embed(rapt_tensor *const *in, const op_sample *s)
{
    (void)s;
    return rapt_embed(in[0], in[1]);
}

static rapt_tensor *call_index_select(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_index_select(in[0], s->axis, in[1]);
}

static rapt_tensor *call_gather(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_gather(in[0], s->axis, in[1]);
}

static rapt_tensor *call_scatter_add(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_scatter_add(in[0], s->axis, in[1], in[2]);
}

static rapt_tensor *call_scatter(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_scatter(in[0], s->axis, in[1], in[2]);
}

static rapt_tensor *call_multinomial(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_multinomial(in[0], s->number[0], s->keep);
}

static rapt_tensor *call_flatnonzero(rapt_tensor *const *in, const op_sample *s)
{
    (void)s;
    return rapt_flatnonzero(in[0]);
}

static rapt_tensor *call_one_hot(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_one_hot(in[0], s->number[0], (rapt_dtype)s->variant);
}

static array reference_embed(const array *in, const op_sample *s)
{
    int64_t shape[RAPT_MAX_RANK], width = in[0].shape[1];
    (void)s;
    for (int axis = 0; axis < in[1].rank; axis++) shape[axis] = in[1].shape[axis];
    shape[in[1].rank] = width;
    array y = array_new(in[1].rank + 1, shape);
    for (int64_t i = 0; i < y.count; i++) y.data[i] = in[0].data[(int64_t)in[1].data[i / width] * width + i % width];
    return y;
}

static array reference_index_select(const array *in, const op_sample *s)
{
    int axis = s->axis < 0 ? s->axis + in[0].rank : s->axis;
    int64_t shape[RAPT_MAX_RANK];
    for (int i = 0; i < in[0].rank; i++) shape[i] = i == axis ? in[1].count : in[0].shape[i];
    array y = array_new(in[0].rank, shape);
    double *to = y.data;
    ARRAY_EACH(y, w)
    {
        int64_t from[RAPT_MAX_RANK];
        for (int i = 0; i < y.rank; i++) from[i] = i == axis ? (int64_t)in[1].data[w.index[i]] : w.index[i];
        *to++ = *array_at(&in[0], y.rank, from);
    }
    return y;
}

/* The place in x that the index at `place` names. */
static double *chosen(const array *x, const array *indices, const int64_t *place, int axis)
{
    int64_t at[RAPT_MAX_RANK];
    for (int i = 0; i < x->rank; i++) at[i] = i == axis ? (int64_t)*array_at(indices, x->rank, place) : place[i];
    return array_at(x, x->rank, at);
}

static array reference_gather(const array *in, const op_sample *s)
{
    int axis = s->axis < 0 ? s->axis + in[0].rank : s->axis;
    array y = array_new(in[1].rank, in[1].shape);
    double *to = y.data;
    ARRAY_EACH(y, w) *to++ = *chosen(&in[0], &in[1], w.index, axis);
    return y;
}

static array reference_scatter_add(const array *in, const op_sample *s)
{
    int axis = s->axis < 0 ? s->axis + in[0].rank : s->axis;
    array y = array_new(in[0].rank, in[0].shape);
    for (int64_t i = 0; i < y.count; i++) y.data[i] = in[0].data[i];
    ARRAY_EACH(in[1], w) * chosen(&y, &in[1], w.index, axis) += *array_at(&in[2], y.rank, w.index);
    return y;
}

static array reference_scatter(const array *in, const op_sample *s)
{
    int axis = s->axis < 0 ? s->axis + in[0].rank : s->axis;
    array y = array_new(in[0].rank, in[0].shape);
    for (int64_t i = 0; i < y.count; i++) y.data[i] = in[0].data[i];
    ARRAY_EACH(in[1], w) * chosen(&y, &in[1], w.index, axis) = *array_at(&in[2], y.rank, w.index);
    return y;
}

static array reference_flatnonzero(const array *in, const op_sample *s)
{
    (void)s;
    int64_t found = 0;
    for (int64_t i = 0; i < in[0].count; i++) found += in[0].data[i] != 0;
    array y = array_new(1, &found);
    double *to = y.data;
    for (int64_t i = 0; i < in[0].count; i++)
        if (in[0].data[i] != 0) *to++ = (double)i;
    return y;
}

/* Of one weight: place 0. test_multinomial.c draws from more. */
static array reference_multinomial(const array *in, const op_sample *s)
{
    int64_t shape[RAPT_MAX_RANK];
    for (int i = 0; i < in[0].rank; i++) shape[i] = i == in[0].rank - 1 ? s->number[0] : in[0].shape[i];
    return array_new(in[0].rank, shape);
}

static array reference_one_hot(const array *in, const op_sample *s)
{
    int64_t shape[RAPT_MAX_RANK], classes = s->number[0];
    for (int axis = 0; axis < in[0].rank; axis++) shape[axis] = in[0].shape[axis];
    shape[in[0].rank] = classes;
    array y = array_new(in[0].rank + 1, shape);
    for (int64_t i = 0; i < in[0].count; i++) y.data[i * classes + (int64_t)in[0].data[i]] = 1;
    return y;
}

static rapt_dtype one_hot_result(rapt_dtype dtype, const op_sample *s)
{
    (void)dtype;
    return (rapt_dtype)s->variant;
}

#define FAIL .error = RAPT_ERROR_SHAPE
#define OUT_OF_RANGE .limit = 1000, .error = RAPT_ERROR_VALUE

static const op_sample embeds[] = {
    {.in = {SHAPE(4, 3), SHAPE(5)}, .limit = 4}, {.in = {SHAPE(4, 3), SHAPE(2, 3)}, .limit = 3},
    {.in = {SHAPE(4, 3), SCALAR}, .limit = 4},   {.in = {SHAPE(4, 3), SHAPE(0, 2)}, .limit = 4},
    {.in = {SHAPE(3, 0), SHAPE(2)}, .limit = 3}, {.in = {SHAPE(1, 1), SHAPE(4, 1, 2)}, .limit = 1},
    {.in = {SHAPE(0, 3), SHAPE(0)}, .limit = 1}, {.in = {SHAPE(500, 64), SHAPE(40, 31)}, .limit = 500, .large = true},
};
static const op_sample bad_embeds[] = {{.in = {SHAPE(4, 3), SHAPE(5)}, OUT_OF_RANGE},
                                       {.in = {SHAPE(4), SHAPE(5)}, .limit = 4, FAIL},
                                       {.in = {SHAPE(0, 3), SHAPE(1)}, .limit = 1, .error = RAPT_ERROR_VALUE},
                                       {.in = {SHAPE(4, 3, 1), SHAPE(2)}, .limit = 1, FAIL}};
static const op_sample index_selects[] = {
    {.in = {SHAPE(4, 3), SHAPE(5)}, .axis = 0, .limit = 4},
    {.in = {SHAPE(2, 4, 2), SHAPE(3)}, .axis = -2, .limit = 4},
    {.in = {SHAPE(3, 3), SHAPE(2)}, .axis = 1, .limit = 3},
    {.in = {SHAPE(5), SHAPE(5)}, .axis = 0, .limit = 5},
    {.in = {SHAPE(4, 3), SHAPE(0)}, .axis = 0, .limit = 4},
    {.in = {SHAPE(3, 0), SHAPE(2)}, .axis = 0, .limit = 3},
    {.in = {SHAPE(300, 61), SHAPE(1000)}, .axis = 0, .limit = 300, .large = true},
    {.in = {SHAPE(61, 300), SHAPE(1000)}, .axis = 1, .limit = 300, .large = true},
};
static const op_sample bad_index_selects[] = {{.in = {SHAPE(4, 3), SHAPE(5)}, .axis = 0, OUT_OF_RANGE},
                                              {.in = {SHAPE(4, 3), SHAPE(5)}, .axis = 2, .limit = 2, FAIL},
                                              {.in = {SHAPE(4, 3), SHAPE(2, 2)}, .axis = 0, .limit = 3, FAIL},
                                              {.in = {SCALAR, SHAPE(1)}, .axis = 0, .limit = 1, FAIL}};
static const op_sample gathers[] = {
    {.in = {SHAPE(4, 3), SHAPE(2, 3)}, .axis = 0, .limit = 4},
    {.in = {SHAPE(3, 4), SHAPE(3, 5)}, .axis = -1, .limit = 4},
    {.in = {SHAPE(2, 3, 2), SHAPE(1, 4, 2)}, .axis = 1, .limit = 3},
    {.in = {SHAPE(5), SHAPE(7)}, .axis = 0, .limit = 5},
    {.in = {SHAPE(3, 4), SHAPE(0, 4)}, .axis = 0, .limit = 3},
    {.in = {SHAPE(3, 4), SHAPE(2, 0)}, .axis = 0, .limit = 3},
    {.in = {SHAPE(61, 1031), SHAPE(61, 900)}, .axis = 1, .limit = 1031, .large = true},
    {.in = {SHAPE(300, 300), SHAPE(250, 300)}, .axis = 0, .limit = 300, .large = true},
};
static const op_sample bad_gathers[] = {{.in = {SHAPE(4, 3), SHAPE(2, 3)}, .axis = 0, OUT_OF_RANGE},
                                        {.in = {SHAPE(4, 3), SHAPE(2, 4)}, .axis = 0, .limit = 2, FAIL},
                                        {.in = {SHAPE(4, 3), SHAPE(2)}, .axis = 0, .limit = 2, FAIL},
                                        {.in = {SHAPE(4, 3), SHAPE(2, 3)}, .axis = -3, .limit = 2, FAIL}};
static const op_sample scatters[] = {
    {.in = {SHAPE(4, 3), SHAPE(2, 3), SHAPE(2, 3)}, .axis = 0, .limit = 4},
    {.in = {SHAPE(3, 4), SHAPE(3, 5), SHAPE(3, 5)}, .axis = -1, .limit = 2},
    {.in = {SHAPE(2, 3, 2), SHAPE(1, 4, 2), SHAPE(1, 4, 2)}, .axis = 1, .limit = 3},
    {.in = {SHAPE(5), SHAPE(7), SHAPE(7)}, .axis = 0, .limit = 5},
    {.in = {SHAPE(3, 4), SHAPE(0, 4), SHAPE(0, 4)}, .axis = 0, .limit = 3},
    {.in = {SHAPE(0, 4), SHAPE(0, 4), SHAPE(0, 4)}, .axis = 0, .limit = 1},
    {.in = {SHAPE(61, 1031), SHAPE(61, 900), SHAPE(61, 900)}, .axis = 1, .limit = 100, .large = true},
    {.in = {SHAPE(30, 300), SHAPE(250, 300), SHAPE(250, 300)}, .axis = 0, .limit = 30, .large = true},
};
static const op_sample bad_scatters[] = {{.in = {SHAPE(4, 3), SHAPE(2, 3), SHAPE(2, 3)}, .axis = 0, OUT_OF_RANGE},
                                         {.in = {SHAPE(4, 3), SHAPE(2, 3), SHAPE(3, 3)}, .axis = 0, .limit = 2, FAIL},
                                         {.in = {SHAPE(4, 3), SHAPE(2, 4), SHAPE(2, 4)}, .axis = 0, .limit = 2, FAIL},
                                         {.in = {SHAPE(4, 3), SHAPE(2, 3), SHAPE(2, 3)}, .axis = 2, .limit = 2, FAIL}};
/* keep: with replacement */
static const op_sample multinomials[] = {
    {.in = {SHAPE(1)}, .number = {3}, .keep = true},
    {.in = {SHAPE(4, 1)}, .number = {1}},
    {.in = {SHAPE(2, 3, 1)}, .number = {2}, .keep = true},
    {.in = {SHAPE(3, 1)}, .number = {0}},
    {.in = {SHAPE(0, 1)}, .number = {1}},
    {.in = {SHAPE(2, 0)}, .number = {0}, .keep = true},
    {.in = {SHAPE(20011, 1)}, .number = {2}, .keep = true, .large = true},
    {.in = {SHAPE(20011, 1)}, .number = {1}, .large = true},
};
static const op_sample bad_multinomials[] = {
    {.in = {SCALAR}, .number = {1}, FAIL},
    {.in = {SHAPE(3)}, .number = {-1}, .error = RAPT_ERROR_VALUE},
    {.in = {SHAPE(3)}, .number = {4}, .error = RAPT_ERROR_VALUE},
    {.in = {SHAPE(2, 0)}, .number = {1}, .keep = true, .error = RAPT_ERROR_VALUE},
};
static const op_sample one_hots[] = {
    {.in = {SHAPE(5)}, .number = {4}, .limit = 4, .variant = RAPT_FLOAT32},
    {.in = {SHAPE(2, 3)}, .number = {3}, .limit = 3, .variant = RAPT_FLOAT64},
    {.in = {SCALAR}, .number = {2}, .limit = 2, .variant = RAPT_INT64},
    {.in = {SHAPE(4)}, .number = {6}, .limit = 2, .variant = RAPT_BOOL},
    {.in = {SHAPE(0, 2)}, .number = {3}, .limit = 3, .variant = RAPT_UINT8},
    {.in = {SHAPE(0)}, .number = {0}, .limit = 1, .variant = RAPT_INT32},
};
static const op_sample of_any_rank[] = {
    {.in = {SHAPE(3, 5)}}, {.in = {SHAPE(2, 3, 4)}}, {.in = {SHAPE(7)}},
    {.in = {SCALAR}},      {.in = {SHAPE(4, 0)}},    {.in = {SHAPE(401, 301)}, .large = true},
};
static const op_sample bad_one_hots[] =
    {{.in = {SHAPE(5)}, .number = {4}, OUT_OF_RANGE},
     {.in = {SHAPE(5)}, .number = {-1}, .limit = 1, FAIL},
     {.in = {SHAPE(5)}, .number = {3}, .limit = 3, .variant = RAPT_DTYPE_COUNT, .error = RAPT_ERROR_DTYPE}};

#define ROW(op) .name = #op, .call = call_##op, .reference = reference_##op

static const op_row rows[] = {
    {ROW(embed), .domain = {any_value, index64}, .differentiable = 1, .dtypes = all_dtypes, SAMPLES(embeds),
     FAILURES(bad_embeds)},
    {ROW(embed), .domain = {any_value, index32}, .differentiable = 1, .dtypes = all_dtypes, SAMPLES(embeds),
     FAILURES(bad_embeds)},
    {ROW(index_select), .domain = {any_value, index64}, .differentiable = 1, .dtypes = all_dtypes,
     SAMPLES(index_selects), FAILURES(bad_index_selects)},
    {ROW(index_select), .domain = {any_value, index32}, .differentiable = 1, .dtypes = all_dtypes,
     SAMPLES(index_selects)},
    {ROW(gather), .domain = {any_value, index64}, .differentiable = 1, .dtypes = all_dtypes, SAMPLES(gathers),
     FAILURES(bad_gathers)},
    {ROW(gather), .domain = {any_value, index32}, .differentiable = 1, .dtypes = all_dtypes, SAMPLES(gathers)},
    {ROW(scatter_add), .domain = {any_value, index64}, .differentiable = 5, SAMPLES(scatters), FAILURES(bad_scatters)},
    {ROW(scatter_add), .domain = {any_value, index32}, .differentiable = 5, SAMPLES(scatters)},
    {ROW(scatter), .domain = {any_value, index64}, .differentiable = 5, .dtypes = all_dtypes, SAMPLES(scatters),
     FAILURES(bad_scatters)},
    {ROW(scatter), .domain = {any_value, index32}, .differentiable = 5, .dtypes = all_dtypes, SAMPLES(scatters)},
    {ROW(multinomial), .domain = {positive}, .result = result_int64, SAMPLES(multinomials), FAILURES(bad_multinomials)},
    {ROW(flatnonzero), .dtypes = all_dtypes, .result = result_int64, SAMPLES(of_any_rank)},
    {ROW(one_hot), .domain = {index64}, .result = one_hot_result, .is_view = true, SAMPLES(one_hots),
     FAILURES(bad_one_hots)},
    {ROW(one_hot), .domain = {index32}, .result = one_hot_result, .is_view = true, SAMPLES(one_hots),
     FAILURES(bad_one_hots)},
};

const op_family ops_index = {rows, sizeof rows / sizeof *rows};
