/* Rows: scoring functions and score modifications, by themselves and in attention, against their formulas and the plain
 * way. */
#include <math.h>

#include "masks.h"

#define SCORING(id, expression)                                                                                        \
    static void *make_##id(const op_sample *s)                                                                         \
    {                                                                                                                  \
        rapt_scoring *scoring = expression;                                                                            \
        return s->variant == scores_alone ? (void *)scoring : rapt_attention_new(scoring, 0.25);                       \
    }
SCORING(dot_product_scoring, rapt_dot_product_scoring_new())
SCORING(scaled_dot_product_scoring, rapt_scaled_dot_product_scoring_new())
SCORING(padded_dot_product_scoring, rapt_padded_dot_product_scoring_new())
SCORING(bilinear_scoring, rapt_bilinear_scoring_new(3, 2))
SCORING(additive_scoring, rapt_additive_scoring_new(3, 2, 4))
SCORING(cosine_scoring, rapt_cosine_scoring_new(1, true))
SCORING(gaussian_scoring, rapt_gaussian_scoring_new(1, true))
SCORING(relative_scoring, rapt_relative_scoring_new(3, 2, 1))
SCORING(regression_kernel_scoring, rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_GAUSSIAN, 2, true))

/* in: queries, keys; values and lengths in attention */
static rapt_tensor *call_scoring(void *m, rapt_tensor *const *in, const op_sample *s)
{
    if (s->variant == scores_alone) return rapt_score(m, in[0], in[1]);
    const rapt_mask mask = mask_of(s->variant, in[0], in[1], in[3]);
    return rapt_attention_forward(m, in[0], in[1], in[2], &mask);
}

static rapt_tensor *transposed_last(rapt_tensor *x)
{
    return rapt_transpose(x, -1, -2);
}

static rapt_tensor *products(rapt_tensor *queries, rapt_tensor *keys)
{
    return rapt_matmul(queries, transposed_last(keys));
}

static rapt_tensor *root_of(rapt_tensor *squares)
{
    return rapt_sqrt(rapt_sum(rapt_mul(squares, squares), RAPT_AXES(-1), true));
}

static rapt_tensor *cosines(void *m, rapt_tensor *queries, rapt_tensor *keys)
{
    rapt_tensor *sizes = products(root_of(queries), root_of(keys));
    return rapt_div(rapt_div(products(queries, keys), sizes), rapt_module_find(m, "temperature"));
}

/* −½ ‖q − k‖² / width² */
static rapt_tensor *log_of_gaussian(void *m, rapt_tensor *queries, rapt_tensor *keys)
{
    rapt_tensor *width = rapt_module_find(m, "width"),
                *apart = rapt_sub(rapt_unsqueeze(queries, 2), rapt_unsqueeze(keys, 1));
    rapt_tensor *squares = rapt_sum(rapt_mul(apart, apart), RAPT_AXES(-1), false);
    return rapt_mul_scalar(rapt_div(squares, rapt_mul(width, width)), -0.5);
}

static rapt_tensor *additive(void *m, rapt_tensor *queries, rapt_tensor *keys)
{
    rapt_tensor *q = products(queries, rapt_unsqueeze(rapt_module_find(m, "W_q.weight"), 0)),
                *k = products(keys, rapt_unsqueeze(rapt_module_find(m, "W_k.weight"), 0));
    rapt_tensor *sums = rapt_tanh(rapt_add(rapt_unsqueeze(q, 2), rapt_unsqueeze(k, 1)));
    return rapt_sum(rapt_mul(sums, rapt_module_find(m, "w_v.weight")), RAPT_AXES(-1), false);
}

/* (qᵀk + qᵀr) / √3 with r for the relative position, clamped to ±1 */
static rapt_tensor *relative(void *m, rapt_tensor *queries, rapt_tensor *keys)
{
    rapt_tensor *by_query = products(queries, rapt_unsqueeze(rapt_module_find(m, "key_table"), 0));
    rapt_tensor *by_place = rapt_by_relative_position(by_query, rapt_size(queries, 1), rapt_size(keys, 1), 0, true);
    return rapt_mul_scalar(rapt_add(products(queries, keys), by_place), 1 / sqrt(3));
}

