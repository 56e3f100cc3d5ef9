/* Pairs of preprocessed sentences, read from a file or made from number names. */
#ifndef TRANSLATE_SENTENCES_H
#define TRANSLATE_SENTENCES_H

#include "error.h"

#include <stdint.h>

/* Starts as {0}; sentences_free lets it go. */
struct sentences {
    char *text;           /* all sentences, each closed by a NUL */
    const char **sources; /* count pointers into text */
    const char **targets;
    int64_t count;
    int64_t num_left_out; /* pairs that were too long */
};

/* Reads "source<TAB>target[<TAB>anything]" lines of UTF-8; a byte order mark at the start, \r\n and blank lines at
   the end are fine. Stops after max_pairs pairs. Leaves out pairs of which a side has more than max_tokens tokens.
   False, with file and line named, for a file that cannot be read or is empty and for a line without tab or with an
   empty side, broken UTF-8 or a NUL. */
bool sentences_read(struct sentences *sentences, const char *path, int64_t max_pairs, int64_t max_tokens,
                    struct translate_error *error);

/* The English and French names of num_pairs distinct numbers below 1,000,000, drawn by seed with the count of digits
   uniform as long as numbers with that count are left, in random order but with 0 first if drawn: no other name has its
   word. Names of more than max_tokens tokens are left out. */
bool sentences_from_numbers(struct sentences *sentences, int64_t num_pairs, int64_t max_tokens, uint64_t seed,
                            struct translate_error *error);

/* Behind a byte order mark, with which other programs begin UTF-8. */
const char *sentences_skip_mark(const char *text);

void sentences_free(struct sentences *sentences);

#endif
