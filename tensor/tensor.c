/* Making tensors. */
#include <string.h>

#include "tensor/debug.h"
#include "tensor/memory.h"

/* The elements begin one cache line behind the storage's own header. */
enum { storage_header = 64 };
_Static_assert(sizeof(rapt_storage) <= storage_header, "the storage header must fit before the elements");

static rapt_storage *storage_new(const char *op, size_t bytes)
{
    size_t capacity;
    rapt_storage *storage = rapt_block_take(op, storage_header + bytes, &capacity);
    if (!storage) return NULL;
    *storage = (rapt_storage){.references = 1, .capacity = capacity, .data = (char *)storage + storage_header};
    return storage;
}

/* What the debugging mode calls the maker of a tensor: the op that runs, or else the function. */
static const char *maker(const char *function)
{
    return rapt_running_op ? rapt_running_op : function;
}

/* A header without storage; its share goes to the caller. */
static rapt_tensor *header_new(const char *op, rapt_dtype dtype, int rank, const int64_t *shape)
{
    size_t capacity;
    rapt_tensor *tensor = rapt_block_take(op, sizeof *tensor, &capacity);
    if (!tensor) return NULL;
    tensor->references = 1;
    tensor->made_by = rapt_debugging ? maker(op) : NULL;
    tensor->storage = NULL;
    tensor->data = NULL;
    tensor->link = NULL;
    tensor->output = 0;
    tensor->dtype = dtype;
    tensor->rank = (uint8_t)rank;
    tensor->count = 1;
    for (int axis = 0; axis < rank; axis++) {
        tensor->shape[axis] = shape[axis];
        tensor->count *= shape[axis];
    }
    return tensor;
}

static void set_row_major_strides(rapt_tensor *tensor)
{
    int64_t stride = 1;
    for (int axis = tensor->rank - 1; axis >= 0; axis--) {
        tensor->strides[axis] = stride;
        if (tensor->shape[axis] > 1) stride *= tensor->shape[axis];
    }
    tensor->contiguous = true;
}

static bool is_row_major(const rapt_tensor *tensor)
{
    int64_t stride = 1;
    for (int axis = tensor->rank - 1; axis >= 0; axis--) {
        if (tensor->shape[axis] == 1) continue;
        if (tensor->strides[axis] != stride) return false;
        stride *= tensor->shape[axis];
    }
    return true;
}

rapt_tensor *rapt_new(const char *op, rapt_dtype dtype, int rank, const int64_t *shape)
{
    int64_t count;
    if (!rapt_check_shape(op, dtype, rank, shape, &count)) return NULL;
    rapt_tensor *tensor = header_new(op, dtype, rank, shape);
    if (!tensor) return NULL;
    tensor->storage = storage_new(op, (size_t)count * rapt_dtype_size(dtype));
    if (!tensor->storage) {
        rapt_block_give(tensor, sizeof *tensor);
        return NULL;
    }
    tensor->data = tensor->storage->data;
    set_row_major_strides(tensor);
    return rapt_scope_own(tensor);
}

rapt_tensor *rapt_new_view(const rapt_tensor *base, char *data, int rank, const int64_t *shape, const int64_t *strides)
{
    rapt_tensor *view = header_new("view", base->dtype, rank, shape);
    if (!view) return NULL;
    view->storage = base->storage;
    atomic_fetch_add_explicit(&base->storage->references, 1, memory_order_relaxed);
    view->data = data;
    if (view->count == 0) { /* strides of nothing say nothing: no axis of it counts as repeated */
        set_row_major_strides(view);
        return rapt_scope_own(view);
    }
    if (rank > 0) memcpy(view->strides, strides, (size_t)rank * sizeof *strides);
    view->contiguous = is_row_major(view);
    return rapt_scope_own(view);
}

rapt_tensor *rapt_new_alias(const rapt_tensor *tensor, bool keep_link)
{
    rapt_tensor *alias = rapt_new_view(tensor, tensor->data, tensor->rank, tensor->shape, tensor->strides);
    if (alias && keep_link && tensor->link) {
        alias->link = tensor->link;
        alias->output = tensor->output;
        tensor->link->retain(tensor->link);
    }
    return alias;
}

const rapt_tensor *rapt_without_repeats(const rapt_tensor *tensor, int axes)
{
    int64_t shape[RAPT_MAX_RANK];
    bool repeats = false;
    for (int axis = 0; axis < tensor->rank; axis++) {
        bool repeated = axis < axes && tensor->strides[axis] == 0 && tensor->shape[axis] > 1;
        shape[axis] = repeated ? 1 : tensor->shape[axis];
        repeats = repeats || repeated;
    }
    return repeats ? rapt_new_view(tensor, tensor->data, tensor->rank, shape, tensor->strides) : tensor;
}

rapt_tensor *rapt_new_foreign(rapt_dtype dtype, int rank, const int64_t *shape, void *data, void (*release)(void *),
                              void *owner)
{
    int64_t count;
    if (!rapt_check_shape("from_memory", dtype, rank, shape, &count)) return NULL;
    rapt_tensor *tensor = header_new("from_memory", dtype, rank, shape);
    if (!tensor) return NULL;
    tensor->storage = storage_new("from_memory", 0);
    if (!tensor->storage) {
        rapt_block_give(tensor, sizeof *tensor);
        return NULL;
    }
    tensor->storage->release_foreign = release;
    tensor->storage->foreign_owner = owner;
    tensor->storage->data = tensor->data = data;
    set_row_major_strides(tensor);
    return rapt_scope_own(tensor);
}

void rapt_exchange(rapt_tensor *a, rapt_tensor *b)
{
    const rapt_tensor held = rapt_header_of(a);
    a->storage = b->storage, b->storage = held.storage;
    a->data = b->data, b->data = held.data;
    a->link = b->link, b->link = held.link;
    a->output = b->output, b->output = held.output;
    a->dtype = b->dtype, b->dtype = held.dtype;
    a->contiguous = b->contiguous, b->contiguous = held.contiguous;
    memcpy(a->strides, b->strides, sizeof a->strides);
    memcpy(b->strides, held.strides, sizeof b->strides);
}

bool rapt_check_writable(const char *op, const rapt_tensor *tensor)
{
    if (!tensor) return rapt_fail_null(op, "tensor");
    if (!rapt_check_alive(op, "the tensor", tensor)) return false;
    if (tensor->link && !tensor->link->is_leaf)
        return rapt_fail(RAPT_ERROR_GRAPH, op,
                         "the tensor is the result of a recorded op, and a change in place would not be recorded; "
                         "change a detached clone instead");
    for (int axis = 0; axis < tensor->rank; axis++)
        if (tensor->strides[axis] == 0 && tensor->shape[axis] > 1)
            return rapt_fail(RAPT_ERROR_SHAPE, op,
                             "axis %d of the tensor is expanded: one element stands for %lld; change a clone instead",
                             axis, (long long)tensor->shape[axis]);
    return true;
}

bool rapt_begin_writing(const char *op, rapt_tensor *tensor)
{
    if (!rapt_check_writable(op, tensor)) return false;
    atomic_fetch_add_explicit(&tensor->storage->version, 1, memory_order_relaxed);
    return true;
}
