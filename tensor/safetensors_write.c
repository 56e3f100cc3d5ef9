/* Writing safetensors files. */
#include <stdio.h>
#include <string.h>

#include "archive.h"
#include "json.h"
#include "safetensors.h"
#include "tensor/core.h"
#include "tensor/replace_file.h"

#define OP "save_safetensors"

enum { size_bytes = 8 };

/* Where the header's text goes: it is counted first, with no file, and then written. So it takes no memory. */
typedef struct sink {
    const rapt_replacement *file; /* NULL: only count */
    size_t size;                  /* of all that was put */
    size_t waiting;               /* in the buffer */
    bool failed;
    char buffer[4096];
} sink;

static void flush(sink *s)
{
    s->failed = s->failed || (s->file && !rapt_replacement_write(s->file, s->buffer, s->waiting));
    s->waiting = 0;
}

static void put(sink *s, const char *text, size_t size)
{
    s->size += size;
    while (s->file && size > 0) {
        if (s->waiting == sizeof s->buffer) flush(s);
        const size_t room = sizeof s->buffer - s->waiting, piece = size < room ? size : room;
        memcpy(s->buffer + s->waiting, text, piece);
        s->waiting += piece;
        text += piece;
        size -= piece;
    }
}

static void put_text(sink *s, const char *text)
{
    put(s, text, strlen(text));
}

static void put_number(sink *s, int64_t number)
{
    char digits[24];
    put(s, digits, (size_t)snprintf(digits, sizeof digits, "%lld", (long long)number));
}

/* A string of JSON; the text is UTF-8. */
static void put_string(sink *s, const char *text)
{
    static const char special[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
    put(s, "\"", 1);
    for (; *text; text++) {
        const char *found = strchr(special, *text);
        char escape[8];
        if (found)
            put(s, escape, (size_t)snprintf(escape, sizeof escape, "\\%c", names[found - special]));
        else if ((unsigned char)*text < 0x20)
            put(s, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", (unsigned char)*text));
        else
            put(s, text, 1);
    }
    put(s, "\"", 1);
}

static size_t bytes_of(const rapt_tensor *tensor)
{
    return (size_t)tensor->count * rapt_dtype_size(tensor->dtype);
}

static void put_metadata(sink *s, const rapt_names *texts)
{
    put_string(s, RAPT_METADATA_KEY);
    for (int64_t i = 0; i < texts->count; i++) {
        put_text(s, i ? "," : ":{");
        put_string(s, texts->entries[i].name);
        put_text(s, ":");
        put_string(s, texts->entries[i].value);
    }
    put_text(s, "}");
}

static void put_tensor(sink *s, const char *name, const rapt_tensor *tensor, int64_t begin)
{
    put_string(s, name);
    put_text(s, ":{\"dtype\":");
    put_string(s, rapt_stored_type_name(tensor->dtype));
    put_text(s, ",\"shape\":[");
    for (int axis = 0; axis < tensor->rank; axis++) {
        if (axis > 0) put_text(s, ",");
        put_number(s, tensor->shape[axis]);
    }
    put_text(s, "],\"data_offsets\":[");
    put_number(s, begin);
    put_text(s, ",");
    put_number(s, begin + (int64_t)bytes_of(tensor));
    put_text(s, "]}");
}

static void put_header(sink *s, const rapt_archive *archive)
{
    int64_t offset = 0;
    put_text(s, "{");
    if (archive->texts.count > 0) put_metadata(s, &archive->texts);
    for (int64_t i = 0; i < archive->tensors.count; i++) {
        const rapt_named *entry = &archive->tensors.entries[i];
        if (i > 0 || archive->texts.count > 0) put_text(s, ",");
        put_tensor(s, entry->name, entry->value, offset);
        offset += (int64_t)bytes_of(entry->value);
    }
    put_text(s, "}");
}

/* JSON is UTF-8. */
static bool check_text(const char *what, const char *text)
{
    const size_t size = strlen(text);
    for (size_t at = 0, length; at < size; at += length) {
        length = rapt_utf8_length(text + at, size - at);
        if (length == 0) return rapt_fail(RAPT_ERROR_VALUE, OP, "%s '%.200s' is not UTF-8", what, text);
    }
    return true;
}

static bool check(const rapt_archive *archive)
{
    int64_t size = 0;
    for (int64_t i = 0; i < archive->texts.count; i++) {
        const rapt_named *text = &archive->texts.entries[i];
        if (!check_text("the key", text->name) || !check_text("the text", text->value)) return false;
    }
    for (int64_t i = 0; i < archive->tensors.count; i++) {
        const rapt_named *entry = &archive->tensors.entries[i];
        if (!check_text("the name", entry->name)) return false;
        if (__builtin_add_overflow(size, (int64_t)bytes_of(entry->value), &size))
            return rapt_fail(RAPT_ERROR_VALUE, OP, "the tensors have more bytes than 64 bits can count");
    }
    return true;
}

/* The header ends with spaces, so that the data begins at a multiple of 8 bytes; *size is what it has with them. */
static bool count_header(const rapt_archive *archive, size_t *size)
{
    sink counted = {.file = NULL};
    put_header(&counted, archive);
    *size = (counted.size + size_bytes - 1) / size_bytes * size_bytes;
    return *size <= RAPT_SAFETENSORS_MAX_HEADER ||
           rapt_fail(RAPT_ERROR_VALUE, OP, "names and texts need a header of %zu bytes; the format allows %d", *size,
                     RAPT_SAFETENSORS_MAX_HEADER);
}

static bool write_header(const rapt_replacement *file, const rapt_archive *archive, size_t size)
{
    sink written = {.file = file};
    char bytes[size_bytes];
    for (int i = 0; i < size_bytes; i++) bytes[i] = (char)(size >> 8 * i);
    put(&written, bytes, sizeof bytes);
    put_header(&written, archive);
    while (written.size < size_bytes + size) put(&written, " ", 1);
    flush(&written);
    return !written.failed;
}

static bool write_tensor(const rapt_replacement *file, const rapt_tensor *tensor)
{
    RAPT_SCOPE;
    const rapt_tensor *dense = rapt_as_contiguous(tensor);
    return dense && rapt_replacement_write(file, dense->data, bytes_of(dense));
}

bool rapt_save_safetensors(const char *path, const rapt_archive *archive)
{
    rapt_replacement file;
    size_t header_size;
    if (!path || !archive) return rapt_fail_null(OP, path ? "archive" : "path");
    if (!RAPT_IS_LITTLE_ENDIAN)
        return rapt_fail(RAPT_ERROR_UNSUPPORTED, OP, "the format is little-endian and this machine is not");
    if (!check(archive) || !count_header(archive, &header_size) || !rapt_replacement_begin(&file, OP, path))
        return false;
    bool done = write_header(&file, archive, header_size);
    for (int64_t i = 0; done && i < archive->tensors.count; i++)
        done = write_tensor(&file, archive->tensors.entries[i].value);
    return rapt_replacement_end(&file, done);
}

bool rapt_can_save(const char *path)
{
    rapt_replacement file;
    if (!path) return rapt_fail_null("can_save", "path");
    if (!rapt_replacement_begin(&file, "can_save", path)) return false;
    rapt_replacement_end(&file, false);
    return true;
}
