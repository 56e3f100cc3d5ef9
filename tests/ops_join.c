/* Rows: putting together and taking apart. */
#include "ops.h"

static int count_inputs(const op_sample *s)
{
    int count = 0;
    while (count < most_inputs && s->in[count].state != no_input) count++;
    return count;
}

static rapt_tensor *call_concat(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_concat(count_inputs(s), in, s->axis);
}

static rapt_tensor *call_stack(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_stack(count_inputs(s), in, s->axis);
}

static rapt_tensor *call_pad(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_pad(in[0], s->axis, s->number[0], s->number[1], s->real[0]);
}

static rapt_tensor *call_flip(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_flip(in[0], s->axis_count, s->axes);
}

static rapt_tensor *call_roll(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_roll(in[0], s->axis, s->number[0]);
}

/* All pieces, the last one first; or only the piece `variant` − 1. */
static rapt_tensor *call_split(rapt_tensor *const *in, const op_sample *s)
{
    rapt_tensor *pieces[5], *turned[5];
    if (!rapt_split(in[0], s->axis, s->number_count, s->number, pieces)) return NULL;
    if (s->variant > 0) return pieces[s->variant - 1];
    for (int i = 0; i < s->number_count; i++) turned[i] = pieces[s->number_count - 1 - i];
    return rapt_concat(s->number_count, turned, s->axis);
}

/* Copies x into y, with its places along the axis moved by `start`. */
static void place(const array *x, array *y, int axis, int64_t start)
{
    ARRAY_EACH(*x, w)
    {
        double value = *array_at(x, x->rank, w.index);
        w.index[axis] += start;
        *array_at(y, y->rank, w.index) = value;
        w.index[axis] -= start;
    }
}

static array reference_concat(const array *in, const op_sample *s)
{
    int count = count_inputs(s), axis = s->axis < 0 ? s->axis + in[0].rank : s->axis;
    int64_t shape[RAPT_MAX_RANK] = {0}, start = 0;
    for (int i = 0; i < in[0].rank; i++) shape[i] = in[0].shape[i];
    for (int i = 1; i < count; i++) shape[axis] += in[i].shape[axis];
    array y = array_new(in[0].rank, shape);
    for (int i = 0; i < count; start += in[i++].shape[axis]) place(&in[i], &y, axis, start);
    return y;
}

static array reference_stack(const array *in, const op_sample *s)
{
    int axis = s->axis < 0 ? s->axis + in[0].rank + 1 : s->axis;
    array wide[most_inputs];
    for (int i = 0; i < count_inputs(s); i++) {
        wide[i] = in[i];
        wide[i].rank++;
        for (int k = axis; k < in[i].rank; k++) wide[i].shape[k + 1] = in[i].shape[k];
        wide[i].shape[axis] = 1;
    }
    op_sample along = *s;
    along.axis = axis;
    return reference_concat(wide, &along);
}

static array reference_pad(const array *in, const op_sample *s)
{
    int axis = s->axis < 0 ? s->axis + in[0].rank : s->axis;
    int64_t shape[RAPT_MAX_RANK];
    for (int i = 0; i < in[0].rank; i++) shape[i] = in[0].shape[i] + (i == axis ? s->number[0] + s->number[1] : 0);
    array y = array_new(in[0].rank, shape);
    for (int64_t i = 0; i < y.count; i++) y.data[i] = s->real[0];
    place(&in[0], &y, axis, s->number[0]);
    return y;
}

static array reference_flip(const array *in, const op_sample *s)
{
    array y = array_new(in[0].rank, in[0].shape);
    unsigned flipped = s->axis_count == 0 ? ~0u : 0;
    for (int i = 0; i < s->axis_count; i++) flipped |= 1u << (s->axes[i] < 0 ? s->axes[i] + y.rank : s->axes[i]);
    double *to = y.data;
    ARRAY_EACH(y, w)
    {
        int64_t from[RAPT_MAX_RANK];
        for (int i = 0; i < y.rank; i++) from[i] = flipped >> i & 1 ? y.shape[i] - 1 - w.index[i] : w.index[i];
        *to++ = *array_at(&in[0], y.rank, from);
    }
    return y;
}

