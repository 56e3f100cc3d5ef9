/* How long a step of Bahdanau's translator takes, at the sizes of Dive into Deep Learning and at larger ones. */
#include <rapt.h>

#include "rows.h"
#include "training.h"

typedef struct bahdanau_row {
    const char *name;
    int64_t length, vocabulary;
    bool is_packed; /* of short sentences; the step packs the padded batch first */
} bahdanau_row;

static const bahdanau_row rows[] = {
    {"bahdanau_t9_v200", 9, 200, false},     {"bahdanau_t9_v200_packed", 9, 200, true},
    {"bahdanau_t9_v10000", 9, 10000, false}, {"bahdanau_t9_v10000_packed", 9, 10000, true},
    {"bahdanau_t30_v200", 30, 200, false},   {"bahdanau_t30_v10000", 30, 10000, false},
};

struct bahdanau {
    training training;
    rapt_bahdanau_encoder *encoder;
    rapt_bahdanau_decoder *decoder;
    training_batch batch;
};

static rapt_tensor *loss(void *context)
{
    struct bahdanau *b = context;
    rapt_tensor *state = NULL, *outputs = rapt_bahdanau_encoder_forward(b->encoder, b->batch.sources, &state);
    rapt_bahdanau_state start = rapt_bahdanau_decoder_start(b->decoder, outputs, state, b->batch.lengths);
    return rapt_bahdanau_decoder_loss(b->decoder, b->batch.inputs, &start, b->batch.labels, &training_without_padding);
}

static rapt_tensor *packed_loss(void *context)
{
    struct bahdanau *b = context;
    const training_batch batch = training_pack(&b->batch);
    rapt_tensor *state = NULL, *starts = batch.starts;
    rapt_tensor *outputs = rapt_bahdanau_encoder_forward_packed(b->encoder, batch.sources, starts, &state);
    rapt_bahdanau_state start = rapt_bahdanau_decoder_start_packed(b->decoder, outputs, state, starts);
    return rapt_bahdanau_decoder_loss_packed(b->decoder, batch.inputs, starts, &start, batch.labels,
                                             &training_without_padding);
}

static void *make(const void *row, const void *context)
{
    (void)context;
    static struct bahdanau b;
    const bahdanau_row *sizes = row;
    const int64_t batch = 128, hidden = 256;
    const rapt_bahdanau_config config = {.vocabulary = sizes->vocabulary,
                                         .embedding = hidden,
                                         .hidden = hidden,
                                         .layers = 2,
                                         .dropout = 0.2};
    b = (struct bahdanau){.encoder = rapt_bahdanau_encoder_new(&config), .decoder = rapt_bahdanau_decoder_new(&config)};
    b.training.loss = sizes->is_packed ? packed_loss : loss;
    b.training.optimizer = rapt_adam_new(&b.encoder->module, &(rapt_adam_config){.learning_rate = 0.005});
    training_add(&b.training, "decoder", &b.decoder->module);
    b.batch = (sizes->is_packed ? training_draw_sentences : training_draw)(batch, sizes->length, sizes->vocabulary);
    return &b;
}

static void end(void *made)
{
    struct bahdanau *b = made;
    rapt_optimizer_free(b->training.optimizer);
    rapt_module_free(&b->encoder->module);
    rapt_module_free(&b->decoder->module);
}

int main(int count, char **arguments)
{
    const row_family family = {ROWS_OF(rows),
                               .phases = {"fwd", "step"},
                               .work = {training_forward, training_step},
                               .make = make,
                               .end = end,
                               .note = "Bahdanau's model, 128 sentences, 2 layers of size 256"};
    return rows_main(count, arguments, &family, 1);
}
