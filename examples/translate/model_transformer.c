/* The Transformer architecture: encoder and decoder over embeddings with positions (Dive into Deep Learning, 11.7). */
#include <math.h>
#include <stdlib.h>

#include "model.h"

struct transformer {
    struct model model;
    rapt_embedding *source, *target;
    rapt_sinusoidal_positions *positions;
    rapt_transformer_encoder *encoder;
    rapt_transformer_decoder *decoder;
    rapt_linear *dense;
};

static const rapt_module_class kind = {.name = "Translator", .describe = model_describe};

/* Initial values of the projections as the book has them, those of PyTorch's linear layers. */
static bool init_projections(rapt_multi_head_attention *attention)
{
    double bound = attention ? 1 / sqrt((double)rapt_size(attention->in_proj_weight, 1)) : 0;
    return attention && rapt_fill_uniform(attention->in_proj_weight, -bound, bound);
}

static bool init(struct transformer *t)
{
    bool good = t->encoder && t->decoder;
    for (int i = 0; good && i < t->encoder->count; i++) good = init_projections(t->encoder->layers[i]->self_attn);
    for (int i = 0; good && i < t->decoder->count; i++)
        good = init_projections(t->decoder->layers[i]->self_attn) &&
               init_projections(t->decoder->layers[i]->multihead_attn);
    return good;
}

static struct model *make(const struct model_sizes *sizes)
{
    struct transformer *t = model_begin(sizeof *t, &kind, &architecture_transformer, sizes);
    if (!t) return NULL;
    rapt_module *module = &t->model.module;
    int64_t hidden = sizes->hidden;
    const rapt_transformer_config config = {.hidden = hidden,
                                            .heads = sizes->heads,
                                            .feed_forward = sizes->feed_forward,
                                            .encoder_layers = (int)sizes->layers,
                                            .decoder_layers = (int)sizes->layers,
                                            .dropout = sizes->dropout,
                                            .attention_dropout = sizes->dropout,
                                            .scoring = model_scoring,
                                            .context = &t->model.sizes};
    t->source =
        rapt_module_add_child(module, "source", (rapt_module *)rapt_embedding_new(sizes->source_vocabulary, hidden));
    t->encoder = rapt_module_add_child(module, "encoder", (rapt_module *)rapt_transformer_encoder_new(&config));
    t->target =
        rapt_module_add_child(module, "target", (rapt_module *)rapt_embedding_new(sizes->target_vocabulary, hidden));
    t->decoder = rapt_module_add_child(module, "decoder", (rapt_module *)rapt_transformer_decoder_new(&config));
    t->positions = rapt_module_add_child(module, "positions",
                                         (rapt_module *)rapt_sinusoidal_positions_new(hidden, sizes->dropout));
    t->dense = rapt_module_add_child(module, "dense",
                                     (rapt_module *)rapt_linear_new(hidden, sizes->target_vocabulary, RAPT_BIAS));
    if (!init(t)) module->failed = true;
    return rapt_module_finish(module);
}

/* √hidden · embedding + position; of packed tokens, in each sequence. */
static rapt_tensor *embed(struct transformer *t, rapt_embedding *embedding, rapt_tensor *tokens, rapt_tensor *starts,
                          int64_t offset)
{
    rapt_tensor *x = rapt_mul_scalar(rapt_embedding_forward(embedding, tokens), sqrt((double)t->model.sizes.hidden));
    return starts ? rapt_sinusoidal_positions_forward_at(t->positions, x, rapt_packing_positions(starts))
                  : rapt_sinusoidal_positions_forward(t->positions, x, offset);
}

static rapt_tensor *encode(struct transformer *t, const struct batch *batch)
{
    rapt_tensor *starts = batch->source_starts, *x = embed(t, t->source, batch->sources, starts, 0);
    const rapt_mask mask = {.starts = starts, .valid_lengths = starts ? NULL : batch->valid_lengths};
    return rapt_transformer_encoder_forward(t->encoder, x, &mask, NULL);
}

static rapt_tensor *loss(struct model *model, const struct batch *padded, const rapt_cross_entropy_options *options)
{
    struct transformer *t = (struct transformer *)model;
    /* the book evaluates a translation with all of it in view, padding too */
    const bool sees_all = model->sizes.is_book && !model->module.training;
    const struct batch batch = options->has_ignore_index && !sees_all ? batch_packed(padded) : *padded;
    rapt_tensor *x = embed(t, t->target, batch.decoder_inputs, batch.target_starts, 0);
    const rapt_mask mask = {.causal = !sees_all, .starts = batch.target_starts};
    const rapt_mask memory_mask = {.starts = batch.target_starts,
                                   .key_starts = batch.source_starts,
                                   .valid_lengths = batch.source_starts ? NULL : batch.valid_lengths};
    rapt_tensor *y = rapt_transformer_decoder_forward(t->decoder, x, encode(t, &batch), &mask, &memory_mask, NULL);
    return rapt_linear_cross_entropy(y, t->dense->weight, t->dense->bias, batch.labels, options);
}

