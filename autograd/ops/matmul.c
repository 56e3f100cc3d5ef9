/* Matrix products: matmul, and affine, which is a linear layer. */
#include <string.h>

#include "affine.h"

static bool check_dtypes(const char *op, const rapt_tensor *a, const rapt_tensor *b)
{
    if (rapt_is_floating(a) && a->dtype == b->dtype) return true;
    return rapt_fail(RAPT_ERROR_DTYPE, op, "inputs of %s and %s; one floating dtype expected " RAPT_CAST_CURE,
                     rapt_dtype_name(a->dtype), rapt_dtype_name(b->dtype));
}

/* A header of x with an axis of size 1 put in, for use in one call. */
static rapt_tensor with_axis(const rapt_tensor *x, int added)
{
    rapt_tensor wide = rapt_header_of(x);
    wide.rank = (uint8_t)(x->rank + 1);
    for (int axis = x->rank; axis > added; axis--) {
        wide.shape[axis] = x->shape[axis - 1];
        wide.strides[axis] = x->strides[axis - 1];
    }
    wide.shape[added] = 1;
    wide.strides[added] = 1;
    return wide;
}

static int64_t rows(const rapt_tensor *matrices)
{
    return matrices->shape[matrices->rank - 2];
}

static int64_t columns(const rapt_tensor *matrices)
{
    return matrices->shape[matrices->rank - 1];
}

/* The size that two sizes broadcast to, or −1. */
static int64_t broadcast_size(int64_t a, int64_t b)
{
    return a == b || b == 1 ? a : a == 1 ? b : -1;
}

/* The shape of the product of matrices, without the axis that a vector does not have; its rank, or −1. */
static int product_shape(const rapt_tensor *a, const rapt_tensor *b, bool left_vector, bool right_vector,
                         int64_t *shape)
{
    int rank = (a->rank > b->rank ? a->rank : b->rank) - 2;
    if (columns(a) != rows(b)) return -1;
    for (int i = 1; i <= rank; i++) {
        int64_t size_a = i <= a->rank - 2 ? a->shape[a->rank - 2 - i] : 1;
        int64_t size_b = i <= b->rank - 2 ? b->shape[b->rank - 2 - i] : 1;
        shape[rank - i] = broadcast_size(size_a, size_b);
        if (shape[rank - i] < 0) return -1;
    }
    if (!left_vector) shape[rank++] = rows(a);
    if (!right_vector) shape[rank++] = columns(b);
    return rank;
}

/* Matrices that do not fit because of their inner sizes: would they, if one of them was transposed? */
static const char *cure_of(const rapt_tensor *a, const rapt_tensor *b)
{
    if (columns(a) == columns(b)) return "; b fits transposed (rapt_transpose of its last two axes)";
    return rows(a) == rows(b) ? "; a fits transposed (rapt_transpose of its last two axes)" : "";
}

/* C = A B */
static rapt_tensor *matmul_forward(rapt_call *call)
{
    rapt_tensor *a = rapt_call_input(call, 0), *b = rapt_call_input(call, 1);
    if (!check_dtypes("matmul", a, b)) return NULL;
    const bool left_vector = a->rank == 1, right_vector = b->rank == 1;
    rapt_tensor left = left_vector ? with_axis(a, 0) : rapt_header_of(a),
                right = right_vector ? with_axis(b, 1) : rapt_header_of(b);
    int64_t shape[RAPT_MAX_RANK];
    bool matrices = left.rank >= 2 && right.rank >= 2;
    int rank = matrices ? product_shape(&left, &right, left_vector, right_vector, shape) : -1;
    if (rank < 0) {
        char text_a[RAPT_SHAPE_TEXT], text_b[RAPT_SHAPE_TEXT];
        const char *wrong = !matrices                        ? "a scalar is no matrix"
                            : columns(&left) != rows(&right) ? "inner sizes differ"
                                                             : "leading axes do not broadcast";
        const bool is_inner = matrices && !left_vector && !right_vector && columns(&left) != rows(&right);
        rapt_fail(RAPT_ERROR_SHAPE, "matmul", "%s: a is %s, b is %s%s", wrong,
                  rapt_shape_text(a->rank, a->shape, text_a), rapt_shape_text(b->rank, b->shape, text_b),
                  is_inner ? cure_of(&left, &right) : "");
        return NULL;
    }
    rapt_tensor *c = rapt_new("matmul", a->dtype, rank, shape);
    if (!c) return NULL;
    rapt_tensor output = rapt_header_of(c);
    if (right_vector) output = with_axis(&output, output.rank);
    if (left_vector) output = with_axis(&output, output.rank - 1);
    if (!rapt_matmul_into("matmul", &output, &left, &right, NULL, false)) return NULL;
    rapt_call_save(call, rapt_call_wants(call, 1) ? a : NULL);
    rapt_call_save(call, rapt_call_wants(call, 0) ? b : NULL);
    return c;
}

