/* Ops over the rows of a tensor, its last axis, which can be had along any axis. */
#include "row_op.h"

#include <rapt/ops.h>

#include "tensor/parallel.h"
#include "tensor/scratch.h"

/* Rows that do not go along the last axis are worked on in tiles of neighbouring ones, which are transposed near by. */
typedef struct tiles {
    rapt_loop *loop;
    int operands;                          /* the result, and up to two inputs, all dense */
    int64_t size, n, inner, width, a_line; /* bytes; of a row; elements behind each place; rows of a tile; tiles */
    const rapt_tensor *tensors[3];
    rapt_scratch scratch;
} tiles;

static void run_tiles(void *context, int64_t first, int64_t last)
{
    const tiles *t = context;
    char *room = rapt_scratch_borrow(&t->scratch), *rows[3];
    const int64_t row = t->n * t->size, line = t->inner * t->size;
    for (int k = 0; k < t->operands; k++) rows[k] = room + k * t->width * row;
    rapt_transpose_loop *transpose = rapt_kernel.transpose[t->size == 8];
    for (int64_t i = first; i < last; i++) {
        const int64_t column = i % t->a_line * t->width, width = rapt_smaller_of(t->inner - column, t->width);
        const int64_t start = i / t->a_line * t->n * line + column * t->size;
        for (int k = 1; k < t->operands; k++) transpose(width, t->n, t->tensors[k]->data + start, line, rows[k], row);
        t->loop(width, rows, (const int64_t[]){row, row, row}, &t->n);
        transpose(t->n, width, rows[0], row, t->tensors[0]->data + start, line);
    }
    rapt_scratch_return(&t->scratch, room);
}

static bool map_tiles(const char *op, rapt_loop *loop, int64_t cost, int axis, int count, const rapt_tensor **operands)
{
    enum { near_elements = 1 << 17, narrowest = 16, widest = 128 };
    const rapt_tensor *x = operands[0];
    tiles t = {.loop = loop, .operands = count, .size = (int64_t)rapt_dtype_size(x->dtype), .inner = 1};
    for (int k = 0; k < count; k++)
        if (!(t.tensors[k] = rapt_as_contiguous(operands[k]))) return false;
    if (x->count == 0) return true;
    t.n = x->shape[x->rank + axis];
    for (int i = x->rank + axis + 1; i < x->rank; i++) t.inner *= x->shape[i];
    t.width = near_elements / t.n / narrowest * narrowest;
    t.width = t.width < narrowest ? narrowest : rapt_smaller_of(t.width, widest);
    t.a_line = rapt_divide_up(t.inner, t.width);
    const int64_t tasks = x->count / (t.n * t.inner) * t.a_line;
    if (!rapt_scratch_take(op, &t.scratch, tasks, (size_t)(count * t.width * t.n * t.size))) return false;
    rapt_parallel(tasks, rapt_grain(cost * t.n * t.width), run_tiles, &t);
    rapt_scratch_give(&t.scratch);
    return true;
}

rapt_tensor *rapt_map_rows(const char *op, const rapt_loops loops, int64_t cost, int axis, int count,
                           rapt_tensor *const *inputs)
{
    const rapt_tensor *x = inputs[0], *operands[3];
    if (!rapt_check_floating(op, x)) return NULL;
    int64_t length = x->shape[x->rank - 1];
    rapt_tensor *output = rapt_new(op, x->dtype, x->rank, x->shape);
    operands[0] = output;
    for (int i = 0; i < count; i++) {
        bool dense = axis < -1 || inputs[i]->strides[x->rank - 1] == 1 || length <= 1;
        operands[i + 1] = dense ? inputs[i] : rapt_as_contiguous(inputs[i]);
        if (!operands[i + 1]) return NULL;
    }
    if (output && axis < -1) return map_tiles(op, loops[x->dtype], cost, axis, count + 1, operands) ? output : NULL;
    if (output) rapt_map_along(x->rank - 1, loops[x->dtype], &length, cost * length, count + 1, operands);
    return output;
}

rapt_tensor *rapt_row_sums(rapt_tensor *x)
{
    return rapt_sum(x, RAPT_AXES(-1), true);
}

rapt_tensor *rapt_apply_along(const rapt_op *op, rapt_tensor *x, int axis)
{
    if (x && (axis = rapt_check_axis(op->name, axis, x->rank, 0)) < 0) return NULL;
    if (!x || axis == x->rank - 1) return RAPT_APPLY(op, NULL, x);
    return rapt_transpose(RAPT_APPLY(op, NULL, rapt_transpose(x, axis, -1)), axis, -1);
}
