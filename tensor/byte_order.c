/* The order of the bytes of numbers, in files and in memory. */
#include "byte_order.h"

#include <string.h>

#include "tensor/core.h"

void rapt_swap_bytes(const rapt_tensor *tensor)
{
    const int64_t size = rapt_element_bytes[tensor->dtype], bytes = tensor->count * size;
    uint64_t eight;
    uint32_t four;
    if (size == 1) return;
    for (int64_t i = 0; i < bytes; i += size) {
        if (size == 8) {
            memcpy(&eight, tensor->data + i, 8);
            eight = __builtin_bswap64(eight);
            memcpy(tensor->data + i, &eight, 8);
        } else {
            memcpy(&four, tensor->data + i, 4);
            four = __builtin_bswap32(four);
            memcpy(tensor->data + i, &four, 4);
        }
    }
}

const rapt_tensor *rapt_as_in_file(const rapt_tensor *tensor)
{
    const rapt_tensor *dense = rapt_as_contiguous(tensor);
    if (RAPT_IS_LITTLE_ENDIAN || !dense || rapt_element_bytes[dense->dtype] == 1) return dense;
    rapt_tensor *copy = rapt_new_like("as_in_file", dense);
    if (!copy) return NULL;
    memcpy(copy->data, dense->data, (size_t)(dense->count * rapt_element_bytes[dense->dtype]));
    rapt_swap_bytes(copy);
    return copy;
}
