/* Rows: matrix products. */
#include <math.h>

#include "ops.h"

static rapt_tensor *call_matmul(rapt_tensor *const *in, const op_sample *s)
{
    (void)s;
    return rapt_matmul(in[0], in[1]);
}

/* variant: bit 0, 1: the operand is used through transpose, as layers and backward passes do. */
static rapt_tensor *call_transposed_matmul(rapt_tensor *const *in, const op_sample *s)
{
    rapt_tensor *a = s->variant & 1 ? rapt_transpose(in[0], -1, -2) : in[0];
    rapt_tensor *b = s->variant & 2 ? rapt_transpose(in[1], -1, -2) : in[1];
    return rapt_matmul(a, b);
}

static rapt_tensor *call_affine(rapt_tensor *const *in, const op_sample *s)
{
    (void)s;
    return rapt_affine(in[0], in[1], in[2]);
}

/* variant: the activation; real: the probability of dropout. */
static rapt_tensor *call_affine_activation(rapt_tensor *const *in, const op_sample *s)
{
    rapt_seed(42);
    return rapt_affine_activation(in[0], in[1], in[2], (rapt_activation)s->variant, s->real[0]);
}

static array with_axes(const array *x, bool turned, bool in_front, bool behind)
{
    array y = *x;
    y.rank = 0;
    if (in_front) y.shape[y.rank++] = 1;
    for (int axis = 0; axis < x->rank; axis++) y.shape[y.rank++] = x->shape[axis];
    if (behind) y.shape[y.rank++] = 1;
    if (!turned) {
        array copy = array_new(y.rank, y.shape);
        for (int64_t i = 0; i < x->count; i++) copy.data[i] = x->data[i];
        return copy;
    }
    int64_t rows = y.shape[y.rank - 2], columns = y.shape[y.rank - 1];
    y.shape[y.rank - 2] = columns;
    y.shape[y.rank - 1] = rows;
    array copy = array_new(y.rank, y.shape);
    for (int64_t i = 0; i < copy.count; i++) {
        int64_t matrix = i / (rows * columns), row = i % (rows * columns) / rows, column = i % rows;
        copy.data[i] = x->data[matrix * rows * columns + column * columns + row];
    }
    return copy;
}

/* c[…, i, j] = Σ a[…, i, k] b[…, k, j] */
static array product(const array *a, const array *b)
{
    int rank = a->rank > b->rank ? a->rank : b->rank;
    int64_t shape[RAPT_MAX_RANK], inner = a->shape[a->rank - 1];
    for (int axis = 0; axis < rank - 2; axis++) {
        int in_a = axis - (rank - a->rank), in_b = axis - (rank - b->rank);
        int64_t size = in_a < 0 ? 1 : a->shape[in_a];
        shape[axis] = size != 1 || in_b < 0 ? size : b->shape[in_b];
    }
    shape[rank - 2] = a->shape[a->rank - 2];
    shape[rank - 1] = b->shape[b->rank - 1];
    array c = array_new(rank, shape);
    double *to = c.data;
    ARRAY_EACH(c, w)
    {
        int64_t at_a[RAPT_MAX_RANK], at_b[RAPT_MAX_RANK];
        for (int axis = 0; axis < rank; axis++) at_a[axis] = at_b[axis] = w.index[axis];
        for (int64_t k = 0; k < inner; k++) {
            at_a[rank - 1] = at_b[rank - 2] = k;
            *to += *array_at(a, rank, at_a) * *array_at(b, rank, at_b);
        }
        to++;
    }
    return c;
}

static array reference_matmul(const array *in, const op_sample *s)
{
    bool left = in[0].rank == 1, right = in[1].rank == 1;
    array a = with_axes(&in[0], s->variant & 1, left, false), b = with_axes(&in[1], s->variant & 2, false, right);
    array c = product(&a, &b);
    if (right) c.rank--; /* the column axis, which has size 1; and the row axis: */
    if (left && !right) c.shape[c.rank - 2] = c.shape[c.rank - 1];
    if (left) c.rank--;
    array_free(&a);
    array_free(&b);
    return c;
}

static array reference_affine(const array *in, const op_sample *s)
{
    const op_sample plain = {.variant = in[1].rank == 2 ? 2 : 0};
    (void)s;
    array c = reference_matmul(in, &plain);
    for (int64_t i = 0; i < c.count && in[2].data; i++) c.data[i] += in[2].data[i % in[2].count];
    return c;
}

static double activated(int activation, double z)
{
    const double u = M_2_SQRTPI * M_SQRT1_2 * (z + 0.044715 * z * z * z);
    switch (activation) {
    case RAPT_ACTIVATION_RELU:
        return z < 0 ? 0 : z;
    case RAPT_ACTIVATION_GELU:
        return 0.5 * z * (1 + erf(z * M_SQRT1_2));
    case RAPT_ACTIVATION_GELU_TANH:
        return 0.5 * z * (1 + tanh(u));
    default:
        return z / (1 + exp(-z));
    }
}

