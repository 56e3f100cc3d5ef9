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

/* A file of a larger model is no file of this one, though all names are there. */
Test(module_file, a_file_of_another_architecture_is_refused)
{
    RAPT_SCOPE;
    char path[32];
    write_temporary_file(path, "", 0);
    rapt_linear *large = rapt_linear_new(2, 3, RAPT_BIAS), *small = rapt_linear_new(2, 3, 0);
    rapt_tensor *before = rapt_clone(small->weight);
    cr_assert(rapt_module_save(&large->module, path), "%s", rapt_error());
    cr_expect_not(rapt_module_load(&small->module, path));
    cr_expect_str_eq(rapt_error(), "module_load: there are 1 tensors that the module has not, such as 'bias'; "
                                   "rapt_load_part leaves them out");
    expect_error(RAPT_ERROR_FORMAT, "bias");
    cr_expect(same_bits(small->weight, before));
    cr_expect(rapt_module_load_part(&small->module, NULL, path), "%s", rapt_error());
    cr_expect(same_bits(small->weight, large->weight));
    unlink(path);
    rapt_module_free(&large->module);
    rapt_module_free(&small->module);
    expect_no_error();
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

/* --- tensors of several names --- */

/* "wte.weight" and "head.weight" are one; the child "again" is the child "wte". */
static rapt_module *tied_new(uint64_t seed)
{
    RAPT_SCOPE;
    rapt_seed(seed);
    rapt_module *root = rapt_module_finish((rapt_module *)RAPT_SEQUENTIAL(rapt_activation_new("ReLU", rapt_relu)));
    rapt_embedding *wte = rapt_embedding_new(4, 2);
    rapt_linear *head = rapt_linear_new(1, 1, RAPT_NO_BIAS);
    rapt_module_add_child(root, "wte", &wte->module);
    rapt_module_add_child(root, "head", &head->module);
    rapt_module_add_parameter(&head->module, "tied", wte->weight);
    rapt_module_add_child(root, "again", &wte->module);
    return rapt_module_finish(root);
}

Test(module_file, a_tensor_of_several_names_is_saved_once_and_loaded_by_any)
{
    RAPT_SCOPE;
    rapt_module *source = tied_new(1);
    rapt_archive *archive = rapt_archive_new();
    cr_expect(rapt_module_to_archive(source, NULL, archive), "%s", rapt_error());
    cr_assert_eq(rapt_archive_count(archive), 2);
    cr_expect_str_eq(rapt_archive_name(archive, 0), "wte.weight");
    cr_expect_str_eq(rapt_archive_name(archive, 1), "head.weight");
    rapt_tensor *values = rapt_clone(rapt_archive_tensor(archive, 0)), *head = rapt_archive_tensor(archive, 1);
    static const char *const names[][3] = {{"wte.weight"},
                                           {"head.tied"},
                                           {"again.weight"},
                                           {"wte.weight", "head.tied"},
                                           {"wte.weight", "head.tied", "again.weight"}};
    for (int i = 0; i < 5; i++) {
        rapt_archive *file = rapt_archive_new();
        rapt_module *target = tied_new(2);
        rapt_archive_add(file, "head.weight", head);
        for (int k = 0; k < 3 && names[i][k]; k++) rapt_archive_add(file, names[i][k], rapt_clone(values));
        cr_expect(rapt_module_from_archive(target, NULL, file), "%s", rapt_error());
        cr_expect(same_module(source, target));
        cr_expect_eq(rapt_module_find(target, "head.tied"), rapt_module_find(target, "wte.weight"), "tied still");
        rapt_archive_free(file);
        rapt_module_free(target);
    }
    rapt_archive_free(archive);
    rapt_module_free(source);
    expect_no_error();
}

Test(module_file, a_tensor_of_several_names_has_one_value)
{
    RAPT_SCOPE;
    rapt_module *source = tied_new(1), *target = tied_new(2), *before = tied_new(2);
    rapt_archive *archive = rapt_archive_new();
    rapt_module_to_archive(source, NULL, archive);
    rapt_archive_add(archive, "head.tied", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(4, 2)));
    cr_expect_not(rapt_module_from_archive(target, NULL, archive));
    expect_error(RAPT_ERROR_FORMAT, "head.tied has other values");
    cr_expect(same_module(target, before));
    rapt_archive_free(archive);
    rapt_module_free(source);
    rapt_module_free(target);
    rapt_module_free(before);
}

