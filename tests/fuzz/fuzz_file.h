/* What the fuzzers of readers share: one file in memory that each input is written to, and what must hold. */
#ifndef RAPT_TESTS_FUZZ_FILE_H
#define RAPT_TESTS_FUZZ_FILE_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rapt/error.h>
#include <rapt/memory.h>

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size);

static inline void expect(bool holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "fuzz: %s; error: %s\n", what, rapt_error() ? rapt_error() : "none");
    abort();
}

static inline void write_all(int file, const void *bytes, size_t size)
{
    expect(write(file, bytes, size) == (ssize_t)size, "the file cannot be written");
}

typedef struct fuzz_file {
    int file;
    char path[64];
} fuzz_file;

/* The same file at each call, empty. */
static inline const fuzz_file *fuzz_file_empty(void)
{
    static fuzz_file made = {.file = -1};
    if (made.file < 0) {
        made.file = memfd_create("fuzz", 0);
        snprintf(made.path, sizeof made.path, "/proc/self/fd/%d", made.file);
    }
    expect(ftruncate(made.file, 0) == 0 && lseek(made.file, 0, SEEK_SET) == 0, "the file cannot be emptied");
    return &made;
}

/* A safetensors file of that header and so many bytes of zeros, at most 1020. */
static inline void write_parts(int file, const unsigned char *header, size_t header_size, size_t data_size)
{
    static const unsigned char zeros[1020];
    unsigned char prefix[8];
    for (int i = 0; i < 8; i++) prefix[i] = (unsigned char)(header_size >> 8 * i);
    write_all(file, prefix, sizeof prefix);
    write_all(file, header, header_size);
    write_all(file, zeros, data_size);
}

static inline int64_t fuzz_live_bytes(void)
{
    return rapt_memory_get_statistics().live_bytes;
}

/* Before an input: memory is measured from here on. */
static inline int64_t fuzz_begin(void)
{
    rapt_memory_reset_peak();
    return fuzz_live_bytes();
}

/* What reading takes beyond the file, which half floats become twice as large as. */
static inline void expect_little_memory(int64_t live_before, size_t file_size)
{
    const int64_t extra = rapt_memory_get_statistics().peak_bytes - live_before;
    expect(extra <= 2 * (int64_t)file_size + (1 << 20), "more memory than the file and a MiB");
}

/* After an input: nothing of it stays. */
static inline void fuzz_end(int64_t live_before)
{
    rapt_clear_error();
    expect(fuzz_live_bytes() == live_before, "something stays in memory");
}

#endif
