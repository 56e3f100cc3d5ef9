/* Elements of strided tensors: axes that lie one behind the other in all operands are merged, and the rest is
 * walked. */
#include "tensor/map.h"

#include "tensor/parallel.h"

/* Elements of a row in one item where some operand is transposed, and rows of a block that is copied transposed. Rows
 * of fewer elements than short_row are columns of the axis outside, where that is longer. */
enum { tile = 16, copied_tile = 64, short_row = 8 };

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
    int64_t rows; /* items that differ only in the last outer axis and follow each other: its size, or 1 */
    rapt_transpose_loop *transpose; /* takes the loop's place where it copies numbers that are dense along that axis */
    char *data[RAPT_MAX_OPERANDS];
} walk;

/* Where an item begins, and how long it is. Of the items the rows come first, then the pieces, then the other outer
 * axes. */
static int64_t locate(const walk *w, int64_t item, char *data[RAPT_MAX_OPERANDS])
{
    int64_t rest = item / w->rows;
    int64_t start = rest % w->pieces * w->piece;
    int64_t outer = rest / w->pieces * w->rows + item % w->rows;
    for (int k = 0; k < w->operands; k++) data[k] = w->data[k] + start * w->inner_strides[k];
    for (int axis = w->rank - 1; axis >= 0; axis--) {
        int64_t position = outer % w->shape[axis];
        outer /= w->shape[axis];
        for (int k = 0; k < w->operands; k++) data[k] += position * w->strides[axis][k];
    }
    return start + w->piece < w->inner ? w->piece : w->inner - start;
}

static int64_t smallest_of(int64_t a, int64_t b, int64_t c)
{
    const int64_t smaller = a < b ? a : b;
    return smaller < c ? smaller : c;
}

