/* Sets of shards: their names, the change from one to the next, and who else reads or writes there. */
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <utime.h>

#include <rapt.h>

#include "safetensors_index_file.h"

TestSuite(shard_set, .init = begin, .fini = remove_directory);

static double first_of(const char *name)
{
    rapt_archive *archive = rapt_load_safetensors(index_path);
    cr_assert_not_null(archive, "%s", rapt_error());
    const double first = rapt_at(rapt_archive_find(archive, name), (int64_t[]){0, 0});
    rapt_archive_free(archive);
    return first;
}

static bool save_two(double value)
{
    rapt_archive *archive = small_archive(value);
    const bool good = rapt_save_safetensors_shards(index_path, archive, 12);
    rapt_archive_free(archive);
    return good;
}

/* Of a save that fails in the middle nothing is seen: the index has its own shards, and no other stays. */
Test(shard_set, a_set_is_whole_or_not_there)
{
    RAPT_SCOPE;
    char blocked[128];
    cr_assert(save_two(0), "%s", rapt_error());
    for (int i = 1; i < 4; i++) {
        snprintf(blocked, sizeof blocked, "%s/m-00002-of-00002-%c.safetensors", directory, "abc"[i - 1]);
        cr_assert(rapt_system_make_folder(blocked));
        cr_expect_not(save_two(i));
        expect_error(RAPT_ERROR_FILE, "not a regular file");
        cr_expect_eq(first_of("two"), i - 1);
        cr_expect_eq(files(), 4);
        rmdir(blocked);
        rapt_archive *mapped = rapt_map_safetensors(index_path);
        cr_assert(save_two(i), "%s", rapt_error());
        cr_expect_eq(rapt_at(rapt_archive_find(mapped, "two"), (int64_t[]){1, 1}), i - 1, "what is mapped stays");
        rapt_archive_free(mapped);
        cr_expect_eq(first_of("two"), i);
        cr_expect_eq(files(), 3);
    }
    expect_no_error();
}

static void write_empty(const char *name)
{
    char text[128];
    snprintf(text, sizeof text, "%s/%s", directory, name);
    FILE *file = fopen(text, "wb");
    cr_assert(file && fclose(file) == 0);
}

/* What is not a shard of the index's own is left alone, whatever the index says; so is all where it cannot be read. */
Test(shard_set, files_of_others_are_left_alone)
{
    static const char *const others[] = {"other-00001-of-00001.safetensors", "m-00001-of-00001-A.safetensors",
                                         "m-00001-of-00001.safetensor",      "m-1-of-1.safetensors",
                                         "m-a-00001-of-00001.safetensors",   "m-00001-of-00001-a.safetensors.old"};
    static const char *const own[] = {"m-00001-of-00009.safetensors", "m-00009-of-00009.safetensors",
                                      "m-00002-of-00002-z.safetensors"};
    enum { other_count = sizeof others / sizeof *others, own_count = sizeof own / sizeof *own };
    RAPT_SCOPE;
    for (int damaged = 0; damaged < 2; damaged++) {
        char text[2048] = "{\"weight_map\":{";
        for (int i = 0; i < other_count + own_count; i++) {
            const char *name = i < other_count ? others[i] : own[i - other_count];
            const size_t length = strlen(text);
            snprintf(text + length, sizeof text - length, "%s\"t%d\":\"%s\"", i ? "," : "", i, name);
            write_empty(name);
        }
        strcat(text, damaged ? ",\"t\":\"../x\"}}" : "}}");
        write_index(text);
        cr_assert(save_two(damaged), "%s", rapt_error());
        cr_expect_eq(first_of("two"), damaged);
        for (int i = 0; i < other_count; i++) cr_expect(is_there(others[i]), "%s", others[i]);
        for (int i = 0; i < own_count; i++) cr_expect_eq(is_there(own[i]), damaged, "%s", own[i]);
        cr_expect(is_there("m-00001-of-00002.safetensors"));
    }
    expect_no_error();
}

