/* model.safetensors: the weights and, as metadata, all that is needed to translate with them. */
#ifndef TRANSLATE_SAVED_MODEL_H
#define TRANSLATE_SAVED_MODEL_H

#include "model.h"

struct saved_model {
    struct model *model;
    struct vocabulary *source_vocabulary, *target_vocabulary;
    int64_t num_steps;
};

/* Writes a model; the vocabularies are those of the pairs. False after an error. */
bool saved_model_write(const char *path, struct model *model, const struct pairs *pairs);

/* Reads one, ready to translate. False after an error, which stands as rapt_error(). */
bool saved_model_read(const char *path, struct saved_model *saved);
void saved_model_free(struct saved_model *saved);

#endif
