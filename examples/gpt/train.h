/* Training: from the beginning, or from a checkpoint on. */
#ifndef GPT_TRAIN_H
#define GPT_TRAIN_H

#include "options.h"

struct trained {
    int64_t steps;
    bool is_logged,
        is_kept; /* false, after a sentence on stderr, where the log, or the checkpoint, lacks some of them */
};

/* Trains until --steps are done, until the first signal that is watched, or until a checkpoint cannot be written. */
struct trained train(rapt_gpt *gpt, const struct text *text, const struct options *options);

/* The mean loss over the validation text, cut into batches of windows. */
double validate(rapt_gpt *gpt, const struct text *text, const struct options *options);

#endif
