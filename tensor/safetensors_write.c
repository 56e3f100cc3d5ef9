/* Writing safetensors files. */
#include <stdlib.h>
#include <string.h>

#include "tensor/archive.h"
#include "tensor/core.h"
#include "tensor/replace_file.h"
#include "tensor/safetensors.h"

#define OP "save_safetensors"

enum { size_bytes = 8 };

static bool fail_memory(void)
{
    return rapt_fail(RAPT_ERROR_MEMORY, OP, "no memory for the header");
}

/* JSON is UTF-8. */
static bool check_text(const char *what, const char *text)
{
    json_t *checked = json_string(text), *unchecked = json_string_nocheck(text);
    const bool valid = checked, memory = unchecked;
    json_decref(checked);
    json_decref(unchecked);
    if (!memory) return fail_memory();
    return valid || rapt_fail(RAPT_ERROR_VALUE, OP, "%s '%.200s' is not UTF-8", what, text);
}

static bool describe_texts(json_t *header, const rapt_names *texts)
{
    if (texts->count == 0) return true;
    json_t *metadata = json_object();
    if (json_object_set_new(header, RAPT_METADATA_KEY, metadata) != 0) return fail_memory();
    for (int64_t i = 0; i < texts->count; i++) {
        const rapt_named *text = &texts->entries[i];
        if (!check_text("the key", text->name) || !check_text("the text", text->value)) return false;
        if (json_object_set_new(metadata, text->name, json_string(text->value)) != 0) return fail_memory();
    }
    return true;
}

static size_t bytes_of(const rapt_tensor *tensor)
{
    return (size_t)tensor->count * rapt_dtype_size((rapt_dtype)tensor->dtype);
}

static bool describe_tensor(json_t *header, const char *name, const rapt_tensor *tensor, int64_t *offset)
{
    if (!check_text("the name", name)) return false;
    const int64_t begin = *offset;
    if (__builtin_add_overflow(begin, (int64_t)bytes_of(tensor), offset))
        return rapt_fail(RAPT_ERROR_VALUE, OP, "the tensors have more bytes than 64 bits can count");
    json_t *shape = json_array();
    bool done = shape;
    for (int axis = 0; done && axis < tensor->rank; axis++)
        done = json_array_append_new(shape, json_integer(tensor->shape[axis])) == 0;
    const char *type = rapt_stored_type_name((rapt_dtype)tensor->dtype);
    done = done && json_object_set_new(header, name,
                                       json_pack("{s:s, s:O, s:[I, I]}", "dtype", type, "shape", shape, "data_offsets",
                                                 (json_int_t)begin, (json_int_t)*offset)) == 0;
    json_decref(shape);
    return done || fail_memory();
}

/* The header's text, to be freed; NULL and an error if there is none. */
static char *make_header(const rapt_archive *archive)
{
    json_t *header = json_object();
    if (!header) {
        fail_memory();
        return NULL;
    }
    int64_t offset = 0;
    bool done = describe_texts(header, &archive->texts);
    for (int64_t i = 0; done && i < archive->tensors.count; i++)
        done = describe_tensor(header, archive->tensors.entries[i].name, archive->tensors.entries[i].value, &offset);
    char *text = done ? json_dumps(header, JSON_COMPACT) : NULL;
    if (done && !text) fail_memory();
    json_decref(header);
    return text;
}

/* The header ends with spaces, so that the data begins at a multiple of 8 bytes. */
static bool write_header(const rapt_replacement *file, const char *text)
{
    static const char spaces[size_bytes + 1] = "        ";
    const size_t length = strlen(text), padding = (size_bytes - length % size_bytes) % size_bytes;
    const uint64_t size = length + padding;
    if (size > RAPT_SAFETENSORS_MAX_HEADER)
        return rapt_fail(RAPT_ERROR_VALUE, OP, "names and texts need a header of %llu bytes; the format allows %d",
                         (unsigned long long)size, RAPT_SAFETENSORS_MAX_HEADER);
    uint8_t bytes[size_bytes];
    for (int i = 0; i < size_bytes; i++) bytes[i] = (uint8_t)(size >> 8 * i);
    return rapt_replacement_write(file, bytes, sizeof bytes) && rapt_replacement_write(file, text, length) &&
           rapt_replacement_write(file, spaces, padding);
}

static bool write_tensor(const rapt_replacement *file, const rapt_tensor *tensor)
{
    RAPT_SCOPE;
    const rapt_tensor *dense = rapt_as_contiguous(tensor);
    return dense && rapt_replacement_write(file, dense->data, bytes_of(dense));
}

static bool write_file(const char *path, const char *header, const rapt_archive *archive)
{
    rapt_replacement file;
    if (!rapt_replacement_begin(&file, OP, path)) return false;
    bool done = write_header(&file, header);
    for (int64_t i = 0; done && i < archive->tensors.count; i++)
        done = write_tensor(&file, archive->tensors.entries[i].value);
    return rapt_replacement_end(&file, done);
}

bool rapt_save_safetensors(const char *path, const rapt_archive *archive)
{
    if (!path || !archive) return rapt_fail_null(OP, path ? "archive" : "path");
    if (!RAPT_IS_LITTLE_ENDIAN)
        return rapt_fail(RAPT_ERROR_UNSUPPORTED, OP, "the format is little-endian and this machine is not");
    char *header = make_header(archive);
    const bool done = header && write_file(path, header, archive);
    free(header);
    return done;
}

bool rapt_can_save(const char *path)
{
    rapt_replacement file;
    if (!path) return rapt_fail_null("can_save", "path");
    if (!rapt_replacement_begin(&file, "can_save", path)) return false;
    rapt_replacement_end(&file, false);
    return true;
}
