/* linear_cross_entropy beside rapt_affine and rapt_cross_entropy: the same numbers, from chunks of rows; and what
 * becomes of the gradients that it computed beforehand. Gradients of logits and tables that are so large that they are
 * written past the caches: the same bits as small ones have. */
#include <math.h>
#include <string.h>

#include <criterion/criterion.h>
#include <rapt.h>

#include "largest.h"
#include "same_bits.h"
#include "tensor/core.h"
#include "tensor/matmul.h"
#include "tensor/memory.h"

typedef struct problem {
    rapt_tensor *x, *weight, *bias, *targets;
} problem;

/* Chunks are of up to 256 rows or 32 MB of logits, whichever is more. */
static problem problem_of(rapt_dtype dtype, int64_t rows, int64_t classes, int64_t size)
{
    rapt_seed(7);
    return (problem){.x = rapt_require_gradient(rapt_randn(dtype, RAPT_SHAPE(rows, size))),
                     .weight = rapt_require_gradient(rapt_randn(dtype, RAPT_SHAPE(classes, size))),
                     .bias = rapt_require_gradient(rapt_randn(dtype, RAPT_SHAPE(classes))),
                     .targets = rapt_randint(0, classes, RAPT_SHAPE(rows))};
}

enum { loss, dx, dweight, dbias, results };

static void evaluate(const problem *p, const rapt_cross_entropy_options *o, bool at_once, rapt_tensor **r)
{
    rapt_tensor *inputs[] = {p->x, p->weight, p->bias};
    r[loss] = at_once ? rapt_linear_cross_entropy(p->x, p->weight, p->bias, p->targets, o)
                      : rapt_cross_entropy(rapt_affine(p->x, p->weight, p->bias), p->targets, o);
    rapt_tensor *root = rapt_sum(r[loss], RAPT_ALL_AXES, false);
    cr_assert(rapt_gradients(1, &root, NULL, 3, inputs, r + dx, 0), "%s", rapt_error());
}

static void compare(rapt_dtype dtype, int64_t rows, int64_t classes, rapt_cross_entropy_options o, const bool *exact)
{
    static const char *const names[] = {"the loss", "dx", "dweight", "dbias"};
    const double tolerance = dtype == RAPT_FLOAT32 ? 2e-6 : 1e-14;
    RAPT_SCOPE;
    const problem p = problem_of(dtype, rows, classes, 24);
    rapt_tensor *got[results], *expected[results];
    evaluate(&p, &o, true, got);
    evaluate(&p, &o, false, expected);
    for (int i = 0; i < results; i++) {
        cr_expect(relative_difference(got[i], expected[i]) <= tolerance, "%s differs by %g", names[i],
                  relative_difference(got[i], expected[i]));
        cr_expect(!exact[i] || rapt_matmul_uses_blas() || same_bits(got[i], expected[i]), "%s: other bits", names[i]);
    }
}

Test(linear_cross_entropy, gives_the_bits_of_its_parts)
{
    const bool all[] = {true, true, true, false};
    for (int i = 0; i < 2; i++) {
        const rapt_dtype dtype = i ? RAPT_FLOAT64 : RAPT_FLOAT32;
        compare(dtype, 2500, 6001, (rapt_cross_entropy_options){.label_smoothing = 0}, all);
        compare(dtype, 1201, 9001, (rapt_cross_entropy_options){.label_smoothing = 0.1, .reduction = RAPT_REDUCE_SUM},
                all);
        compare(dtype, 1201, 9001, (rapt_cross_entropy_options){.reduction = RAPT_REDUCE_NONE}, all);
        compare(dtype, 50, 30, (rapt_cross_entropy_options){.label_smoothing = 0}, all);
    }
}

Test(linear_cross_entropy, leaves_rows_out)
{
    const bool rows_alone[] = {true, true, false, false};
    compare(RAPT_FLOAT32, 900, 9, (rapt_cross_entropy_options){.has_ignore_index = true, .ignore_index = 3},
            rows_alone);
    compare(RAPT_FLOAT64, 900, 9,
            (rapt_cross_entropy_options){.has_ignore_index = true, .ignore_index = 3, .reduction = RAPT_REDUCE_NONE},
            rows_alone);
}

