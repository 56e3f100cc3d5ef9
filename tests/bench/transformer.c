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
    bool is_packed; /* the step packs the padded batch first */
} transformer_row;

static const transformer_row rows[] = {
    {"transformer_11_7", 256, 64, 200, 128, 9, 4, 2, false},
    {"transformer_11_7_packed", 256, 64, 200, 128, 9, 4, 2, true},
    {"transformer_base", 512, 2048, 10000, 32, 64, 8, 6, false},
    {"transformer_base_packed", 512, 2048, 10000, 32, 64, 8, 6, true},
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
static rapt_tensor *embed(struct transformer *t, rapt_embedding *embedding, rapt_tensor *words, rapt_tensor *starts)
{
    rapt_tensor *x = rapt_mul_scalar(rapt_embedding_forward(embedding, words), sqrt((double)t->sizes->hidden));
    return starts ? rapt_sinusoidal_positions_forward_at(t->positions, x, rapt_packing_positions(starts))
                  : rapt_sinusoidal_positions_forward(t->positions, x, 0);
}

static rapt_tensor *loss(void *context)
{
    struct transformer *t = context;
    const training_batch batch = t->sizes->is_packed ? training_pack(&t->batch) : t->batch;
    rapt_tensor *starts = batch.starts;
    const rapt_mask sources = {.starts = starts, .valid_lengths = starts ? NULL : batch.lengths};
    rapt_tensor *y = rapt_transformer_forward(t->transformer, embed(t, t->source, batch.sources, starts),
                                              embed(t, t->target, batch.inputs, starts), &sources,
                                              RAPT_MASK(.causal = true, .starts = starts), &sources);
    return rapt_linear_cross_entropy(y, t->dense->weight, t->dense->bias, batch.labels, &training_without_padding);
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
 * feed-forward twice, and its logits; of attention itself two with all keys of the sentence. */
static double cost(const void *made, int phase)
{
    const struct transformer *t = made;
    const transformer_row *s = t->sizes;
    const int64_t *lengths = rapt_data(t->batch.lengths);
    const double hidden = (double)s->hidden;
    double words = 0, pairs = 0;
    for (int64_t i = 0; i < s->batch; i++) {
        const double length = (double)(s->is_packed ? lengths[i] : s->length);
        words += length, pairs += length * length;
    }
    const double layer = words * (12 * hidden * hidden + 4 * hidden * (double)s->feed_forward) + 3 * 2 * pairs * hidden;
    return 2 * (s->layers * layer + words * hidden * (double)s->vocabulary) * (phase == 0 ? 1 : 3);
}

int main(int count, char **arguments)
{
    const row_family family = {ROWS_OF(rows),
                               .phases = {"fwd", "step"},
                               .work = {training_forward, training_step},
                               .make = make,
                               .end = end,
                               .cost = cost,
                               .note =
                                   "Transformers, encoder and decoder; padding counts as words, where there is some"};
    return rows_main(count, arguments, &family, 1);
}
