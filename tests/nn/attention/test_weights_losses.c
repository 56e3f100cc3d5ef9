/* Losses of attention's weights as a user writes them: guided alignment, entropy, coverage; alone, by heads, in
 * Bahdanau's decoder and in a Transformer. */
#include "modules.h"

#include <rapt/optim.h>
#include <rapt/transformer.h>

/* Cross-entropy against an alignment whose rows sum to 1 (Chen et al. 2016): −Σ a log w of each query, on average. */
static rapt_tensor *guided_alignment(rapt_tensor *weights, rapt_tensor *alignment)
{
    rapt_tensor *log = rapt_log(rapt_add_scalar(weights, 1e-9));
    return rapt_neg(rapt_mean(rapt_sum(rapt_mul(alignment, log), RAPT_AXES(-1), false), RAPT_ALL_AXES, false));
}

/* −Σ w log w of each query, on average. */
static rapt_tensor *entropy(rapt_tensor *weights)
{
    return guided_alignment(weights, weights);
}

/* Σⱼ (1 − Σᵢ wᵢⱼ)²: every key is to be read once (Tu et al. 2016, Xu et al. 2015). */
static rapt_tensor *coverage(rapt_tensor *weights)
{
    rapt_tensor *rest = rapt_add_scalar(rapt_neg(rapt_sum(weights, RAPT_AXES(-2), false)), 1);
    return rapt_mean(rapt_mul(rest, rest), RAPT_ALL_AXES, false);
}

enum { count = 6, hidden = 8 };

/* Query i belongs to key count − 1 − i. */
static rapt_tensor *turned(rapt_dtype dtype)
{
    rapt_tensor *places = rapt_arange(RAPT_INT64, count - 1, -1, -1);
    return rapt_one_hot(places, count, dtype);
}

typedef rapt_tensor *weights_loss(rapt_tensor *weights);

static rapt_tensor *turned_alignment(rapt_tensor *weights)
{
    return guided_alignment(weights, turned(rapt_get_dtype(weights)));
}

static rapt_tensor *negative_entropy(rapt_tensor *weights)
{
    return rapt_neg(entropy(weights));
}

/* Attention that learns from nothing but that loss: its weights then. */
static rapt_tensor *learn(weights_loss *loss)
{
    rapt_seed(1);
    rapt_multi_head_attention *m =
        rapt_multi_head_attention_new(&(rapt_multi_head_attention_config){.hidden = hidden, .heads = 2, .bias = true});
    rapt_optimizer *adam = rapt_adam_new(&m->module, &(rapt_adam_config){.learning_rate = 0.03});
    rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(1, count, hidden));
    m->pooling->keep_weights = true;
    for (int step = 0; step < 150; step++) {
        RAPT_SCOPE;
        cr_assert(rapt_multi_head_attention_forward(m, x, x, x, NULL, NULL), "%s", rapt_error());
        cr_assert(rapt_backward(loss(m->pooling->weights)), "%s", rapt_error());
        rapt_optimizer_step(adam);
    }
    rapt_tensor *weights = rapt_clone(rapt_detach(m->pooling->weights));
    rapt_optimizer_free(adam);
    rapt_module_free(&m->module);
    return weights;
}

Test(weights_losses, guided_alignment_makes_weights_what_they_should_be)
{
    RAPT_SCOPE;
    rapt_tensor *weights = learn(turned_alignment);
    for (int64_t h = 0; h < 2; h++)
        for (int64_t i = 0; i < count; i++)
            cr_expect_gt(rapt_at(weights, (int64_t[]){0, h, i, count - 1 - i}), 0.9, "head %lld, query %lld",
                         (long long)h, (long long)i);
    expect_no_error();
}

Test(weights_losses, entropy_sharpens_or_spreads)
{
    RAPT_SCOPE;
    cr_expect_lt(rapt_item(entropy(learn(entropy))), 0.1);
    cr_expect_gt(rapt_item(entropy(learn(negative_entropy))), 0.99 * log(count));
    expect_no_error();
}

