/* The page of a run, written while it trains. */
#ifndef TRANSLATE_TRAINING_PAGE_H
#define TRANSLATE_TRAINING_PAGE_H

#include "run.h"

/* Each false after an error. Without --page they do nothing. */
bool training_page_begin(struct run *run);
bool training_page_step(struct run *run);                          /* after each step */
void training_page_epoch(struct run *run, double validation_loss); /* after each epoch */
bool training_page_end(struct run *run);

#endif
