/* Rows: losses. The sample's variant is the reduction. */
#include <math.h>

#include "ops.h"

static rapt_cross_entropy_options options_of(const op_sample *s)
{
    return (rapt_cross_entropy_options){.has_ignore_index = s->keep,
                                        .ignore_index = s->number[0],
                                        .label_smoothing = s->real[0],
                                        .reduction = (rapt_reduction)s->variant};
}

static rapt_tensor *call_cross_entropy(rapt_tensor *const *in, const op_sample *s)
{
    rapt_cross_entropy_options options = options_of(s);
    return rapt_cross_entropy(in[0], in[1], s->axis_count ? NULL : &options);
}

static rapt_tensor *call_linear_cross_entropy(rapt_tensor *const *in, const op_sample *s)
{
    rapt_cross_entropy_options options = options_of(s);
    return rapt_linear_cross_entropy(in[0], in[1], in[2], in[3], s->axis_count ? NULL : &options);
}

static rapt_tensor *call_nll_loss(rapt_tensor *const *in, const op_sample *s)
{
    rapt_cross_entropy_options options = options_of(s);
    return rapt_nll_loss(in[0], in[1], s->axis_count ? NULL : &options);
}

static rapt_tensor *call_huber_loss(rapt_tensor *const *in, const op_sample *s)
{
    return rapt_huber_loss(in[0], in[1], s->real[0], (rapt_reduction)s->variant);
}

#define PAIR_LOSS(name)                                                                                                \
    static rapt_tensor *call_##name(rapt_tensor *const *in, const op_sample *s)                                        \
    {                                                                                                                  \
        return rapt_##name(in[0], in[1], (rapt_reduction)s->variant);                                                  \
    }

PAIR_LOSS(mse_loss)
PAIR_LOSS(l1_loss)
PAIR_LOSS(bce_with_logits)
PAIR_LOSS(kl_div)

static array reduced(array losses, const op_sample *s, double counted)
{
    if (s->variant == RAPT_REDUCE_NONE) return losses;
    array y = array_new(0, NULL);
    for (int64_t i = 0; i < losses.count; i++) y.data[0] += losses.data[i];
    if (s->variant == RAPT_REDUCE_MEAN) y.data[0] = counted > 0 ? y.data[0] / counted : 0;
    array_free(&losses);
    return y;
}

/* −Σ q log p over the classes of each row, q = (1 − ε) one-hot + ε / classes. x: log p, or logits. */
static array class_losses(const array *in, const op_sample *s, bool logits)
{
    array losses = array_new(in[1].rank, in[1].shape);
    int64_t classes = in[0].shape[in[0].rank - 1];
    double counted = 0;
    for (int64_t row = 0; row < losses.count; row++) {
        const double *x = in[0].data + row * classes;
        int64_t target = (int64_t)in[1].data[row];
        if (s->keep && target == s->number[0]) continue;
        double sum = 0;
        for (int64_t k = 0; k < classes; k++) sum += exp(x[k]);
        for (int64_t k = 0; k < classes; k++) {
            double q = (k == target ? 1 - s->real[0] : 0) + s->real[0] / (double)classes;
            losses.data[row] -= q * (x[k] - (logits ? log(sum) : 0));
        }
        counted++;
    }
    return reduced(losses, s, counted);
}

static array reference_cross_entropy(const array *in, const op_sample *s)
{
    return class_losses(in, s, true);
}

static array reference_nll_loss(const array *in, const op_sample *s)
{
    return class_losses(in, s, false);
}

static array reference_linear_cross_entropy(const array *in, const op_sample *s)
{
    const int rank = in[0].rank;
    int64_t shape[RAPT_MAX_RANK], size = in[0].shape[rank - 1], number = in[1].shape[0];
    for (int axis = 0; axis < rank; axis++) shape[axis] = axis < rank - 1 ? in[0].shape[axis] : number;
    array logits[] = {array_new(rank, shape), in[3]};
    for (int64_t i = 0; i < logits[0].count; i++) {
        const double *x = in[0].data + i / number * size, *weight = in[1].data + i % number * size;
        if (in[2].data) logits[0].data[i] = in[2].data[i % number];
        for (int64_t k = 0; k < size; k++) logits[0].data[i] += x[k] * weight[k];
    }
    array losses = class_losses(logits, s, true);
    array_free(&logits[0]);
    return losses;
}

typedef double pair_loss(double x, double target, const op_sample *s);

