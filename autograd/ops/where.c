/* Choosing between two tensors, or a tensor and a number, element by element. */
#include <rapt/ops.h>

#include "elementwise.h"
#include "tensor/debug.h"

/* d where(c, a, b) = where(c, da, db) */
static rapt_tensor *where_forward(rapt_call *call)
{
    rapt_tensor *const *inputs = rapt_call_inputs(call);
    rapt_dtype condition = inputs[0]->dtype, a = inputs[1]->dtype, b = inputs[2]->dtype;
    if (condition != RAPT_BOOL) {
        rapt_fail(RAPT_ERROR_DTYPE, "where", "the condition is %s; bool expected", rapt_dtype_name(condition));
        return NULL;
    }
    if (a != b) {
        rapt_fail(RAPT_ERROR_DTYPE, "where", "a is %s, b is %s; one dtype expected (rapt_cast converts)",
                  rapt_dtype_name(a), rapt_dtype_name(b));
        return NULL;
    }
    rapt_call_save(call, inputs[0]);
    return rapt_elementwise_loop("where", rapt_kernel.elementwise.where[a], a, NULL, 1, 3, inputs);
}

static bool where_vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_call_gradient(call, 0), *condition = rapt_call_saved(call, 0);
    rapt_tensor *zero = rapt_zeros(g->dtype, 0, NULL);
    bool good = true;
    if (rapt_call_wants(call, 1)) good = rapt_call_give(call, 1, rapt_where(condition, g, zero));
    if (rapt_call_wants(call, 2)) good = good && rapt_call_give(call, 2, rapt_where(condition, zero, g));
    return good;
}

static const rapt_op where = {.name = "where", .forward = where_forward, .vjp = where_vjp};

rapt_tensor *rapt_where(rapt_tensor *condition, rapt_tensor *a, rapt_tensor *b)
{
    return RAPT_APPLY(&where, NULL, condition, a, b);
}

/* Is there a bool for each element of x, perhaps by broadcasting? */
static bool check_mask(const char *op, const rapt_tensor *x, const rapt_tensor *mask)
{
    if (!x || !mask) return rapt_fail_null(op, x ? "mask" : "x");
    if (!rapt_check_alive(op, "x", x) || !rapt_check_alive(op, "the mask", mask)) return false;
    if (mask->dtype != RAPT_BOOL)
        return rapt_fail(RAPT_ERROR_DTYPE, op, "the mask is %s; bool expected", rapt_dtype_name(mask->dtype));
    int64_t shape[RAPT_MAX_RANK];
    int rank = rapt_broadcast(op, x, mask, shape);
    if (rank < 0) return false;
    bool same = rank == x->rank;
    for (int axis = 0; same && axis < rank; axis++) same = shape[axis] == x->shape[axis];
    if (same) return true;
    char text[RAPT_SHAPE_TEXT], mask_text[RAPT_SHAPE_TEXT];
    return rapt_fail(RAPT_ERROR_SHAPE, op, "a mask of shape %s does not broadcast to x of shape %s",
                     rapt_shape_text(mask->rank, mask->shape, mask_text), rapt_shape_text(x->rank, x->shape, text));
}

rapt_tensor *rapt_masked_fill(rapt_tensor *x, rapt_tensor *mask, double value)
{
    if (!check_mask("masked_fill", x, mask)) return NULL;
    rapt_tensor *number = rapt_number_like("masked_fill", x, value);
    return number ? rapt_where(mask, number, x) : NULL;
}

/* Which elements (i, j) of the last two axes of x have j − i < diagonal. NULL after an error. */
static rapt_tensor *below_diagonal(const char *op, const rapt_tensor *x, int64_t diagonal)
{
    if (!x) return rapt_fail_null(op, "x"), NULL;
    if (x->rank < 2) {
        rapt_fail(RAPT_ERROR_SHAPE, op, "a tensor of rank %d; matrices, so rank 2 or more, expected", x->rank);
        return NULL;
    }
    if (x->count == 0) return rapt_zeros(RAPT_BOOL, RAPT_SHAPE(1, 1)); /* whose other axis may be long */
    const int64_t rows = x->shape[x->rank - 2], columns = x->shape[x->rank - 1];
    const int64_t bound = diagonal < -rows ? -rows : diagonal > columns ? columns : diagonal;
    rapt_tensor *i = rapt_unsqueeze(rapt_arange(RAPT_INT64, 0, (double)rows, 1), 1);
    rapt_tensor *j = rapt_arange(RAPT_INT64, 0, (double)columns, 1);
    return rapt_less_scalar(rapt_sub(j, i), (double)bound);
}

rapt_tensor *rapt_triu(rapt_tensor *x, int64_t diagonal)
{
    rapt_tensor *below = below_diagonal("triu", x, diagonal);
    return below ? rapt_masked_fill(x, below, 0) : NULL;
}

rapt_tensor *rapt_tril(rapt_tensor *x, int64_t diagonal)
{
    rapt_tensor *below = below_diagonal("tril", x, diagonal < INT64_MAX ? diagonal + 1 : diagonal);
    return below ? rapt_masked_fill(x, rapt_logical_not(below), 0) : NULL;
}
