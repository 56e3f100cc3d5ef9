/* Training steps of the models that are measured. */
#ifndef BENCH_TRAINING_H
#define BENCH_TRAINING_H

#include <rapt.h>

/* The first member of what a model's row is made into. */
typedef struct training {
    rapt_tensor *(*loss)(void *training);
    rapt_optimizer *optimizer;
} training;

/* Phases of a row, of a `training`. */
void training_forward(void *context);
void training_step(void *context); /* forward, backward, gradients clipped to norm 1, update */

/* Adds a second module's parameters to the optimizer, under names that begin with the prefix and a dot. */
void training_add(training *trained, const char *prefix, const rapt_module *module);

/* Sequences for a translator: int64 (batch, length), random words of 1 … vocabulary − 1, of which those beyond the
 * lengths (batch) are 0 in sources and labels. */
typedef struct training_batch {
    rapt_tensor *sources, *inputs, *labels, *lengths;
    rapt_tensor *starts; /* of sequences that are packed, or NULL */
} training_batch;

/* Lengths are drawn from a third of the length (2 at the least) up to all of it. */
training_batch training_draw(int64_t batch, int64_t length, int64_t vocabulary);

/* Each is the smaller of two that are drawn from 2 up to the length: of 9 places 46 % have words, as in the sentences
 * of Dive into Deep Learning. */
training_batch training_draw_sentences(int64_t batch, int64_t length, int64_t vocabulary);

/* The same without padding. */
training_batch training_pack(const training_batch *padded);

/* The mean over labels that are not 0. */
extern const rapt_cross_entropy_options training_without_padding;

#endif
