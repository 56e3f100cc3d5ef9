/* Multi-head attention: how heads are cut, its definition, its parameters, weights and head mask. */
#include "multi_head_reference.h"

/* A scoring function that keeps what it was asked, so that the split can be seen from outside. */
static rapt_tensor *seen_queries, *seen_keys;

static void forget_seen(void)
{
    rapt_release(seen_queries);
    rapt_release(seen_keys);
    seen_queries = seen_keys = NULL;
}

static rapt_tensor *look(rapt_scoring *scoring, rapt_tensor *queries, rapt_tensor *keys)
{
    (void)scoring;
    forget_seen();
    seen_queries = rapt_retain(rapt_detach(queries));
    seen_keys = rapt_retain(rapt_detach(keys));
    return rapt_matmul(queries, rapt_transpose(keys, -1, -2));
}

static rapt_attention *looking(void)
{
    static const rapt_module_class kind = {.name = "Looking"};
    rapt_scoring *scoring = rapt_module_new(sizeof *scoring, &kind);
    scoring->score = look;
    return rapt_attention_new(scoring, 0);
}

/* out[b][i][t][j] = x[b][t][i·(H / h) + j] */
static void expect_split(rapt_tensor *split, rapt_tensor *x, int heads)
{
    int64_t batch = rapt_size(x, 0), length = rapt_size(x, 1), size = rapt_size(x, 2) / heads;
    expect_shape(split, RAPT_SHAPE(batch, heads, length, size));
    for (int64_t b = 0; b < batch; b++)
        for (int64_t i = 0; i < heads; i++)
            for (int64_t t = 0; t < length; t++)
                for (int64_t j = 0; j < size; j++)
                    cr_assert_eq(rapt_at(split, (int64_t[]){b, i, t, j}), rapt_at(x, (int64_t[]){b, t, i * size + j}));
}

Test(multi_head, heads_are_cut_and_joined_as_the_rule_says)
{
    RAPT_SCOPE;
    rapt_seed(1);
    rapt_multi_head_attention *m = multi_head(&(config){.hidden = 6, .heads = 3, .pooling = looking()}, RAPT_FLOAT64);
    rapt_tensor *eye = rapt_eye(RAPT_FLOAT64, 6), *three[] = {eye, eye, eye};
    cr_assert(rapt_copy(m->in_proj_weight, rapt_concat(3, three, 0)) && rapt_copy(m->out_proj->weight, eye));
    rapt_tensor *queries = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 4, 6)),
                *keys = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 5, 6));
    rapt_tensor *values = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 5, 6));
    cr_assert_not_null(rapt_multi_head_attention_forward(m, queries, keys, values, NULL, NULL));
    expect_split(seen_queries, queries, 3);
    expect_split(seen_keys, keys, 3);
    /* With one key each row of the output is the first value, if joining is the inverse of cutting. */
    rapt_tensor *y =
        rapt_multi_head_attention_forward(m, queries, keys, values,
                                          RAPT_MASK(.valid_lengths = rapt_ones(RAPT_INT64, RAPT_SHAPE(2))), NULL);
    rapt_tensor *first = rapt_contiguous(rapt_expand(rapt_slice(values, 1, 0, 1, 1), RAPT_SHAPE(2, 4, 6)));
    cr_expect(same_bits(rapt_contiguous(y), first));
    forget_seen();
    rapt_module_free(&m->module);
    expect_no_error();
}

