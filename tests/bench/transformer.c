/* How long a step of a Transformer takes: the one of Dive into Deep Learning (11.7), and the base one of Vaswani et
 * al. 2017. */
#include <math.h>

#include <rapt.h>

#include "rows.h"
#include "training.h"

typedef struct transformer_row {
    const char *name;
    int64_t hidden, feed_forward, vocabulary, batch, length;
    int heads, layers;
} transformer_row;

static const transformer_row rows[] = {
    {"transformer_11_7", 256, 64, 200, 128, 9, 4, 2},
    {"transformer_base", 512, 2048, 10000, 32, 64, 8, 6},
};

struct transformer {
    training training;
    rapt_module module;
    const transformer_row *sizes;
    rapt_embedding *source, *target;
    rapt_sinusoidal_positions *positions;
    rapt_transformer *transformer;
    rapt_linear *dense;
    training_batch batch;
};

/* √hidden · embedding + position */
static rapt_tensor *embed(struct transformer *t, rapt_embedding *embedding, rapt_tensor *words)
{
    rapt_tensor *x = rapt_mul_scalar(rapt_embedding_forward(embedding, words), sqrt((double)t->sizes->hidden));
    return rapt_sinusoidal_positions_forward(t->positions, x, 0);
}

static rapt_tensor *loss(void *context)
{
    struct transformer *t = context;
    const rapt_mask sources = {.valid_lengths = t->batch.lengths};
    rapt_tensor *y =
        rapt_transformer_forward(t->transformer, embed(t, t->source, t->batch.sources),
                                 embed(t, t->target, t->batch.inputs), &sources, RAPT_MASK(.causal = true), &sources);
    return rapt_linear_cross_entropy(y, t->dense->weight, t->dense->bias, t->batch.labels, &training_without_padding);
}

static void *make(const void *row, const void *context)
{
    (void)context;
    static struct transformer t;
    const transformer_row *sizes = row;
    const double dropout = 0.2;
    const rapt_transformer_config config = {.hidden = sizes->hidden,
                                            .heads = sizes->heads,
                                            .feed_forward = sizes->feed_forward,
                                            .encoder_layers = sizes->layers,
                                            .decoder_layers = sizes->layers,
                                            .dropout = dropout,
                                            .attention_dropout = dropout};
    t = (struct transformer){.training.loss = loss,
                             .sizes = sizes,
                             .source = rapt_embedding_new(sizes->vocabulary, sizes->hidden),
                             .target = rapt_embedding_new(sizes->vocabulary, sizes->hidden),
                             .positions = rapt_sinusoidal_positions_new(sizes->hidden, dropout),
                             .transformer = rapt_transformer_new(&config),
                             .dense = rapt_linear_new(sizes->hidden, sizes->vocabulary, RAPT_BIAS),
                             .batch = training_draw(sizes->batch, sizes->length, sizes->vocabulary)};
    t.training.optimizer = rapt_adam_new(&t.transformer->module, &(rapt_adam_config){.learning_rate = 0.001});
    training_add(&t.training, "source", &t.source->module);
    training_add(&t.training, "target", &t.target->module);
    training_add(&t.training, "dense", &t.dense->module);
    return &t;
}

static void end(void *made)
{
    struct transformer *t = made;
    rapt_optimizer_free(t->training.optimizer);
    rapt_module *const modules[] = {&t->source->module, &t->target->module, &t->positions->module,
                                    &t->transformer->module, &t->dense->module};
    for (int i = 0; i < 5; i++) rapt_module_free(modules[i]);
}

/* The products: of a word in a layer 4 · hidden² for each attention (3 of them in encoder and decoder), 2 · hidden ·
 * feed-forward twice, and its logits; of attention itself two with all keys. */
static double cost(const void *made, int phase)
{
    const transformer_row *s = ((const struct transformer *)made)->sizes;
    const double hidden = (double)s->hidden, words = (double)(s->batch * s->length), length = (double)s->length;
    const double layer = 12 * hidden * hidden + 4 * hidden * (double)s->feed_forward + 3 * 2 * length * hidden;
    return 2 * words * (s->layers * layer + hidden * (double)s->vocabulary) * (phase == 0 ? 1 : 3);
}

int main(int count, char **arguments)
{
    const row_family family = {ROWS_OF(rows),
                               .phases = {"fwd", "step"},
                               .work = {training_forward, training_step},
                               .make = make,
                               .end = end,
                               .cost = cost,
                               .note = "Transformers, encoder and decoder, padding and masks counted as words"};
    return rows_main(count, arguments, &family, 1);
}
