/* safetensors in shards: an index and the files beside it. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <rapt.h>

#include "safetensors_index_file.h"
#include "tensor/memory.h"

TestSuite(safetensors_shards, .init = begin, .fini = remove_directory);

static rapt_archive *three(void)
{
    rapt_archive *archive = rapt_archive_new();
    cr_assert(rapt_archive_add(archive, "a", rapt_full(RAPT_FLOAT32, RAPT_SHAPE(3), 1)) &&
              rapt_archive_add(archive, "b.\"é\"", rapt_full(RAPT_FLOAT64, RAPT_SHAPE(2, 2), 2)) &&
              rapt_archive_add(archive, "c", rapt_full(RAPT_UINT8, RAPT_SHAPE(5), 3)) &&
              rapt_archive_add_text(archive, "format", "pt"));
    return archive;
}

Test(safetensors_shards, what_was_saved_comes_back)
{
    RAPT_SCOPE;
    const int64_t most[] = {1, 12, 44, 45, 1000};
    const int shards[] = {3, 3, 2, 2, 1};
    const char *const letters[] = {"", "-a", "-b", "-c", "-d"};
    rapt_archive *archive = three();
    for (int i = 0; i < 5; i++) {
        char last[64];
        cr_assert(rapt_save_safetensors_shards(index_path, archive, most[i]), "%s", rapt_error());
        snprintf(last, sizeof last, "m-%05d-of-%05d%s.safetensors", shards[i], shards[i], letters[i]);
        cr_expect(is_there(last), "%s", last);
        cr_expect_eq(files(), shards[i] + 1);
        for (int maps = 0; maps < 2; maps++) {
            rapt_archive *back = maps ? rapt_map_safetensors(index_path) : rapt_load_safetensors(index_path);
            cr_assert_not_null(back, "%s", rapt_error());
            cr_expect_eq(rapt_archive_count(back), 3);
            cr_expect_eq(rapt_at(rapt_archive_find(back, "b.\"é\""), (int64_t[]){1, 1}), 2);
            cr_expect_eq(rapt_at(rapt_archive_find(back, "c"), (int64_t[]){4}), 3);
            cr_expect_str_eq(rapt_archive_find_text(back, "format"), "pt");
            rapt_archive_free(back);
        }
    }
    rapt_archive_free(archive);
    archive = rapt_archive_new();
    cr_expect(rapt_save_safetensors_shards(index_path, archive, 1));
    rapt_archive_free(archive);
    archive = rapt_load_safetensors(index_path);
    cr_expect_eq(rapt_archive_count(archive), 0);
    rapt_archive_free(archive);
    expect_no_error();
}

Test(safetensors_shards, the_index_is_that_of_the_format)
{
    RAPT_SCOPE;
    rapt_archive *archive = three();
    cr_assert(rapt_save_safetensors_shards(index_path, archive, 44));
    rapt_archive_free(archive);
    const char expected[] = "{\"metadata\":{\"total_size\":49},\"weight_map\":{\n"
                            "\"a\":\"m-00001-of-00002.safetensors\",\n"
                            "\"b.\\\"é\\\"\":\"m-00001-of-00002.safetensors\",\n"
                            "\"c\":\"m-00002-of-00002.safetensors\"\n}}\n";
    char text[512] = "";
    FILE *file = fopen(index_path, "rb");
    cr_assert(file && fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    cr_expect_str_eq(text, expected);
    expect_no_error();
}

#define SHARD "\"m-00001-of-00001.safetensors\""

Test(safetensors_shards, bad_indices_are_refused)
{
    static const struct {
        const char *text;
        rapt_error_code code;
        const char *part;
    } bad[] = {
        {"", RAPT_ERROR_FORMAT, "does not begin with '{'"},
        {"{}", RAPT_ERROR_FORMAT, "an index has one weight_map"},
        {"{\"weight_map\":[]}", RAPT_ERROR_FORMAT, "an object expected"},
        {"{\"weight_map\":{},\"weight_map\":{}}", RAPT_ERROR_FORMAT, "an index has one weight_map"},
        {"{\"weight_map\":{}} x", RAPT_ERROR_FORMAT, "of the index"},
        {"{\"weight_map\":{\"a\":3}}", RAPT_ERROR_FORMAT, "a string expected"},
        {"{\"weight_map\":{\"a\":\"../a.safetensors\"}}", RAPT_ERROR_FORMAT, "not ../a.safetensors"},
        {"{\"weight_map\":{\"a\":\"\"}}", RAPT_ERROR_FORMAT, "a file beside the index"},
        {"{\"weight_map\":{\"a\":\"..\"}}", RAPT_ERROR_FORMAT, "a file beside the index"},
        {"{\"weight_map\":{\"a\":" SHARD ",\"a\":" SHARD "}}", RAPT_ERROR_FORMAT, "duplicate tensor a"},
        {"{\"weight_map\":{\"a\":" SHARD "}}", RAPT_ERROR_FORMAT, "the index has no such tensor"},
        {"{\"weight_map\":{\"one\":" SHARD ",\"two\":" SHARD ",\"x\":" SHARD "}}", RAPT_ERROR_FORMAT,
         "tensor 'x' is not in its shard m-00001"},
        {"{\"weight_map\":{\"one\":" SHARD ",\"two\":\"none.safetensors\"}}", RAPT_ERROR_FORMAT,
         "another shard for it"},
        {"{\"weight_map\":{\"x\":\"none.safetensors\"}}", RAPT_ERROR_FILE, "none.safetensors': No such file"},
    };
    RAPT_SCOPE;
    rapt_archive *archive = small_archive(1);
    cr_assert(rapt_save_safetensors_shards(index_path, archive, 1000));
    rapt_archive_free(archive);
    const int64_t before = rapt_memory_get_statistics().live_bytes;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_index(bad[i].text);
        cr_expect_null(rapt_load_safetensors(index_path), "%s", bad[i].text);
        expect_error(bad[i].code, bad[i].part);
        cr_expect_null(rapt_map_safetensors(index_path), "%s", bad[i].text);
        expect_error(bad[i].code, bad[i].part);
    }
    write_index("{\"metadata\":{\"total_size\":44,\"by\":\"hand\"},\"weight_map\":{\"one\":" SHARD ",\"two\":" SHARD
                "}}");
    archive = rapt_load_safetensors(index_path);
    cr_expect_eq(rapt_archive_count(archive), 2, "%s", rapt_error());
    rapt_archive_free(archive);
    cr_expect_eq(rapt_memory_get_statistics().live_bytes, before);
}

/* Metadata as Hugging Face's tools write it, and keys of the future. */
Test(safetensors_shards, what_else_an_index_says_is_passed_over)
{
    static const char *const good[] = {
        "8.0",   "1e3",   "-1", "-0.5E-3",        "null",   "true",
        "false", "\"8\"", "[]", "{\"total\":{}}", "[[],1]", "{ \"bits\" : [ 4 , {\"a\":[]} ] , \"b\" : 0 }",
    };
    static const char *const bad[] = {"",           "tru",   "truest", "01",  "1.",   ".5",      "-",
                                      "+1",         "1e",    "1e+",    "NaN", "[1,]", "[1}",     "{\"a\"}",
                                      "{\"a\":1,}", "[1 2]", "[,]",    "{1}", "[",    "\"a\\x\""};
    static const char *const places[] = {"{\"metadata\":{\"x\":%s},\"weight_map\":{}}", "{\"weight_map\":{},\"x\":%s}",
                                         "{\"metadata\":%s,\"weight_map\":{}}"};
    RAPT_SCOPE;
    char text[256], deep[200] = "";
    for (int i = 0; i < 64; i++) strcat(deep, i % 2 ? "[" : "{\"\":");
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        for (size_t k = 0; k < sizeof good / sizeof *good; k++) {
            snprintf(text, sizeof text, places[i], good[k]);
            write_index(text);
            rapt_archive *archive = rapt_load_safetensors(index_path);
            cr_expect_not_null(archive, "%s: %s", text, rapt_error());
            rapt_archive_free(archive);
            rapt_clear_error();
        }
        for (size_t k = 0; k <= sizeof bad / sizeof *bad; k++) {
            snprintf(text, sizeof text, places[i], k < sizeof bad / sizeof *bad ? bad[k] : strcat(deep, "["));
            write_index(text);
            cr_expect_null(rapt_load_safetensors(index_path), "%s", text);
            expect_error(RAPT_ERROR_FORMAT, "of the index: ");
        }
    }
}

