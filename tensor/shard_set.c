/* Sets of shards: names that the index which is there does not lead to, and the change from its shards to new ones. */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "safetensors.h"
#include "tensor/archive.h"
#include "tensor/core.h"

#define CHOOSE "shard_set_choose"
#define PATH "shard_set_path"
#define SAVE "shard_set_save_index"
#define ENDING ".safetensors.index.json"
#define NUMBER "-00000"

enum { most_shards = 99999, ending_size = 64 };

bool rapt_check_index_path(const char *op, const char *path)
{
    const size_t size = strlen(path), ending = strlen(ENDING);
    if (size <= ending || strcmp(path + size - ending, ENDING) != 0 || path[size - ending - 1] == '/')
        return rapt_fail(RAPT_ERROR_VALUE, op, "the path '%.200s' does not end in NAME" ENDING, path);
    return size < PATH_MAX || rapt_fail(RAPT_ERROR_VALUE, op, "the path '%.100s...' is too long", path);
}

static bool check_set(const char *op, const char *path, const rapt_shard_set *set)
{
    if (!path || !set) return rapt_fail_null(op, path ? "set" : "path");
    if (!rapt_check_index_path(op, path)) return false;
    const bool good = !set->letter || (set->letter >= 'a' && set->letter <= 'z');
    return (good && set->count >= 0 && set->count <= most_shards) ||
           rapt_fail(RAPT_ERROR_VALUE, op, "a set of %d shards with letter %d; at most %d, and 0 or a to z, expected",
                     set->count, set->letter, most_shards);
}

/* What comes behind the number in the names of a set. */
static void put_ending(const rapt_shard_set *set, char text[ending_size])
{
    const char letter[] = {'-', set->letter, '\0'};
    snprintf(text, ending_size, "-of-%05d%s.safetensors", set->count, set->letter ? letter : "");
}

static bool fits(const char *text, const char *pattern)
{
    for (; *pattern; pattern++, text++) {
        const bool good = *pattern == '0'   ? isdigit((unsigned char)*text)
                          : *pattern == '?' ? *text >= 'a' && *text <= 'z'
                                            : *text == *pattern;
        if (!good) return false;
    }
    return *text == '\0';
}

/* The ending of a shard of any set of that index; NULL: the file has another name. */
static const char *find_ending(const char *path, const char *shard)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const size_t size = strlen(name) - strlen(ENDING);
    if (strncmp(shard, name, size) != 0) return NULL;
    shard += size;
    const bool good = fits(shard, NUMBER "-of-00000.safetensors") || fits(shard, NUMBER "-of-00000-?.safetensors");
    return good ? shard + strlen(NUMBER) : NULL;
}

/* Does one of these shards belong to the set? */
static bool is_taken(const char *path, const rapt_names *shards, const rapt_shard_set *set)
{
    char ending[ending_size];
    put_ending(set, ending);
    for (int64_t i = 0; i < shards->count; i++) {
        const char *other = find_ending(path, shards->entries[i].name);
        if (other && strcmp(other, ending) == 0) return true;
    }
    return false;
}

bool rapt_shard_set_choose(const char *path, int count, rapt_shard_set *set)
{
    rapt_names shards = {0};
    bool is_whole;
    if (!set) return rapt_fail_null(CHOOSE, "set");
    *set = (rapt_shard_set){.count = count};
    bool done = check_set(CHOOSE, path, set) && rapt_index_shards(CHOOSE, path, &shards, &is_whole);
    while (done && is_taken(path, &shards, set)) {
        if (set->letter == 'z')
            done = rapt_fail(RAPT_ERROR_VALUE, CHOOSE,
                             "'%.200s' leads to shards with every letter; another path expected", path);
        else
            set->letter = set->letter ? (char)(set->letter + 1) : 'a';
    }
    rapt_names_free(&shards);
    return done;
}

bool rapt_shard_set_path(const char *path, const rapt_shard_set *set, int number, char *text, size_t size)
{
    char ending[ending_size];
    if (!check_set(PATH, path, set)) return false;
    if (!text) return rapt_fail_null(PATH, "text");
    if (number < 1 || number > set->count)
        return rapt_fail(RAPT_ERROR_VALUE, PATH, "shard %d of %d; 1 and up expected", number, set->count);
    put_ending(set, ending);
    const int stem = (int)(strlen(path) - strlen(ENDING));
    const int length = snprintf(text, size, "%.*s-%05d%s", stem, path, number, ending);
    return (length >= 0 && (size_t)length < size) ||
           rapt_fail(RAPT_ERROR_VALUE, PATH, "the path '%.100s...' is too long", path);
}

void rapt_shard_set_drop(const char *path, const rapt_shard_set *set, int count)
{
    char text[PATH_MAX];
    rapt_names shards = {0};
    bool is_whole;
    if (rapt_index_shards(SAVE, path, &shards, &is_whole) && !is_taken(path, &shards, set))
        for (int number = 1; number <= count; number++)
            if (rapt_shard_set_path(path, set, number, text, sizeof text)) unlink(text);
    rapt_names_free(&shards);
}

/* Those shards that have names of sets of this index, but not of the one that it leads to now. What cannot be removed
 * stays. */
static void remove_old(const char *path, const rapt_names *shards, const rapt_shard_set *set)
{
    char ending[ending_size], text[PATH_MAX];
    put_ending(set, ending);
    for (int64_t i = 0; i < shards->count; i++) {
        const char *shard = shards->entries[i].name, *other = find_ending(path, shard);
        if (other && strcmp(other, ending) != 0 && rapt_shard_path(path, shard, text)) unlink(text);
    }
}

static bool save_index(const char *path, const rapt_shard_set *set)
{
    char text[PATH_MAX];
    char **names = calloc((size_t)set->count + 1, sizeof *names);
    if (!names) return rapt_fail(RAPT_ERROR_MEMORY, SAVE, "no memory for the names of %d shards", set->count);
    bool done = true;
    for (int i = 0; done && i < set->count; i++) {
        done = rapt_shard_set_path(path, set, i + 1, text, sizeof text);
        const char *slash = done ? strrchr(text, '/') : NULL;
        names[i] = done ? strdup(slash ? slash + 1 : text) : NULL;
        if (done && !names[i]) done = rapt_fail(RAPT_ERROR_MEMORY, SAVE, "no memory for the name of a shard");
    }
    done = done && rapt_save_safetensors_index(path, (const char *const *)names, set->count);
    for (int i = 0; i < set->count; i++) free(names[i]);
    free(names);
    return done;
}

bool rapt_shard_set_save_index(const char *path, const rapt_shard_set *set)
{
    rapt_names shards = {0};
    bool is_whole = false;
    const bool done =
        check_set(SAVE, path, set) && rapt_index_shards(SAVE, path, &shards, &is_whole) && save_index(path, set);
    if (done && is_whole) remove_old(path, &shards, set);
    rapt_names_free(&shards);
    return done;
}
