/* What a trained translator is worth: exact match, BLEU, examples, pictures. */
#ifndef TRANSLATE_EVALUATE_H
#define TRANSLATE_EVALUATE_H

#include "run.h"

/* Prints the book's four sentences (with the book preset), ten translations, the attention in one of them, BLEU and,
 * last, the exact match on the test pairs; draws the attention and the losses into files, and says which. False
 * after an error. */
bool evaluate(struct run *run);

/* Prints the translation of one sentence, or of each line of standard input when it is NULL. The program's exit
 * status. */
int translate_text(const char *model_path, const char *sentence, int beams);

#endif