/* Where inputs are one tensor, they are projected by one product, of which the heads are views. */
Test(multi_head, one_tensor_is_projected_once)
{
    RAPT_SCOPE;
    rapt_multi_head_attention *m =
        multi_head(&(config){.hidden = 6, .heads = 3, .bias = true, .pooling = looking()}, RAPT_FLOAT32);
    rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, 4, 6)), *same = rapt_clone(x);
    rapt_tensor *self = rapt_multi_head_attention_forward(m, x, x, x, NULL, NULL);
    cr_expect_eq(rapt_stride(seen_queries, 2), 18);
    cr_expect_eq((const float *)rapt_data(seen_keys) - (const float *)rapt_data(seen_queries), 6);
    rapt_tensor *both = rapt_multi_head_attention_forward(m, x, x, same, NULL, NULL);
    cr_expect_eq(rapt_stride(seen_queries, 2), 12);
    cr_expect_eq((const float *)rapt_data(seen_keys) - (const float *)rapt_data(seen_queries), 6);
    rapt_tensor *cross = rapt_multi_head_attention_forward(m, same, x, x, NULL, NULL);
    cr_expect_eq(rapt_stride(seen_queries, 2), 6);
    cr_expect_eq(rapt_stride(seen_keys, 2), 12);
    rapt_tensor *three = rapt_multi_head_attention_forward(m, x, same, rapt_clone(x), NULL, NULL);
    cr_expect_eq(rapt_stride(seen_keys, 2), 6);
    const double *expected = values_of(three);
    expect_values("self", self, 48, expected, 1e-6);
    expect_values("queries and keys", both, 48, expected, 1e-6);
    expect_values("keys and values", cross, 48, expected, 1e-6);
    forget_seen();
    rapt_module_free(&m->module);
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
    rapt_tensor *lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){3, 2});
    rapt_tensor *with = rapt_multi_head_attention_forward(m, x, y, y, RAPT_MASK(.valid_lengths = lengths), NULL);
    expect_shape(with, RAPT_SHAPE(2, 4, 100));
    rapt_tensor *one_row = rapt_expand(rapt_slice(with, 1, 0, 1, 1), RAPT_SHAPE(2, 4, 100));
    expect_values("rows", with, 800, values_of(one_row), 1e-14);
    expect_values("without lengths", rapt_multi_head_attention_forward(m, x, y, y, NULL, NULL), 800, values_of(with),
                  1e-13);
    expect_shape(rapt_multi_head_attention_forward(m, x, x, x, RAPT_MASK(.valid_lengths = lengths), NULL),
                 RAPT_SHAPE(2, 4, 100));
    rapt_tensor *w_v = rapt_slice(m->in_proj_weight, 0, 200, 300, 1);
    const double expected =
        rapt_item(rapt_sum(rapt_matmul(rapt_select(m->out_proj->weight, 0, 7), rapt_sum(w_v, RAPT_AXES(1), false)),
                           RAPT_ALL_AXES, false));
    cr_expect_float_eq(rapt_at(with, (int64_t[]){1, 2, 7}), expected, 1e-12, "W_o W_v 1");
    rapt_module_train(&m->module, true);
    m->pooling->dropout = 1;
    expect_values("all dropped", rapt_multi_head_attention_forward(m, x, y, y, NULL, NULL), 800, (double[800]){0}, 0);
    rapt_module_free(&m->module);
    expect_no_error();
}

/* Sizes of all kinds, biases or none, groups. */
static const config layouts[] = {
    {.hidden = 8, .heads = 1},
    {.hidden = 6, .heads = 2, .bias = true},
    {.hidden = 6, .heads = 6, .bias = true},
    {.hidden = 4, .heads = 2, .query_size = 3, .key_size = 2, .value_size = 5, .bias = true},
    {.hidden = 4, .heads = 2, .key_size = 2, .value_size = 2},
    {.hidden = 4, .heads = 2, .query_size = 7, .key_size = 7, .value_size = 7, .bias = true},
    {.hidden = 4, .heads = 2, .value_hidden = 10, .output_size = 3, .bias = true},
    {.hidden = 12, .heads = 6, .groups = 2, .bias = true},
    {.hidden = 12, .heads = 6, .groups = 3, .value_hidden = 6, .output_size = 5},
    {.hidden = 12, .heads = 4, .groups = 1, .key_size = 5, .bias = true},
    {.hidden = 12, .heads = 4, .groups = 4},
};

static int64_t size_or(int64_t size, int64_t hidden)
{
    return size ? size : hidden;
}

Test(multi_head, is_its_definition)
{
    rapt_seed(3);
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        RAPT_SCOPE;
        const config *c = &layouts[i];
        problem p = {.m = multi_head(c, RAPT_FLOAT64)};
        draw_parameters(p.m);
        p.queries = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 3, size_or(c->query_size, c->hidden)));
        p.keys = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 5, size_or(c->key_size, c->hidden)));
        p.values = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 5, size_or(c->value_size, c->hidden)));
        for (int plain = 0; plain < 2; plain++) {
            char what[32];
            snprintf(what, sizeof what, "layout %zu%s", i, plain ? ", plain" : "");
            p.m->pooling->plain = plain;
            expect_definition(what, &p, NULL);
            problem self = p;
            self.keys = self.values = self.queries;
            if (p.m->in_proj_weight) expect_definition(what, &self, NULL);
        }
        rapt_module_free(&p.m->module);
    }
    expect_no_error();
}

