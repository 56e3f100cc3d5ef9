/* 100,000 random calls of attention, by all ways that there are, against loops written from the definition. */
#include "random_attention.h"

#include <stdio.h>

#include "largest.h"

enum { case_count = 100000, parts = 4 };

typedef struct inputs {
    rapt_tensor *queries, *keys, *values;
    rapt_mask mask;
} inputs;

static void fail(const attention_case *c, const char *what, const char *way)
{
    char mask[512];
    const rapt_mask *m = &c->rules;
    snprintf(
        mask, sizeof mask,
        "lengths %d, causal %d, prefix %d, window %d, left %d, right %d, blocks of %d and %d before, documents %d, "
        "places %d, offset %d, seen %d, bias %d, relative bias %d%s",
        c->lengths_rank, m->causal, m->prefix_lengths != NULL, (int)m->window, (int)m->window_left,
        (int)m->window_right, (int)m->block, (int)m->blocks_before, m->documents != NULL, m->query_places != NULL,
        (int)m->offset, c->seen.rank, c->bias.rank, c->relative_bias.rank, c->fills_million ? ", million" : "");
    cr_assert_fail("seed %llu, %s: %s (%s, %s, %s; batch %d, heads %d of %d groups%s, queries %d of %d, keys %d of %d, "
                   "values of %d; %s) %s",
                   (unsigned long long)c->seed, way, what, c->scoring->name, normalizer_names[c->normalizer],
                   rapt_dtype_name(c->dtype), (int)c->batch, (int)c->heads, (int)c->groups,
                   c->has_heads ? "" : ", rank 3", (int)c->queries, (int)c->query_size, (int)c->keys, (int)c->key_size,
                   (int)c->value_size, mask, rapt_error() ? rapt_error() : "");
}

/* (B, heads, length, size), or without heads, in the case's dtype. */
static rapt_tensor *numbers(const attention_case *c, int64_t heads, int64_t length, int64_t size, const double *data)
{
    rapt_tensor *all = rapt_from(RAPT_FLOAT64, RAPT_SHAPE(c->batch, heads, length, size), data);
    return rapt_cast(c->has_heads ? all : rapt_squeeze(all, 1), c->dtype);
}

/* Keys or values with `extra` rows more, which hold NaN; rows that no query of their group sees hold `hidden`. */
static rapt_tensor *rows(const attention_case *c, const attention_result *r, int64_t size, const double *data,
                         double hidden, int64_t extra)
{
    double padded[most_batch * most_heads * (most_length + 2) * most_size];
    const int64_t of_group = c->heads / c->groups * c->queries, length = c->keys + extra;
    for (int64_t group = 0; group < c->batch * c->groups; group++)
        for (int64_t j = 0; j < length; j++) {
            bool any = c->fills_million && j < c->keys;
            for (int64_t i = 0; i < of_group && j < c->keys; i++)
                any = any || r->seen[(group * of_group + i) * c->keys + j];
            for (int64_t n = 0; n < size; n++)
                padded[(group * length + j) * size + n] = any            ? data[(group * c->keys + j) * size + n]
                                                          : j >= c->keys ? (double)NAN
                                                                         : hidden;
        }
    return numbers(c, c->groups, length, size, padded);
}

/* What a mask's tensor holds, with `extra` keys that it would show. */
static rapt_tensor *field(const attention_case *c, const mask_field *f, rapt_dtype dtype, int64_t extra)
{
    if (f->rank < 0) return NULL;
    rapt_tensor *all = rapt_cast(rapt_from(RAPT_FLOAT64, f->rank, f->shape, f->data), dtype);
    return extra > 0 && f != &c->relative_bias ? rapt_pad(all, -1, 0, extra, 1) : all;
}

static inputs build(const attention_case *c, const attention_result *r, double hidden, int64_t extra)
{
    inputs in = {numbers(c, c->heads, c->queries, c->query_size, c->query),
                 rows(c, r, c->key_size, c->key, hidden, extra), rows(c, r, c->value_size, c->value, hidden, extra),
                 c->rules};
    in.mask.fills_million = c->fills_million;
    if (extra > 0 && c->rules.documents) in.mask.documents = rapt_pad(c->rules.documents, -1, 0, extra, 1000);
    if (c->lengths_rank)
        in.mask.valid_lengths =
            rapt_cast(rapt_from(RAPT_FLOAT64, c->lengths_rank, (int64_t[]){c->batch, c->queries}, c->lengths),
                      c->lengths_dtype);
    else if (extra > 0)
        in.mask.valid_lengths = rapt_full(RAPT_INT64, RAPT_SHAPE(c->batch), (double)c->keys);
    rapt_tensor *seen = field(c, &c->seen, RAPT_UINT8, extra);
    in.mask.seen = seen ? rapt_cast(seen, RAPT_BOOL) : NULL;
    in.mask.bias = field(c, &c->bias, c->dtype, extra);
    in.mask.relative_bias = field(c, &c->relative_bias, c->dtype, 0);
    return in;
}

