/* What an example asserts of its own result. */
#ifndef EXAMPLES_CLAIM_H
#define EXAMPLES_CLAIM_H

#include <stdbool.h>

/* Prints the claim on a line of stdout, and that it does not hold if it does not. Returns whether it holds. */
bool claim(bool holds, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* EXIT_SUCCESS if every claim so far held; else EXIT_FAILURE, after a sentence on stderr. */
int claim_status(const char *program);

#endif