/* Keys in groups are as good as the same weights repeated for every head. */
Test(multi_head, groups_are_repeated_keys)
{
    RAPT_SCOPE;
    rapt_seed(4);
    rapt_multi_head_attention *grouped = multi_head(&(config){.hidden = 12, .heads = 6, .groups = 2}, RAPT_FLOAT64);
    rapt_multi_head_attention *full = multi_head(&(config){.hidden = 12, .heads = 6}, RAPT_FLOAT64);
    expect_parameter(grouped, "in_proj_weight", RAPT_SHAPE(12 + 4 + 4, 12));
    rapt_tensor *pieces[1 + 12];
    pieces[0] = rapt_slice(grouped->in_proj_weight, 0, 0, 12, 1);
    for (int64_t i = 0; i < 12; i++) { /* keys' heads, then values' */
        int64_t start = 12 + 4 * (i / 6) + 2 * (i % 6 / 3);
        pieces[1 + i] = rapt_slice(grouped->in_proj_weight, 0, start, start + 2, 1);
    }
    cr_assert(rapt_copy(full->in_proj_weight, rapt_concat(13, pieces, 0)));
    cr_assert(rapt_copy(full->out_proj->weight, grouped->out_proj->weight));
    rapt_tensor *x = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 5, 12));
    rapt_tensor *expected = rapt_multi_head_attention_forward(full, x, x, x, RAPT_MASK(.causal = true), NULL);
    expect_values("groups", rapt_multi_head_attention_forward(grouped, x, x, x, RAPT_MASK(.causal = true), NULL), 120,
                  values_of(expected), 1e-14);
    rapt_module_free(&grouped->module);
    rapt_module_free(&full->module);
    expect_no_error();
}

/* Any pooling is the heads' f: each head alone, without an axis of heads, gives its part of the result. */
Test(multi_head, additive_heads)
{
    RAPT_SCOPE;
    rapt_seed(5);
    enum { heads = 3, groups = 3 };
    rapt_attention *additive = rapt_additive_attention_new(2, 2, 5, 0);
    rapt_multi_head_attention *m =
        multi_head(&(config){.hidden = 6, .heads = heads, .bias = true, .pooling = additive}, RAPT_FLOAT64);
    draw_parameters(m);
    expect_parameter(m, "attention.w_v.weight", RAPT_SHAPE(1, 5));
    rapt_tensor *x = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 4, 6)), *y = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 7, 6));
    rapt_tensor *lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){7, 3}), *parts[heads];
    const rapt_mask mask = {.valid_lengths = lengths};
    for (int64_t h = 0; h < heads; h++) {
        rapt_tensor *projected[3];
        for (int64_t i = 0; i < 3; i++) {
            int64_t start = 6 * i + 2 * h;
            projected[i] = rapt_affine(i == 0 ? x : y, rapt_slice(m->in_proj_weight, 0, start, start + 2, 1),
                                       rapt_slice(m->in_proj_bias, 0, start, start + 2, 1));
        }
        parts[h] = rapt_attention_forward(additive, projected[0], projected[1], projected[2], &mask);
    }
    rapt_tensor *expected = rapt_linear_forward(m->out_proj, rapt_concat(heads, parts, -1));
    expect_values("additive heads", rapt_multi_head_attention_forward(m, x, y, y, &mask, NULL), 48, values_of(expected),
                  1e-13);
    rapt_module_free(&m->module);
    expect_no_error();
}