Test(safetensors_shards, misuse)
{
    RAPT_SCOPE;
    rapt_archive *archive = three();
    cr_expect_not(rapt_save_safetensors_shards(index_path, archive, 0));
    expect_error(RAPT_ERROR_VALUE, "shards of 0 bytes");
    cr_expect_not(rapt_save_safetensors_shards(path, archive, 10));
    expect_error(RAPT_ERROR_VALUE, "does not end in NAME.safetensors.index.json");
    cr_expect_not(rapt_save_safetensors_shards("/tmp/.safetensors.index.json", archive, 10));
    expect_error(RAPT_ERROR_VALUE, "does not end in NAME.safetensors.index.json");
    cr_expect_not(rapt_save_safetensors(index_path, archive));
    expect_error(RAPT_ERROR_VALUE, "ends in .json, as those of indexes do");
    cr_expect_not(rapt_can_save(index_path));
    expect_error(RAPT_ERROR_VALUE, "can_save: the path");
    cr_expect_not(rapt_save_safetensors_shards(NULL, archive, 10));
    expect_error(RAPT_ERROR_NULL, "path is NULL");
    cr_expect_not(rapt_save_safetensors_shards(index_path, NULL, 10));
    expect_error(RAPT_ERROR_NULL, "archive is NULL");
    cr_expect_not(rapt_save_safetensors_shards("/no/such/m.safetensors.index.json", archive, 10));
    expect_error(RAPT_ERROR_FILE, "/no/such");
    rapt_archive *texts = rapt_archive_new();
    rapt_archive_add_text(texts, "note", "kept nowhere");
    cr_expect_not(rapt_save_safetensors_shards(index_path, texts, 10));
    expect_error(RAPT_ERROR_VALUE, "texts and no tensors");
    rapt_archive_free(texts);
    cr_expect_eq(files(), 0);
    rapt_archive_free(archive);
}

