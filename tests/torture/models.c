/* A translator, a Transformer, a GPT and a classifier of pictures: small, but large enough for several threads. */
#include "models.h"

#include <stdio.h>
#include <string.h>

enum { batch = 24, length = 12, vocabulary = 90, hidden = 64, heads = 4, patches = 16, patch = 49, classes = 7 };

const char *const model_names[num_models + 1] = {"translator", "transformer", "gpt", "classifier", NULL};

static const rapt_transformer_config transformer_config = {.hidden = hidden,
                                                           .heads = heads,
                                                           .feed_forward = 2 * hidden,
                                                           .encoder_layers = 2,
                                                           .decoder_layers = 2,
                                                           .kind = RAPT_FEED_FORWARD_GELU,
                                                           .norm_first = true,
                                                           .final_norm = true,
                                                           .attention_bias = true,
                                                           .dropout = 0.1};

static rapt_tensor *words(int64_t columns)
{
    return rapt_randint(1, vocabulary, RAPT_SHAPE(batch, columns));
}

static rapt_tensor *lengths(void)
{
    return rapt_randint(2, length + 1, RAPT_SHAPE(batch));
}

static rapt_tensor *translator_loss(const struct model *m)
{
    rapt_tensor *state, *outputs = rapt_bahdanau_encoder_forward(m->part[0], words(length), &state);
    rapt_bahdanau_state start = rapt_bahdanau_decoder_start(m->part[1], outputs, state, lengths());
    rapt_tensor *inputs = words(length), *labels = words(length);
    return rapt_bahdanau_decoder_loss(m->part[1], inputs, &start, labels, NULL);
}

static rapt_tensor *transformer_loss(const struct model *m)
{
    rapt_linear *dense = m->part[2];
    rapt_tensor *source = rapt_embedding_forward(m->part[0], words(length));
    rapt_tensor *target = rapt_embedding_forward(m->part[0], words(length)), *seen = lengths();
    rapt_tensor *y = rapt_transformer_forward(m->part[1], source, target, RAPT_MASK(.valid_lengths = seen),
                                              RAPT_MASK(.causal = true), RAPT_MASK(.valid_lengths = seen));
    return rapt_linear_cross_entropy(y, dense->weight, dense->bias, words(length), NULL);
}

static rapt_tensor *gpt_loss(const struct model *m)
{
    rapt_tensor *inputs = words(length), *targets = words(length);
    return rapt_gpt_loss(m->part[0], inputs, targets, NULL);
}

static rapt_tensor *classifier_loss(const struct model *m)
{
    rapt_tensor *pictures = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(batch, patches, patch));
    rapt_tensor *x =
        rapt_transformer_encoder_forward(m->part[1], rapt_linear_forward(m->part[0], pictures), NULL, NULL);
    rapt_tensor *logits = rapt_linear_forward(m->part[2], rapt_mean(x, RAPT_AXES(1), false));
    return rapt_cross_entropy(logits, rapt_randint(0, classes, RAPT_SHAPE(batch)), NULL);
}

static void add(struct model *m, const char *name, void *part)
{
    m->part[m->parts++] = rapt_module_add_child(m->root, name, part);
}

struct model model_new(int which)
{
    static const rapt_module_class kind = {.name = "Model"};
    const rapt_bahdanau_config bahdanau = {.vocabulary = vocabulary, .embedding = 32, .hidden = hidden, .layers = 2};
    struct model m = {.root = rapt_module_new(sizeof(rapt_module), &kind)};
    rapt_seed((uint64_t)which);
    switch (which) {
    case 0:
        m.loss = translator_loss;
        add(&m, "encoder", rapt_bahdanau_encoder_new(&bahdanau));
        add(&m, "decoder", rapt_bahdanau_decoder_new(&bahdanau));
        break;
    case 1:
        m.loss = transformer_loss;
        add(&m, "embedding", rapt_embedding_new(vocabulary, hidden));
        add(&m, "transformer", rapt_transformer_new(&transformer_config));
        add(&m, "dense", rapt_linear_new(hidden, vocabulary, RAPT_BIAS));
        break;
    case 2:
        m.loss = gpt_loss;
        add(&m, "gpt",
            rapt_gpt_new(&(rapt_gpt_config){.vocabulary = vocabulary,
                                            .context = length,
                                            .hidden = hidden,
                                            .layers = 2,
                                            .heads = heads,
                                            .dropout = 0.1,
                                            .bias = true}));
        break;
    default:
        m.loss = classifier_loss;
        add(&m, "patches", rapt_linear_new(patch, hidden, RAPT_BIAS));
        add(&m, "encoder", rapt_transformer_encoder_new(&transformer_config));
        add(&m, "head", rapt_linear_new(hidden, classes, RAPT_BIAS));
    }
    return m;
}

/* FNV-1a */
static bool add_to_hash(const char *name, rapt_tensor *tensor, void *context)
{
    (void)name;
    uint64_t *hash = context;
    const unsigned char *bytes = rapt_data(tensor);
    for (int64_t i = 0; i < rapt_count(tensor) * (int64_t)sizeof(float); i++)
        *hash = (*hash ^ bytes[i]) * 0x100000001b3;
    return true;
}

uint64_t model_train(int which, int steps)
{
    RAPT_SCOPE;
    uint64_t hash = 0xcbf29ce484222325;
    struct model m = model_new(which);
    rapt_optimizer *adam = rapt_adam_new(m.root, &(rapt_adam_config){.learning_rate = 0.003});
    for (int step = 0; step < steps; step++) {
        RAPT_SCOPE;
        rapt_backward(m.loss(&m));
        rapt_optimizer_step_clipped(adam, 1, NULL);
    }
    if (!rapt_error()) rapt_module_visit(m.root, RAPT_PARAMETERS, add_to_hash, &hash);
    if (rapt_error()) fprintf(stderr, "%s: %s\n", model_names[which], rapt_error());
    if (rapt_error()) hash = 0;
    rapt_clear_error();
    rapt_optimizer_free(adam);
    rapt_module_free(m.root);
    return hash;
}
