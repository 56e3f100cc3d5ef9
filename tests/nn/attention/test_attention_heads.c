/* Attention with heads and groups of heads, with relative positions, with normalisers and scoring functions of one's
 * own. */
#include "modules.h"

enum { batch = 2, queries = 3, keys = 4, size = 5, value_size = 2 };

static rapt_attention *attention_of(rapt_scoring *scoring)
{
    rapt_attention *attention = in_float64(rapt_attention_new(scoring, 0.25));
    rapt_module_train(&attention->module, false);
    return attention;
}

static rapt_tensor *leaf(int rank, const int64_t *shape)
{
    return rapt_require_gradient(rapt_randn(RAPT_FLOAT64, rank, shape));
}

/* (B, groups, length, size) once for each head: (B, heads, length, size) */
static rapt_tensor *repeat(rapt_tensor *x, int64_t repeats)
{
    int64_t groups = rapt_size(x, 1), length = rapt_size(x, 2), width = rapt_size(x, 3);
    rapt_tensor *each = rapt_expand(rapt_unsqueeze(x, 2), RAPT_SHAPE(batch, groups, repeats, length, width));
    return rapt_reshape(each, RAPT_SHAPE(batch, groups * repeats, length, width));
}

/* A mask of all fields; its bytes and biases differ by head. */
static rapt_mask make_mask(int64_t heads)
{
    rapt_tensor *bytes =
        rapt_less(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(heads, queries, keys)), rapt_scalar(RAPT_FLOAT64, 1));
    return (rapt_mask){.valid_lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(batch), (int64_t[]){4, 3}),
                       .causal = true,
                       .offset = 1,
                       .seen = bytes,
                       .bias = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(heads, 1, keys)),
                       .relative_bias = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(heads, 1, 3))};
}

/* What of the mask is head h's, for scores without heads. */
static rapt_mask mask_of_head(const rapt_mask *mask, int64_t h)
{
    rapt_mask one = *mask;
    one.seen = rapt_select(mask->seen, 0, h);
    one.bias = rapt_select(mask->bias, 0, h);
    one.relative_bias = rapt_select(mask->relative_bias, 0, h);
    return one;
}

static void expect_same(const char *what, rapt_tensor *got, rapt_tensor *expected, double tolerance)
{
    cr_assert(got && expected, "%s: %s", what, rapt_error());
    expect_shape(got, rapt_rank(expected), rapt_shape(expected));
    expect_values(what, got, rapt_count(expected), values_of(expected), tolerance);
}

/* Output, weights and gradients of 4 heads in `groups` against each head alone. */
static void check_heads(rapt_attention *attention, int64_t groups)
{
    enum { heads = 4 };
    RAPT_SCOPE;
    const rapt_mask mask = make_mask(heads);
    rapt_tensor *inputs[] = {leaf(RAPT_SHAPE(batch, heads, queries, size)), leaf(RAPT_SHAPE(batch, groups, keys, size)),
                             leaf(RAPT_SHAPE(batch, groups, keys, value_size))};
    rapt_tensor *k = repeat(inputs[1], heads / groups), *v = repeat(inputs[2], heads / groups);
    rapt_tensor *alone[heads], *weights[heads], *got[3], *expected[3], *roots[2];
    attention->keep_weights = true;
    for (int64_t h = 0; h < heads; h++) {
        const rapt_mask one = mask_of_head(&mask, h);
        alone[h] = rapt_attention_forward(attention, rapt_select(inputs[0], 1, h), rapt_select(k, 1, h),
                                          rapt_select(v, 1, h), &one);
        cr_assert_not_null(alone[h], "%s", rapt_error());
        weights[h] = rapt_detach(attention->weights);
    }
    roots[0] = rapt_attention_forward(attention, inputs[0], inputs[1], inputs[2], &mask);
    roots[1] = rapt_stack(heads, alone, 1);
    expect_same("output", roots[0], roots[1], 1e-13);
    expect_same("weights", attention->weights, rapt_stack(heads, weights, 1), 1e-13);
    for (int i = 0; i < 2; i++) {
        rapt_tensor *cotangent = rapt_sin(rapt_detach(roots[1]));
        cr_assert(rapt_gradients(1, &roots[i], &cotangent, 3, inputs, i ? expected : got, 0), "%s", rapt_error());
    }
    for (int i = 0; i < 3; i++) expect_same("gradient", got[i], expected[i], 1e-12);
}