/* Names, shapes and initial values as PyTorch's MultiheadAttention has them; or GPT-2's names. */
Test(multi_head, parameters_are_pytorchs)
{
    rapt_seed(6);
    rapt_multi_head_attention *m = rapt_multi_head_attention_new(&(config){.hidden = 100, .heads = 5, .bias = true});
    expect_parameter(m, "in_proj_weight", RAPT_SHAPE(300, 100));
    expect_parameter(m, "in_proj_bias", RAPT_SHAPE(300));
    expect_parameter(m, "out_proj.weight", RAPT_SHAPE(100, 100));
    expect_parameter(m, "out_proj.bias", RAPT_SHAPE(100));
    cr_expect_eq(rapt_module_parameter_count(&m->module), 4 * 100 * 101);
    expect_uniform(m->in_proj_weight, sqrt(6.0 / 400));
    expect_uniform(m->out_proj->weight, 0.1);
    cr_expect_eq(rapt_item(rapt_max(rapt_abs(m->in_proj_bias), RAPT_ALL_AXES, false)), 0);
    cr_expect_eq(rapt_item(rapt_max(rapt_abs(m->out_proj->bias), RAPT_ALL_AXES, false)), 0);
    rapt_module_free(&m->module);

    const config apart = {.hidden = 60, .heads = 5, .query_size = 50, .key_size = 40, .value_size = 30};
    m = rapt_multi_head_attention_new(&apart);
    cr_expect_null(rapt_module_find(&m->module, "in_proj_weight"));
    cr_expect_null(rapt_module_find(&m->module, "in_proj_bias"));
    expect_parameter(m, "q_proj_weight", RAPT_SHAPE(60, 50));
    expect_parameter(m, "k_proj_weight", RAPT_SHAPE(60, 40));
    expect_parameter(m, "v_proj_weight", RAPT_SHAPE(60, 30));
    expect_uniform(m->q_proj_weight, sqrt(6.0 / 110));
    expect_uniform(m->k_proj_weight, sqrt(6.0 / 100));
    expect_uniform(m->v_proj_weight, sqrt(6.0 / 90));
    cr_expect_eq(rapt_module_parameter_count(&m->module), 60 * (50 + 40 + 30 + 60));
    rapt_module_free(&m->module);

    m = rapt_multi_head_attention_new(&(config){.hidden = 8, .heads = 2, .bias = true, .names = RAPT_NAMES_GPT2});
    expect_parameter(m, "c_attn.weight", RAPT_SHAPE(24, 8));
    expect_parameter(m, "c_attn.bias", RAPT_SHAPE(24));
    expect_parameter(m, "c_proj.weight", RAPT_SHAPE(8, 8));
    expect_parameter(m, "c_proj.bias", RAPT_SHAPE(8));
    rapt_module_free(&m->module);
    expect_no_error();
}

static rapt_tensor *output_and_gradients(rapt_multi_head_attention *m, rapt_tensor *x, rapt_tensor **gradients)
{
    rapt_tensor *y = rapt_multi_head_attention_forward(m, x, x, x, RAPT_MASK(.causal = true), NULL);
    rapt_tensor *inputs[] = {x, m->in_proj_weight, m->out_proj->weight}, *root = rapt_sum(y, RAPT_ALL_AXES, false);
    cr_assert(rapt_gradients(1, &root, NULL, 3, inputs, gradients, 0), "%s", rapt_error());
    return y;
}

/* The weights are those of the definition, for each head, and asking for them changes nothing else. */
Test(multi_head, weights_of_each_head)
{
    RAPT_SCOPE;
    rapt_seed(7);
    problem p = {.m = multi_head(&(config){.hidden = 8, .heads = 4, .groups = 2}, RAPT_FLOAT64)};
    p.queries = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 3, 8));
    p.keys = p.values = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 5, 8));
    p.m->pooling->keep_weights = true;
    expect_definition("output", &p, NULL);
    double expected[2 * 4 * 3 * 5];
    free(attend_reference(&p, expected));
    expect_shape(p.m->pooling->weights, RAPT_SHAPE(2, 4, 3, 5));
    expect_values("weights", p.m->pooling->weights, 120, expected, 1e-13);

    rapt_tensor *x = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(3, 70, 8))), *with[3], *without[3];
    rapt_tensor *y = output_and_gradients(p.m, x, with);
    p.m->pooling->keep_weights = false;
    cr_expect(same_bits(y, output_and_gradients(p.m, x, without)));
    for (int i = 0; i < 3; i++) cr_expect(same_bits(with[i], without[i]), "gradient %d", i);
    rapt_module_free(&p.m->module);
    expect_no_error();
}

