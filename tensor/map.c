/* Elements of strided tensors: axes that lie one behind the other in all operands are merged, and the rest is walked. */
#include "tensor/map.h"

#include "tensor/parallel.h"

typedef struct walk {
    rapt_loop *loop;
    const void *options;
    int operands;
    int rank; /* of the axes outside the inner loop */
    int64_t shape[RAPT_MAX_RANK];
    int64_t strides[RAPT_MAX_RANK][RAPT_MAX_OPERANDS]; /* in bytes */
    int64_t inner;                                     /* elements in the inner axis */
    int64_t inner_strides[RAPT_MAX_OPERANDS];
    int64_t piece; /* elements of the inner axis in one item of work */
    int64_t pieces;
    char *data[RAPT_MAX_OPERANDS];
} walk;

/* The item-th piece: the outer position is item / pieces, the inner one item % pieces. */
static void run_items(void *context, int64_t first, int64_t last)
{
    const walk *w = context;
    for (int64_t item = first; item < last; item++) {
        char *data[RAPT_MAX_OPERANDS];
        int64_t start = item % w->pieces * w->piece;
        int64_t length = start + w->piece < w->inner ? w->piece : w->inner - start;
        for (int k = 0; k < w->operands; k++) data[k] = w->data[k] + start * w->inner_strides[k];
        int64_t outer = item / w->pieces;
        for (int axis = w->rank - 1; axis >= 0; axis--) {
            int64_t position = outer % w->shape[axis];
            outer /= w->shape[axis];
            for (int k = 0; k < w->operands; k++) data[k] += position * w->strides[axis][k];
        }
        w->loop(length, data, w->inner_strides, w->options);
    }
}

/* True when axis lies right outside the axis after it in every operand, so that both are one axis. */
static bool can_merge(const walk *w, int axis, int64_t next_size, const int64_t *next_strides)
{
    for (int k = 0; k < w->operands; k++)
        if (w->strides[axis][k] != next_strides[k] * next_size) return false;
    return true;
}

static void collect_axes(walk *w, const rapt_tensor *const *tensors)
{
    const rapt_tensor *out = tensors[0];
    int64_t element_strides[RAPT_MAX_RANK];
    int64_t strides[RAPT_MAX_RANK][RAPT_MAX_OPERANDS];
    for (int k = 0; k < w->operands; k++) {
        rapt_broadcast_strides(tensors[k], out->rank, out->shape, element_strides);
        for (int axis = 0; axis < out->rank; axis++)
            strides[axis][k] = element_strides[axis] * (int64_t)rapt_dtype_size(tensors[k]->dtype);
    }
    w->rank = 0;
    for (int axis = 0; axis < out->rank; axis++) {
        if (out->shape[axis] == 1) continue;
        int last = w->rank - 1;
        if (last >= 0 && can_merge(w, last, out->shape[axis], strides[axis]))
            w->shape[last] *= out->shape[axis];
        else
            w->shape[last = w->rank++] = out->shape[axis];
        for (int k = 0; k < w->operands; k++) w->strides[last][k] = strides[axis][k];
    }
}

static bool all_dense(const rapt_tensor *const *tensors, int count)
{
    for (int k = 0; k < count; k++)
        if (!tensors[k]->contiguous || tensors[k]->count != tensors[0]->count) return false;
    return true;
}

void rapt_map(rapt_loop *loop, const void *options, int64_t cost, int count, const rapt_tensor *const *tensors)
{
    if (tensors[0]->count == 0) return;
    walk w = {.loop = loop, .options = options, .operands = count, .inner = 1};
    for (int k = 0; k < count; k++) w.data[k] = tensors[k]->data;
    if (all_dense(tensors, count)) {
        w.inner = tensors[0]->count;
        for (int k = 0; k < count; k++) w.inner_strides[k] = (int64_t)rapt_dtype_size(tensors[k]->dtype);
        if (w.inner <= rapt_grain(cost)) {
            loop(w.inner, w.data, w.inner_strides, options);
            return;
        }
    } else {
        collect_axes(&w, tensors);
        if (w.rank > 0) {
            w.inner = w.shape[--w.rank];
            for (int k = 0; k < count; k++) w.inner_strides[k] = w.strides[w.rank][k];
        }
    }
    int64_t outer = 1;
    for (int axis = 0; axis < w.rank; axis++) outer *= w.shape[axis];
    int64_t grain = rapt_grain(cost);
    w.piece = w.inner < grain ? w.inner : grain;
    w.pieces = (w.inner + w.piece - 1) / w.piece;
    int64_t items = outer * w.pieces;
    rapt_parallel(items, w.pieces > 1 ? 1 : (grain + w.inner - 1) / w.inner, run_items, &w);
}