Test(attention_heads, each_head_reads_its_group)
{
    rapt_normalizer *const normalizers[] = {rapt_masked_softmax, rapt_masked_sum,     rapt_masked_none,
                                            rapt_masked_hard,    rapt_masked_uniform, rapt_masked_sparsemax,
                                            rapt_masked_entmax15};
    rapt_seed(40);
    for (int trial = 0; trial < 2 * 2 * 7 * 3; trial++) {
        rapt_attention *attention =
            attention_of(trial & 1 ? rapt_scaled_dot_product_scoring_new() : rapt_additive_scoring_new(size, size, 6));
        attention->plain = trial & 2;
        attention->normalizer = normalizers[trial / 4 % 7];
        check_heads(attention, (int64_t[]){1, 2, 4}[trial / 28]);
        rapt_module_free(&attention->module);
    }
    expect_no_error();
}

/* Weights that are kept, and a graph that is recorded, change no bit; the plain way is the fused one's definition. */
Test(attention_heads, ways_agree)
{
    for (int trial = 0; trial < 8; trial++) {
        RAPT_SCOPE;
        rapt_seed(41);
        rapt_attention *attention =
            attention_of(trial & 1 ? rapt_scaled_dot_product_scoring_new() : rapt_additive_scoring_new(size, size, 6));
        const bool heads = trial & 2;
        rapt_module_train(&attention->module, trial & 4);
        rapt_mask mask = make_mask(heads ? 4 : 1);
        rapt_tensor *inputs[3] = {leaf(RAPT_SHAPE(batch, 4, queries, size)), leaf(RAPT_SHAPE(batch, 2, keys, size)),
                                  leaf(RAPT_SHAPE(batch, 2, keys, value_size))};
        for (int i = 0; i < 3 && !heads; i++)
            inputs[i] = rapt_require_gradient(rapt_detach(rapt_select(inputs[i], 1, 0)));
        rapt_tensor *y[4], *gradients[4][3], *weights[4];
        for (int way = 0; way < 4; way++) {
            attention->plain = way & 2;
            attention->keep_weights = way & 1;
            rapt_seed(42); /* the same dropout */
            y[way] = rapt_attention_forward(attention, inputs[0], inputs[1], inputs[2], &mask);
            cr_assert_not_null(y[way], "%s", rapt_error());
            weights[way] = attention->weights ? rapt_clone(attention->weights) : NULL;
            rapt_tensor *cotangent = rapt_sin(rapt_detach(y[0]));
            cr_assert(rapt_gradients(1, &y[way], &cotangent, 3, inputs, gradients[way], 0), "%s", rapt_error());
        }
        expect_same("output", y[0], y[2], 1e-13);
        expect_same("weights", weights[1], weights[3], 1e-13);
        for (int i = 0; i < 3; i++) {
            expect_same("gradient", gradients[0][i], gradients[2][i], 1e-12);
            cr_expect(same_bits(gradients[0][i], gradients[1][i]) && same_bits(gradients[2][i], gradients[3][i]));
        }
        cr_expect(same_bits(y[0], y[1]) && same_bits(y[2], y[3]), "trial %d", trial);
        RAPT_NO_GRADIENT;
        attention->plain = attention->keep_weights = false;
        rapt_seed(42);
        cr_expect(same_bits(y[0], rapt_attention_forward(attention, inputs[0], inputs[1], inputs[2], &mask)));
        rapt_module_free(&attention->module);
    }
    expect_no_error();
}

