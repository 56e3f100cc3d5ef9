/* The translator's model: Bahdanau's encoder and decoder as one module, its loss and its greedy translations. */
#ifndef TRANSLATE_MODEL_H
#define TRANSLATE_MODEL_H

#include <rapt.h>

#include "batches.h"
#include "vocabulary.h"

struct model {
    rapt_module module;
    rapt_bahdanau_encoder *encoder;
    rapt_bahdanau_decoder *decoder;
    struct model_sizes {
        int64_t source_vocabulary, target_vocabulary, embedding, hidden, layers;
        double dropout;
    } sizes;
};

/* NULL after an error. Free it with rapt_module_free(&model->module). */
struct model *model_new(const struct model_sizes *sizes);

/* Logits (batch, num_steps, target vocabulary). */
rapt_tensor *model_forward(struct model *model, const struct batch *batch);

/* Cross-entropy: the mean over all positions, padding included, as the book trains; or over what is not padding. */
rapt_tensor *model_loss(struct model *model, const struct batch *batch, const int64_t *padding);

/* Greedy translation of sources (batch, num_steps): num_steps ids of the target vocabulary for each, int64 (batch,
 * num_steps). weights, unless NULL, becomes (batch, num_steps, num_steps): the attention of each step over the source. */
rapt_tensor *model_translate(struct model *model, const struct batch *batch, int64_t begin, rapt_tensor **weights);

#endif