/* (…, p, q) → (… p, q): matrices one below the other */
static rapt_tensor *stacked(rapt_tensor *x)
{
    if (!x || x->rank == 2) return x;
    int64_t count = 1;
    for (int axis = 0; axis < x->rank - 1; axis++) count *= x->shape[axis];
    return rapt_reshape(x, 2, (int64_t[]){count, x->shape[x->rank - 1]});
}

/* (…, p, q) → (p, … q): matrices side by side */
static rapt_tensor *side_by_side(rapt_tensor *x)
{
    if (!x || x->rank == 2) return x;
    int axes[RAPT_MAX_RANK];
    int64_t count = columns(x);
    axes[0] = x->rank - 2;
    for (int axis = 0; axis < x->rank - 2; axis++) {
        axes[axis + 1] = axis;
        count *= x->shape[axis];
    }
    axes[x->rank - 1] = x->rank - 1;
    return rapt_reshape(rapt_permute(x, x->rank, axes), 2, (int64_t[]){rows(x), count});
}

static rapt_tensor *transposed(rapt_tensor *x)
{
    return rapt_transpose(x, -1, -2);
}

/* True when one matrix was multiplied with each of a batch, which g has the shape of. Its gradient is then one
 * product of the whole batch, and no gradient for each matrix of the batch is made. */
static bool is_shared(int rank, const int64_t *shape, const rapt_tensor *g)
{
    for (int axis = 0; axis < rank - 2; axis++)
        if (shape[axis] != 1) return false;
    for (int axis = 0; axis < g->rank - 2; axis++)
        if (g->shape[axis] != 1) return true;
    return false;
}

/* dA = g Bᵀ */
static rapt_tensor *left_gradient(rapt_call *call, rapt_tensor *g, rapt_tensor *b)
{
    int rank;
    const int64_t *shape = rapt_call_input_shape(call, 0, &rank);
    if (b && b->rank == 1) b = rapt_unsqueeze(b, -1);
    if (!b || !g) return NULL;
    if (is_shared(rank, shape, g))
        return rapt_reshape(rapt_matmul(side_by_side(g), transposed(side_by_side(b))), rank, shape);
    rapt_tensor *gradient = rapt_matmul(g, transposed(b));
    return rank == 1 ? rapt_squeeze(gradient, -2) : gradient;
}

/* dB = Aᵀ g */
static rapt_tensor *right_gradient(rapt_call *call, rapt_tensor *g, rapt_tensor *a)
{
    int rank;
    const int64_t *shape = rapt_call_input_shape(call, 1, &rank);
    if (a && a->rank == 1) a = rapt_unsqueeze(a, 0);
    if (!a || !g) return NULL;
    if (is_shared(rank, shape, g)) return rapt_reshape(rapt_matmul(transposed(stacked(a)), stacked(g)), rank, shape);
    rapt_tensor *gradient = rapt_matmul(transposed(a), g);
    return rank == 1 ? rapt_squeeze(gradient, -1) : gradient;
}

static int rank_of_input(rapt_call *call, int input, const rapt_tensor *saved)
{
    int rank = 0;
    if (saved) return saved->rank;
    rapt_call_input_shape(call, input, &rank);
    return rank;
}

static bool matmul_vjp(rapt_call *call)
{
    rapt_tensor *a = rapt_call_saved(call, 0), *b = rapt_call_saved(call, 1);
    rapt_tensor *g = rapt_call_gradient(call, 0);
    if (rank_of_input(call, 1, b) == 1) g = rapt_unsqueeze(g, -1);
    if (rank_of_input(call, 0, a) == 1) g = rapt_unsqueeze(g, -2);
    bool good = true;
    if (rapt_call_wants(call, 0)) good = rapt_call_give(call, 0, left_gradient(call, g, b));
    if (rapt_call_wants(call, 1)) good = good && rapt_call_give(call, 1, right_gradient(call, g, a));
    return good;
}

static const rapt_op matmul = {.name = "matmul", .forward = matmul_forward, .vjp = matmul_vjp};