/* Each shard has a header that can be read, and the index would have none. */
Test(safetensors_shards, an_index_that_nobody_could_read_is_not_written)
{
    enum { length = 50000000 };
    RAPT_SCOPE;
    rapt_archive *archive = three();
    cr_assert(rapt_save_safetensors_shards(index_path, archive, 1000));
    rapt_archive_free(archive);
    archive = rapt_archive_new();
    char *name = calloc(length + 1, 1);
    for (int i = 0; i < 2; i++) {
        memset(name, 'a' + i, length);
        cr_assert(rapt_archive_add(archive, name, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1))));
    }
    free(name);
    cr_expect_not(rapt_save_safetensors_shards(index_path, archive, 1));
    expect_error(RAPT_ERROR_VALUE, "save_safetensors_shards: the names need an index of 10000012");
    rapt_archive_free(archive);
    cr_expect_eq(files(), 2);
    archive = rapt_load_safetensors(index_path);
    cr_expect_eq(rapt_archive_count(archive), 3, "%s", rapt_error());
    rapt_archive_free(archive);
    expect_no_error();
}

/* Neither what is no bool nor tensors that would have to be copied are looked at; but how long the file is. */
Test(safetensors_shards, of_the_shards_of_an_index_only_headers_are_read)
{
    RAPT_SCOPE;
    const char *const name = "one.safetensors";
    char text[128], byte = 2;
    rapt_archive *archive = rapt_archive_new();
    cr_assert(rapt_archive_add(archive, "bool", rapt_full(RAPT_BOOL, RAPT_SHAPE(3), 1)) &&
              rapt_archive_add(archive, "large", rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(1 << 20))));
    snprintf(text, sizeof text, "%s/%s", directory, name);
    cr_assert(rapt_save_safetensors(text, archive));
    rapt_archive_free(archive);
    FILE *file = fopen(text, "r+b");
    cr_assert(file && fseek(file, -4 * (1L << 20) - 3, SEEK_END) == 0 && fwrite(&byte, 1, 1, file) == 1);
    cr_assert_eq(fclose(file), 0);
    rapt_memory_reset_peak();
    const int64_t live = rapt_memory_get_statistics().live_bytes;
    cr_assert(rapt_save_safetensors_index(index_path, &name, 1), "%s", rapt_error());
    cr_expect_lt(rapt_memory_get_statistics().peak_bytes - live, 1 << 20);
    cr_expect_null(rapt_load_safetensors(index_path));
    expect_error(RAPT_ERROR_FORMAT, "bool");
    cr_assert_eq(truncate(text, 4 * (1 << 20)), 0);
    cr_expect_not(rapt_save_safetensors_index(index_path, &name, 1));
    expect_error(RAPT_ERROR_FORMAT, "the file is cut short: tensor 'large'");
}

