/* A file for a test to read, and what is in one. */
#ifndef RAPT_TESTS_TEMPORARY_FILE_H
#define RAPT_TESTS_TEMPORARY_FILE_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Writes a new file and its name; the caller unlinks it. */
static inline void write_temporary_file(char file_path[32], const char *bytes, size_t size)
{
    strcpy(file_path, "/tmp/rapt-test-XXXXXX");
    int descriptor = mkstemp(file_path);
    cr_assert_geq(descriptor, 0);
    cr_assert_eq(write(descriptor, bytes, (unsigned)size), (ssize_t)size);
    close(descriptor);
}

/* A small file as a text, until the next call. */
static inline const char *text_of_file(const char *file_path)
{
    static char text[4096];
    FILE *file = fopen(file_path, "rb");
    cr_assert_not_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

#endif