static array reference_roll(const array *in, const op_sample *s)
{
    array y = array_new(in[0].rank, in[0].shape);
    const int axis = s->axis < 0 ? s->axis + y.rank : s->axis;
    ARRAY_EACH(y, w)
    {
        const double value = *array_at(&in[0], y.rank, w.index);
        const int64_t from = w.index[axis], size = y.shape[axis];
        w.index[axis] = ((from + s->number[0] % size) % size + size) % size;
        *array_at(&y, y.rank, w.index) = value;
        w.index[axis] = from;
    }
    return y;
}

static array reference_split(const array *in, const op_sample *s)
{
    int axis = s->axis < 0 ? s->axis + in[0].rank : s->axis;
    int64_t shape[RAPT_MAX_RANK], from_start = 0, to_start = 0;
    for (int i = 0; i < in[0].rank; i++) shape[i] = in[0].shape[i];
    if (s->variant > 0) shape[axis] = s->number[s->variant - 1];
    array y = array_new(in[0].rank, shape);
    for (int piece = 0; piece < s->number_count; from_start += s->number[piece++]) {
        if (s->variant > 0 && piece != s->variant - 1) continue;
        for (int later = piece + 1; later < s->number_count && s->variant == 0; later++) to_start += s->number[later];
        ARRAY_EACH(in[0], w)
        {
            int64_t within = w.index[axis] - from_start;
            if (within < 0 || within >= s->number[piece]) continue;
            int64_t to[RAPT_MAX_RANK];
            for (int i = 0; i < y.rank; i++) to[i] = i == axis ? within + to_start : w.index[i];
            *array_at(&y, y.rank, to) = *array_at(&in[0], y.rank, w.index);
        }
        to_start = 0;
    }
    return y;
}

static rapt_tensor *call_tile(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_tile(in[0], s->number_count, s->number);
}

static rapt_tensor *call_repeat_interleave(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_repeat_interleave(in[0], s->axis, s->number[0]);
}

static array reference_tile(const array *in, const op_sample *s)
{
    const array *x = &in[0];
    const int rank = s->number_count > x->rank ? s->number_count : x->rank;
    int64_t shape[RAPT_MAX_RANK], from[RAPT_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        const int axis = i - (rank - x->rank), number = i - (rank - s->number_count);
        shape[i] = (axis < 0 ? 1 : x->shape[axis]) * (number < 0 ? 1 : s->number[number]);
    }
    array y = array_new(rank, shape);
    double *to = y.data;
    ARRAY_EACH(y, w)
    {
        for (int i = 0; i < x->rank; i++) from[i] = w.index[i + rank - x->rank] % x->shape[i];
        *to++ = *array_at(x, x->rank, from);
    }
    return y;
}

static array reference_repeat_interleave(const array *in, const op_sample *s)
{
    const int axis = s->axis < 0 ? s->axis + in[0].rank : s->axis;
    int64_t shape[RAPT_MAX_RANK], from[RAPT_MAX_RANK];
    for (int i = 0; i < in[0].rank; i++) shape[i] = in[0].shape[i] * (i == axis ? s->number[0] : 1);
    array y = array_new(in[0].rank, shape);
    double *to = y.data;
    ARRAY_EACH(y, w)
    {
        for (int i = 0; i < y.rank; i++) from[i] = i == axis ? w.index[i] / s->number[0] : w.index[i];
        *to++ = *array_at(&in[0], y.rank, from);
    }
    return y;
}

#define NUMBERS(...) .number_count = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .number = {__VA_ARGS__}
#define AXES(...) .axis_count = sizeof((int[]){__VA_ARGS__}) / sizeof(int), .axes = {__VA_ARGS__}
#define FAIL .error = RAPT_ERROR_SHAPE

