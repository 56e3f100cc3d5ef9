/* safetensors while memory runs out: at every allocation of anybody in the process, once and from then on. */
#include "failing_malloc.h"
#include <rapt.h>

#include "safetensors_file.h"

#include "tensor/core.h"

TestSuite(safetensors_memory, .init = make_directory, .fini = remove_directory);

/* Names and texts that need escapes, and are long enough to make any buffer grow. */
static rapt_archive *rich_archive(double value)
{
    RAPT_SCOPE;
    rapt_archive *archive = small_archive(value);
    char name[1200];
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "läyer.%d.\"weight\"\n%0*d", i, i * 25 + 1, 0);
        cr_assert(rapt_archive_add(archive, name, rapt_full(RAPT_INT32, RAPT_SHAPE(2, 3), value)));
        cr_assert(rapt_archive_add_text(archive, name, name));
    }
    rapt_tensor *matrix = rapt_full(RAPT_FLOAT32, RAPT_SHAPE(4, 2), value);
    cr_assert(rapt_archive_add(archive, "transposed",
                               rapt_new_view(matrix, matrix->data, 2, (int64_t[]){2, 4}, (int64_t[]){1, 2})));
    return archive;
}

static long count_blocks(void)
{
    rapt_memory_trim();
    return allocator.live;
}

static void expect_first_value(double value)
{
    rapt_archive *archive = load();
    cr_expect_eq(rapt_at(rapt_archive_find(archive, "one"), (int64_t[]){0}), value);
    cr_expect_eq(rapt_at(rapt_archive_find(archive, "transposed"), (int64_t[]){1, 3}), value);
    rapt_archive_free(archive);
}

/* The error is of memory; it names the file, unless it is about the numbers of one tensor. */
static void expect_memory_error(void)
{
    fail_malloc(-1, false);
    const char *bytes = rapt_error() ? strstr(rapt_error(), ": no memory for ") : NULL;
    int size, end = 0;
    const bool is_of_tensor = bytes && sscanf(bytes, ": no memory for %d bytes%n", &size, &end) == 1 && end > 0;
    expect_error(RAPT_ERROR_MEMORY, is_of_tensor ? " bytes" : path);
}

static void load_with_failures(bool for_good)
{
    rapt_archive *archive = rich_archive(1);
    cr_assert(rapt_save_safetensors(path, archive));
    rapt_archive_free(archive);
    rapt_archive_free(load());
    const long blocks = count_blocks();
    bool all_succeed = false;
    long failures = 0, n = 0;
    for (; !all_succeed; n++) {
        fail_malloc(n, for_good);
        archive = rapt_load_safetensors(path);
        all_succeed = allocator.failed == 0;
        failures += !archive;
        if (!archive) expect_memory_error();
        fail_malloc(-1, false);
        expect_no_error();
        rapt_archive_free(archive);
        cr_expect_eq(count_blocks(), blocks, "%ld blocks too many after failure %ld", count_blocks() - blocks, n);
    }
    cr_expect_gt(failures, 100, "only %ld of %ld allocations were necessary", failures, n);
}

Test(safetensors_memory, loading_when_one_allocation_fails)
{
    load_with_failures(false);
}

Test(safetensors_memory, loading_when_all_allocations_fail_from_the_nth_on)
{
    load_with_failures(true);
}

static void save_with_failures(bool for_good)
{
    rapt_archive *old = rich_archive(1), *new = rich_archive(2);
    cr_assert(rapt_save_safetensors(path, new));
    const long blocks = count_blocks();
    bool all_succeed = false;
    for (long n = 0; !all_succeed; n++) {
        cr_assert(rapt_save_safetensors(path, old));
        rapt_memory_trim(); /* no block lies ready */
        fail_malloc(n, for_good);
        const bool saved = rapt_save_safetensors(path, new);
        all_succeed = allocator.failed == 0;
        if (!saved) expect_memory_error();
        fail_malloc(-1, false);
        expect_no_error();
        expect_first_value(saved ? 2 : 1);
        cr_expect_eq(files(), 1);
        cr_expect_eq(count_blocks(), blocks, "%ld blocks too many after failure %ld", count_blocks() - blocks, n);
    }
    rapt_archive_free(old);
    rapt_archive_free(new);
}

Test(safetensors_memory, saving_when_one_allocation_fails)
{
    save_with_failures(false);
}

Test(safetensors_memory, saving_when_all_allocations_fail_from_the_nth_on)
{
    save_with_failures(true);
}

/* A checkpoint of a layer and its optimizer, at every failing allocation: the old file and the old weights, or the
 * new. */
static void checkpoint_with_failures(bool for_good)
{
    RAPT_SCOPE;
    rapt_linear *layer = rapt_linear_new(3, 2, RAPT_BIAS);
    rapt_optimizer *adam = rapt_adam_new(&layer->module, NULL);
    rapt_checkpoint checkpoint = {.module = &layer->module, .optimizer = adam, .step = 1, .note = "note"};
    cr_assert(rapt_fill(layer->weight, 1) && rapt_fill(layer->bias, 1));
    cr_assert(rapt_checkpoint_save(path, &checkpoint), "%s", rapt_error());
    const long blocks = count_blocks();
    for (long n = 0, failed = 1; failed; n++) {
        cr_assert(rapt_fill(layer->weight, 2));
        fail_malloc(n, for_good);
        const bool saved = rapt_checkpoint_save(path, &checkpoint);
        failed = allocator.failed;
        fail_malloc(-1, false);
        if (!saved) expect_error(RAPT_ERROR_MEMORY, "no memory");
        expect_no_error();
        cr_expect_eq(files(), 1);
        cr_assert(rapt_checkpoint_load(path, &checkpoint), "%s", rapt_error());
        cr_expect_eq(rapt_at(layer->weight, (int64_t[]){1, 2}), saved ? 2 : 1);

        cr_assert(rapt_fill(layer->weight, 3) && rapt_fill(layer->bias, 3));
        fail_malloc(n, for_good);
        const bool loaded = rapt_checkpoint_load(path, &checkpoint);
        failed += allocator.failed;
        fail_malloc(-1, false);
        if (!loaded) expect_error(RAPT_ERROR_MEMORY, "no memory");
        expect_no_error();
        cr_expect_eq(rapt_at(layer->weight, (int64_t[]){1, 2}), !loaded ? 3 : saved ? 2 : 1);
        cr_expect_eq(rapt_at(layer->bias, (int64_t[]){1}) == 3, !loaded);
        cr_assert(rapt_fill(layer->weight, 1) && rapt_fill(layer->bias, 1));
        cr_assert(rapt_checkpoint_save(path, &checkpoint));
        cr_expect_eq(count_blocks(), blocks, "%ld blocks too many after failure %ld", count_blocks() - blocks, n);
    }
    rapt_optimizer_free(adam);
    rapt_module_free(&layer->module);
}

Test(safetensors_memory, checkpoints_when_one_allocation_fails)
{
    checkpoint_with_failures(false);
}

Test(safetensors_memory, checkpoints_when_all_allocations_fail_from_the_nth_on)
{
    checkpoint_with_failures(true);
}