/* An archive may hold the module's own tensors, under other names. */
Test(module_file, values_are_exchanged_through_an_archive)
{
    RAPT_SCOPE;
    rapt_module *node = (rapt_module *)RAPT_SEQUENTIAL(rapt_activation_new("ReLU", rapt_relu));
    rapt_tensor *a = rapt_module_add_parameter(node, "a", rapt_full(RAPT_FLOAT32, RAPT_SHAPE(2), 1));
    rapt_tensor *b = rapt_module_add_parameter(node, "b", rapt_full(RAPT_FLOAT32, RAPT_SHAPE(2), 2));
    rapt_archive *archive = rapt_archive_new();
    rapt_archive_add(archive, "a", b);
    rapt_archive_add(archive, "b", a);
    cr_expect(rapt_module_from_archive(node, NULL, archive), "%s", rapt_error());
    expect_values("a", a, 2, (double[]){2, 2}, 0);
    expect_values("b", b, 2, (double[]){1, 1}, 0);
    rapt_archive_free(archive);
    rapt_module_free(node);
}

/* So may tensors in the module's memory, whichever of the two wraps the other's. */
Test(module_file, values_are_exchanged_through_memory_of_others)
{
    enum { both_wrap, module_wraps, archive_looks, ways };
    for (int way = 0; way < ways; way++) {
        RAPT_SCOPE;
        rapt_module *node = (rapt_module *)RAPT_SEQUENTIAL(rapt_activation_new("ReLU", rapt_relu));
        rapt_archive *archive = rapt_archive_new();
        rapt_tensor *memory[2], *looks[2];
        for (int i = 0; i < 2; i++) memory[i] = rapt_full(RAPT_FLOAT32, RAPT_SHAPE(2), i + 1);
        for (int i = 0; i < 2; i++) {
            const char *name = i == 0 ? "a" : "b";
            void *own = rapt_data_for_writing(memory[i]), *other = rapt_data_for_writing(memory[1 - i]);
            looks[i] = way == archive_looks ? memory[i] : rapt_wrap(RAPT_FLOAT32, RAPT_SHAPE(2), NULL, own, NULL, NULL);
            rapt_tensor *stored = memory[1 - i];
            if (way == both_wrap) stored = rapt_wrap(RAPT_FLOAT32, RAPT_SHAPE(2), NULL, other, NULL, NULL);
            if (way == archive_looks)
                stored = rapt_wrap_read_only(RAPT_FLOAT32, RAPT_SHAPE(2), NULL, other, NULL, NULL);
            rapt_module_add_parameter(node, name, looks[i]);
            rapt_archive_add(archive, name, stored);
        }
        cr_expect(rapt_module_from_archive(node, NULL, archive), "%s", rapt_error());
        expect_values("a", looks[0], 2, (double[]){2, 2}, 0);
        expect_values("b", looks[1], 2, (double[]){1, 1}, 0);
        rapt_archive_free(archive);
        rapt_module_free(node);
    }
    expect_no_error();
}

Test(module_file, without_memory_nothing_is_loaded)
{
    RAPT_SCOPE;
    rapt_module *source = tied_new(1), *target = tied_new(2), *before = tied_new(2);
    rapt_archive *archive = rapt_archive_new();
    rapt_module_to_archive(source, NULL, archive);
    int failures = 0;
    for (;; failures++) {
        rapt_memory_fail_after(failures);
        const bool good = rapt_module_from_archive(target, NULL, archive);
        rapt_memory_fail_after(-1);
        if (good) break;
        expect_error(RAPT_ERROR_MEMORY, "memory");
        cr_expect(same_module(target, before));
        cr_assert_lt(failures, 100);
    }
    cr_expect_gt(failures, 0);
    cr_expect(same_module(target, source));
    rapt_archive_free(archive);
    rapt_module_free(source);
    rapt_module_free(target);
    rapt_module_free(before);
}