/* Shards that a program writes by itself, each rank of a training for example. */
Test(safetensors_shards, an_index_of_shards_that_are_there)
{
    RAPT_SCOPE;
    char text[128];
    const char *const names[] = {"one.safetensors", "two.safetensors", "one.safetensors"};
    for (int i = 0; i < 2; i++) {
        rapt_archive *archive = rapt_archive_new();
        cr_assert(rapt_archive_add(archive, i ? "b" : "a", rapt_full(RAPT_FLOAT32, RAPT_SHAPE(3), i)));
        cr_assert(rapt_archive_add_text(archive, "key", "text"));
        cr_expect_str_eq(rapt_archive_key(archive, 0), "key");
        cr_expect_null(rapt_archive_key(archive, 1));
        cr_expect_null(rapt_archive_key(archive, -1));
        snprintf(text, sizeof text, "%s/%s", directory, names[i]);
        cr_assert(rapt_save_safetensors(text, archive));
        rapt_archive_free(archive);
    }
    cr_assert(rapt_save_safetensors_index(index_path, names, 2), "%s", rapt_error());
    rapt_archive *back = rapt_load_safetensors(index_path);
    cr_assert_not_null(back, "%s", rapt_error());
    cr_expect_eq(rapt_at(rapt_archive_find(back, "b"), (int64_t[]){2}), 1);
    cr_expect_eq(rapt_archive_count(back), 2);
    rapt_archive_free(back);
    cr_assert(rapt_save_safetensors_index(index_path, names, 1), "%s", rapt_error());
    const char *const bad[] = {"../one.safetensors", NULL, "three.safetensors", "\xff"};
    const rapt_error_code codes[] = {RAPT_ERROR_VALUE, RAPT_ERROR_NULL, RAPT_ERROR_FILE, RAPT_ERROR_VALUE};
    const char *const parts[] = {"is no name of a shard", "a shard is NULL", "three", "is no name of a shard"};
    for (int i = 0; i < 4; i++) {
        cr_expect_not(rapt_save_safetensors_index(index_path, &bad[i], 1));
        expect_error(codes[i], parts[i]);
    }
    cr_expect_not(rapt_save_safetensors_index(index_path, names, 3));
    expect_error(RAPT_ERROR_FORMAT, "one.safetensors has tensor 'a', which another shard has");
    cr_expect_not(rapt_save_safetensors_index(index_path, names, -1));
    expect_error(RAPT_ERROR_VALUE, "-1 shards");
    cr_expect_not(rapt_save_safetensors_index(index_path, NULL, 1));
    expect_error(RAPT_ERROR_NULL, "shards is NULL");
    cr_expect_not(rapt_save_safetensors_index(NULL, names, 1));
    expect_error(RAPT_ERROR_NULL, "path is NULL");
    cr_expect_not(rapt_save_safetensors_index("m.json", names, 1));
    expect_error(RAPT_ERROR_VALUE, "does not end in");
    char far[PATH_MAX]; /* the index is still a path, its shard no longer */
    memset(far, '/', sizeof far);
    memcpy(far, directory, strlen(directory));
    strcpy(far + sizeof far - sizeof "/m.safetensors.index.json", "/m.safetensors.index.json");
    cr_expect_not(rapt_save_safetensors_index(far, (const char *[]){"a-shard-of-a-longer-name.safetensors"}, 1));
    expect_error(RAPT_ERROR_VALUE, "is too long");
    cr_expect_null(rapt_archive_key(NULL, 0));
    expect_error(RAPT_ERROR_NULL, "archive is NULL");
    back = rapt_load_safetensors(index_path);
    cr_expect(back && rapt_archive_count(back) == 1, "what was there is as it was");
    rapt_archive_free(back);
}
