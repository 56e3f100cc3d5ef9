/* Reading npz files: the directory at the end of a zip file names its members, each of which is an npy file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rapt/npy.h>

#include "npy.h"
#include "npz.h"
#include "tensor/archive.h"
#include "tensor/core.h"

#define OP "load_npz"

/* What is read of the directory. */
typedef struct directory {
    const rapt_reading *file;
    uint8_t *bytes;
    int64_t place, size, count;
} directory;

typedef struct member {
    char name[RAPT_ZIP_LONGEST_NAME + 1]; /* without .npy */
    uint32_t sum;
    int64_t size, place;
} member;

/* The bytes of a member: its record and what it holds. */
typedef struct span {
    int64_t begin, end;
} span;

static uint64_t number(const uint8_t *bytes, int count)
{
    uint64_t value = 0;
    for (int i = count - 1; i >= 0; i--) value = value << 8 | bytes[i];
    return value;
}

static bool fail(const rapt_reading *r, const char *what)
{
    return rapt_fail(RAPT_ERROR_FORMAT, r->op, "'%.200s': %s", r->path, what);
}

static bool read_at(const rapt_reading *r, int64_t place, void *data, int64_t size)
{
    return rapt_reading_seek(r, place) && rapt_reading_take(r, data, (size_t)size);
}

/* The place of the last record of the file, whose comment may be up to 65535 bytes long; −1 and an error where there is
 * none. */
static int64_t find_end(const rapt_reading *r, uint8_t end[RAPT_ZIP_END_SIZE])
{
    enum { most = RAPT_ZIP_END_SIZE + 65535 };
    const int64_t size = r->size < most ? r->size : most;
    uint8_t *tail = malloc((size_t)size + 1);
    int64_t found = -1;
    if (!tail) {
        rapt_fail(RAPT_ERROR_MEMORY, r->op, "'%.200s': no memory for the end of the file", r->path);
        return -1;
    }
    if (read_at(r, r->size - size, tail, size)) {
        for (int64_t at = size - RAPT_ZIP_END_SIZE; at >= 0 && found < 0; at--)
            if (number(tail + at, 4) == RAPT_ZIP_END &&
                at + RAPT_ZIP_END_SIZE + (int64_t)number(tail + at + 20, 2) == size)
                found = at;
        if (found < 0) fail(r, "no zip file, or cut short: no end of a directory");
    }
    if (found >= 0) memcpy(end, tail + found, RAPT_ZIP_END_SIZE);
    free(tail);
    return found < 0 ? -1 : r->size - size + found;
}

/* Reads the directory's place and size, from the record of 64 bits where there is one. */
static bool find_directory(directory *d)
{
    const rapt_reading *r = d->file;
    uint8_t end[RAPT_ZIP_END_SIZE], locator[RAPT_ZIP_LOCATOR_SIZE], wide[RAPT_ZIP_END_64_SIZE];
    int64_t behind = find_end(r, end);
    if (behind < 0) return false;
    d->count = (int64_t)number(end + 10, 2);
    d->size = (int64_t)number(end + 12, 4);
    d->place = (int64_t)number(end + 16, 4);
    if (behind >= RAPT_ZIP_LOCATOR_SIZE) {
        if (!read_at(r, behind - RAPT_ZIP_LOCATOR_SIZE, locator, sizeof locator)) return false;
        const uint64_t place = number(locator + 8, 8);
        if (number(locator, 4) == RAPT_ZIP_LOCATOR) {
            if (behind < RAPT_ZIP_LOCATOR_SIZE + RAPT_ZIP_END_64_SIZE ||
                place > (uint64_t)(behind - RAPT_ZIP_LOCATOR_SIZE - RAPT_ZIP_END_64_SIZE))
                return fail(r, "the record of the directory's place lies outside the file");
            if (!read_at(r, (int64_t)place, wide, sizeof wide)) return false;
            if (number(wide, 4) != RAPT_ZIP_END_64) return fail(r, "no record of the directory where one should be");
            d->count = (int64_t)number(wide + 32, 8);
            d->size = (int64_t)number(wide + 40, 8);
            d->place = (int64_t)number(wide + 48, 8);
            behind = (int64_t)place;
        }
    }
    if (d->place < 0 || d->size < 0 || d->place > behind || d->size > behind - d->place)
        return fail(r, "the directory lies outside the file");
    if (d->count < 0 || d->count > d->size / RAPT_ZIP_ENTRY_SIZE)
        return fail(r, "more members than the directory has room for");
    return true;
}

