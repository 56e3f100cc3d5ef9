/* What the catalogue found of one op or layer. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "catalogue.h"

entry entry_new(const char *name)
{
    entry e = {.name = name};
    for (int i = 0; i < figure_count; i++) e.worst[i] = -1;
    return e;
}

void entry_note(entry *e, figure what, double error)
{
    if (isnan(error)) error = (double)INFINITY;
    e->worst[what] = fmax(e->worst[what], error);
}

void entry_fail(entry *e, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", e->name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    e->failures++;
}
