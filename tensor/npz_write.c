/* Writing npz files: zip without compression, every size in 64 bits, so that there is one way for all sizes.
 * https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT */
#include <stdlib.h>
#include <string.h>

#include <rapt/npy.h>

#include "byte_order.h"
#include "npy.h"
#include "npz.h"
#include "tensor/archive.h"
#include "tensor/core.h"
#include "tensor/debug.h"
#include "tensor/replace_file.h"
#include "tensor/utf8.h"

#define OP "save_npz"

typedef struct writer {
    rapt_replacement file;
    int64_t written;
    rapt_crc32 sum;
} writer;

/* What the directory says of a member. */
typedef struct member {
    const char *name;
    uint32_t sum;
    int64_t size, place;
} member;

/* A record that is being made: numbers, the lowest byte first. */
typedef struct record {
    uint8_t bytes[96];
    size_t size;
} record;

static void put(record *r, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++) r->bytes[r->size++] = (uint8_t)(number >> 8 * i);
}

static bool write(writer *w, const void *data, size_t size)
{
    w->written += (int64_t)size;
    return rapt_replacement_write(&w->file, data, size);
}

static bool write_name(writer *w, const char *name)
{
    return write(w, name, strlen(name)) && write(w, ".npy", 4);
}

/* What both headers of a member begin with: not compressed, names in UTF-8, of 1 January 1980, sizes in the extra
 * field. */
static void put_member(record *r, const member *m, int extra)
{
    put(r, RAPT_ZIP_VERSION, 2);
    put(r, RAPT_ZIP_UTF8, 2);
    put(r, 0, 2);
    put(r, 0x210000, 4);
    put(r, m->sum, 4);
    put(r, UINT32_MAX, 4);
    put(r, UINT32_MAX, 4);
    put(r, strlen(m->name) + 4, 2);
    put(r, (uint64_t)extra, 2);
}

static void put_extra(record *r, const member *m, int size)
{
    put(r, RAPT_ZIP_EXTRA_64, 2);
    put(r, (uint64_t)size - 4, 2);
    put(r, (uint64_t)m->size, 8);
    put(r, (uint64_t)m->size, 8);
}

static bool write_member(writer *w, member *m, const rapt_named *entry)
{
    enum { extra = 20 };
    char prefix[RAPT_NPY_PREFIX];
    RAPT_SCOPE;
    const rapt_tensor *dense = rapt_as_in_file(rapt_archive_open(entry));
    if (!dense) return false;
    const size_t prefix_size = rapt_npy_prefix(dense, prefix);
    const size_t bytes = (size_t)dense->count * rapt_element_bytes[dense->dtype];
    rapt_crc32_begin(&w->sum);
    rapt_crc32_add(&w->sum, prefix, prefix_size);
    rapt_crc32_add(&w->sum, dense->data, bytes);
    m->sum = rapt_crc32_of(&w->sum);
    m->size = (int64_t)(prefix_size + bytes);
    m->place = w->written;
    record header = {.size = 0}, sizes = {.size = 0};
    put(&header, RAPT_ZIP_LOCAL, 4);
    put_member(&header, m, extra);
    put_extra(&sizes, m, extra);
    return write(w, header.bytes, header.size) && write_name(w, m->name) && write(w, sizes.bytes, sizes.size) &&
           write(w, prefix, prefix_size) && write(w, dense->data, bytes);
}

static bool write_entry(writer *w, const member *m)
{
    enum { extra = 28 };
    record header = {.size = 0}, rest = {.size = 0};
    put(&header, RAPT_ZIP_ENTRY, 4);
    put(&header, RAPT_ZIP_VERSION, 2);
    put_member(&header, m, extra);
    put(&header, 0, 2 + 2);
    put(&header, 0, 2 + 4);
    put(&header, UINT32_MAX, 4);
    put_extra(&rest, m, extra);
    put(&rest, (uint64_t)m->place, 8);
    return write(w, header.bytes, header.size) && write_name(w, m->name) && write(w, rest.bytes, rest.size);
}

/* The directory's place and size in 64 bits. */
static bool write_end_64(writer *w, int64_t count, int64_t directory)
{
    const int64_t end = w->written;
    record r = {.size = 0};
    put(&r, RAPT_ZIP_END_64, 4);
    put(&r, RAPT_ZIP_END_64_SIZE - 12, 8);
    put(&r, RAPT_ZIP_VERSION, 2);
    put(&r, RAPT_ZIP_VERSION, 2);
    put(&r, 0, 8);
    put(&r, (uint64_t)count, 8);
    put(&r, (uint64_t)count, 8);
    put(&r, (uint64_t)(end - directory), 8);
    put(&r, (uint64_t)directory, 8);
    put(&r, RAPT_ZIP_LOCATOR, 4);
    put(&r, 0, 4);
    put(&r, (uint64_t)end, 8);
    put(&r, 1, 4);
    return write(w, r.bytes, r.size);
}

/* numpy knows a file of nothing by its first record, which is then the last one. */
static bool write_end(writer *w, int64_t count, int64_t directory)
{
    const uint32_t see_64 = count > 0 ? UINT32_MAX : 0;
    record r = {.size = 0};
    put(&r, RAPT_ZIP_END, 4);
    put(&r, 0, 4);
    put(&r, see_64, 4); /* the counts, of 2 bytes each */
    put(&r, see_64, 4);
    put(&r, see_64, 4);
    put(&r, 0, 2);
    return (count == 0 || write_end_64(w, count, directory)) && write(w, r.bytes, r.size);
}

static bool write_archive(writer *w, const rapt_archive *archive, member *members)
{
    const int64_t count = archive->tensors.count;
    for (int64_t i = 0; i < count; i++) {
        members[i].name = archive->tensors.entries[i].name;
        if (!write_member(w, &members[i], &archive->tensors.entries[i])) return false;
    }
    const int64_t directory = w->written;
    for (int64_t i = 0; i < count; i++)
        if (!write_entry(w, &members[i])) return false;
    return write_end(w, count, directory);
}

static bool check(const rapt_archive *archive)
{
    if (archive->texts.count > 0)
        return rapt_fail(RAPT_ERROR_VALUE, OP,
                         "the archive has texts ('%.200s'), for which npz has no place; "
                         "save_safetensors keeps them",
                         archive->texts.entries[0].name);
    for (int64_t i = 0; i < archive->tensors.count; i++) {
        const char *name = archive->tensors.entries[i].name;
        const size_t size = strlen(name);
        if (size > RAPT_ZIP_LONGEST_NAME - 4)
            return rapt_fail(RAPT_ERROR_VALUE, OP, "the name '%.100s...' has %zu bytes; %d at most in a zip file", name,
                             size, RAPT_ZIP_LONGEST_NAME - 4);
        if (!rapt_is_utf8(name)) return rapt_fail(RAPT_ERROR_VALUE, OP, "the name '%.200s' is not UTF-8", name);
    }
    return true;
}

bool rapt_save_npz(const char *path, const rapt_archive *archive)
{
    writer w = {.written = 0};
    if (!path || !archive) return rapt_fail_null(OP, path ? "archive" : "path");
    if (rapt_was_freed(OP, archive) || !check(archive)) return false;
    member *members = calloc((size_t)archive->tensors.count + 1, sizeof *members);
    if (!members)
        return rapt_fail(RAPT_ERROR_MEMORY, OP, "no memory for a directory of %lld tensors",
                         (long long)archive->tensors.count);
    bool done = rapt_replacement_begin(&w.file, OP, path);
    if (done) done = rapt_replacement_end(&w.file, write_archive(&w, archive, members));
    free(members);
    return done;
}
