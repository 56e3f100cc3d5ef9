/* Reading safetensors in shards: an index, {"metadata": {"total_size": 8}, "weight_map": {"name": "shard"}}, and the
 * shards beside it. https://huggingface.co/docs/safetensors */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "safetensors.h"
#include "tensor/archive.h"
#include "tensor/core.h"
#include "tensor/replace_file.h"

#define LOAD "load_safetensors"

bool rapt_is_index(const char *path)
{
    const size_t size = strlen(path), ending = strlen(".json");
    return size >= ending && strcmp(path + size - ending, ".json") == 0;
}

bool rapt_is_shard_name(const char *name)
{
    return *name != '\0' && *name != '.' && !strchr(name, '/');
}

bool rapt_shard_path(const char *index, const char *shard, char path[PATH_MAX])
{
    const char *slash = strrchr(index, '/');
    const int folder = slash ? (int)(slash + 1 - index) : 0;
    return snprintf(path, PATH_MAX, "%.*s%s", folder, index, shard) < PATH_MAX;
}

typedef struct index_file {
    const char *op, *path;
    bool may_be_none;     /* what is wrong with the text is no error */
    rapt_reading reading; /* open, so that it can be seen whether another file took its place */
    char *text;
    rapt_names places; /* the shard of each tensor, in the text */
    rapt_names shards; /* each once; the value is its name again */
} index_file;

static bool fail_index(const index_file *x, const char *what, const char *name)
{
    return !x->may_be_none && rapt_fail(RAPT_ERROR_FORMAT, x->op, "'%.150s': %s%.100s", x->path, what, name);
}

static bool add_place(index_file *x, const char *name, char *shard)
{
    if (!rapt_is_shard_name(shard)) return fail_index(x, "a shard is a file beside the index, not ", shard);
    if (rapt_names_find(&x->places, name)) return fail_index(x, "duplicate tensor ", name);
    if (rapt_names_add(&x->places, name, shard) &&
        (rapt_names_find(&x->shards, shard) || rapt_names_add(&x->shards, shard, shard)))
        return true;
    return rapt_fail(RAPT_ERROR_MEMORY, x->op, "'%.200s': no memory for the index", x->path);
}

static bool parse_map(index_file *x, rapt_json *json)
{
    if (!rapt_json_take(json, '{')) return fail_index(x, "no index: an object expected as its ", "weight_map");
    for (bool first = true; rapt_json_more(json, '}', &first);) {
        const char *name = rapt_json_key(json);
        char *shard = name ? rapt_json_string(json) : NULL;
        if (!shard) break;
        if (!add_place(x, name, shard)) return false;
    }
    return true;
}

/* Of whatever else it has, nothing is needed. */
static bool parse_index(index_file *x)
{
    rapt_json json = {.begin = x->text, .next = x->text, .end = x->text + x->reading.size};
    int maps = 0;
    if (!rapt_json_take(&json, '{')) return fail_index(x, "no index: it does not begin with ", "'{'");
    for (bool first = true; maps < 2 && rapt_json_more(&json, '}', &first);) {
        const char *key = rapt_json_key(&json);
        if (!key) break;
        if (strcmp(key, "weight_map") != 0)
            rapt_json_skip(&json);
        else if (maps++ == 0 && !parse_map(x, &json))
            return false;
    }
    if (maps < 2 && !json.error) rapt_json_end(&json);
    if (json.error)
        return !x->may_be_none && rapt_fail(RAPT_ERROR_FORMAT, x->op, "'%.200s': byte %lld of the index: %s", x->path,
                                            (long long)(json.next - json.begin), json.error);
    return maps == 1 || fail_index(x, "an index has one ", "weight_map");
}

static bool read_text(index_file *x)
{
    const int64_t size = x->reading.size;
    if (size > RAPT_SAFETENSORS_MAX_HEADER)
        return !x->may_be_none &&
               rapt_fail(RAPT_ERROR_FORMAT, x->op, "'%.200s': an index of %lld bytes; at most %d expected", x->path,
                         (long long)size, RAPT_SAFETENSORS_MAX_HEADER);
    x->text = malloc((size_t)size + 1);
    if (!x->text)
        return rapt_fail(RAPT_ERROR_MEMORY, x->op, "'%.200s': no memory for an index of %lld bytes", x->path,
                         (long long)size);
    return rapt_reading_take(&x->reading, x->text, (size_t)size);
}