Test(multi_head, head_mask_prunes_and_tells_importance)
{
    RAPT_SCOPE;
    rapt_seed(8);
    problem p = {.m = multi_head(&(config){.hidden = 6, .heads = 3, .bias = true}, RAPT_FLOAT64)};
    draw_parameters(p.m);
    p.queries = p.keys = p.values = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 4, 6));
    rapt_tensor *all = rapt_multi_head_attention_forward(p.m, p.queries, p.keys, p.values, NULL, NULL);
    {
        RAPT_SCOPE; /* the layer keeps its share */
        cr_expect(rapt_multi_head_attention_set_head_mask(p.m, doubles(RAPT_SHAPE(3), (double[]){1, 0, -0.5})));
    }
    expect_definition("weighed", &p, NULL);
    rapt_tensor *mask = rapt_require_gradient(rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(3)));
    cr_expect(rapt_multi_head_attention_set_head_mask(p.m, mask) && rapt_multi_head_attention_set_head_mask(p.m, mask));
    rapt_tensor *y = rapt_multi_head_attention_forward(p.m, p.queries, p.keys, p.values, NULL, NULL);
    cr_expect(same_bits(y, all));
    cr_expect(rapt_backward(rapt_sum(y, RAPT_ALL_AXES, false)));
    /* y is linear in the mask: the gradient of a head is what it adds to the sum of y. */
    const double *importance = values_of(rapt_gradient(mask));
    for (int h = 0; h < 3; h++) {
        double without[] = {h != 0, h != 1, h != 2};
        cr_expect(rapt_multi_head_attention_set_head_mask(p.m, doubles(RAPT_SHAPE(3), without)));
        rapt_tensor *less = rapt_multi_head_attention_forward(p.m, p.queries, p.keys, p.values, NULL, NULL);
        double lost = rapt_item(rapt_sum(rapt_sub(all, less), RAPT_ALL_AXES, false));
        cr_expect_float_eq(importance[h], lost, 1e-12, "head %d: %g, not %g", h, importance[h], lost);
    }
    cr_expect(rapt_multi_head_attention_set_head_mask(p.m, NULL));
    cr_expect(same_bits(rapt_multi_head_attention_forward(p.m, p.queries, p.keys, p.values, NULL, NULL), all));
    rapt_module_free(&p.m->module);
    expect_no_error();
}

/* Rotary positions turn projected queries and keys, not values. */
/* The mask stays the tensor that it is, whose gradient its owner reads. */
Test(multi_head, head_mask_goes_along_where_the_layer_is_cast)
{
    RAPT_SCOPE;
    rapt_multi_head_attention *m = multi_head(&(config){.hidden = 4, .heads = 2}, RAPT_FLOAT32);
    rapt_tensor *mask = rapt_require_gradient(rapt_from(RAPT_FLOAT32, RAPT_SHAPE(2), (float[]){1, -0.5f}));
    cr_assert(rapt_multi_head_attention_set_head_mask(m, mask));
    rapt_tensor *x = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(1, 3, 4)), *y[2], *sums[2];
    for (int i = 0; i < 2; i++) {
        if (i == 1) cr_assert(rapt_module_cast(&m->module, RAPT_FLOAT64));
        rapt_tensor *of_layer = rapt_cast(x, i ? RAPT_FLOAT64 : RAPT_FLOAT32);
        y[i] = rapt_multi_head_attention_forward(m, of_layer, of_layer, of_layer, NULL, NULL);
        cr_assert_not_null(y[i], "%s", rapt_error());
        cr_assert(rapt_backward(rapt_sum(y[i], RAPT_ALL_AXES, false)), "%s", rapt_error());
        sums[i] = rapt_clone(rapt_gradient(mask));
        rapt_clear_gradient(mask);
    }
    cr_expect_eq((int)rapt_get_dtype(y[1]), RAPT_FLOAT64);
    expect_values("cast", y[1], rapt_count(y[1]), values_of(y[0]), 1e-6);
    expect_values("of the mask", sums[1], 2, values_of(sums[0]), 1e-6);
    rapt_module_free(&m->module);
    expect_no_error();
}

Test(multi_head, rotary_heads)
{
    RAPT_SCOPE;
    rapt_seed(9);
    rapt_multi_head_attention *m =
        multi_head(&(config){.hidden = 8, .heads = 2, .groups = 1, .rotary = rapt_rotary_new()}, RAPT_FLOAT64);
    rapt_tensor *x = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 5, 8)), *packed[3], *pooled[2];
    const rapt_mask mask = {.causal = true, .offset = 2};
    rapt_tensor *queries = rapt_slice(x, 1, 2, 5, 1),
                *y = rapt_multi_head_attention_forward(m, queries, x, x, &mask, NULL);
    cr_assert(rapt_split(rapt_matmul(x, rapt_transpose(m->in_proj_weight, 0, 1)), 2, 3, (int64_t[]){8, 4, 4}, packed));
    rapt_tensor *turned_keys = rapt_rotate(packed[1], 0, 10000, false);
    for (int64_t h = 0; h < 2; h++) {
        rapt_tensor *head = rapt_slice(rapt_slice(packed[0], 2, 4 * h, 4 * h + 4, 1), 1, 2, 5, 1);
        pooled[h] =
            rapt_attention_forward(m->pooling, rapt_rotate(head, 2, 10000, false), turned_keys, packed[2], &mask);
    }
    rapt_tensor *expected = rapt_linear_forward(m->out_proj, rapt_concat(2, pooled, -1));
    expect_values("rotary heads", y, 48, values_of(expected), 1e-13);
    rapt_module_free(&m->module);
    expect_no_error();
}
