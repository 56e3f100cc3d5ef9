/* The page of a run, written while it trains. */
#ifndef TRANSLATE_WATCH_H
#define TRANSLATE_WATCH_H

#include "run.h"

/* Each false after an error. Without --page they do nothing. */
bool watch_begin(struct run *run);
bool watch_step(struct run *run);                          /* after each step */
void watch_epoch(struct run *run, double validation_loss); /* after each epoch */
bool watch_end(struct run *run);

#endif
