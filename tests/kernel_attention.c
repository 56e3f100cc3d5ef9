/* The kernels of fused dot-product attention at the instruction-set level in use, against plain loops over doubles:
 * ragged sizes, all kinds of masks, both types; and how much faster they are than such loops. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <rapt.h>

#include "dot_attention_reference.h"
#include "tensor/dot_attention.h"

static void *convert(rapt_dtype dtype, int64_t count, const double *numbers)
{
    void *out = allocate(count, rapt_dtype_size(dtype));
    for (int64_t i = 0; numbers && i < count; i++) {
        if (dtype == RAPT_FLOAT32)
            ((float *)out)[i] = (float)numbers[i];
        else
            ((double *)out)[i] = numbers[i];
    }
    return out;
}

/* Rows as (batch, length, heads, size) in memory, with a gap of NaN after each, so that strides count. */
static rapt_raw_rows spread(const problem *p, int64_t heads, int64_t length, int64_t size, const double *numbers)
{
    enum { gap = 3 };
    const int64_t row = size + gap;
    double *wide = new_numbers(p->batch * length * heads * row);
    for (int64_t i = 0; i < p->batch * length * heads * row; i++) wide[i] = (double)NAN;
    for (int64_t i = 0; numbers && i < p->batch * heads * length; i++) {
        const int64_t b = i / length / heads, h = i / length % heads, at = i % length;
        memcpy(wide + ((b * length + at) * heads + h) * row, numbers + i * size, (size_t)size * sizeof *wide);
    }
    void *data = convert(p->dtype, p->batch * length * heads * row, wide);
    free(wide);
    return (rapt_raw_rows){data, {length * heads * row, row, heads * row}};
}

static double read_number(rapt_dtype dtype, const void *data, int64_t at)
{
    return dtype == RAPT_FLOAT32 ? (double)((const float *)data)[at] : ((const double *)data)[at];
}

static bool good = true;

static void complain(const problem *p, const char *what, double error)
{
    good = false;
    printf("FAILED: %s is off by %g of the largest: %s, batch %lld, heads %lld of %lld groups, %lld queries and %lld "
           "keys of "
           "%lld, values of %lld; ranges %d, seen %d, bias %d, relative bias %d, Gaussian %d, keep %g\n",
           what, error, rapt_dtype_name(p->dtype), (long long)p->batch, (long long)p->heads, (long long)p->groups,
           (long long)p->queries, (long long)p->keys, (long long)p->size, (long long)p->value_size, p->has_ranges,
           p->has_seen, p->has_bias, p->has_relative_bias, p->is_gaussian, p->keep);
}

/* Relative to the largest number, for gradients to that of all of them. */
static void compare(const problem *p, const char *what, double worst, double largest)
{
    const double limit = p->dtype == RAPT_FLOAT32 ? 2e-6 : 1e-13;
    if (!(worst <= limit * largest)) complain(p, what, worst / largest);
}

static double largest_of(int64_t count, const double *numbers)
{
    double largest = 1;
    for (int64_t i = 0; i < count; i++) largest = fmax(largest, fabs(numbers[i]));
    return largest;
}

static double worst_dense(const problem *p, int64_t count, const void *found, const double *expected)
{
    double worst = 0;
    for (int64_t i = 0; i < count; i++) {
        const double error = fabs(read_number(p->dtype, found, i) - expected[i]);
        if (!(error <= worst)) worst = error;
    }
    return worst;
}

static double worst_rows(const problem *p, int64_t heads, int64_t length, int64_t size, const rapt_raw_rows *found,
                         const double *expected)
{
    double worst = 0;
    for (int64_t i = 0; i < p->batch * heads * length * size; i++) {
        const int64_t row = i / size, b = row / length / heads, h = row / length % heads, at = row % length;
        const int64_t place = b * found->strides[0] + h * found->strides[1] + at * found->strides[2] + i % size;
        const double error = fabs(read_number(p->dtype, found->data, place) - expected[i]);
        if (!(error <= worst)) worst = error;
    }
    return worst;
}

static rapt_raw_grid grid(const void *data, const problem *p, int64_t last)
{
    return (rapt_raw_grid){data, {p->heads * p->queries * last, p->queries * last, last, 1}};
}