static void run_items(void *context, int64_t first, int64_t last)
{
    const walk *w = context;
    for (int64_t item = first; item < last;) {
        char *data[RAPT_MAX_OPERANDS];
        int64_t length = locate(w, item, data);
        int64_t end = item + w->rows - item % w->rows;
        if (w->transpose) {
            const int64_t *steps = w->strides[w->rank - 1];
            const int64_t rows = smallest_of(end - item, last - item, copied_tile);
            w->transpose(rows, length, data[1], w->inner_strides[1], data[0], steps[0]);
            item += rows;
            continue;
        }
        w->loop(length, data, w->inner_strides, w->options);
        for (item++; item < end && item < last; item++) {
            for (int k = 0; k < w->operands; k++) data[k] += w->strides[w->rank - 1][k];
            w->loop(length, data, w->inner_strides, w->options);
        }
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
            strides[axis][k] = element_strides[axis] * rapt_element_bytes[tensors[k]->dtype];
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

static int64_t magnitude(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

/* True when some operand is dense along the last outer axis instead of the inner one, as a transposed matrix is. */
static bool is_transposed(const walk *w)
{
    for (int k = 0; k < w->operands && w->rank > 0; k++) {
        const int64_t stride = magnitude(w->strides[w->rank - 1][k]);
        if (stride != 0 && stride < magnitude(w->inner_strides[k])) return true;
    }
    return false;
}

static void exchange_axes(walk *w, int a, int b)
{
    const int64_t size = w->shape[a];
    w->shape[a] = w->shape[b];
    w->shape[b] = size;
    for (int k = 0; k < w->operands; k++) {
        const int64_t stride = w->strides[a][k];
        w->strides[a][k] = w->strides[b][k];
        w->strides[b][k] = stride;
    }
}

/* What copies numbers of `size` bytes that are dense along an outer axis into rows, of which that axis becomes the last
 * outer one; NULL where there is none, or where the loop does more than copy. */
static rapt_transpose_loop *find_transposed(walk *w, int64_t size, const rapt_tensor *const *tensors)
{
    const rapt_dtype dtype = tensors[0]->dtype;
    if (w->loop != rapt_kernel.elementwise.cast[dtype][dtype] || tensors[1]->dtype != dtype || size < 4 ||
        w->inner_strides[0] != size || w->inner_strides[1] == size || w->inner_strides[1] == 0)
        return NULL;
    for (int axis = w->rank - 1; axis >= 0; axis--) {
        if (w->strides[axis][1] != size) continue;
        exchange_axes(w, axis, w->rank - 1);
        return rapt_kernel.transpose[size == 8];
    }
    return NULL;
}

/* Few rows have longer pieces in a tile. */
static int64_t tile_of(int64_t rows)
{
    return rows < tile ? tile * tile / rows : tile;
}

/* So many elements are a piece: few enough pieces that handing them out costs nothing beside the work, and of dense
 * tensors whole lines. */
static int64_t piece_of(int64_t count, int64_t grain, bool dense)
{
    enum { most_pieces = 256, whole_lines = 64 };
    const int64_t piece = count / most_pieces > grain ? count / most_pieces : grain;
    return dense ? rapt_divide_up(piece, whole_lines) * whole_lines : piece;
}

static __attribute__((noinline)) void run_pieces(rapt_loop *loop, const void *options, int64_t grain, bool dense,
                                                 int count, const rapt_tensor *const *tensors)
{
    walk w;
    w.loop = loop;
    w.options = options;
    w.operands = count;
    w.rank = 0;
    w.inner = 1;
    for (int k = 0; k < count; k++) {
        w.data[k] = tensors[k]->data;
        w.inner_strides[k] = 0;
    }
    grain = piece_of(tensors[0]->count, grain, dense);
    if (dense) {
        w.inner = tensors[0]->count;
        for (int k = 0; k < count; k++) w.inner_strides[k] = rapt_element_bytes[tensors[k]->dtype];
    } else {
        collect_axes(&w, tensors);
        if (w.rank > 0) {
            if (w.rank > 1 && w.shape[w.rank - 1] < short_row && w.shape[w.rank - 2] > w.shape[w.rank - 1])
                exchange_axes(&w, w.rank - 1, w.rank - 2);
            w.inner = w.shape[--w.rank];
            for (int k = 0; k < count; k++) w.inner_strides[k] = w.strides[w.rank][k];
        }
    }
    int64_t outer = 1;
    for (int axis = 0; axis < w.rank; axis++) outer *= w.shape[axis];
    w.transpose = find_transposed(&w, (int64_t)rapt_dtype_size(tensors[0]->dtype), tensors);
    bool tiled = w.transpose || is_transposed(&w); /* what one row brings to the cache serves the next rows */
    int64_t longest = w.transpose ? copied_tile : tiled ? tile_of(w.shape[w.rank - 1]) : grain;
    w.piece = w.inner < longest ? w.inner : longest;
    w.pieces = (w.inner + w.piece - 1) / w.piece;
    w.rows = w.rank > 0 && (tiled || w.pieces == 1) ? w.shape[w.rank - 1] : 1;
    rapt_parallel_evenly(outer * w.pieces, (grain + w.piece - 1) / w.piece, run_items, &w);
}

/* In one piece: contiguous tensors of one shape. */
static void run_whole(rapt_loop *loop, const void *options, int count, const rapt_tensor *const *tensors)
{
    char *data[RAPT_MAX_OPERANDS];
    int64_t strides[RAPT_MAX_OPERANDS];
    for (int k = 0; k < count; k++) {
        data[k] = tensors[k]->data;
        strides[k] = rapt_element_bytes[tensors[k]->dtype];
    }
    loop(tensors[0]->count, data, strides, options);
}

void rapt_map(rapt_loop *loop, const void *options, int64_t cost, int count, const rapt_tensor *const *tensors)
{
    if (tensors[0]->count == 0) return;
    const bool dense = all_dense(tensors, count);
    const int64_t grain = rapt_grain(cost);
    if (dense && tensors[0]->count <= grain)
        run_whole(loop, options, count, tensors);
    else
        run_pieces(loop, options, grain, dense, count, tensors);
}

/* A header for reading the tensor at index 0 of that axis. */
static rapt_tensor without_axis(const rapt_tensor *tensor, int axis)
{
    rapt_tensor rest = rapt_header_of(tensor);
    rest.rank--;
    rest.count = 1;
    rest.contiguous = false;
    for (int k = 0; k < rest.rank; k++) {
        rest.shape[k] = tensor->shape[k < axis ? k : k + 1];
        rest.strides[k] = tensor->strides[k < axis ? k : k + 1];
        rest.count *= rest.shape[k];
    }
    return rest;
}

void rapt_map_along(int axis, rapt_loop *loop, const void *options, int64_t cost, int count,
                    const rapt_tensor *const *tensors)
{
    if (tensors[0]->count == 0) return; /* however many rows of nothing */
    rapt_tensor rests[RAPT_MAX_OPERANDS];
    const rapt_tensor *operands[RAPT_MAX_OPERANDS];
    for (int k = 0; k < count; k++) {
        operands[k] = tensors[k];
        if (tensors[k]->rank < tensors[0]->rank) continue;
        rests[k] = without_axis(tensors[k], axis);
        operands[k] = &rests[k];
    }
    rapt_map(loop, options, cost, count, operands);
}
