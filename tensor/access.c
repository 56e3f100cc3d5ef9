/* A tensor's properties; its elements one by one, read and set. */
#include <math.h>

#include "tensor/debug.h"
#include "tensor/kernels.h"

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
    return tensor->dtype;
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
    return rapt_has_shape(a, b->rank, b->shape);
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
    return rapt_version_of(tensor);
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

static const char *only_element(const char *op, const rapt_tensor *tensor)
{
    REQUIRE_TENSOR(tensor, op, NULL)
    if (tensor->count == 1) return tensor->data;
    char text[RAPT_SHAPE_TEXT];
    rapt_fail(RAPT_ERROR_SHAPE, op,
              "a tensor of one element expected, not shape %s (rapt_sum, rapt_mean or rapt_select make one)",
              rapt_shape_text(tensor->rank, tensor->shape, text));
    return NULL;
}

static char *element_at(const char *op, const rapt_tensor *tensor, const int64_t *indices)
{
    REQUIRE_TENSOR(tensor, op, NULL)
    if (tensor->rank > 0) REQUIRE(indices, op, NULL)
    int64_t offset = 0;
    for (int axis = 0; axis < tensor->rank; axis++) {
        int64_t size = tensor->shape[axis];
        int64_t index = indices[axis] < 0 ? indices[axis] + size : indices[axis];
        if (index < 0 || index >= size) {
            rapt_fail(RAPT_ERROR_VALUE, op, "index %lld of axis %d, which has size %lld", (long long)indices[axis],
                      axis, (long long)size);
            return NULL;
        }
        offset += index * tensor->strides[axis];
    }
    return rapt_data_at(tensor, offset);
}

double rapt_item(const rapt_tensor *tensor)
{
    const char *element = only_element("item", tensor);
    return element ? read_element(element, tensor->dtype) : NAN;
}

double rapt_at(const rapt_tensor *tensor, const int64_t *indices)
{
    const char *element = element_at("at", tensor, indices);
    return element ? read_element(element, tensor->dtype) : NAN;
}

/* 0 and an error for an element of a floating tensor, and for none. */
static int64_t read_integer(const char *op, const rapt_tensor *tensor, const char *element)
{
    if (!element) return 0;
    if (tensor->dtype == RAPT_INT64) return *(const int64_t *)(const void *)element;
    if (!rapt_is_floating(tensor)) return (int64_t)read_element(element, tensor->dtype);
    rapt_fail(RAPT_ERROR_DTYPE, op, "the tensor is %s; an integer dtype or bool expected",
              rapt_dtype_name(tensor->dtype));
    return 0;
}

int64_t rapt_item_int64(const rapt_tensor *tensor)
{
    return read_integer("item_int64", tensor, only_element("item_int64", tensor));
}

int64_t rapt_at_int64(const rapt_tensor *tensor, const int64_t *indices)
{
    return read_integer("at_int64", tensor, element_at("at_int64", tensor, indices));
}

bool rapt_set_at(rapt_tensor *tensor, const int64_t *indices, double value)
{
    char *element = element_at("set_at", tensor, indices);
    if (!element || !rapt_begin_writing("set_at", tensor)) return false;
    rapt_write_element(tensor->dtype, value, element);
    return true;
}

bool rapt_set_at_int64(rapt_tensor *tensor, const int64_t *indices, int64_t value)
{
    char *element = element_at("set_at_int64", tensor, indices);
    if (!element || !rapt_begin_writing("set_at_int64", tensor)) return false;
    const int64_t strides[] = {0, 0};
    rapt_kernel.elementwise.cast[tensor->dtype][RAPT_INT64](1, (char *[]){element, (char *)&value}, strides, NULL);
    return true;
}
