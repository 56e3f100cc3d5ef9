/* Optimizer state in archives, and checkpoints of whole runs: what is saved goes on as if it had never stopped. */
#include "checkpointing.h"

#include "tensor/memory.h"

static const rapt_module_class other_class = {.name = "Other"};

TestSuite(checkpoint, .init = new_path, .fini = remove_path);

Test(checkpoint, continues_bit_for_bit)
{
    for (int kind = 0; kind < kinds; kind++) {
        RAPT_SCOPE;
        rapt_seed(UINT64_MAX - 5);
        rapt_module *module = model_of(&model_class), *fresh = model_of(&model_class);
        rapt_optimizer *optimizer = optimizer_of(kind, module), *other = optimizer_of(kind, fresh);
        for (int i = 0; i < 4; i++) train_step(module, optimizer, i % 2 == 1);
        rapt_fill(rapt_module_find(module, "mean"), 5);
        rapt_tensor *order = rapt_randperm(10), *records = rapt_full(RAPT_FLOAT64, RAPT_SHAPE(4), 0.1);
        cr_assert(rapt_checkpoint_save(path, &(rapt_checkpoint){.module = module,
                                                                .optimizer = optimizer,
                                                                .step = 4,
                                                                .order = order,
                                                                .records = records,
                                                                .note = "a \"note\"\n"}),
                  "%s", rapt_error());
        for (int i = 0; i < 5; i++) train_step(module, optimizer, true);

        rapt_seed(1);
        rapt_checkpoint loaded = {.module = fresh, .optimizer = other, .note = "a \"note\"\n"};
        cr_assert(rapt_checkpoint_load(path, &loaded), "%s", rapt_error());
        cr_expect_eq(loaded.step, 4);
        cr_expect_eq(rapt_random_get_state().seed, UINT64_MAX - 5);
        cr_expect_eq(rapt_optimizer_get_steps(other), 4);
        rapt_full(RAPT_INT64, RAPT_SHAPE(10), -1); /* would get the memory of an order that was not kept */
        cr_assert_not_null(loaded.order);
        cr_expect(same_bits(loaded.order, order));
        cr_expect(rapt_same_shape(loaded.records, records) && same_bits(loaded.records, records));
        cr_expect_eq(element(rapt_module_find(fresh, "mean"), 1), 5);
        for (int i = 0; i < 5; i++) train_step(fresh, other, true);
        cr_expect(same_bits(rapt_module_find(module, "weight"), rapt_module_find(fresh, "weight")), "kind %d", kind);
        cr_expect(same_bits(rapt_module_find(module, "bias"), rapt_module_find(fresh, "bias")), "kind %d", kind);
        rapt_optimizer_free(optimizer), rapt_optimizer_free(other);
        rapt_module_free(module), rapt_module_free(fresh);
    }
    expect_no_error();
}

Test(checkpoint, random_state_is_exact)
{
    RAPT_SCOPE;
    const rapt_random_state state = {.seed = UINT64_C(0xfedcba9876543211), .offset = UINT64_C(0x8000000000000001)};
    rapt_module *module = model_of(&model_class);
    rapt_random_set_state(state);
    cr_expect(rapt_checkpoint_save(path, &(rapt_checkpoint){.module = module}), "%s", rapt_error());
    rapt_seed(3);
    rapt_checkpoint loaded = {.module = module, .step = 8, .order = rapt_arange(RAPT_INT64, 0, 3, 1)};
    cr_expect(rapt_checkpoint_load(path, &loaded), "%s", rapt_error());
    cr_expect_eq(rapt_random_get_state().seed, state.seed);
    cr_expect_eq(rapt_random_get_state().offset, state.offset);
    cr_expect_eq(loaded.step, 0);
    cr_expect_null(loaded.order);
    cr_expect_null(loaded.records);
    rapt_module_free(module);
    expect_no_error();
}