Test(shard_set, names_of_sets)
{
    rapt_shard_set set;
    char text[128], expected[128];
    cr_expect(rapt_shard_set_choose(index_path, 7, &set) && set.count == 7 && set.letter == 0);
    cr_expect(rapt_shard_set_path("m.safetensors.index.json", &set, 7, text, sizeof text));
    cr_expect_str_eq(text, "m-00007-of-00007.safetensors");
    char map[4096] = "{\"weight_map\":{\"first\":\"m-00003-of-00007.safetensors\"";
    for (char letter = 'a'; letter <= 'z'; letter++) {
        char whole[4200];
        snprintf(whole, sizeof whole, "%s%s", map,
                 letter % 2 ? "}}" : "} x"); /* what stands before the damage counts */
        write_index(whole);
        cr_expect(rapt_shard_set_choose(index_path, 7, &set) && set.letter == letter, "%c: %d", letter, set.letter);
        const size_t length = strlen(map);
        snprintf(map + length, sizeof map - length, ",\"%c\":\"m-00003-of-00007-%c.safetensors\"", letter, letter);
    }
    cr_expect(rapt_shard_set_path(index_path, &set, 1, text, sizeof text), "%s", rapt_error());
    snprintf(expected, sizeof expected, "%s/m-00001-of-00007-z.safetensors", directory);
    cr_expect_str_eq(text, expected);
    expect_no_error();
    write_index(strcat(map, "}}"));
    cr_expect_not(rapt_shard_set_choose(index_path, 7, &set));
    expect_error(RAPT_ERROR_VALUE, "are shards with every letter");
    set.letter = 'z';
    cr_expect_not(rapt_shard_set_path(index_path, &set, 1, text, strlen(expected)));
    expect_error(RAPT_ERROR_VALUE, "is too long");
    cr_expect_not(rapt_shard_set_path(index_path, &set, 8, text, sizeof text));
    expect_error(RAPT_ERROR_VALUE, "shard 8 of 7");
    cr_expect_not(rapt_shard_set_path(index_path, &set, 1, NULL, 0));
    expect_error(RAPT_ERROR_NULL, "text is NULL");
    cr_expect_not(rapt_shard_set_choose(index_path, 100000, &set));
    expect_error(RAPT_ERROR_VALUE, "a set of 100000 shards with letter 0; at most 99999");
    cr_expect_not(rapt_shard_set_save_index(index_path, &(rapt_shard_set){1, '/'}));
    expect_error(RAPT_ERROR_VALUE, "a set of 1 shards with letter 47");
    cr_expect_not(rapt_shard_set_save_index(path, &set));
    expect_error(RAPT_ERROR_VALUE, "does not end in NAME.safetensors.index.json");
    cr_expect_not(rapt_shard_set_choose(index_path, 1, NULL));
    expect_error(RAPT_ERROR_NULL, "set is NULL");
    cr_expect_not(rapt_shard_set_save_index(NULL, &set));
    expect_error(RAPT_ERROR_NULL, "path is NULL");
}

static void write_small(const char *name)
{
    char text[128];
    snprintf(text, sizeof text, "%s/%s", directory, name);
    rapt_archive *archive = small_archive(7);
    cr_assert(rapt_save_safetensors(text, archive));
    rapt_archive_free(archive);
}

/* Shards of an index that cannot be read, or of none, are somebody's: they stay, whether the save fails or not. */
Test(shard_set, shards_that_are_there_are_not_written_over)
{
    RAPT_SCOPE;
    static const char *const indexes[] = {"{\"weight_map\":{}", "no index", NULL};
    for (int i = 0; i < 3; i++) {
        write_small("m-00001-of-00002.safetensors");
        write_small("m-00002-of-00002.safetensors");
        if (indexes[i])
            write_index(indexes[i]);
        else
            unlink(index_path);
        rapt_archive *bad = small_archive(1);
        cr_assert(rapt_archive_add(bad, "\xff", rapt_full(RAPT_FLOAT32, RAPT_SHAPE(3), 1)));
        cr_expect_not(rapt_save_safetensors_shards(index_path, bad, 24));
        expect_error(RAPT_ERROR_VALUE, "is not UTF-8");
        rapt_archive_free(bad);
        cr_expect_eq(files(), 2 + (indexes[i] != NULL));
        cr_assert(save_two(i), "%s", rapt_error());
        cr_expect_eq(first_of("two"), i);
        cr_expect_eq(files(), 5);
        cr_assert(save_two(i), "%s", rapt_error());
        cr_expect_eq(files(), 5);
        remove_directory();
        begin();
    }
}