/* The mask is what ones become. */
static array reference_affine_activation(const array *in, const op_sample *s)
{
    RAPT_SCOPE;
    array y = reference_affine(in, s);
    rapt_seed(42);
    array mask = array_read(rapt_drop(rapt_ones(RAPT_FLOAT64, y.rank, y.shape), s->real[0]));
    for (int64_t i = 0; i < y.count; i++)
        y.data[i] = mask.data[i] == 0 ? 0 : activated(s->variant, y.data[i]) / (1 - s->real[0]);
    array_free(&mask);
    return y;
}

static const op_sample products[] = {
    {.in = {SHAPE(2, 3), SHAPE(3, 4)}},
    {.in = {SHAPE(3), SHAPE(3)}},
    {.in = {SHAPE(2, 3), SHAPE(3)}},
    {.in = {SHAPE(3), SHAPE(3, 2)}},
    {.in = {SHAPE(2, 2, 3), SHAPE(3)}},
    {.in = {SHAPE(3), SHAPE(2, 3, 2)}},
    {.in = {SHAPE(2, 2, 3), SHAPE(2, 3, 2)}},
    {.in = {SHAPE(2, 1, 2, 3), SHAPE(2, 3, 1)}},
    {.in = {SHAPE(2, 3), SHAPE(2, 3, 2)}},
    {.in = {SHAPE(2, 2, 3), SHAPE(3, 2)}},
    {.in = {SHAPE(1, 2, 3), SHAPE(3, 3, 1)}},
    {.in = {SHAPE(3, 1, 2), SHAPE(1, 2, 2)}},
    {.in = {SHAPE(1, 1), SHAPE(1, 1)}},
    {.in = {SHAPE(1), SHAPE(1)}},
    {.in = {SHAPE(1, 4), SHAPE(4, 1)}},
    {.in = {SHAPE(0, 3), SHAPE(3, 2)}},
    {.in = {SHAPE(2, 0), SHAPE(0, 3)}},
    {.in = {SHAPE(0), SHAPE(0)}},
    {.in = {SHAPE(2, 3), SHAPE(3, 0)}},
    {.in = {SHAPE(0, 2, 3), SHAPE(3, 2)}},
    {.in = {SHAPE(2, 2, 0), SHAPE(0, 2)}},
    {.in = {SHAPE(150, 130), SHAPE(130, 170)}, .large = true},
    {.in = {SHAPE(40, 33, 21), SHAPE(40, 21, 35)}, .large = true},
    {.in = {SHAPE(12, 37, 50), SHAPE(50, 61)}, .large = true},
    {.in = {SHAPE(300, 400), SHAPE(400)}, .large = true},
    {.in = {SHAPE(3, 20000), SHAPE(20000, 5)}, .large = true},
};

static const op_sample transposed_products[] = {
    {.in = {SHAPE(3, 2), SHAPE(3, 4)}, .variant = 1},
    {.in = {SHAPE(2, 3), SHAPE(4, 3)}, .variant = 2},
    {.in = {SHAPE(3, 2), SHAPE(4, 3)}, .variant = 3},
    {.in = {SHAPE(2, 3, 2), SHAPE(2, 2, 3)}, .variant = 3},
    {.in = {SHAPE(2, 2, 3), SHAPE(4, 3)}, .variant = 2},
    {.in = {SHAPE(0, 2), SHAPE(3, 0)}, .variant = 3},
    {.in = {SHAPE(130, 150), SHAPE(170, 130)}, .variant = 3, .large = true},
};

static const op_sample misfits[] = {
    {.in = {SHAPE(2, 3), SHAPE(4, 5)}, .error = RAPT_ERROR_SHAPE},
    {.in = {SHAPE(3), SHAPE(4)}, .error = RAPT_ERROR_SHAPE},
    {.in = {SCALAR, SHAPE(3, 2)}, .error = RAPT_ERROR_SHAPE},
    {.in = {SHAPE(2, 3), SCALAR}, .error = RAPT_ERROR_SHAPE},
    {.in = {SHAPE(2, 3), SHAPE(1, 2)}, .error = RAPT_ERROR_SHAPE},
    {.in = {SHAPE(2, 2, 3), SHAPE(3, 3, 2)}, .error = RAPT_ERROR_SHAPE},
};

static const op_sample affine_samples[] = {
    {.in = {SHAPE(2, 3), SHAPE(4, 3), SHAPE(4)}},
    {.in = {SHAPE(2, 3), SHAPE(4, 3), ABSENT}},
    {.in = {SHAPE(3), SHAPE(2, 3), SHAPE(2)}},
    {.in = {SHAPE(2, 2, 3), SHAPE(2, 3), SHAPE(2)}},
    {.in = {SHAPE(2, 1, 2, 2), SHAPE(1, 2), SHAPE(1)}},
    {.in = {SHAPE(0, 3), SHAPE(2, 3), SHAPE(2)}},
    {.in = {SHAPE(2, 0), SHAPE(3, 0), SHAPE(3)}},
    {.in = {SHAPE(2, 3), SHAPE(0, 3), SHAPE(0)}},
    {.in = {SHAPE(170, 130), SHAPE(90, 130), SHAPE(90)}, .large = true},
    {.in = {SHAPE(7, 31, 64), SHAPE(77, 64), ABSENT}, .large = true},
};