/* Saves a run with another module, optimizer kind and options, and expects that loading it into the run fails. */
static void expect_mismatch(const rapt_module_class *module_kind, int optimizer_kind, const char *note,
                            const char *part)
{
    rapt_module *module = model_of(module_kind);
    rapt_optimizer *optimizer = optimizer_kind < 0 ? NULL : optimizer_of(optimizer_kind, module);
    if (optimizer) train_step(module, optimizer, true);
    cr_assert(rapt_checkpoint_save(path, &(rapt_checkpoint){.module = module, .optimizer = optimizer, .note = note}));
    run r = start_run();
    r.checkpoint.note = "mine";
    cr_expect_not(rapt_checkpoint_load(path, &r.checkpoint));
    expect_error(RAPT_ERROR_FORMAT, part);
    expect_unchanged(&r);
    end_run(&r);
    rapt_optimizer_free(optimizer);
    rapt_module_free(module);
}

Test(checkpoint, of_something_else_is_refused)
{
    RAPT_SCOPE;
    expect_mismatch(&other_class, 1, "mine", "module.kind is 'Other'; 'Model' expected");
    expect_mismatch(&model_class, 0, "mine",
                    "optimizer.kind is 'SGD: momentum_buffer'; 'Adam: exp_avg, exp_avg_sq' expected");
    expect_mismatch(&model_class, 2, "mine", "optimizer.kind is 'AdamW");
    expect_mismatch(&model_class, 6, "mine", "optimizer.kind is 'Adafactor: row_var, col_var, variance'");
    expect_mismatch(&model_class, -1, "mine", "optimizer.kind is missing");
    expect_mismatch(&model_class, 1, "yours", "note is 'yours'; 'mine' expected");
    expect_mismatch(&model_class, 1, NULL, "note is missing");
}

/* Three bytes a letter, so that the part that is shown could begin within one. */
Test(checkpoint, notes_that_differ_far_inside_are_shown_from_there)
{
    RAPT_SCOPE;
    rapt_module *module = model_of(&model_class);
    for (int letters = 30; letters < 200; letters++) {
        char mine[700] = "", yours[700];
        for (int i = 0; i < letters; i++) strcat(mine, "\u2113");
        snprintf(yours, sizeof yours, "%s 3e-5", mine);
        strcat(mine, " 3e-4");
        rapt_archive *archive = rapt_archive_new();
        cr_assert(rapt_checkpoint_to_archive(&(rapt_checkpoint){.module = module, .note = yours}, archive));
        cr_expect_not(rapt_checkpoint_from_archive(&(rapt_checkpoint){.module = module, .note = mine}, archive));
        cr_expect_eq(strstr(rapt_error(), "note is '...\u2113") != NULL, letters > 38, "%s", rapt_error());
        cr_expect(strstr(rapt_error(), "\u2113 3e-4' expected"), "%s", rapt_error());
        expect_error(RAPT_ERROR_FORMAT, "\u2113 3e-5'; '");
        rapt_archive_free(archive);
    }
    rapt_module_free(module);
}

/* Of a larger model, whose names have all of this one's among them. */
Test(checkpoint, of_a_larger_model_is_refused)
{
    RAPT_SCOPE;
    rapt_module *larger = model_of(&model_class);
    rapt_module_add_parameter(larger, "more", rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2)));
    cr_assert(rapt_checkpoint_save(path, &(rapt_checkpoint){.module = larger, .note = "mine"}), "%s", rapt_error());
    run r = start_run();
    r.checkpoint.note = "mine";
    r.checkpoint.optimizer = NULL;
    cr_expect_not(rapt_checkpoint_load(path, &r.checkpoint));
    expect_error(RAPT_ERROR_FORMAT, "checkpoint_load: there are 1 tensors that the module has not, such as 'more'");
    r.checkpoint.optimizer = r.optimizer;
    expect_unchanged(&r);
    end_run(&r);
    rapt_module_free(larger);
}

