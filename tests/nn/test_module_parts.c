/* Parts of archives and files loaded into modules. */
#include "modules.h"

#include <stdio.h>

#include "temporary_file.h"

static void note(const char *name, rapt_load_outcome outcome, void *context)
{
    static const char *const outcomes[] =
        {[RAPT_LOAD_TAKEN] = "+", [RAPT_LOAD_MISSING] = "?", [RAPT_LOAD_SKIPPED] = "-", [RAPT_LOAD_UNUSED] = "!"};
    strcat(strcat(strcat(context, outcomes[outcome]), name), " ");
}

static rapt_module *pair_new(uint64_t seed)
{
    rapt_seed(seed);
    rapt_linear *a = rapt_linear_new(2, 3, RAPT_BIAS), *b = rapt_linear_new(3, 1, RAPT_BIAS);
    return (rapt_module *)RAPT_SEQUENTIAL(&a->module, &b->module);
}

static void expect_loaded(const rapt_load_part *part, const rapt_archive *archive, const char *expected)
{
    char notes[500] = "";
    rapt_load_part noted = *part;
    noted.report = note;
    noted.context = notes;
    rapt_module *fresh = pair_new(2), *before = pair_new(2), *source = pair_new(1);
    cr_assert(rapt_module_from_archive_part(fresh, &noted, archive), "%s", rapt_error());
    cr_expect_str_eq(notes, expected);
    static const char *const names[] = {"0.weight", "0.bias", "1.weight", "1.bias"};
    for (int i = 0; i < 4; i++) {
        char taken[20];
        snprintf(taken, sizeof taken, "+%s ", names[i]);
        rapt_module *as = strstr(expected, taken) ? source : before;
        cr_expect(same_bits(rapt_module_find(fresh, names[i]), rapt_module_find(as, names[i])), "%s", names[i]);
    }
    rapt_module_free(fresh);
    rapt_module_free(before);
    rapt_module_free(source);
    expect_no_error();
}

Test(module_parts, by_pattern_prefix_and_what_is_there)
{
    RAPT_SCOPE;
    rapt_module *source = pair_new(1);
    rapt_archive *whole = rapt_archive_new(), *partial = rapt_archive_new(), *prefixed = rapt_archive_new();
    rapt_module_to_archive(source, NULL, whole);
    rapt_archive_add(partial, "0.weight", rapt_module_find(source, "0.weight"));
    rapt_archive_add(partial, "head.weight", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1)));
    rapt_module_to_archive(source, "net.", prefixed);
    rapt_archive_add(prefixed, "other", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1)));
    expect_loaded(&(rapt_load_part){.prefix = NULL}, whole, "+0.weight +0.bias +1.weight +1.bias ");
    expect_loaded(&(rapt_load_part){.pattern = "0.*"}, whole, "+0.weight +0.bias -1.weight -1.bias ");
    expect_loaded(&(rapt_load_part){.pattern = "*.bias"}, whole, "-0.weight +0.bias -1.weight +1.bias ");
    expect_loaded(&(rapt_load_part){.allow_missing = true}, partial,
                  "+0.weight ?0.bias ?1.weight ?1.bias !head.weight ");
    expect_loaded(&(rapt_load_part){.allow_missing = true, .pattern = "0.*"}, partial,
                  "+0.weight ?0.bias -1.weight -1.bias !head.weight ");
    expect_loaded(&(rapt_load_part){.prefix = "net.", .pattern = "1.*"}, prefixed,
                  "-0.weight -0.bias +1.weight +1.bias ");
    rapt_archive_free(whole);
    rapt_archive_free(partial);
    rapt_archive_free(prefixed);
    rapt_module_free(source);
}

