/* The error sentence that the functions of the translator's data side hand to their caller. */
#ifndef TRANSLATE_ERROR_H
#define TRANSLATE_ERROR_H

#include <stdbool.h>

/* One clear sentence, filled by a function that returns false or NULL; untouched by one that succeeds. */
struct translate_error {
    char message[512];
};

/* Writes the sentence into error (which may be NULL) and returns false, so that callers can return its result. */
bool translate_fail(struct translate_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
