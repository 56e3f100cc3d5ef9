/* Sets of shards: names that the index which is there does not lead to, and the change from its shards to new ones. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "safetensors.h"
#include "tensor/archive.h"
#include "tensor/core.h"
#include "tensor/replace_file.h"
#include "tensor/system.h"

#define CHOOSE "shard_set_choose"
#define PATH "shard_set_path"
#define SAVE "shard_set_save_index"
#define ENDING ".safetensors.index.json"
#define NUMBER "-00000"

enum { most_shards = 99999, ending_size = 64, letter_count = 27 /* with none */ };

bool rapt_index_target(const char *op, const char *path, char target[PATH_MAX])
{
    if (strlen(path) >= PATH_MAX) return rapt_fail(RAPT_ERROR_VALUE, op, "the path '%.100s...' is too long", path);
    if (!rapt_follow_links(op, path, target)) return false;
    const size_t size = strlen(target), ending = strlen(ENDING);
    return (size > ending && strcmp(target + size - ending, ENDING) == 0 && target[size - ending - 1] != '/') ||
           rapt_fail(RAPT_ERROR_VALUE, op, "the path '%.200s' does not end in NAME" ENDING, target);
}

static bool check_set(const char *op, const char *path, const rapt_shard_set *set, char target[PATH_MAX])
{
    if (!path || !set) return rapt_fail_null(op, path ? "set" : "path");
    if (!rapt_index_target(op, path, target)) return false;
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

static char next_letter(char letter)
{
    return letter == '\0' ? 'a' : letter == 'z' ? '\0' : (char)(letter + 1);
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

/* Each set gets the letter behind that of the older one, so that a reader who is late finds no shards of the same names
 * before 26 others were saved. */
static void begin_behind(const char *path, const rapt_names *shards, rapt_shard_set *set)
{
    const size_t dash = strlen("-of-00000");
    for (int64_t i = 0; i < shards->count; i++) {
        const char *ending = find_ending(path, shards->entries[i].name);
        if (ending) set->letter = next_letter(ending[dash] == '-' ? ending[dash + 1] : '\0');
    }
}

/* Removes a set of one shard or more that a killed program left: its first shard is then much older than that time. */
static void drop_left(const char *path, const rapt_shard_set *left, time_t now)
{
    enum { longest_save = 3600 }; /* seconds */
    char text[PATH_MAX];
    struct stat status;
    if (!rapt_shard_set_path(path, left, 1, text, sizeof text)) return;
    const int lock = rapt_system_lock(text); /* of two at once, the later one would remove what the earlier claimed */
    if (stat(text, &status) == 0 && now - status.st_mtime > longest_save) rapt_shard_set_drop(path, left, left->count);
    rapt_system_unlock(lock);
}

/* Whoever makes the first shard has the set: nobody else writes one of its names. Where no letter is free, a set that
 * was left goes; but without a whole index they may be somebody's. */
static bool claim(const char *path, const rapt_names *shards, bool is_whole, rapt_shard_set *set)
{
    char text[PATH_MAX];
    for (int i = 0; i < (is_whole ? 2 : 1) * letter_count; i++, set->letter = next_letter(set->letter)) {
        if (is_taken(path, shards, set)) continue;
        if (set->count == 0) return true;
        if (i >= letter_count) drop_left(path, set, time(NULL));
        if (!rapt_shard_set_path(path, set, 1, text, sizeof text)) return false;
        if (rapt_system_make_file(text)) return true;
        if (errno != EEXIST) return rapt_fail_file(CHOOSE, "create", text);
    }
    return rapt_fail(RAPT_ERROR_VALUE, CHOOSE,
                     "beside '%.200s' are shards with every letter; remove those to which it does not lead", path);
}

bool rapt_shard_set_choose(const char *path, int count, rapt_shard_set *set)
{
    rapt_names shards = {0};
    char target[PATH_MAX];
    bool is_whole;
    if (!set) return rapt_fail_null(CHOOSE, "set");
    *set = (rapt_shard_set){.count = count};
    bool done = check_set(CHOOSE, path, set, target) && rapt_index_shards(CHOOSE, target, &shards, &is_whole);
    if (done) begin_behind(target, &shards, set);
    done = done && claim(target, &shards, is_whole, set);
    rapt_names_free(&shards);
    return done;
}

bool rapt_shard_set_path(const char *path, const rapt_shard_set *set, int number, char *text, size_t size)
{
    char ending[ending_size], target[PATH_MAX];
    if (!check_set(PATH, path, set, target)) return false;
    if (!text) return rapt_fail_null(PATH, "text");
    if (number < 1 || number > set->count)
        return rapt_fail(RAPT_ERROR_VALUE, PATH, "shard %d of %d; 1 and up expected", number, set->count);
    put_ending(set, ending);
    const int stem = (int)(strlen(target) - strlen(ENDING));
    const int length = snprintf(text, size, "%.*s-%05d%s", stem, target, number, ending);
    return (length >= 0 && (size_t)length < size) ||
           rapt_fail(RAPT_ERROR_VALUE, PATH, "the path '%.100s...' is too long", path);
}

void rapt_shard_set_drop(const char *path, const rapt_shard_set *set, int count)
{
    char text[PATH_MAX];
    for (int number = count; number > 0; number--) /* the first, which keeps others away, last */
        if (rapt_shard_set_path(path, set, number, text, sizeof text)) unlink(text);
}

/* Those shards that have names of sets of this index, but not of the one that it leads to now, and what was left
 * between the two. What cannot be removed stays. */
static void remove_old(const char *path, const rapt_names *shards, const rapt_shard_set *set)
{
    char ending[ending_size], text[PATH_MAX];
    struct stat own;
    put_ending(set, ending);
    for (int64_t i = shards->count - 1; i >= 0; i--) { /* the first, which keeps others away, last */
        const char *shard = shards->entries[i].name, *other = find_ending(path, shard);
        if (other && strcmp(other, ending) != 0 && rapt_shard_path(path, shard, text)) unlink(text);
    }
    rapt_shard_set left = *set;
    if (set->count == 0 || !rapt_shard_set_path(path, set, 1, text, sizeof text) || stat(text, &own) != 0) return;
    for (begin_behind(path, shards, &left); left.letter != set->letter; left.letter = next_letter(left.letter))
        drop_left(path, &left, own.st_mtime);
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
    char target[PATH_MAX];
    bool is_whole = false;
    if (!check_set(SAVE, path, set, target)) return false;
    rapt_error_hold();                         /* its handler may save there, too */
    const int lock = rapt_system_lock(target); /* of two at once, the later one removes the earlier's */
    const bool may_go_on = lock >= 0 || errno == ENOENT || rapt_fail_file(SAVE, "write", target);
    const bool done = may_go_on && rapt_index_shards(SAVE, target, &shards, &is_whole) && save_index(target, set);
    if (done && is_whole) remove_old(target, &shards, set);
    rapt_names_free(&shards);
    rapt_system_unlock(lock);
    rapt_error_release();
    return done;
}
