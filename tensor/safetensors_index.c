/* safetensors in shards: an index, {"metadata": {"total_size": 8}, "weight_map": {"name": "shard"}}, and the shards
 * beside it. https://huggingface.co/docs/safetensors */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive.h"
#include "json.h"
#include "json_write.h"
#include "safetensors.h"
#include "tensor/core.h"

#define LOAD "load_safetensors"
#define SAVE "save_safetensors_shards"
#define ENDING ".safetensors.index.json"

bool rapt_is_index(const char *path)
{
    const size_t size = strlen(path), ending = strlen(".json");
    return size >= ending && strcmp(path + size - ending, ".json") == 0;
}

/* --- reading --- */

typedef struct index_file {
    const char *path;
    char *text;
    rapt_names places; /* the shard of each tensor, in the text */
    rapt_names shards; /* each once; the value is its name again */
} index_file;

static bool fail_index(const index_file *x, const char *what, const char *name)
{
    return rapt_fail(RAPT_ERROR_FORMAT, LOAD, "'%.150s': %s%.100s", x->path, what, name);
}

static bool add_place(index_file *x, const char *name, char *shard)
{
    if (strchr(shard, '/') || *shard == '\0' || *shard == '.')
        return fail_index(x, "a shard is a file beside the index, not ", shard);
    if (rapt_names_find(&x->places, name)) return fail_index(x, "duplicate tensor ", name);
    if (rapt_names_add(&x->places, name, shard) &&
        (rapt_names_find(&x->shards, shard) || rapt_names_add(&x->shards, shard, shard)))
        return true;
    return rapt_fail(RAPT_ERROR_MEMORY, LOAD, "'%.200s': no memory for the index", x->path);
}

/* Of the metadata nothing is needed: texts and whole numbers. */
static bool parse_entries(index_file *x, rapt_json *json, bool is_map)
{
    if (!rapt_json_take(json, '{')) return fail_index(x, "no index: an object expected as its ", "entries");
    for (bool first = true; rapt_json_more(json, '}', &first);) {
        int64_t number;
        const char *name = rapt_json_key(json);
        if (!name) break;
        if (!is_map && rapt_json_count(json, &number)) continue;
        char *shard = rapt_json_string(json);
        if (!shard) break;
        if (is_map && !add_place(x, name, shard)) return false;
    }
    return true;
}

static bool parse_index(index_file *x, size_t size)
{
    rapt_json json = {.begin = x->text, .next = x->text, .end = x->text + size};
    bool has_map = false, has_metadata = false;
    if (!rapt_json_take(&json, '{')) return fail_index(x, "no index: it does not begin with ", "'{'");
    for (bool first = true; rapt_json_more(&json, '}', &first);) {
        const char *key = rapt_json_key(&json);
        if (!key) break;
        const bool is_map = strcmp(key, "weight_map") == 0;
        bool *has = is_map ? &has_map : &has_metadata;
        if (*has || (!is_map && strcmp(key, "metadata") != 0))
            return fail_index(x, "an index has a weight_map and metadata, once each; unexpected: ", key);
        *has = true;
        if (!parse_entries(x, &json, is_map)) return false;
    }
    if (!json.error) rapt_json_end(&json);
    if (json.error)
        return rapt_fail(RAPT_ERROR_FORMAT, LOAD, "'%.200s': byte %lld of the index: %s", x->path,
                         (long long)(json.next - json.begin), json.error);
    return has_map || fail_index(x, "an index has a ", "weight_map");
}

static bool read_text(index_file *x, size_t *size)
{
    rapt_reading r;
    if (!rapt_reading_begin(&r, LOAD, x->path)) return false;
    bool done = false;
    if (r.size > RAPT_SAFETENSORS_MAX_HEADER)
        rapt_fail(RAPT_ERROR_FORMAT, LOAD, "'%.200s': an index of %lld bytes; at most %d expected", x->path,
                  (long long)r.size, RAPT_SAFETENSORS_MAX_HEADER);
    else if (!(x->text = malloc((size_t)r.size + 1)))
        rapt_fail(RAPT_ERROR_MEMORY, LOAD, "'%.200s': no memory for an index of %lld bytes", x->path,
                  (long long)r.size);
    else
        done = rapt_reading_take(&r, x->text, (size_t)r.size);
    *size = (size_t)r.size;
    rapt_reading_end(&r);
    return done;
}

/* Moves what a shard holds to the archive, if the index says that it is there. */
static bool merge(const index_file *x, const char *shard, rapt_archive *from, rapt_archive *archive)
{
    for (int64_t i = 0; i < from->tensors.count; i++) {
        const rapt_named *entry = &from->tensors.entries[i];
        const char *place = rapt_names_find(&x->places, entry->name);
        if (!place || strcmp(place, shard) != 0)
            return rapt_fail(RAPT_ERROR_FORMAT, LOAD, "'%.150s': tensor '%.100s' is in %.100s, where the index has %s",
                             x->path, entry->name, shard, place ? "another shard for it" : "no such tensor");
        if (!rapt_archive_keep(archive, entry->name, entry->value, entry->halves))
            return rapt_fail(RAPT_ERROR_MEMORY, LOAD, "'%.200s': no memory for a name", x->path);
    }
    for (int64_t i = 0; i < from->texts.count; i++) {
        const rapt_named *text = &from->texts.entries[i];
        const char *known = rapt_names_find(&archive->texts, text->name);
        if (known && strcmp(known, text->value) != 0) return fail_index(x, "shards differ in the text ", text->name);
        if (!known && !rapt_archive_add_text(archive, text->name, text->value)) return false;
    }
    return true;
}

