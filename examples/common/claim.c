/* Claims of examples, printed and counted. */
#include "claim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static int broken;

bool claim(bool holds, const char *format, ...)
{
    va_list arguments;
    fputs(holds ? "  holds: " : "  DOES NOT HOLD: ", stdout);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    broken += !holds;
    return holds;
}

int claim_status(const char *program)
{
    if (broken == 0) return EXIT_SUCCESS;
    fflush(stdout);
    fprintf(stderr, "%s: %d of its claims %s not hold\n", program, broken, broken == 1 ? "does" : "do");
    return EXIT_FAILURE;
}
