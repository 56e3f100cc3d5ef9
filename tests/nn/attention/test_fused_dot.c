/* What fused dot-product attention promises: derivatives, hidden keys, large scores, weights. */
#include "fused_dot.h"

#include "nn/fused_dot.h"

typedef struct masked_call {
    rapt_attention *attention;
    rapt_mask mask;
} masked_call;

static rapt_tensor *call_with_biases(rapt_tensor *const *inputs, void *context)
{
    masked_call c = *(const masked_call *)context;
    c.mask.bias = inputs[3];
    c.mask.relative_bias = inputs[4];
    return rapt_attention_forward(c.attention, inputs[0], inputs[1], inputs[2], &c.mask);
}

static void check_gradients(rapt_scoring *scoring)
{
    const rapt_mask masks[] = {{.causal = false}, {.causal = true}, {.window = 2, .offset = 1}};
    rapt_attention *attention = rapt_attention_new(scoring, 0);
    for (int i = 0; i < 3; i++) {
        RAPT_SCOPE;
        rapt_seed(5);
        masked_call c = {.attention = attention, .mask = masks[i]};
        rapt_tensor *inputs[] = {leaf(RAPT_FLOAT64, RAPT_SHAPE(2, 4, 3, 3)), leaf(RAPT_FLOAT64, RAPT_SHAPE(2, 2, 5, 3)),
                                 leaf(RAPT_FLOAT64, RAPT_SHAPE(2, 2, 5, 2)), leaf(RAPT_FLOAT64, RAPT_SHAPE(4, 1, 5)),
                                 leaf(RAPT_FLOAT64, RAPT_SHAPE(2, 1, 3, 5))};
        rapt_gradcheck_options options = {.context = &c};
        rapt_gradcheck_result result = rapt_gradcheck("fused dot", call_with_biases, 5, inputs, &options);
        cr_expect(result.passed, "mask %d: %s", i, result.message);
        cr_expect_gt(result.checked, 100);
    }
    rapt_module_free(&attention->module);
    expect_no_error();
}

Test(fused_dot, gradcheck)
{
    check_gradients(rapt_scaled_dot_product_scoring_new());
    check_gradients(rapt_gaussian_scoring_new(1.5, false));
}

/* The op itself: the layer would have replaced what no query sees. */
static outcome fuse(const subject *s, bool is_gaussian)
{
    rapt_resolved_mask mask;
    const int64_t *q = rapt_shape(s->queries), keys = rapt_size(s->keys, 2);
    cr_assert(rapt_resolve_mask("test", &s->mask, rapt_get_dtype(s->queries), q[0], q[1], q[2], keys, &mask));
    const rapt_attention_call call = {.queries = s->queries, .keys = s->keys, .values = s->values, .mask = &mask};
    outcome o = {{is_gaussian ? rapt_fused_gaussian(s->queries, s->keys, &call)
                              : rapt_fused_dot(s->queries, s->keys, 0.5, &call)}};
    cr_assert_not_null(o.tensors[0], "%s", rapt_error());
    rapt_tensor *from = rapt_ones(rapt_get_dtype(s->queries), rapt_rank(o.tensors[0]), rapt_shape(o.tensors[0]));
    rapt_tensor *inputs[] = {s->queries, s->keys, s->values};
    cr_assert(rapt_gradients(1, o.tensors, &from, 3, inputs, o.tensors + 1, 0), "%s", rapt_error());
    for (int i = 0; i < 4; i++) o.tensors[i] = rapt_contiguous(o.tensors[i]);
    return o;
}

/* Rows from `first` of an item's keys or values hold that number. */
static rapt_tensor *spoilt(rapt_tensor *x, int64_t item, int64_t first, double number)
{
    rapt_tensor *copy = rapt_clone(x);
    rapt_fill(rapt_slice(rapt_slice(copy, 0, item, item + 1, 1), 2, first, rapt_size(x, 2), 1), number);
    return rapt_require_gradient(copy);
}

