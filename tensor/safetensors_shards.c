/* Writing safetensors in shards: the shards of an archive, and the index of shards that are there. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "json_write.h"
#include "safetensors.h"
#include "tensor/archive.h"
#include "tensor/core.h"
#include "tensor/debug.h"
#include "tensor/utf8.h"

#define SAVE "save_safetensors_shards"
#define INDEX "save_safetensors_index"

static int64_t bytes_of(const rapt_named *entry)
{
    const rapt_tensor *tensor = entry->value;
    return tensor->count * rapt_element_bytes[tensor->dtype];
}

static bool add_bytes(const char *op, int64_t bytes, int64_t *total)
{
    return !__builtin_add_overflow(*total, bytes, total) ||
           rapt_fail(RAPT_ERROR_VALUE, op, "the tensors have more bytes than 64 bits can count");
}

/* --- the index --- */

typedef struct index_of {
    const char *path;
    rapt_names places; /* the shard of each tensor */
    int64_t total;     /* bytes of all tensors */
    const char *shard; /* that is being added */
} index_of;

static bool add_entry(const rapt_stored_tensor *stored, void *context)
{
    index_of *x = context;
    if (rapt_names_find(&x->places, stored->name))
        return rapt_fail(RAPT_ERROR_FORMAT, INDEX, "'%.150s': %.100s has tensor '%.100s', which another shard has",
                         x->path, x->shard, stored->name);
    if (!rapt_names_add(&x->places, stored->name, (char *)x->shard))
        return rapt_fail(RAPT_ERROR_MEMORY, INDEX, "'%.200s': no memory for a name", x->path);
    return add_bytes(INDEX, stored->end - stored->begin, &x->total);
}

/* Adds what a shard holds, of which only the header is read. */
static bool add_shard(index_of *x, const char *shard)
{
    char path[PATH_MAX];
    if (!shard) return rapt_fail_null(INDEX, "a shard");
    if (!rapt_is_shard_name(shard) || !rapt_is_utf8(shard))
        return rapt_fail(RAPT_ERROR_VALUE, INDEX, "'%.200s' is no name of a shard: a file beside the index, in UTF-8",
                         shard);
    if (!rapt_shard_path(x->path, shard, path))
        return rapt_fail(RAPT_ERROR_VALUE, INDEX, "the path '%.100s...' is too long", x->path);
    x->shard = shard;
    return rapt_visit_safetensors(path, add_entry, x);
}

/* shard: that of all tensors; NULL: the values are their shards. */
static void put_index(rapt_json_sink *s, const rapt_names *places, const char *shard, int64_t total)
{
    rapt_json_put_text(s, "{\"metadata\":{\"total_size\":");
    rapt_json_put_number(s, total);
    rapt_json_put_text(s, "},\"weight_map\":{");
    for (int64_t i = 0; i < places->count; i++) {
        rapt_json_put_text(s, i > 0 ? ",\n" : "\n");
        rapt_json_put_string(s, places->entries[i].name);
        rapt_json_put_text(s, ":");
        rapt_json_put_string(s, shard ? shard : places->entries[i].value);
    }
    rapt_json_put_text(s, "\n}}\n");
}

/* Is the index one that can be read? */
static bool count_index(const char *op, const rapt_names *places, const char *shard, int64_t total)
{
    rapt_json_sink counted = {.file = NULL};
    put_index(&counted, places, shard, total);
    return counted.size <= RAPT_SAFETENSORS_MAX_HEADER ||
           rapt_fail(RAPT_ERROR_VALUE, op, "the names need an index of %zu bytes; at most %d can be read", counted.size,
                     RAPT_SAFETENSORS_MAX_HEADER);
}

static bool write_index(const index_of *x)
{
    rapt_replacement file;
    if (!count_index(INDEX, &x->places, NULL, x->total) || !rapt_replacement_begin(&file, INDEX, x->path)) return false;
    rapt_json_sink sink = {.file = &file};
    put_index(&sink, &x->places, NULL, x->total);
    return rapt_replacement_end(&file, rapt_json_flush(&sink));
}

bool rapt_save_safetensors_index(const char *path, const char *const *shards, int count)
{
    if (!path || (!shards && count > 0)) return rapt_fail_null(INDEX, path ? "shards" : "path");
    if (count < 0) return rapt_fail(RAPT_ERROR_VALUE, INDEX, "%d shards; 0 or more expected", count);
    char target[PATH_MAX];
    index_of x = {.path = target};
    bool done = rapt_index_target(INDEX, path, target);
    for (int i = 0; done && i < count; i++) done = add_shard(&x, shards[i]);
    done = done && write_index(&x);
    rapt_names_free(&x.places);
    return done;
}

