/* A file for a test to read. */
#ifndef RAPT_TESTS_TEMPORARY_FILE_H
#define RAPT_TESTS_TEMPORARY_FILE_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Writes a new file and its name; the caller unlinks it. */
static inline void write_temporary_file(char path[32], const char *bytes, size_t size)
{
    strcpy(path, "/tmp/rapt-test-XXXXXX");
    int descriptor = mkstemp(path);
    cr_assert_geq(descriptor, 0);
    cr_assert_eq(write(descriptor, bytes, (unsigned)size), (ssize_t)size);
    close(descriptor);
}

#endif