static array pair_losses(const array *in, const op_sample *s, pair_loss *loss)
{
    int rank = in[0].rank > in[1].rank ? in[0].rank : in[1].rank;
    int64_t shape[RAPT_MAX_RANK];
    for (int axis = 0; axis < rank; axis++) {
        int a = axis - (rank - in[0].rank), b = axis - (rank - in[1].rank);
        int64_t size = a < 0 ? 1 : in[0].shape[a];
        shape[axis] = size != 1 || b < 0 ? size : in[1].shape[b];
    }
    array losses = array_new(rank, shape);
    double *to = losses.data;
    ARRAY_EACH(losses, w) *to++ = loss(*array_at(&in[0], rank, w.index), *array_at(&in[1], rank, w.index), s);
    return reduced(losses, s, (double)losses.count);
}

static double squared(double x, double target, const op_sample *s)
{
    (void)s;
    return (x - target) * (x - target);
}

static double absolute(double x, double target, const op_sample *s)
{
    (void)s;
    return fabs(x - target);
}

static double huber(double x, double target, const op_sample *s)
{
    double d = fabs(x - target), delta = s->real[0];
    return d <= delta ? d * d / 2 : delta * (d - delta / 2);
}

static double binary(double x, double target, const op_sample *s)
{
    double p = 1 / (1 + exp(-x));
    (void)s;
    return -(target * log(p) + (1 - target) * log(1 - p));
}

static double divergence(double x, double target, const op_sample *s)
{
    (void)s;
    return target == 0 ? 0 : target * (log(target) - x);
}

#define PAIR_REFERENCE(name, loss)                                                                                     \
    static array reference_##name(const array *in, const op_sample *s)                                                 \
    {                                                                                                                  \
        return pair_losses(in, s, loss);                                                                               \
    }

PAIR_REFERENCE(mse_loss, squared)
PAIR_REFERENCE(l1_loss, absolute)
PAIR_REFERENCE(huber_loss, huber)
PAIR_REFERENCE(bce_with_logits, binary)
PAIR_REFERENCE(kl_div, divergence)

#define FAIL .error = RAPT_ERROR_SHAPE
#define BAD_VALUE .error = RAPT_ERROR_VALUE
#define MEAN .variant = RAPT_REDUCE_MEAN
#define SUM .variant = RAPT_REDUCE_SUM
#define NONE .variant = RAPT_REDUCE_NONE
#define IGNORE(index) .keep = true, .number = {index}

/* axis_count 1: options are NULL. keep: number[0] is ignored. real[0]: label smoothing. */
#define CLASS_SAMPLES                                                                                                  \
    {.in = {SHAPE(3, 4), SHAPE(3)}, .limit = 4, MEAN}, {.in = {SHAPE(3, 4), SHAPE(3)}, .limit = 4, .axis_count = 1},   \
        {.in = {SHAPE(3, 4), SHAPE(3)}, .limit = 4, SUM}, {.in = {SHAPE(2, 3, 4), SHAPE(2, 3)}, .limit = 4, NONE},     \
        {.in = {SHAPE(5), SCALAR}, .limit = 5, MEAN}, {.in = {SHAPE(6, 3), SHAPE(6)}, .limit = 3, IGNORE(1), MEAN},    \
        {.in = {SHAPE(6, 3), SHAPE(6)}, .limit = 3, IGNORE(2), NONE},                                                  \
        {.in = {SHAPE(0, 3), SHAPE(0)}, .limit = 3, SUM},                                                              \
        {.in = {SHAPE(2, 3), SHAPE(2)}, .limit = 1, IGNORE(0), MEAN},                                                  \
        {.in = {SHAPE(2, 1), SHAPE(2)}, .limit = 1, MEAN}, {.in = {SHAPE(0, 3), SHAPE(0)}, .limit = 3, MEAN},          \
    {                                                                                                                  \
        .in = {SHAPE(203, 307), SHAPE(203)}, .limit = 307, IGNORE(5), MEAN, .large = true                              \
    }
static const op_sample classes[] = {CLASS_SAMPLES};
static const op_sample smoothed[] = {CLASS_SAMPLES,
                                     {.in = {SHAPE(3, 4), SHAPE(3)}, .limit = 4, .real = {0.1}, MEAN},
                                     {.in = {SHAPE(4, 3), SHAPE(4)}, .limit = 3, .real = {1}, IGNORE(1), SUM},
                                     {.in = {SHAPE(4, 3), SHAPE(4)}, .limit = 3, .real = {0.3}, IGNORE(0), NONE}};
