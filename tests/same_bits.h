/* Are two tensors the same to the last bit? */
#ifndef RAPT_TESTS_SAME_BITS_H
#define RAPT_TESTS_SAME_BITS_H

#include <stdint.h>
#include <string.h>

#include <rapt/tensor.h>

/* Both there, of one shape and dtype, and equal byte by byte, however they lie in memory. */
static inline bool same_bits(const rapt_tensor *a, const rapt_tensor *b)
{
    if (!a || !b || !rapt_same_shape(a, b) || rapt_get_dtype(a) != rapt_get_dtype(b)) return false;
    RAPT_SCOPE;
    const rapt_tensor *x = rapt_is_contiguous(a) ? a : rapt_clone(a), *y = rapt_is_contiguous(b) ? b : rapt_clone(b);
    const size_t bytes = (size_t)rapt_count(a) * rapt_dtype_size(rapt_get_dtype(a));
    return x && y && memcmp(rapt_data(x), rapt_data(y), bytes) == 0;
}

#endif
