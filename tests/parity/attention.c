/* The cases of attention.py: attention pooling with its masks and normalisers, and the scoring functions. */
#include "parity.h"

static rapt_tensor *forward(parity *p, rapt_attention *layer, const rapt_mask *mask)
{
    if (!layer) return NULL;
    layer->keep_weights = true;
    return rapt_attention_forward(layer, parity_input(p, "q"), parity_input(p, "k"), parity_input(p, "v"), mask);
}

static void pool(parity *p, rapt_attention *pooling, const rapt_mask *mask)
{
    rapt_attention *layer = parity_module(p, pooling);
    parity_output(p, "y", forward(p, layer, mask));
    parity_output(p, "weights", layer ? layer->weights : NULL);
}

/* Scaled dot product with that mask; IN names an input of the fixture. */
#define POOL(name, ...)                                                                                                \
    static void name(parity *p)                                                                                        \
    {                                                                                                                  \
        pool(p, rapt_dot_product_attention_new(0), RAPT_MASK(__VA_ARGS__));                                            \
    }
#define IN(field) .field = parity_input(p, #field)
POOL(plain, 0)
POOL(lengths, IN(valid_lengths))
POOL(causal, .causal = true)
POOL(causal_offset, .causal = true, .offset = 1)
POOL(window, .window = 2)
POOL(causal_window_offset, .causal = true, .window = 2, .offset = 1)
POOL(boolean, IN(seen))
POOL(bias, IN(bias))
POOL(relative_bias, IN(relative_bias), .offset = 1)
POOL(heads_lengths_causal, IN(valid_lengths), .causal = true)
POOL(heads_everything, IN(valid_lengths), IN(seen), IN(bias), IN(relative_bias), .causal = true, .window = 4,
     .offset = 1)

static void additive(parity *p)
{
    pool(p, rapt_additive_attention_new(3, 4, 7, 0), RAPT_MASK(IN(valid_lengths)));
}

static void book_additive(parity *p)
{
    pool(p, rapt_additive_attention_new(3, 4, 7, 0), RAPT_MASK(IN(valid_lengths), .fills_million = true));
}

/* Normalisers. */
static void softmax(parity *p)
{
    parity_output(p, "y", rapt_masked_softmax(parity_input(p, "x"), RAPT_MASK(IN(valid_lengths))));
}

static void book_softmax(parity *p)
{
    const rapt_mask *mask = RAPT_MASK(IN(valid_lengths), .fills_million = true);
    parity_output(p, "y", rapt_masked_softmax(parity_input(p, "x"), mask));
}

static void sum(parity *p)
{
    rapt_tensor *positive = rapt_add_scalar(rapt_abs(parity_input(p, "x")), 0.1);
    parity_output(p, "y", rapt_masked_sum(positive, RAPT_MASK(IN(valid_lengths))));
}

static void uniform(parity *p)
{
    parity_output(p, "y", rapt_masked_uniform(parity_input(p, "x"), RAPT_MASK(IN(valid_lengths))));
}

static void hard(parity *p)
{
    parity_output(p, "y", rapt_masked_hard(parity_input(p, "x"), RAPT_MASK(IN(valid_lengths))));
}

static void none(parity *p)
{
    parity_output(p, "y", rapt_masked_none(parity_input(p, "x"), RAPT_MASK(IN(valid_lengths))));
}

const parity_case parity_attention[] = {
    PARITY(plain),
    PARITY(lengths),
    PARITY_AS(lengths_per_query, lengths, 0),
    PARITY(causal),
    PARITY(causal_offset),
    PARITY(window),
    PARITY(causal_window_offset),
    PARITY(boolean),
    PARITY(bias),
    PARITY(relative_bias),
    PARITY_AS(heads, plain, 0),
    PARITY(heads_lengths_causal),
    PARITY(heads_everything),
    PARITY(softmax),
    PARITY(book_softmax),
    PARITY(sum),
    PARITY(uniform),
    PARITY(hard),
    PARITY(none),
    PARITY(additive),
    PARITY(book_additive),
    {0},
};

#define SCORE(name, scoring)                                                                                           \
    static void name(parity *p)                                                                                        \
    {                                                                                                                  \
        rapt_scoring *layer = parity_module(p, scoring);                                                               \
        parity_output(p, "y", rapt_score(layer, parity_input(p, "q"), parity_input(p, "k")));                          \
    }
SCORE(dot, rapt_dot_product_scoring_new())
SCORE(scaled_dot, rapt_scaled_dot_product_scoring_new())
SCORE(bilinear, rapt_bilinear_scoring_new(3, 4))
SCORE(padded_dot, rapt_padded_dot_product_scoring_new())
SCORE(additive_score, rapt_additive_scoring_new(3, 4, 7))
SCORE(cosine, rapt_cosine_scoring_new(1, true))
SCORE(gaussian, rapt_gaussian_scoring_new(1, true))
SCORE(kernel_gaussian, rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_GAUSSIAN, 1, true))
SCORE(kernel_boxcar, rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_BOXCAR, 3, false))
SCORE(kernel_constant, rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_CONSTANT, 1, false))
SCORE(kernel_epanechnikov, rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_EPANECHNIKOV, 4, true))

static void relative(parity *p)
{
    pool(p, rapt_attention_new(rapt_relative_scoring_new(6, 3, 2), 0), RAPT_MASK(IN(valid_lengths)));
}

static void kernel_regression(parity *p)
{
    rapt_attention *layer =
        rapt_attention_new(rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_GAUSSIAN, 1.5, true), 0);
    if (layer) layer->normalizer = rapt_masked_sum;
    pool(p, layer, RAPT_MASK(IN(valid_lengths)));
}

const parity_case parity_scoring[] = {
    PARITY(dot),
    PARITY(scaled_dot),
    PARITY(bilinear),
    PARITY(padded_dot),
    PARITY_AS(additive, additive_score, 0),
    PARITY(cosine),
    PARITY(gaussian),
    PARITY(kernel_gaussian),
    PARITY(kernel_boxcar),
    PARITY(kernel_constant),
    PARITY(kernel_epanechnikov),
    PARITY(relative),
    PARITY(kernel_regression),
    {0},
};
