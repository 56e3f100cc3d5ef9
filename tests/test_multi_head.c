/* Multi-head attention: how heads are cut, whose lengths are whose, sizes, derivatives. */
#include "modules.h"

typedef rapt_multi_head_attention_config config;

static rapt_multi_head_attention *multi_head(const config *c, rapt_dtype dtype)
{
    rapt_multi_head_attention *m = rapt_multi_head_attention_new(c);
    cr_assert(m && rapt_module_cast(&m->module, dtype), "%s", rapt_error());
    return m;
}

/* A scoring function that gives back what it was asked, so that the split can be seen from outside. */
static rapt_tensor *seen_queries, *seen_keys;

static rapt_tensor *look(rapt_scoring *scoring, rapt_tensor *queries, rapt_tensor *keys)
{
    (void)scoring;
    seen_queries = rapt_retain(rapt_contiguous(queries));
    seen_keys = rapt_retain(rapt_contiguous(keys));
    return rapt_matmul(queries, rapt_transpose(keys, 1, 2));
}

static rapt_attention *looking(void)
{
    static const rapt_module_class kind = {.name = "Looking"};
    rapt_scoring *scoring = rapt_module_new(sizeof *scoring, &kind);
    scoring->score = look;
    return rapt_attention_new(scoring, 0);
}

/* Makes a projection the identity. */
static void set_identity(rapt_multi_head_attention *m, const char *name)
{
    rapt_tensor *weight = rapt_module_find(&m->module, name);
    cr_assert(weight && rapt_copy(weight, rapt_eye(RAPT_FLOAT64, m->hidden)), "%s", rapt_error());
}

/* out[b·h + i][t][j] = x[b][t][i·(H / h) + j] */
static void expect_split(rapt_tensor *split, rapt_tensor *x, int heads)
{
    int64_t batch = rapt_size(x, 0), length = rapt_size(x, 1), size = rapt_size(x, 2) / heads;
    expect_shape(split, RAPT_SHAPE(batch * heads, length, size));
    for (int64_t b = 0; b < batch; b++)
        for (int64_t i = 0; i < heads; i++)
            for (int64_t t = 0; t < length; t++)
                for (int64_t j = 0; j < size; j++)
                    cr_assert_eq(rapt_at(split, (int64_t[]){b * heads + i, t, j}),
                                 rapt_at(x, (int64_t[]){b, t, i * size + j}));
}

Test(multi_head, heads_are_cut_and_joined_as_the_rule_says)
{
    RAPT_SCOPE;
    rapt_seed(1);
    rapt_multi_head_attention *m = multi_head(&(config){.hidden = 6, .heads = 3, .pooling = looking()}, RAPT_FLOAT64);
    const char *const names[] = {"W_q.weight", "W_k.weight", "W_v.weight", "W_o.weight"};
    for (int i = 0; i < 4; i++) set_identity(m, names[i]);
    rapt_tensor *queries = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 4, 6)),
                *keys = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 5, 6));
    rapt_tensor *values = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 5, 6));
    rapt_tensor *lengths = rapt_ones(RAPT_INT64, RAPT_SHAPE(2));
    rapt_tensor *y = rapt_multi_head_attention_forward(m, queries, keys, values, lengths);
    expect_split(seen_queries, queries, 3);
    expect_split(seen_keys, keys, 3);
    /* With one key each row of the output is the first value, if joining is the inverse of cutting. */
    rapt_tensor *first = rapt_contiguous(rapt_expand(rapt_slice(values, 1, 0, 1, 1), RAPT_SHAPE(2, 4, 6)));
    cr_expect(same_bits(rapt_contiguous(y), first));
    rapt_release(seen_queries);
    rapt_release(seen_keys);
    rapt_module_free(&m->module);
    expect_no_error();
}

/* Item 0's length for its heads, then item 1's: each head sees what its item allows. */
Test(multi_head, lengths_follow_the_item)
{
    for (int rank = 1; rank <= 2; rank++) {
        RAPT_SCOPE;
        enum { heads = 3, queries_count = 2, keys_count = 6 };
        rapt_multi_head_attention *m = multi_head(&(config){.hidden = 12, .heads = heads}, RAPT_FLOAT32);
        m->pooling->keep_weights = true;
        const int64_t length[2][queries_count] = {{3, rank == 1 ? 3 : 0}, {2, rank == 1 ? 2 : 5}};
        rapt_tensor *lengths = rank == 1 ? rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){3, 2})
                                         : rapt_from(RAPT_INT64, RAPT_SHAPE(2, queries_count), length);
        rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, queries_count, 12)),
                    *y = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, keys_count, 12));
        expect_shape(rapt_multi_head_attention_forward(m, x, y, y, lengths), RAPT_SHAPE(2, queries_count, 12));
        expect_shape(m->pooling->weights, RAPT_SHAPE(2 * heads, queries_count, keys_count));
        const double *weight = values_of(m->pooling->weights);
        for (int b = 0; b < 2; b++)
            for (int rest = 0; rest < heads * queries_count * keys_count; rest++) {
                int64_t allowed = length[b][rest / keys_count % queries_count];
                double w = weight[b * heads * queries_count * keys_count + rest];
                cr_expect((w > 0) == (rest % keys_count < allowed), "item %d, place %d: %g", b, rest, w);
            }
        rapt_module_free(&m->module);
    }
    expect_no_error();
}

