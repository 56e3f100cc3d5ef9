/* A folder for each test of drawn pictures, a picture in it, and what goes wrong with one. */
#ifndef RAPT_TESTS_PICTURE_FILE_H
#define RAPT_TESTS_PICTURE_FILE_H

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "picture.h"

static char error[512];
static char directory[64], path[128];

static inline void enter(void)
{
    strcpy(directory, P_tmpdir "/test_picture.XXXXXX");
    cr_assert_not_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/picture.svg", directory);
    error[0] = '\0';
}

static inline void leave(void)
{
    unlink(path);
    rmdir(directory);
}

static inline char *read_picture(void)
{
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file);
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char *text = calloc(size + 1, 1);
    cr_assert_eq(fread(text, 1, size, file), size);
    fclose(file);
    return text;
}

/* Files and folders in the directory of the test, hidden ones too. */
static inline int count_files(void)
{
    int count = 0;
    DIR *entries = opendir(directory);
    cr_assert_not_null(entries);
    while (readdir(entries)) count++;
    closedir(entries);
    return count - 2; /* . and .. */
}

static inline void expect_error(bool ok, const char *part)
{
    cr_expect_not(ok);
    cr_expect(strstr(error, part), "'%s' does not say '%s'", error, part);
    cr_expect(!strchr(error, '\n'));
    error[0] = '\0';
}

static float identity[100];

static inline struct heatmap eye(void)
{
    for (int i = 0; i < 10; i++) identity[11 * i] = 1;
    return (struct heatmap){.values = identity, .rows = 1, .columns = 1, .queries = 10, .keys = 10, .x_label = "Keys"};
}

#endif
