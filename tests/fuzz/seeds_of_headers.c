/* Writes the headers of tests/safetensors_headers.h as seeds for fuzz_safetensors into a folder. */
#include <stdio.h>
#include <string.h>

#include "safetensors_headers.h"

int main(int argc, char **argv)
{
    const size_t count = sizeof bad_headers / sizeof *bad_headers;
    for (size_t i = 0; argc == 2 && i < count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/header_%02zu", argv[1], i);
        FILE *file = fopen(path, "wb");
        if (!file || fputc((int)bad_headers[i].data, file) == EOF || fputs(bad_headers[i].header, file) < 0 ||
            fclose(file) != 0) {
            perror(path);
            return 1;
        }
    }
    return argc != 2;
}