/* All keys are equal: the rows of an item are the same, whatever the lengths. */
Test(multi_head, equal_keys)
{
    RAPT_SCOPE;
    rapt_seed(2);
    rapt_multi_head_attention *m = multi_head(&(config){.hidden = 100, .heads = 5, .dropout = 0.5}, RAPT_FLOAT64);
    rapt_module_train(&m->module, false);
    rapt_tensor *x = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2, 4, 100)),
                *y = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2, 6, 100));
    rapt_tensor *with =
        rapt_multi_head_attention_forward(m, x, y, y, rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){3, 2}));
    expect_shape(with, RAPT_SHAPE(2, 4, 100));
    rapt_tensor *one_row = rapt_expand(rapt_slice(with, 1, 0, 1, 1), RAPT_SHAPE(2, 4, 100));
    expect_values("rows", with, 800, values_of(one_row), 1e-14);
    expect_values("without lengths", rapt_multi_head_attention_forward(m, x, y, y, NULL), 800, values_of(with), 1e-13);
    const double expected = rapt_item(
        rapt_sum(rapt_matmul(rapt_select(m->output->weight, 0, 7), rapt_sum(m->value->weight, RAPT_AXES(1), false)),
                 RAPT_ALL_AXES, false));
    cr_expect_float_eq(rapt_at(with, (int64_t[]){1, 2, 7}), expected, 1e-12, "W_o W_v 1");
    rapt_module_free(&m->module);
    expect_no_error();
}

/* d of the scale is H / h: one head of size 4 against attention without heads. */
Test(multi_head, one_head_is_attention_of_projections)
{
    RAPT_SCOPE;
    rapt_seed(3);
    rapt_multi_head_attention *m =
        multi_head(&(config){.query_size = 3, .key_size = 2, .value_size = 5, .hidden = 4, .heads = 1, .bias = true},
                   RAPT_FLOAT64);
    expect_parameter(m, "W_q.weight", RAPT_SHAPE(4, 3));
    expect_parameter(m, "W_k.weight", RAPT_SHAPE(4, 2));
    expect_parameter(m, "W_v.weight", RAPT_SHAPE(4, 5));
    expect_parameter(m, "W_o.weight", RAPT_SHAPE(4, 4));
    expect_parameter(m, "W_o.bias", RAPT_SHAPE(4));
    rapt_attention *dot = rapt_dot_product_attention_new(0);
    rapt_tensor *q = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 3, 3)), *k = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 4, 2));
    rapt_tensor *v = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 4, 5)),
                *lengths = rapt_from(RAPT_INT32, RAPT_SHAPE(2), (int32_t[]){4, 1});
    rapt_tensor *pooled = rapt_attention_forward(dot, rapt_linear_forward(m->query, q), rapt_linear_forward(m->key, k),
                                                 rapt_linear_forward(m->value, v), lengths);
    rapt_tensor *expected = rapt_linear_forward(m->output, pooled);
    expect_values("one head", rapt_multi_head_attention_forward(m, q, k, v, lengths), 24, values_of(expected), 1e-14);
    rapt_module_free(&m->module);
    rapt_module_free(&dot->module);
    expect_no_error();
}

typedef struct subject {
    rapt_multi_head_attention *m;
    rapt_tensor *lengths;
} subject;

static rapt_tensor *call(rapt_tensor *const *inputs, void *context)
{
    const subject *s = context;
    return rapt_multi_head_attention_forward(s->m, inputs[0], inputs[1], inputs[2], s->lengths);
}

static bool add_parameter(const char *name, rapt_tensor *tensor, void *context)
{
    (void)name;
    rapt_tensor ***next = context;
    *(*next)++ = tensor;
    return true;
}

