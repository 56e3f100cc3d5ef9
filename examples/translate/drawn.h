/* One sentence translated with its attention; and the pictures of a run. */
#ifndef TRANSLATE_DRAWN_H
#define TRANSLATE_DRAWN_H

#include "run.h"

struct translation {
    char *text;                 /* up to <eos> */
    int64_t ids[1000];          /* num_steps of them */
    struct attention_maps maps; /* greedy translations only; the caller's shares */
    int64_t valid_length;       /* source tokens, <eos> included */
};

/* False after an error (which stands as rapt_error()); free it with translation_free then, too. */
bool translate_sentence(struct model *model, const struct vocabulary *source, const struct vocabulary *target,
                        int64_t num_steps, const char *sentence, int beams, struct translation *translation);
void translation_free(struct translation *translation);

/* The attention in the longest of ten sentences, on stdout and in attention.svg and attention.png; a Transformer's
   three kinds each get their own files, of what has no room in a picture the beginning or none. loss.svg and loss.png:
   both losses over the epochs. What is drawn is named on stdout; a build without cairo draws no files. */
bool draw_attention(struct run *run);
bool draw_losses(const struct run *run);

/* The same attention, as the model has it at this step, on the page of the run. */
bool draw_attention_on_page(struct run *run);

#endif
