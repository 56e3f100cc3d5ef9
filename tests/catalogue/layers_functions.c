/* Rows: positions, and normalisers, which have no module. */
#include <math.h>

#include "masks.h"

LAYER_MAKE(sinusoidal_positions, rapt_sinusoidal_positions_new(4, 0.25))
LAYER_MAKE(learned_positions, rapt_learned_positions_new(9, 4, 0.25))
LAYER_MAKE(rotary, rapt_rotary_new())
LAYER_MAKE(alibi, rapt_alibi_new(2))
LAYER_MAKE(relative_bias, rapt_relative_bias_new(2, 2))

/* Where variant is 1: places 0, 2, 4, …; else they count from 1 on. */
static rapt_tensor *places_of(rapt_tensor *x)
{
    return rapt_arange(RAPT_INT64, 0, 2 * (double)rapt_size(x, -2), 2);
}

#define POSITIONS(name)                                                                                                \
    LAYER_FUNCTION(call_##name, s->variant ? rapt_##name##_forward_at(m, in[0], places_of(in[0]))                      \
                                           : rapt_##name##_forward(m, in[0], 1))
POSITIONS(sinusoidal_positions)
POSITIONS(learned_positions)
POSITIONS(rotary)

/* As biases of scores. */
static rapt_tensor *add_relative(rapt_tensor *scores, rapt_tensor *table)
{
    return rapt_mask_add_biases(RAPT_MASK(.relative_bias = table, .offset = 1), scores);
}

LAYER_FUNCTION(call_alibi, add_relative(in[0], rapt_alibi_forward(m, rapt_get_dtype(in[0]), 2)))
LAYER_FUNCTION(call_relative_bias, add_relative(in[0], rapt_relative_bias_forward(m)))

/* x plus the rows at its places, dropped likewise. */
static rapt_tensor *plus_rows(void *m, rapt_tensor *x, rapt_tensor *table, const op_sample *s)
{
    rapt_tensor *places = s->variant ? places_of(x) : rapt_arange(RAPT_INT64, 1, 1 + (double)rapt_size(x, -2), 1);
    rapt_tensor *sum = rapt_add(x, rapt_embed(table, places));
    return ((rapt_module *)m)->training ? rapt_drop(sum, 0.25) : sum;
}

LAYER_FUNCTION(sinusoidal_positions_by_table, plus_rows(m, in[0], rapt_sinusoidal(rapt_get_dtype(in[0]), 0, 9, 4), s))
LAYER_FUNCTION(learned_positions_by_table, plus_rows(m, in[0], ((rapt_learned_positions *)m)->weight, s))

/* The pairs (2j, 2j + 1), a and b, by angles: a cos − b sin, a sin + b cos */
static rapt_tensor *rotary_by_formula(void *m, rapt_tensor *const *in, const op_sample *s)
{
    (void)m;
    rapt_tensor *x = in[0], *y[4];
    const int64_t count = rapt_size(x, -2);
    double cosines[2][16], sines[2][16];
    for (int64_t i = 0; i < count; i++)
        for (int pair = 0; pair < 2; pair++) {
            const double place = s->variant ? 2 * (double)i : 1 + (double)i;
            cosines[pair][i] = cos(place / pow(10000, pair / 2.0));
            sines[pair][i] = sin(place / pow(10000, pair / 2.0));
        }
    for (int pair = 0; pair < 2; pair++) {
        rapt_tensor *a = rapt_select(x, -1, 2 * pair), *b = rapt_select(x, -1, 2 * pair + 1);
        rapt_tensor *c = rapt_cast(rapt_from(RAPT_FLOAT64, RAPT_SHAPE(count), cosines[pair]), rapt_get_dtype(x)),
                    *d = rapt_cast(rapt_from(RAPT_FLOAT64, RAPT_SHAPE(count), sines[pair]), rapt_get_dtype(x));
        y[2 * pair] = rapt_sub(rapt_mul(a, c), rapt_mul(b, d));
        y[2 * pair + 1] = rapt_add(rapt_mul(a, d), rapt_mul(b, c));
    }
    return rapt_stack(4, y, -1);
}

/* Scores of two heads: plus the table by places. */
static rapt_tensor *by_places(rapt_tensor *scores, rapt_tensor *table)
{
    return rapt_add(scores, rapt_by_relative_position(table, rapt_size(scores, 2), rapt_size(scores, 3), 1, false));
}

static rapt_tensor *alibi_by_formula(void *m, rapt_tensor *const *in, const op_sample *s)
{
    (void)m, (void)s;
    const double a = 0x1p-4, b = 0x1p-8;
    rapt_tensor *slopes =
        rapt_from(RAPT_FLOAT64, RAPT_SHAPE(2, 5), (double[]){-2 * a, -a, 0, -a, -2 * a, -2 * b, -b, 0, -b, -2 * b});
    return by_places(in[0], rapt_cast(slopes, rapt_get_dtype(in[0])));
}

LAYER_FUNCTION(relative_bias_by_formula, by_places(in[0], ((rapt_relative_bias *)m)->weight))

/* --- normalisers: scores, and lengths or NULL --- */

#define NORMALIZER(name)                                                                                               \
    static rapt_tensor *call_##name(void *m, rapt_tensor *const *in, const op_sample *s)                               \
    {                                                                                                                  \
        const rapt_mask mask = mask_of(s->variant, in[0], in[0], in[1]);                                               \
        (void)m;                                                                                                       \
        return rapt_##name(in[0], &mask);                                                                              \
    }
NORMALIZER(masked_softmax)
NORMALIZER(masked_sigmoid)
NORMALIZER(masked_sum)
NORMALIZER(masked_none)
NORMALIZER(masked_hard)
NORMALIZER(masked_uniform)

/* 1 where a key is seen, else 0 */
static rapt_tensor *seen_of(rapt_tensor *const *in, const op_sample *s)
{
    const rapt_mask mask = mask_of(s->variant, in[0], in[0], in[1]);
    return rapt_cast(rapt_expand(rapt_mask_seen(&mask, in[0]), rapt_rank(in[0]), rapt_shape(in[0])),
                     rapt_get_dtype(in[0]));
}

/* Those whose samples would lie at kinks. */
static rapt_tensor *off_kinks(rapt_tensor *x)
{
    return rapt_mul_scalar(x, 0.83984375);
}

#define SPARSE(name)                                                                                                   \
    static rapt_tensor *call_masked_##name(void *m, rapt_tensor *const *in, const op_sample *s)                        \
    {                                                                                                                  \
        const rapt_mask mask = mask_of(s->variant, in[0], in[0], in[1]);                                               \
        (void)m;                                                                                                       \
        return rapt_masked_##name(off_kinks(in[0]), &mask);                                                            \
    }                                                                                                                  \
    static rapt_tensor *name##_by_op(void *m, rapt_tensor *const *in, const op_sample *s)                              \
    {                                                                                                                  \
        rapt_tensor *hidden = rapt_equal_scalar(seen_of(in, s), 0);                                                    \
        (void)m;                                                                                                       \
        return rapt_masked_fill(rapt_##name(rapt_masked_fill(off_kinks(in[0]), hidden, -50), -1), hidden, 0);          \
    }

SPARSE(sparsemax)
SPARSE(entmax15)

/* With a number for each head, in[2]. */
#define WITH_TERMS(name)                                                                                               \
    static rapt_tensor *call_##name(void *m, rapt_tensor *const *in, const op_sample *s)                               \
    {                                                                                                                  \
        const rapt_mask mask = mask_of(s->variant, in[0], in[0], in[1]);                                               \
        (void)m;                                                                                                       \
        return rapt_##name(in[0], &mask, in[2]);                                                                       \
    }
WITH_TERMS(masked_softmax_with_sinks)
WITH_TERMS(masked_sigmoid_with_biases)

static rapt_tensor *shares_of(rapt_tensor *weights, rapt_tensor *more)
{
    rapt_tensor *sum = rapt_sum(weights, RAPT_AXES(-1), true);
    if (more) sum = rapt_add(sum, more);
    return rapt_div(weights, rapt_where(rapt_equal_scalar(sum, 0), rapt_ones_like(sum), sum));
}

static rapt_tensor *of_heads(rapt_tensor *terms)
{
    return rapt_reshape(terms, RAPT_SHAPE(rapt_count(terms), 1, 1));
}

LAYER_FUNCTION(softmax_by_formula, shares_of(rapt_mul(rapt_exp(in[0]), seen_of(in, s)), NULL))
LAYER_FUNCTION(sinks_by_formula, shares_of(rapt_mul(rapt_exp(in[0]), seen_of(in, s)), rapt_exp(of_heads(in[2]))))
LAYER_FUNCTION(sigmoid_by_formula, rapt_mul(rapt_sigmoid(in[0]), seen_of(in, s)))
LAYER_FUNCTION(biases_by_formula, rapt_mul(rapt_sigmoid(rapt_add(in[0], of_heads(in[2]))), seen_of(in, s)))
LAYER_FUNCTION(sum_by_formula, shares_of(rapt_mul(in[0], seen_of(in, s)), NULL))

static rapt_tensor *hard_by_formula(void *m, rapt_tensor *const *in, const op_sample *s)
{
    (void)m;
    if (rapt_size(in[0], -1) == 0) return in[0];
    rapt_tensor *seen = seen_of(in, s), *best = rapt_masked_fill(in[0], rapt_equal_scalar(seen, 0), -50);
    return rapt_mul(rapt_one_hot(rapt_argmax(best, -1, false), rapt_size(best, -1), rapt_get_dtype(best)), seen);
}

LAYER_FUNCTION(none_by_formula, rapt_mul(in[0], seen_of(in, s)))
LAYER_FUNCTION(uniform_by_formula, shares_of(seen_of(in, s), NULL))

static const op_sample sequences[] = {{.in = {SHAPE(2, 3, 4)}},
                                      {.in = {SHAPE(2, 4)}},
                                      {.in = {SHAPE(2, 2, 1, 4)}, .variant = 1},
                                      {.in = {SHAPE(0, 3, 4)}},
                                      {.in = {SHAPE(1, 3, 4)}, .variant = 1}};
static const op_sample scores[] = {{.in = {SHAPE(2, 2, 3, 4)}},
                                   {.in = {SHAPE(1, 2, 1, 5)}},
                                   {.in = {SHAPE(0, 2, 2, 3)}},
                                   {.in = {SHAPE(3, 2, 2, 1)}}};
static const op_sample masked[] = {
    {.in = {SHAPE(2, 2, 3), ABSENT}},
    {.in = {SHAPE(1, 3, 4), ABSENT}, .variant = causal},
    {.in = {SHAPE(2, 2, 3), SHAPE(2)}, .limit = 3, .variant = by_lengths},
    {.in = {SHAPE(1, 2, 2, 4), ABSENT}, .variant = in_window},
    {.in = {SHAPE(0, 2, 3), ABSENT}},
    {.in = {SHAPE(2, 2, 0), ABSENT}},
};
static const op_sample with_terms[] = {
    {.in = {SHAPE(1, 2, 2, 3), ABSENT, SHAPE(2)}},
    {.in = {SHAPE(1, 2, 3, 4), ABSENT, SHAPE(2)}, .variant = causal},
    {.in = {SHAPE(2, 2, 2, 3), SHAPE(2), SHAPE(2)}, .limit = 3, .variant = by_lengths},
    {.in = {SHAPE(1, 2, 2, 4), ABSENT, SHAPE(2)}, .variant = in_window},
    {.in = {SHAPE(0, 2, 2, 3), ABSENT, SHAPE(2)}},
};

#define LAYER(id, sample_array)                                                                                        \
    .row = {.name = #id, .differentiable = 1, SAMPLES(sample_array)}, .make = make_##id, .call = call_##id
#define FUNCTION(id, domain_of, sample_array)                                                                          \
    .row = {.name = #id, .domain = {domain_of, length64}, .differentiable = 5, .optional = 2, SAMPLES(sample_array)},  \
    .call = call_##id, .kind = "function"

static const layer_row rows[] = {
    {LAYER(sinusoidal_positions, sequences), .definition = sinusoidal_positions_by_table},
    {LAYER(learned_positions, sequences), .definition = learned_positions_by_table},
    {LAYER(rotary, sequences), .definition = rotary_by_formula},
    {LAYER(alibi, scores), .definition = alibi_by_formula},
    {LAYER(relative_bias, scores), .definition = relative_bias_by_formula},
    {FUNCTION(masked_softmax, any_value, masked), .definition = softmax_by_formula},
    {FUNCTION(masked_softmax_with_sinks, any_value, with_terms), .definition = sinks_by_formula},
    {FUNCTION(masked_sigmoid, any_value, masked), .definition = sigmoid_by_formula},
    {FUNCTION(masked_sigmoid_with_biases, any_value, with_terms), .definition = biases_by_formula},
    {FUNCTION(masked_sparsemax, any_value, masked), .definition = sparsemax_by_op},
    {FUNCTION(masked_entmax15, any_value, masked), .definition = entmax15_by_op},
    {FUNCTION(masked_sum, positive, masked), .definition = sum_by_formula},
    {FUNCTION(masked_none, any_value, masked), .definition = none_by_formula},
    {FUNCTION(masked_hard, any_value, masked), .definition = hard_by_formula},
    {FUNCTION(masked_uniform, any_value, masked), .definition = uniform_by_formula},
};

LAYER_FAMILY(layers_functions, rows);