/* Both kinds of pooling, with lengths (B) and (B, Q), some of them 0, and without; first and second order. */
Test(multi_head, gradcheck)
{
    for (int variant = 0; variant < 12; variant++) {
        RAPT_SCOPE;
        rapt_seed(30);
        bool additive = variant / 6;
        rapt_attention *pooling = additive ? rapt_additive_attention_new(2, 2, 3, 0) : NULL;
        subject s = {
            .m = multi_head(&(config){.hidden = 4, .heads = 2, .bias = !additive, .pooling = pooling}, RAPT_FLOAT64)};
        if (variant / 2 % 3 == 1) s.lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){2, 0});
        if (variant / 2 % 3 == 2) s.lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(2, 2), (int64_t[]){0, 3, 1, 2});
        rapt_tensor *inputs[11], **next = inputs + 3;
        inputs[0] = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 2, 4)));
        for (int i = 1; i < 3; i++) inputs[i] = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 3, 4)));
        rapt_module_visit(&s.m->module, RAPT_PARAMETERS, add_parameter, &next);
        bool second = variant % 2;
        rapt_gradcheck_options options = {.context = &s, .second_order = second, .random_projection = second};
        rapt_gradcheck_result result = rapt_gradcheck(additive ? "additive heads" : "dot product heads", call,
                                                      (int)(next - inputs), inputs, &options);
        cr_expect(result.passed, "variant %d: %s", variant, result.message);
        rapt_module_free(&s.m->module);
    }
    expect_no_error();
}

Test(multi_head, errors)
{
    RAPT_SCOPE;
    const int64_t before = live_bytes();
    const config bad[] = {{.hidden = 10, .heads = 3},
                          {.hidden = 10, .heads = 0},
                          {.hidden = 0, .heads = 2},
                          {.hidden = 10, .heads = -2}};
    for (int i = 0; i < 4; i++) {
        config c = bad[i];
        c.pooling = rapt_additive_attention_new(2, 2, 2, 0);
        cr_expect_null(rapt_multi_head_attention_new(&c), "and its pooling is freed");
        expect_error(RAPT_ERROR_VALUE,
                     i ? "heads" : "hidden size 10 and 3 heads; a multiple of 1 or more heads expected");
    }
    cr_expect_null(rapt_multi_head_attention_new(NULL));
    expect_error(RAPT_ERROR_NULL, "configuration");
    cr_expect_null(rapt_multi_head_attention_new(&(config){.hidden = 4, .heads = 2, .dropout = 2}));
    expect_error(RAPT_ERROR_VALUE, "dropout 2");
    cr_expect_null(rapt_multi_head_attention_new(&(config){.hidden = 4, .heads = 2, .key_size = -1}));
    expect_error(RAPT_ERROR_SHAPE, "-1");
    cr_expect_eq(live_bytes(), before);

    rapt_multi_head_attention *m = multi_head(&(config){.hidden = 4, .heads = 2}, RAPT_FLOAT32);
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 4)), *flat = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(6, 4));
    cr_expect_null(rapt_multi_head_attention_forward(NULL, x, x, x, NULL));
    expect_error(RAPT_ERROR_NULL, "the layer");
    for (int missing = 0; missing < 3; missing++) {
        rapt_tensor *in[] = {x, x, x};
        in[missing] = NULL;
        cr_expect_null(rapt_multi_head_attention_forward(m, in[0], in[1], in[2], NULL));
        expect_error(RAPT_ERROR_NULL, "is NULL");
        in[missing] = flat;
        cr_expect_null(rapt_multi_head_attention_forward(m, in[0], in[1], in[2], NULL));
        expect_error(RAPT_ERROR_SHAPE, "float32 [6, 4]");
        in[missing] = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 5));
        cr_expect_null(rapt_multi_head_attention_forward(m, in[0], in[1], in[2], NULL));
        expect_error(RAPT_ERROR_SHAPE, "[2, 3, 5]");
        in[missing] = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3, 3, 4));
        cr_expect_null(rapt_multi_head_attention_forward(m, in[0], in[1], in[2], NULL));
        expect_error(RAPT_ERROR_SHAPE, "6");
    }
    rapt_tensor *lengths[] = {rapt_ones(RAPT_INT64, RAPT_SHAPE(3)), rapt_ones(RAPT_INT64, RAPT_SHAPE(2, 4)),
                              rapt_ones(RAPT_INT64, RAPT_SHAPE(2, 3, 3)), rapt_ones(RAPT_INT64, 0, NULL)};
    for (int i = 0; i < 4; i++) {
        cr_expect_null(rapt_multi_head_attention_forward(m, x, x, x, lengths[i]));
        expect_error(RAPT_ERROR_SHAPE, "valid lengths (B) or (B, Q)");
    }
    rapt_module_free(&m->module);
}
