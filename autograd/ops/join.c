/* Putting tensors together and taking them apart: concat, split and stack; and roll, which does both. */
#include <rapt/ops.h>

#include <string.h>

#include "part.h"
#include "tensor/map.h"
#include "tensor/scratch.h"

/* False and an error unless the tensors have one dtype and, but for the size of one axis (−1: of none), one shape. */
static bool check_alike(const char *op, rapt_call *call, int free_axis)
{
    const rapt_tensor *first = rapt_call_input(call, 0);
    for (int i = 1; i < rapt_call_count(call); i++) {
        const rapt_tensor *other = rapt_call_input(call, i);
        if (other->dtype != first->dtype)
            return rapt_fail(RAPT_ERROR_DTYPE, op,
                             "tensor 0 is %s, tensor %d is %s; one dtype expected (rapt_cast converts)",
                             rapt_dtype_name(first->dtype), i, rapt_dtype_name(other->dtype));
        bool fits = other->rank == first->rank;
        for (int axis = 0; fits && axis < first->rank; axis++)
            fits = axis == free_axis || other->shape[axis] == first->shape[axis];
        if (fits) continue;
        char a[RAPT_SHAPE_TEXT], b[RAPT_SHAPE_TEXT];
        rapt_shape_text(first->rank, first->shape, a);
        rapt_shape_text(other->rank, other->shape, b);
        if (free_axis < 0) return rapt_fail(RAPT_ERROR_SHAPE, op, "tensor 0 has shape %s, tensor %d shape %s", a, i, b);
        return rapt_fail(RAPT_ERROR_SHAPE, op, "tensor 0 has shape %s, tensor %d shape %s; only axis %d may differ", a,
                         i, b, free_axis);
    }
    return true;
}

/* The tensors one behind the other; the gradient of each is a slice. Where each begins is kept for that. */
static rapt_tensor *concat_forward(rapt_call *call)
{
    const rapt_tensor *first = rapt_call_input(call, 0);
    int count = rapt_call_count(call);
    int axis = rapt_check_axis("concat", *(const int *)rapt_call_options(call), first->rank, 0);
    if (axis < 0 || !check_alike("concat", call, axis)) return NULL;
    rapt_tensor *starts = rapt_new("concat", RAPT_INT64, 1, (int64_t[]){count + 1});
    if (!starts) return NULL;
    int64_t *start = (int64_t *)(void *)starts->data;
    start[0] = 0;
    for (int i = 0; i < count; i++) {
        if (!__builtin_add_overflow(start[i], rapt_call_input(call, i)->shape[axis], &start[i + 1])) continue;
        rapt_fail(RAPT_ERROR_MEMORY, "concat", "the sizes of axis %d sum to more than 64 bits can count", axis);
        return NULL;
    }
    int64_t shape[RAPT_MAX_RANK];
    memcpy(shape, first->shape, first->rank * sizeof *shape);
    shape[axis] = start[count];
    rapt_tensor *whole = rapt_new("concat", first->dtype, first->rank, shape);
    if (!whole) return NULL;
    for (int i = 0; i < count; i++) {
        const rapt_tensor part = rapt_part(whole, axis, start[i], start[i + 1] - start[i], 1);
        rapt_write_part(&part, rapt_call_input(call, i));
    }
    rapt_call_save(call, starts);
    return whole;
}

static bool concat_vjp(rapt_call *call)
{
    int axis = *(const int *)rapt_call_options(call);
    const rapt_tensor *starts = rapt_call_saved(call, 0);
    if (!starts) return false;
    const int64_t *start = (const int64_t *)(const void *)starts->data;
    for (int i = 0; i < rapt_call_count(call); i++) {
        if (!rapt_call_wants(call, i)) continue;
        if (!rapt_call_give(call, i, rapt_slice(rapt_call_gradient(call, 0), axis, start[i], start[i + 1], 1)))
            return false;
    }
    return true;
}

static const rapt_op concat = {.name = "concat",
                               .forward = concat_forward,
                               .vjp = concat_vjp,
                               .options_size = sizeof(int)};

static rapt_tensor *join(const rapt_op *op, int count, rapt_tensor *const *tensors, int axis)
{
    if (count >= 1 && tensors) return rapt_apply(op, &axis, count, tensors);
    rapt_fail(tensors ? RAPT_ERROR_VALUE : RAPT_ERROR_NULL, op->name, "%d tensors given%s; 1 or more expected", count,
              tensors ? "" : " as NULL");
    return NULL;
}

rapt_tensor *rapt_concat(int count, rapt_tensor *const *tensors, int axis)
{
    return join(&concat, count, tensors, axis);
}

/* The opposite of concat: views of x. */
typedef struct split_options {
    int axis;
    const int64_t *sizes; /* lives until forward returns */
} split_options;