static const op_sample concats[] = {
    {.in = {SHAPE(2, 3), SHAPE(1, 3)}, .axis = 0},
    {.in = {SHAPE(2, 3), SHAPE(2, 1), SHAPE(2, 2)}, .axis = -1},
    {.in = {SHAPE(2, 1, 2), SHAPE(2, 2, 2)}, .axis = 1},
    {.in = {SHAPE(3)}, .axis = 0},
    {.in = {SHAPE(2, 0), SHAPE(2, 3)}, .axis = 1},
    {.in = {SHAPE(0, 2), SHAPE(0, 2)}, .axis = 0},
    {.in = {SHAPE(1), SHAPE(1), SHAPE(1), SHAPE(1), SHAPE(1), SHAPE(1)}, .axis = -1},
    {.in = {SHAPE(31, 1031), SHAPE(20, 1031)}, .axis = 0, .large = true},
    {.in = {SHAPE(1031, 31), SHAPE(1031, 20)}, .axis = 1, .large = true},
};
static const op_sample bad_concats[] = {
    {.in = {SHAPE(2, 3), SHAPE(2, 4)}, .axis = 0, FAIL}, {.in = {SHAPE(2, 3), SHAPE(3)}, .axis = 0, FAIL},
    {.in = {SHAPE(2, 3), SHAPE(2, 3)}, .axis = 2, FAIL}, {.in = {SHAPE(2, 3), SHAPE(2, 3)}, .axis = -3, FAIL},
    {.in = {SCALAR, SCALAR}, .axis = 0, FAIL},
};
static const op_sample stacks[] = {
    {.in = {SHAPE(2, 3), SHAPE(2, 3)}, .axis = 0},
    {.in = {SHAPE(2, 3), SHAPE(2, 3)}, .axis = -1},
    {.in = {SHAPE(2, 3), SHAPE(2, 3)}, .axis = 1},
    {.in = {SCALAR, SCALAR, SCALAR}, .axis = 0},
    {.in = {SHAPE(4)}, .axis = -2},
    {.in = {SHAPE(0, 2), SHAPE(0, 2)}, .axis = 2},
    {.in = {SHAPE(31, 1031), SHAPE(31, 1031)}, .axis = 1, .large = true},
};
static const op_sample bad_stacks[] = {{.in = {SHAPE(2, 3), SHAPE(2, 4)}, .axis = 0, FAIL},
                                       {.in = {SHAPE(3), SHAPE(1, 3)}, .axis = 0, FAIL},
                                       {.in = {SHAPE(2), SHAPE(2)}, .axis = 2, FAIL},
                                       {.in = {SHAPE(2), SHAPE(2)}, .axis = -3, FAIL}};
