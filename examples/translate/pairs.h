/* The translator's data set: sentence pairs as ids, split into training, validation and test. */
#ifndef TRANSLATE_PAIRS_H
#define TRANSLATE_PAIRS_H

#include "error.h"
#include "vocabulary.h"

/* A size to be chosen by the file: for num_train all pairs that remain; for num_validation and num_test a twentieth of
   the pairs each, at least 1 and at most 2,000. Not for numbers. */
enum { PAIRS_AUTOMATIC = -1 };

struct pairs_options {
    int64_t num_steps;         /* tokens of the longest sentence, <eos> included: from 2 to 1000 */
    int64_t minimum_frequency; /* words rarer than this become <unk> */
    int64_t num_train, num_validation, num_test;
    uint64_t seed; /* of the split, and of the choice of numbers */
    /* The book's way: the first pairs of the file, unshuffled; longer sentences are cut, not left out; the vocabularies
       are those of all pairs, not only of the training pairs. */
    bool in_file_order;
};

/* Dive into Deep Learning, 11.4: 9 steps, words seen twice, the first 512 + 129 pairs. */
extern const struct pairs_options pairs_options_book;
/* Other files: 16 steps, words seen twice, sizes automatic. */
extern const struct pairs_options pairs_options_file;
/* Number names: 12 steps (so many has "soixante et onze" twice with hundreds and "mille"), every word, 40,000 + 1,000 +
   2,000 numbers. */
extern const struct pairs_options pairs_options_numbers;

/* All arrays have num_train + num_validation + num_test rows: training pairs first, then validation, then test. */
struct pairs {
    struct vocabulary *source_vocabulary, *target_vocabulary;
    int64_t num_steps;
    int64_t num_train, num_validation, num_test;
    int64_t *sources;          /* (n, num_steps): source ids, <eos>, <pad> ... */
    int64_t *decoder_inputs;   /* (n, num_steps): <bos>, then the labels but the last */
    int64_t *labels;           /* (n, num_steps): target ids, <eos>, <pad> ... */
    int64_t *valid_lengths;    /* (n): ids of a source that are not padding */
    const char **source_texts; /* (n): preprocessed sentences, tokens joined by single spaces */
    const char **target_texts; /* (n) */
    uint64_t hash;             /* of all sentences, in the order of the file */
    int64_t num_left_out;      /* pairs with a sentence of more than num_steps - 1 tokens */
    int64_t num_without_part;  /* pairs beyond the sizes asked for, or with a source that another part has */
    char *text;                /* what the texts point into */
};

/* Reads a file of "source<TAB>target[<TAB>anything]" lines, UTF-8. Pairs with the same source always fall into the same
   part of the split, so that no test sentence was seen in training. NULL with one sentence in error for a file that
   cannot be used (see sentences_read) or has too few pairs. Free it with pairs_free. */
struct pairs *pairs_from_file(const char *path, const struct pairs_options *options, struct translate_error *error);

/* English and French names of distinct numbers (see sentences_from_numbers), split by value. */
struct pairs *pairs_from_numbers(const struct pairs_options *options, struct translate_error *error);

/* NULL is fine. */
void pairs_free(struct pairs *pairs);

/* One new source sentence, raw: num_steps ids with <eos> and padding, and how many are not padding. False for broken
   UTF-8, for a sentence without a token and for one of more than num_steps - 1. */
bool pairs_encode_source(const struct vocabulary *vocabulary, int64_t num_steps, const char *sentence, int64_t *ids,
                         int64_t *valid_length, struct translate_error *error);

/* The words of a sentence, valid UTF-8, that the vocabulary lacks: "one, another", each once, as it was read; NULL
   when it has them all. The caller frees it. False without memory. */
bool pairs_unknown_words(const struct vocabulary *vocabulary, const char *sentence, char **words);

#endif
