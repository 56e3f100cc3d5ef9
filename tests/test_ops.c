/* Every op of the table computes what its reference says: on all dtypes, memory layouts and numbers of threads. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"

Test(ops, every_row_has_an_empty_and_a_large_sample)
{
    EACH_OP(row)
    {
        bool large = row->is_view, empty = row->is_combined;
        for (int i = 0; i < row->sample_count; i++) {
            large |= row->samples[i].large;
            for (int k = 0; k < most_inputs; k++)
                for (int axis = 0; axis < row->samples[i].in[k].rank; axis++)
                    empty |= row->samples[i].in[k].shape[axis] == 0;
        }
        cr_expect(large, "%s has no large sample", row->name);
        cr_expect(empty, "%s has no sample with a size of 0", row->name);
        cr_expect(row->call && (row->element || row->reference), "%s has no reference", row->name);
    }
}

static void expect_array(const op_case *c, const char *what, const array *got, const array *expected, double relative,
                         double slack)
{
    int64_t at = array_differs(got, expected, relative, slack);
    cr_expect(at != -2, "%s, %s: rank %d, expected %d, or the sizes differ", c->name, what, got->rank, expected->rank);
    if (at >= 0)
        cr_expect(false, "%s, %s: element %lld is %.17g, expected %.17g", c->name, what, (long long)at, got->data[at],
                  expected->data[at]);
}

/* Runs the sample and compares; also that inputs stay as they are and the result is a tensor of its own. */
static void check_values(const op_row *row, const op_sample *sample, rapt_dtype dtype, op_layout layout)
{
    static const char *const layouts[] = {"dense", "transposed", "stepped", "offset", "expanded"};
    RAPT_SCOPE;
    op_case c = op_case_new(row, sample, dtype, layout, false);
    uint64_t versions[most_inputs];
    for (int i = 0; i < c.count; i++) versions[i] = c.inputs[i] ? rapt_version(c.inputs[i]) : 0;
    rapt_tensor *y = op_case_call(&c);
    cr_expect(y, "%s, %s: %s", c.name, layouts[layout], rapt_error());
    if (y) {
        rapt_dtype result = op_case_result(&c, dtype);
        cr_expect(rapt_get_dtype(y) == result, "%s gives %s, expected %s", c.name, rapt_dtype_name(rapt_get_dtype(y)),
                  rapt_dtype_name(result));
        array got = array_read(y), expected = op_case_reference(&c, result);
        expect_array(&c, layouts[layout], &got, &expected, op_tolerance(row, dtype), op_slack(row));
        array_free(&got);
        array_free(&expected);
    }
    for (int i = 0; i < c.count; i++) {
        if (!c.inputs[i]) continue;
        array now = array_read(c.inputs[i]);
        cr_expect(y != c.inputs[i], "%s returns its input %d itself", c.name, i);
        cr_expect(rapt_version(c.inputs[i]) == versions[i], "%s changes its input %d in place", c.name, i);
        cr_expect(array_differs(&now, &c.arrays[i], 0, 0) == -1, "%s changes the elements of its input %d", c.name, i);
        array_free(&now);
    }
    op_case_free(&c);
    rapt_clear_error();
}

Test(ops, values)
{
    rapt_set_threads(1);
    EACH_OP(row)
    for (int i = 0; i < row->sample_count; i++)
        for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_BOOL; dtype++)
            if (op_dtypes(row) >> dtype & 1) check_values(row, &row->samples[i], dtype, dense);
}

Test(ops, values_of_strided_inputs)
{
    rapt_set_threads(1);
    EACH_OP(row)
    for (int i = 0; i < row->sample_count; i++)
        for (op_layout layout = transposed; layout < layout_count; layout++)
            for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_BOOL; dtype++)
                if (op_dtypes(row) >> dtype & 1 && (!row->samples[i].large || dtype == RAPT_FLOAT32))
                    check_values(row, &row->samples[i], dtype, layout);
}

/* The bits of the result and of all gradients, as one number (FNV-1a, by elements). */
static uint64_t fingerprint(rapt_tensor *const *tensors, int count)
{
    uint64_t hash = 14695981039346656037u;
    for (int k = 0; k < count; k++) {
        if (!tensors[k]) continue;
        const rapt_tensor *dense_one = rapt_contiguous(tensors[k]);
        const char *bytes = rapt_data(dense_one);
        size_t size = rapt_dtype_size(rapt_get_dtype(dense_one)), total = (size_t)rapt_count(dense_one) * size;
        for (size_t i = 0; i < total; i += size) {
            uint64_t element = 0;
            memcpy(&element, bytes + i, size);
            hash = (hash ^ element) * 1099511628211u;
        }
    }
    return hash;
}

static uint64_t run_large(const op_row *row, const op_sample *sample, rapt_dtype dtype)
{
    RAPT_SCOPE;
    bool gradients = row->differentiable && rapt_dtype_is_floating(dtype);
    op_case c = op_case_new(row, sample, dtype, dense, gradients);
    rapt_tensor *results[most_inputs + 1] = {0};
    results[most_inputs] = op_case_call(&c);
    cr_expect(results[most_inputs], "%s: %s", c.name, rapt_error());
    if (gradients) cr_expect(op_case_gradients(&c, results), "%s: %s", c.name, rapt_error());
    uint64_t hash = fingerprint(results, most_inputs + 1);
    op_case_free(&c);
    return hash;
}

Test(ops, same_bits_at_any_number_of_threads)
{
    EACH_OP(row)
    for (int i = 0; i < row->sample_count; i++) {
        if (!row->samples[i].large) continue;
        for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_BOOL; dtype++) {
            if (!(op_dtypes(row) >> dtype & 1)) continue;
            rapt_set_threads(1);
            uint64_t expected = run_large(row, &row->samples[i], dtype);
            for (int threads = 2; threads <= 4; threads++) {
                rapt_set_threads(threads);
                cr_expect(run_large(row, &row->samples[i], dtype) == expected,
                          "%s sample %d, %s: other bits with %d threads", row->name, i, rapt_dtype_name(dtype),
                          threads);
            }
        }
    }
}

Test(ops, the_level_is_the_one_asked_for)
{
    const char *level = getenv("RAPT_LEVEL");
    if (level && strcmp(level, "baseline") == 0) cr_expect_str_eq(rapt_get_level(), "baseline");
    if (level && strcmp(level, "v3") == 0) cr_expect_str_neq(rapt_get_level(), "x86-64-v4");
}

Test(ops, the_version_is_that_of_the_headers)
{
    int major, minor, patch;
    cr_assert_eq(sscanf(RAPT_VERSION, "%d.%d.%d", &major, &minor, &patch), 3);
    cr_expect_eq(rapt_get_version_number(), 1000000 * major + 1000 * minor + patch);
    cr_expect_eq(RAPT_VERSION_NUMBER, rapt_get_version_number());
}