/* --- the shards of an archive --- */

typedef struct shards {
    const rapt_archive *archive;
    const char *path; /* of the index */
    int64_t most_bytes;
    int64_t total; /* bytes of all tensors */
    rapt_shard_set set;
} shards;

/* Behind the last tensor of the shard that begins with that one. */
static int64_t end_of(const shards *s, int64_t first)
{
    const rapt_names *tensors = &s->archive->tensors;
    int64_t bytes = 0, i = first;
    for (; i < tensors->count; i++) {
        const int64_t more = bytes_of(&tensors->entries[i]);
        if (i > first && more > s->most_bytes - bytes) break;
        bytes += more;
    }
    return i;
}

static bool write_shard(const shards *s, int number, int64_t first, int64_t end)
{
    char path[PATH_MAX];
    rapt_archive *part = rapt_archive_new();
    bool done = part && rapt_shard_set_path(s->path, &s->set, number, path, sizeof path);
    for (int64_t i = first; done && i < end; i++) {
        const rapt_named *entry = &s->archive->tensors.entries[i];
        done = rapt_archive_add(part, entry->name, entry->value);
        if (done) part->tensors.entries[i - first].halves = entry->halves;
    }
    for (int64_t i = 0; done && i < s->archive->texts.count; i++) {
        const rapt_named *text = &s->archive->texts.entries[i];
        done = rapt_archive_add_text(part, text->name, text->value);
    }
    done = done && rapt_save_safetensors(path, part);
    rapt_archive_free(part);
    return done;
}

/* Counts the shards and the bytes, too. */
static bool check(shards *s, int *count)
{
    enum { most_shards = 99999 };
    const char *slash = strrchr(s->path, '/');
    if (s->most_bytes <= 0)
        return rapt_fail(RAPT_ERROR_VALUE, SAVE, "shards of %lld bytes; 1 or more expected", (long long)s->most_bytes);
    if (!rapt_is_utf8(slash ? slash + 1 : s->path))
        return rapt_fail(RAPT_ERROR_VALUE, SAVE, "the name of '%.200s' is not UTF-8", s->path);
    if (s->archive->tensors.count == 0 && s->archive->texts.count > 0)
        return rapt_fail(RAPT_ERROR_VALUE, SAVE, "the archive has texts and no tensors, and so no shard to hold them");
    for (int64_t i = 0; i < s->archive->tensors.count; i = end_of(s, i))
        if ((*count)++ == most_shards)
            return rapt_fail(RAPT_ERROR_VALUE, SAVE, "more than %d shards of %lld bytes", most_shards,
                             (long long)s->most_bytes);
    for (int64_t i = 0; i < s->archive->tensors.count; i++)
        if (!add_bytes(SAVE, bytes_of(&s->archive->tensors.entries[i]), &s->total)) return false;
    return true;
}

/* The names of all shards are as long as the first one's. */
static bool check_index(const shards *s)
{
    char path[PATH_MAX];
    if (s->set.count == 0) return true;
    if (!rapt_shard_set_path(s->path, &s->set, 1, path, sizeof path)) return false;
    const char *slash = strrchr(path, '/');
    return count_index(SAVE, &s->archive->tensors, slash ? slash + 1 : path, s->total);
}

bool rapt_save_safetensors_shards(const char *path, const rapt_archive *archive, int64_t most_bytes)
{
    char target[PATH_MAX] = "";
    shards s = {.archive = archive, .path = target, .most_bytes = most_bytes};
    if (!path || !archive) return rapt_fail_null(SAVE, path ? "archive" : "path");
    if (rapt_was_freed(SAVE, archive)) return false;
    int count = 0, written = 0;
    rapt_error_hold(); /* until the shards of a set that does not come about are gone */
    const bool is_chosen =
        rapt_index_target(SAVE, path, target) && check(&s, &count) && rapt_shard_set_choose(target, count, &s.set);
    bool done = is_chosen && check_index(&s);
    for (int64_t i = 0, end; done && i < archive->tensors.count; i = end) {
        end = end_of(&s, i);
        done = write_shard(&s, written + 1, i, end);
        written += done;
    }
    struct stat before = {.st_ino = 0}, after = {.st_ino = 0};
    stat(target, &before);
    done = done && rapt_shard_set_save_index(target, &s.set);
    stat(target, &after); /* which is another file where only the syncing of its folder failed */
    if (is_chosen && !done && before.st_ino == after.st_ino) rapt_shard_set_drop(target, &s.set, count);
    rapt_error_release();
    return done;
}