Test(weights_losses, coverage_reads_every_key_once)
{
    RAPT_SCOPE;
    cr_expect_lt(rapt_item(coverage(learn(coverage))), 1e-3);
    expect_no_error();
}

/* --- in models --- */

typedef struct decoding {
    rapt_bahdanau_decoder *decoder;
    rapt_tensor *tokens, *lengths;
} decoding;

static rapt_tensor *decode(rapt_tensor *const *inputs, void *context)
{
    const decoding *d = context;
    rapt_tensor *state = rapt_slice(inputs[0], 0, 0, 1, 1), *weights;
    rapt_bahdanau_state start = rapt_bahdanau_decoder_start(d->decoder, inputs[0], state, d->lengths);
    rapt_tensor *logits = rapt_bahdanau_decoder_forward(d->decoder, d->tokens, &start, &weights);
    rapt_tensor *task = logits ? rapt_mean(rapt_mul(logits, logits), RAPT_ALL_AXES, false) : NULL;
    return task ? rapt_add(task, rapt_add(entropy(weights), coverage(weights))) : NULL;
}

Test(weights_losses, gradcheck_in_bahdanaus_decoder)
{
    for (int second = 0; second < 2; second++) {
        RAPT_SCOPE;
        rapt_seed(7);
        const decoding d =
            {.decoder = in_float64(rapt_bahdanau_decoder_new(
                 &(rapt_bahdanau_config){.vocabulary = 5, .embedding = 3, .hidden = 4, .layers = 1, .dropout = 0.2})),
             .tokens = rapt_randint(0, 5, RAPT_SHAPE(2, 3)),
             .lengths = lengths_of(4, 2)};
        rapt_tensor *memory = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(4, 2, 4)));
        const rapt_gradcheck_options options = {.context = (void *)(uintptr_t)&d,
                                                .second_order = second,
                                                .random_projection = second};
        const rapt_gradcheck_result r = rapt_module_gradcheck(&d.decoder->module, decode, 1, &memory, &options);
        cr_expect(r.passed, "%s", r.message);
        rapt_module_free(&d.decoder->module);
    }
    expect_no_error();
}

static const rapt_transformer_config small = {.hidden = hidden,
                                              .heads = 2,
                                              .feed_forward = 12,
                                              .encoder_layers = 1,
                                              .decoder_layers = 2,
                                              .attention_bias = true,
                                              .dropout = 0.1,
                                              .attention_dropout = 0.2};

/* The alignment of the last layer's first head is guided, of both layers the coverage of all. */
static rapt_tensor *translate(rapt_tensor *const *inputs, void *context)
{
    rapt_transformer *t = context;
    rapt_tensor *y = rapt_transformer_forward(t, inputs[0], inputs[1], NULL, RAPT_MASK(.causal = true), NULL);
    if (!y) return NULL;
    rapt_decoder_layer **layers = t->decoder->layers;
    rapt_tensor *guided = rapt_select(layers[1]->multihead_attn->pooling->weights, 1, 0);
    rapt_tensor *loss = rapt_add(rapt_mean(rapt_mul(y, y), RAPT_ALL_AXES, false), turned_alignment(guided));
    loss = rapt_add(loss, coverage(layers[0]->multihead_attn->pooling->weights));
    return rapt_add(loss, entropy(layers[0]->self_attn->pooling->weights));
}

static rapt_transformer *transformer_of(bool recompute)
{
    rapt_transformer_config c = small;
    c.recompute = recompute;
    rapt_seed(9);
    rapt_transformer *t = in_float64(rapt_transformer_new(&c));
    rapt_attention_keep_weights(&t->module, true);
    return t;
}

