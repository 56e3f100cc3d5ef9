/* Modules to archives and files and back. */
#include "modules.h"

#include "temporary_file.h"

static const rapt_bahdanau_config config = {.vocabulary = 5, .embedding = 3, .hidden = 4, .layers = 2};

static rapt_module *make(uint64_t seed)
{
    rapt_seed(seed);
    rapt_module *module = (rapt_module *)rapt_bahdanau_decoder_new(&config);
    cr_assert_not_null(module, "%s", rapt_error());
    return module;
}

static bool is_same_in(const char *name, rapt_tensor *tensor, void *other)
{
    return same_bits(tensor, rapt_module_find(other, name));
}

static bool same_module(const rapt_module *a, rapt_module *b)
{
    return rapt_module_visit(a, RAPT_PARAMETERS | RAPT_BUFFERS, is_same_in, b);
}

Test(module_file, archive_round_trip)
{
    const int64_t before = live_bytes();
    rapt_module *a = make(1), *b = make(2), *same_as_b = make(2);
    cr_expect_not(same_module(a, b));
    cr_expect(same_module(same_as_b, b), "the seed decides the numbers");
    rapt_archive *archive = rapt_archive_new();
    cr_expect(rapt_module_to_archive(a, "model.", archive));
    cr_expect(rapt_module_to_archive(b, NULL, archive), "what is there besides is ignored");
    cr_expect_eq(rapt_archive_count(archive), 2 * (3 + 1 + 8 + 2));
    cr_expect_eq(rapt_archive_find(archive, "model.attention.W_q.weight"), rapt_module_find(a, "attention.W_q.weight"));
    rapt_tensor *pointer = rapt_module_find(same_as_b, "rnn.weight_hh_l1");
    cr_expect(rapt_module_from_archive(same_as_b, "model.", archive));
    cr_expect(same_module(a, same_as_b));
    cr_expect_eq(rapt_module_find(same_as_b, "rnn.weight_hh_l1"), pointer, "values are copied, tensors stay");
    cr_expect(rapt_requires_gradient(pointer));
    rapt_archive_free(archive);
    rapt_module_free(a);
    rapt_module_free(b);
    rapt_module_free(same_as_b);
    cr_expect_eq(live_bytes(), before);
    expect_no_error();
}

/* An archive with everything of `from` but one tensor, which is `instead` (NULL: missing). */
static rapt_archive *archive_without(const rapt_module *from, const char *name, rapt_tensor *instead)
{
    rapt_archive *all = rapt_archive_new(), *archive = rapt_archive_new();
    cr_assert(rapt_module_to_archive(from, NULL, all));
    for (int64_t i = 0; i < rapt_archive_count(all); i++)
        if (strcmp(rapt_archive_name(all, i), name) != 0)
            rapt_archive_add(archive, rapt_archive_name(all, i), rapt_archive_tensor(all, i));
    if (instead) rapt_archive_add(archive, name, instead);
    rapt_archive_free(all);
    return archive;
}

Test(module_file, bad_archives_change_nothing)
{
    RAPT_SCOPE;
    rapt_module *a = make(1), *b = make(2), *copy = make(2);
    const struct {
        rapt_tensor *instead;
        rapt_error_code code;
        const char *part;
    } bad[] = {{NULL, RAPT_ERROR_FORMAT, "dense.bias (float32 [5] expected)"},
               {rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(6)), RAPT_ERROR_SHAPE,
                "dense.bias is float32 [6]; float32 [5] expected"},
               {rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 5)), RAPT_ERROR_SHAPE, "float32 [1, 5]"},
               {rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(5)), RAPT_ERROR_SHAPE, "float64 [5]"}};
    for (int i = 0; i < 4; i++) {
        rapt_archive *archive = archive_without(a, "dense.bias", bad[i].instead);
        cr_expect_not(rapt_module_from_archive(b, NULL, archive));
        expect_error(bad[i].code, bad[i].part);
        cr_expect(same_module(b, copy));
        cr_expect_not(rapt_module_from_archive(b, "other.", archive));
        expect_error(RAPT_ERROR_FORMAT, "no tensor other.");
        rapt_archive_free(archive);
    }
    rapt_module_free(a);
    rapt_module_free(b);
    rapt_module_free(copy);
}

Test(module_file, file_round_trip)
{
    RAPT_SCOPE;
    char path[32];
    write_temporary_file(path, "", 0);
    rapt_module *a = make(1), *b = make(2);
    cr_expect(rapt_module_save(a, path), "%s", rapt_error());
    cr_expect(rapt_module_load(b, path), "%s", rapt_error());
    cr_expect(same_module(a, b));
    cr_expect(rapt_module_cast(b, RAPT_FLOAT64));
    cr_expect_not(rapt_module_load(b, path));
    expect_error(RAPT_ERROR_SHAPE, "float64");
    cr_expect(rapt_module_save(b, path));
    set_values(b, "dense.bias", (double[]){9, 9, 9, 9, 9});
    cr_expect(rapt_module_load(b, path));
    cr_expect(rapt_module_cast(b, RAPT_FLOAT32));
    cr_expect(same_module(a, b), "float64 files too");
    unlink(path);
    cr_expect_not(rapt_module_load(b, path));
    expect_error(RAPT_ERROR_FILE, path);
    cr_expect(same_module(a, b));
    rapt_module_free(a);
    rapt_module_free(b);
}

Test(module_file, bad_arguments)
{
    rapt_module *module = make(1);
    rapt_archive *archive = rapt_archive_new();
    cr_expect_not(rapt_module_to_archive(NULL, NULL, archive));
    expect_error(RAPT_ERROR_NULL, "module");
    cr_expect_not(rapt_module_to_archive(module, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "archive");
    cr_expect_not(rapt_module_from_archive(NULL, NULL, archive));
    expect_error(RAPT_ERROR_NULL, "module");
    cr_expect_not(rapt_module_from_archive(module, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "archive");
    cr_expect_not(rapt_module_save(NULL, "never-written"));
    expect_error(RAPT_ERROR_NULL, "module");
    cr_expect_not(rapt_module_save(module, NULL));
    expect_error(RAPT_ERROR_NULL, "");
    cr_expect_not(rapt_module_load(module, NULL));
    expect_error(RAPT_ERROR_NULL, "");
    char prefix[2000] = "";
    memset(prefix, 'p', sizeof prefix - 1);
    cr_expect_not(rapt_module_to_archive(module, prefix, archive));
    expect_error(RAPT_ERROR_VALUE, "longer than 1023 bytes: attention.W_k.weight");
    cr_expect_not(rapt_module_from_archive(module, prefix, archive));
    expect_error(RAPT_ERROR_VALUE, "longer than 1023 bytes: attention.W_k.weight");
    rapt_archive_free(archive);
    rapt_module_free(module);
}