/* Sizes and place of a member that 32 bits could not hold stand in an extra field, in this order. */
static bool read_extra(const uint8_t *extra, int64_t left, int64_t *values[3])
{
    while (left >= 4) {
        const int64_t kind = (int64_t)number(extra, 2), size = (int64_t)number(extra + 2, 2);
        if (size > left - 4) return false;
        const uint8_t *field = extra + 4;
        for (int i = 0, at = 0; kind == RAPT_ZIP_EXTRA_64 && i < 3; i++) {
            if (*values[i] != UINT32_MAX) continue;
            if (at + 8 > size) return false;
            *values[i] = (int64_t)number(field + at, 8);
            at += 8;
        }
        extra += 4 + size;
        left -= 4 + size;
    }
    return true;
}

/* Reads the entry at *at, which moves behind it. */
static bool read_entry(const directory *d, int64_t *at, member *m)
{
    const rapt_reading *r = d->file;
    const uint8_t *e = d->bytes + *at;
    const int64_t left = d->size - *at;
    if (left < RAPT_ZIP_ENTRY_SIZE || number(e, 4) != RAPT_ZIP_ENTRY) return fail(r, "the directory is damaged");
    const int64_t name = (int64_t)number(e + 28, 2), extra = (int64_t)number(e + 30, 2);
    const int64_t size = RAPT_ZIP_ENTRY_SIZE + name + extra + (int64_t)number(e + 32, 2);
    if (size > left) return fail(r, "the directory is damaged: an entry is longer than what is left");
    *at += size;
    const char *text = (const char *)e + RAPT_ZIP_ENTRY_SIZE;
    if (memchr(text, 0, (size_t)name)) return fail(r, "a member's name has a NUL in it");
    memcpy(m->name, text, (size_t)name);
    m->name[name] = '\0';
    if (name < 4 || strcmp(m->name + name - 4, ".npy") != 0)
        return rapt_fail(RAPT_ERROR_FORMAT, OP,
                         "'%.150s': the member '%.100s' is no array: its name does not end in .npy", r->path, m->name);
    m->name[name - 4] = '\0';
    const uint64_t flags = number(e + 8, 2), method = number(e + 10, 2);
    if (flags & RAPT_ZIP_ENCRYPTED || method != 0)
        return rapt_fail(RAPT_ERROR_UNSUPPORTED, OP,
                         "'%.150s': the member '%.100s' is %s; numpy.savez writes members that can be read", r->path,
                         m->name, method ? "compressed" : "encrypted");
    int64_t stored = (int64_t)number(e + 20, 4);
    m->size = (int64_t)number(e + 24, 4);
    m->place = (int64_t)number(e + 42, 4);
    m->sum = (uint32_t)number(e + 16, 4);
    if (!read_extra(e + RAPT_ZIP_ENTRY_SIZE + name, extra, (int64_t *[]){&m->size, &stored, &m->place}))
        return fail(r, "the directory is damaged: an extra field is cut short");
    return stored == m->size || fail(r, "a member that is not compressed has two sizes");
}

/* Goes to the first byte of the member, which lies before the directory with all of its bytes. */
static bool seek(const directory *d, const member *m, span *bytes)
{
    const rapt_reading *r = d->file;
    uint8_t header[RAPT_ZIP_LOCAL_SIZE];
    if (m->place < 0 || m->size < 0 || m->place > d->place - RAPT_ZIP_LOCAL_SIZE)
        return fail(r, "a member lies outside the file");
    if (!read_at(r, m->place, header, sizeof header)) return false;
    if (number(header, 4) != RAPT_ZIP_LOCAL) return fail(r, "no member where the directory says that one begins");
    const int64_t begin =
        m->place + RAPT_ZIP_LOCAL_SIZE + (int64_t)number(header + 26, 2) + (int64_t)number(header + 28, 2);
    if (begin > d->place || m->size > d->place - begin) return fail(r, "a member is longer than the file");
    *bytes = (span){m->place, begin + m->size};
    return rapt_reading_seek(r, begin);
}

