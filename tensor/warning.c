/* Warnings: lines for a handler, which prints them unless the program has another. */
#include <rapt/error.h>

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static rapt_warning_handler *_Atomic installed_handler = rapt_print_warning;

rapt_warning_handler *rapt_on_warning(rapt_warning_handler *handler)
{
    return atomic_exchange(&installed_handler, handler);
}

void rapt_print_warning(const char *message)
{
    const char *wanted = getenv("RAPT_DEBUG");
    if (!wanted || *wanted != '0') fprintf(stderr, "rapt: %s\n", message);
}

void rapt_warn(const char *op, const char *format, ...)
{
    rapt_warning_handler *handler = atomic_load(&installed_handler);
    char message[1024];
    va_list arguments;
    if (!handler) return;
    const int used = snprintf(message, 64 + 2, "%.62s: ", op ? op : "rapt");
    va_start(arguments, format);
    vsnprintf(message + used, sizeof message - (size_t)used, format, arguments);
    va_end(arguments);
    handler(message);
}