/* A scoring function of one's own whose scores and values depend on relative positions as well. */
static rapt_tensor *score(rapt_scoring *scoring, rapt_tensor *q, rapt_tensor *k)
{
    (void)scoring;
    return rapt_matmul(q, rapt_transpose(k, -2, -1));
}

/* (…, Q, 5): the first 5 numbers of the query */
static rapt_tensor *relative_bias(rapt_scoring *scoring, rapt_tensor *q)
{
    (void)scoring;
    return rapt_slice(q, -1, 0, 5, 1);
}

static rapt_tensor *bad_score(rapt_scoring *scoring, rapt_tensor *q, rapt_tensor *k)
{
    return rapt_transpose(score(scoring, q, k), -2, -1);
}

static rapt_scoring *own_scoring(void)
{
    static const rapt_module_class kind = {.name = "Own"};
    rapt_scoring *scoring = rapt_module_new(sizeof *scoring, &kind);
    cr_assert_not_null(scoring);
    scoring->score = score;
    scoring->relative_bias = relative_bias;
    return scoring;
}

static int64_t clamped(int64_t position, int64_t reach)
{
    return position < -reach ? 0 : position > reach ? 2 * reach : reach + position;
}

/* Scores qᵀk + q[j − i] + the mask's own bias, which reaches less far; values plus a row for j − i. */
Test(attention_heads, relative_positions_by_the_definition)
{
    enum { offset = 2 };
    RAPT_SCOPE;
    rapt_seed(43);
    rapt_attention *attention = attention_of(own_scoring());
    rapt_tensor *table = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(5, value_size)),
                *bias = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(3));
    attention->scoring->relative_values = table;
    rapt_tensor *q = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(1, queries, size)),
                *k = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(1, keys, size)),
                *v = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(1, keys, value_size));
    rapt_tensor *y = rapt_attention_forward(attention, q, k, v, RAPT_MASK(.relative_bias = bias, .offset = offset));
    const double *of_query = values_of(q), *of_key = values_of(k), *value = values_of(v), *row = values_of(table),
                 *of_position = values_of(bias);
    double expected[queries * value_size] = {0};
    for (int i = 0; i < queries; i++) {
        double scores[keys], total = 0;
        for (int j = 0; j < keys; j++) {
            scores[j] = of_query[i * size + clamped(j - i - offset, 2)] + of_position[clamped(j - i - offset, 1)];
            for (int c = 0; c < size; c++) scores[j] += of_query[i * size + c] * of_key[j * size + c];
            total += exp(scores[j]);
        }
        for (int j = 0; j < keys; j++)
            for (int c = 0; c < value_size; c++)
                expected[i * value_size + c] +=
                    exp(scores[j]) / total *
                    (value[j * value_size + c] + row[clamped(j - i - offset, 2) * value_size + c]);
    }
    expect_values("pooled", y, queries * value_size, expected, 1e-13);
    rapt_tensor *scores = rapt_score(attention->scoring, q, k);
    for (int i = 0; i < queries * keys; i++) {
        double sum = of_query[i / keys * size + clamped(i % keys - i / keys, 2)];
        for (int c = 0; c < size; c++) sum += of_query[i / keys * size + c] * of_key[i % keys * size + c];
        cr_expect(fabs(values_of(scores)[i] - sum) < 1e-13);
    }
    rapt_module_free(&attention->module);
    expect_no_error();
}

static rapt_tensor *largest_two(rapt_tensor *scores, const rapt_mask *mask)
{
    rapt_tensor *first = rapt_masked_hard(scores, mask);
    rapt_tensor *rest =
        rapt_logical_and(rapt_mask_seen(mask, scores), rapt_less(first, rapt_scalar(RAPT_FLOAT64, 0.5)));
    return rapt_mul_scalar(rapt_add(first, rapt_masked_hard(scores, RAPT_MASK(.seen = rest))), 0.5);
}

