/* Checkpoints with a bad entry or a bad byte, and without memory: an error, and nothing is changed. */
#include "checkpointing.h"

#include <math.h>
#include <stdio.h>

#include "tensor/memory.h"

TestSuite(checkpoint_damage, .init = new_path, .fini = remove_path);

/* Changes one entry of a good checkpoint: the tensor of that name becomes another one, NULL: goes. */
static void expect_bad_entry(const char *name, rapt_tensor *replacement, const char *part)
{
    run r = start_run();
    cr_assert(rapt_checkpoint_save(path, &(rapt_checkpoint){.module = r.module,
                                                            .optimizer = r.optimizer,
                                                            .order = rapt_randperm(4)}));
    rapt_random_set_state((rapt_random_state){21, 22});
    rapt_archive *good = rapt_load_safetensors(path), *bad = rapt_archive_new();
    for (int64_t i = 0; i < rapt_archive_count(good); i++) {
        bool same = strcmp(rapt_archive_name(good, i), name) == 0;
        rapt_tensor *tensor = same ? replacement : rapt_archive_tensor(good, i);
        if (tensor) cr_assert(rapt_archive_add(bad, rapt_archive_name(good, i), tensor), "%s", rapt_error());
    }
    if (!rapt_archive_find(good, name) && replacement) rapt_archive_add(bad, name, replacement);
    const char *keys[] = {"format", "module.kind", "optimizer.kind"};
    for (int i = 0; i < 3; i++) rapt_archive_add_text(bad, keys[i], rapt_archive_find_text(good, keys[i]));
    cr_assert(rapt_save_safetensors(path, bad), "%s", rapt_error());
    cr_expect_not(rapt_checkpoint_load(path, &r.checkpoint), "%s", name);
    cr_expect(rapt_error() && strstr(rapt_error(), part), "%s: %s", name, rapt_error());
    rapt_clear_error();
    expect_unchanged(&r);
    rapt_archive_free(good), rapt_archive_free(bad);
    end_run(&r);
}

Test(checkpoint_damage, every_bad_entry_is_refused)
{
    RAPT_SCOPE;
    rapt_tensor *wrong = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2));
    const char *const names[] = {"step",
                                 "random_state",
                                 "order",
                                 "module.weight",
                                 "module.bias",
                                 "module.mean",
                                 "optimizer.steps",
                                 "optimizer.learning_rate",
                                 "optimizer.bias.step",
                                 "optimizer.bias.exp_avg",
                                 "optimizer.weight.exp_avg_sq",
                                 "records"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        expect_bad_entry(names[i], wrong, names[i]);
        if (strcmp(names[i], "order") != 0 && strcmp(names[i], "records") != 0)
            expect_bad_entry(names[i], NULL, names[i]);
    }
    const int64_t minus = -1, huge = INT64_MAX;
    expect_bad_entry("step", rapt_from(RAPT_INT64, 0, NULL, &minus), "step is -1");
    expect_bad_entry("optimizer.bias.step", rapt_from(RAPT_INT64, 0, NULL, &huge),
                     "optimizer.bias.step is 9223372036854775807");
    expect_bad_entry("optimizer.learning_rate", rapt_scalar(RAPT_FLOAT64, (double)NAN), "optimizer.learning_rate is");
    expect_bad_entry("optimizer.learning_rate", rapt_scalar(RAPT_FLOAT64, -1), "optimizer.learning_rate is -1");
}

/* Cuts the file at every length, and turns over a bit of every byte of its header. */
Test(checkpoint_damage, damaged_file_changes_nothing)
{
    RAPT_SCOPE;
    run r = start_run();
    cr_assert(rapt_checkpoint_save(path, &(rapt_checkpoint){.module = r.module, .optimizer = r.optimizer}));
    rapt_random_set_state((rapt_random_state){21, 22});
    static char bytes[16384];
    FILE *file = fopen(path, "rb");
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    cr_assert(size > 1000 && size < sizeof bytes);
    uint64_t header;
    memcpy(&header, bytes, sizeof header);
    for (size_t length = 0; length < size; length += length < 64 ? 1 : 37) {
        file = fopen(path, "wb");
        fwrite(bytes, 1, length, file);
        fclose(file);
        cr_expect_not(rapt_checkpoint_load(path, &r.checkpoint), "cut at %zu", length);
        cr_expect_not_null(rapt_error());
        rapt_clear_error();
    }
    expect_unchanged(&r);
    for (size_t i = 0; i < 8 + header; i++) {
        bytes[i] ^= (char)(1 << i % 7);
        file = fopen(path, "wb");
        fwrite(bytes, 1, size, file);
        fclose(file);
        bytes[i] ^= (char)(1 << i % 7);
        RAPT_SCOPE;
        if (!rapt_checkpoint_load(path, &r.checkpoint)) {
            cr_expect_not_null(rapt_error());
            rapt_clear_error();
            expect_unchanged(&r);
        }
        /* Some bits do not matter, such as those of a blank. What was loaded is then what was there. */
        rapt_random_set_state((rapt_random_state){21, 22});
        r.checkpoint = (rapt_checkpoint){.module = r.module, .optimizer = r.optimizer, .step = 77, .order = r.weight};
        rapt_archive_free(r.state);
        r.state = rapt_archive_new();
        cr_assert(rapt_optimizer_to_archive(r.optimizer, "o.", r.state));
    }
    end_run(&r);
}

Test(checkpoint_damage, out_of_memory_changes_nothing)
{
    RAPT_SCOPE;
    run r = start_run();
    rapt_module *module = model_of(&model_class);
    rapt_optimizer *optimizer = optimizer_of(1, module);
    train_step(module, optimizer, true);
    rapt_checkpoint saved = {.module = module, .optimizer = optimizer, .step = 1, .order = rapt_randperm(5)};
    int failures = 0;
    for (;; failures++) {
        rapt_memory_fail_after(failures);
        bool good = rapt_checkpoint_save(path, &saved);
        rapt_memory_fail_after(-1);
        if (good) break;
        expect_error(RAPT_ERROR_MEMORY, "no memory");
    }
    cr_expect_gt(failures, 2);
    rapt_random_set_state((rapt_random_state){21, 22});
    for (failures = 0;; failures++) {
        rapt_memory_fail_after(failures);
        bool good = rapt_checkpoint_load(path, &r.checkpoint);
        rapt_memory_fail_after(-1);
        if (good) break;
        expect_error(RAPT_ERROR_MEMORY, "no memory");
        expect_unchanged(&r);
    }
    cr_expect_gt(failures, 10);
    cr_expect_eq(rapt_optimizer_get_steps(r.optimizer), 1);
    rapt_optimizer_free(optimizer);
    rapt_module_free(module);
    end_run(&r);
}
