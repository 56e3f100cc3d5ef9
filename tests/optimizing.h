/* Parameters and gradients for the tests of optimizers. */
#ifndef RAPT_TESTS_OPTIMIZING_H
#define RAPT_TESTS_OPTIMIZING_H

#include "expect.h"
#include "same_bits.h"

#include <rapt/optim.h>

/* A leaf with those values. */
static inline rapt_tensor *parameter_from(rapt_dtype dtype, int64_t count, const double *values)
{
    rapt_tensor *tensor = rapt_empty(dtype, 1, &count);
    cr_assert(rapt_copy(tensor, rapt_from(RAPT_FLOAT64, 1, &count, values)), "%s", rapt_error());
    return rapt_require_gradient(tensor);
}

/* Adds to the leaf's gradient, as backward does. */
static inline void give_gradient(rapt_tensor *leaf, rapt_tensor *gradient)
{
    cr_assert(rapt_backward_from(1, &leaf, &gradient, 0), "%s", rapt_error());
}

static inline void give_gradient_of(rapt_tensor *leaf, double value)
{
    RAPT_SCOPE;
    give_gradient(leaf, rapt_full(rapt_get_dtype(leaf), rapt_rank(leaf), rapt_shape(leaf), value));
}

static inline double element(const rapt_tensor *tensor, int64_t index)
{
    return rapt_at(tensor, &index);
}

/* Plain gradient descent, of no parameters yet, and a parameter of one number for an optimizer. */
static inline rapt_optimizer *descent(double learning_rate)
{
    rapt_optimizer *optimizer = rapt_sgd_new(NULL, &(rapt_sgd_config){.learning_rate = learning_rate});
    cr_assert_not_null(optimizer, "%s", rapt_error());
    return optimizer;
}

static inline rapt_tensor *add_number(rapt_optimizer *optimizer, const char *name, double value)
{
    rapt_tensor *p = parameter_from(RAPT_FLOAT64, 1, &value);
    cr_assert(rapt_optimizer_add(optimizer, name, p), "%s", rapt_error());
    return p;
}

#endif
