/* Training steps of the models that are measured. */
#include "training.h"

#include <stdio.h>

const rapt_cross_entropy_options training_without_padding = {.has_ignore_index = true};

void training_forward(void *context)
{
    RAPT_NO_GRADIENT;
    RAPT_SCOPE;
    training *t = context;
    t->loss(t);
}

void training_step(void *context)
{
    RAPT_SCOPE;
    training *t = context;
    rapt_backward(t->loss(t));
    rapt_optimizer_step_clipped(t->optimizer, 1, NULL);
}

struct addition {
    training *trained;
    const char *prefix;
};

static bool add_parameter(const char *name, rapt_tensor *tensor, void *context)
{
    const struct addition *addition = context;
    char full[256];
    snprintf(full, sizeof full, "%s.%s", addition->prefix, name);
    return rapt_optimizer_add(addition->trained->optimizer, full, tensor);
}

void training_add(training *trained, const char *prefix, const rapt_module *module)
{
    rapt_module_visit(module, RAPT_PARAMETERS, add_parameter, &(struct addition){trained, prefix});
}

static rapt_tensor *without_padding(rapt_tensor *words, rapt_tensor *is_padding)
{
    return rapt_where(is_padding, rapt_zeros_like(words), words);
}

static training_batch draw(rapt_tensor *lengths, int64_t length, int64_t vocabulary)
{
    const int64_t batch = rapt_size(lengths, 0);
    rapt_tensor *sources = rapt_randint(1, vocabulary, RAPT_SHAPE(batch, length));
    rapt_tensor *targets = rapt_randint(1, vocabulary, RAPT_SHAPE(batch, length));
    rapt_tensor *places = rapt_arange(RAPT_INT64, 0, (double)length, 1);
    rapt_tensor *is_padding = rapt_greater_equal(places, rapt_unsqueeze(lengths, 1));
    /* what the decoder reads is one word behind */
    rapt_tensor *parts[] = {rapt_slice(targets, 1, 0, 1, 1), rapt_slice(targets, 1, 0, length - 1, 1)};
    return (training_batch){.sources = without_padding(sources, is_padding),
                            .inputs = rapt_concat(2, parts, 1),
                            .labels = without_padding(targets, is_padding),
                            .lengths = lengths};
}

training_batch training_draw(int64_t batch, int64_t length, int64_t vocabulary)
{
    const int64_t shortest = length / 3 < 2 ? 2 : length / 3;
    return draw(rapt_randint(shortest, length + 1, RAPT_SHAPE(batch)), length, vocabulary);
}

training_batch training_draw_sentences(int64_t batch, int64_t length, int64_t vocabulary)
{
    return draw(rapt_min(rapt_randint(2, length + 1, RAPT_SHAPE(2, batch)), RAPT_AXES(0), false), length, vocabulary);
}

training_batch training_pack(const training_batch *padded)
{
    rapt_tensor *starts = rapt_packing_starts(padded->lengths);
    return (training_batch){.sources = rapt_pack(padded->sources, starts),
                            .inputs = rapt_pack(padded->inputs, starts),
                            .labels = rapt_pack(padded->labels, starts),
                            .lengths = padded->lengths,
                            .starts = starts};
}