/* Moves what a shard holds to the archive, if the index says that it is there. */
static bool merge(const index_file *x, const char *shard, rapt_archive *from, rapt_archive *archive)
{
    for (int64_t i = 0; i < from->tensors.count; i++) {
        const rapt_named *entry = &from->tensors.entries[i];
        const char *place = rapt_names_find(&x->places, entry->name);
        if (!place || strcmp(place, shard) != 0)
            return rapt_fail(RAPT_ERROR_FORMAT, x->op, "'%.150s': tensor '%.100s' is in %.100s, where the index has %s",
                             x->path, entry->name, shard, place ? "another shard for it" : "no such tensor");
        if (!rapt_archive_keep(archive, entry->name, entry->value, entry->halves))
            return rapt_fail(RAPT_ERROR_MEMORY, x->op, "'%.200s': no memory for a name", x->path);
    }
    for (int64_t i = 0; i < from->texts.count; i++) {
        const rapt_named *text = &from->texts.entries[i];
        const char *known = rapt_names_find(&archive->texts, text->name);
        if (known && strcmp(known, text->value) != 0) return fail_index(x, "shards differ in the text ", text->name);
        if (!known && !rapt_archive_add_text(archive, text->name, text->value)) return false;
    }
    return true;
}

/* Beside the index, or, where that is a link, beside what it leads to. */
static bool find_shard(const index_file *x, const char *shard, char path[PATH_MAX])
{
    char target[PATH_MAX], other[PATH_MAX];
    if (!rapt_shard_path(x->path, shard, path)) return fail_index(x, "the path is too long of ", shard);
    if (access(path, F_OK) == 0) return true;
    if (!rapt_follow_links(x->op, x->path, target)) return false;
    if (rapt_shard_path(target, shard, other) && access(other, F_OK) == 0) strcpy(path, other);
    return true;
}

static bool read_shard(const index_file *x, const char *shard, bool maps, rapt_archive *archive)
{
    char path[PATH_MAX];
    if (!find_shard(x, shard, path)) return false;
    rapt_archive *part = rapt_archive_new();
    const bool done = part && rapt_read_safetensors(path, maps, part) && merge(x, shard, part, archive);
    rapt_archive_free(part);
    return done;
}

bool rapt_read_index(const char *path, bool maps, rapt_archive *archive)
{
    index_file x = {.op = LOAD, .path = path};
    if (!rapt_reading_begin(&x.reading, LOAD, path)) return false;
    bool done = read_text(&x) && parse_index(&x);
    for (int64_t i = 0; done && i < x.shards.count; i++) done = read_shard(&x, x.shards.entries[i].name, maps, archive);
    done = done && rapt_reading_check_place(&x.reading);
    for (int64_t i = 0; done && i < x.places.count; i++)
        if (!rapt_names_find(&archive->tensors, x.places.entries[i].name))
            done = rapt_fail(RAPT_ERROR_FORMAT, LOAD, "'%.150s': tensor '%.100s' is not in its shard %.100s", path,
                             x.places.entries[i].name, (const char *)x.places.entries[i].value);
    rapt_reading_end(&x.reading);
    rapt_names_free(&x.places);
    rapt_names_free(&x.shards);
    free(x.text);
    return done;
}

bool rapt_index_shards(const char *op, const char *path, rapt_names *shards, bool *is_whole)
{
    index_file x = {.op = op, .path = path, .may_be_none = true};
    *is_whole = false;
    if (access(path, F_OK) != 0 && errno == ENOENT) return true;
    const uint64_t failures = rapt_count_failures();
    if (!rapt_reading_begin(&x.reading, op, path)) return false;
    *is_whole = read_text(&x) && parse_index(&x);
    *shards = x.shards;
    rapt_reading_end(&x.reading);
    rapt_names_free(&x.places);
    free(x.text);
    return rapt_count_failures() == failures;
}