/* A translation under way. Of each layer: the caches, and the weights of the steps so far. */
struct transformer_decoding {
    struct decoding decoding;
    rapt_tensor *memory, *valid_lengths;
    int64_t steps;
    rapt_decoder_cache *caches;
    rapt_tensor *self, *cross; /* (layers, heads, steps, num_steps) or NULL */
};

static struct decoding *start(struct model *model, const struct batch *batch)
{
    struct transformer *t = (struct transformer *)model;
    struct transformer_decoding *d = calloc(1, sizeof *d);
    if (d) d->caches = calloc((size_t)t->decoder->count, sizeof *d->caches);
    if (!d || !d->caches) {
        rapt_fail(RAPT_ERROR_MEMORY, "translate", "no memory for a translation");
        free(d);
        return NULL;
    }
    d->decoding.model = model;
    rapt_attention_keep_weights(&t->encoder->module, true);
    d->memory = rapt_retain(encode(t, batch));
    rapt_attention_keep_weights(&t->encoder->module, false);
    d->valid_lengths = rapt_retain(batch->valid_lengths);
    return &d->decoding;
}

/* Appends a step's weights (1, heads, 1, keys) of all layers, filled up with zeros to num_steps keys. */
static bool add_weights(struct transformer *t, rapt_tensor **all, bool is_cross)
{
    rapt_tensor *layers[64];
    int64_t width = rapt_size(t->encoder->layers[0]->self_attn->pooling->weights, -1);
    for (int i = 0; i < t->decoder->count; i++) {
        const rapt_decoder_layer *layer = t->decoder->layers[i];
        rapt_tensor *weights = (is_cross ? layer->multihead_attn : layer->self_attn)->pooling->weights;
        layers[i] = weights ? rapt_pad(weights, -1, 0, width - rapt_size(weights, -1), 0) : NULL;
    }
    rapt_tensor *step = rapt_concat(t->decoder->count, layers, 0);
    rapt_tensor *parts[] = {*all, step};
    rapt_tensor *sum = *all ? rapt_concat(2, parts, 2) : step;
    if (!sum) return false;
    rapt_retain(sum);
    rapt_release(*all);
    *all = sum;
    return true;
}

static rapt_tensor *next(void *decoding, rapt_tensor *tokens)
{
    struct transformer_decoding *d = decoding;
    struct transformer *t = (struct transformer *)d->decoding.model;
    if (!d->memory) return NULL;
    bool keeps = d->decoding.keeps_weights;
    rapt_attention_keep_weights(&t->decoder->module, keeps);
    /* the book's decoder takes each token that it generates for the first */
    int64_t offset = t->model.sizes.is_book ? 0 : d->steps;
    rapt_tensor *y = rapt_transformer_decoder_forward(t->decoder, embed(t, t->target, tokens, NULL, offset), d->memory,
                                                      RAPT_MASK(.causal = true),
                                                      RAPT_MASK(.valid_lengths = d->valid_lengths), d->caches);
    rapt_attention_keep_weights(&t->decoder->module, false);
    d->steps += rapt_size(tokens, 1);
    if (!y || (keeps && (!add_weights(t, &d->self, false) || !add_weights(t, &d->cross, true)))) return NULL;
    return rapt_linear_forward(t->dense, rapt_select(y, 1, -1));
}

static bool choose(void *decoding, rapt_tensor *rows)
{
    struct transformer_decoding *d = decoding;
    struct transformer *t = (struct transformer *)d->decoding.model;
    rapt_tensor *memory = rapt_index_select(d->memory, 0, rows),
                *lengths = rapt_index_select(d->valid_lengths, 0, rows);
    bool good = memory && lengths;
    for (int i = 0; good && i < t->decoder->count; i++) good = rapt_decoder_cache_select(&d->caches[i], rows);
    if (!good) return false;
    rapt_retain(memory);
    rapt_retain(lengths);
    rapt_release(d->memory);
    rapt_release(d->valid_lengths);
    d->memory = memory;
    d->valid_lengths = lengths;
    return true;
}

static bool maps(struct decoding *decoding, struct attention_maps *result)
{
    struct transformer_decoding *d = (struct transformer_decoding *)decoding;
    struct transformer *t = (struct transformer *)decoding->model;
    rapt_tensor *layers[64];
    for (int i = 0; i < t->encoder->count; i++) layers[i] = t->encoder->layers[i]->self_attn->pooling->weights;
    *result =
        (struct attention_maps){3,
                                {{"attention-encoder", "source", "source", rapt_concat(t->encoder->count, layers, 0)},
                                 {"attention-decoder", "translation", "input", rapt_detach(d->self)},
                                 {"attention", "translation", "source", rapt_detach(d->cross)}}};
    return result->map[0].weights && result->map[1].weights && result->map[2].weights;
}

static void end(struct decoding *decoding)
{
    struct transformer_decoding *d = (struct transformer_decoding *)decoding;
    struct transformer *t = (struct transformer *)decoding->model;
    for (int i = 0; i < t->decoder->count; i++) rapt_decoder_cache_clear(&d->caches[i]);
    rapt_tensor *const owned[] = {d->memory, d->valid_lengths, d->self, d->cross};
    for (int i = 0; i < 4; i++) rapt_release(owned[i]);
    free(d->caches);
    free(d);
}

const struct architecture architecture_transformer = {make, loss, start, next, choose, maps, end};
