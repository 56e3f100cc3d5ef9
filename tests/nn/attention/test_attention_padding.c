/* Attention and padding: what stands in keys and values that no query sees changes no bit of anything. */
#include "modules.h"
#include "score_modifications.h"

enum { batch = 3, queries = 4, keys = 5, size = 6, value_size = 3, parameters = 6, results = 4 + parameters };

/* Every way to hide keys from all queries of an item: those from `left` on. */
enum { by_length, by_query_length, by_bytes, by_bias, by_window, by_cause, by_cause_and_window, ways };

static const int64_t *left_by(int way)
{
    static const int64_t by_item[batch] = {2, 0, 5}, for_all[batch] = {3, 3, 3};
    return way == by_cause || way == by_cause_and_window ? for_all : by_item;
}

static rapt_mask make_mask(int way, rapt_dtype dtype)
{
    rapt_tensor *lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(batch), left_by(way));
    rapt_tensor *of_queries = rapt_expand(rapt_unsqueeze(lengths, 1), RAPT_SHAPE(batch, queries));
    rapt_tensor *bytes = rapt_less(rapt_arange(RAPT_INT64, 0, keys, 1), rapt_reshape(lengths, RAPT_SHAPE(batch, 1, 1)));
    rapt_tensor *bias = rapt_where(bytes, rapt_scalar(dtype, 0.25), rapt_scalar(dtype, -(double)INFINITY));
    switch (way) {
    case by_length:
        return (rapt_mask){.valid_lengths = lengths};
    case by_query_length:
        return (rapt_mask){.valid_lengths = rapt_minimum(of_queries, rapt_arange(RAPT_INT64, 2, 2 + queries, 1))};
    case by_bytes:
        return (rapt_mask){.seen = bytes, .causal = true, .offset = 1};
    case by_bias:
        return (rapt_mask){.bias = bias};
    case by_window:
        return (rapt_mask){.valid_lengths = lengths, .window = 2};
    case by_cause: /* the last query sees key 2, and none after it */
        return (rapt_mask){.causal = true, .offset = -1};
    default:
        return (rapt_mask){.causal = true, .window = 2, .offset = -1};
    }
}

typedef struct setting {
    rapt_attention *attention;
    bool heads;    /* one more axis, of 2 heads and 1 group */
    bool in_parts; /* prepare and pool */
    rapt_mask mask;
    const int64_t *left;
} setting;

/* x, repeated for the heads where there are any, with that value where the mask hides it from all. */
static rapt_tensor *make_input(const setting *s, rapt_tensor *x, double fill, int64_t heads)
{
    int64_t length = rapt_size(x, 1), width = rapt_size(x, 2);
    if (length == keys) {
        rapt_tensor *seen =
            rapt_less(rapt_reshape(rapt_arange(RAPT_INT64, 0, keys, 1), RAPT_SHAPE(keys, 1)),
                      rapt_reshape(rapt_from(RAPT_INT64, RAPT_SHAPE(batch), s->left), RAPT_SHAPE(batch, 1, 1)));
        x = rapt_where(seen, x, rapt_scalar(rapt_get_dtype(x), fill));
    }
    if (s->heads) x = rapt_expand(rapt_unsqueeze(x, 1), RAPT_SHAPE(batch, heads, length, width));
    return rapt_require_gradient(rapt_clone(x));
}

/* The output and the gradients of queries, keys, values and parameters. */
static void run(const setting *s, rapt_dtype dtype, double fill, rapt_tensor *result[results])
{
    rapt_seed(31);
    rapt_tensor *inputs[3 + parameters] = {make_input(s, rapt_randn(dtype, RAPT_SHAPE(batch, queries, size)), fill, 2),
                                           make_input(s, rapt_randn(dtype, RAPT_SHAPE(batch, keys, size)), fill, 1),
                                           make_input(s, rapt_randn(dtype, RAPT_SHAPE(batch, keys, value_size)), fill,
                                                      1)};
    const char *const names[parameters] = {"W_q.weight", "W_k.weight", "w_v.weight", "M", "temperature", "width"};
    int count = 3;
    for (int i = 0; i < parameters; i++) {
        rapt_tensor *parameter = rapt_module_find(&s->attention->module, names[i]);
        if (parameter) inputs[count++] = parameter;
    }
    rapt_tensor *output = s->in_parts ? rapt_attention_pool(s->attention, inputs[0],
                                                            rapt_attention_prepare(s->attention, inputs[1], &s->mask),
                                                            inputs[2], &s->mask)
                                      : rapt_attention_forward(s->attention, inputs[0], inputs[1], inputs[2], &s->mask);
    cr_assert_not_null(output, "%s", rapt_error());
    rapt_tensor *cotangent = rapt_sin(rapt_detach(output));
    for (int i = 0; i < results; i++) result[i] = NULL;
    result[0] = output;
    cr_assert(rapt_gradients(1, &output, &cotangent, count, inputs, result + 1, 0), "%s", rapt_error());
}

