/* Outputs of a recomputed function: several, one that came in as an input, one that is there twice. */
#include <criterion/criterion.h>

#include <rapt.h>

#include "expect.h"

enum { size = 4 };

static rapt_tensor *total(rapt_tensor *x)
{
    return rapt_sum(x, RAPT_ALL_AXES, false);
}

static rapt_tensor *random_leaf(void)
{
    return rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(size, size)));
}

static bool three(rapt_tensor *const *inputs, rapt_tensor **outputs, void *context)
{
    (void)context;
    outputs[0] = rapt_exp(inputs[0]);
    outputs[1] = inputs[0];
    outputs[2] = rapt_argmax(inputs[0], 1, false);
    return outputs[2] != NULL;
}

Test(recompute_outputs, several_outputs_even_an_input)
{
    RAPT_SCOPE;
    rapt_seed(3);
    rapt_tensor *x = random_leaf(), *y = rapt_mul_scalar(x, 3), *outputs[3];
    cr_assert(rapt_recompute_many(three, 1, &y, 3, outputs, NULL, NULL), "%s", rapt_error());
    cr_expect_not(rapt_requires_gradient(outputs[2]));
    cr_expect(rapt_backward(total(outputs[1])), "%s", rapt_error());
    cr_expect_eq(rapt_at(rapt_gradient(x), (int64_t[]){1, 1}), 3);
    cr_assert(rapt_recompute_many(three, 1, &y, 3, outputs, NULL, NULL), "%s", rapt_error());
    rapt_clear_gradient(x);
    y = rapt_mul_scalar(x, 3);
    cr_assert(rapt_recompute_many(three, 1, &y, 3, outputs, NULL, NULL), "%s", rapt_error());
    cr_expect(rapt_backward(total(rapt_add(outputs[0], outputs[1]))), "%s", rapt_error());
    cr_expect_eq(rapt_at(rapt_gradient(x), (int64_t[]){1, 1}), 3 + 3 * rapt_at(outputs[0], (int64_t[]){1, 1}));
}

/* The input twice, and what is made of it twice. */
static bool both_twice(rapt_tensor *const *inputs, rapt_tensor **outputs, void *context)
{
    (void)context;
    outputs[0] = outputs[2] = inputs[0];
    outputs[1] = outputs[3] = rapt_sin(inputs[0]);
    return outputs[1] != NULL;
}

/* The gradient of a function of the outputs, in which sums of several gradients begin in an order of their own. */
static rapt_tensor *gradient_by(bool recomputes)
{
    rapt_tensor *w = random_leaf(), *x = rapt_mul_scalar(w, 1.5), *y[4];
    if (recomputes)
        cr_assert(rapt_recompute_many(both_twice, 1, &x, 4, y, NULL, NULL), "%s", rapt_error());
    else
        both_twice(&x, y, NULL);
    cr_expect_eq(y[0], x, "an input that is handed through is that tensor");
    cr_expect(y[0] == y[2] && y[1] == y[3]);
    rapt_tensor *z = rapt_add(rapt_sin(x), rapt_add(rapt_exp(y[0]), rapt_cos(y[2])));
    z = rapt_add(rapt_add(z, rapt_sin(y[1])), rapt_add(rapt_exp(y[3]), rapt_cos(y[1])));
    cr_assert(rapt_backward(total(rapt_add(z, rapt_tanh(rapt_mul(x, y[3]))))), "%s", rapt_error());
    return rapt_gradient(w);
}

Test(recompute_outputs, give_the_same_bits_where_they_are_the_same_tensor)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        RAPT_SCOPE;
        const rapt_tensor *gradients[2];
        for (int recomputes = 0; recomputes < 2; recomputes++) {
            rapt_seed(seed);
            gradients[recomputes] = gradient_by(recomputes);
        }
        cr_assert(memcmp(rapt_data(gradients[0]), rapt_data(gradients[1]), size * size * sizeof(double)) == 0);
    }
}

static rapt_tensor *hand_through(rapt_tensor *const *inputs, void *context)
{
    (void)context;
    return inputs[0];
}

static int freed;

static void count_free(void *context)
{
    (void)context;
    freed++;
}

/* Nothing is left to be recomputed. */
Test(recompute_outputs, may_be_an_input_alone)
{
    const int64_t before = rapt_memory_get_statistics().live_bytes;
    for (int is_leaf = 0; is_leaf < 2; is_leaf++) {
        RAPT_SCOPE;
        rapt_tensor *w = random_leaf(), *x = is_leaf ? w : rapt_mul_scalar(w, 3);
        rapt_tensor *y = rapt_recompute(hand_through, 1, &x, NULL, count_free);
        cr_expect(y == x && freed == is_leaf + 1, "%s", rapt_error());
        cr_expect(rapt_backward(total(y)), "%s", rapt_error());
        cr_expect_eq(rapt_at(rapt_gradient(w), (int64_t[]){1, 1}), is_leaf ? 1 : 3);
    }
    cr_expect_eq(rapt_memory_get_statistics().live_bytes, before);
    expect_no_error();
}

static bool one_of_nothing(rapt_tensor *const *inputs, rapt_tensor **outputs, void *context)
{
    (void)context;
    outputs[0] = rapt_exp(inputs[0]);
    outputs[1] = outputs[2] = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(size, size));
    return outputs[2] != NULL;
}

Test(recompute_outputs, computed_from_no_leaf_want_no_gradient)
{
    const int64_t before = rapt_memory_get_statistics().live_bytes;
    {
        RAPT_SCOPE;
        rapt_tensor *x = random_leaf(), *y[3];
        cr_assert(rapt_recompute_many(one_of_nothing, 1, &x, 3, y, NULL, NULL), "%s", rapt_error());
        for (int k = 0; k < 3; k++) cr_expect_eq(rapt_requires_gradient(y[k]), k == 0, "output %d", k);
        cr_expect(rapt_backward(total(rapt_mul(y[0], y[1]))), "%s", rapt_error());
        cr_expect_eq(rapt_at(rapt_gradient(x), (int64_t[]){1, 1}), rapt_at(y[0], (int64_t[]){1, 1}));
    }
    cr_expect_eq(rapt_memory_get_statistics().live_bytes, before);
    expect_no_error();
}

Test(recompute_outputs, names_wrong_arguments)
{
    RAPT_SCOPE;
    rapt_tensor *inputs[] = {rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2))}, *outputs[1];
    cr_expect_not(rapt_recompute_many(three, 1, inputs, 0, outputs, NULL, NULL));
    expect_error(RAPT_ERROR_VALUE, "0 outputs; 1 to");
    cr_expect_not(rapt_recompute_many(three, 1, inputs, 1, NULL, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "the list of outputs is NULL");
    rapt_tensor *x = random_leaf(), *row = rapt_select(x, 0, 0), *results[] = {x, x, x, x}; /* the last is none */
    cr_expect_not(rapt_recompute_many(three, 1, &row, 3, results, NULL, NULL));
    expect_error(RAPT_ERROR_SHAPE, "argmax: ");
    cr_expect(!results[0] && !results[1] && !results[2] && results[3] == x);
}
