/* What the fuzzers of readers share: files in memory that inputs are, and what must hold. */
#ifndef RAPT_TESTS_FUZZ_FILE_H
#define RAPT_TESTS_FUZZ_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size);

/* Ends the program where that does not hold. */
void expect(bool holds, const char *what);

/* From here on the file of that path, a literal that begins with "fuzz/", is those bytes, which stay the caller's. Only
 * what reads it knows: open, fopen, read, fstat and their like are answered without a system call, which would take
 * longer than all else. */
void fuzz_file_put(const char *path, const void *bytes, size_t size);

/* A safetensors file of that header and so many bytes of zeros, at most 1020, likewise; its size. */
size_t fuzz_file_put_parts(const char *path, const unsigned char *header, size_t header_size, size_t data_size);

/* Before an input: memory is measured from here on. */
typedef struct fuzz_memory {
    int64_t heap, live; /* bytes from malloc, and in the library's blocks */
} fuzz_memory;
fuzz_memory fuzz_begin(void);

/* All that was allocated since, whoever did and freed or not, is at most the file's size and 1 MiB. */
void expect_little_memory(fuzz_memory before, size_t file_size);

/* After an input: nothing of it stays. */
void fuzz_end(fuzz_memory before);

/* Where what is printed goes, to nobody, and back: libFuzzer's own lines must be seen. */
void fuzz_quiet(bool is_quiet);

#endif