static const op_sample pads[] = {
    {.in = {SHAPE(2, 3)}, .axis = 1, .number = {1, 2}, .real = {1}},
    {.in = {SHAPE(2, 3)}, .axis = 0, .number = {0, 1}},
    {.in = {SHAPE(4)}, .axis = -1, .number = {2, 0}, .real = {1}},
    {.in = {SHAPE(2, 1, 3)}, .axis = -2, .number = {1, 1}, .real = {1}},
    {.in = {SHAPE(3)}, .axis = 0, .number = {0, 0}},
    {.in = {SHAPE(0, 2)}, .axis = 0, .number = {1, 1}, .real = {1}},
    {.in = {SHAPE(0, 2)}, .axis = 1, .number = {1, 1}},
    {.in = {SHAPE(61, 1031)}, .axis = 0, .number = {3, 5}, .large = true},
};
/* Numbers that bool has not. */
static const op_sample pads_by_numbers[] = {
    {.in = {SHAPE(2, 3)}, .axis = 1, .number = {1, 2}, .real = {7}},
    {.in = {SHAPE(2, 1, 3)}, .axis = -2, .number = {1, 1}, .real = {5}},
    {.in = {SHAPE(0, 2)}, .axis = 0, .number = {1, 1}, .real = {4}},
    {.in = {SHAPE(61, 1031)}, .axis = 0, .number = {3, 5}, .real = {3}, .large = true},
};
static const op_sample bad_pads[] = {
    {.in = {SHAPE(2, 3)}, .axis = 2, FAIL},
    {.in = {SCALAR}, .axis = 0, FAIL},
    {.in = {SHAPE(2, 3)}, .axis = 0, .number = {-1, 0}, .error = RAPT_ERROR_VALUE},
    {.in = {SHAPE(2, 3)}, .axis = 0, .number = {0, -1}, .error = RAPT_ERROR_VALUE},
    {.in = {SHAPE(2, 3)}, .axis = 0, .number = {INT64_MAX, 1}, .error = RAPT_ERROR_MEMORY},
    {.in = {SHAPE(2, 3)}, .axis = 0, .number = {INT64_MAX / 16, 1}, .error = RAPT_ERROR_MEMORY},
};
static const op_sample flips[] = {
    {.in = {SHAPE(2, 3)}, AXES(0)},
    {.in = {SHAPE(2, 3)}, AXES(-1)},
    {.in = {SHAPE(2, 3, 2)}, AXES(0, 2)},
    {.in = {SHAPE(2, 3)}},
    {.in = {SCALAR}},
    {.in = {SHAPE(0, 3)}, AXES(1)},
    {.in = {SHAPE(1, 4)}, AXES(0)},
    {.in = {SHAPE(61, 1031)}, AXES(1), .large = true},
};
static const op_sample bad_flips[] = {{.in = {SHAPE(2, 3)}, AXES(2), FAIL},
                                      {.in = {SHAPE(2, 3)}, AXES(0, -3), FAIL},
                                      {.in = {SHAPE(2, 3)}, AXES(1, 1), FAIL},
                                      {.in = {SHAPE(2, 3)}, AXES(1, -1), FAIL},
                                      {.in = {SHAPE(2, 3)}, .axis_count = -1, FAIL}};
static const op_sample rolls[] = {
    {.in = {SHAPE(2, 5)}, .axis = 1, .number = {2}},
    {.in = {SHAPE(4, 2)}, .axis = 0, .number = {-1}},
    {.in = {SHAPE(2, 3, 2)}, .axis = -2, .number = {7}},
    {.in = {SHAPE(5)}, .axis = 0, .number = {0}},
    {.in = {SHAPE(5)}, .axis = 0, .number = {-5}},
    {.in = {SHAPE(3)}, .axis = 0, .number = {INT64_MIN}},
    {.in = {SHAPE(0, 3)}, .axis = 0, .number = {1}},
    {.in = {SHAPE(61, 1031)}, .axis = 1, .number = {100}, .large = true},
};
static const op_sample bad_rolls[] = {{.in = {SHAPE(2, 3)}, .axis = 2, FAIL},
                                      {.in = {SHAPE(2, 3)}, .axis = -3, FAIL},
                                      {.in = {SCALAR}, .axis = 0, FAIL}};
