/* The recurrent architecture: Bahdanau's encoder and decoder (Dive into Deep Learning, 11.4). */
#include <stdlib.h>

#include "model.h"

struct recurrent {
    struct model model;
    rapt_bahdanau_encoder *encoder;
    rapt_bahdanau_decoder *decoder;
};

static const rapt_module_class kind = {.name = "Translator", .describe = model_describe};

static struct model *make(const struct model_sizes *sizes)
{
    struct recurrent *r = model_begin(sizeof *r, &kind, &architecture_recurrent, sizes);
    if (!r) return NULL;
    rapt_module *module = &r->model.module;
    rapt_bahdanau_config config = {.vocabulary = sizes->source_vocabulary,
                                   .embedding = sizes->embedding,
                                   .hidden = sizes->hidden,
                                   .layers = (int)sizes->layers,
                                   .dropout = sizes->dropout,
                                   .scoring = model_scoring,
                                   .context = &r->model.sizes};
    r->encoder = rapt_module_add_child(module, "encoder", (rapt_module *)rapt_bahdanau_encoder_new(&config));
    config.vocabulary = sizes->target_vocabulary;
    r->decoder = rapt_module_add_child(module, "decoder", (rapt_module *)rapt_bahdanau_decoder_new(&config));
    return rapt_module_finish(module);
}

static rapt_bahdanau_state encode(struct recurrent *r, const struct batch *batch)
{
    rapt_tensor *hidden = NULL, *starts = batch->source_starts;
    rapt_tensor *outputs = starts ? rapt_bahdanau_encoder_forward_packed(r->encoder, batch->sources, starts, &hidden)
                                  : rapt_bahdanau_encoder_forward(r->encoder, batch->sources, &hidden);
    return starts ? rapt_bahdanau_decoder_start_packed(r->decoder, outputs, hidden, starts)
                  : rapt_bahdanau_decoder_start(r->decoder, outputs, hidden, batch->valid_lengths);
}

static rapt_tensor *loss(struct model *model, const struct batch *padded, const rapt_cross_entropy_options *options)
{
    struct recurrent *r = (struct recurrent *)model;
    const struct batch batch = model->sizes.reads_padding ? *padded : batch_packed(padded);
    rapt_bahdanau_state state = encode(r, &batch);
    return model->sizes.reads_padding
               ? rapt_bahdanau_decoder_loss(r->decoder, batch.decoder_inputs, &state, batch.labels, options)
               : rapt_bahdanau_decoder_loss_packed(r->decoder, batch.decoder_inputs, batch.target_starts, &state,
                                                   batch.labels, options);
}

/* A translation under way: it owns shares in the tensors of its state. */
struct recurrent_decoding {
    struct decoding decoding;
    rapt_bahdanau_state state;
    rapt_tensor *weights; /* (1, steps so far, keys) or NULL */
};

static struct decoding *start(struct model *model, const struct batch *padded)
{
    struct recurrent_decoding *d = calloc(1, sizeof *d);
    if (!d) {
        rapt_fail(RAPT_ERROR_MEMORY, "translate", "no memory for a translation");
        return NULL;
    }
    d->decoding.model = model;
    const struct batch batch = model->sizes.reads_padding ? *padded : batch_with_packed_sources(padded);
    rapt_bahdanau_state state = encode((struct recurrent *)model, &batch);
    d->state = state;
    rapt_tensor *const owned[] = {state.keys, state.values, state.valid_lengths, state.hidden};
    for (int i = 0; i < 4; i++) rapt_retain(owned[i]);
    return &d->decoding;
}

/* Makes a tensor of the state a newer one. */
static bool replace(rapt_tensor **owned, rapt_tensor *tensor)
{
    if (!tensor) return false;
    rapt_retain(tensor);
    rapt_release(*owned);
    *owned = tensor;
    return true;
}

static bool add_weights(struct recurrent_decoding *d, rapt_tensor *weights)
{
    rapt_tensor *parts[] = {d->weights, weights};
    return replace(&d->weights, d->weights ? rapt_concat(2, parts, 1) : weights);
}

static rapt_tensor *next(void *decoding, rapt_tensor *tokens)
{
    struct recurrent_decoding *d = decoding;
    struct recurrent *r = (struct recurrent *)d->decoding.model;
    rapt_bahdanau_state state = d->state;
    rapt_tensor *weights = NULL;
    rapt_tensor *logits =
        rapt_bahdanau_decoder_forward(r->decoder, tokens, &state, d->decoding.keeps_weights ? &weights : NULL);
    if (!logits || !replace(&d->state.hidden, state.hidden) || (weights && !add_weights(d, weights))) return NULL;
    return rapt_select(logits, 1, -1);
}

static bool choose(void *decoding, rapt_tensor *rows)
{
    struct recurrent_decoding *d = decoding;
    rapt_bahdanau_state *s = &d->state;
    return replace(&s->keys, rapt_index_select(s->keys, 0, rows)) &&
           replace(&s->values, rapt_index_select(s->values, 0, rows)) &&
           (!s->valid_lengths || replace(&s->valid_lengths, rapt_index_select(s->valid_lengths, 0, rows))) &&
           replace(&s->hidden, rapt_index_select(s->hidden, 1, rows));
}

static bool maps(struct decoding *decoding, struct attention_maps *result)
{
    struct recurrent_decoding *d = (struct recurrent_decoding *)decoding;
    *result = (struct attention_maps){1, {{"attention", "translation", "source", rapt_unsqueeze(d->weights, 0)}}};
    return result->map[0].weights != NULL;
}

static void end(struct decoding *decoding)
{
    struct recurrent_decoding *d = (struct recurrent_decoding *)decoding;
    rapt_tensor *const owned[] = {d->state.keys, d->state.values, d->state.valid_lengths, d->state.hidden, d->weights};
    for (int i = 0; i < 5; i++) rapt_release(owned[i]);
    free(d);
}

const struct architecture architecture_recurrent = {make, loss, start, next, choose, maps, end};