/* The formula of scores alone; else attention the plain way. */
#define DEFINITION(id, expression)                                                                                     \
    static rapt_tensor *id##_by_formula(void *m, rapt_tensor *const *in, const op_sample *s)                           \
    {                                                                                                                  \
        if (s->variant == scores_alone) return expression;                                                             \
        ((rapt_attention *)m)->plain = true;                                                                           \
        rapt_tensor *y = call_scoring(m, in, s);                                                                       \
        ((rapt_attention *)m)->plain = false;                                                                          \
        return y;                                                                                                      \
    }
DEFINITION(dot_product_scoring, products(in[0], in[1]))
DEFINITION(scaled_dot_product_scoring, rapt_mul_scalar(products(in[0], in[1]), 1 / sqrt(3)))
DEFINITION(padded_dot_product_scoring, rapt_mul_scalar(products(in[0], rapt_pad(in[1], -1, 0, 1, 0)), 1 / sqrt(3)))
DEFINITION(bilinear_scoring, products(rapt_matmul(in[0], rapt_module_find(m, "M")), in[1]))
DEFINITION(additive_scoring, additive(m, in[0], in[1]))
DEFINITION(cosine_scoring, cosines(m, in[0], in[1]))
DEFINITION(gaussian_scoring, log_of_gaussian(m, in[0], in[1]))
DEFINITION(relative_scoring, relative(m, in[0], in[1]))
DEFINITION(regression_kernel_scoring, rapt_exp(log_of_gaussian(m, in[0], in[1])))

#define SAMPLES_OF(name, q, k)                                                                                         \
    static const op_sample name[] = {                                                                                  \
        {.in = {SHAPE(2, 2, q), SHAPE(2, 3, k)}, .variant = scores_alone},                                             \
        {.in = {SHAPE(1, 1, q), SHAPE(1, 1, k)}, .variant = scores_alone},                                             \
        {.in = {SHAPE(0, 2, q), SHAPE(0, 3, k)}, .variant = scores_alone},                                             \
        {.in = {SHAPE(2, 2, q), SHAPE(2, 3, k), SHAPE(2, 3, 2), ABSENT}},                                              \
        {.in = {SHAPE(1, 3, q), SHAPE(1, 4, k), SHAPE(1, 4, 2), ABSENT}, .variant = causal},                           \
        {.in = {SHAPE(2, 2, q), SHAPE(2, 3, k), SHAPE(2, 3, 2), SHAPE(2)}, .limit = 3, .variant = by_lengths},         \
        {.in = {SHAPE(2, 67, q), SHAPE(2, 131, k), SHAPE(2, 131, 2), ABSENT}, .variant = causal, .large = true},       \
    };
SAMPLES_OF(of_one_size, 3, 3)
SAMPLES_OF(of_two_sizes, 3, 2)

#define ROW(id, sample_array)                                                                                          \
    .row = {.name = #id, .domain = {[3] = length64}, .differentiable = 7, .optional = 8, SAMPLES(sample_array)},       \
    .make = make_##id, .call = call_scoring, .definition = id##_by_formula, .kind = "scoring"

/* --- modifications --- */

static void *attention_with(rapt_score_modification *modification, const op_sample *s)
{
    if (s->variant == scores_alone) return modification;
    rapt_attention *attention = rapt_dot_product_attention_new(0.25);
    rapt_attention_modify(attention, "change", modification);
    return attention;
}

LAYER_MAKE(soft_cap, attention_with(rapt_soft_cap_new(2), s))
LAYER_MAKE(head_temperature, attention_with(rapt_head_temperature_new(2), s))
LAYER_MAKE(alibi_modification, attention_with(rapt_alibi_modification_new(2), s))
LAYER_MAKE(bucketed_bias, attention_with(rapt_bucketed_bias_new(2, 4, 20, true), s))
LAYER_MAKE(learned_bias, attention_with(rapt_learned_bias_new(2, 1), s))
LAYER_MAKE(gaussian_window, attention_with(rapt_gaussian_window_new(2, 3, true), s))

static void *make_prefix_modification(const op_sample *s)
{
    return attention_with(rapt_prefix_modification_new(rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){2, 1})), s);
}