static const op_sample affine_misfits[] = {
    {.in = {SHAPE(2, 3), SHAPE(3, 4), SHAPE(3)}, .error = RAPT_ERROR_SHAPE},
    {.in = {SHAPE(2, 3), SHAPE(4, 3), SHAPE(3)}, .error = RAPT_ERROR_SHAPE},
    {.in = {SHAPE(2, 3), SHAPE(4, 3), SHAPE(1, 4)}, .error = RAPT_ERROR_SHAPE},
    {.in = {SHAPE(2, 3), SHAPE(3), SHAPE(3)}, .error = RAPT_ERROR_SHAPE},
    {.in = {SCALAR, SHAPE(4, 3), SHAPE(4)}, .error = RAPT_ERROR_SHAPE},
};

#define RELU .variant = RAPT_ACTIVATION_RELU
#define GELU .variant = RAPT_ACTIVATION_GELU
#define GELU_TANH .variant = RAPT_ACTIVATION_GELU_TANH
#define SILU .variant = RAPT_ACTIVATION_SILU

static const op_sample affine_activations[] = {
    {.in = {SHAPE(2, 3), SHAPE(4, 3), SHAPE(4)}, RELU},
    {.in = {SHAPE(2, 3), SHAPE(4, 3), SHAPE(4)}, GELU},
    {.in = {SHAPE(2, 3), SHAPE(4, 3), SHAPE(4)}, GELU_TANH},
    {.in = {SHAPE(2, 3), SHAPE(4, 3), SHAPE(4)}, SILU},
    {.in = {SHAPE(2, 2, 3), SHAPE(5, 3), ABSENT}, RELU, .real = {0.5}},
    {.in = {SHAPE(2, 2, 3), SHAPE(5, 3), SHAPE(5)}, GELU, .real = {0.25}},
    {.in = {SHAPE(3), SHAPE(2, 3), SHAPE(2)}, SILU, .real = {0.5}},
    {.in = {SHAPE(3, 2), SHAPE(2, 2), SHAPE(2)}, RELU, .real = {1}},
    {.in = {SHAPE(3, 2), SHAPE(2, 2), SHAPE(2)}, SILU, .real = {1}},
    {.in = {SHAPE(0, 3), SHAPE(2, 3), SHAPE(2)}, GELU, .real = {0.5}},
    {.in = {SHAPE(2, 0), SHAPE(3, 0), SHAPE(3)}, GELU},
    {.in = {SHAPE(2, 3), SHAPE(0, 3), SHAPE(0)}, RELU},
    {.in = {SHAPE(170, 530), SHAPE(91, 530), SHAPE(91)}, RELU, .real = {0.5}, .large = true},
    {.in = {SHAPE(7, 31, 64), SHAPE(77, 64), ABSENT}, GELU, .large = true},
    {.in = {SHAPE(301, 300), SHAPE(290, 300), SHAPE(290)}, SILU, .real = {0.1}, .large = true},
};

static const op_sample bad_activations[] = {
    {.in = {SHAPE(2, 3), SHAPE(3, 4), SHAPE(3)}, .error = RAPT_ERROR_SHAPE},
    {.in = {SHAPE(2, 3), SHAPE(4, 3), SHAPE(3)}, .error = RAPT_ERROR_SHAPE},
    {.in = {SHAPE(2, 3), SHAPE(4, 3), SHAPE(4)}, .real = {1.5}, .error = RAPT_ERROR_VALUE},
    {.in = {SHAPE(2, 3), SHAPE(4, 3), SHAPE(4)}, .real = {NAN}, .error = RAPT_ERROR_VALUE},
    {.in = {SHAPE(2, 3), SHAPE(4, 3), SHAPE(4)}, .variant = 4, .error = RAPT_ERROR_VALUE},
    {.in = {SHAPE(2, 3), SHAPE(4, 3), SHAPE(4)}, .variant = -1, .error = RAPT_ERROR_VALUE},
};

static const op_row rows[] = {
    {.name = "matmul",
     .call = call_matmul,
     .reference = reference_matmul,
     .differentiable = 3,
     SAMPLES(products),
     FAILURES(misfits)},
    {.name = "matmul",
     .call = call_transposed_matmul,
     .reference = reference_matmul,
     .differentiable = 3,
     SAMPLES(transposed_products),
     .is_combined = true},
    {.name = "affine",
     .call = call_affine,
     .reference = reference_affine,
     .differentiable = 7,
     .optional = 4,
     SAMPLES(affine_samples),
     FAILURES(affine_misfits)},
    {.name = "affine_activation",
     .call = call_affine_activation,
     .reference = reference_affine_activation,
     .differentiable = 7,
     .optional = 4,
     SAMPLES(affine_activations),
     FAILURES(bad_activations)},
};

const op_family ops_matrix = {rows, sizeof rows / sizeof *rows};