/* By way of an archive, which a program writes by itself. */
Test(checkpoint, to_an_archive_and_back)
{
    RAPT_SCOPE;
    run r = start_run();
    r.checkpoint.order = NULL;
    rapt_archive *archive = rapt_archive_new();
    cr_assert(rapt_checkpoint_to_archive(&r.checkpoint, archive), "%s", rapt_error());
    rapt_module *module = model_of(&model_class);
    rapt_checkpoint loaded = {.module = module};
    cr_expect(rapt_checkpoint_from_archive(&loaded, archive), "%s", rapt_error());
    cr_expect_eq(loaded.step, r.checkpoint.step);
    cr_expect(same_bits(rapt_module_find(module, "weight"), rapt_module_find(r.module, "weight")));
    expect_no_error();
    cr_expect_not(rapt_checkpoint_to_archive(&r.checkpoint, NULL));
    expect_error(RAPT_ERROR_NULL, "archive");
    cr_expect_not(rapt_checkpoint_to_archive(NULL, archive));
    expect_error(RAPT_ERROR_NULL, "checkpoint");
    cr_expect_not(rapt_checkpoint_from_archive(&loaded, NULL));
    expect_error(RAPT_ERROR_NULL, "archive");
    cr_expect_not(rapt_checkpoint_from_archive(&(rapt_checkpoint){0}, archive));
    expect_error(RAPT_ERROR_NULL, "module");
    rapt_archive_free(archive);
    rapt_module_free(module);
    end_run(&r);
}

Test(checkpoint, optimizer_may_be_left_out)
{
    RAPT_SCOPE;
    run r = start_run();
    cr_expect(rapt_checkpoint_save(path, &(rapt_checkpoint){.module = r.module, .optimizer = r.optimizer}));
    rapt_module *module = model_of(&model_class);
    cr_expect(rapt_checkpoint_load(path, &(rapt_checkpoint){.module = module}), "%s", rapt_error());
    cr_expect(same_bits(rapt_module_find(module, "weight"), r.weight));
    rapt_module_free(module);
    end_run(&r);
    expect_no_error();
}

Test(checkpoint, bad_arguments)
{
    RAPT_SCOPE;
    rapt_module *module = model_of(&model_class);
    rapt_checkpoint good = {.module = module};
    cr_expect_not(rapt_checkpoint_save(NULL, &good));
    expect_error(RAPT_ERROR_NULL, "path");
    cr_expect_not(rapt_checkpoint_save(path, NULL));
    expect_error(RAPT_ERROR_NULL, "checkpoint");
    cr_expect_not(rapt_checkpoint_save(path, &(rapt_checkpoint){0}));
    expect_error(RAPT_ERROR_NULL, "module");
    cr_expect_not(rapt_checkpoint_save(path, &(rapt_checkpoint){.module = module, .step = -1}));
    expect_error(RAPT_ERROR_VALUE, "step is -1; 0 or more expected, below 2^62");
    rapt_tensor *wrong = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2));
    cr_expect_not(rapt_checkpoint_save(path, &(rapt_checkpoint){.module = module, .order = wrong}));
    expect_error(RAPT_ERROR_SHAPE, "order is float32 [2]; int64 (n) expected");
    cr_expect_not(rapt_checkpoint_save(path, &(rapt_checkpoint){.module = module, .records = wrong}));
    expect_error(RAPT_ERROR_SHAPE, "records is float32 [2]; float64 (n) expected");
    cr_expect_not(rapt_checkpoint_load(NULL, &good));
    expect_error(RAPT_ERROR_NULL, "path");
    cr_expect_not(rapt_checkpoint_load("/nonexistent/file", &good));
    expect_error(RAPT_ERROR_FILE, "/nonexistent/file");
    cr_expect(rapt_module_save(module, path));
    cr_expect_not(rapt_checkpoint_load(path, &good));
    expect_error(RAPT_ERROR_FORMAT, "format is missing");
    rapt_module_free(module);
}

