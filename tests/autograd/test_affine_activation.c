/* affine_activation beside rapt_affine, the activation and rapt_drop: the same bits, forward and backward, whichever
 * way the product goes; the second derivative; and what a failure leaves behind. */
#include <math.h>
#include <string.h>

#include <criterion/criterion.h>
#include <rapt.h>

#include "largest.h"
#include "tensor/core.h"
#include "tensor/matmul.h"
#include "tensor/memory.h"

static rapt_tensor *(*const functions[])(rapt_tensor *) = {[RAPT_ACTIVATION_RELU] = rapt_relu,
                                                           [RAPT_ACTIVATION_GELU] = rapt_gelu,
                                                           [RAPT_ACTIVATION_GELU_TANH] = rapt_gelu_tanh,
                                                           [RAPT_ACTIVATION_SILU] = rapt_silu};

typedef struct problem {
    rapt_tensor *x, *weight, *bias;
    rapt_activation activation;
    double dropout;
    bool turns_x, turns_weight; /* they are used through transposed views */
} problem;

static rapt_tensor *leaf(rapt_dtype dtype, int64_t rows, int64_t columns, bool turned)
{
    return rapt_require_gradient(rapt_randn(dtype, RAPT_SHAPE(turned ? columns : rows, turned ? rows : columns)));
}

static problem problem_of(rapt_dtype dtype, int64_t m, int64_t n, int64_t k, int i)
{
    rapt_seed(7);
    return (problem){.x = leaf(dtype, m, k, i & 1),
                     .weight = leaf(dtype, n, k, i & 2),
                     .bias = i & 4 ? NULL : rapt_require_gradient(rapt_randn(dtype, RAPT_SHAPE(n))),
                     .turns_x = i & 1,
                     .turns_weight = i & 2};
}

static rapt_tensor *apply(const problem *p, bool fused)
{
    rapt_tensor *x = p->turns_x ? rapt_transpose(p->x, -1, -2) : p->x;
    rapt_tensor *weight = p->turns_weight ? rapt_transpose(p->weight, 0, 1) : p->weight;
    rapt_seed(11);
    if (fused) return rapt_affine_activation(x, weight, p->bias, p->activation, p->dropout);
    rapt_tensor *y = functions[p->activation](rapt_affine(x, weight, p->bias));
    return p->dropout > 0 ? rapt_drop(y, p->dropout) : y;
}

static void expect_same(const char *what, const problem *p, rapt_tensor *a, rapt_tensor *b)
{
    cr_assert(a && b, "%s", rapt_error());
    cr_assert(rapt_same_shape(a, b));
    const size_t bytes = (size_t)rapt_count(a) * rapt_dtype_size(rapt_get_dtype(a));
    char of[2][128];
    cr_expect(memcmp(rapt_data(rapt_contiguous(a)), rapt_data(rapt_contiguous(b)), bytes) == 0,
              "%s: other bits; x is %s, the weight %s, activation %d, dropout %g", what,
              rapt_describe(p->x, of[0], sizeof of[0]), rapt_describe(p->weight, of[1], sizeof of[1]),
              (int)p->activation, p->dropout);
}

/* Values, where the generator stands then, and gradients for a random one of the output. */
static void compare(const problem *p)
{
    RAPT_SCOPE;
    rapt_tensor *inputs[] = {p->x, p->weight, p->bias}, *y[2], *gradients[2][3];
    const int count = p->bias ? 3 : 2;
    rapt_random_state after[2];
    for (int fused = 0; fused < 2; fused++) {
        y[fused] = apply(p, fused);
        after[fused] = rapt_random_get_state();
        rapt_seed(13);
        rapt_tensor *g = y[fused] ? rapt_randn_like(y[fused]) : NULL;
        cr_assert(rapt_gradients(1, &y[fused], &g, count, inputs, gradients[fused], 0), "%s", rapt_error());
    }
    expect_same("y", p, y[1], y[0]);
    cr_expect(after[0].offset == after[1].offset);
    for (int i = 0; i < count; i++) expect_same("a gradient", p, gradients[1][i], gradients[0][i]);
    {
        RAPT_NO_GRADIENT;
        expect_same("y without a graph", p, apply(p, true), y[0]);
    }
}

static void compare_all(rapt_dtype dtype, int64_t m, int64_t n, int64_t k, int kinds)
{
    for (int i = 0; i < kinds; i++) {
        RAPT_SCOPE;
        problem p = problem_of(dtype, m, n, k, i);
        for (int activation = 0; activation < 4; activation++)
            for (int drops = 0; drops < 2; drops++) {
                p.activation = (rapt_activation)activation;
                p.dropout = drops ? 0.3 : 0;
                compare(&p);
            }
    }
}