/* The names of a set come back after 26 others only, however many shards these have. */
Test(shard_set, late_readers_find_no_others_shards)
{
    RAPT_SCOPE;
    rapt_shard_set set;
    for (int i = 0; i < 54; i++) {
        rapt_archive *archive = small_archive(i);
        cr_assert(rapt_save_safetensors_shards(index_path, archive, i % 3 ? 12 : 1000), "%s", rapt_error());
        rapt_archive_free(archive);
        cr_assert(rapt_shard_set_choose(index_path, 0, &set));
        cr_expect_eq(set.letter, "abcdefghijklmnopqrstuvwxyz"[i % 27], "%d: %c", i, set.letter);
        cr_expect_eq(files(), i % 3 ? 3 : 2);
    }
}

/* What a killed program left is passed over, and an hour later it goes; others may still be at work on the rest. */
Test(shard_set, what_was_left_goes)
{
    RAPT_SCOPE;
    rapt_shard_set set;
    char text[128];
    cr_assert(save_two(1));
    for (int i = 0; i < 3; i++) {
        cr_assert(rapt_shard_set_choose(index_path, 2, &set), "%s", rapt_error());
        cr_expect_eq(set.letter, "abc"[i]);
        if (i < 2) write_small(i ? "m-00002-of-00002-b.safetensors" : "m-00002-of-00002-a.safetensors");
        cr_assert(rapt_shard_set_path(index_path, &set, 1, text, sizeof text));
        if (i > 0) cr_assert_eq(utime(text, &(struct utimbuf){1000000000, time(NULL) - (i == 1 ? 3700 : 3500)}), 0);
    }
    cr_expect_eq(files(), 8);
    cr_assert(save_two(2), "%s", rapt_error());
    cr_expect(is_there("m-00002-of-00002-d.safetensors"));
    cr_expect_not(is_there("m-00001-of-00002-b.safetensors"));
    cr_expect(is_there("m-00001-of-00002-a.safetensors") && is_there("m-00001-of-00002-c.safetensors"));
    cr_expect_eq(first_of("two"), 2);
    cr_expect_eq(files(), 6);
}

/* Where each letter has a set that was left, one of more than an hour makes room, unless it may be somebody's. */
Test(shard_set, sets_left_with_every_letter)
{
    RAPT_SCOPE;
    rapt_shard_set set;
    char text[128];
    cr_assert(save_two(1));
    for (int i = 0; i < 26; i++) cr_assert(rapt_shard_set_choose(index_path, 2, &set), "%s", rapt_error());
    cr_expect_not(save_two(2));
    expect_error(RAPT_ERROR_VALUE, "are shards with every letter");
    write_small("m-00002-of-00002-q.safetensors");
    set.letter = 'q';
    cr_assert(rapt_shard_set_path(index_path, &set, 1, text, sizeof text));
    cr_assert_eq(utime(text, &(struct utimbuf){1000000000, time(NULL) - 3700}), 0);
    cr_expect_eq(files(), 30);
    cr_expect(rapt_shard_set_choose(index_path, 2, &set) && set.letter == 'q', "%s", rapt_error());
    cr_expect_not(is_there("m-00002-of-00002-q.safetensors"));
    cr_expect_eq(files(), 29);
    cr_expect_not(save_two(3));
    expect_error(RAPT_ERROR_VALUE, "are shards with every letter");
    cr_expect_eq(first_of("two"), 1);
    for (set.letter = 'a'; set.letter <= 'z'; set.letter++) {
        cr_assert(rapt_shard_set_path(index_path, &set, 1, text, sizeof text));
        cr_assert_eq(utime(text, &(struct utimbuf){1000000000, time(NULL) - 3700}), 0);
    }
    write_index("{\"weight_map\":{\"two\":\"m-00002-of-00002.safetensors\"}"); /* not whole */
    cr_expect_not(save_two(3));
    expect_error(RAPT_ERROR_VALUE, "are shards with every letter");
    cr_expect_eq(files(), 29);
}