#define BAD_CLASSES                                                                                                    \
    {.in = {SHAPE(3, 4), SHAPE(3)}, .limit = 1000, BAD_VALUE}, {.in = {SHAPE(3, 4), SHAPE(4)}, .limit = 3, FAIL},      \
        {.in = {SHAPE(3, 4), SHAPE(3, 4)}, .limit = 3, FAIL}, {.in = {SCALAR, SCALAR}, .limit = 1, FAIL},              \
    {                                                                                                                  \
        .in = {SHAPE(3, 4), SHAPE(3)}, .limit = 3, .variant = 3, BAD_VALUE                                             \
    }
static const op_sample bad_classes[] = {BAD_CLASSES,
                                        {.in = {SHAPE(3, 4), SHAPE(3)}, .limit = 3, .real = {-0.1}, BAD_VALUE},
                                        {.in = {SHAPE(3, 4), SHAPE(3)}, .limit = 3, .real = {1.1}, BAD_VALUE},
                                        {.in = {SHAPE(3, 4), SHAPE(3)}, .limit = 3, .real = {NAN}, BAD_VALUE}};
static const op_sample bad_smoothing[] = {BAD_CLASSES,
                                          {.in = {SHAPE(3, 4), SHAPE(3)}, .limit = 3, .real = {0.1}, BAD_VALUE}};

static const op_sample projected[] = {
    {.in = {SHAPE(3, 2), SHAPE(4, 2), SHAPE(4), SHAPE(3)}, .limit = 4, MEAN},
    {.in = {SHAPE(3, 2), SHAPE(4, 2), ABSENT, SHAPE(3)}, .limit = 4, .axis_count = 1},
    {.in = {SHAPE(2, 2, 3), SHAPE(4, 3), SHAPE(4), SHAPE(2, 2)}, .limit = 4, .real = {0.1}, SUM},
    {.in = {SHAPE(2, 3, 2), SHAPE(3, 2), SHAPE(3), SHAPE(2, 3)}, .limit = 3, .real = {0.3}, IGNORE(1), NONE},
    {.in = {SHAPE(3), SHAPE(5, 3), SHAPE(5), SCALAR}, .limit = 5, MEAN},
    {.in = {SHAPE(3), SHAPE(5, 3), ABSENT, SCALAR}, .limit = 5, NONE},
    {.in = {SHAPE(6, 3), SHAPE(3, 3), SHAPE(3), SHAPE(6)}, .limit = 3, IGNORE(1), MEAN},
    {.in = {SHAPE(0, 3), SHAPE(3, 3), SHAPE(3), SHAPE(0)}, .limit = 3, MEAN},
    {.in = {SHAPE(2, 0), SHAPE(3, 0), SHAPE(3), SHAPE(2)}, .limit = 3, SUM},
    {.in = {SHAPE(0, 3), SHAPE(0, 3), SHAPE(0), SHAPE(0)}, .limit = 1, NONE},
    {.in = {SHAPE(2, 3), SHAPE(2, 3), SHAPE(2), SHAPE(2)}, .limit = 1, IGNORE(0), MEAN},
    {.in = {SHAPE(203, 17), SHAPE(307, 17), SHAPE(307), SHAPE(203)}, .limit = 307, IGNORE(5), MEAN, .large = true},
    {.in = {SHAPE(300, 3), SHAPE(16000, 3), SHAPE(16000), SHAPE(300)}, .limit = 307, SUM, .large = true},
};
static const op_sample bad_projected[] =
    {{.in = {SHAPE(3, 2), SHAPE(4, 2), SHAPE(4), SHAPE(3)}, .limit = 1000, BAD_VALUE},
     {.in = {SHAPE(3, 2), SHAPE(4, 3), SHAPE(4), SHAPE(3)}, .limit = 3, FAIL},
     {.in = {SHAPE(3, 2), SHAPE(4, 2), SHAPE(3), SHAPE(3)}, .limit = 3, FAIL},
     {.in = {SHAPE(3, 2), SHAPE(2), SHAPE(2), SHAPE(3)}, .limit = 2, FAIL},
     {.in = {SHAPE(3, 2), SHAPE(4, 2), SHAPE(4), SHAPE(2)}, .limit = 3, FAIL},
     {.in = {SCALAR, SHAPE(4, 2), SHAPE(4), SCALAR}, .limit = 3, FAIL},
     {.in = {SHAPE(3, 2), SHAPE(4, 2), SHAPE(4), SHAPE(3)}, .limit = 3, .variant = 3, BAD_VALUE},
     {.in = {SHAPE(3, 2), SHAPE(4, 2), SHAPE(4), SHAPE(3)}, .limit = 3, .real = {1.1}, BAD_VALUE}};

