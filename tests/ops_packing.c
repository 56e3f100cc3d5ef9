/* Rows: a padded batch packed, and the way back. The sample's numbers are the lengths. */
#include <rapt/packing.h>

#include "ops.h"

static rapt_tensor *starts_of(const op_sample *s)
{
    return rapt_packing_starts(rapt_from(RAPT_INT64, RAPT_SHAPE(s->number_count), s->number));
}

static rapt_tensor *call_pack(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_pack(in[0], starts_of(s));
}

/* axis: the length, or with `keep` one that no memory holds */
static rapt_tensor *call_unpack(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_unpack(in[0], starts_of(s), s->keep ? INT64_MAX / 4 : s->axis, s->real[0]);
}

static int64_t rows_of(const op_sample *s, int before)
{
    int64_t sum = 0;
    for (int b = 0; b < before; b++) sum += s->number[b];
    return sum;
}

static array reference_pack(const array *in, const op_sample *s)
{
    int64_t shape[RAPT_MAX_RANK] = {rows_of(s, s->number_count)}, from[RAPT_MAX_RANK];
    for (int i = 2; i < in[0].rank; i++) shape[i - 1] = in[0].shape[i];
    array y = array_new(in[0].rank - 1, shape);
    double *to = y.data;
    ARRAY_EACH(y, w)
    {
        int b = 0;
        while (w.index[0] >= rows_of(s, b + 1)) b++;
        from[0] = b;
        from[1] = w.index[0] - rows_of(s, b);
        for (int i = 2; i < in[0].rank; i++) from[i] = w.index[i - 1];
        *to++ = *array_at(&in[0], in[0].rank, from);
    }
    return y;
}

static array reference_unpack(const array *in, const op_sample *s)
{
    int64_t shape[RAPT_MAX_RANK] = {s->number_count, s->axis}, from[RAPT_MAX_RANK];
    for (int b = 0; b < s->number_count && s->axis == 0; b++)
        if (s->number[b] > shape[1]) shape[1] = s->number[b];
    for (int i = 1; i < in[0].rank; i++) shape[i + 1] = in[0].shape[i];
    array y = array_new(in[0].rank + 1, shape);
    double *to = y.data;
    ARRAY_EACH(y, w)
    {
        const int b = (int)w.index[0];
        from[0] = rows_of(s, b) + w.index[1];
        for (int i = 1; i < in[0].rank; i++) from[i] = w.index[i + 1];
        *to++ = w.index[1] < s->number[b] ? *array_at(&in[0], in[0].rank, from) : s->real[0];
    }
    return y;
}

#define LENGTHS(...) .number_count = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .number = {__VA_ARGS__}
#define FAIL .error = RAPT_ERROR_SHAPE
#define BAD_VALUE .error = RAPT_ERROR_VALUE

static const op_sample packs[] = {
    {.in = {SHAPE(3, 4)}, LENGTHS(2, 4, 1)},
    {.in = {SHAPE(3, 4, 2)}, LENGTHS(0, 3, 0)},
    {.in = {SHAPE(2, 3, 2, 2)}, LENGTHS(3, 3)},
    {.in = {SHAPE(1, 3, 1)}, LENGTHS(2)},
    {.in = {SHAPE(2, 3)}, LENGTHS(0, 0)},
    {.in = {SHAPE(2, 0, 3)}, LENGTHS(0, 0)},
    {.in = {SHAPE(0, 4, 2)}},
    {.in = {SHAPE(2, 3, 0)}, LENGTHS(1, 2)},
    {.in = {SHAPE(2, 7, 3)}, LENGTHS(4, 5)},
    {.in = {SHAPE(4, 400, 61)}, LENGTHS(31, 400, 0, 97), .large = true},
};
static const op_sample bad_packs[] = {
    {.in = {SHAPE(3, 4)}, LENGTHS(2, 5, 1), FAIL},
    {.in = {SHAPE(3, 4)}, LENGTHS(2, 4), FAIL},
    {.in = {SHAPE(3)}, LENGTHS(1, 1, 1), FAIL},
};
static const op_sample unpacks[] = {
    {.in = {SHAPE(7)}, LENGTHS(2, 4, 1), .axis = 4},
    {.in = {SHAPE(7)}, LENGTHS(2, 4, 1)},
    {.in = {SHAPE(3, 2)}, LENGTHS(0, 3, 0), .axis = 5, .real = {1}},
    {.in = {SHAPE(6, 2, 2)}, LENGTHS(3, 3), .axis = 3},
    {.in = {SHAPE(0, 2)}, LENGTHS(0, 0), .axis = 2, .real = {1}},
    {.in = {SHAPE(0)}, LENGTHS(0, 0)},
    {.in = {SHAPE(0, 3)}},
    {.in = {SHAPE(3, 0)}, LENGTHS(1, 2), .axis = 2},
    {.in = {SHAPE(528, 61)}, LENGTHS(31, 400, 0, 97), .axis = 401, .real = {1}, .large = true},
};
static const op_sample bad_unpacks[] = {
    {.in = {SHAPE(6)}, LENGTHS(2, 4, 1), .axis = 4, FAIL},
    {.in = {SCALAR}, LENGTHS(1), .axis = 4, FAIL},
    {.in = {SHAPE(7)}, LENGTHS(2, 4, 1), .axis = 3, BAD_VALUE},
    {.in = {SHAPE(7)}, LENGTHS(2, 4, 1), .axis = -1, BAD_VALUE},
    {.in = {SHAPE(2, 1)}, LENGTHS(2, 0), .keep = true, .error = RAPT_ERROR_MEMORY},
};

#define ROW(op) .name = #op, .call = call_##op, .reference = reference_##op, .dtypes = all_dtypes, .differentiable = 1

static const op_row rows[] = {
    {ROW(pack), SAMPLES(packs), FAILURES(bad_packs)},
    {ROW(unpack), SAMPLES(unpacks), FAILURES(bad_unpacks)},
};

const op_family ops_packing = {rows, sizeof rows / sizeof *rows};