/* The call of the kernels; what it points to is freed by end_call. */
static rapt_dot_attention begin_call(const problem *p, rapt_random_state random)
{
    const int64_t rows = count_rows(p), places = rows * p->keys, positions = 2 * p->reach + 1;
    void *bias = p->has_bias ? convert(p->dtype, places, p->bias) : NULL;
    void *relative_bias = p->has_relative_bias ? convert(p->dtype, rows * positions, p->relative_bias) : NULL;
    return (rapt_dot_attention){.dtype = p->dtype,
                                .groups = p->groups,
                                .size = p->size,
                                .value_size = p->value_size,
                                .scale = p->scale,
                                .is_gaussian = p->is_gaussian,
                                .mask = {.batch = p->batch,
                                         .heads = p->heads,
                                         .queries = p->queries,
                                         .keys = p->keys,
                                         .ranges = p->has_ranges ? p->ranges : NULL,
                                         .range_item = 2 * p->queries,
                                         .seen = grid(p->has_seen ? p->seen : NULL, p, p->keys),
                                         .bias = grid(bias, p, p->keys),
                                         .relative_bias = grid(relative_bias, p, positions),
                                         .reach = p->reach,
                                         .offset = p->offset,
                                         .keep = p->keep,
                                         .random = random},
                                .queries = spread(p, p->heads, p->queries, p->size, p->q),
                                .keys = spread(p, p->groups, p->keys, p->size, p->k),
                                .values = spread(p, p->groups, p->keys, p->value_size, p->v),
                                .gradient = spread(p, p->heads, p->queries, p->value_size, p->g),
                                .out = spread(p, p->heads, p->queries, p->value_size, NULL),
                                .d_queries = spread(p, p->heads, p->queries, p->size, NULL),
                                .d_keys = spread(p, p->groups, p->keys, p->size, NULL),
                                .d_values = spread(p, p->groups, p->keys, p->value_size, NULL),
                                .statistics = convert(p->dtype, 2 * rows, NULL),
                                .d_scores = p->has_bias ? convert(p->dtype, places, NULL) : NULL,
                                .d_relative_bias =
                                    p->has_relative_bias ? convert(p->dtype, rows * positions, NULL) : NULL};
}

static void end_call(rapt_dot_attention *a)
{
    void *blocks[] = {(void *)a->mask.bias.data,
                      (void *)a->mask.relative_bias.data,
                      a->queries.data,
                      a->keys.data,
                      a->values.data,
                      a->gradient.data,
                      a->out.data,
                      a->d_queries.data,
                      a->d_keys.data,
                      a->d_values.data,
                      a->statistics,
                      a->d_scores,
                      a->d_relative_bias,
                      a->d_weights.data};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
}

static void compare_gradients(const problem *p, const rapt_dot_attention *a, double largest)
{
    const int64_t rows = count_rows(p);
    compare(p, "d queries", worst_rows(p, p->heads, p->queries, p->size, &a->d_queries, p->dq), largest);
    compare(p, "d keys", worst_rows(p, p->groups, p->keys, p->size, &a->d_keys, p->dk), largest);
    compare(p, "d values", worst_rows(p, p->groups, p->keys, p->value_size, &a->d_values, p->dv), largest);
    if (a->d_scores) compare(p, "d bias", worst_dense(p, rows * p->keys, a->d_scores, p->d_scores), p->largest_product);
    if (a->d_relative_bias)
        compare(p, "d relative bias", worst_dense(p, rows * (2 * p->reach + 1), a->d_relative_bias, p->d_relative_bias),
                p->largest_product);
}

/* Gradients of keys or values are added to what is there: the keys, or the values. */
static void check_adding(problem *p, rapt_dot_attention *a, bool keys, bool values, double largest)
{
    const int64_t rows = count_rows(p), bytes = (int64_t)rapt_dtype_size(p->dtype);
    if (a->d_scores) memset(a->d_scores, 0, (size_t)(rows * p->keys * bytes));
    if (a->d_relative_bias) memset(a->d_relative_bias, 0, (size_t)(rows * (2 * p->reach + 1) * bytes));
    free(a->d_keys.data);
    free(a->d_values.data);
    a->d_keys = spread(p, p->groups, p->keys, p->size, p->k);
    a->d_values = spread(p, p->groups, p->keys, p->value_size, p->v);
    a->adds_keys = keys;
    a->adds_values = values;
    if (!rapt_dot_attention_backward("kernel_attention", a)) complain(p, rapt_error(), 0);
    for (int64_t i = 0; keys && i < count_keys(p) * p->size; i++) p->dk[i] += p->k[i];
    for (int64_t i = 0; values && i < count_keys(p) * p->value_size; i++) p->dv[i] += p->v[i];
    compare_gradients(p, a, largest + 1);
    for (int64_t i = 0; keys && i < count_keys(p) * p->size; i++) p->dk[i] -= p->k[i];
    for (int64_t i = 0; values && i < count_keys(p) * p->value_size; i++) p->dv[i] -= p->v[i];
}

