/* Rows: softmax, normalisation over the last axis, dropout. */
#include <math.h>
#include <stdlib.h>

#include "ops.h"

static rapt_tensor *call_softmax(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_softmax(in[0], s->axis);
}

static rapt_tensor *call_log_softmax(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_log_softmax(in[0], s->axis);
}

/* What samples are multiplied by, so that none lies at a kink of these. */
static const double off_kinks = 0.83984375;

static rapt_tensor *move_off_kinks(rapt_tensor *x)
{
    const bool is_floating = rapt_get_dtype(x) == RAPT_FLOAT32 || rapt_get_dtype(x) == RAPT_FLOAT64;
    return is_floating ? rapt_mul_scalar(x, off_kinks) : x;
}

static rapt_tensor *call_sparsemax(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_sparsemax(move_off_kinks(in[0]), s->axis);
}

static rapt_tensor *call_entmax15(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_entmax15(move_off_kinks(in[0]), s->axis);
}

static rapt_tensor *call_layer_normalize(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_layer_normalize(in[0], in[1], in[2], s->real[0]);
}

static rapt_tensor *call_rms_normalize(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_rms_normalize(in[0], in[1], s->real[0]);
}

static rapt_tensor *call_batch_normalize(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_batch_normalize(in[0], in[1], in[2], s->real[0], NULL, NULL);
}

/* The same seed each time makes it a function. */
static rapt_tensor *call_drop(rapt_tensor *const *in, const op_sample *s)
{
    rapt_seed(42);
    return rapt_drop(in[0], s->real[0]);
}

static rapt_tensor *call_masked_softmax(rapt_tensor *const *in, const op_sample *s)
{
    (void)s;
    return rapt_masked_softmax(in[0], RAPT_MASK(.valid_lengths = in[1]));
}

/* Σ exp x along the axis, at the place of each element. */
static array exponential_sums(const array *x, int axis)
{
    array sums = array_new(x->rank, x->shape);
    ARRAY_EACH(*x, w)
    {
        int64_t here = w.index[axis];
        double value = exp(*array_at(x, x->rank, w.index));
        for (w.index[axis] = 0; w.index[axis] < x->shape[axis]; w.index[axis]++)
            *array_at(&sums, x->rank, w.index) += value;
        w.index[axis] = here;
    }
    return sums;
}

static array reference_softmax(const array *in, const op_sample *s)
{
    array y = exponential_sums(&in[0], s->axis < 0 ? s->axis + in[0].rank : s->axis);
    for (int64_t i = 0; i < y.count; i++) y.data[i] = exp(in[0].data[i]) / y.data[i];
    return y;
}

static array reference_log_softmax(const array *in, const op_sample *s)
{
    array y = exponential_sums(&in[0], s->axis < 0 ? s->axis + in[0].rank : s->axis);
    for (int64_t i = 0; i < y.count; i++) y.data[i] = in[0].data[i] - log(y.data[i]);
    return y;
}