Test(linear_cross_entropy, does_not_read_rows_that_are_left_out)
{
    RAPT_SCOPE;
    const problem p = problem_of(RAPT_FLOAT32, 12, 5, 3);
    const int64_t left_out = rapt_at_int64(p.targets, (int64_t[]){4});
    rapt_tensor *padded = rapt_clone(p.x), *r[2][results];
    for (int64_t i = 0; i < 12; i++) {
        const bool is_left_out = rapt_at_int64(p.targets, &i) == left_out;
        for (int64_t j = 0; is_left_out && j < 3; j++) rapt_set_at(padded, (int64_t[]){i, j}, NAN);
    }
    problem q = p;
    q.x = rapt_require_gradient(padded);
    const rapt_cross_entropy_options o = {.has_ignore_index = true, .ignore_index = left_out};
    evaluate(&p, &o, true, r[0]);
    evaluate(&q, &o, true, r[1]);
    for (int i = 0; i < results; i++) cr_expect(same_bits(r[0][i], r[1][i]), "result %d", i);
}

/* The gradients of Σ (dx² + dW²) by x and the weight. */
static void differentiate_twice(const problem *p, const rapt_cross_entropy_options *o, rapt_tensor **second)
{
    rapt_tensor *inputs[] = {p->x, p->weight}, *first[2],
                *y = rapt_linear_cross_entropy(p->x, p->weight, p->bias, p->targets, o);
    cr_assert(rapt_gradients(1, &y, NULL, 2, inputs, first, RAPT_CREATE_GRAPH), "%s", rapt_error());
    y = rapt_add(rapt_sum(rapt_mul(first[0], first[0]), RAPT_ALL_AXES, false),
                 rapt_sum(rapt_mul(first[1], first[1]), RAPT_ALL_AXES, false));
    cr_assert(rapt_gradients(1, &y, NULL, 2, inputs, second, 0), "%s", rapt_error());
}

Test(linear_cross_entropy, second_derivatives_do_not_read_rows_that_are_left_out_either)
{
    RAPT_SCOPE;
    problem p = problem_of(RAPT_FLOAT64, 12, 5, 3);
    const int64_t left_out = rapt_at_int64(p.targets, (int64_t[]){4});
    rapt_tensor *padded = rapt_clone(p.x), *got[2], *expected[2];
    for (int64_t i = 0; i < 12; i++) {
        const bool is_left_out = rapt_at_int64(p.targets, &i) == left_out;
        for (int64_t j = 0; is_left_out && j < 3; j++) rapt_set_at(padded, (int64_t[]){i, j}, j ? NAN : INFINITY);
    }
    const rapt_cross_entropy_options o = {.has_ignore_index = true, .ignore_index = left_out, .label_smoothing = 0.1};
    differentiate_twice(&p, &o, expected);
    p.x = rapt_require_gradient(padded);
    differentiate_twice(&p, &o, got);
    for (int i = 0; i < 2; i++) cr_expect_leq(relative_difference(got[i], expected[i]), 1e-14, "input %d", i);
}

/* The gradient of Σ (factor dx)², whatever stands in the row that is left out, of the logits and of the factor. */
Test(cross_entropy, second_derivatives_do_not_read_rows_that_are_left_out)
{
    for (int reduction = RAPT_REDUCE_MEAN; reduction <= RAPT_REDUCE_NONE; reduction++) {
        RAPT_SCOPE;
        const rapt_cross_entropy_options o = {.has_ignore_index = true,
                                              .ignore_index = -100,
                                              .label_smoothing = 0.1,
                                              .reduction = (rapt_reduction)reduction};
        rapt_tensor *targets = rapt_from(RAPT_INT64, RAPT_SHAPE(3), (int64_t[]){0, -100, 1}), *second[2];
        for (int k = 0; k < 2; k++) {
            const double hidden = k ? NAN : 1;
            rapt_tensor *x = rapt_from(RAPT_FLOAT64, RAPT_SHAPE(3, 2), (double[]){1, 2, hidden, hidden, 0.5, -1});
            rapt_tensor *factor = rapt_from(RAPT_FLOAT64, RAPT_SHAPE(3, 1), (double[]){1, hidden, 2}), *first;
            rapt_require_gradient(x);
            rapt_tensor *y = rapt_sum(rapt_cross_entropy(x, targets, &o), RAPT_ALL_AXES, false);
            cr_assert(rapt_gradients(1, &y, NULL, 1, &x, &first, RAPT_CREATE_GRAPH), "%s", rapt_error());
            first = rapt_mul(first, factor);
            y = rapt_sum(rapt_mul(first, first), RAPT_ALL_AXES, false);
            cr_assert(rapt_gradients(1, &y, NULL, 1, &x, &second[k], 0), "%s", rapt_error());
        }
        cr_expect(rapt_at(second[0], (int64_t[]){0, 1}) != 0 && same_bits(second[1], second[0]), "way %d", reduction);
    }
}

