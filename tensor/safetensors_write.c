/* Writing safetensors files. */
#include <string.h>

#include "byte_order.h"
#include "json_write.h"
#include "safetensors.h"
#include "tensor/archive.h"
#include "tensor/core.h"
#include "tensor/debug.h"
#include "tensor/utf8.h"

#define OP "save_safetensors"

enum { size_bytes = 8 };

static size_t bytes_of(const rapt_tensor *tensor)
{
    return (size_t)tensor->count * rapt_dtype_size(tensor->dtype);
}

static void put_metadata(rapt_json_sink *s, const rapt_names *texts)
{
    rapt_json_put_string(s, RAPT_METADATA_KEY);
    for (int64_t i = 0; i < texts->count; i++) {
        rapt_json_put_text(s, i ? "," : ":{");
        rapt_json_put_string(s, texts->entries[i].name);
        rapt_json_put_text(s, ":");
        rapt_json_put_string(s, texts->entries[i].value);
    }
    rapt_json_put_text(s, "}");
}

static void put_tensor(rapt_json_sink *s, const rapt_named *entry, int64_t begin)
{
    const rapt_tensor *tensor = entry->value;
    const int rank = tensor->rank - (entry->halves != NULL);
    rapt_json_put_string(s, entry->name);
    rapt_json_put_text(s, ":{\"dtype\":");
    rapt_json_put_string(s, entry->halves ? entry->halves->name : rapt_stored_type_name(tensor->dtype));
    rapt_json_put_text(s, ",\"shape\":[");
    for (int axis = 0; axis < rank; axis++) {
        if (axis > 0) rapt_json_put_text(s, ",");
        rapt_json_put_number(s, tensor->shape[axis]);
    }
    rapt_json_put_text(s, "],\"data_offsets\":[");
    rapt_json_put_number(s, begin);
    rapt_json_put_text(s, ",");
    rapt_json_put_number(s, begin + (int64_t)bytes_of(tensor));
    rapt_json_put_text(s, "]}");
}

static void put_header(rapt_json_sink *s, const rapt_archive *archive)
{
    int64_t offset = 0;
    rapt_json_put_text(s, "{");
    if (archive->texts.count > 0) put_metadata(s, &archive->texts);
    for (int64_t i = 0; i < archive->tensors.count; i++) {
        const rapt_named *entry = &archive->tensors.entries[i];
        if (i > 0 || archive->texts.count > 0) rapt_json_put_text(s, ",");
        put_tensor(s, entry, offset);
        offset += (int64_t)bytes_of(entry->value);
    }
    rapt_json_put_text(s, "}");
}

/* JSON is UTF-8. */
static bool check_text(const char *what, const char *text)
{
    return rapt_is_utf8(text) || rapt_fail(RAPT_ERROR_VALUE, OP, "%s '%.200s' is not UTF-8", what, text);
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
    rapt_json_sink counted = {.file = NULL};
    put_header(&counted, archive);
    *size = (counted.size + size_bytes - 1) / size_bytes * size_bytes;
    return *size <= RAPT_SAFETENSORS_MAX_HEADER ||
           rapt_fail(RAPT_ERROR_VALUE, OP, "names and texts need a header of %zu bytes; the format allows %d", *size,
                     RAPT_SAFETENSORS_MAX_HEADER);
}

static bool write_header(const rapt_replacement *file, const rapt_archive *archive, size_t size)
{
    rapt_json_sink written = {.file = file};
    char bytes[size_bytes];
    for (int i = 0; i < size_bytes; i++) bytes[i] = (char)(size >> 8 * i);
    rapt_json_put(&written, bytes, sizeof bytes);
    put_header(&written, archive);
    while (written.size < size_bytes + size) rapt_json_put(&written, " ", 1);
    return rapt_json_flush(&written);
}

static bool write_tensor(const rapt_replacement *file, const rapt_tensor *tensor)
{
    RAPT_SCOPE;
    const rapt_tensor *dense = rapt_as_in_file(tensor);
    return dense && rapt_replacement_write(file, dense->data, bytes_of(dense));
}

/* What has such a name would be read as an index. */
static bool check_path(const char *op, const char *path)
{
    return !rapt_is_index(path) ||
           rapt_fail(RAPT_ERROR_VALUE, op, "the path '%.200s' ends in .json, as those of indexes do; another expected",
                     path);
}

bool rapt_save_safetensors(const char *path, const rapt_archive *archive)
{
    rapt_replacement file;
    size_t header_size;
    if (!path || !archive) return rapt_fail_null(OP, path ? "archive" : "path");
    if (rapt_was_freed(OP, archive)) return false;
    if (!check_path(OP, path) || !check(archive) || !count_header(archive, &header_size) ||
        !rapt_replacement_begin(&file, OP, path))
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
    if (!check_path("can_save", path) || !rapt_replacement_begin(&file, "can_save", path)) return false;
    rapt_replacement_end(&file, false);
    return true;
}
