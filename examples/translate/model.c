/* The translator's model. */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>

static void describe(const rapt_module *module, char *text, size_t size)
{
    const struct model_sizes *s = &((const struct model *)module)->sizes;
    snprintf(text, size, "%lld words -> %lld words", (long long)s->source_vocabulary, (long long)s->target_vocabulary);
}

static const rapt_module_class kind = {.name = "Translator", .describe = describe};

struct model *model_new(const struct model_sizes *sizes)
{
    struct model *model = rapt_module_new(sizeof *model, &kind);
    if (!model) return NULL;
    model->sizes = *sizes;
    rapt_bahdanau_config config = {.vocabulary = sizes->source_vocabulary,
                                   .embedding = sizes->embedding,
                                   .hidden = sizes->hidden,
                                   .layers = (int)sizes->layers,
                                   .dropout = sizes->dropout};
    rapt_bahdanau_encoder *encoder = rapt_bahdanau_encoder_new(&config);
    model->encoder = rapt_module_add_child(&model->module, "encoder", (rapt_module *)encoder);
    config.vocabulary = sizes->target_vocabulary;
    rapt_bahdanau_decoder *decoder = rapt_bahdanau_decoder_new(&config);
    model->decoder = rapt_module_add_child(&model->module, "decoder", (rapt_module *)decoder);
    return rapt_module_finish(&model->module);
}

static rapt_bahdanau_state encode(struct model *model, const struct batch *batch)
{
    rapt_tensor *hidden = NULL;
    rapt_tensor *outputs = rapt_bahdanau_encoder_forward(model->encoder, batch->sources, &hidden);
    return rapt_bahdanau_decoder_start(model->decoder, outputs, hidden, batch->valid_lengths);
}

rapt_tensor *model_forward(struct model *model, const struct batch *batch)
{
    rapt_bahdanau_state state = encode(model, batch);
    return rapt_bahdanau_decoder_forward(model->decoder, batch->decoder_inputs, &state, NULL);
}

rapt_tensor *model_loss(struct model *model, const struct batch *batch, const int64_t *padding)
{
    rapt_cross_entropy_options options = {.has_ignore_index = padding != NULL, .ignore_index = padding ? *padding : 0};
    return rapt_cross_entropy(model_forward(model, batch), batch->labels, &options);
}

rapt_tensor *model_translate(struct model *model, const struct batch *batch, int64_t begin, rapt_tensor **weights)
{
    RAPT_NO_GRADIENT;
    RAPT_SCOPE;
    int64_t count = rapt_size(batch->sources, 0), steps = rapt_size(batch->sources, 1);
    rapt_tensor **parts = calloc((size_t)(2 * steps), sizeof *parts);
    if (!parts) {
        rapt_fail(RAPT_ERROR_MEMORY, "translate", "no memory for %lld steps", (long long)steps);
        return NULL;
    }
    rapt_bahdanau_state state = encode(model, batch);
    rapt_tensor *tokens = rapt_full(RAPT_INT64, RAPT_SHAPE(count, 1), (double)begin);
    for (int64_t t = 0; t < steps && tokens; t++) {
        rapt_tensor *logits =
            rapt_bahdanau_decoder_forward(model->decoder, tokens, &state, weights ? &parts[steps + t] : NULL);
        tokens = parts[t] = rapt_argmax(logits, -1, false);
    }
    rapt_tensor *translation = tokens ? rapt_concat((int)steps, parts, 1) : NULL;
    if (weights) *weights = tokens ? rapt_keep(rapt_concat((int)steps, parts + steps, 1)) : NULL;
    free(parts);
    return rapt_keep(translation);
}