static int descend(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* The thresholds by sorting, as the papers have them: of the k largest elements, for the largest k that lie above. */
static double sparsemax_threshold(int64_t n, const double *sorted)
{
    double sum = 0, threshold = 0;
    for (int64_t k = 1; k <= n; k++) {
        sum += sorted[k - 1];
        if (1 + (double)k * sorted[k - 1] > sum) threshold = (sum - 1) / (double)k;
    }
    return threshold;
}

static double entmax15_threshold(int64_t n, const double *sorted)
{
    double sum = 0, squares = 0, threshold = 0;
    for (int64_t k = 1; k <= n; k++) {
        const double z = sorted[k - 1] / 2, count = (double)k;
        sum += z;
        squares += z * z;
        const double mean = sum / count, rest = (1 - (squares - count * mean * mean)) / count;
        if (rest >= 0 && mean - sqrt(rest) <= z) threshold = mean - sqrt(rest);
    }
    return threshold;
}

static array reference_sparse(const array *x, int axis, bool is_entmax)
{
    array y = array_new(x->rank, x->shape);
    const int64_t n = x->shape[axis];
    double *row = malloc((size_t)(n + 1) * sizeof *row);
    ARRAY_EACH(*x, w)
    {
        if (w.index[axis] > 0) continue; /* a row at its first element */
        for (int64_t i = 0; i < n; i++, w.index[axis]++) row[i] = off_kinks * *array_at(x, x->rank, w.index);
        qsort(row, (size_t)n, sizeof *row, descend);
        const double threshold = is_entmax ? entmax15_threshold(n, row) : sparsemax_threshold(n, row);
        for (w.index[axis] = 0; w.index[axis] < n; w.index[axis]++) {
            const double value = off_kinks * *array_at(x, x->rank, w.index);
            const double above = fmax((is_entmax ? value / 2 : value) - threshold, 0);
            *array_at(&y, y.rank, w.index) = is_entmax ? above * above : above;
        }
        w.index[axis] = 0;
    }
    free(row);
    return y;
}

static array reference_sparsemax(const array *in, const op_sample *s)
{
    return reference_sparse(&in[0], s->axis < 0 ? s->axis + in[0].rank : s->axis, false);
}

static array reference_entmax15(const array *in, const op_sample *s)
{
    return reference_sparse(&in[0], s->axis < 0 ? s->axis + in[0].rank : s->axis, true);
}

static array normalize(const array *in, double epsilon, bool centered, const array *weight, const array *bias)
{
    array y = array_new(in[0].rank, in[0].shape);
    int64_t width = y.shape[y.rank - 1];
    for (int64_t row = 0; row < y.count; row += width) {
        const double *x = in[0].data + row;
        double mean = 0, squares = 0;
        for (int64_t i = 0; i < width && centered; i++) mean += x[i] / (double)width;
        for (int64_t i = 0; i < width; i++) squares += (x[i] - mean) * (x[i] - mean) / (double)width;
        for (int64_t i = 0; i < width; i++) {
            y.data[row + i] = (x[i] - mean) / sqrt(squares + epsilon) * (weight->data ? weight->data[i] : 1);
            if (bias && bias->data) y.data[row + i] += bias->data[i];
        }
    }
    return y;
}

static array reference_layer_normalize(const array *in, const op_sample *s)
{
    return normalize(in, s->real[0], true, &in[1], &in[2]);
}

static array reference_rms_normalize(const array *in, const op_sample *s)
{
    return normalize(in, s->real[0], false, &in[1], NULL);
}

static array reference_batch_normalize(const array *in, const op_sample *s)
{
    array y = array_new(in[0].rank, in[0].shape);
    const double count = (double)(y.count / (y.shape[1] ? y.shape[1] : 1));
    for (int64_t channel = 0; channel < y.shape[1]; channel++) {
        double mean = 0, squares = 0;
        ARRAY_EACH(y, w) if (w.index[1] == channel) mean += *array_at(&in[0], y.rank, w.index) / count;
        ARRAY_EACH(y, w)
        if (w.index[1] == channel) squares += pow(*array_at(&in[0], y.rank, w.index) - mean, 2) / count;
        ARRAY_EACH(y, w)
        {
            if (w.index[1] != channel) continue;
            *array_at(&y, y.rank, w.index) = (*array_at(&in[0], y.rank, w.index) - mean) / sqrt(squares + s->real[0]) *
                                                 (in[1].data ? in[1].data[channel] : 1) +
                                             (in[2].data ? in[2].data[channel] : 0);
        }
    }
    return y;
}

/* x times the mask, which is what ones become. */
static array reference_drop(const array *in, const op_sample *s)
{
    RAPT_SCOPE;
    rapt_seed(42);
    array y = array_read(rapt_drop(rapt_ones(RAPT_FLOAT64, in[0].rank, in[0].shape), s->real[0]));
    for (int64_t i = 0; i < y.count; i++) y.data[i] = y.data[i] != 0 ? in[0].data[i] / (1 - s->real[0]) : 0;
    return y;
}

static array reference_masked_softmax(const array *in, const op_sample *s)
{
    const array *x = &in[0];
    array y = array_new(x->rank, x->shape);
    (void)s;
    for (int64_t row = 0; row < x->shape[0] * x->shape[1]; row++) {
        int64_t place[] = {row / x->shape[1], row % x->shape[1]};
        double sum = 0, length = in[1].data ? *array_at(&in[1], in[1].rank, place) : (double)x->shape[2];
        const double *from = x->data + row * x->shape[2];
        double *to = y.data + row * x->shape[2];
        for (int64_t key = 0; key < x->shape[2]; key++)
            if ((double)key < length) sum += exp(from[key]);
        for (int64_t key = 0; key < x->shape[2]; key++) to[key] = (double)key < length ? exp(from[key]) / sum : 0;
    }
    return y;
}

#define FAIL .error = RAPT_ERROR_SHAPE

static const op_sample along[] = {
    {.in = {SHAPE(3, 4)}, .axis = -1},
    {.in = {SHAPE(3, 4)}, .axis = 0},
    {.in = {SHAPE(2, 3, 2)}, .axis = 1},
    {.in = {SHAPE(5)}, .axis = 0},
    {.in = {SHAPE(1)}, .axis = 0},
    {.in = {SHAPE(3, 1)}, .axis = -1},
    {.in = {SHAPE(0, 3)}, .axis = 1},
    {.in = {SHAPE(3, 0)}, .axis = 1},
    {.in = {SHAPE(0, 3)}, .axis = 0},
    {.in = {SHAPE(2, 19)}, .axis = 1},
    {.in = {SHAPE(2, 3, 4, 5)}, .axis = 1},
    {.in = {SHAPE(3, 65)}, .axis = 0},
    {.in = {SHAPE(0, 17)}, .axis = 0},
    {.in = {SHAPE(97, 307)}, .axis = 1, .large = true},
    {.in = {SHAPE(307, 97)}, .axis = 0, .large = true},
};
static const op_sample bad_axes[] = {{.in = {SHAPE(2, 3)}, .axis = 2, FAIL},
                                     {.in = {SHAPE(2, 3)}, .axis = -3, FAIL},
                                     {.in = {SCALAR}, .axis = 0, FAIL}};
static const op_sample layers[] = {
    {.in = {SHAPE(3, 4), SHAPE(4), SHAPE(4)}, .real = {1e-5}},
    {.in = {SHAPE(2, 5), ABSENT, SHAPE(5)}, .real = {1e-5}},
    {.in = {SHAPE(2, 5), SHAPE(5), ABSENT}, .real = {1e-2}},
    {.in = {SHAPE(2, 2, 3), ABSENT, ABSENT}, .real = {0}},
    {.in = {SHAPE(6), SHAPE(6), SHAPE(6)}, .real = {1e-5}},
    {.in = {SHAPE(0, 4), SHAPE(4), SHAPE(4)}, .real = {1e-5}},
    {.in = {SHAPE(3, 0), SHAPE(0), SHAPE(0)}, .real = {1e-5}},
    {.in = {SHAPE(1, 19), SHAPE(19), SHAPE(19)}, .real = {0.5}},
    {.in = {SHAPE(131, 307), SHAPE(307), SHAPE(307)}, .real = {1e-5}, .large = true},
    {.in = {SHAPE(5003, 8), SHAPE(8), SHAPE(8)}, .real = {1e-5}, .large = true},
};
static const op_sample bad_layers[] = {{.in = {SHAPE(3, 4), SHAPE(3), SHAPE(4)}, FAIL},
                                       {.in = {SHAPE(3, 4), SHAPE(4), SHAPE(1, 4)}, FAIL},
                                       {.in = {SCALAR, ABSENT, ABSENT}, FAIL},
                                       {.in = {SHAPE(3), ABSENT, ABSENT}, .real = {-1}, .error = RAPT_ERROR_VALUE},
                                       {.in = {SHAPE(3), ABSENT, ABSENT}, .real = {NAN}, .error = RAPT_ERROR_VALUE}};
static const op_sample roots[] = {
    {.in = {SHAPE(3, 4), SHAPE(4)}, .real = {1e-6}},
    {.in = {SHAPE(2, 2, 3), ABSENT}, .real = {0}},
    {.in = {SHAPE(6), SHAPE(6)}, .real = {1e-2}},
    {.in = {SHAPE(0, 4), SHAPE(4)}, .real = {1e-6}},
    {.in = {SHAPE(3, 0), SHAPE(0)}, .real = {1e-6}},
    {.in = {SHAPE(131, 307), SHAPE(307)}, .real = {1e-6}, .large = true},
};
static const op_sample bad_roots[] = {{.in = {SHAPE(3, 4), SHAPE(3)}, FAIL},
                                      {.in = {SCALAR, ABSENT}, FAIL},
                                      {.in = {SHAPE(3), ABSENT}, .real = {-1}, .error = RAPT_ERROR_VALUE}};
static const op_sample batches[] = {
    {.in = {SHAPE(5, 3), SHAPE(3), SHAPE(3)}, .real = {1e-5}},
    {.in = {SHAPE(2, 3, 4), ABSENT, SHAPE(3)}, .real = {1e-5}},
    {.in = {SHAPE(3, 2, 4, 5), SHAPE(2), ABSENT}, .real = {1e-2}},
    {.in = {SHAPE(1, 2, 3), ABSENT, ABSENT}, .real = {0}},
    {.in = {SHAPE(1, 3), SHAPE(3), SHAPE(3)}, .real = {1e-5}},
    {.in = {SHAPE(0, 3), SHAPE(3), SHAPE(3)}, .real = {1e-5}},
    {.in = {SHAPE(2, 3, 0), SHAPE(3), SHAPE(3)}, .real = {1e-5}},
    {.in = {SHAPE(2, 0, 3), SHAPE(0), SHAPE(0)}, .real = {1e-5}},
    {.in = {SHAPE(5, 31, 17, 19), SHAPE(31), SHAPE(31)}, .real = {1e-5}, .large = true},
    {.in = {SHAPE(7, 1, 1), SHAPE(1), ABSENT}, .real = {1e-2}}, /* all equal where expanded */
    {.in = {SHAPE(3, 600), SHAPE(600), SHAPE(600)}, .real = {1e-5}, .large = true},
    {.in = {SHAPE(1031, 41), SHAPE(41), SHAPE(41)}, .real = {1e-5}, .large = true},
};
static const op_sample bad_batches[] = {{.in = {SHAPE(3, 4), SHAPE(3), SHAPE(4)}, FAIL},
                                        {.in = {SHAPE(3, 4), SHAPE(4), SHAPE(1, 4)}, FAIL},
                                        {.in = {SHAPE(3), ABSENT, ABSENT}, FAIL},
                                        {.in = {SHAPE(3, 4), ABSENT, ABSENT}, .real = {-1}, .error = RAPT_ERROR_VALUE},
                                        {.in = {SHAPE(3, 4), ABSENT, ABSENT},
                                         .real = {NAN},
                                         .error = RAPT_ERROR_VALUE}};
static const op_sample drops[] = {{.in = {SHAPE(3, 5)}, .real = {0.5}},
                                  {.in = {SHAPE(7)}, .real = {0}},
                                  {.in = {SHAPE(2, 3)}, .real = {1}},
                                  {.in = {SCALAR}, .real = {0.25}},
                                  {.in = {SHAPE(0, 2)}, .real = {0.5}},
                                  {.in = {SHAPE(61, 1031)}, .real = {0.1}, .large = true}};
static const op_sample bad_drops[] = {{.in = {SHAPE(3)}, .real = {-0.1}, .error = RAPT_ERROR_VALUE},
                                      {.in = {SHAPE(3)}, .real = {1.1}, .error = RAPT_ERROR_VALUE},
                                      {.in = {SHAPE(3)}, .real = {NAN}, .error = RAPT_ERROR_VALUE}};
static const op_sample masks[] = {{.in = {SHAPE(3, 2, 4), SHAPE(3)}, .limit = 4},
                                  {.in = {SHAPE(2, 3, 4), SHAPE(2, 3)}, .limit = 4},
                                  {.in = {SHAPE(2, 2, 3), ABSENT}, .limit = 3},
                                  {.in = {SHAPE(2, 2, 3), SHAPE(2)}, .limit = 0},
                                  {.in = {SHAPE(0, 2, 3), SHAPE(0)}, .limit = 3},
                                  {.in = {SHAPE(2, 2, 0), SHAPE(2)}, .limit = 3},
                                  {.in = {SHAPE(2, 2, 3), SHAPE(2)}, .limit = 9},
                                  {.in = {SHAPE(13, 17, 131), SHAPE(13, 17)}, .limit = 131, .large = true}};
static const op_sample bad_masks[] = {{.in = {SHAPE(2, 3), SHAPE(2)}, .limit = 3, FAIL},
                                      {.in = {SHAPE(2, 3, 4), SHAPE(3)}, .limit = 3, FAIL},
                                      {.in = {SHAPE(2, 3, 4), SHAPE(2, 4)}, .limit = 3, FAIL},
                                      {.in = {SHAPE(2, 3, 4), SCALAR}, .limit = 3, FAIL}};

#define ROW(op) .name = #op, .call = call_##op, .reference = reference_##op

static const op_row rows[] = {
    {ROW(softmax), .differentiable = 1, SAMPLES(along), FAILURES(bad_axes)},
    {ROW(log_softmax), .differentiable = 1, SAMPLES(along), FAILURES(bad_axes)},
    {ROW(sparsemax), .is_combined = true, .differentiable = 1, SAMPLES(along), FAILURES(bad_axes)},
    {ROW(sparsemax), .is_combined = true, .domain = {small}, .differentiable = 1, SAMPLES(along)},
    {ROW(entmax15), .is_combined = true, .differentiable = 1, SAMPLES(along), FAILURES(bad_axes)},
    {ROW(entmax15), .is_combined = true, .domain = {small}, .differentiable = 1, SAMPLES(along)},
    {ROW(layer_normalize), .differentiable = 7, .optional = 6, SAMPLES(layers), FAILURES(bad_layers)},
    {ROW(rms_normalize), .differentiable = 3, .optional = 2, SAMPLES(roots), FAILURES(bad_roots)},
    {ROW(batch_normalize), .differentiable = 7, .optional = 6, SAMPLES(batches), FAILURES(bad_batches)},
    {ROW(drop), .differentiable = 1, SAMPLES(drops), FAILURES(bad_drops)},
    {ROW(masked_softmax), .domain = {any_value, length64}, .differentiable = 1, .optional = 2, SAMPLES(masks),
     FAILURES(bad_masks)},
    {ROW(masked_softmax), .domain = {any_value, any_value}, .differentiable = 1, .optional = 2, SAMPLES(masks)},
};

const op_family ops_normalize = {rows, sizeof rows / sizeof *rows};
