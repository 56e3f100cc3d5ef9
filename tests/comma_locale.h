/* A locale whose numbers have commas, where there is one. */
#ifndef RAPT_TESTS_COMMA_LOCALE_H
#define RAPT_TESTS_COMMA_LOCALE_H

#include <locale.h>
#include <stddef.h>

static inline void set_comma_locale(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "fr_FR.utf8"};
    for (size_t i = 0; i < sizeof names / sizeof *names && !setlocale(LC_ALL, names[i]); i++) continue;
}

#endif