Test(fused_dot, nothing_is_read_of_keys_that_no_query_sees)
{
    enum { keys = 200, length = 77 };
    for (int kind = 0; kind < 16; kind++) {
        RAPT_SCOPE;
        const int64_t queries = kind / 8 ? 2 : 20, size = kind / 8 ? 37 : 9;
        subject s = new_subject(kind % 2 ? RAPT_FLOAT64 : RAPT_FLOAT32, 4, 2, queries, keys, size);
        rapt_tensor *places = rapt_arange(RAPT_INT64, 0, keys, 1);
        rapt_tensor *seen = rapt_less(places, rapt_from(RAPT_INT64, RAPT_SHAPE(2, 1, 1, 1), (int64_t[]){keys, length}));
        const int mask = kind / 2 % 4;
        if (mask == 0) s.mask.valid_lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){keys, length});
        if (mask == 1) s.mask.seen = seen;
        if (mask == 2) s.mask = (rapt_mask){.causal = true, .offset = length - queries};
        if (mask == 3) s.mask = (rapt_mask){.seen = seen, .window = 40, .offset = 45 - queries};
        subject with_nan = s;
        s.keys = spoilt(s.keys, 1, length, 0), s.values = spoilt(s.values, 1, length, 0);
        with_nan.keys = spoilt(with_nan.keys, 1, length, (double)NAN);
        with_nan.values = spoilt(with_nan.values, 1, length, (double)NAN);
        for (int is_gaussian = 0; is_gaussian < 2; is_gaussian++) {
            outcome a = fuse(&s, is_gaussian), b = fuse(&with_nan, is_gaussian);
            expect_same_bits("NaN in padding", &a, &b);
            cr_expect(isfinite(largest_of(b.tensors[0])));
        }
        rapt_module_free(&s.attention->module);
    }
    expect_no_error();
}

Test(fused_dot, NaN_in_a_key_or_query_that_is_seen_shows)
{
    for (int kind = 0; kind < 4; kind++) {
        RAPT_SCOPE;
        subject s = new_subject(kind % 2 ? RAPT_FLOAT64 : RAPT_FLOAT32, 2, 1, 30, 40, 5);
        s.mask.causal = true;
        if (kind / 2)
            s.keys = spoilt(s.keys, 1, 25, (double)NAN);
        else
            s.queries = spoilt(s.queries, 1, 25, (double)NAN);
        const double *pooled = values_of(fuse(&s, false).tensors[0]);
        for (int64_t row = 0; row < 2 * 2 * 30; row++)
            for (int64_t n = row * 5; n < row * 5 + 5; n++)
                cr_expect((bool)isnan(pooled[n]) == (row >= 60 && row % 30 >= 25), "row %lld: %g", (long long)row,
                          pooled[n]);
        rapt_module_free(&s.attention->module);
    }
    expect_no_error();
}

Test(fused_dot, a_query_that_sees_nothing_gives_zeros_and_zero_gradients)
{
    for (int64_t groups = 1; groups <= 2; groups++) { /* two heads of three queries are six rows, or twice three */
        RAPT_SCOPE;
        subject s = new_subject(RAPT_FLOAT32, 2, groups, 3, 40, 4);
        s.mask.valid_lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(2, 3), (int64_t[]){0, 3, 40, 7, 0, 1});
        rapt_tensor *blind = rapt_clone(s.queries);
        rapt_fill(rapt_select(rapt_select(blind, 0, 0), 1, 0), (double)NAN);
        s.queries = rapt_require_gradient(blind);
        outcome o = fuse(&s, false);
        const double *pooled = values_of(o.tensors[0]), *gradient = values_of(o.tensors[1]);
        for (int64_t row = 0; row < 2 * 2 * 3; row++) {
            const bool sees_nothing = row / 6 == 0 ? row % 3 == 0 : row % 3 == 1;
            for (int64_t n = row * 4; n < row * 4 + 4; n++) {
                cr_expect((pooled[n] == 0) == sees_nothing, "row %lld: %g", (long long)row, pooled[n]);
                cr_expect(!sees_nothing || gradient[n] == 0, "row %lld: gradient %g", (long long)row, gradient[n]);
            }
        }
        cr_expect(isfinite(largest_of(o.tensors[2])) && isfinite(largest_of(o.tensors[3])));
        rapt_module_free(&s.attention->module);
    }
    expect_no_error();
}