#ifndef _WIN32 /* where no lock keeps savers apart */
static void *save_often(void *number)
{
    RAPT_SCOPE;
    int *failed = number;
    for (int i = 0; i < 20; i++) {
        const bool good = save_two(failed[0] + i);
        failed[1] += !good;
    }
    return NULL;
}

/* The index leads to the whole set of one of them, and what the others wrote is gone. */
Test(shard_set, several_save_at_once)
{
    RAPT_SCOPE;
    enum { threads = 3 };
    pthread_t others[threads];
    int failed[threads][2] = {{0, 0}, {100, 0}, {200, 0}};
    cr_assert(save_two(0));
    for (int i = 0; i < threads; i++) cr_assert_eq(pthread_create(&others[i], NULL, save_often, failed[i]), 0);
    for (int i = 0; i < threads; i++) pthread_join(others[i], NULL);
    for (int i = 0; i < threads; i++) cr_expect_eq(failed[i][1], 0);
    rapt_archive *archive = rapt_load_safetensors(index_path);
    cr_assert_not_null(archive, "%s", rapt_error());
    cr_expect_eq(rapt_at(rapt_archive_find(archive, "one"), (int64_t[]){0}),
                 rapt_at(rapt_archive_find(archive, "two"), (int64_t[]){0, 0}));
    rapt_archive_free(archive);
    cr_expect_eq(files(), 3);
}

static char folder[64], target[96], link_path[96];

static void make_link(const char *to)
{
    snprintf(folder, sizeof folder, "%s/run", directory);
    snprintf(target, sizeof target, "%s/m.safetensors.index.json", folder);
    snprintf(link_path, sizeof link_path, "%s/latest.safetensors.index.json", directory);
    cr_assert(rapt_system_make_folder(folder));
    cr_assert_eq(symlink(to, link_path), 0);
}

/* A link to an index: its set is beside what it leads to. */
Test(shard_set, links_to_an_index)
{
    RAPT_SCOPE;
    struct stat status;
    make_link("run/m.safetensors.index.json");
    snprintf(index_path, sizeof index_path, "%s", link_path);
    for (int i = 0; i < 3; i++) {
        cr_assert(save_two(i), "%s", rapt_error());
        cr_expect_eq(first_of("two"), i);
        cr_expect_eq(files(), 2);
        cr_expect(lstat(link_path, &status) == 0 && S_ISLNK(status.st_mode));
        snprintf(index_path, sizeof index_path, "%s", i % 2 ? link_path : target);
        cr_expect_eq(first_of("two"), i);
    }
    strcat(directory, "/run");
    cr_expect_eq(files(), 3);
    remove_directory();
    *strrchr(directory, '/') = '\0';
}

/* As in the cache of Hugging Face's tools: the link has the name, and the shards are beside it. */
Test(shard_set, shards_beside_a_link)
{
    RAPT_SCOPE;
    char moved[128];
    rapt_archive *archive = small_archive(3);
    make_link("run/b10b");
    snprintf(moved, sizeof moved, "%s/b10b", folder);
    cr_assert(save_two(3));
    cr_assert_eq(rename(index_path, moved), 0);
    snprintf(index_path, sizeof index_path, "%s", link_path);
    cr_expect_eq(first_of("two"), 3);
    cr_expect_not(rapt_save_safetensors_shards(link_path, archive, 12));
    expect_error(RAPT_ERROR_VALUE, "run/b10b' does not end in NAME.safetensors.index.json");
    cr_expect_eq(first_of("two"), 3);
    rapt_archive_free(archive);
    unlink(moved);
    rmdir(folder);
}
#endif