static void expect_padding_does_not_matter(const char *name, const setting *s, rapt_dtype dtype)
{
    static const double fills[] = {0, (double)NAN, (double)INFINITY, -1e30};
    rapt_tensor *clean[results], *dirty[results];
    run(s, dtype, fills[0], clean);
    for (int i = 1; i < 4; i++) {
        run(s, dtype, fills[i], dirty);
        for (int k = 0; k < results; k++) {
            cr_assert_eq(clean[k] == NULL, dirty[k] == NULL);
            if (!clean[k]) continue;
            cr_expect(same_bits(rapt_contiguous(clean[k]), rapt_contiguous(dirty[k])), "%s: result %d with %g", name, k,
                      fills[i]);
            const double *value = values_of(clean[k]);
            for (int64_t at = 0; at < rapt_count(clean[k]); at++)
                cr_assert(isfinite(value[at]), "%s: result %d", name, k);
        }
    }
    /* no gradient for keys that none sees, no output where there are no keys */
    const int heads = rapt_rank(clean[2]) == 4;
    for (int item = 0; item < batch; item++) {
        const int64_t rest = keys - s->left[item];
        for (int k = 2; k < 4; k++) {
            const double *padded = values_of(rapt_slice(rapt_select(clean[k], 0, item), heads, s->left[item], keys, 1));
            for (int64_t at = 0; at < rest * rapt_size(clean[k], -1); at++)
                cr_expect(padded[at] == 0, "%s: gradient %d of item %d", name, k, item);
        }
        const double *output = values_of(rapt_select(clean[0], 0, item));
        for (int64_t at = 0; at < queries * value_size * (1 + heads) && s->left[item] == 0; at++)
            cr_expect_eq(output[at], 0);
    }
}

static void check_all(rapt_scoring *scoring, rapt_dtype dtype)
{
    rapt_normalizer *const normalizers[] = {rapt_masked_softmax, rapt_masked_sum,     rapt_masked_none,
                                            rapt_masked_hard,    rapt_masked_uniform, rapt_masked_sparsemax,
                                            rapt_masked_entmax15};
    static const char *const names[] = {"softmax", "sum", "none", "hard", "uniform", "sparsemax", "entmax15"};
    setting s = {.attention = rapt_attention_new(scoring, 0.3)};
    cr_assert(s.attention && rapt_module_cast(&s.attention->module, dtype), "%s", rapt_error());
    for (int which = 0; which < 7; which++)
        for (int trial = 0; trial < 16 * ways; trial++) {
            RAPT_SCOPE;
            s.attention->normalizer = normalizers[which];
            s.attention->plain = trial & 1;
            s.heads = trial & 2;
            s.in_parts = trial & 4;
            rapt_module_train(&s.attention->module, trial & 8);
            s.mask = make_mask(trial / 16, dtype);
            s.left = left_by(trial / 16);
            /* of bytes for items, where there are heads */
            if (s.heads && s.mask.seen) s.mask.seen = rapt_unsqueeze(s.mask.seen, 1);
            if (s.heads && s.mask.bias) s.mask.bias = rapt_unsqueeze(s.mask.bias, 1);
            expect_padding_does_not_matter(names[which], &s, dtype);
        }
    rapt_module_free(&s.attention->module);
    expect_no_error();
}

Test(attention_padding, dot_product)
{
    check_all(rapt_scaled_dot_product_scoring_new(), RAPT_FLOAT32);
    check_all(rapt_scaled_dot_product_scoring_new(), RAPT_FLOAT64);
}

Test(attention_padding, additive)
{
    check_all(rapt_additive_scoring_new(size, size, 7), RAPT_FLOAT32);
    check_all(rapt_additive_scoring_new(size, size, 7), RAPT_FLOAT64);
}

