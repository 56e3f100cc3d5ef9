/* The directory of a test with an index of shards in it. */
#ifndef RAPT_TESTS_SAFETENSORS_INDEX_FILE_H
#define RAPT_TESTS_SAFETENSORS_INDEX_FILE_H

#include <sys/stat.h>

#include "safetensors_file.h"

static char index_path[96];

static inline void begin(void)
{
    make_directory();
    snprintf(index_path, sizeof index_path, "%s/m.safetensors.index.json", directory);
}

static inline void write_index(const char *text)
{
    FILE *file = fopen(index_path, "wb");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static inline bool is_there(const char *name)
{
    char text[128];
    struct stat status;
    snprintf(text, sizeof text, "%s/%s", directory, name);
    return stat(text, &status) == 0;
}

#endif
