/* Multi-head attention under masks: whose lengths are whose, each kind against the definition, and what is never
 * read. */
#include "multi_head_reference.h"

enum { batch = 2, heads = 3, n_queries = 4, n_keys = 6, size = 12 };

static const int64_t item_lengths[batch] = {3, 2}, query_lengths[batch][n_queries] = {{3, 0, 6, 1}, {2, 5, 4, 0}};

/* Item 0's length for its heads, then item 1's: each head sees what its item allows. */
Test(multi_head_masks, lengths_follow_the_item)
{
    for (int rank = 1; rank <= 2; rank++) {
        RAPT_SCOPE;
        rapt_multi_head_attention *m = multi_head(&(config){.hidden = size, .heads = heads}, RAPT_FLOAT32);
        m->pooling->keep_weights = true;
        rapt_tensor *lengths = rank == 1 ? rapt_from(RAPT_INT64, RAPT_SHAPE(batch), item_lengths)
                                         : rapt_from(RAPT_INT64, RAPT_SHAPE(batch, n_queries), query_lengths);
        rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(batch, n_queries, size)),
                    *y = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(batch, n_keys, size));
        expect_shape(rapt_multi_head_attention_forward(m, x, y, y, RAPT_MASK(.valid_lengths = lengths), NULL),
                     RAPT_SHAPE(batch, n_queries, size));
        expect_shape(m->pooling->weights, RAPT_SHAPE(batch, heads, n_queries, n_keys));
        for (int64_t b = 0; b < batch; b++)
            for (int64_t h = 0; h < heads; h++)
                for (int64_t i = 0; i < n_queries; i++)
                    for (int64_t j = 0; j < n_keys; j++) {
                        int64_t allowed = rank == 1 ? item_lengths[b] : query_lengths[b][i];
                        double w = rapt_at(m->pooling->weights, (int64_t[]){b, h, i, j});
                        cr_expect((w > 0) == (j < allowed), "item %d, head %d, query %d, key %d: %g", (int)b, (int)h,
                                  (int)i, (int)j, w);
                    }
        rapt_module_free(&m->module);
    }
    expect_no_error();
}

/* What the masks below say, as functions. */
static bool by_item(int64_t b, int64_t h, int64_t i, int64_t j)
{
    (void)h, (void)i;
    return j < item_lengths[b];
}

static bool by_query(int64_t b, int64_t h, int64_t i, int64_t j)
{
    (void)h;
    return j < query_lengths[b][i];
}

static bool causal(int64_t b, int64_t h, int64_t i, int64_t j)
{
    (void)b, (void)h;
    return j <= i + 2;
}

static bool window(int64_t b, int64_t h, int64_t i, int64_t j)
{
    return causal(b, h, i, j) && i + 2 - j < 3;
}

static bool drawn(int64_t b, int64_t h, int64_t i, int64_t j)
{
    return (7 * b + 5 * h + 3 * i + j) % 4 != 0;
}

static bool drawn_of_item(int64_t b, int64_t h, int64_t i, int64_t j)
{
    (void)h;
    return drawn(b, 0, i, j);
}

static bool drawn_of_head(int64_t b, int64_t h, int64_t i, int64_t j)
{
    (void)b;
    return drawn(0, h, i, j);
}

static bool all_together(int64_t b, int64_t h, int64_t i, int64_t j)
{
    return by_query(b, h, i, j) && window(b, h, i, j) && drawn(b, h, i, j);
}

static double bias_of_head(int64_t b, int64_t h, int64_t i, int64_t j)
{
    (void)b;
    return sin((double)(h + 2 * i + 3 * j));
}

static double alibi(int64_t b, int64_t h, int64_t i, int64_t j)
{
    static const double slopes[heads] = {1.0 / 16, 1.0 / 256, 1.0 / 4};
    (void)b;
    return -slopes[h] * fabs((double)(i + 2 - j));
}