/* A pattern is that of first names; in the archive a tensor is found under any of its names. */
Test(module_parts, a_tensor_of_several_names)
{
    RAPT_SCOPE;
    rapt_linear *linear = rapt_linear_new(2, 3, 0);
    rapt_module *both[] = {&linear->module, &linear->module};
    rapt_sequential *twice = rapt_sequential_new(2, both);
    cr_assert(twice, "%s", rapt_error());
    const char *const names[] = {"0.weight", "1.weight"};
    for (int i = 0; i < 2; i++) {
        rapt_archive *archive = rapt_archive_new();
        rapt_archive_add(archive, names[i], rapt_full(RAPT_FLOAT32, RAPT_SHAPE(3, 2), i + 1));
        cr_expect(rapt_module_from_archive_part(&twice->module, &(rapt_load_part){.pattern = "0.*"}, archive), "%s",
                  rapt_error());
        cr_expect_eq(rapt_at(linear->weight, (int64_t[]){2, 1}), i + 1);
        cr_expect_not(rapt_module_from_archive_part(&twice->module, &(rapt_load_part){.pattern = "1.*"}, archive));
        expect_error(RAPT_ERROR_VALUE, "nothing matches '1.*', of the module's 1 tensors");
        rapt_archive_free(archive);
    }
    rapt_module_free(&twice->module);
    expect_no_error();
}

static void expect_refused(const rapt_load_part *part, const rapt_archive *archive, rapt_error_code code,
                           const char *text)
{
    char notes[500] = "";
    rapt_load_part noted = *part;
    noted.report = note;
    noted.context = notes;
    rapt_module *fresh = pair_new(2), *before = pair_new(2);
    cr_expect_not(rapt_module_from_archive_part(fresh, &noted, archive));
    expect_error(code, text);
    cr_expect_str_eq(notes, "", "nothing happened, nothing is reported");
    cr_expect(same_module(fresh, before));
    rapt_module_free(fresh);
    rapt_module_free(before);
}

Test(module_parts, parts_that_cannot_be_loaded_change_nothing)
{
    RAPT_SCOPE;
    rapt_module *source = pair_new(1);
    rapt_archive *archive = rapt_archive_new();
    rapt_archive_add(archive, "0.weight", rapt_module_find(source, "0.weight"));
    rapt_archive_add(archive, "1.bias", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2)));
    expect_refused(&(rapt_load_part){.pattern = "0.*"}, archive, RAPT_ERROR_FORMAT,
                   "no tensor 0.bias (float32 [3] expected)");
    expect_refused(&(rapt_load_part){.allow_missing = true}, archive, RAPT_ERROR_SHAPE,
                   "1.bias is float32 [2]; float32 [1] expected");
    expect_refused(&(rapt_load_part){.pattern = "encoder.*"}, archive, RAPT_ERROR_VALUE, "'encoder.*'");
    expect_refused(&(rapt_load_part){.pattern = "encoder.*", .allow_missing = true}, archive, RAPT_ERROR_VALUE,
                   "'encoder.*'");
    expect_refused(&(rapt_load_part){.prefix = "net.", .allow_missing = true}, archive, RAPT_ERROR_FORMAT,
                   "not even net.0.weight");
    rapt_archive_free(archive);
    rapt_module_free(source);
}

Test(module_parts, a_part_of_a_file)
{
    RAPT_SCOPE;
    char path[32];
    write_temporary_file(path, "", 0);
    rapt_module *a = pair_new(1), *b = pair_new(2);
    cr_expect(rapt_module_save(a, path), "%s", rapt_error());
    cr_expect(rapt_module_load_part(b, &(rapt_load_part){.pattern = "1.*"}, path), "%s", rapt_error());
    cr_expect_not(same_bits(rapt_module_find(a, "0.weight"), rapt_module_find(b, "0.weight")));
    cr_expect(same_bits(rapt_module_find(a, "1.weight"), rapt_module_find(b, "1.weight")));
    cr_expect(rapt_module_load_part(b, NULL, path), "%s", rapt_error());
    cr_expect(same_module(a, b));
    unlink(path);
    rapt_module_free(a);
    rapt_module_free(b);
}
