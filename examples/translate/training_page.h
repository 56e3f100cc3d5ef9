/* The page of a run, written while it trains. */
#ifndef TRANSLATE_TRAINING_PAGE_H
#define TRANSLATE_TRAINING_PAGE_H

#include "run.h"

/* The first two are false after an error. What the page cannot get any more is no error: it is said above the progress,
 * and the page ends. Without --page they do nothing. */
bool training_page_begin(struct run *run);
bool training_page_step(struct run *run, rapt_progress *progress); /* after each step */
void training_page_epoch(struct run *run, double validation_loss); /* after each epoch */
void training_page_end(struct run *run, rapt_progress *progress);

#endif
