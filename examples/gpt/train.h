/* Training: from the beginning, or from a checkpoint on. */
#ifndef GPT_TRAIN_H
#define GPT_TRAIN_H

#include "options.h"

/* Trains until --steps are done, or until the first signal that is watched, and writes the checkpoints. Returns how
 * many steps are done; *logged is false, after a sentence on stderr, where the log lacks some of them. */
int64_t train(rapt_gpt *gpt, const struct text *text, const struct options *options, bool *logged);

/* The mean loss over the validation text, cut into batches of windows. */
double validate(rapt_gpt *gpt, const struct text *text, const struct options *options);

#endif
