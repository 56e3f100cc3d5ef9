/* Pictures as text, printed into a string. */
#ifndef RAPT_TESTS_PRINTED_PICTURE_H
#define RAPT_TESTS_PRINTED_PICTURE_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "picture.h"

static char error[512], text[1 << 16];

static inline void enter(void)
{
    static const char *const variables[] = {"COLUMNS", "COLORTERM", "NO_COLOR", "CLICOLOR_FORCE", "TERM"};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) unsetenv(variables[i]);
    setenv("LC_ALL", "C.UTF-8", 1);
    error[0] = '\0';
}

static inline const char *finish(FILE *file, bool printed)
{
    cr_assert(printed, "%s", error);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static inline const char *print_heatmaps(const struct heatmap *heatmap)
{
    FILE *file = tmpfile();
    cr_assert_not_null(file);
    return finish(file, picture_print_heatmaps(file, heatmap, error, sizeof error));
}

static inline const char *print_chart(const struct chart *chart)
{
    FILE *file = tmpfile();
    cr_assert_not_null(file);
    return finish(file, picture_print_chart(file, chart, error, sizeof error));
}

#endif
