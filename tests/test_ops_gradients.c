/* The gradients of every op of the table: by differences, in float32, on strided inputs, and of second order. */
#include <criterion/criterion.h>
#include <string.h>

#include "ops.h"

/* The inputs are the case's without those that are NULL. */
static rapt_tensor *call_case(rapt_tensor *const *inputs, void *context)
{
    const op_case *c = context;
    rapt_tensor *all[most_inputs];
    for (int i = 0; i < c->count; i++) all[i] = c->inputs[i] ? *inputs++ : NULL;
    return c->row->call(all, c->sample);
}

/* Gradcheck of each differentiable row. */
static void check(const op_row *row, const op_sample *sample, op_layout layout, rapt_gradcheck_options options)
{
    RAPT_SCOPE;
    op_case c = op_case_new(row, sample, RAPT_FLOAT64, layout, true);
    rapt_tensor *inputs[most_inputs];
    int count = 0;
    for (int i = 0; i < c.count; i++)
        if (c.inputs[i]) inputs[count++] = c.inputs[i];
    options.context = &c;
    rapt_gradcheck_result result = rapt_gradcheck(c.name, call_case, count, inputs, &options);
    cr_expect(result.passed, "%s", result.message);
    rapt_clear_error();
    op_case_free(&c);
}

#define EACH_SMALL_SAMPLE(row, sample)                                                                                 \
    EACH_OP(row)                                                                                                       \
    for (const op_sample *sample = row->samples; row->differentiable && sample < row->samples + row->sample_count;     \
         sample++)                                                                                                     \
        if (!sample->large)

Test(ops, gradients)
{
    EACH_SMALL_SAMPLE(row, sample) check(row, sample, dense, (rapt_gradcheck_options){0});
}

Test(ops, gradients_along_a_random_direction)
{
    EACH_SMALL_SAMPLE(row, sample) check(row, sample, dense, (rapt_gradcheck_options){.random_projection = true});
}

Test(ops, gradients_of_strided_inputs)
{
    EACH_SMALL_SAMPLE(row, sample)
    for (op_layout layout = transposed; layout < expanded; layout++)
        check(row, sample, layout, (rapt_gradcheck_options){.random_projection = true});
}

Test(ops, second_derivatives)
{
    EACH_SMALL_SAMPLE(row, sample) check(row, sample, dense, (rapt_gradcheck_options){.second_order = true});
}

static void expect_near(const op_case *c, const char *what, const rapt_tensor *got, const rapt_tensor *expected,
                        int input, double relative)
{
    cr_expect(!got == !expected, "%s, %s: gradient %d is there only once", c->name, what, input);
    if (!got || !expected) return;
    array a = array_read(got), b = array_read(expected);
    int64_t at = array_differs(&a, &b, relative, 1);
    if (at != -1)
        cr_expect(false, "%s, %s: gradient %d differs at %lld: %.9g, expected %.9g", c->name, what, input,
                  (long long)at, at < 0 ? 0 : a.data[at], at < 0 ? 0 : b.data[at]);
    array_free(&a);
    array_free(&b);
}

/* The gradients of two cases, which should be the same. */
static void compare(op_case *c, op_case *expected, const char *what, double relative)
{
    rapt_tensor *got[most_inputs], *right[most_inputs];
    bool good = op_case_gradients(expected, right) && op_case_gradients(c, got);
    cr_expect(good, "%s, %s: %s", c->name, what, rapt_error());
    for (int i = 0; good && i < c->count; i++) expect_near(c, what, got[i], right[i], i, relative);
    rapt_clear_error();
    op_case_free(c);
    op_case_free(expected);
}

Test(ops, float32_gradients_are_near_those_of_float64)
{
    EACH_SMALL_SAMPLE(row, sample)
    {
        RAPT_SCOPE;
        op_case c = op_case_new(row, sample, RAPT_FLOAT32, dense, true),
                expected = op_case_new(row, sample, RAPT_FLOAT64, dense, true);
        compare(&c, &expected, "float32", 1e-5);
    }
}

/* A case whose inputs are dense copies of another's. */
static op_case dense_copy(const op_case *c)
{
    op_case copy = *c;
    for (int i = 0; i < c->count; i++) {
        if (!c->inputs[i]) continue;
        copy.inputs[i] = rapt_clone(c->inputs[i]);
        copy.arrays[i] = array_read(copy.inputs[i]);
        if (op_case_differentiable(c, i)) rapt_require_gradient(copy.inputs[i]);
    }
    return copy;
}

Test(ops, gradients_do_not_depend_on_the_memory_layout)
{
    EACH_SMALL_SAMPLE(row, sample)
    for (op_layout layout = transposed; layout < layout_count; layout++)
        for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) {
            static const char *const layouts[] = {"dense", "transposed", "stepped", "offset", "expanded"};
            RAPT_SCOPE;
            op_case c = op_case_new(row, sample, dtype, layout, true), expected = dense_copy(&c);
            compare(&c, &expected, layouts[layout], dtype == RAPT_FLOAT32 ? 1e-6 : 1e-14);
        }
}

/* What needs no gradient gets none, and what does gets the same. */
Test(ops, gradients_of_one_input_at_a_time)
{
    EACH_SMALL_SAMPLE(row, sample)
    {
        RAPT_SCOPE;
        op_case full = op_case_new(row, sample, RAPT_FLOAT64, dense, true);
        rapt_tensor *expected[most_inputs];
        cr_expect(op_case_gradients(&full, expected), "%s: %s", full.name, rapt_error());
        for (int i = 0; i < full.count; i++) {
            if (!op_case_differentiable(&full, i)) continue;
            op_case one = op_case_new(row, sample, RAPT_FLOAT64, dense, false);
            rapt_require_gradient(one.inputs[i]);
            rapt_tensor *gradients[most_inputs];
            cr_expect(op_case_gradients(&one, gradients), "%s, input %d alone: %s", full.name, i, rapt_error());
            for (int k = 0; k < full.count; k++)
                if (k == i) expect_near(&one, "alone", gradients[k], expected[k], k, 1e-15);
            rapt_clear_error();
            op_case_free(&one);
        }
        op_case_free(&full);
    }
}
