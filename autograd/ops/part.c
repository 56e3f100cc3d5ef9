/* Parts of tensors: every step-th place of an axis, to be read or written. */
#include "part.h"

#include "tensor/map.h"

rapt_tensor rapt_part(const rapt_tensor *whole, int axis, int64_t start, int64_t size, int64_t step)
{
    rapt_tensor part = rapt_header_of(whole);
    part.data = rapt_data_at(whole, start * whole->strides[axis]);
    part.shape[axis] = size;
    part.strides[axis] *= step;
    part.contiguous = false;
    part.count = 1;
    for (int i = 0; i < part.rank; i++) part.count *= part.shape[i];
    return part;
}

void rapt_write_part(const rapt_tensor *target, const rapt_tensor *source)
{
    rapt_map(rapt_kernel.elementwise.cast[target->dtype][source->dtype], NULL, 1, 2,
             (const rapt_tensor *[]){target, source});
}