static bool read_member(const directory *d, const member *m, rapt_crc32 *sum, rapt_archive *archive, span *bytes)
{
    const rapt_reading *r = d->file;
    RAPT_SCOPE;
    if (rapt_names_find(&archive->tensors, m->name))
        return rapt_fail(RAPT_ERROR_FORMAT, OP, "'%.150s': two members are called '%.100s'", r->path, m->name);
    if (!seek(d, m, bytes)) return false;
    rapt_npy_source source = {.reading = r, .sum = sum, .name = m->name, .left = m->size};
    snprintf(source.where, sizeof source.where, "'%.150s', member '%.100s'", r->path, m->name);
    rapt_crc32_begin(sum);
    rapt_tensor *tensor = rapt_npy_read(&source);
    if (!tensor) return false;
    if (rapt_crc32_of(sum) != m->sum)
        return rapt_fail(RAPT_ERROR_FORMAT, OP, "%s: damaged: its check sum is %08x where the directory says %08x",
                         source.where, rapt_crc32_of(sum), m->sum);
    return rapt_archive_keep(archive, m->name, tensor, NULL) ||
           rapt_fail(RAPT_ERROR_MEMORY, OP, "%s: no memory for the name", source.where);
}

static int compare_begins(const void *a, const void *b)
{
    const int64_t first = ((const span *)a)->begin, second = ((const span *)b)->begin;
    return (first > second) - (first < second);
}

/* In the order of their places each ends before the next begins. */
static bool lie_apart(span *spans, int64_t count)
{
    qsort(spans, (size_t)count, sizeof *spans, compare_begins);
    for (int64_t i = 1; i < count; i++)
        if (spans[i].begin < spans[i - 1].end) return false;
    return true;
}

/* Members that lie apart need no more bytes than the file has: so many are read before all places are known. */
static bool read_members(const directory *d, rapt_archive *archive)
{
    struct {
        member member;
        rapt_crc32 sum;
    } *work = malloc(sizeof *work);
    span *spans = malloc(((size_t)d->count + 1) * sizeof *spans);
    bool done = (work && spans) || rapt_fail(RAPT_ERROR_MEMORY, OP, "'%.200s': no memory for an entry", d->file->path);
    int64_t at = 0, bytes = 0;
    for (int64_t i = 0; done && i < d->count; i++) {
        done = read_entry(d, &at, &work->member) && read_member(d, &work->member, &work->sum, archive, &spans[i]);
        if (done) bytes += spans[i].end - spans[i].begin;
        if (bytes > d->place) done = fail(d->file, "members overlap");
    }
    done = done && (lie_apart(spans, d->count) || fail(d->file, "members overlap")) &&
           (at == d->size || fail(d->file, "the directory goes on behind its last entry"));
    free(spans);
    free(work);
    return done;
}

static bool read_archive(const rapt_reading *reading, rapt_archive *archive)
{
    directory d = {.file = reading};
    if (!find_directory(&d)) return false;
    d.bytes = malloc((size_t)d.size + 1);
    if (!d.bytes)
        return rapt_fail(RAPT_ERROR_MEMORY, OP, "'%.200s': no memory for a directory of %lld bytes", reading->path,
                         (long long)d.size);
    const bool done = read_at(reading, d.place, d.bytes, d.size) && read_members(&d, archive);
    free(d.bytes);
    return done;
}

rapt_archive *rapt_load_npz(const char *path)
{
    rapt_reading reading;
    if (!rapt_reading_begin(&reading, OP, path)) return NULL;
    rapt_archive *archive = rapt_archive_new();
    const bool done = archive && read_archive(&reading, archive);
    rapt_reading_end(&reading);
    if (done) return archive;
    rapt_archive_free(archive);
    return NULL;
}