static void compare_shapes(rapt_dtype dtype)
{
    static const int64_t shapes[][3] = {{1, 1, 1},   {1, 130, 70}, {7, 1, 30},  {2, 37, 300}, {5, 64, 40},
                                        {33, 17, 5}, {70, 31, 90}, {31, 70, 9}, {0, 5, 3},    {4, 6, 0}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        compare_all(dtype, shapes[i][0], shapes[i][1], shapes[i][2], 8);
    compare_all(dtype, 150, 147, 270, 4);  /* alone */
    compare_all(dtype, 300, 401, 300, 1);  /* together, b's panels shared */
    compare_all(dtype, 131, 1203, 530, 1); /* together, a's panels shared */
    compare_all(dtype, 420, 1203, 40, 1);  /* together, and more columns than stay near */
}

Test(affine_activation, gives_the_bits_of_its_parts_in_float32)
{
    compare_shapes(RAPT_FLOAT32);
}

Test(affine_activation, gives_the_bits_of_its_parts_in_float64)
{
    compare_shapes(RAPT_FLOAT64);
}

Test(affine_activation, gives_the_bits_of_its_parts_where_openblas_multiplies)
{
    const bool before = rapt_matmul_set_blas(true);
    compare_all(RAPT_FLOAT32, 33, 17, 5, 4);
    compare_all(RAPT_FLOAT64, 4, 6, 0, 1);
    rapt_matmul_set_blas(before);
}

Test(affine_activation, of_a_batch_that_does_not_lie_in_rows)
{
    RAPT_SCOPE;
    rapt_seed(3);
    rapt_tensor *wide = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(3, 50, 40));
    rapt_tensor *x = rapt_transpose(rapt_slice(wide, 1, 0, 45, 1), 1, 2); /* (3, 40, 45) */
    rapt_tensor *weight = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(67, 45)),
                *bias = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(67));
    const problem p = {.x = x, .weight = weight, .bias = bias, .activation = RAPT_ACTIVATION_GELU, .dropout = 0.5};
    expect_same("y", &p, apply(&p, true), apply(&p, false));
}

/* Σ of the gradient's squares, whose gradient is the second derivative's. */
static rapt_tensor *second(const problem *p, bool fused, rapt_tensor **gradients)
{
    rapt_tensor *inputs[] = {p->x, p->weight, p->bias}, *y = apply(p, fused), *first;
    rapt_tensor *root = rapt_sum(rapt_mul(y, y), RAPT_ALL_AXES, false);
    cr_assert(rapt_gradients(1, &root, NULL, 1, inputs, &first, RAPT_CREATE_GRAPH), "%s", rapt_error());
    root = rapt_sum(rapt_mul(first, first), RAPT_ALL_AXES, false);
    cr_assert(rapt_gradients(1, &root, NULL, 3, inputs, gradients, 0), "%s", rapt_error());
    return root;
}

Test(affine_activation, has_the_second_derivative_of_its_parts)
{
    for (int i = 0; i < 8; i++) {
        RAPT_SCOPE;
        problem p = problem_of(RAPT_FLOAT64, 5, 6, 7, 0);
        p.activation = (rapt_activation)(i / 2);
        p.dropout = i % 2 ? 0.3 : 0;
        rapt_tensor *got[3], *expected[3];
        second(&p, true, got);
        second(&p, false, expected);
        for (int k = 0; k < 3; k++) {
            const double difference = relative_difference(got[k], expected[k]);
            cr_expect(largest_of(expected[k]) > 0 && difference <= 1e-13, "activation %d, input %d: %g", i / 2, k,
                      difference);
        }
    }
}

Test(affine_activation, takes_numbers_that_are_none)
{
    RAPT_SCOPE;
    problem p = problem_of(RAPT_FLOAT32, 6, 40, 3, 0);
    rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(6, 3));
    cr_assert(rapt_fill(rapt_slice(x, 0, 0, 1, 1), NAN) && rapt_fill(rapt_slice(x, 0, 1, 2, 1), INFINITY) &&
              rapt_fill(rapt_slice(x, 0, 2, 3, 1), -INFINITY));
    p.x = rapt_require_gradient(x);
    for (int activation = 0; activation < 4; activation++)
        for (int drops = 0; drops < 2; drops++) {
            p.activation = (rapt_activation)activation;
            p.dropout = drops ? 0.3 : 0;
            rapt_tensor *inputs[] = {p.x}, *gradients[2];
            for (int fused = 0; fused < 2; fused++) {
                rapt_tensor *y = apply(&p, fused);
                cr_assert(rapt_gradients(1, &y, (rapt_tensor *[]){rapt_ones_like(y)}, 1, inputs, gradients + fused, 0));
            }
            expect_same("dx", &p, gradients[1], gradients[0]);
        }
}

Test(affine_activation, draws_nothing_where_it_fails)
{
    RAPT_SCOPE;
    rapt_seed(5);
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3)), *weight = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(4, 5));
    const rapt_random_state before = rapt_random_get_state();
    cr_expect_null(rapt_affine_activation(x, weight, NULL, RAPT_ACTIVATION_GELU, 0.5));
    cr_expect(strstr(rapt_error(), "affine_activation: x [2, 3], weight [4, 5]"), "%s", rapt_error());
    cr_expect(rapt_random_get_state().offset == before.offset);
}
