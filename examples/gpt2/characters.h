/* Bytes on their way to a terminal, which gets whole characters. */
#ifndef GPT2_CHARACTERS_H
#define GPT2_CHARACTERS_H

#include <stdio.h>

/* Begins with the stream alone. */
struct characters {
    FILE *stream;
    char waiting[4]; /* the first bytes of a character */
    size_t count, length;
};

/* Writes the characters that are whole, and flushes; the half of one waits. Bytes that are no UTF-8 go out as they
 * are. */
void characters_put(struct characters *out, const char *bytes, size_t count);

/* Writes what waits. */
void characters_end(struct characters *out);

#endif