rapt_tensor *rapt_matmul(rapt_tensor *a, rapt_tensor *b)
{
    return RAPT_APPLY(&matmul, NULL, a, b);
}

static bool check_affine(const char *op, const rapt_tensor *x, const rapt_tensor *weight, const rapt_tensor *bias)
{
    if (!check_dtypes(op, x, weight) || (bias && !check_dtypes(op, x, bias))) return false;
    bool fits = x->rank >= 1 && weight->rank == 2 && x->shape[x->rank - 1] == weight->shape[1] &&
                (!bias || (bias->rank == 1 && bias->shape[0] == weight->shape[0]));
    if (fits) return true;
    char text_x[RAPT_SHAPE_TEXT], text_weight[RAPT_SHAPE_TEXT], text_bias[RAPT_SHAPE_TEXT];
    return rapt_fail(RAPT_ERROR_SHAPE, op, "x %s, weight %s, bias %s; (..., in), (out, in), (out) expected",
                     rapt_shape_text(x->rank, x->shape, text_x),
                     rapt_shape_text(weight->rank, weight->shape, text_weight),
                     bias ? rapt_shape_text(bias->rank, bias->shape, text_bias) : "NULL");
}

rapt_tensor *rapt_affine_output(const rapt_call *call)
{
    rapt_tensor *x = rapt_call_input(call, 0), *weight = rapt_call_input(call, 1);
    const char *op = rapt_call_op(call)->name;
    if (!check_affine(op, x, weight, rapt_call_input(call, 2))) return NULL;
    int64_t shape[RAPT_MAX_RANK];
    memcpy(shape, x->shape, x->rank * sizeof *shape);
    shape[x->rank - 1] = weight->shape[0];
    return rapt_new(op, x->dtype, x->rank, shape);
}

bool rapt_affine_into(rapt_call *call, const rapt_tensor *y, const rapt_epilogue *epilogue)
{
    rapt_tensor *x = rapt_call_input(call, 0), *weight = rapt_call_input(call, 1);
    const rapt_tensor left = x->rank == 1 ? with_axis(x, 0) : rapt_header_of(x),
                      output = x->rank == 1 ? with_axis(y, 0) : rapt_header_of(y);
    rapt_tensor right = rapt_header_of(weight);
    for (int axis = 0; axis < 2; axis++) {
        right.shape[axis] = weight->shape[1 - axis];
        right.strides[axis] = weight->strides[1 - axis];
    }
    right.contiguous = false;
    rapt_call_save(call, rapt_call_wants(call, 1) ? x : NULL);
    rapt_call_save(call, rapt_call_wants(call, 0) ? weight : NULL);
    return rapt_matmul_finished(rapt_call_op(call)->name, &output, &left, &right, rapt_call_input(call, 2), epilogue);
}

/* y = x Wᵀ + b */
static rapt_tensor *affine_forward(rapt_call *call)
{
    rapt_tensor *y = rapt_affine_output(call);
    return y && rapt_affine_into(call, y, NULL) ? y : NULL;
}

/* dW = gᵀ x, added to what other uses of W gave */
static bool weight_gradient(rapt_call *call, rapt_tensor *g, rapt_tensor *x)
{
    rapt_tensor *left = transposed(stacked(g)), *right = stacked(x), *sum = rapt_call_gradient_so_far(call, 1);
    if (!sum || !left || !right) return rapt_call_give(call, 1, rapt_matmul(left, right));
    return rapt_matmul_into(rapt_call_op(call)->name, sum, left, right, NULL, true);
}

/* dx = g W, dW, db = g, which the engine sums over the leading axes */
bool rapt_affine_give(rapt_call *call, rapt_tensor *g)
{
    bool good = true;
    if (rapt_call_wants(call, 0)) good = rapt_call_give(call, 0, rapt_matmul(g, rapt_call_saved(call, 1)));
    if (rapt_call_wants(call, 1)) good = good && weight_gradient(call, g, rapt_call_saved(call, 0));
    return good && rapt_call_give(call, 2, g);
}

static bool affine_vjp(rapt_call *call)
{
    return rapt_affine_give(call, rapt_call_gradient(call, 0));
}

static const rapt_op affine = {.name = "affine", .forward = affine_forward, .vjp = affine_vjp, .optional = 1U << 2};

rapt_tensor *rapt_affine(rapt_tensor *x, rapt_tensor *weight, rapt_tensor *bias)
{
    return RAPT_APPLY(&affine, NULL, x, weight, bias);
}
