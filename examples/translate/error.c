/* Writes error sentences. */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>

bool translate_fail(struct translate_error *error, const char *format, ...)
{
    if (error != NULL) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(error->message, sizeof error->message, format, arguments);
        va_end(arguments);
    }
    return false;
}
