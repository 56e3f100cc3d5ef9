/* Reading safetensors files. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive.h"
#include "safetensors.h"
#include "tensor/core.h"

#define OP "load_safetensors"

enum { size_bytes = 8, piece_bytes = 16384 };

typedef struct reader {
    const char *path;
    int file;
    int64_t size; /* of the file */
} reader;

/* "op: cannot read 'path': why", from errno. */
static bool fail_reading(const reader *r)
{
    const int reason = errno;
    char text[128];
    return rapt_fail(RAPT_ERROR_FILE, OP, "cannot read '%.200s': %s", r->path, strerror_r(reason, text, sizeof text));
}

static bool read_all(const reader *r, void *data, size_t size)
{
    char *next = data;
    while (size > 0) {
        const ssize_t got = read(r->file, next, size);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_reading(r);
        if (got == 0)
            return rapt_fail(RAPT_ERROR_FILE, OP, "'%.200s' became shorter than its %lld bytes while it was read",
                             r->path, (long long)r->size);
        next += got;
        size -= (size_t)got;
    }
    return true;
}

/* Elements that are wider in memory than in the file, piece by piece. */
static bool read_widened(const reader *r, const rapt_stored_type *type, rapt_tensor *tensor)
{
    _Alignas(8) char piece[piece_bytes];
    const int64_t most = (int64_t)(sizeof piece / type->size);
    for (int64_t first = 0; first < tensor->count; first += most) {
        const int64_t count = tensor->count - first < most ? tensor->count - first : most;
        if (!read_all(r, piece, (size_t)count * type->size)) return false;
        type->widen(piece, count, (float *)(void *)tensor->data + first);
    }
    return true;
}

static bool check_bools(const reader *r, const char *name, const rapt_tensor *tensor)
{
    const uint8_t *bytes = (const uint8_t *)tensor->data;
    for (int64_t i = 0; i < tensor->count; i++)
        if (bytes[i] > 1)
            return rapt_fail(RAPT_ERROR_FORMAT, OP,
                             "'%.150s': element %lld of bool tensor '%.100s' is %d; 0 or 1 expected", r->path,
                             (long long)i, name, bytes[i]);
    return true;
}

static bool read_tensor(const reader *r, const rapt_stored_tensor *stored, rapt_archive *archive)
{
    RAPT_SCOPE;
    rapt_tensor *tensor = rapt_new(OP, stored->type->dtype, stored->rank, stored->shape);
    if (!tensor) return false;
    if (stored->type->widen) {
        if (!read_widened(r, stored->type, tensor)) return false;
    } else if (!read_all(r, tensor->data, (size_t)(stored->end - stored->begin))) {
        return false;
    }
    if (tensor->dtype == RAPT_BOOL && !check_bools(r, stored->name, tensor)) return false;
    if (!rapt_names_add(&archive->tensors, stored->name, tensor))
        return rapt_fail(RAPT_ERROR_MEMORY, OP, "'%.150s': no memory for the name '%.100s'", r->path, stored->name);
    rapt_retain(tensor);
    return true;
}

/* The size of the header, -1 and an error when there cannot be one of that size. */
static int64_t read_header_size(const reader *r)
{
    uint8_t bytes[size_bytes];
    uint64_t size = 0;
    if (r->size < size_bytes) {
        rapt_fail(RAPT_ERROR_FORMAT, OP, "'%.200s' has %lld bytes; a safetensors file has %d at least", r->path,
                  (long long)r->size, size_bytes + 2);
        return -1;
    }
    if (!read_all(r, bytes, sizeof bytes)) return -1;
    for (int i = size_bytes - 1; i >= 0; i--) size = size << 8 | bytes[i];
    if (size > RAPT_SAFETENSORS_MAX_HEADER) {
        rapt_fail(RAPT_ERROR_FORMAT, OP, "'%.200s': a header of %llu bytes; at most %d expected; is this safetensors?",
                  r->path, (unsigned long long)size, RAPT_SAFETENSORS_MAX_HEADER);
        return -1;
    }
    if ((int64_t)size > r->size - size_bytes) {
        rapt_fail(RAPT_ERROR_FORMAT, OP,
                  "'%.200s': the file is cut short: %lld bytes where the header alone needs %llu", r->path,
                  (long long)r->size, (unsigned long long)size + size_bytes);
        return -1;
    }
    return (int64_t)size;
}

static bool read_archive(const reader *r, rapt_archive *archive)
{
    const int64_t size = read_header_size(r);
    if (size < 0) return false;
    char *text = malloc((size_t)size + 1);
    if (!text)
        return rapt_fail(RAPT_ERROR_MEMORY, OP, "'%.200s': no memory for a header of %lld bytes", r->path,
                         (long long)size);
    rapt_stored_header header = {0};
    bool done = read_all(r, text, (size_t)size) &&
                rapt_stored_header_parse(r->path, text, (size_t)size, r->size - size_bytes - size, archive, &header);
    for (int64_t i = 0; done && i < header.count; i++) done = read_tensor(r, &header.tensors[i], archive);
    free(text);
    rapt_stored_header_free(&header);
    return done;
}

/* Opens a regular file; anything else could block or has no size. */
static bool open_file(reader *r)
{
    struct stat status;
    r->file = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (r->file < 0) return fail_reading(r);
    r->size = -1;
    if (fstat(r->file, &status) != 0)
        fail_reading(r);
    else if (!S_ISREG(status.st_mode))
        rapt_fail(RAPT_ERROR_FILE, OP, "'%.200s' is not a regular file", r->path);
    else
        r->size = (int64_t)status.st_size;
    if (r->size < 0) close(r->file);
    return r->size >= 0;
}

rapt_archive *rapt_load_safetensors(const char *path)
{
    if (!path) {
        rapt_fail_null(OP, "path");
        return NULL;
    }
    if (!RAPT_IS_LITTLE_ENDIAN) {
        rapt_fail(RAPT_ERROR_UNSUPPORTED, OP, "the format is little-endian and this machine is not");
        return NULL;
    }
    reader r = {.path = path};
    if (!open_file(&r)) return NULL;
    rapt_archive *archive = calloc(1, sizeof *archive);
    if (!archive) rapt_fail(RAPT_ERROR_MEMORY, OP, "'%.200s': no memory for an archive", path);
    const bool done = archive && read_archive(&r, archive);
    close(r.file);
    if (done) return archive;
    rapt_archive_free(archive);
    return NULL;
}
