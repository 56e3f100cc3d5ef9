/* A directory for each test of safetensors, and a file in it to write, read and expect things of. */
#ifndef RAPT_TESTS_SAFETENSORS_FILE_H
#define RAPT_TESTS_SAFETENSORS_FILE_H

#include "expect.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tensor/system.h"

static char directory[40], path[64];

static inline void remove_directory(void)
{
    char name[320];
    DIR *list = opendir(directory);
    if (!list) return;
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        snprintf(name, sizeof name, "%s/%s", directory, entry->d_name);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) remove(name);
    }
    closedir(list);
    rmdir(directory);
}

static inline void make_directory(void)
{
    bool made = false;
    for (int number = 0; !made && number < 1000; number++) { /* processes that died may have left some */
        snprintf(directory, sizeof directory, "/tmp/rapt-safetensors-%d-%d", (int)getpid(), number);
        made = rapt_system_make_folder(directory);
    }
    cr_assert(made);
    snprintf(path, sizeof path, "%s/a.safetensors", directory);
}

static const bool is_little_endian = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;

/* Numbers of so many bytes each, turned into what a file holds of them, in place. */
static inline void *as_in_file(void *numbers, size_t bytes, size_t each)
{
    char *first = numbers;
    for (size_t i = 0; !is_little_endian && i < bytes; i++) {
        const size_t place = i % each, other = i - place + each - 1 - place;
        const char byte = first[i];
        if (place >= each / 2) continue;
        first[i] = first[other];
        first[other] = byte;
    }
    return numbers;
}

/* How many files are in the directory. */
static inline int files(void)
{
    DIR *list = opendir(directory);
    int count = 0;
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list)) count += entry->d_name[0] != '.';
    closedir(list);
    return count;
}

static inline void write_file(const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static inline char *read_file(size_t *size)
{
    char *bytes = malloc(100000);
    FILE *file = fopen(path, "rb");
    cr_assert(bytes && file);
    *size = fread(bytes, 1, 100000, file);
    fclose(file);
    return bytes;
}

/* A file of that header and so many bytes of data 0, 1, 0, 1 … */
static inline void write_header(const char *header, size_t data)
{
    char bytes[4096];
    const size_t length = strlen(header);
    cr_assert_lt(8 + length + data, sizeof bytes);
    for (size_t i = 0; i < 8; i++) bytes[i] = (char)(length >> 8 * i);
    memcpy(bytes + 8, header, length);
    for (size_t i = 0; i < data; i++) bytes[8 + length + i] = i % 2;
    write_file(bytes, 8 + length + data);
}

static inline void expect_refused(rapt_error_code code, const char *part)
{
    const int64_t live = rapt_memory_get_statistics().live_bytes;
    cr_expect_null(rapt_load_safetensors(path), "expected: %s", part);
    expect_error(code, part);
    cr_expect_eq(rapt_memory_get_statistics().live_bytes, live);
}

static inline rapt_archive *load(void)
{
    rapt_archive *archive = rapt_load_safetensors(path);
    cr_assert_not_null(archive, "%s", rapt_error());
    return archive;
}

/* Tensors "one" and "two", full of that value. */
static inline rapt_archive *small_archive(double value)
{
    rapt_archive *archive = rapt_archive_new();
    cr_assert(rapt_archive_add(archive, "one", rapt_full(RAPT_FLOAT32, RAPT_SHAPE(3), value)));
    cr_assert(rapt_archive_add(archive, "two", rapt_full(RAPT_FLOAT64, RAPT_SHAPE(2, 2), value)));
    return archive;
}

#endif