static void check_problem(problem *p)
{
    const rapt_random_state random = {.seed = 9, .offset = 5};
    const int64_t rows = count_rows(p), places = rows * p->keys;
    define(p, random);
    rapt_dot_attention a = begin_call(p, random);
    void *weights = convert(p->dtype, places, NULL);
    if (p->of_weights) {
        const int64_t head = p->queries * p->keys;
        a.weights = (rapt_raw_rows){weights, {p->heads * head, head, p->keys}};
        a.d_weights = a.weights;
        a.d_weights.data = convert(p->dtype, places, p->of_weights);
    }
    if (!rapt_dot_attention_forward("kernel_attention", &a) ||
        !rapt_dot_attention_weights("kernel_attention", &a, weights) ||
        !rapt_dot_attention_backward("kernel_attention", &a))
        complain(p, rapt_error(), 0);
    compare(p, "out", worst_rows(p, p->heads, p->queries, p->value_size, &a.out, p->out),
            largest_of(rows * p->value_size, p->out));
    compare(p, "weights", worst_dense(p, places, weights, p->weights), 1);
    const double largest = fmax(fmax(largest_of(rows * p->size, p->dq), largest_of(count_keys(p) * p->size, p->dk)),
                                largest_of(count_keys(p) * p->value_size, p->dv));
    compare_gradients(p, &a, largest);
    check_adding(p, &a, true, false, largest);
    check_adding(p, &a, false, true, largest);
    free(weights);
    end_call(&a);
}

static int check_sizes(rapt_dtype dtype)
{
    uint64_t state = 17 + (uint64_t)dtype;
    int count = 0;
    for (int64_t size = 1; size <= 256; size += size < 40 ? 1 : 9, count++) {
        const int64_t value_size = draw_chance(&state, 50) ? size : draw_below(&state, 256) + 1;
        problem p = draw_problem(&state, dtype, size, value_size, size < 40 ? 300 : 90);
        check_problem(&p);
        free_problem(&p);
    }
    return count;
}

/* --- time --- */

static double processor_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

/* Forward and backward of one head, once by the loops above and a few times by the kernels. */
static void time_level(rapt_dtype dtype)
{
    enum { length = 384, size = 64, repetitions = 5 };
    const rapt_random_state random = {.seed = 1};
    uint64_t state = 1;
    problem p = {.dtype = dtype,
                 .batch = 1,
                 .heads = 1,
                 .groups = 1,
                 .queries = length,
                 .keys = length,
                 .size = size,
                 .value_size = size,
                 .scale = 0.125,
                 .keep = 1};
    p.q = draw_numbers(&state, &p, length * size, 1);
    p.k = draw_numbers(&state, &p, length * size, 1);
    p.v = draw_numbers(&state, &p, length * size, 1);
    p.g = draw_numbers(&state, &p, length * size, 1);
    double start = processor_seconds(), best = (double)INFINITY;
    define(&p, random);
    const double loops = processor_seconds() - start;
    rapt_dot_attention a = begin_call(&p, random);
    for (int i = 0; i < repetitions; i++) {
        start = processor_seconds();
        rapt_dot_attention_forward("kernel_attention", &a);
        rapt_dot_attention_backward("kernel_attention", &a);
        best = fmin(best, processor_seconds() - start);
    }
    printf("%s, %d queries and keys of %d: loops over doubles %.2f ms, kernels %.2f ms of processor time, %.0f times "
           "as fast\n",
           rapt_dtype_name(dtype), length, size, 1e3 * loops, 1e3 * best, loops / best);
    end_call(&a);
    free_problem(&p);
}

int main(void)
{
    puts(rapt_describe_runtime());
    for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) {
        printf("%s: %d cases of ragged sizes\n", rapt_dtype_name(dtype), check_sizes(dtype));
        time_level(dtype);
    }
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