Test(linear_cross_entropy, scales_by_the_gradient_that_comes_in)
{
    RAPT_SCOPE;
    const problem p = problem_of(RAPT_FLOAT64, 40, 7, 5);
    rapt_tensor *inputs[] = {p.x, p.weight, p.bias}, *got[3], *expected[3];
    rapt_tensor *root = rapt_mul_scalar(rapt_linear_cross_entropy(p.x, p.weight, p.bias, p.targets, NULL), -2.5);
    rapt_tensor *plain = rapt_mul_scalar(rapt_cross_entropy(rapt_affine(p.x, p.weight, p.bias), p.targets, NULL), -2.5);
    cr_assert(rapt_gradients(1, &plain, NULL, 3, inputs, expected, 0));
    for (int round = 0; round < 3; round++) {
        cr_assert(rapt_gradients(1, &root, NULL, 3, inputs, got, round < 2 ? RAPT_RETAIN_GRAPH : 0), "%s",
                  rapt_error());
        for (int i = 0; i < 3; i++) {
            cr_expect(relative_difference(got[i], expected[i]) < 1e-14, "round %d, input %d", round, i);
            rapt_fill(got[i], 1000); /* what the caller gets is the caller's */
        }
    }
}

Test(linear_cross_entropy, keeps_an_infinite_gradient_out_of_rows_that_are_left_out)
{
    RAPT_SCOPE;
    const problem p = problem_of(RAPT_FLOAT64, 40, 7, 5);
    const rapt_cross_entropy_options o = {.has_ignore_index = true, .ignore_index = 2};
    rapt_tensor *inputs[] = {p.x}, *dx_of;
    rapt_tensor *y = rapt_mul_scalar(rapt_linear_cross_entropy(p.x, p.weight, NULL, p.targets, &o), INFINITY);
    cr_assert(rapt_gradients(1, &y, NULL, 1, inputs, &dx_of, 0));
    for (int64_t i = 0; i < 40; i++) {
        const bool is_left_out = rapt_at_int64(p.targets, &i) == 2;
        cr_expect(isfinite(rapt_at(dx_of, (int64_t[]){i, 0})) == is_left_out, "row %lld", (long long)i);
    }
}

/* A table that is embedding and projection: one gradient, which both add to. */
Test(linear_cross_entropy, shares_its_weight_with_an_embedding)
{
    RAPT_SCOPE;
    const problem p = problem_of(RAPT_FLOAT64, 30, 11, 6);
    rapt_tensor *gradients[2];
    for (int i = 0; i < 2; i++) {
        rapt_tensor *x = rapt_add(rapt_embed(p.weight, p.targets), p.x);
        rapt_tensor *y = i ? rapt_linear_cross_entropy(x, p.weight, NULL, p.targets, NULL)
                           : rapt_cross_entropy(rapt_affine(x, p.weight, NULL), p.targets, NULL);
        rapt_clear_gradient(p.weight);
        cr_assert(rapt_backward(y));
        gradients[i] = rapt_clone(rapt_gradient(p.weight));
    }
    cr_expect(relative_difference(gradients[1], gradients[0]) < 1e-14);
}

Test(linear_cross_entropy, can_be_tried_again_when_memory_was_short)
{
    RAPT_SCOPE;
    const problem p = problem_of(RAPT_FLOAT64, 30, 11, 6);
    const rapt_cross_entropy_options o = {.has_ignore_index = true, .ignore_index = 4};
    rapt_tensor *inputs[] = {p.x, p.weight, p.bias}, *expected[results], *got[3];
    evaluate(&p, &o, true, expected);
    for (int64_t after = 0;; after++) {
        RAPT_SCOPE;
        rapt_tensor *y = rapt_linear_cross_entropy(p.x, p.weight, p.bias, p.targets, &o);
        rapt_memory_fail_after(after);
        const bool good = rapt_gradients(1, &y, NULL, 3, inputs, got, 0);
        rapt_memory_fail_after(-1);
        if (good && after > 0) break;
        rapt_clear_error();
        cr_assert(good || rapt_gradients(1, &y, NULL, 3, inputs, got, 0), "%s", rapt_error());
        for (int i = 0; i < 3; i++) cr_expect(relative_difference(got[i], expected[1 + i]) < 1e-14, "input %d", i);
    }
}