static rapt_tensor *split_forward(rapt_call *call)
{
    const rapt_tensor *x = rapt_call_input(call, 0);
    const split_options *o = rapt_call_options(call);
    int axis = rapt_check_axis("split", o->axis, x->rank, 0), count = rapt_call_output_count(call);
    if (axis < 0) return NULL;
    int64_t left = x->shape[axis];
    for (int i = 0; i < count && left >= 0; i++) left = o->sizes[i] < 0 ? -1 : left - o->sizes[i];
    if (left != 0) {
        char sizes[RAPT_SHAPE_TEXT];
        rapt_fail(RAPT_ERROR_SHAPE, "split", "the %d sizes %s%s do not sum to %lld, the size of axis %d", count,
                  rapt_shape_text(count < RAPT_MAX_RANK ? count : RAPT_MAX_RANK, o->sizes, sizes),
                  count > RAPT_MAX_RANK ? " ..." : "", (long long)x->shape[axis], axis);
        return NULL;
    }
    rapt_tensor *first = NULL;
    for (int64_t i = 0, start = 0; i < count; start += o->sizes[i++]) {
        const rapt_tensor part = rapt_part(x, axis, start, o->sizes[i], 1);
        rapt_tensor *piece = rapt_new_view(x, part.data, part.rank, part.shape, part.strides);
        if (!piece) return NULL;
        rapt_call_set_output(call, (int)i, piece);
        if (i == 0) first = piece;
    }
    return first;
}

static bool split_vjp(rapt_call *call)
{
    const split_options *o = rapt_call_options(call);
    int count = rapt_call_output_count(call);
    rapt_tensor **gradients = rapt_scratch_list("split", count, sizeof *gradients);
    if (!gradients) return false;
    for (int i = 0; i < count; i++) gradients[i] = rapt_call_gradient_or_zeros(call, i);
    return rapt_call_give(call, 0, rapt_concat(count, gradients, o->axis));
}

static const rapt_op split = {.name = "split",
                              .forward = split_forward,
                              .vjp = split_vjp,
                              .options_size = sizeof(split_options)};

bool rapt_split(rapt_tensor *x, int axis, int count, const int64_t *sizes, rapt_tensor **pieces)
{
    if (count < 1) return rapt_fail(RAPT_ERROR_VALUE, "split", "%d pieces; 1 or more expected", count);
    for (int i = 0; pieces && i < count; i++) pieces[i] = NULL;
    if (!sizes || !pieces) return rapt_fail_null("split", sizes ? "pieces" : "sizes");
    return rapt_apply_counted(&split, &(split_options){axis, sizes}, 1, &x, count, pieces);
}

/* The tensors along a new axis; the gradient of each is a selection. */
static rapt_tensor *stack_forward(rapt_call *call)
{
    const rapt_tensor *first = rapt_call_input(call, 0);
    int axis = rapt_check_axis("stack", *(const int *)rapt_call_options(call), first->rank, 1);
    if (axis < 0 || !check_alike("stack", call, -1)) return NULL;
    if (first->rank == RAPT_MAX_RANK) {
        rapt_fail(RAPT_ERROR_SHAPE, "stack", "tensors of rank %d can have no further axis", first->rank);
        return NULL;
    }
    int64_t shape[RAPT_MAX_RANK];
    for (int i = 0; i <= first->rank; i++)
        shape[i] = i == axis ? rapt_call_count(call) : first->shape[i < axis ? i : i - 1];
    rapt_tensor *whole = rapt_new("stack", first->dtype, first->rank + 1, shape);
    if (!whole) return NULL;
    for (int i = 0; i < rapt_call_count(call); i++) {
        rapt_tensor part = rapt_part(whole, axis, i, 1, 1);
        for (int k = axis; k < first->rank; k++) {
            part.shape[k] = part.shape[k + 1];
            part.strides[k] = part.strides[k + 1];
        }
        part.rank = first->rank;
        rapt_write_part(&part, rapt_call_input(call, i));
    }
    return whole;
}

static bool stack_vjp(rapt_call *call)
{
    int axis = *(const int *)rapt_call_options(call);
    for (int i = 0; i < rapt_call_count(call); i++) {
        if (!rapt_call_wants(call, i)) continue;
        if (!rapt_call_give(call, i, rapt_select(rapt_call_gradient(call, 0), axis, i))) return false;
    }
    return true;
}

static const rapt_op stack = {.name = "stack", .forward = stack_forward, .vjp = stack_vjp, .options_size = sizeof(int)};

rapt_tensor *rapt_stack(int count, rapt_tensor *const *tensors, int axis)
{
    return join(&stack, count, tensors, axis);
}

/* The last `shift` elements along the axis, then those before them. */
rapt_tensor *rapt_roll(rapt_tensor *x, int axis, int64_t shift)
{
    if (!x) return rapt_fail_null("roll", "x"), NULL;
    axis = rapt_check_axis("roll", axis, x->rank, 0);
    if (axis < 0) return NULL;
    const int64_t size = x->shape[axis], rest = size > 0 ? shift % size : 0;
    const int64_t first = rest > 0 ? size - rest : -rest;
    rapt_tensor *end = rapt_slice(x, axis, first, size, 1), *start = rapt_slice(x, axis, 0, first, 1);
    return rapt_concat(2, (rapt_tensor *[]){end, start}, axis);
}
