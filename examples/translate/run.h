/* A training run: what it consists of, and how it is saved and continued. */
#ifndef TRANSLATE_RUN_H
#define TRANSLATE_RUN_H

#include <rapt.h>

#include "model.h"
#include "options.h"
#include "resume.h"
#include "run_log.h"
#include "web_page.h"

struct run {
    const struct options *options;
    const struct pairs *pairs;
    struct model *model;
    rapt_optimizer *optimizer;
    rapt_loader *batches, *validation; /* of the training pairs, and of the validation pairs (NULL: there are none) */
    struct run_log log;
    rapt_tensor *curves; /* float64 (epochs, 2): training and validation loss after each epoch; NaN: not yet */
    int64_t step;        /* steps done */
    int64_t steps_per_epoch, total_steps;
    double epoch_loss;             /* summed over the steps of the current epoch */
    double recent_loss, last_loss; /* of the last step and of the one before */
    char note[resume_note_size];
    bool checkpoint_failed; /* one could not be written */
    struct web_page page;
    bool page_failed; /* it lacks something */
    double page_loss; /* summed over the steps since the last point of the page */
    int64_t page_steps;
};

/* A new run: seeded, with a fresh model. False after an error. End it with run_end, also then. */
bool run_begin(struct run *run, const struct options *options, const struct pairs *pairs);
void run_end(struct run *run);

/* Writes checkpoint.safetensors into the --out folder; reads it; and whether it may be written over. */
bool run_save(const struct run *run);
bool run_resume(struct run *run);
bool run_check_new(const struct run *run);

/* Trains until the epochs are done, --steps are, Ctrl-C, or a checkpoint cannot be written, which is an error, too, but
 * none of the model. False after any other error; of the log and the page it is told at once, and the training goes on
 * without them. */
bool run_train(struct run *run);

/* The mean loss over the validation pairs. */
double run_validate(struct run *run);

/* The names of all files that a run may write, closed by NULL. */
extern const char *const run_files[];

/* DIR/name in text, which has size bytes. */
const char *run_path(const struct options *options, const char *name, char *text, size_t size);

#endif
