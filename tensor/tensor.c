/* Making tensors. */
#include <string.h>

#include "tensor/debug.h"
#include "tensor/memory.h"

/* The elements begin one cache line behind the storage's own header. */
enum { storage_header = 64 };
_Static_assert(sizeof(rapt_storage) <= storage_header, "the storage header must fit before the elements");

/* Few elements are in one block with their tensor, so that making one takes one block. */
enum { few_bytes = 512 };

static rapt_storage *storage_begin(void *place, size_t capacity, bool follows_tensor)
{
    rapt_storage *storage = place;
    *storage = (rapt_storage){.references = 1,
                              .capacity = capacity,
                              .parts = 1 + follows_tensor,
                              .follows_tensor = follows_tensor,
                              .data = (char *)storage + storage_header};
    return storage;
}

static rapt_storage *storage_new(const char *op, size_t bytes)
{
    size_t capacity;
    void *block = rapt_block_take(op, storage_header + bytes, &capacity);
    return block ? storage_begin(block, capacity, false) : NULL;
}

/* What the debugging mode calls the maker of a tensor: the op that runs, or else the function. */
static const char *maker(const char *function)
{
    return rapt_running_op ? rapt_running_op : function;
}

/* A header without storage and strides; its share goes to the caller. */
static inline rapt_tensor *header_begin(void *place, const char *op, rapt_dtype dtype, int rank, int64_t count)
{
    rapt_tensor *tensor = place;
    atomic_init(&tensor->references, 1); /* an assignment would be a fence */
    if (rapt_debugging) tensor->made_by = maker(op);
    tensor->storage = NULL;
    tensor->data = NULL;
    tensor->link = NULL;
    tensor->output = 0;
    tensor->dtype = dtype;
    tensor->rank = (uint8_t)rank;
    tensor->has_storage_behind = false;
    tensor->count = count;
    return tensor;
}

static rapt_tensor *header_new(const char *op, rapt_dtype dtype, int rank, int64_t count)
{
    size_t capacity;
    void *block = rapt_block_take(op, sizeof(rapt_tensor), &capacity);
    return block ? header_begin(block, op, dtype, rank, count) : NULL;
}

