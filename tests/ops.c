/* Inputs made from the samples of the op table, and what is done with them. */
#include "ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

unsigned op_dtypes(const op_row *row)
{
    return row->dtypes ? row->dtypes : floating_dtypes;
}

rapt_dtype op_dtype(const op_row *row)
{
    rapt_dtype dtype = RAPT_FLOAT64;
    while (!(op_dtypes(row) >> dtype & 1)) dtype++;
    return dtype;
}

/* splitmix64 (Steele et al. 2014) */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double uniform(uint64_t *state)
{
    return (double)(next_random(state) >> 11) * 0x1p-53;
}

/* The numbers 0 … count − 1 in random order, stretched to 0 … 63 when there are more. */
static void fill_places(array *a, uint64_t *state)
{
    enum { most = 64 };
    for (int64_t i = 0; i < a->count; i++) {
        int64_t other = (int64_t)(next_random(state) % (uint64_t)(i + 1));
        a->data[i] = a->data[other];
        a->data[other] = (double)i;
    }
    for (int64_t i = 0; i < a->count && a->count > most; i++) a->data[i] = uniform(state) * most;
}

static double value_in(op_domain domain, int input, double place, double count, int64_t limit, uint64_t *state)
{
    switch (domain) {
    case any_value:
        return 0.1 * (place - floor(count / 2)) + (input % 2 ? 0.08 : 0.03);
    case positive:
        return 0.4 + 0.07 * place;
    case nonzero:
        return (0.4 + 0.07 * place) * (next_random(state) % 2 ? 1 : -1);
    case probability:
        return (place + 0.5) / count;
    case small:
        return 1.2 * (place + 0.5) / count - 0.6;
    case boolean:
        return (double)(next_random(state) >> 40 & 1);
    case index64:
    case index32:
        return (double)(next_random(state) % (uint64_t)(limit > 0 ? limit : 1));
    case length64:
        return (double)(next_random(state) % (uint64_t)(limit + 1));
    }
    return NAN;
}

static void fill(array *a, op_domain domain, int input, rapt_dtype dtype, int64_t limit, int draw)
{
    uint64_t state = (uint64_t)(input + 1) * 1000003 + (uint64_t)a->count + (uint64_t)draw * 15485863;
    fill_places(a, &state);
    bool whole = !rapt_dtype_is_floating(dtype) && domain <= small;
    double count = a->count > 64 ? 64 : (double)a->count;
    for (int64_t i = 0; i < a->count; i++) {
        double value = value_in(domain, input, a->data[i], count, limit, &state);
        if (whole) { /* −6 … 6 with ties, for unsigned ones 0 … 6; no 0 where that is no value */
            value = floor(uniform(&state) * 13) - 6;
            if (dtype == RAPT_UINT8) value = fabs(value);
            if (domain != any_value && value == 0) value = 3;
            if (domain == positive) value = fabs(value);
            if (dtype == RAPT_BOOL) value = value > 0;
        }
        a->data[i] = (double)(float)value;
    }
}

static rapt_dtype dtype_of(op_domain domain, rapt_dtype dtype)
{
    switch (domain) {
    case boolean:
        return RAPT_BOOL;
    case index64:
    case length64:
        return RAPT_INT64;
    case index32:
        return RAPT_INT32;
    default:
        return dtype;
    }
}

bool op_case_differentiable(const op_case *c, int input)
{
    return c->inputs[input] && c->row->differentiable >> input & 1;
}

static rapt_tensor *must_be_there(rapt_tensor *input, const char *name)
{
    if (input) return input;
    fprintf(stderr, "no input for %s: %s\n", name, rapt_error());
    abort();
}

op_case op_case_draw(const op_row *row, const op_sample *sample, rapt_dtype dtype, op_layout layout, bool gradient,
                     int draw)
{
    op_case c = {.row = row, .sample = sample};
    int at = snprintf(c.name, sizeof c.name, "%s(", row->name);
    for (; c.count < most_inputs && sample->in[c.count].state != no_input; c.count++) {
        const op_shape *shape = &sample->in[c.count];
        char text[64] = "NULL";
        if (shape->state == given) {
            c.arrays[c.count] = array_new(shape->rank, shape->shape);
            fill(&c.arrays[c.count], row->domain[c.count], c.count, dtype, sample->limit, draw);
            c.inputs[c.count] =
                must_be_there(op_lay_out(&c.arrays[c.count], dtype_of(row->domain[c.count], dtype), layout), row->name);
            if (layout == expanded) {
                array_free(&c.arrays[c.count]);
                c.arrays[c.count] = array_read(c.inputs[c.count]);
            }
            rapt_describe(c.inputs[c.count], text, sizeof text);
        }
        if (gradient && op_case_differentiable(&c, c.count))
            must_be_there(rapt_require_gradient(c.inputs[c.count]), row->name);
        if (at < (int)sizeof c.name)
            at += snprintf(c.name + at, sizeof c.name - (size_t)at, "%s%s", c.count ? ", " : "", text);
    }
    bool fails = sample->error != RAPT_OK;
    if (at < (int)sizeof c.name)
        snprintf(c.name + at, sizeof c.name - (size_t)at, ") %s %d", fails ? "failure" : "sample",
                 (int)(sample - (fails ? row->failures : row->samples)));
    return c;
}

