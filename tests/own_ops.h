/* What tests of ops that a user writes share: leaves of numbers, their elements, and the sum as a loss. */
#ifndef RAPT_TESTS_OWN_OPS_H
#define RAPT_TESTS_OWN_OPS_H

#include <criterion/criterion.h>

#include <rapt.h>

#include "expect.h"

static inline rapt_tensor *doubles(int64_t count, const double *numbers)
{
    return rapt_require_gradient(rapt_from(RAPT_FLOAT64, RAPT_SHAPE(count), numbers));
}

static inline double at(const rapt_tensor *x, int64_t i)
{
    cr_assert(x, "%s", rapt_error());
    return rapt_at(x, &i);
}

static inline rapt_tensor *total(rapt_tensor *x)
{
    return rapt_sum(x, RAPT_ALL_AXES, false);
}

#endif
