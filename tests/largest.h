/* The largest of a tensor's numbers, and how far two tensors are apart, measured by it. */
#ifndef RAPT_TESTS_LARGEST_H
#define RAPT_TESTS_LARGEST_H

#include <criterion/criterion.h>
#include <rapt/ops.h>

/* Without its sign; 0 of no tensor or an empty one, NaN where one of them is. */
static inline double largest_of(rapt_tensor *x)
{
    return x && rapt_count(x) > 0 ? rapt_item(rapt_max(rapt_abs(x), RAPT_ALL_AXES, false)) : 0;
}

/* The largest difference, as a part of the largest number of b, or itself where all of b are zeros. */
static inline double relative_difference(rapt_tensor *a, rapt_tensor *b)
{
    cr_assert(a && b, "%s", rapt_error());
    cr_assert(rapt_same_shape(a, b));
    const double largest = largest_of(b), difference = largest_of(rapt_sub(a, b));
    return largest > 0 ? difference / largest : difference;
}

#endif
