/* The models that ranks train: a GPT, a Transformer with a mask of lengths, a recurrent translator, each tiny. */
#include <math.h>

#include "ranks.h"

enum { vocabulary = 11, length = 6, size = 8 };

enum { no_token = -1 };

/* Row `row` of the batch of a step has so many tokens before its padding, 2 or more. */
static int64_t length_of(int step, int64_t row)
{
    return 2 + (row * 3 + step) % (length - 1);
}

/* Rows of the batch of a step, (last − first, length), the same on all ranks; behind each row's tokens no_token stands
 * where that is the padding. */
static rapt_tensor *tokens_of(int step, int shift, int64_t first, int64_t last, int64_t padding)
{
    int64_t tokens[batch_rows * length];
    for (int64_t row = first; row < last; row++)
        for (int64_t t = 0; t < length; t++) {
            const int64_t i = row * length + t;
            const bool is_padding = padding == no_token && t >= length_of(step, row);
            tokens[i - first * length] =
                is_padding ? padding : (i * i + 3 * step + shift * (i % 5) + i / 4) % vocabulary;
        }
    return rapt_from(RAPT_INT64, RAPT_SHAPE(last - first, length), tokens);
}

static rapt_tensor *lengths_of(int step, int64_t first, int64_t last, double *sum)
{
    int64_t lengths[batch_rows] = {0};
    *sum = 0;
    for (int64_t row = first; row < last; row++) {
        lengths[row - first] = length_of(step, row);
        *sum += (double)lengths[row - first];
    }
    return rapt_from(RAPT_INT64, RAPT_SHAPE(last - first), lengths);
}

static rapt_module *make_gpt(void)
{
    return (rapt_module *)rapt_gpt_new(&(rapt_gpt_config){
        .vocabulary = vocabulary, .context = length, .hidden = 2 * size, .layers = 2, .heads = 2, .bias = true});
}

static rapt_tensor *gpt_loss(rapt_module *model, int step, int64_t first, int64_t last, double *weight)
{
    *weight = (double)((last - first) * length);
    return rapt_gpt_loss((rapt_gpt *)model, tokens_of(step, 0, first, last, 0), tokens_of(step, 1, first, last, 0),
                         NULL);
}

/* Source and target share the embedding. */
typedef struct transformer {
    rapt_module module;
    rapt_embedding *embedding;
    rapt_transformer *body;
    rapt_linear *head;
} transformer;

static rapt_module *make_transformer(void)
{
    static const rapt_module_class kind = {.name = "TestTransformer"};
    const rapt_transformer_config config = {.hidden = size,
                                            .feed_forward = 2 * size,
                                            .heads = 2,
                                            .encoder_layers = 1,
                                            .decoder_layers = 1};
    transformer *t = rapt_module_new(sizeof *t, &kind);
    if (!t) return NULL;
    t->embedding = rapt_module_add_child(&t->module, "embedding", (rapt_module *)rapt_embedding_new(vocabulary, size));
    t->body = rapt_module_add_child(&t->module, "body", (rapt_module *)rapt_transformer_new(&config));
    t->head = rapt_module_add_child(&t->module, "head", (rapt_module *)rapt_linear_new(size, vocabulary, RAPT_BIAS));
    return rapt_module_finish(&t->module);
}

static rapt_tensor *transformer_loss(rapt_module *model, int step, int64_t first, int64_t last, double *weight)
{
    transformer *t = (transformer *)model;
    rapt_tensor *lengths = lengths_of(step, first, last, weight);
    const rapt_mask padding = {.valid_lengths = lengths}, causal = {.causal = true};
    rapt_tensor *source = rapt_embedding_forward(t->embedding, tokens_of(step, 0, first, last, 0));
    rapt_tensor *target = rapt_embedding_forward(t->embedding, tokens_of(step, 1, first, last, 0));
    rapt_tensor *out = rapt_transformer_forward(t->body, source, target, &padding, &causal, &padding);
    rapt_tensor *logits = rapt_linear_forward(t->head, out);
    return rapt_cross_entropy(logits, tokens_of(step, 2, first, last, no_token),
                              &(rapt_cross_entropy_options){.has_ignore_index = true, .ignore_index = no_token});
}

typedef struct translator {
    rapt_module module;
    rapt_bahdanau_encoder *encoder;
    rapt_bahdanau_decoder *decoder;
} translator;

static rapt_module *make_translator(void)
{
    static const rapt_module_class kind = {.name = "TestTranslator"};
    const rapt_bahdanau_config config = {.vocabulary = vocabulary, .embedding = size, .hidden = size, .layers = 2};
    translator *t = rapt_module_new(sizeof *t, &kind);
    if (!t) return NULL;
    t->encoder = rapt_module_add_child(&t->module, "encoder", (rapt_module *)rapt_bahdanau_encoder_new(&config));
    t->decoder = rapt_module_add_child(&t->module, "decoder", (rapt_module *)rapt_bahdanau_decoder_new(&config));
    return rapt_module_finish(&t->module);
}

static rapt_tensor *translator_loss(rapt_module *model, int step, int64_t first, int64_t last, double *weight)
{
    translator *t = (translator *)model;
    rapt_tensor *state, *lengths = lengths_of(step, first, last, weight);
    rapt_tensor *outputs = rapt_bahdanau_encoder_forward(t->encoder, tokens_of(step, 0, first, last, 0), &state);
    rapt_bahdanau_state start = rapt_bahdanau_decoder_start(t->decoder, outputs, state, lengths);
    *weight = (double)((last - first) * length);
    return rapt_bahdanau_decoder_loss(t->decoder, tokens_of(step, 1, first, last, 0), &start,
                                      tokens_of(step, 2, first, last, 0), NULL);
}

const learner learners[] = {{"GPT", make_gpt, gpt_loss},
                            {"Transformer", make_transformer, transformer_loss},
                            {"translator", make_translator, translator_loss}};
const int learner_count = sizeof learners / sizeof *learners;