/* A tensor (b, h, queries, keys) of what a function says. */
static rapt_tensor *table_of(bool (*sees)(int64_t, int64_t, int64_t, int64_t), int64_t b, int64_t h)
{
    bool *table = calloc((size_t)(b * h * n_queries * n_keys), sizeof *table);
    for (int64_t at = 0; at < b * h * n_queries * n_keys; at++)
        table[at] =
            sees(at / n_keys / n_queries / h, at / n_keys / n_queries % h, at / n_keys % n_queries, at % n_keys);
    rapt_tensor *tensor = rapt_from(RAPT_BOOL, RAPT_SHAPE(b, h, n_queries, n_keys), table);
    free(table);
    return tensor;
}

static rapt_tensor *head_biases(void)
{
    double table[heads * n_queries * n_keys];
    for (int64_t at = 0; at < heads * n_queries * n_keys; at++)
        table[at] = bias_of_head(0, at / n_keys / n_queries, at / n_keys % n_queries, at % n_keys);
    return doubles(RAPT_SHAPE(1, heads, n_queries, n_keys), table);
}

Test(multi_head_masks, each_kind_is_its_definition)
{
    RAPT_SCOPE;
    rapt_seed(1);
    rapt_alibi *slopes = rapt_alibi_new(heads);
    rapt_tensor *by_position = rapt_alibi_forward(slopes, RAPT_FLOAT64, 8), *seen = table_of(drawn, batch, heads);
    rapt_tensor *lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(batch), item_lengths),
                *longer = rapt_from(RAPT_INT64, RAPT_SHAPE(batch, n_queries), query_lengths);
    const struct {
        const char *name;
        rapt_mask mask;
        bool (*sees)(int64_t, int64_t, int64_t, int64_t);
        double (*bias)(int64_t, int64_t, int64_t, int64_t);
    } kinds[] = {
        {"lengths", {.valid_lengths = lengths}, by_item, NULL},
        {"query lengths", {.valid_lengths = longer}, by_query, NULL},
        {"causal", {.causal = true, .offset = 2}, causal, NULL},
        {"window", {.causal = true, .window = 3, .offset = 2}, window, NULL},
        {"seen", {.seen = seen}, drawn, NULL},
        {"seen by item", {.seen = table_of(drawn, batch, 1)}, drawn_of_item, NULL},
        {"seen by head", {.seen = table_of(drawn, 1, heads)}, drawn_of_head, NULL},
        {"bias", {.bias = head_biases()}, NULL, bias_of_head},
        {"relative bias", {.relative_bias = by_position, .offset = 2}, NULL, alibi},
        {"all",
         {.valid_lengths = longer,
          .causal = true,
          .window = 3,
          .offset = 2,
          .seen = seen,
          .relative_bias = by_position},
         all_together,
         alibi},
    };
    for (int layout = 0; layout < 3; layout++) {
        const config c = {.hidden = size, .heads = heads, .groups = layout ? 1 : 0, .key_size = layout == 2 ? 5 : 0};
        problem p = {.m = multi_head(&c, RAPT_FLOAT64)};
        draw_parameters(p.m);
        p.queries = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(batch, n_queries, size));
        p.values = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(batch, n_keys, size));
        p.keys = layout == 1 ? p.values : rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(batch, n_keys, layout == 2 ? 5 : size));
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            p.sees = kinds[i].sees;
            p.bias = kinds[i].bias;
            expect_definition(kinds[i].name, &p, &kinds[i].mask);
        }
        rapt_module_free(&p.m->module);
    }
    rapt_module_free(&slopes->module);
    expect_no_error();
}

enum { most_inputs = 10 };

typedef struct outcome {
    rapt_tensor *output, *gradients[most_inputs]; /* of queries, keys, values, and the parameters */
    int count;
} outcome;