Test(attention_padding, others)
{
    check_all(rapt_bilinear_scoring_new(size, size), RAPT_FLOAT64);
    check_all(rapt_cosine_scoring_new(0.5, true), RAPT_FLOAT64);
    check_all(rapt_gaussian_scoring_new(2, true), RAPT_FLOAT64);
    check_all(rapt_relative_scoring_new(size, 0, 2), RAPT_FLOAT64);
}

/* The first `rows` queries of one item. */
static rapt_tensor *first_rows(rapt_tensor *x, int64_t rows)
{
    return rapt_contiguous(rapt_slice(x, 1, 0, rows, 1));
}

/* A value takes no part where its weight is 0, even for one query that does not see it; those that do get it. */
static void check_some(rapt_attention *attention, bool plain, rapt_dtype dtype, int64_t length)
{
    RAPT_SCOPE;
    rapt_seed(32);
    cr_assert(attention && rapt_module_cast(&attention->module, dtype), "%s", rapt_error());
    attention->plain = plain;
    const int64_t blind = length - 2;
    rapt_tensor *q = rapt_require_gradient(rapt_randn(dtype, RAPT_SHAPE(1, length, 2))),
                *k = rapt_randn(dtype, RAPT_SHAPE(1, length, 2)), *clean = rapt_randn(dtype, RAPT_SHAPE(1, length, 2)),
                *dirty = rapt_clone(clean), *y[2], *gradients[2];
    cr_assert(rapt_fill(rapt_select(rapt_select(dirty, 1, length - 1), 1, 1), (double)NAN));
    cr_assert(rapt_fill(rapt_select(rapt_select(dirty, 1, length - 2), 1, 0), (double)INFINITY));
    for (int i = 0; i < 2; i++) {
        y[i] = rapt_attention_forward(attention, q, k, i ? dirty : clean, RAPT_MASK(.causal = true));
        rapt_tensor *sum = rapt_sum(rapt_slice(y[i], 1, 0, blind, 1), RAPT_ALL_AXES, false);
        cr_assert(rapt_gradients(1, &sum, NULL, 1, &q, &gradients[i], 0), "%s", rapt_error());
    }
    cr_expect(same_bits(first_rows(y[0], blind), first_rows(y[1], blind)), "%s, plain %d, length %lld",
              attention->scoring->module.kind->name, plain, (long long)length);
    cr_expect(same_bits(first_rows(gradients[0], blind), first_rows(gradients[1], blind)),
              "gradient: %s, plain %d, length %lld", attention->scoring->module.kind->name, plain, (long long)length);
    const double *value = values_of(y[1]) + 2 * blind;
    cr_expect(isinf(value[0]) && isfinite(value[1]) && isinf(value[2]) && isnan(value[3]), "%g %g %g %g", value[0],
              value[1], value[2], value[3]);
    rapt_module_free(&attention->module);
}

Test(attention_padding, values_that_some_queries_see)
{
    for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++)
        for (int plain = 0; plain < 2; plain++)
            for (int64_t length = 3; length < 300; length *= 4) {
                check_some(rapt_dot_product_attention_new(0), plain, dtype, length);
                check_some(rapt_attention_new(rapt_gaussian_scoring_new(1, false), 0), plain, dtype, length);
                check_some(rapt_additive_attention_new(2, 2, 5, 0), plain, dtype, length);
            }
    expect_no_error();
}

/* --- holes --- */

static void see_odd(const rapt_mask_tile *tile, uint8_t *seen)
{
    for (int64_t r = 0; r < tile->rows; r++)
        for (int64_t c = 0; c < tile->columns; c++) *seen++ = (uint8_t)((tile->first_key + c) & 1);
}

enum { hole_by_bytes, hole_by_bias, hole_by_dilation, hole_by_rule, hole_ways, many_keys = 41 };

/* No even key is seen, by any query. */
static rapt_mask holes_by(int way, rapt_dtype dtype)
{
    rapt_tensor *odd = rapt_zeros(RAPT_BOOL, RAPT_SHAPE(many_keys));
    cr_assert(rapt_fill(rapt_slice(odd, 0, 1, many_keys, 2), 1));
    if (way == hole_by_bytes) return (rapt_mask){.seen = odd};
    if (way == hole_by_bias)
        return (rapt_mask){.bias = rapt_where(odd, rapt_scalar(dtype, 0.25), rapt_scalar(dtype, -(double)INFINITY))};
    if (way == hole_by_rule) return (rapt_mask){.rule = {.see = see_odd}};
    return (rapt_mask){.dilation = 2, .query_places = rapt_full(RAPT_INT64, RAPT_SHAPE(1), many_keys)};
}