/* 8000 rows of 5000 classes are 160 MB, twice when there is a gradient; those of a chunk up to 34. */
Test(linear_cross_entropy, never_stores_all_logits)
{
    RAPT_SCOPE;
    const problem p = problem_of(RAPT_FLOAT32, 8000, 5000, 16);
    rapt_memory_reset_peak();
    const int64_t before = rapt_memory_get_statistics().live_bytes;
    cr_assert(rapt_backward(rapt_linear_cross_entropy(p.x, p.weight, p.bias, p.targets, NULL)));
    const double megabytes = (double)(rapt_memory_get_statistics().peak_bytes - before) / 1e6;
    cr_expect(megabytes < 45, "%g MB", megabytes);
}

static rapt_tensor *gradient_of(rapt_tensor *y, rapt_tensor *g, rapt_tensor *x)
{
    rapt_tensor *result = NULL;
    cr_assert(rapt_gradients(1, &y, &g, 1, &x, &result, 0), "%s", rapt_error());
    return result;
}

/* Rows of an odd length, so that few begin where a vector does. */
static void embed(rapt_dtype dtype, int64_t rows, int64_t size, int64_t count)
{
    RAPT_SCOPE;
    rapt_tensor *table = rapt_require_gradient(rapt_zeros(dtype, RAPT_SHAPE(rows, size)));
    rapt_tensor *indices = rapt_randint(0, rows, RAPT_SHAPE(count)), *g = rapt_randn(dtype, RAPT_SHAPE(count, size));
    rapt_fill(rapt_slice(indices, 0, 0, count / 4, 1), (double)(rows - 1)); /* one that is chosen often */
    rapt_tensor *each = rapt_expand(rapt_unsqueeze(indices, 1), RAPT_SHAPE(count, size));
    rapt_tensor *expected = rapt_scatter_add(rapt_zeros(dtype, RAPT_SHAPE(rows, size)), 0, each, g);
    for (int threads = 1; threads < 4; threads++) {
        rapt_set_threads(threads);
        cr_expect(same_bits(gradient_of(rapt_embed(table, indices), g, table), expected), "%d threads", threads);
    }
}

Test(large_gradients, of_a_table)
{
    rapt_seed(1);
    embed(RAPT_FLOAT32, 9001, 1021, 300);
    embed(RAPT_FLOAT64, 9001, 513, 300);
    embed(RAPT_FLOAT32, 5, 7, 300);
}

/* Losses that are summed make their gradient at once, others from what was saved. */
static void cross_entropy(rapt_dtype dtype, int64_t rows, int64_t classes, double smoothing)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_require_gradient(rapt_randn(dtype, RAPT_SHAPE(rows, classes)));
    rapt_tensor *targets = rapt_randint(0, classes, RAPT_SHAPE(rows));
    rapt_cross_entropy_options o = {.has_ignore_index = true, .ignore_index = 3, .label_smoothing = smoothing};
    o.reduction = RAPT_REDUCE_NONE;
    rapt_tensor *expected = gradient_of(rapt_cross_entropy(x, targets, &o), rapt_ones(dtype, RAPT_SHAPE(rows)), x);
    o.reduction = RAPT_REDUCE_SUM;
    for (int threads = 1; threads < 4; threads++) {
        rapt_set_threads(threads);
        cr_expect(same_bits(gradient_of(rapt_cross_entropy(x, targets, &o), rapt_ones(dtype, 0, NULL), x), expected),
                  "%d threads", threads);
    }
}

Test(large_gradients, of_logits)
{
    rapt_seed(2);
    cross_entropy(RAPT_FLOAT32, 2100, 4001, 0);
    cross_entropy(RAPT_FLOAT64, 1100, 4003, 0.1);
    cross_entropy(RAPT_FLOAT32, 5, 3, 0.1);
}
