/* Archives: tensors and texts by name, on their way to or from a file. */
#include "tensor/archive.h"

#include <stdlib.h>
#include <string.h>

#include "safetensors.h"
#include "tensor/debug.h"

/* Takes over the value, but only when it returns true. */
static bool add(const char *op, rapt_names *names, const char *name, void *value)
{
    if (rapt_names_find(names, name))
        return rapt_fail(RAPT_ERROR_VALUE, op, "the name '%.200s' is in use already", name);
    return rapt_names_add(names, name, value) ||
           rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for the name '%.200s'", name);
}

rapt_archive *rapt_archive_new(void)
{
    rapt_archive *archive = calloc(1, sizeof *archive);
    if (!archive) rapt_fail(RAPT_ERROR_MEMORY, "archive_new", "no memory for an archive");
    return archive;
}

bool rapt_archive_cut(rapt_archive *archive, int64_t tensors, int64_t texts)
{
    for (int64_t i = tensors; i < archive->tensors.count; i++) rapt_release(archive->tensors.entries[i].value);
    for (int64_t i = texts; i < archive->texts.count; i++) free(archive->texts.entries[i].value);
    rapt_names_cut(&archive->tensors, tensors);
    rapt_names_cut(&archive->texts, texts);
    return false;
}

void rapt_archive_free(rapt_archive *archive)
{
    if (!archive || rapt_was_freed("archive_free", archive)) return;
    rapt_archive_cut(archive, 0, 0);
    rapt_names_free(&archive->tensors);
    rapt_names_free(&archive->texts);
    rapt_free_object(archive, "archive");
}

bool rapt_archive_add(rapt_archive *archive, const char *name, rapt_tensor *tensor)
{
    if (!archive || !name) return rapt_fail_null("archive_add", archive ? "name" : "archive");
    if (!tensor) return rapt_fail(RAPT_ERROR_NULL, "archive_add", "the tensor for '%s' is NULL", name);
    if (rapt_was_freed("archive_add", archive)) return false;
    if (!rapt_check_alive("archive_add", "the tensor", tensor)) return false;
    if (strcmp(name, RAPT_METADATA_KEY) == 0)
        return rapt_fail(RAPT_ERROR_VALUE, "archive_add", "the name '%s' is the format's own", RAPT_METADATA_KEY);
    if (!add("archive_add", &archive->tensors, name, tensor)) return false;
    rapt_retain(tensor);
    return true;
}

bool rapt_archive_keep(rapt_archive *archive, const char *name, rapt_tensor *tensor,
                       const struct rapt_stored_type *halves)
{
    if (!rapt_names_add(&archive->tensors, name, tensor)) return false;
    archive->tensors.entries[archive->tensors.count - 1].halves = halves;
    rapt_retain(tensor);
    return true;
}

bool rapt_archive_add_text(rapt_archive *archive, const char *key, const char *text)
{
    if (!archive || !key || !text)
        return rapt_fail_null("archive_add_text", !archive ? "archive" : !key ? "key" : "text");
    if (rapt_was_freed("archive_add_text", archive)) return false;
    char *copy = strdup(text);
    if (!copy)
        return rapt_fail(RAPT_ERROR_MEMORY, "archive_add_text", "no memory for a text of %zu bytes", strlen(text));
    if (add("archive_add_text", &archive->texts, key, copy)) return true;
    free(copy);
    return false;
}

rapt_tensor *rapt_archive_open(const rapt_named *entry)
{
    if (!entry->halves) return entry->value;
    const rapt_tensor *bytes = entry->value;
    rapt_tensor *wide = rapt_new("archive_tensor", entry->halves->dtype, bytes->rank - 1, bytes->shape);
    if (!wide) return NULL;
    entry->halves->widen(bytes->data, wide->count, (float *)(void *)wide->data);
    wide->storage->is_read_only = true; /* what is written there would not reach the archive */
    return wide;
}

rapt_tensor *rapt_archive_find(const rapt_archive *archive, const char *name)
{
    if (rapt_was_freed("archive_find", archive)) return NULL;
    if (archive && name) {
        const rapt_named *entry = rapt_names_entry(&archive->tensors, name);
        return entry ? rapt_archive_open(entry) : NULL;
    }
    rapt_fail_null("archive_find", archive ? "name" : "archive");
    return NULL;
}

const char *rapt_archive_find_text(const rapt_archive *archive, const char *key)
{
    if (rapt_was_freed("archive_find_text", archive)) return NULL;
    if (archive && key) return rapt_names_find(&archive->texts, key);
    rapt_fail_null("archive_find_text", archive ? "key" : "archive");
    return NULL;
}

const char *rapt_archive_key(const rapt_archive *archive, int64_t index)
{
    if (!archive) return rapt_fail_null("archive_key", "archive"), NULL;
    if (rapt_was_freed("archive_key", archive)) return NULL;
    return index >= 0 && index < archive->texts.count ? archive->texts.entries[index].name : NULL;
}

int64_t rapt_archive_count(const rapt_archive *archive)
{
    if (rapt_was_freed("archive_count", archive)) return 0;
    if (archive) return archive->tensors.count;
    rapt_fail_null("archive_count", "archive");
    return 0;
}

static const rapt_named *entry_at(const char *op, const rapt_archive *archive, int64_t index)
{
    if (!archive) {
        rapt_fail_null(op, "archive");
        return NULL;
    }
    if (rapt_was_freed(op, archive)) return NULL;
    return index >= 0 && index < archive->tensors.count ? &archive->tensors.entries[index] : NULL;
}

const char *rapt_archive_stored_type(const rapt_archive *archive, int64_t index)
{
    const rapt_named *entry = entry_at("archive_stored_type", archive, index);
    if (!entry) return NULL;
    return entry->halves ? entry->halves->name : rapt_stored_type_name(((rapt_tensor *)entry->value)->dtype);
}

const char *rapt_archive_name(const rapt_archive *archive, int64_t index)
{
    const rapt_named *entry = entry_at("archive_name", archive, index);
    return entry ? entry->name : NULL;
}

rapt_tensor *rapt_archive_tensor(const rapt_archive *archive, int64_t index)
{
    const rapt_named *entry = entry_at("archive_tensor", archive, index);
    return entry ? rapt_archive_open(entry) : NULL;
}
