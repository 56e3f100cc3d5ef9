/* Reductions: the axes of a strided tensor are merged, cut into pieces of work by size, and folded. */
#include "tensor/reduce.h"

#include <string.h>

#include "tensor/map.h"
#include "tensor/memory.h"
#include "tensor/parallel.h"

enum {
    enough_items = 16, /* from here on there is no need to cut the folded axes too */
    most_columns = 512 /* accumulators that stay in the first-level cache */
};

bool rapt_check_axes(const char *op, const rapt_tensor *tensor, int axis_count, const int *axes,
                     rapt_reduction_shape *result)
{
    if (axis_count < 0 || axis_count > tensor->rank)
        return rapt_fail(RAPT_ERROR_SHAPE, op, "%d axes given for a tensor of rank %d", axis_count, tensor->rank);
    if (axis_count > 0 && !axes) return rapt_fail_null(op, "axes");
    for (int axis = 0; axis < tensor->rank; axis++) result->reduced[axis] = axis_count == 0;
    for (int i = 0; i < axis_count; i++) {
        int axis = rapt_check_axis(op, axes[i], tensor->rank, 0);
        if (axis < 0) return false;
        if (result->reduced[axis]) return rapt_fail(RAPT_ERROR_SHAPE, op, "axis %d is given twice", axes[i]);
        result->reduced[axis] = true;
    }
    result->folded = result->count = 1;
    result->rank = 0;
    for (int axis = 0; axis < tensor->rank; axis++) {
        int64_t size = tensor->shape[axis];
        result->kept_shape[axis] = result->reduced[axis] ? 1 : size;
        if (result->reduced[axis]) {
            result->folded *= size;
        } else {
            result->count *= size;
            result->shape[result->rank++] = size;
        }
    }
    return true;
}

/* Axes in walking order, the last one innermost. Strides in bytes. */
typedef struct axis_list {
    int rank;
    int64_t shape[RAPT_MAX_RANK], strides[RAPT_MAX_RANK];
} axis_list;

static void append_axis(axis_list *list, int64_t size, int64_t stride)
{
    int last = list->rank - 1;
    if (size == 1) return;
    if (last >= 0 && list->strides[last] == stride * size) {
        list->shape[last] *= size;
        list->strides[last] = stride;
        return;
    }
    list->shape[list->rank] = size;
    list->strides[list->rank++] = stride;
}

/* The folded axes may go in any order: the largest stride first (repeated elements count as far apart), then merged. */
static void sort_and_merge(axis_list *list)
{
    axis_list sorted = *list;
    for (int i = 1; i < sorted.rank; i++) {
        for (int k = i; k > 0 && (sorted.strides[k] == 0 || sorted.strides[k] > sorted.strides[k - 1]) &&
                        sorted.strides[k - 1] != 0;
             k--) {
            int64_t size = sorted.shape[k], stride = sorted.strides[k];
            sorted.shape[k] = sorted.shape[k - 1], sorted.strides[k] = sorted.strides[k - 1];
            sorted.shape[k - 1] = size, sorted.strides[k - 1] = stride;
        }
    }
    list->rank = 0;
    for (int i = 0; i < sorted.rank; i++) append_axis(list, sorted.shape[i], sorted.strides[i]);
}

/* Takes the innermost axis off a list; a list without axes has one of size 1. */
static void take_last(axis_list *list, int64_t *size, int64_t *stride)
{
    *size = list->rank ? list->shape[list->rank - 1] : 1;
    *stride = list->rank ? list->strides[list->rank - 1] : 0;
    if (list->rank) list->rank--;
}

/* The byte offset of the position-th place in row-major order. */
static int64_t offset_of(const axis_list *list, int64_t position)
{
    int64_t offset = 0;
    for (int axis = list->rank - 1; axis >= 0; axis--) {
        offset += position % list->shape[axis] * list->strides[axis];
        position /= list->shape[axis];
    }
    return offset;
}

static int64_t places(const axis_list *list)
{
    int64_t count = 1;
    for (int axis = 0; axis < list->rank; axis++) count *= list->shape[axis];
    return count;
}

typedef struct reduction {
    const rapt_fold *fold;
    rapt_fold_loop *loop;
    bool floating;
    const char *data;
    axis_list kept, folded; /* without their innermost axes, which are: */
    int64_t columns, column_stride, rows, row_stride;
    int64_t tile, tiles;   /* columns in one item of work, such items in `columns` */
    int64_t slice, slices; /* steps of the outermost folded axis in one item, such items in it */
    int64_t count;         /* results */
    const rapt_accumulator *centers;
    rapt_accumulator *results; /* slices · count of them */
} reduction;

static void set_start(const reduction *r, rapt_accumulator *results, int64_t count)
{
    rapt_accumulator start = {.number = r->fold->number};
    if (!r->floating) start.integer = r->fold->integer;
    for (int64_t i = 0; i < count; i++) results[i] = start;
}

/* An item is a slice of the folded axes for a tile of neighbouring results. */
static void run_items(void *context, int64_t first, int64_t last)
{
    const reduction *r = context;
    for (int64_t item = first; item < last; item++) {
        int64_t tile = item % r->tiles, outer = item / r->tiles / r->slices, slice = item / r->tiles % r->slices;
        int64_t columns = (tile + 1) * r->tile <= r->columns ? r->tile : r->columns - tile * r->tile;
        int64_t result = outer * r->columns + tile * r->tile;
        rapt_accumulator *results = r->results + slice * r->count + result;
        set_start(r, results, columns);
        const char *data = r->data + offset_of(&r->kept, outer) + tile * r->tile * r->column_stride;
        int64_t rows = r->rows, length = r->folded.rank ? r->folded.shape[0] : r->rows;
        int64_t begin = slice * r->slice, end = begin + r->slice < length ? begin + r->slice : length;
        int64_t steps = r->folded.rank ? places(&r->folded) / length : 1;
        if (r->folded.rank == 0) {
            data += begin * r->row_stride;
            rows = end - begin;
            begin = 0, end = 1;
        }
        for (int64_t step = begin * steps; step < end * steps; step++)
            r->loop(columns, r->column_stride, rows, r->row_stride, data + offset_of(&r->folded, step), results,
                    r->centers ? r->centers + result : NULL);
    }
}