Test(weights_losses, gradcheck_in_a_transformer)
{
    for (int kind = 0; kind < 4; kind++) {
        RAPT_SCOPE;
        rapt_transformer *t = transformer_of(kind / 2);
        rapt_tensor *inputs[] = {rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, count, hidden))),
                                 rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, count, hidden)))};
        const rapt_gradcheck_options options = {.context = t, .second_order = kind % 2, .random_projection = true};
        const rapt_gradcheck_result r = rapt_module_gradcheck(&t->module, translate, 2, inputs, &options);
        cr_expect(r.passed, "kind %d: %s", kind, r.message);
        rapt_module_free(&t->module);
    }
    expect_no_error();
}

Test(weights_losses, recomputed_layers_give_the_same_bits_and_hold_nothing)
{
    rapt_tensor *gradients[2];
    RAPT_SCOPE;
    rapt_seed(2);
    rapt_tensor *inputs[] = {rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, count, hidden))),
                             rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, count, hidden))};
    for (int recompute = 0; recompute < 2; recompute++) {
        rapt_transformer *t = transformer_of(recompute);
        rapt_seed(3);
        rapt_tensor *loss = translate(inputs, t);
        rapt_tensor *kept = t->decoder->layers[1]->multihead_attn->pooling->weights;
        cr_assert(loss && rapt_gradients(1, &loss, NULL, 1, inputs, &gradients[recompute], 0), "%s", rapt_error());
        cr_expect_eq(t->decoder->layers[1]->multihead_attn->pooling->weights, kept, "the second run leaves them alone");
        rapt_module_free(&t->module);
    }
    cr_expect(same_bits(rapt_contiguous(gradients[0]), rapt_contiguous(gradients[1])));
    expect_no_error();
}

/* A loss inside of a function that is recomputed, of one's own. */
static rapt_tensor *own_segment(rapt_tensor *const *inputs, void *context)
{
    rapt_multi_head_attention *m = context;
    rapt_tensor *x = inputs[0], *y = rapt_multi_head_attention_forward(m, x, x, x, NULL, NULL);
    if (!y) return NULL;
    return rapt_add(rapt_mean(rapt_mul(y, y), RAPT_ALL_AXES, false), turned_alignment(m->pooling->weights));
}

static rapt_tensor *own_task(rapt_tensor *const *inputs, void *context)
{
    rapt_multi_head_attention *m = context;
    rapt_tensor *x = inputs[0], *y = rapt_multi_head_attention_forward(m, x, x, x, NULL, NULL);
    return y ? rapt_mean(rapt_mul(y, y), RAPT_ALL_AXES, false) : NULL;
}

/* The same loss outside of it. */
static rapt_tensor *add_alignment(rapt_tensor *task, rapt_multi_head_attention *m)
{
    return task ? rapt_add(task, turned_alignment(m->pooling->weights)) : NULL;
}

Test(weights_losses, inside_and_outside_of_a_recomputed_function)
{
    RAPT_SCOPE;
    rapt_seed(5);
    rapt_multi_head_attention *m = in_float64(rapt_multi_head_attention_new(
        &(rapt_multi_head_attention_config){.hidden = hidden, .heads = 2, .dropout = 0.2}));
    rapt_tensor *x = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(1, count, hidden))), *gradients[3];
    m->pooling->keep_weights = true;
    for (int way = 0; way < 3; way++) {
        rapt_seed(6);
        rapt_tensor *loss = way == 0   ? own_segment(&x, m)
                            : way == 1 ? rapt_recompute(own_segment, 1, &x, m, NULL)
                                       : add_alignment(rapt_recompute(own_task, 1, &x, m, NULL), m);
        cr_assert(loss && rapt_gradients(1, &loss, NULL, 1, &x, &gradients[way], 0), "%s", rapt_error());
    }
    cr_expect(same_bits(rapt_contiguous(gradients[0]), rapt_contiguous(gradients[1])));
    expect_values("outside", gradients[2], rapt_count(x), values_of(gradients[0]), 1e-13);
    rapt_module_free(&m->module);
    expect_no_error();
}
