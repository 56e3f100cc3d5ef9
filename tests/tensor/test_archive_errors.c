/* Errors of archives, files and threads that nothing else in the tests provokes. */
#include "safetensors_file.h"

#include <limits.h>

#include <rapt/npy.h>
#include <rapt/ops.h>
#include <rapt/runtime.h>

TestSuite(archive_errors, .init = make_directory, .fini = remove_directory);

static rapt_tensor *byte(void)
{
    return rapt_zeros(RAPT_UINT8, RAPT_SHAPE(1));
}

Test(archive_errors, what_is_missing)
{
    cr_expect_null(rapt_archive_name(NULL, 0));
    expect_error(RAPT_ERROR_NULL, "archive is NULL");
    rapt_get_dtype(NULL);
    expect_error(RAPT_ERROR_NULL, "get_dtype: tensor is NULL");
    const int threads = rapt_get_threads();
    cr_expect_not(rapt_set_threads(INT32_MAX));
    expect_error(RAPT_ERROR_VALUE, "2147483647 threads asked for; 1 to 4096 expected");
    cr_expect_eq(rapt_get_threads(), threads);
    cr_expect_not(rapt_set_threads(0));
    expect_error(RAPT_ERROR_VALUE, "0 threads asked for; 1 to 4096 expected");
}

Test(archive_errors, names_in_npz)
{
    RAPT_SCOPE;
    rapt_archive *archive = rapt_archive_new();
    cr_expect_not(rapt_archive_add(archive, "nothing", NULL));
    expect_error(RAPT_ERROR_NULL, "archive_add: the tensor for 'nothing' is NULL");
    cr_assert(rapt_archive_add(archive, "first_name", byte()) && rapt_archive_add(archive, "other_name", byte()));
    cr_assert(rapt_save_npz(path, archive), "%s", rapt_error());
    size_t size;
    char *bytes = read_file(&size);
    for (size_t i = 0; i + 10 <= size; i++)
        if (memcmp(bytes + i, "other_name", 10) == 0) memcpy(bytes + i, "first_name", 10);
    write_file(bytes, size);
    free(bytes);
    cr_expect_null(rapt_load_npz(path));
    expect_error(RAPT_ERROR_FORMAT, "two members are called 'first_name'");
    char *name = malloc(70001);
    memset(name, 'x', 70000);
    name[70000] = '\0';
    cr_assert(rapt_archive_add(archive, name, byte()), "%s", rapt_error());
    cr_expect_not(rapt_save_npz(path, archive));
    expect_error(RAPT_ERROR_VALUE, "has 70000 bytes; 65531 at most in a zip file");
    free(name);
    rapt_archive_free(archive);
}

/* A path of that many bytes, for an index. */
static char *long_path(int length)
{
    static const char ending[] = ".safetensors.index.json";
    char *text = malloc((size_t)length + 1);
    for (int i = 0; i < length; i++) text[i] = i % 100 == 0 ? '/' : 'x';
    memcpy(text + length - (int)strlen(ending), ending, sizeof ending);
    return text;
}

Test(archive_errors, paths_and_numbers_of_shards)
{
    RAPT_SCOPE;
    rapt_archive *archive = rapt_archive_new();
    cr_assert(rapt_archive_add(archive, "a", byte()));
    for (int k = 0; k < 2; k++) {
        char *text = long_path(k ? PATH_MAX : PATH_MAX - 1);
        cr_expect_not(rapt_save_safetensors_shards(text, archive, 1));
        expect_error(RAPT_ERROR_VALUE, "...' is too long");
        free(text);
    }
    cr_expect_not(rapt_save_safetensors_shards("/tmp/\xff.safetensors.index.json", archive, 1));
    expect_error(RAPT_ERROR_VALUE, "is not UTF-8");
    for (int i = 0; i < 100000; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        RAPT_SCOPE;
        cr_assert(rapt_archive_add(archive, name, byte()));
    }
    cr_expect_not(rapt_save_safetensors_shards("/tmp/a.safetensors.index.json", archive, 1));
    expect_error(RAPT_ERROR_VALUE, "more than 99999 shards of 1 bytes");
    rapt_archive_free(archive);
}

Test(archive_errors, more_than_a_file_can_have)
{
    if (sizeof(size_t) < 8) cr_skip_test("no two tensors have so much");
    RAPT_SCOPE;
    rapt_archive *archive = rapt_archive_new();
    rapt_tensor *huge = rapt_expand(byte(), RAPT_SHAPE(INT64_MAX / 2 + 1));
    cr_assert(rapt_archive_add(archive, "a", huge) && rapt_archive_add(archive, "b", huge), "%s", rapt_error());
    cr_expect_not(rapt_save_safetensors(path, archive));
    expect_error(RAPT_ERROR_VALUE, "save_safetensors: the tensors have more bytes than 64 bits can count");
    cr_expect_not(rapt_save_safetensors_shards("/tmp/a.safetensors.index.json", archive, 1));
    expect_error(RAPT_ERROR_VALUE, "save_safetensors_shards: the tensors have more bytes than 64 bits can count");
    rapt_archive_free(archive);
    archive = rapt_archive_new();
    char *text = malloc(100000001);
    memset(text, 'x', 100000000);
    text[100000000] = '\0';
    cr_assert(rapt_archive_add_text(archive, "text", text), "%s", rapt_error());
    free(text);
    cr_expect_not(rapt_save_safetensors(path, archive));
    expect_error(RAPT_ERROR_VALUE, "bytes; the format allows 100000000");
    rapt_archive_free(archive);
}

Test(archive_errors, an_index_that_is_none)
{
    char index[96];
    snprintf(index, sizeof index, "%s/a.safetensors.index.json", directory);
    FILE *file = fopen(index, "wb");
    cr_assert_not_null(file);
    cr_assert_eq(ftruncate(fileno(file), 100000001), 0);
    fclose(file);
    cr_expect_null(rapt_load_safetensors(index));
    expect_error(RAPT_ERROR_FORMAT, "an index of 100000001 bytes; at most 100000000 expected");
}