#define PAIRS(...)                                                                                                     \
    {.in = {SHAPE(3, 4), SHAPE(3, 4)}, MEAN, __VA_ARGS__}, {.in = {SHAPE(3, 4), SHAPE(3, 4)}, SUM, __VA_ARGS__},       \
        {.in = {SHAPE(2, 3), SHAPE(2, 3)}, NONE, __VA_ARGS__}, {.in = {SHAPE(2, 3), SHAPE(3)}, MEAN, __VA_ARGS__},     \
        {.in = {SHAPE(4), SCALAR}, NONE, __VA_ARGS__}, {.in = {SCALAR, SCALAR}, MEAN, __VA_ARGS__},                    \
        {.in = {SHAPE(0, 3), SHAPE(0, 3)}, SUM, __VA_ARGS__}, {.in = {SHAPE(0), SHAPE(0)}, NONE, __VA_ARGS__},         \
    {                                                                                                                  \
        .in = {SHAPE(61, 1031), SHAPE(61, 1031)}, MEAN, .large = true, __VA_ARGS__                                     \
    }
static const op_sample pairs[] = {PAIRS(.axis = 0)};
static const op_sample huber_pairs[] = {PAIRS(.real = {1}),
                                        {.in = {SHAPE(5), SHAPE(5)}, .real = {0.5}, MEAN},
                                        {.in = {SHAPE(5), SHAPE(5)}, .real = {100}, SUM}};
static const op_sample misfits[] = {{.in = {SHAPE(2, 3), SHAPE(2, 4)}, FAIL},
                                    {.in = {SHAPE(2, 3), SHAPE(2, 3)}, .variant = 3, BAD_VALUE},
                                    {.in = {SHAPE(2, 3), SHAPE(2, 3)}, .variant = -1, BAD_VALUE}};
static const op_sample bad_hubers[] = {{.in = {SHAPE(2, 3), SHAPE(2, 4)}, .real = {1}, FAIL},
                                       {.in = {SHAPE(3), SHAPE(3)}, .real = {1}, .variant = 3, BAD_VALUE},
                                       {.in = {SHAPE(3), SHAPE(3)}, .real = {0}, BAD_VALUE},
                                       {.in = {SHAPE(3), SHAPE(3)}, .real = {-1}, BAD_VALUE},
                                       {.in = {SHAPE(3), SHAPE(3)}, .real = {NAN}, BAD_VALUE}};

#define ROW(op) .name = #op, .call = call_##op, .reference = reference_##op
#define PAIR_ROW(op) ROW(op), .is_elementwise = true, .differentiable = 3

static const op_row rows[] = {
    {ROW(cross_entropy), .domain = {any_value, index64}, .differentiable = 1, SAMPLES(smoothed), FAILURES(bad_classes)},
    {ROW(cross_entropy), .domain = {any_value, index32}, .differentiable = 1, SAMPLES(smoothed)},
    {ROW(linear_cross_entropy), .domain = {any_value, any_value, any_value, index64}, .differentiable = 7,
     .optional = 4, SAMPLES(projected), FAILURES(bad_projected)},
    {ROW(linear_cross_entropy), .domain = {any_value, any_value, any_value, index32}, .differentiable = 7,
     .optional = 4, SAMPLES(projected)},
    {ROW(nll_loss), .domain = {any_value, index64}, .differentiable = 1, SAMPLES(classes), FAILURES(bad_smoothing)},
    {ROW(nll_loss), .domain = {any_value, index32}, .differentiable = 1, SAMPLES(classes)},
    {PAIR_ROW(mse_loss), SAMPLES(pairs), FAILURES(misfits)},
    {PAIR_ROW(l1_loss), SAMPLES(pairs), FAILURES(misfits)},
    {PAIR_ROW(huber_loss), SAMPLES(huber_pairs), FAILURES(bad_hubers)},
    {PAIR_ROW(bce_with_logits), .domain = {any_value, probability}, SAMPLES(pairs), FAILURES(misfits)},
    {PAIR_ROW(kl_div), .domain = {any_value, probability}, SAMPLES(pairs), FAILURES(misfits)},
};

const op_family ops_loss = {rows, sizeof rows / sizeof *rows};