/* Scores 10⁴, 10⁴ − 1, … and −10⁴ + …: sums of two products, exact in float32. */
Test(fused_dot, scores_of_ten_thousand_stay_exact)
{
    enum { keys = 70 };
    for (int sign = -1; sign <= 1; sign += 2) {
        RAPT_SCOPE;
        float key[keys][2], value[keys][1];
        double scores[keys], sum = 0, pooled = 0;
        for (int j = 0; j < keys; j++) {
            key[j][0] = 100.0f * (float)sign;
            key[j][1] = -0.25f * (float)(j % 7);
            value[j][0] = 0.01f * (float)(j * j % 50) - 0.2f;
            scores[j] = 100.0 * (double)key[j][0] + (double)key[j][1];
            sum += exp(scores[j] - sign * 1e4);
        }
        for (int j = 0; j < keys; j++) pooled += exp(scores[j] - sign * 1e4) / sum * (double)value[j][0];
        rapt_attention *attention = rapt_attention_new(rapt_dot_product_scoring_new(), 0);
        rapt_tensor *q = rapt_require_gradient(rapt_from(RAPT_FLOAT32, RAPT_SHAPE(1, 1, 2), (float[]){100, 1}));
        rapt_tensor *k = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(1, keys, 2), key);
        rapt_tensor *v = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(1, keys, 1), value), *gradient;
        rapt_tensor *y = rapt_attention_forward(attention, q, k, v, NULL), *root = rapt_sum(y, RAPT_ALL_AXES, false);
        expect_values("pooled", root, 1, &pooled, 2e-7);
        double slope = 0; /* of the second element: the covariance of its keys and the values */
        for (int j = 0; j < keys; j++)
            slope += exp(scores[j] - sign * 1e4) / sum * ((double)value[j][0] - pooled) * (double)key[j][1];
        cr_assert(rapt_gradients(1, &root, NULL, 1, &q, &gradient, 0), "%s", rapt_error());
        expect_values("slope", rapt_slice(rapt_reshape(gradient, RAPT_SHAPE(2)), 0, 1, 2, 1), 1, &slope, 2e-7);
        rapt_module_free(&attention->module);
    }
    expect_no_error();
}

/* The weights that backward makes again sum up to 1, however large the scores and however many the rows: with ones
 * as the gradient of the output, the gradients of the values sum up to the number of rows. */
Test(fused_dot, weights_fit_the_statistics_of_large_scores)
{
    const int64_t queries[] = {1, 2, 4, 5, 33, 36, 40, 515};
    for (int i = 0; i < 8 * 2 * 3; i++) {
        RAPT_SCOPE;
        const bool is_gaussian = i / 8 % 2;
        const int64_t keys = (const int64_t[]){1, 40, 600}[i / 16], rows = queries[i % 8], size = 65;
        subject s = new_subject(RAPT_FLOAT32, 1, 1, rows, keys, size);
        s.queries = rapt_require_gradient(rapt_mul_scalar(rapt_detach(s.queries), 20));
        s.keys = rapt_require_gradient(rapt_mul_scalar(rapt_detach(s.keys), 20));
        outcome o = fuse(&s, is_gaussian);
        const double *sums = values_of(rapt_sum(rapt_cast(o.tensors[3], RAPT_FLOAT64), RAPT_AXES(2), false));
        for (int64_t n = 0; n < 2 * size; n++)
            cr_expect(fabs(sums[n] - (double)rows) <= 2e-6 * (double)rows, "%lld queries, %lld keys, %s: %.9g",
                      (long long)rows, (long long)keys, is_gaussian ? "Gaussian" : "products", sums[n]);
        rapt_module_free(&s.attention->module);
    }
    expect_no_error();
}

/* It would be undefined in the plain way too; to hide it would be worse. */
Test(fused_dot, a_score_of_infinity_shows)
{
    for (int few = 0; few < 2; few++)
        for (int64_t keys = 40; keys <= 1200; keys *= 30) {
            RAPT_SCOPE;
            subject s = new_subject(RAPT_FLOAT32, 1, 1, few ? 2 : 10, keys, 3);
            s.queries = rapt_clone(rapt_detach(s.queries));
            s.keys = rapt_clone(rapt_detach(s.keys));
            rapt_fill(rapt_select(s.queries, 2, 0), 1e30);
            rapt_fill(rapt_select(s.keys, 2, keys / 2), 1e30);
            rapt_require_gradient(s.queries);
            rapt_require_gradient(s.keys);
            outcome o = fuse(&s, false);
            for (int t = 0; t < 2; t++) {
                const double *first = values_of(rapt_select(rapt_select(o.tensors[t], 1, 0), 1, 0));
                cr_expect(isnan(first[0]), "%s, %lld queries: %g", t ? "gradient" : "pooled", few ? 2LL : 10LL,
                          first[0]);
            }
            rapt_module_free(&s.attention->module);
        }
    expect_no_error();
}