static const op_sample tiles[] = {
    {.in = {SHAPE(2, 3)}, NUMBERS(2, 1)},
    {.in = {SHAPE(2, 3)}, NUMBERS(2, 3)},
    {.in = {SHAPE(2, 3)}, NUMBERS(2)},
    {.in = {SHAPE(3)}, NUMBERS(2, 1, 2)},
    {.in = {SHAPE(2, 2, 2)}, NUMBERS(3, 1)},
    {.in = {SHAPE(2, 3)}, NUMBERS(0, 2)},
    {.in = {SHAPE(0, 3)}, NUMBERS(2, 2)},
    {.in = {SCALAR}, NUMBERS(3)},
    {.in = {SCALAR}},
    {.in = {SHAPE(61, 331)}, NUMBERS(2, 3), .large = true},
};
static const op_sample bad_tiles[] = {
    {.in = {SHAPE(2, 3)}, NUMBERS(2, -1), .error = RAPT_ERROR_VALUE},
    {.in = {SHAPE(2, 3)}, NUMBERS(INT64_MAX), .error = RAPT_ERROR_MEMORY},
    {.in = {SHAPE(2, 3)}, .number_count = 9, FAIL},
    {.in = {SHAPE(2, 3)}, .number_count = -1, FAIL},
};
static const op_sample repeats[] = {
    {.in = {SHAPE(2, 3)}, .axis = 0, .number = {2}},
    {.in = {SHAPE(2, 3)}, .axis = -1, .number = {3}},
    {.in = {SHAPE(2, 3, 2)}, .axis = 1, .number = {1}},
    {.in = {SHAPE(4)}, .axis = 0, .number = {2}},
    {.in = {SHAPE(4)}, .axis = 0, .number = {0}},
    {.in = {SHAPE(0, 3)}, .axis = 1, .number = {2}},
    {.in = {SHAPE(2, 0)}, .axis = 1, .number = {2}},
    {.in = {SHAPE(61, 331)}, .axis = 1, .number = {3}, .large = true},
};
static const op_sample bad_repeats[] = {
    {.in = {SHAPE(2, 3)}, .axis = 2, .number = {1}, FAIL},
    {.in = {SCALAR}, .axis = 0, .number = {1}, FAIL},
    {.in = {SHAPE(2, 3)}, .axis = 0, .number = {-1}, .error = RAPT_ERROR_VALUE},
    {.in = {SHAPE(2, 3)}, .axis = 0, .number = {INT64_MAX}, .error = RAPT_ERROR_MEMORY},
};
static const op_sample splits[] = {
    {.in = {SHAPE(6)}, NUMBERS(1, 2, 3)},
    {.in = {SHAPE(2, 5)}, .axis = -1, NUMBERS(2, 3)},
    {.in = {SHAPE(3, 2)}, NUMBERS(3)},
    {.in = {SHAPE(4)}, NUMBERS(0, 4)},
    {.in = {SHAPE(6)}, NUMBERS(1, 2, 3), .variant = 2},
    {.in = {SHAPE(2, 4, 2)}, .axis = 1, NUMBERS(1, 1, 2), .variant = 3},
    {.in = {SHAPE(0, 2)}, NUMBERS(0, 0)},
};
static const op_sample bad_splits[] = {
    {.in = {SHAPE(6)}, NUMBERS(1, 2), FAIL},
    {.in = {SHAPE(6)}, NUMBERS(4, 4), FAIL},
    {.in = {SHAPE(6)}, NUMBERS(6, 1), FAIL},
    {.in = {SHAPE(0, 2)}, NUMBERS(1), FAIL},
    {.in = {SHAPE(6)}, NUMBERS(-1, 7), FAIL},
    {.in = {SHAPE(6)}, .axis = 1, NUMBERS(6), FAIL},
    {.in = {SHAPE(6)}, NUMBERS(INT64_MAX, INT64_MAX), FAIL},
    {.in = {SHAPE(6)}, .number_count = 0, .error = RAPT_ERROR_VALUE},
};

#define ROW(op) .name = #op, .call = call_##op, .reference = reference_##op, .dtypes = all_dtypes

static const op_row rows[] = {
    {ROW(roll), .is_combined = true, .differentiable = 1, SAMPLES(rolls), FAILURES(bad_rolls)},
    {ROW(tile), .is_combined = true, .differentiable = 1, SAMPLES(tiles), FAILURES(bad_tiles)},
    {ROW(repeat_interleave), .is_combined = true, .differentiable = 1, SAMPLES(repeats), FAILURES(bad_repeats)},
    {ROW(concat), .differentiable = every_input, SAMPLES(concats), FAILURES(bad_concats)},
    {ROW(stack), .differentiable = every_input, SAMPLES(stacks), FAILURES(bad_stacks)},
    {ROW(pad), .differentiable = 1, SAMPLES(pads), FAILURES(bad_pads)},
    {.name = "pad",
     .call = call_pad,
     .reference = reference_pad,
     .dtypes = number_dtypes,
     .differentiable = 1,
     SAMPLES(pads_by_numbers),
     FAILURES(bad_pads)},
    {ROW(flip), .differentiable = 1, SAMPLES(flips), FAILURES(bad_flips)},
    {ROW(split), .differentiable = 1, .is_view = true, SAMPLES(splits), FAILURES(bad_splits)},
};

const op_family ops_join = {rows, sizeof rows / sizeof *rows};