static outcome run(rapt_multi_head_attention *m, rapt_tensor *queries, rapt_tensor *keys, rapt_tensor *values,
                   const rapt_mask *mask)
{
    outcome o;
    rapt_tensor *inputs[most_inputs] = {queries, keys, values}, **next = inputs + 3;
    append_parameters(m, &next);
    o.count = (int)(next - inputs);
    for (int i = 0; i < 3; i++) rapt_require_gradient(inputs[i]);
    o.output = rapt_multi_head_attention_forward(m, queries, keys, values, mask, NULL);
    rapt_tensor *root = rapt_sum(rapt_mul(o.output, o.output), RAPT_ALL_AXES, false);
    cr_assert(rapt_gradients(1, &root, NULL, o.count, inputs, o.gradients, 0), "%s", rapt_error());
    return o;
}

/* NaN instead of numbers where no query looks: the same bits of all outputs and gradients, those of weights too. */
Test(multi_head_masks, unseen_keys_are_never_read)
{
    rapt_seed(2);
    for (int variant = 0; variant < 16; variant++) {
        RAPT_SCOPE;
        const bool additive = variant & 1, plain = variant & 2, shared = variant & 4, by_table = variant & 8;
        rapt_attention *pooling = additive ? rapt_additive_attention_new(4, 4, 5, 0) : NULL;
        rapt_multi_head_attention *m =
            multi_head(&(config){.hidden = size, .heads = heads, .bias = true, .pooling = pooling}, RAPT_FLOAT32);
        m->pooling->plain = plain;
        rapt_tensor *queries = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(batch, n_queries, size)),
                    *keys = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(batch, n_keys, size)),
                    *values = shared ? keys : rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(batch, n_keys, size));
        rapt_tensor *table = table_of(by_item, batch, 1), *hole = rapt_full(RAPT_FLOAT32, 0, NULL, NAN);
        rapt_mask mask = {.seen = by_table ? table : NULL};
        if (!by_table) mask.valid_lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(batch), item_lengths);
        rapt_tensor *inside = rapt_reshape(rapt_slice(table, 2, 0, 1, 1), RAPT_SHAPE(batch, n_keys, 1));
        rapt_tensor *bad_keys = rapt_where(inside, keys, hole);
        rapt_tensor *bad_values = shared ? bad_keys : rapt_where(inside, values, hole);
        outcome good = run(m, queries, keys, values, &mask);
        outcome bad = run(m, queries, bad_keys, bad_values, &mask);
        cr_expect(same_bits(good.output, bad.output), "variant %d: output", variant);
        for (int i = 0; i < good.count; i++)
            cr_expect(same_bits(rapt_contiguous(good.gradients[i]), rapt_contiguous(bad.gradients[i])),
                      "variant %d: gradient %d", variant, i);
        rapt_module_free(&m->module);
    }
    expect_no_error();
}