/* A gradient of queries that see one key each is 0, not a rounding error. */
Test(fused_dot, one_key_has_no_gradient_by_its_score)
{
    RAPT_SCOPE;
    subject s = new_subject(RAPT_FLOAT32, 2, 2, 9, 9, 33);
    s.mask.window = 1;
    outcome o = fuse(&s, false);
    cr_expect(largest_of(o.tensors[1]) == 0);
    cr_expect(largest_of(o.tensors[2]) == 0);
    rapt_module_free(&s.attention->module);
}

/* Distances of 1 between vectors a thousand from the origin. */
Test(fused_dot, distances_lose_no_digits_to_the_length_of_the_vectors)
{
    RAPT_SCOPE;
    subject s = new_subject(RAPT_FLOAT32, 2, 1, 12, 50, 3), far = s;
    rapt_tensor *eighth = rapt_scalar(RAPT_FLOAT32, 0.125); /* so that adding 1000 is exact */
    s.queries = rapt_require_gradient(
        rapt_clone(rapt_mul(rapt_cast(rapt_randint(-9, 9, RAPT_SHAPE(2, 2, 12, 3)), RAPT_FLOAT32), eighth)));
    s.keys = rapt_require_gradient(
        rapt_clone(rapt_mul(rapt_cast(rapt_randint(-9, 9, RAPT_SHAPE(2, 1, 50, 3)), RAPT_FLOAT32), eighth)));
    far.queries = rapt_require_gradient(rapt_clone(rapt_add_scalar(s.queries, 1000)));
    far.keys = rapt_require_gradient(rapt_clone(rapt_add_scalar(s.keys, 1000)));
    outcome a = fuse(&s, true), b = fuse(&far, true);
    expect_near("far from the origin", &a, &b, 1e-6);
    rapt_module_free(&s.attention->module);
    expect_no_error();
}

Test(fused_dot, asking_for_weights_changes_no_bit)
{
    for (int kind = 0; kind < 6; kind++) {
        RAPT_SCOPE;
        subject s = new_subject(RAPT_FLOAT32, 4, 2, kind / 3 ? 2 : 30, 300, 16);
        s.mask = (rapt_mask){.causal = kind % 3 == 1, .window = kind % 3 == 2 ? 40 : 0, .offset = 100};
        outcome without = differentiate(&s);
        s.attention->keep_weights = true;
        outcome with = differentiate(&s);
        expect_same_bits("asked for weights", &without, &with);
        rapt_tensor *weights = rapt_clone(s.attention->weights);
        s.attention->plain = true;
        outcome plain = differentiate(&s);
        expect_near("plain", &plain, &with, 2e-6);
        cr_expect_leq(largest_of(rapt_sub(weights, s.attention->weights)), 2e-7 + 1e-6 * largest_of(weights));
        rapt_module_free(&s.attention->module);
    }
    expect_no_error();
}

Test(fused_dot, dropping_everything_gives_zeros)
{
    RAPT_SCOPE;
    subject s = new_subject(RAPT_FLOAT32, 2, 2, 3, 5, 4);
    s.attention->dropout = 1;
    outcome o = differentiate(&s);
    for (int i = 0; i < 4; i++) cr_expect(largest_of(o.tensors[i]) == 0, "result %d", i);
    rapt_module_free(&s.attention->module);
    expect_no_error();
}

Test(fused_dot, values_of_another_dtype_are_an_error)
{
    RAPT_SCOPE;
    subject s = new_subject(RAPT_FLOAT32, 1, 1, 2, 3, 4);
    s.values = rapt_cast(s.values, RAPT_FLOAT64);
    cr_expect_null(pool(&s));
    expect_error(RAPT_ERROR_DTYPE, "values float64");
    s.values = rapt_cast(s.values, RAPT_FLOAT32);
    s.keys = rapt_slice(s.keys, -1, 0, 3, 1);
    cr_expect_null(pool(&s));
    expect_error(RAPT_ERROR_SHAPE, "4");
    rapt_module_free(&s.attention->module);
}