/* in: scores; or queries, keys, values and lengths, with heads */
static rapt_tensor *call_modification(void *m, rapt_tensor *const *in, const op_sample *s)
{
    return s->variant == scores_alone ? rapt_modify_scores(m, in[0], 1) : call_scoring(m, in, s);
}

/* Scores alone are the plain way already. */
static rapt_tensor *modification_by_definition(void *m, rapt_tensor *const *in, const op_sample *s)
{
    if (s->variant == scores_alone) return call_modification(m, in, s);
    ((rapt_attention *)m)->plain = true;
    rapt_tensor *y = call_modification(m, in, s);
    ((rapt_attention *)m)->plain = false;
    return y;
}

static const op_sample with_heads[] = {
    {.in = {SHAPE(2, 2, 2, 3)}, .variant = scores_alone},
    {.in = {SHAPE(2, 2, 1, 5)}, .variant = scores_alone},
    {.in = {SHAPE(2, 2, 2, 3), SHAPE(2, 1, 4, 3), SHAPE(2, 1, 4, 2), ABSENT}},
    {.in = {SHAPE(2, 2, 2, 2), SHAPE(2, 2, 3, 2), SHAPE(2, 2, 3, 1), SHAPE(2)}, .limit = 3, .variant = by_lengths},
    {.in = {SHAPE(2, 2, 3, 2), SHAPE(2, 2, 3, 2), SHAPE(2, 2, 3, 2), ABSENT}, .variant = in_window},
    {.in = {SHAPE(2, 2, 67, 3), SHAPE(2, 2, 131, 3), SHAPE(2, 2, 131, 2), ABSENT}, .large = true},
};
/* Alone it would give −∞. */
static const op_sample in_attention[] = {
    {.in = {SHAPE(2, 2, 3, 2), SHAPE(2, 2, 3, 2), SHAPE(2, 2, 3, 2), ABSENT}},
    {.in = {SHAPE(2, 2, 2, 3), SHAPE(2, 1, 4, 3), SHAPE(2, 1, 4, 2), ABSENT}},
    {.in = {SHAPE(2, 2, 2, 2), SHAPE(2, 2, 3, 2), SHAPE(2, 2, 3, 1), SHAPE(2)}, .limit = 3, .variant = by_lengths},
    {.in = {SHAPE(2, 2, 67, 3), SHAPE(2, 2, 131, 3), SHAPE(2, 2, 131, 2), ABSENT}, .large = true},
};

#define MODIFICATION(id, sample_array)                                                                                 \
    .row = {.name = #id, .domain = {[3] = length64}, .differentiable = 7, .optional = 8, SAMPLES(sample_array)},       \
    .make = make_##id, .call = call_modification, .definition = modification_by_definition, .kind = "modification"

static const layer_row rows[] = {
    {ROW(dot_product_scoring, of_one_size)},
    {ROW(scaled_dot_product_scoring, of_one_size)},
    {ROW(padded_dot_product_scoring, of_two_sizes)},
    {ROW(bilinear_scoring, of_two_sizes)},
    {ROW(additive_scoring, of_two_sizes)},
    {ROW(cosine_scoring, of_one_size)},
    {ROW(gaussian_scoring, of_one_size)},
    {ROW(relative_scoring, of_one_size)},
    {ROW(regression_kernel_scoring, of_one_size)},
    {MODIFICATION(soft_cap, with_heads)},
    {MODIFICATION(head_temperature, with_heads)},
    {MODIFICATION(alibi_modification, with_heads)},
    {MODIFICATION(bucketed_bias, with_heads)},
    {MODIFICATION(learned_bias, with_heads)},
    {MODIFICATION(gaussian_window, with_heads)},
    {MODIFICATION(prefix_modification, in_attention)},
};

LAYER_FAMILY(layers_scoring, rows);