Test(attention_heads, a_normaliser_of_ones_own)
{
    RAPT_SCOPE;
    rapt_attention *attention = attention_of(rapt_dot_product_scoring_new());
    attention->normalizer = largest_two;
    rapt_tensor *q = doubles(RAPT_SHAPE(1, 1, 1), (double[]){1}),
                *k = doubles(RAPT_SHAPE(1, 4, 1), (double[]){3, 1, 2, 9}),
                *v = doubles(RAPT_SHAPE(1, 4, 1), (double[]){10, 20, 40, (double)NAN});
    rapt_tensor *three = rapt_full(RAPT_INT64, RAPT_SHAPE(1), 3);
    expect_values("the mean of two", rapt_attention_forward(attention, q, k, v, RAPT_MASK(.valid_lengths = three)), 1,
                  (double[]){25}, 0);
    rapt_module_free(&attention->module);
    expect_no_error();
}

Test(attention_heads, errors)
{
    RAPT_SCOPE;
    rapt_attention *attention = attention_of(own_scoring());
    rapt_tensor *q = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2, 4, 3, 5)),
                *k = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2, 2, 6, 5)),
                *three = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2, 3, 6, 5)),
                *none = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2, 0, 6, 5)),
                *flat = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2, 6, 5)),
                *few = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(1, 2, 6, 5));
    cr_expect_null(rapt_attention_forward(attention, q, three, three, NULL));
    expect_error(RAPT_ERROR_SHAPE, "queries [2, 4, 3, 5], keys [2, 3, 6, 5] and values [2, 3, 6, 5]");
    cr_expect_null(rapt_attention_forward(attention, q, none, none, NULL));
    expect_error(RAPT_ERROR_SHAPE, "keys [2, 0, 6, 5]");
    cr_expect_null(rapt_attention_forward(attention, q, few, few, NULL));
    expect_error(RAPT_ERROR_SHAPE, "one batch size");
    cr_expect_null(rapt_attention_forward(attention, q, k, three, NULL));
    expect_error(RAPT_ERROR_SHAPE, "values [2, 3, 6, 5]");
    cr_expect_null(rapt_attention_forward(attention, q, flat, k, NULL));
    expect_error(RAPT_ERROR_SHAPE, "keys of shape (B, heads, length, size) expected, not float64 [2, 6, 5]");
    cr_expect_null(rapt_attention_forward(attention, flat, flat, flat, RAPT_MASK(.window = -1)));
    expect_error(RAPT_ERROR_VALUE, "Attention: the mask's window");
    cr_expect_null(
        rapt_attention_prepare(attention, flat, RAPT_MASK(.valid_lengths = rapt_ones(RAPT_INT64, RAPT_SHAPE(3)))));
    expect_error(RAPT_ERROR_SHAPE, "Attention: valid lengths");
    attention->scoring->score = bad_score;
    cr_expect_null(rapt_attention_forward(attention, rapt_select(q, 1, 0), flat, flat, NULL));
    expect_error(RAPT_ERROR_SHAPE, "scores [2, 3, 6] expected of the scoring function Own, not [2, 6, 3]");
    attention->scoring->score = NULL;
    cr_expect_null(rapt_attention_forward(attention, q, k, k, NULL));
    expect_error(RAPT_ERROR_NULL, "the scoring function's score");
    cr_expect_null(rapt_score(attention->scoring, q, k));
    expect_error(RAPT_ERROR_NULL, "score");
    attention->scoring->score = score;
    attention->normalizer = NULL;
    cr_expect_null(rapt_attention_forward(attention, q, k, k, NULL));
    expect_error(RAPT_ERROR_NULL, "the normaliser is NULL");
    cr_expect_null(rapt_score(NULL, q, k));
    expect_error(RAPT_ERROR_NULL, "the scoring function");
    cr_expect_null(rapt_score(attention->scoring, q, NULL));
    expect_error(RAPT_ERROR_NULL, "keys");
    cr_expect_null(rapt_score(attention->scoring, rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(5)), k));
    expect_error(RAPT_ERROR_SHAPE, "rank 1");
    rapt_module_free(&attention->module);
}