/* Chooses between row by row and all columns at once, and how to cut the work. */
static void plan(reduction *r, const rapt_tensor *tensor, const rapt_reduction_shape *shape)
{
    int64_t element = (int64_t)rapt_dtype_size(tensor->dtype);
    for (int axis = 0; axis < tensor->rank; axis++)
        append_axis(shape->reduced[axis] ? &r->folded : &r->kept, tensor->shape[axis], tensor->strides[axis] * element);
    if (r->folded.rank > 1) sort_and_merge(&r->folded);
    take_last(&r->kept, &r->columns, &r->column_stride);
    take_last(&r->folded, &r->rows, &r->row_stride);
    bool by_columns = r->columns > 1 && r->column_stride < r->row_stride;
    r->loop = (by_columns || r->rows == 1 ? r->fold->columns : r->fold->rows)[tensor->dtype];
    int64_t fitting = rapt_grain(shape->folded);
    if (by_columns && fitting < most_columns / 4) fitting = most_columns / 4;
    if (fitting > most_columns) fitting = most_columns;
    r->tile = r->columns < fitting ? r->columns : fitting;
    r->tiles = rapt_divide_up(r->columns, r->tile);
    int64_t length = r->folded.rank ? r->folded.shape[0] : r->rows;
    int64_t items = r->count / r->columns * r->tiles;
    int64_t wanted = tensor->count / (2 * rapt_grain(1)) / items;
    int64_t most = rapt_divide_up(enough_items, items);
    wanted = items >= enough_items || wanted < 1 ? 1 : wanted > most ? most : wanted;
    r->slice = rapt_divide_up(length, wanted);
    r->slices = rapt_divide_up(length, r->slice);
}

/* Folds the slices' results, which lie one set behind the other, into the first set. */
static void combine_slices(const reduction *r, const rapt_fold *combine)
{
    rapt_dtype dtype = r->floating ? RAPT_FLOAT64 : RAPT_INT64;
    int64_t size = sizeof(rapt_accumulator);
    combine->columns[dtype](r->count, size, r->slices - 1, r->count * size, (const char *)(r->results + r->count),
                            r->results, NULL);
}

bool rapt_reduce(const char *op, const rapt_fold *fold, const rapt_fold *combine, const rapt_tensor *tensor,
                 const rapt_reduction_shape *shape, const rapt_accumulator *centers, rapt_accumulator *results)
{
    reduction r;
    r.fold = fold;
    r.floating = rapt_is_floating(tensor);
    r.data = tensor->data;
    r.kept.rank = r.folded.rank = 0;
    r.count = shape->count;
    r.centers = centers;
    r.results = results;
    if (tensor->count == 0) {
        set_start(&r, results, shape->count);
        return true;
    }
    plan(&r, tensor, shape);
    size_t capacity = 0;
    if (r.slices > 1) {
        size_t bytes = (size_t)(r.slices * r.count) * sizeof *results;
        if (!(r.results = rapt_block_take(op, bytes, &capacity))) return false;
    }
    int64_t items = r.count / r.columns * r.tiles * r.slices;
    int64_t work = r.tile * shape->folded / r.slices;
    rapt_parallel(items, rapt_grain(work), run_items, &r);
    if (r.slices > 1) {
        combine_slices(&r, combine);
        memcpy(results, r.results, (size_t)r.count * sizeof *results);
        rapt_block_give(r.results, capacity);
    }
    return true;
}

typedef struct change {
    rapt_loop *loop;
    rapt_accumulator *results;
    const double *other;
    int64_t stride;
} change;

static void run_change(void *context, int64_t first, int64_t last)
{
    const change *c = context;
    const int64_t size = sizeof *c->results, strides[] = {size, size, c->stride};
    char *results = (char *)(c->results + first), *other = (char *)(uintptr_t)c->other;
    c->loop(last - first, (char *[]){results, results, other ? other + first * c->stride : NULL}, strides, NULL);
}

void rapt_change_accumulators(rapt_loop *loop, int64_t count, rapt_accumulator *results, const double *other,
                              int64_t stride)
{
    change c = {loop, results, other, stride};
    if (results) rapt_parallel(count, rapt_grain(2), run_change, &c);
}

typedef struct conversion {
    rapt_loop *loop;
    rapt_tensor *output;
    const rapt_accumulator *results;
} conversion;

static void convert(void *context, int64_t first, int64_t last)
{
    const conversion *c = context;
    int64_t strides[] = {(int64_t)rapt_dtype_size(c->output->dtype), sizeof *c->results};
    char *data[] = {c->output->data + first * strides[0], (char *)(uintptr_t)(c->results + first)};
    c->loop(last - first, data, strides, NULL);
}

void rapt_store_accumulators(rapt_tensor *output, rapt_dtype from, const rapt_accumulator *results)
{
    conversion c = {rapt_kernel.elementwise.cast[output->dtype][from], output, results};
    rapt_parallel(output->count, rapt_grain(1), convert, &c);
}