/* A query that sees nothing gets the bias of the last projection alone, and no gradient. */
Test(multi_head_masks, empty_rows_give_the_bias)
{
    RAPT_SCOPE;
    rapt_multi_head_attention *m = multi_head(&(config){.hidden = size, .heads = heads, .bias = true}, RAPT_FLOAT64);
    draw_parameters(m);
    rapt_tensor *x = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(1, 2, size)));
    rapt_tensor *lengths = rapt_zeros(RAPT_INT64, RAPT_SHAPE(1));
    rapt_tensor *y = rapt_multi_head_attention_forward(m, x, x, x, RAPT_MASK(.valid_lengths = lengths), NULL);
    for (int64_t i = 0; i < 2; i++)
        expect_values("row", rapt_select(rapt_select(y, 0, 0), 0, i), size, values_of(m->out_proj->bias), 0);
    cr_expect(rapt_backward(rapt_sum(y, RAPT_ALL_AXES, false)));
    cr_expect_eq(rapt_item(rapt_max(rapt_abs(rapt_gradient(x)), RAPT_ALL_AXES, false)), 0);
    cr_expect_eq(rapt_item(rapt_max(rapt_abs(rapt_gradient(m->in_proj_weight)), RAPT_ALL_AXES, false)), 0);
    rapt_tensor *none = rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(2, 0, size)); /* no keys at all, no queries, no items */
    rapt_tensor *two = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2, 1, size));
    y = rapt_multi_head_attention_forward(m, two, none, none, NULL, NULL);
    expect_values("no keys", rapt_select(rapt_select(y, 0, 0), 0, 0), size, values_of(m->out_proj->bias), 0);
    expect_shape(rapt_multi_head_attention_forward(m, none, two, two, NULL, NULL), RAPT_SHAPE(2, 0, size));
    rapt_clear_gradient(m->in_proj_weight);
    rapt_tensor *lost = rapt_full(RAPT_FLOAT64, RAPT_SHAPE(2, 1, size), NAN);
    cr_expect(rapt_backward(
        rapt_sum(rapt_multi_head_attention_forward(m, lost, none, none, NULL, NULL), RAPT_ALL_AXES, false)));
    cr_expect_eq(rapt_item(rapt_max(rapt_abs(rapt_gradient(m->in_proj_weight)), RAPT_ALL_AXES, false)), 0);
    rapt_tensor *nobody = rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(0, 3, size));
    expect_shape(rapt_multi_head_attention_forward(m, nobody, nobody, nobody, RAPT_MASK(.causal = true), NULL),
                 RAPT_SHAPE(0, 3, size));
    rapt_module_free(&m->module);
    expect_no_error();
}

/* By numpy's rules (B, Q, K) would be read as (heads, Q, K), even without a word where there are as many heads as
 * items. */
Test(multi_head_masks, three_axes_are_refused)
{
    RAPT_SCOPE;
    rapt_multi_head_attention *m = multi_head(&(config){.hidden = 4, .heads = 2}, RAPT_FLOAT32);
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 4)), *three = rapt_ones(RAPT_BOOL, RAPT_SHAPE(2, 3, 3));
    rapt_tensor *biases = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 3));
    cr_expect_null(rapt_multi_head_attention_forward(m, x, x, x, RAPT_MASK(.seen = three), NULL));
    expect_error(RAPT_ERROR_SHAPE, "seen has shape [2, 3, 3]; (B, 1, Q, K), (1, heads, Q, K) or (B, heads, Q, K)");
    cr_expect_null(rapt_multi_head_attention_forward(m, x, x, x, RAPT_MASK(.bias = biases), NULL));
    expect_error(RAPT_ERROR_SHAPE, "bias has shape [2, 3, 3]");
    cr_expect_not_null(rapt_multi_head_attention_forward(m, x, x, x,
                                                         RAPT_MASK(.seen = rapt_slice(three, 0, 0, 1, 1),
                                                                   .bias = rapt_select(biases, 0, 0)),
                                                         NULL));
    rapt_tensor *bad = rapt_ones(RAPT_BOOL, RAPT_SHAPE(2, 3, 3, 3));
    cr_expect_null(rapt_multi_head_attention_forward(m, x, x, x, RAPT_MASK(.seen = bad), NULL));
    expect_error(RAPT_ERROR_SHAPE, "[2, 3, 3, 3]");
    rapt_tensor *lengths[] = {rapt_ones(RAPT_INT64, RAPT_SHAPE(3)), rapt_ones(RAPT_INT64, RAPT_SHAPE(2, 4)),
                              rapt_ones(RAPT_INT64, RAPT_SHAPE(2, 3, 3)), rapt_ones(RAPT_INT64, 0, NULL)};
    for (int i = 0; i < 4; i++) {
        cr_expect_null(rapt_multi_head_attention_forward(m, x, x, x, RAPT_MASK(.valid_lengths = lengths[i]), NULL));
        expect_error(RAPT_ERROR_SHAPE, "valid lengths (B) or (B, Q)");
    }
    rapt_module_free(&m->module);
}