/* What loading refuses is not written, and the older file stays. */
Test(checkpoint, what_could_not_be_read_is_not_written)
{
    RAPT_SCOPE;
    rapt_module *module = model_of(&model_class);
    rapt_watch watch = {.values = 3};
    rapt_plateau plateau = {.cuts = 1};
    rapt_checkpoint good = {.module = module, .step = (INT64_C(1) << 62) - 1, .watch = &watch, .plateau = &plateau};
    cr_assert(rapt_checkpoint_save(path, &good), "%s", rapt_error());
    const struct {
        int64_t step;
        rapt_watch watch;
        rapt_plateau plateau;
        const char *part;
    } bad[] = {{INT64_C(1) << 62, {0}, {.cuts = 0}, "step is 4611686018427387904; 0 or more expected, below 2^62"},
               {0, {.values = -1}, {.cuts = 0}, "watch.values is -1; a whole number from 0 to 2^53 expected"},
               {0, {.best_at = INT64_MAX}, {.cuts = 0}, "watch.best_at is 9.22337e+18; a whole number from 0 to 2^53"},
               {0, {.waited = INT64_MIN}, {.cuts = 0}, "watch.waited is -9.22337e+18; a whole number from 0 to 2^53"},
               {0, {0}, {.watch.waited = -2}, "plateau.waited is -2; a whole number"},
               {0, {0}, {.cuts = -3}, "plateau.cuts is -3; a whole number"},
               {0, {0}, {.cooling = -4}, "plateau.cooling is -4; a whole number"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        rapt_watch taken = bad[i].watch;
        rapt_plateau cut = bad[i].plateau;
        const rapt_checkpoint checkpoint = {.module = module, .step = bad[i].step, .watch = &taken, .plateau = &cut};
        cr_expect_not(rapt_checkpoint_save(path, &checkpoint), "%s", bad[i].part);
        expect_error(RAPT_ERROR_VALUE, bad[i].part);
    }
    watch.values = plateau.cuts = good.step = 0;
    cr_expect(rapt_checkpoint_load(path, &good), "%s", rapt_error());
    cr_expect(good.step == (INT64_C(1) << 62) - 1 && watch.values == 3 && plateau.cuts == 1);
    rapt_module_free(module);
}

/* Nothing could load it. */
Test(checkpoint, the_optimizer_of_a_module_that_was_cast_is_not_saved)
{
    RAPT_SCOPE;
    rapt_module *module = model_of(&model_class);
    rapt_optimizer *adam = rapt_adam_new(module, NULL);
    train_step(module, adam, true);
    const rapt_checkpoint whole = {.module = module, .optimizer = adam}, alone = {.module = module};
    cr_assert(rapt_checkpoint_save(path, &whole), "%s", rapt_error());
    cr_assert(rapt_module_cast(module, RAPT_FLOAT64));
    cr_expect_not(rapt_checkpoint_save(path, &whole));
    expect_error(RAPT_ERROR_DTYPE, "'weight' is float64 now, its exp_avg is float32");
    cr_expect(rapt_checkpoint_save(path, &alone), "%s", rapt_error());
    rapt_optimizer_free(adam);
    rapt_module_free(module);
    expect_no_error();
}

Test(checkpoint, optimizer_archive_alone)
{
    RAPT_SCOPE;
    run r = start_run();
    rapt_module *module = model_of(&model_class);
    rapt_optimizer *optimizer = optimizer_of(1, module);
    cr_expect(rapt_optimizer_from_archive(optimizer, "o.", r.state), "%s", rapt_error());
    cr_expect_eq(rapt_optimizer_get_steps(optimizer), 3);
    train_step(r.module, r.optimizer, true);
    rapt_archive *now = rapt_archive_new();
    cr_expect(rapt_optimizer_to_archive(optimizer, "o.", now));
    cr_expect(same_bits(rapt_archive_find(now, "o.weight.exp_avg_sq"), r.moment), "loading copies");
    rapt_archive_free(now);
    expect_no_error();
    cr_expect_not(rapt_optimizer_from_archive(optimizer, NULL, r.state));
    expect_error(RAPT_ERROR_FORMAT, "kind is missing");
    cr_expect_not(rapt_optimizer_from_archive(NULL, NULL, r.state));
    expect_error(RAPT_ERROR_NULL, "optimizer");
    cr_expect_not(rapt_optimizer_to_archive(optimizer, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "archive");
    rapt_optimizer_free(optimizer);
    rapt_module_free(module);
    end_run(&r);
}

/* As many parameters as there is room for: AddressSanitizer sees what goes beyond the last one. */
Test(checkpoint, optimizers_whose_lists_are_full)
{
    RAPT_SCOPE;
    rapt_optimizer *optimizer = rapt_adam_new(NULL, NULL);
    for (int count = 1; count <= 64; count++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", count);
        cr_assert(rapt_optimizer_add(optimizer, name, rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1)))));
        rapt_archive *archive = rapt_archive_new();
        cr_expect(rapt_optimizer_to_archive(optimizer, "o.", archive), "%d: %s", count, rapt_error());
        cr_expect(rapt_optimizer_from_archive(optimizer, "o.", archive), "%d: %s", count, rapt_error());
        rapt_archive_free(archive);
    }
    rapt_optimizer_free(optimizer);
    expect_no_error();
}

