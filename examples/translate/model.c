/* What all architectures of the translator share. */
#include "model.h"

#include <stdio.h>

const char *const model_architectures[] = {[RECURRENT] = "recurrent", [TRANSFORMER] = "transformer", NULL};
static const struct architecture *const architectures[] =
    {[RECURRENT] = &architecture_recurrent, [TRANSFORMER] = &architecture_transformer};

#define NAME(choice, name, scoring) [choice] = name,
const char *const model_scorings[] = {MODEL_SCORINGS(NAME) NULL};

rapt_scoring *model_scoring(int64_t size, void *sizes)
{
#define MAKE(choice, name, scoring)                                                                                    \
    case choice:                                                                                                       \
        return scoring;
    switch (((const struct model_sizes *)sizes)->scoring) {
        MODEL_SCORINGS(MAKE)
    default:
        return NULL;
    }
}

void model_describe(const rapt_module *module, char *text, size_t size)
{
    const struct model_sizes *s = &((const struct model *)module)->sizes;
    snprintf(text, size, "%lld words -> %lld words, %s attention", (long long)s->source_vocabulary,
             (long long)s->target_vocabulary, model_scorings[s->scoring]);
}

void *model_begin(size_t size, const rapt_module_class *kind, const struct architecture *architecture,
                  const struct model_sizes *sizes)
{
    struct model *model = rapt_module_new(size, kind);
    if (!model) return NULL;
    model->architecture = architecture;
    model->sizes = *sizes;
    return model;
}

struct model *model_new(const struct model_sizes *sizes)
{
    return architectures[sizes->architecture]->make(sizes);
}

rapt_tensor *model_loss(struct model *model, const struct batch *batch, const int64_t *padding)
{
    rapt_cross_entropy_options options = {.has_ignore_index = padding != NULL, .ignore_index = padding ? *padding : 0};
    return model->architecture->loss(model, batch, &options);
}

rapt_tensor *model_translate(struct model *model, const struct batch *batch, const struct vocabulary *target, int beams,
                             struct attention_maps *maps)
{
    RAPT_NO_GRADIENT;
    RAPT_SCOPE;
    const struct architecture *a = model->architecture;
    struct decoding *decoding = a->start(model, batch);
    if (!decoding) return NULL;
    decoding->keeps_weights = maps != NULL;
    rapt_tensor *prompt = rapt_full(RAPT_INT64, RAPT_SHAPE(rapt_size(batch->sources, 0), 1), (double)target->begin);
    const rapt_token_model steps = {.context = decoding, .next = a->next, .select = a->select};
    /* greedily, as the book does, all steps are run, and what comes after <eos> is cut off later; beams end there */
    const int64_t length = rapt_size(batch->sources, 1);
    const rapt_generation how = {.length = length,
                                 .beams = maps ? 1 : beams,
                                 .stops = !maps && beams > 1,
                                 .end_token = target->end,
                                 .padding = target->padding};
    rapt_tensor *translation = rapt_generate(&steps, prompt, &how);
    if (translation)
        translation = rapt_pad(translation, 1, 0, length - rapt_size(translation, 1), (double)target->padding);
    bool good = translation && (!maps || a->maps(decoding, maps));
    for (int i = 0; good && maps && i < maps->count; i++) rapt_keep(maps->map[i].weights);
    a->end(decoding);
    return good ? rapt_keep(translation) : NULL;
}
