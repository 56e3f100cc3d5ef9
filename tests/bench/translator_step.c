/* How long a step of the translator takes: Bahdanau's model at the book's sizes, and at a larger length and
 * vocabulary. */
#include <stdio.h>
#include <stdlib.h>

#include <rapt.h>

#include "timing.h"

struct bench {
    rapt_bahdanau_encoder *encoder;
    rapt_bahdanau_decoder *decoder;
    rapt_optimizer *optimizer;
    rapt_tensor *sources, *targets, *lengths;
};

static rapt_tensor *loss_of(struct bench *b)
{
    rapt_tensor *state = NULL, *outputs = rapt_bahdanau_encoder_forward(b->encoder, b->sources, &state);
    rapt_bahdanau_state start = rapt_bahdanau_decoder_start(b->decoder, outputs, state, b->lengths);
    return rapt_bahdanau_decoder_loss(b->decoder, b->targets, &start, b->targets, NULL);
}

static void forward(void *context)
{
    RAPT_NO_GRADIENT;
    RAPT_SCOPE;
    loss_of(context);
}

static void step(void *context)
{
    RAPT_SCOPE;
    struct bench *b = context;
    rapt_backward(loss_of(b));
    rapt_clip_gradient_norm(b->optimizer, 1, NULL);
    rapt_optimizer_step(b->optimizer);
}

/* The decoder's parameters beside the encoder's, whose names they share. */
static bool add_parameter(const char *name, rapt_tensor *tensor, void *context)
{
    char full[256];
    snprintf(full, sizeof full, "decoder.%s", name);
    return rapt_optimizer_add(((struct bench *)context)->optimizer, full, tensor);
}

static void run(int64_t length, int64_t vocabulary, int repetitions)
{
    RAPT_SCOPE;
    const int64_t batch = 128, hidden = 256;
    const rapt_bahdanau_config config = {.vocabulary = vocabulary,
                                         .embedding = hidden,
                                         .hidden = hidden,
                                         .layers = 2,
                                         .dropout = 0.2};
    struct bench b = {.encoder = rapt_bahdanau_encoder_new(&config), .decoder = rapt_bahdanau_decoder_new(&config)};
    b.optimizer = rapt_adam_new(&b.encoder->module, &(rapt_adam_config){.learning_rate = 0.005});
    rapt_module_visit(&b.decoder->module, RAPT_PARAMETERS, add_parameter, &b);
    b.sources = rapt_randint(0, vocabulary, RAPT_SHAPE(batch, length));
    b.targets = rapt_randint(0, vocabulary, RAPT_SHAPE(batch, length));
    b.lengths = rapt_randint(1, length + 1, RAPT_SHAPE(batch));
    char name[64];
    snprintf(name, sizeof name, "T %lld, %lld words: forward", (long long)length, (long long)vocabulary);
    timing_report(name, repetitions, 1, forward, &b);
    snprintf(name, sizeof name, "T %lld, %lld words: step", (long long)length, (long long)vocabulary);
    timing_report(name, repetitions, 1, step, &b);
    rapt_optimizer_free(b.optimizer);
    rapt_module_free(&b.encoder->module);
    rapt_module_free(&b.decoder->module);
}

int main(void)
{
    rapt_on_error(rapt_exit_on_error);
    rapt_seed(1);
    puts(rapt_describe_runtime());
    run(9, 200, 31);
    run(9, 10000, 11);
    run(30, 200, 11);
    run(30, 10000, 5);
    return EXIT_SUCCESS;
}