static rapt_tensor *forward(rapt_attention *attention, const inputs *in)
{
    return rapt_attention_forward(attention, in->queries, in->keys, in->values, &in->mask);
}

/* The element of a dense tensor of the case's dtype. */
static double element(const attention_case *c, const rapt_tensor *tensor, int64_t n)
{
    const void *data = rapt_data(tensor);
    return c->dtype == RAPT_FLOAT32 ? (double)((const float *)data)[n] : ((const double *)data)[n];
}

/* Weights and results against the definition; weights that are 0 in it are 0 exactly. */
static void check(const attention_case *c, const attention_result *r, rapt_tensor *pooled, const rapt_tensor *weights,
                  const char *way)
{
    if (!pooled || !weights) fail(c, "gives NULL", way);
    const double ulp = c->dtype == RAPT_FLOAT32 ? 0x1p-23 : 0x1p-52;
    pooled = rapt_contiguous(pooled);
    for (int64_t row = 0; row < c->batch * c->heads * c->queries; row++) {
        const double allowed = 8 * ulp * r->error[row];
        bool any = false;
        for (int64_t n = row * c->keys; n < (row + 1) * c->keys; n++) {
            double weight = element(c, weights, n);
            any = any || r->seen[n] || c->fills_million;
            if (weight != 0 && !r->seen[n] && !c->fills_million) fail(c, "a key that is not seen has a weight", way);
            if (!(fabs(weight - r->weights[n]) <= allowed)) fail(c, "a weight is wrong", way);
        }
        for (int64_t n = row * c->value_size; n < (row + 1) * c->value_size; n++) {
            double number = element(c, pooled, n);
            if (!any && number != 0 && isfinite(allowed)) fail(c, "a query without a key gives more than 0", way);
            if (!(fabs(number - r->pooled[n]) <= 2 * allowed * (1 + (double)c->keys)))
                fail(c, "a result is wrong", way);
        }
    }
}

enum { most_gradients = 3 + most_parameters };

/* Results and the gradients of all inputs and parameters, from some gradient of the results. */
typedef struct outcome {
    rapt_tensor *pooled, *weights, *gradients[most_gradients];
} outcome;

static outcome differentiate(const attention_case *c, rapt_attention *attention, const inputs *in, const char *way)
{
    outcome o = {.pooled = NULL};
    parameter_list list = parameters_of(attention);
    rapt_tensor *wanted[most_gradients] = {rapt_require_gradient(in->queries), rapt_require_gradient(in->keys),
                                           rapt_require_gradient(in->values)};
    for (int i = 0; i < list.count; i++) wanted[3 + i] = list.tensors[i];
    o.pooled = forward(attention, in);
    if (!o.pooled) fail(c, "gives NULL", way);
    o.weights = rapt_clone(attention->weights);
    rapt_tensor *from = rapt_cast(rapt_arange(RAPT_FLOAT64, 1, (double)rapt_count(o.pooled) + 1, 1), c->dtype);
    from = rapt_sin(rapt_reshape(from, rapt_rank(o.pooled), rapt_shape(o.pooled)));
    if (!rapt_gradients(1, &o.pooled, &from, 3 + list.count, wanted, o.gradients, 0)) fail(c, "has no gradient", way);
    return o;
}

static void expect_bits(const attention_case *c, rapt_tensor *a, rapt_tensor *b, const char *what, const char *way)
{
    if (!a && !b) return;
    if (!a || !b || !same_bits(rapt_contiguous(a), rapt_contiguous(b))) fail(c, what, way);
}

/* What is not seen may be anything: no bit of anything changes. */
static void check_hidden(const attention_case *c, rapt_attention *attention, const attention_result *r,
                         const outcome *with_nan, const char *way)
{
    inputs in = build(c, r, 3, 0);
    outcome o = differentiate(c, attention, &in, way);
    expect_bits(c, o.pooled, with_nan->pooled, "the result changes with what is hidden", way);
    expect_bits(c, o.weights, with_nan->weights, "weights change with what is hidden", way);
    for (int i = 0; i < most_gradients; i++)
        expect_bits(c, o.gradients[i], with_nan->gradients[i], "a gradient changes with what is hidden", way);
}

