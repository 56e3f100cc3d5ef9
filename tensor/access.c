/* Reading a tensor's properties and elements. */
#include <math.h>

#include "tensor/debug.h"

#define REQUIRE(argument, op, otherwise)                                                                               \
    if (!(argument)) {                                                                                                 \
        rapt_fail_null(op, #argument);                                                                                 \
        return otherwise;                                                                                              \
    }
#define REQUIRE_TENSOR(tensor, op, otherwise)                                                                          \
    REQUIRE(tensor, op, otherwise)                                                                                     \
    if (!rapt_check_alive(op, "the tensor", tensor)) return otherwise;

rapt_dtype rapt_get_dtype(const rapt_tensor *tensor)
{
    REQUIRE_TENSOR(tensor, "get_dtype", RAPT_FLOAT32)
    return (rapt_dtype)tensor->dtype;
}

int rapt_rank(const rapt_tensor *tensor)
{
    REQUIRE_TENSOR(tensor, "rank", 0)
    return tensor->rank;
}

int64_t rapt_count(const rapt_tensor *tensor)
{
    REQUIRE_TENSOR(tensor, "count", 0)
    return tensor->count;
}

int64_t rapt_size(const rapt_tensor *tensor, int axis)
{
    REQUIRE_TENSOR(tensor, "size", 0)
    axis = rapt_check_axis("size", axis, tensor->rank, 0);
    return axis < 0 ? 0 : tensor->shape[axis];
}

int64_t rapt_stride(const rapt_tensor *tensor, int axis)
{
    REQUIRE_TENSOR(tensor, "stride", 0)
    axis = rapt_check_axis("stride", axis, tensor->rank, 0);
    return axis < 0 ? 0 : tensor->strides[axis];
}

const int64_t *rapt_shape(const rapt_tensor *tensor)
{
    REQUIRE_TENSOR(tensor, "shape", NULL)
    return tensor->shape;
}

bool rapt_is_contiguous(const rapt_tensor *tensor)
{
    REQUIRE_TENSOR(tensor, "is_contiguous", false)
    return tensor->contiguous;
}

bool rapt_same_shape(const rapt_tensor *a, const rapt_tensor *b)
{
    REQUIRE_TENSOR(a, "same_shape", false)
    REQUIRE_TENSOR(b, "same_shape", false)
    if (a->rank != b->rank) return false;
    for (int axis = 0; axis < a->rank; axis++)
        if (a->shape[axis] != b->shape[axis]) return false;
    return true;
}

const void *rapt_data(const rapt_tensor *tensor)
{
    REQUIRE_TENSOR(tensor, "data", NULL)
    return tensor->data;
}

void *rapt_data_for_writing(rapt_tensor *tensor)
{
    return rapt_begin_writing("data_for_writing", tensor) ? tensor->data : NULL;
}

uint64_t rapt_version(const rapt_tensor *tensor)
{
    REQUIRE_TENSOR(tensor, "version", 0)
    return atomic_load_explicit(&tensor->storage->version, memory_order_relaxed);
}

static double read_element(const void *element, rapt_dtype dtype)
{
    switch (dtype) {
    case RAPT_FLOAT32:
        return *(const float *)element;
    case RAPT_FLOAT64:
        return *(const double *)element;
    case RAPT_INT64:
        return (double)*(const int64_t *)element;
    case RAPT_INT32:
        return *(const int32_t *)element;
    case RAPT_UINT8:
    case RAPT_BOOL:
        return *(const uint8_t *)element;
    }
    return NAN;
}

double rapt_item(const rapt_tensor *tensor)
{
    REQUIRE_TENSOR(tensor, "item", NAN)
    if (tensor->count != 1) {
        char text[RAPT_SHAPE_TEXT];
        rapt_fail(RAPT_ERROR_SHAPE, "item", "a tensor of one element expected, not shape %s",
                  rapt_shape_text(tensor->rank, tensor->shape, text));
        return NAN;
    }
    return read_element(tensor->data, (rapt_dtype)tensor->dtype);
}

double rapt_at(const rapt_tensor *tensor, const int64_t *indices)
{
    REQUIRE_TENSOR(tensor, "at", NAN)
    if (tensor->rank > 0) REQUIRE(indices, "at", NAN)
    int64_t offset = 0;
    for (int axis = 0; axis < tensor->rank; axis++) {
        int64_t size = tensor->shape[axis];
        int64_t index = indices[axis] < 0 ? indices[axis] + size : indices[axis];
        if (index < 0 || index >= size) {
            rapt_fail(RAPT_ERROR_VALUE, "at", "index %lld of axis %d, which has size %lld", (long long)indices[axis],
                      axis, (long long)size);
            return NAN;
        }
        offset += index * tensor->strides[axis];
    }
    return read_element(tensor->data + offset * (int64_t)rapt_dtype_size((rapt_dtype)tensor->dtype),
                        (rapt_dtype)tensor->dtype);
}