static inline void set_row_major(rapt_tensor *tensor, const int64_t *shape)
{
    int64_t stride = 1;
    for (int axis = tensor->rank - 1; axis >= 0; axis--) {
        tensor->shape[axis] = shape[axis];
        tensor->strides[axis] = stride;
        if (shape[axis] > 1) stride *= shape[axis];
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

static rapt_tensor *new_apart(const char *op, rapt_dtype dtype, int rank, int64_t count, size_t bytes)
{
    rapt_tensor *tensor = header_new(op, dtype, rank, count);
    if (!tensor) return NULL;
    tensor->storage = storage_new(op, bytes);
    if (tensor->storage) return tensor;
    rapt_block_give(tensor, sizeof *tensor);
    return NULL;
}

static inline rapt_tensor *new_together(const char *op, rapt_dtype dtype, int rank, int64_t count, size_t bytes)
{
    size_t capacity;
    void *block = rapt_block_take(op, RAPT_TENSOR_ROOM + storage_header + bytes, &capacity);
    if (!block) return NULL;
    rapt_tensor *tensor = header_begin(block, op, dtype, rank, count);
    tensor->storage = storage_begin((char *)block + RAPT_TENSOR_ROOM, capacity, true);
    tensor->has_storage_behind = true;
    return tensor;
}

/* Of a shape that was checked. The debugging mode keeps a header longer as it was than its elements: they are apart. */
static inline rapt_tensor *new_checked(const char *op, rapt_dtype dtype, int rank, const int64_t *shape, int64_t count)
{
    const size_t bytes = (size_t)count * rapt_element_bytes[dtype];
    rapt_tensor *tensor = bytes > few_bytes || rapt_debugging ? new_apart(op, dtype, rank, count, bytes)
                                                              : new_together(op, dtype, rank, count, bytes);
    if (!tensor) return NULL;
    tensor->data = tensor->storage->data;
    set_row_major(tensor, shape);
    return rapt_scope_own(tensor);
}

rapt_tensor *rapt_new(const char *op, rapt_dtype dtype, int rank, const int64_t *shape)
{
    int64_t count;
    if (!rapt_check_shape(op, dtype, rank, shape, &count)) return NULL;
    return new_checked(op, dtype, rank, shape, count);
}

/* Bytes that were counted once need not be checked for overflow again. */
rapt_tensor *rapt_new_shaped(const char *op, rapt_dtype dtype, const rapt_tensor *shaped)
{
    if (rapt_element_bytes[dtype] > rapt_element_bytes[shaped->dtype])
        return rapt_new(op, dtype, shaped->rank, shaped->shape);
    return new_checked(op, dtype, shaped->rank, shaped->shape, shaped->count);
}

static void look_at(rapt_tensor *view, rapt_storage *storage, char *data)
{
    atomic_fetch_add_explicit(&storage->references, 1, memory_order_relaxed);
    view->storage = storage;
    view->data = data;
}

static rapt_tensor *view_new(const rapt_tensor *base, char *data, int rank, const int64_t *shape,
                             const int64_t *strides)
{
    int64_t count = 1;
    for (int axis = 0; axis < rank; axis++) count *= shape[axis];
    rapt_tensor *view = header_new("view", base->dtype, rank, count);
    if (!view) return NULL;
    look_at(view, base->storage, data);
    set_row_major(view, shape); /* of nothing: strides say nothing there, and no axis counts as repeated */
    if (count == 0) return view;
    for (int axis = 0; axis < rank; axis++) view->strides[axis] = strides[axis];
    view->contiguous = is_row_major(view);
    return view;
}

rapt_tensor *rapt_new_view(const rapt_tensor *base, char *data, int rank, const int64_t *shape, const int64_t *strides)
{
    return rapt_scope_own(view_new(base, data, rank, shape, strides));
}

rapt_tensor *rapt_alias_share(const rapt_tensor *tensor, bool keep_link)
{
    rapt_tensor *alias = header_new("view", tensor->dtype, tensor->rank, tensor->count);
    if (!alias) return NULL;
    look_at(alias, tensor->storage, tensor->data);
    memcpy(alias->shape, tensor->shape, sizeof alias->shape);
    memcpy(alias->strides, tensor->strides, sizeof alias->strides);
    alias->contiguous = tensor->contiguous;
    if (keep_link && tensor->link) {
        alias->link = tensor->link;
        alias->output = tensor->output;
        tensor->link->kind->retain(tensor->link);
    }
    return alias;
}

rapt_tensor *rapt_new_alias(const rapt_tensor *tensor, bool keep_link)
{
    return rapt_scope_own(rapt_alias_share(tensor, keep_link));
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

rapt_tensor *rapt_new_foreign(const char *op, rapt_dtype dtype, int rank, const int64_t *shape, void *data,
                              void (*release)(void *), void *owner)
{
    int64_t count;
    if (!rapt_check_shape(op, dtype, rank, shape, &count)) return NULL;
    rapt_tensor *tensor = new_apart(op, dtype, rank, count, 0);
    if (!tensor) return NULL;
    tensor->storage->is_foreign = true;
    tensor->storage->data = tensor->data = data;
    set_row_major(tensor, shape);
    if (!rapt_scope_own(tensor)) return NULL;
    tensor->storage->release_foreign = release;
    tensor->storage->foreign_owner = owner;
    return tensor;
}

void rapt_set_strides(rapt_tensor *tensor, const int64_t *strides)
{
    int64_t dense = 1;
    for (int axis = tensor->rank - 1; axis >= 0; axis--) {
        tensor->strides[axis] = tensor->shape[axis] > 1 ? strides[axis] : dense;
        dense = tensor->strides[axis] * tensor->shape[axis];
    }
    tensor->contiguous = is_row_major(tensor);
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

int rapt_repeated_axis(const rapt_tensor *tensor)
{
    for (int axis = 0; axis < tensor->rank; axis++)
        if (tensor->strides[axis] == 0 && tensor->shape[axis] > 1) return axis;
    return -1;
}

bool rapt_check_writable(const char *op, const rapt_tensor *tensor)
{
    if (!tensor) return rapt_fail_null(op, "tensor");
    if (!rapt_check_alive(op, "the tensor", tensor)) return false;
    if (tensor->link && !tensor->link->kind->is_leaf)
        return rapt_fail(RAPT_ERROR_GRAPH, op,
                         "the tensor is the result of a recorded op, and a change in place would not be recorded; "
                         "change a detached clone instead");
    const int repeated = rapt_repeated_axis(tensor);
    if (repeated >= 0)
        return rapt_fail(RAPT_ERROR_SHAPE, op,
                         "axis %d of the tensor is expanded: one element stands for %lld; change a clone instead",
                         repeated, (long long)tensor->shape[repeated]);
    if (tensor->storage->is_read_only)
        return rapt_fail(RAPT_ERROR_VALUE, op,
                         "the tensor lies in memory that may only be read; change a clone instead");
    return true;
}

bool rapt_begin_writing(const char *op, rapt_tensor *tensor)
{
    if (!rapt_check_writable(op, tensor)) return false;
    atomic_fetch_add_explicit(&tensor->storage->version, 1, memory_order_relaxed);
    return true;
}