/* Padding changes no bit of the result or of the gradients of queries, keys and values. */
static void check_padded(const attention_case *c, rapt_attention *attention, const attention_result *r,
                         const outcome *unpadded, const char *way)
{
    inputs in = build(c, r, (double)NAN, 2);
    outcome o = differentiate(c, attention, &in, way);
    expect_bits(c, o.pooled, unpadded->pooled, "the result changes with padding", way);
    expect_bits(c, rapt_slice(o.weights, -1, 0, c->keys, 1), unpadded->weights, "weights change with padding", way);
    expect_bits(c, o.gradients[0], unpadded->gradients[0], "the gradient of the queries changes with padding", way);
    for (int i = 1; i < 3; i++)
        if (o.gradients[i])
            expect_bits(c, rapt_slice(o.gradients[i], -2, 0, c->keys, 1), unpadded->gradients[i],
                        "the gradient of keys or values changes with padding", way);
}

/* The two ways have one meaning: gradients agree within rounding of the largest number. */
static void compare_gradients(const attention_case *c, const outcome *plain, const outcome *fused)
{
    for (int i = 0; i < most_gradients; i++) {
        rapt_tensor *a = plain->gradients[i], *b = fused->gradients[i];
        if (!a && !b) continue;
        double error = a && b ? largest_of(rapt_sub(a, b)) / (1 + largest_of(a)) : (double)NAN;
        if (!(error <= (c->dtype == RAPT_FLOAT32 ? 1e-5 : 1e-13)))
            fail(c, "gradients of the two ways differ", "both ways");
    }
}

static rapt_attention *attention_of(const attention_case *c)
{
    rapt_scoring *scoring = c->has_values && c->scoring->define == defined_relative
                                ? rapt_relative_scoring_new(c->query_size, c->value_size, scoring_reach)
                                : c->scoring->make(c->query_size, c->key_size);
    rapt_attention *attention = rapt_attention_new(scoring, 0);
    if (!attention || !rapt_module_cast(&attention->module, c->dtype)) fail(c, "cannot be made", "constructor");
    attention->normalizer = normalizers[c->normalizer];
    attention->keep_weights = true;
    return attention;
}

/* One way of a case. Every fourth case is differentiated, and all kinds of padding tried. */
static outcome try(const attention_case *c, rapt_attention *attention, const attention_result *r, bool plain)
{
    const char *way = plain ? "plain way" : "fused way";
    inputs in = build(c, r, (double)NAN, 0);
    outcome o = {.pooled = NULL};
    attention->plain = plain;
    if (c->seed / parts % 4 == 0) {
        o = differentiate(c, attention, &in, way);
        if (!c->fills_million) {
            check_hidden(c, attention, r, &o, way);
            if (c->keys > 0) check_padded(c, attention, r, &o, way);
        }
    } else {
        RAPT_NO_GRADIENT;
        o.pooled = forward(attention, &in);
        o.weights = attention->weights;
    }
    check(c, r, o.pooled, o.weights, way);
    return o;
}

/* Whether there was a fused way. */
static bool run_case(uint64_t seed)
{
    static attention_result r;
    RAPT_SCOPE;
    rapt_seed(seed);
    attention_case c = draw_case(seed, seed % 5 == 0 ? RAPT_FLOAT32 : RAPT_FLOAT64);
    rapt_attention *attention = attention_of(&c);
    const double *parameters[most_parameters] = {NULL};
    parameter_list list = parameters_of(attention);
    for (int i = 0; i < list.count; i++) parameters[i] = values_of(list.tensors[i]);
    define(&c, parameters, &r);
    outcome plain = try(&c, attention, &r, true);
    bool fuses = attention->scoring->attend && c.normalizer == softmax && !c.fills_million;
    if (fuses) {
        outcome fused = try(&c, attention, &r, false);
        compare_gradients(&c, &plain, &fused);
    }
    rapt_module_free(&attention->module);
    if (rapt_error()) fail(&c, "leaves an error", "all");
    return fuses;
}

static void run_part(int part)
{
    int fused = 0;
    for (int i = part; i < case_count; i += parts) fused += run_case((uint64_t)i);
    printf("attention_random, part %d of %d: %d cases, %d of them by the fused way too\n", part + 1, parts,
           case_count / parts, fused);
    expect_no_error();
}

Test(attention_random, part_1)
{
    run_part(0);
}

Test(attention_random, part_2)
{
    run_part(1);
}

Test(attention_random, part_3)
{
    run_part(2);
}

Test(attention_random, part_4)
{
    run_part(3);
}