/* Two tensors and a text, one of the tensors under that name. */
static rapt_archive *archive_with(const char *name)
{
    RAPT_SCOPE;
    rapt_archive *archive = rapt_archive_new();
    cr_assert(rapt_archive_add_text(archive, "text", "of before") &&
              rapt_archive_add(archive, "tensor", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3))) &&
              rapt_archive_add(archive, name, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3))));
    return archive;
}

static void expect_as_it_was(const rapt_archive *archive, const char *name)
{
    cr_expect(rapt_archive_count(archive) == 2 && !rapt_archive_key(archive, 1), "%s: %lld tensors", name,
              (long long)rapt_archive_count(archive));
    cr_expect(rapt_archive_find(archive, "tensor") && rapt_archive_find(archive, name));
    cr_expect_str_eq(rapt_archive_find_text(archive, "text"), "of before");
}

/* Names that each comes to late are in use. */
Test(checkpoint, failures_leave_archives_as_they_were)
{
    RAPT_SCOPE;
    run r = start_run();
    rapt_average *average = rapt_average_new(r.module, NULL);
    const rapt_checkpoint checkpoint = {.module = r.module, .optimizer = r.optimizer, .average = average, .note = "n"};
    static const char *const names[] = {"bias", "bias.exp_avg_sq", "values.bias", "optimizer.bias.exp_avg_sq"};
    for (int i = 0; i < 4; i++) {
        rapt_archive *archive = archive_with(names[i]);
        cr_expect_not(i == 0   ? rapt_module_to_archive(r.module, NULL, archive)
                      : i == 1 ? rapt_optimizer_to_archive(r.optimizer, NULL, archive)
                      : i == 2 ? rapt_average_to_archive(average, NULL, archive)
                               : rapt_checkpoint_to_archive(&checkpoint, archive));
        expect_error(RAPT_ERROR_VALUE, "is in use already");
        expect_as_it_was(archive, names[i]);
        rapt_archive_free(archive);
    }
    rapt_archive *archive = archive_with("other");
    for (int after = 0;; after++) {
        rapt_memory_fail_after(after);
        const bool good = rapt_checkpoint_to_archive(&checkpoint, archive);
        rapt_memory_fail_after(-1);
        if (good) break;
        expect_error(RAPT_ERROR_MEMORY, "memory");
        expect_as_it_was(archive, "other");
        cr_assert_lt(after, 1000);
    }
    rapt_checkpoint read = checkpoint;
    cr_expect(rapt_checkpoint_from_archive(&read, archive), "%s", rapt_error());
    rapt_archive_free(archive);
    rapt_average_free(average);
    end_run(&r);
    expect_no_error();
}
