/* Modules, their numbers and their memory, for the tests of the folder nn. */
#ifndef RAPT_TESTS_MODULES_H
#define RAPT_TESTS_MODULES_H

#include "expect.h"
#include "same_bits.h"

#include <math.h>

#include <rapt/nn.h>

#include "tensor/memory.h"

static inline int64_t live_bytes(void)
{
    return rapt_memory_get_statistics().live_bytes;
}

static inline rapt_tensor *doubles(int rank, const int64_t *shape, const double *values)
{
    rapt_tensor *tensor = rapt_from(RAPT_FLOAT64, rank, shape, values);
    cr_assert_not_null(tensor, "%s", rapt_error());
    return tensor;
}

/* Valid lengths of two items. */
static inline rapt_tensor *lengths_of(int64_t a, int64_t b)
{
    return rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){a, b});
}

/* The elements in row-major order, whatever the dtype and the strides; of the innermost scope. */
static inline const double *values_of(rapt_tensor *tensor)
{
    RAPT_NO_GRADIENT;
    const rapt_tensor *dense = rapt_clone(rapt_cast(tensor, RAPT_FLOAT64));
    cr_assert_not_null(dense, "%s", rapt_error());
    return rapt_data(dense);
}

/* |actual − expected| ≤ tolerance · (1 + |expected|) for every element. */
static inline void expect_close(const char *what, const double *actual, const double *expected, int64_t count,
                                double tolerance)
{
    for (int64_t i = 0; i < count; i++) {
        bool close = fabs(actual[i] - expected[i]) <= tolerance * (1 + fabs(expected[i]));
        cr_expect(close, "%s: element %lld is %.17g, not %.17g", what, (long long)i, actual[i], expected[i]);
        if (!close) return;
    }
}

static inline void expect_values(const char *what, rapt_tensor *tensor, int64_t count, const double *expected,
                                 double tolerance)
{
    cr_assert_not_null(tensor, "%s: %s", what, rapt_error());
    cr_assert_eq(rapt_count(tensor), count, "%s: %lld elements, not %lld", what, (long long)rapt_count(tensor),
                 (long long)count);
    expect_close(what, values_of(tensor), expected, count, tolerance);
}

static inline void expect_shape(const rapt_tensor *tensor, int rank, const int64_t *shape)
{
    char text[128];
    cr_assert_not_null(tensor, "%s", rapt_error());
    bool same = rapt_rank(tensor) == rank;
    for (int axis = 0; axis < rank && same; axis++) same = rapt_size(tensor, axis) == shape[axis];
    cr_expect(same, "%s is not the shape expected", rapt_describe(tensor, text, sizeof text));
}

/* The module, which must have been made, cast to float64. */
static inline void *in_float64(void *module)
{
    cr_assert(module && rapt_module_cast(module, RAPT_FLOAT64), "%s", rapt_error());
    return module;
}

static inline bool draw_parameter(const char *name, rapt_tensor *tensor, void *context)
{
    (void)name, (void)context;
    return rapt_fill_normal(tensor, 0, 0.5);
}

/* All parameters anew, so that biases are not 0 nor norms 1. */
static inline void draw_parameters(void *module)
{
    cr_assert(rapt_module_visit(module, RAPT_PARAMETERS, draw_parameter, NULL), "%s", rapt_error());
}

/* Writes numbers over the parameter or buffer of that name. */
static inline void set_values(void *module, const char *name, const double *values)
{
    rapt_tensor *tensor = rapt_module_find(module, name);
    cr_assert_not_null(tensor, "no %s", name);
    cr_assert(rapt_copy(tensor, doubles(rapt_rank(tensor), rapt_shape(tensor), values)), "%s", rapt_error());
}

static inline void expect_parameter(const void *module, const char *name, int rank, const int64_t *shape)
{
    rapt_tensor *tensor = rapt_module_find(module, name);
    cr_assert_not_null(tensor, "no %s", name);
    cr_expect(rapt_requires_gradient(tensor));
    expect_shape(tensor, rank, shape);
}

static inline bool is_same_in(const char *name, rapt_tensor *tensor, void *other)
{
    return same_bits(tensor, rapt_module_find(other, name));
}

/* Are all values of a in b, under the same names? */
static inline bool same_module(const rapt_module *a, rapt_module *b)
{
    return rapt_module_visit(a, RAPT_PARAMETERS | RAPT_BUFFERS, is_same_in, b);
}

/* Mean and variance of all elements within 5 standard errors of what they should be; kurtosis is that of the
 * distribution. */
static inline void expect_moments(rapt_tensor *tensor, double mean, double variance, double kurtosis)
{
    RAPT_SCOPE;
    const double *values = values_of(tensor);
    const int64_t n = rapt_count(tensor);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) sum += values[i];
    for (int64_t i = 0; i < n; i++) squares += (values[i] - sum / (double)n) * (values[i] - sum / (double)n);
    double found = squares / (double)n;
    cr_expect(fabs(sum / (double)n - mean) < 5 * sqrt(variance / (double)n), "mean %g, not %g", sum / (double)n, mean);
    cr_expect(fabs(found / variance - 1) < 5 * sqrt((kurtosis - 1) / (double)n), "variance %g, not %g", found,
              variance);
}

/* Uniform within ±bound: inside, close to both ends, and with the right moments. */
static inline void expect_uniform(rapt_tensor *tensor, double bound)
{
    RAPT_SCOPE;
    const double *values = values_of(tensor);
    double low = 0, high = 0;
    for (int64_t i = 0; i < rapt_count(tensor); i++) {
        low = fmin(low, values[i]);
        high = fmax(high, values[i]);
    }
    cr_expect(low >= -bound * 1.000001 && low < -0.98 * bound, "lowest %g; bound %g", low, bound);
    cr_expect(high <= bound * 1.000001 && high > 0.98 * bound, "highest %g; bound %g", high, bound);
    expect_moments(tensor, 0, bound * bound / 3, 1.8);
}

static inline bool same_generator(rapt_random_state a, rapt_random_state b)
{
    return a.seed == b.seed && a.offset == b.offset;
}

/* Makes a module with the allocator failing from its first, second, … block on, until it succeeds: each failure is
 * an error that leaves nothing behind, and the random generator where it was. Returns how many there were. */
static inline int64_t expect_clean_failures(const char *name, void *(*make)(void))
{
    const int64_t before = live_bytes();
    const rapt_random_state random = rapt_random_get_state();
    for (int64_t failures = 0;; failures++) {
        rapt_memory_fail_after(failures);
        void *module = make();
        rapt_memory_fail_after(-1);
        if (module) {
            expect_no_error();
            rapt_module_free(module);
            cr_expect(live_bytes() == before, "%s: bytes are left after all", name);
            return failures;
        }
        expect_error(RAPT_ERROR_MEMORY, "no memory");
        cr_assert(live_bytes() == before, "%s: bytes leak after failure %lld", name, (long long)failures);
        cr_assert(same_generator(rapt_random_get_state(), random), "%s: failure %lld moved the generator", name,
                  (long long)failures);
        cr_assert_lt(failures, 1000, "%s never succeeds", name);
    }
}

#endif
