/* Put before every source by tests/errors/check: each call of rapt_fail and rapt_fail_null first adds its place, a line
 * "FILE:LINE", to the file that RAPT_ERROR_PLACES names. */
#ifndef RAPT_TESTS_ERROR_PLACES_H
#define RAPT_TESTS_ERROR_PLACES_H
#ifndef __cplusplus

#include <stdio.h>
#include <stdlib.h>

#include "../../tensor/include/tensor/core.h"

static inline void rapt_note_place(const char *file, int line)
{
    const char *path = getenv("RAPT_ERROR_PLACES");
    FILE *to = path ? fopen(path, "ae") : NULL;
    if (!to) return;
    fprintf(to, "%s:%d\n", file, line);
    if (fclose(to) != 0) abort();
}

/* A macro does not expand in itself: the function is called. */
#define rapt_fail(...) (rapt_note_place(__FILE__, __LINE__), rapt_fail(__VA_ARGS__))
#define rapt_fail_null(...) (rapt_note_place(__FILE__, __LINE__), rapt_fail_null(__VA_ARGS__))

#endif
#endif