static bool read_shard(const index_file *x, const char *shard, bool maps, rapt_archive *archive)
{
    char path[PATH_MAX];
    const char *slash = strrchr(x->path, '/');
    const int folder = slash ? (int)(slash + 1 - x->path) : 0;
    if (snprintf(path, sizeof path, "%.*s%s", folder, x->path, shard) >= (int)sizeof path)
        return fail_index(x, "the path is too long of ", shard);
    rapt_archive *part = rapt_archive_new();
    const bool done = part && rapt_read_safetensors(path, maps, part) && merge(x, shard, part, archive);
    rapt_archive_free(part);
    return done;
}

bool rapt_read_index(const char *path, bool maps, rapt_archive *archive)
{
    index_file x = {.path = path};
    size_t size;
    bool done = read_text(&x, &size) && parse_index(&x, size);
    for (int64_t i = 0; done && i < x.shards.count; i++) done = read_shard(&x, x.shards.entries[i].name, maps, archive);
    for (int64_t i = 0; done && i < x.places.count; i++)
        if (!rapt_names_find(&archive->tensors, x.places.entries[i].name))
            done = rapt_fail(RAPT_ERROR_FORMAT, LOAD, "'%.150s': tensor '%.100s' is not in its shard %.100s", path,
                             x.places.entries[i].name, (const char *)x.places.entries[i].value);
    rapt_names_free(&x.places);
    rapt_names_free(&x.shards);
    free(x.text);
    return done;
}

/* --- writing --- */

typedef struct shards {
    const rapt_archive *archive;
    const char *stem; /* the path of the index without its ending */
    int stem_size, folder_size;
    int64_t most_bytes, total;
    int count;
} shards;

static int64_t bytes_of(const rapt_named *entry)
{
    const rapt_tensor *tensor = entry->value;
    return tensor->count * rapt_element_bytes[tensor->dtype];
}

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

static bool name_shard(const shards *s, int number, bool with_folder, char path[PATH_MAX])
{
    const int skipped = with_folder ? 0 : s->folder_size;
    return snprintf(path, PATH_MAX, "%.*s-%05d-of-%05d.safetensors", s->stem_size - skipped, s->stem + skipped, number,
                    s->count) < PATH_MAX ||
           rapt_fail(RAPT_ERROR_VALUE, SAVE, "the path '%.100s...' is too long", s->stem);
}

static bool write_shard(const shards *s, int number, int64_t first, int64_t end)
{
    char path[PATH_MAX];
    rapt_archive *part = rapt_archive_new();
    bool done = part && name_shard(s, number, true, path);
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

static bool write_index(const shards *s, const char *path)
{
    rapt_replacement file;
    char shard[PATH_MAX];
    if (!rapt_replacement_begin(&file, SAVE, path)) return false;
    rapt_json_sink sink = {.file = &file};
    rapt_json_put_text(&sink, "{\"metadata\":{\"total_size\":");
    rapt_json_put_number(&sink, s->total);
    rapt_json_put_text(&sink, "},\"weight_map\":{");
    int number = 0;
    for (int64_t i = 0, end = 0; i < s->archive->tensors.count; i++) {
        if (i == end) {
            end = end_of(s, i);
            name_shard(s, ++number, false, shard);
        }
        rapt_json_put_text(&sink, i > 0 ? ",\n" : "\n");
        rapt_json_put_string(&sink, s->archive->tensors.entries[i].name);
        rapt_json_put_text(&sink, ":");
        rapt_json_put_string(&sink, shard);
    }
    rapt_json_put_text(&sink, "\n}}\n");
    return rapt_replacement_end(&file, rapt_json_flush(&sink));
}

static bool check(shards *s, const char *path)
{
    enum { most_shards = 99999 };
    const size_t size = strlen(path), ending = strlen(ENDING);
    if (size <= ending || strcmp(path + size - ending, ENDING) != 0 || path[size - ending - 1] == '/')
        return rapt_fail(RAPT_ERROR_VALUE, SAVE, "the path '%.200s' does not end in NAME" ENDING, path);
    if (s->most_bytes <= 0)
        return rapt_fail(RAPT_ERROR_VALUE, SAVE, "shards of %lld bytes; 1 or more expected", (long long)s->most_bytes);
    if (size >= PATH_MAX) return rapt_fail(RAPT_ERROR_VALUE, SAVE, "the path '%.100s...' is too long", path);
    s->stem_size = (int)(size - ending);
    for (int i = 0; i < s->stem_size; i++)
        if (path[i] == '/') s->folder_size = i + 1;
    if (!rapt_is_utf8(path + s->folder_size))
        return rapt_fail(RAPT_ERROR_VALUE, SAVE, "the name of '%.200s' is not UTF-8", path);
    for (int64_t i = 0; i < s->archive->tensors.count; i = end_of(s, i))
        if (s->count++ == most_shards)
            return rapt_fail(RAPT_ERROR_VALUE, SAVE, "more than %d shards of %lld bytes", most_shards,
                             (long long)s->most_bytes);
    for (int64_t i = 0; i < s->archive->tensors.count; i++)
        if (__builtin_add_overflow(s->total, bytes_of(&s->archive->tensors.entries[i]), &s->total))
            return rapt_fail(RAPT_ERROR_VALUE, SAVE, "the tensors have more bytes than 64 bits can count");
    return true;
}

bool rapt_save_safetensors_shards(const char *path, const rapt_archive *archive, int64_t most_bytes)
{
    shards s = {.archive = archive, .stem = path, .most_bytes = most_bytes};
    if (!path || !archive) return rapt_fail_null(SAVE, path ? "archive" : "path");
    if (!check(&s, path)) return false;
    int number = 0;
    for (int64_t i = 0, end; i < archive->tensors.count; i = end) {
        end = end_of(&s, i);
        if (!write_shard(&s, ++number, i, end)) return false;
    }
    return write_index(&s, path);
}