/* The output and the gradients of queries, keys and values, with that number in all keys that no query sees. */
static void run_with_holes(rapt_attention *attention, rapt_dtype dtype, int way, int64_t rows, double fill,
                           rapt_tensor *result[4])
{
    rapt_seed(34);
    rapt_tensor *q = rapt_require_gradient(rapt_randn(dtype, RAPT_SHAPE(1, rows, size))),
                *k = rapt_randn(dtype, RAPT_SHAPE(1, many_keys, size)),
                *v = rapt_require_gradient(rapt_randn(dtype, RAPT_SHAPE(1, many_keys, value_size)));
    rapt_mask mask = holes_by(way, dtype);
    if (mask.query_places) mask.query_places = rapt_contiguous(rapt_expand(mask.query_places, RAPT_SHAPE(rows)));
    cr_assert(rapt_fill(rapt_slice(k, 1, 0, many_keys, 2), fill));
    rapt_tensor *inputs[3] = {q, rapt_require_gradient(k), v};
    result[0] = rapt_attention_forward(attention, q, k, v, &mask);
    cr_assert_not_null(result[0], "%s", rapt_error());
    rapt_tensor *cotangent = rapt_sin(rapt_detach(result[0]));
    cr_assert(rapt_gradients(1, result, &cotangent, 3, inputs, result + 1, 0), "%s", rapt_error());
}

/* Few rows are read where they lie, more are packed; a modification's derivative may read what is hidden from it. */
static void check_holes(rapt_score_modification *modification, rapt_dtype dtype)
{
    static const double fills[] = {(double)NAN, (double)INFINITY, -1e30};
    rapt_attention *attention = rapt_dot_product_attention_new(0);
    cr_assert(rapt_attention_modify(attention, "modification", modification), "%s", rapt_error());
    cr_assert(rapt_module_cast(&attention->module, dtype));
    for (int trial = 0; trial < 2 * hole_ways; trial++)
        for (int64_t rows = 1; rows <= 16; rows += 3) {
            RAPT_SCOPE;
            rapt_tensor *clean[4], *dirty[4];
            attention->plain = trial & 1;
            run_with_holes(attention, dtype, trial / 2, rows, 0, clean);
            for (int i = 0; i < 3; i++) {
                run_with_holes(attention, dtype, trial / 2, rows, fills[i], dirty);
                for (int r = 0; r < 4; r++)
                    cr_expect(same_bits(rapt_contiguous(clean[r]), rapt_contiguous(dirty[r])),
                              "%s, plain %d, way %d, %d rows: result %d with %g", modification->module.kind->name,
                              trial & 1, trial / 2, (int)rows, r, fills[i]);
            }
        }
    rapt_module_free(&attention->module);
}

Test(attention_padding, holes_that_modifications_are_not_shown)
{
    for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) {
        check_holes(rapt_soft_cap_new(3), dtype);
        check_holes(own_new(bend, 1, 1), dtype);
        check_holes(library_new(head_temperature, 1, 1), dtype);
    }
    expect_no_error();
}

/* The book's −10⁶: a query without keys takes the mean of all values, padding too, and each gets its part of the
 * gradient. */
Test(attention_padding, filled_with_a_million)
{
    RAPT_SCOPE;
    rapt_seed(33);
    rapt_attention *attention = rapt_dot_product_attention_new(0);
    rapt_tensor *q = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(1, 1, 2))),
                *k = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(1, 4, 2))),
                *v = rapt_require_gradient(doubles(RAPT_SHAPE(1, 4, 1), (double[]){1, 2, 3, 10}));
    rapt_tensor *y = rapt_attention_forward(attention, q, k, v,
                                            RAPT_MASK(.valid_lengths = rapt_zeros(RAPT_INT64, RAPT_SHAPE(1)),
                                                      .fills_million = true));
    expect_values("mean", y, 1, (double[]){4}, 0);
    cr_assert(rapt_backward(rapt_mul_scalar(rapt_sum(y, RAPT_ALL_AXES, false), 6)), "%s", rapt_error());
    expect_values("of values", rapt_gradient(v), 4, (double[]){1.5, 1.5, 1.5, 1.5}, 0);
    expect_values("of queries", rapt_gradient(q), 2, (double[]){0, 0}, 0);
    expect_values("of keys", rapt_gradient(k), 8, (double[8]){0}, 0);
    rapt_module_free(&attention->module);
    expect_no_error();
}