op_case op_case_new(const op_row *row, const op_sample *sample, rapt_dtype dtype, op_layout layout, bool gradient)
{
    return op_case_draw(row, sample, dtype, layout, gradient, 0);
}

void op_case_free(op_case *c)
{
    for (int i = 0; i < c->count; i++) array_free(&c->arrays[i]);
}

rapt_tensor *op_case_call(const op_case *c)
{
    return c->row->call(c->inputs, c->sample);
}

rapt_dtype op_case_result(const op_case *c, rapt_dtype dtype)
{
    return c->row->result ? c->row->result(dtype, c->sample) : dtype;
}

/* The reference of an elementwise op at every place of the shape that its inputs broadcast to. */
static array elementwise(const op_case *c)
{
    array shaped = {0};
    for (int i = 0; i < c->count; i++) {
        const array *a = &c->arrays[i];
        int rank = a->rank > shaped.rank ? a->rank : shaped.rank;
        int64_t shape[RAPT_MAX_RANK];
        for (int axis = 0; axis < rank; axis++) {
            int from = axis - (rank - shaped.rank), other = axis - (rank - a->rank);
            int64_t size = from < 0 ? 1 : shaped.shape[from];
            shape[axis] = size != 1 || other < 0 ? size : a->shape[other];
        }
        array_free(&shaped);
        shaped = array_new(rank, shape);
    }
    double *to = shaped.data;
    ARRAY_EACH(shaped, w)
    {
        double x[most_inputs];
        for (int i = 0; i < c->count; i++) x[i] = *array_at(&c->arrays[i], shaped.rank, w.index);
        *to++ = c->row->element(x, c->sample);
    }
    return shaped;
}

array op_case_reference(const op_case *c, rapt_dtype result)
{
    array y = c->row->element ? elementwise(c) : c->row->reference(c->arrays, c->sample);
    for (int64_t i = 0; i < y.count; i++) {
        if (result == RAPT_UINT8) y.data[i] -= 256 * floor(y.data[i] / 256);
        if (result == RAPT_BOOL) y.data[i] = y.data[i] != 0;
    }
    return y;
}

bool op_case_gradients(const op_case *c, rapt_tensor **gradients)
{
    rapt_tensor *wanted[most_inputs], *found[most_inputs];
    int which[most_inputs], count = 0;
    for (int i = 0; i < c->count; i++) {
        gradients[i] = NULL;
        if (!op_case_differentiable(c, i) || !rapt_requires_gradient(c->inputs[i])) continue;
        which[count] = i;
        wanted[count++] = c->inputs[i];
    }
    rapt_tensor *y = op_case_call(c);
    if (!y) return false;
    array numbers = array_new(rapt_rank(y), rapt_shape(y));
    fill(&numbers, any_value, 0, RAPT_FLOAT64, 0, 0);
    rapt_tensor *cotangent = op_lay_out(&numbers, rapt_get_dtype(y), dense);
    array_free(&numbers);
    if (!cotangent || !rapt_gradients(1, &y, &cotangent, count, wanted, found, 0)) return false;
    for (int i = 0; i < count; i++) gradients[which[i]] = found[i];
    return true;
}

double array_largest(const array *a)
{
    double largest = 0.1;
    for (int64_t i = 0; i < a->count; i++) largest = fmax(largest, fabs(a->data[i]));
    return largest;
}

static bool same_shape(const array *a, const array *b)
{
    bool same = a->rank == b->rank;
    for (int axis = 0; axis < a->rank && same; axis++) same = a->shape[axis] == b->shape[axis];
    return same;
}

static bool same_number(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

int64_t array_differs(const array *got, const array *expected, double relative, double slack)
{
    if (!same_shape(got, expected)) return -2;
    const double largest = array_largest(expected);
    for (int64_t i = 0; i < expected->count; i++) {
        double a = got->data[i], b = expected->data[i];
        if (!same_number(a, b) && !(fabs(a - b) <= relative * (fabs(b) + slack * largest))) return i;
    }
    return -1;
}

double array_error(const array *got, const array *expected, double slack)
{
    if (!same_shape(got, expected)) return (double)INFINITY;
    double worst = 0;
    for (int64_t i = 0; i < expected->count; i++) {
        const double a = got->data[i], b = expected->data[i];
        const double error = same_number(a, b) ? 0 : fabs(a - b) / (fabs(b) + slack);
        worst = isnan(error) ? (double)INFINITY : fmax(worst, error);
    }
    return worst;
}

double op_tolerance(const op_row *row, rapt_dtype dtype)
{
    if (!rapt_dtype_is_floating(dtype)) return 0;
    if (dtype == RAPT_FLOAT32) return row->element ? 6e-7 : 4e-6;
    return row->element ? 4e-15 : 1e-13;
}

double op_slack(const op_row *row)
{
    return row->element ? 0.05 : 1;
}

const char *op_error_name(const op_row *row)
{
    return row->error ? row->error : row->name;
}
