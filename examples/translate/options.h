/* What the translator can be told. */
#ifndef TRANSLATE_OPTIONS_H
#define TRANSLATE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "pairs.h"

struct options {
    const char *data; /* NULL: number names */
    const char *out, *weights, *sentence, *log;
    bool translates, resumes, is_book;
    bool writes_page;
    bool is_fixed;       /* the book preset without the two slips of its Transformer */
    bool counts_padding; /* in the loss, as the book does */
    int64_t seed, threads, parts, epochs, steps, checkpoint_every;
    int architecture, scoring; /* as model.h has them */
    int64_t batch_size, embedding, hidden, layers, heads, feed_forward;
    int64_t beams; /* of the translations; 1: greedy */
    double dropout, learning_rate, clip;
    int schedule; /* CONSTANT_SCHEDULE or COSINE_SCHEDULE */
    struct pairs_options pairs;
};

enum { CONSTANT_SCHEDULE, COSINE_SCHEDULE };

/* Reads the command line. -1: run; otherwise the program is to exit with that status, all is said. */
int options_parse(int argc, char **argv, struct options *options);

/* The options that decide the weights of a run, as a line: a run goes on only with the same. */
void options_note(const struct options *options, const struct pairs *pairs, char *text, size_t size);

#endif
