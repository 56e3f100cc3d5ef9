/* Optimizer state in archives, and checkpoints of whole runs: what is saved goes on as if it had never stopped. */
#include "optimizing.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "temporary_file.h"
#include "tensor/memory.h"

static const rapt_module_class model_class = {.name = "Model"}, other_class = {.name = "Other"};

/* Two parameters and a buffer, all zero. */
static rapt_module *model_of(const rapt_module_class *kind)
{
    rapt_module *module = rapt_module_new(sizeof *module, kind);
    rapt_module_add_parameter(module, "weight", rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(7, 3)));
    rapt_module_add_parameter(module, "bias", rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(3)));
    rapt_module_add_buffer(module, "mean", rapt_zeros(RAPT_INT32, RAPT_SHAPE(2)));
    return rapt_module_finish(module);
}

enum { kinds = 8 };

static rapt_optimizer *optimizer_of(int kind, rapt_module *module)
{
    switch (kind) {
    case 0:
        return rapt_sgd_new(module, &(rapt_sgd_config){.momentum = 0.9});
    case 1:
        return rapt_adam_new(module, NULL);
    case 2:
        return rapt_adamw_new(module, NULL);
    case 3:
        return rapt_rmsprop_new(module, &(rapt_rmsprop_config){.momentum = 0.5, .centered = true});
    case 4:
        return rapt_lion_new(module, NULL);
    case 5:
        return rapt_muon_new(module, NULL);
    case 6:
        return rapt_adafactor_new(module, NULL);
    default:
        return rapt_adagrad_new(module, &(rapt_adagrad_config){.learning_rate_decay = 0.1});
    }
}

/* One step with random gradients, the learning rate going down. */
static void train_step(rapt_module *module, rapt_optimizer *optimizer, bool with_bias)
{
    RAPT_SCOPE;
    rapt_tensor *weight = rapt_module_find(module, "weight"), *bias = rapt_module_find(module, "bias");
    give_gradient(weight, rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(7, 3)));
    if (with_bias) give_gradient(bias, rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(3)));
    cr_assert(rapt_optimizer_set_learning_rate(optimizer, rapt_optimizer_get_learning_rate(optimizer) * 0.9));
    cr_assert(rapt_optimizer_step(optimizer), "%s", rapt_error());
}

static char path[32];

static void new_path(void)
{
    write_temporary_file(path, "", 0);
}

static void remove_path(void)
{
    unlink(path);
}

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

/* A run that loads, and everything a failed load must leave as it was. */
typedef struct run {
    rapt_module *module;
    rapt_optimizer *optimizer;
    rapt_checkpoint checkpoint;
    rapt_tensor *weight, *bias, *moment; /* copies */
    rapt_archive *state;
} run;

static run start_run(void)
{
    run r = {.module = model_of(&model_class)};
    r.optimizer = optimizer_of(1, r.module);
    rapt_seed(11);
    for (int i = 0; i < 3; i++) train_step(r.module, r.optimizer, true);
    r.weight = rapt_clone(rapt_module_find(r.module, "weight"));
    r.bias = rapt_clone(rapt_module_find(r.module, "bias"));
    r.state = rapt_archive_new();
    cr_assert(rapt_optimizer_to_archive(r.optimizer, "o.", r.state), "%s", rapt_error());
    r.moment = rapt_clone(rapt_archive_find(r.state, "o.weight.exp_avg_sq"));
    rapt_random_set_state((rapt_random_state){21, 22});
    r.checkpoint = (rapt_checkpoint){.module = r.module, .optimizer = r.optimizer, .step = 77, .order = r.weight};
    return r;
}

static void expect_unchanged(const run *r)
{
    cr_expect(same_bits(rapt_module_find(r->module, "weight"), r->weight));
    cr_expect(same_bits(rapt_module_find(r->module, "bias"), r->bias));
    rapt_archive *now = rapt_archive_new();
    cr_assert(rapt_optimizer_to_archive(r->optimizer, "o.", now));
    cr_expect_eq(rapt_archive_find(now, "o.weight.exp_avg_sq"), rapt_archive_find(r->state, "o.weight.exp_avg_sq"));
    cr_expect(same_bits(rapt_archive_find(now, "o.weight.exp_avg_sq"), r->moment));
    cr_expect_eq(rapt_optimizer_get_steps(r->optimizer), 3);
    cr_expect_float_eq(rapt_optimizer_get_learning_rate(r->optimizer), 0.001 * 0.9 * 0.9 * 0.9, 1e-12);
    cr_expect_eq(rapt_random_get_state().seed, 21);
    cr_expect_eq(rapt_random_get_state().offset, 22);
    cr_expect_eq(r->checkpoint.step, 77);
    cr_expect_eq(r->checkpoint.order, r->weight);
    rapt_archive_free(now);
}

static void end_run(run *r)
{
    rapt_archive_free(r->state);
    rapt_optimizer_free(r->optimizer);
    rapt_module_free(r->module);
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

Test(checkpoint, every_bad_entry_is_refused)
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
Test(checkpoint, damaged_file_changes_nothing)
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

Test(checkpoint, out_of_memory_changes_nothing)
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
    expect_error(RAPT_ERROR_VALUE, "step is -1");
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
