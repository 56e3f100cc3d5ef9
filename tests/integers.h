/* Tensors of integers from plain numbers. */
#ifndef RAPT_TESTS_INTEGERS_H
#define RAPT_TESTS_INTEGERS_H

#include <rapt/tensor.h>

static inline rapt_tensor *int64_of(int64_t count, const int64_t *values)
{
    return rapt_from(RAPT_INT64, RAPT_SHAPE(count), values);
}

#endif
