/* Files in memory, and memory that is measured, for fuzzers: what the readers ask of the system is answered here. */
#include "fuzz_file.h"

#include <sanitizer/allocator_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rapt/error.h>
#include <rapt/memory.h>

#include "tensor/system.h"

void expect(bool holds, const char *what)
{
    if (holds) return;
    fuzz_quiet(false);
    fprintf(stderr, "fuzz: %s; error: %s\n", what, rapt_error() ? rapt_error() : "none");
    abort();
}

void fuzz_quiet(bool is_quiet)
{
    static FILE *nobody, *streams[2];
    if (!nobody) nobody = fopen("/dev/null", "w");
    if (is_quiet == !!streams[0] || !nobody) return;
    fflush(stdout);
    if (is_quiet) streams[0] = stdout, streams[1] = stderr;
    stdout = is_quiet ? nobody : streams[0];
    stderr = is_quiet ? nobody : streams[1];
    if (!is_quiet) streams[0] = NULL;
}

/* --- files --- */

enum { most_files = 3, most_open = 4, first_descriptor = 1 << 20, bytes_at_once = 1000 };

typedef struct memory_file {
    const char *path;
    const unsigned char *bytes;
    size_t size;
} memory_file;

static memory_file files[most_files];
static struct {
    const memory_file *file; /* NULL: not open */
    size_t place;
} opened[most_open];

void fuzz_file_put(const char *path, const void *bytes, size_t size)
{
    int i = 0;
    while (files[i].path && strcmp(files[i].path, path) != 0) i++;
    files[i] = (memory_file){path, bytes, size};
}

size_t fuzz_file_put_parts(const char *path, const unsigned char *header, size_t header_size, size_t data_size)
{
    static unsigned char *parts;
    const size_t size = 8 + header_size + data_size;
    free(parts);
    parts = calloc(size, 1);
    expect(parts, "no memory");
    for (int i = 0; i < 8; i++) parts[i] = (unsigned char)(header_size >> 8 * i);
    memcpy(parts + 8, header, header_size);
    fuzz_file_put(path, parts, size);
    return size;
}

static const memory_file *find(const char *path)
{
    for (int i = 0; i < most_files && files[i].path; i++)
        if (strcmp(files[i].path, path) == 0) return &files[i];
    return NULL;
}

/* The linker puts __wrap_x in the place of x, and x in that of __real_x. */
#define WRAPPED(result, name, ...)                                                                                     \
    result __real_##name(__VA_ARGS__);                                                                                 \
    result __wrap_##name(__VA_ARGS__);                                                                                 \
    result __wrap_##name(__VA_ARGS__)

WRAPPED(int, rapt_system_open, const char *path)
{
    const memory_file *file = find(path);
    if (!file) return __real_rapt_system_open(path);
    int i = 0;
    while (i < most_open && opened[i].file) i++;
    expect(i < most_open, "too many files are open");
    opened[i].file = file;
    opened[i].place = 0;
    return first_descriptor + i;
}

/* Less than was asked for, now and then. */
WRAPPED(ssize_t, read, int file, void *bytes, size_t size)
{
    if (file < first_descriptor) return __real_read(file, bytes, size);
    const int i = file - first_descriptor;
    const size_t left = opened[i].file->size - opened[i].place, most = size < bytes_at_once ? size : bytes_at_once;
    const size_t given = left < most ? left : most;
    memcpy(bytes, opened[i].file->bytes + opened[i].place, given);
    opened[i].place += given;
    return (ssize_t)given;
}

WRAPPED(off_t, lseek64, int file, off_t place, int from)
{
    if (file < first_descriptor) return __real_lseek64(file, place, from);
    const int i = file - first_descriptor;
    expect(from == SEEK_SET && place >= 0 && place <= (off_t)opened[i].file->size, "a place outside of the file");
    opened[i].place = (size_t)place;
    return place;
}

WRAPPED(int, fstat64, int file, struct stat *status)
{
    if (file < first_descriptor) return __real_fstat64(file, status);
    *status = (struct stat){.st_mode = S_IFREG, .st_size = (off_t)opened[file - first_descriptor].file->size};
    return 0;
}

WRAPPED(int, stat64, const char *path, struct stat *status)
{
    const memory_file *file = find(path);
    if (!file) return __real_stat64(path, status);
    *status = (struct stat){.st_mode = S_IFREG, .st_size = (off_t)file->size};
    return 0;
}

WRAPPED(int, close, int file)
{
    if (file < first_descriptor) return __real_close(file);
    expect(opened[file - first_descriptor].file, "closed twice");
    opened[file - first_descriptor].file = NULL;
    return 0;
}

/* As many bytes as the file has, so that a look behind them is seen; at a place like a page's. */
WRAPPED(void *, rapt_system_map, int file, size_t size)
{
    if (file < first_descriptor) return __real_rapt_system_map(file, size);
    void *bytes = NULL;
    if (posix_memalign(&bytes, 64, size) != 0) return NULL;
    return memcpy(bytes, opened[file - first_descriptor].file->bytes, size);
}

WRAPPED(void, rapt_system_unmap, void *bytes, size_t size)
{
    if (__sanitizer_get_ownership(bytes))
        free(bytes);
    else
        __real_rapt_system_unmap(bytes, size);
}

static FILE *stream_of(const memory_file *file, const char *mode)
{
    return fmemopen((void *)(uintptr_t)file->bytes, file->size, mode);
}

WRAPPED(FILE *, fopen64, const char *path, const char *mode)
{
    const memory_file *file = find(path);
    return file ? stream_of(file, mode) : __real_fopen64(path, mode);
}

WRAPPED(FILE *, rapt_system_open_stream, const char *path, const char *mode, bool alone)
{
    const memory_file *file = find(path);
    return file ? stream_of(file, mode) : __real_rapt_system_open_stream(path, mode, alone);
}

/* --- memory --- */

static int64_t heap, most_of_heap;

static void on_malloc(const volatile void *block, size_t size)
{
    (void)block;
    heap += (int64_t)size;
    if (heap > most_of_heap) most_of_heap = heap;
}

static void on_free(const volatile void *block)
{
    if (block) heap -= (int64_t)__sanitizer_get_allocated_size((const void *)(uintptr_t)block);
}

fuzz_memory fuzz_begin(void)
{
    static int hooks;
    if (!hooks) hooks = __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
    most_of_heap = heap;
    return (fuzz_memory){heap, rapt_memory_get_statistics().live_bytes};
}

void expect_little_memory(fuzz_memory before, size_t file_size)
{
    expect(most_of_heap - before.heap <= (int64_t)file_size + (1 << 20), "more memory than the file and a MiB");
}

void fuzz_end(fuzz_memory before)
{
    rapt_clear_error();
    rapt_memory_trim(); /* the library's blocks are taken from the system, and so measured, anew each time */
    expect(rapt_memory_get_statistics().live_bytes == before.live, "something stays in memory");
}
