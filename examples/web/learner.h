/* A small Transformer that learns to turn words around or to sort their letters, and shows where it looks. */
#ifndef RAPT_EXAMPLES_WEB_LEARNER_H
#define RAPT_EXAMPLES_WEB_LEARNER_H

#include <stdbool.h>
#include <stdint.h>

enum { learner_length = 8, learner_letters = 26, learner_layers = 2, learner_heads = 2 };

enum learner_task { LEARNER_REVERSE, LEARNER_SORT, LEARNER_TASKS };

struct learner;

/* What the model makes of one word: letters are numbers from 0; weights of a row sum to 1. */
struct learner_view {
    int32_t answer[learner_length], expected[learner_length];
    float weights[learner_layers][learner_heads][learner_length][learner_length];
};

/* A model that has learnt nothing yet. NULL after an error, of which rapt_error tells. */
struct learner *learner_new(enum learner_task task, uint64_t seed);

/* NULL is allowed. */
void learner_free(struct learner *learner);

/* One step with a batch of random words; its loss, or NaN after an error. */
double learner_train(struct learner *learner);

/* Runs the model over one word. False after an error. */
bool learner_look(struct learner *learner, const int32_t word[learner_length], struct learner_view *view);

/* The share of `count` random words that come out right in every letter, 0 to 1; NaN after an error. */
double learner_measure(struct learner *learner, int64_t count);

#endif
