/* Optimizers, averages, loaders and checkpoints while memory runs out: an error, nothing lost, nothing left behind. */
#include <rapt.h>

#include <stdio.h>
#include <unistd.h>

#include "address_sanitizer.h"
#include "memory_trials.h"

static rapt_linear *linear;
static char path[] = "/tmp/rapt-optim-memory-XXXXXX";

static void begin(void)
{
    linear = rapt_linear_new(3, 2, RAPT_BIAS);
    const int file = mkstemp(path);
    cr_assert(linear && file >= 0);
    close(file);
}

static void end(void)
{
    unlink(path);
    rapt_module_free(&linear->module);
}

TestSuite(optim_memory, .init = begin, .fini = end);

/* Gradients of the whole module; those of before stay where there is no memory. */
static rapt_tensor *loss(void)
{
    return rapt_mean(rapt_linear_forward(linear, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(4, 3))), RAPT_ALL_AXES, false);
}

static bool learns(void)
{
    rapt_module_clear_gradients(&linear->module);
    return rapt_backward(loss());
}

/* --- optimizers: steps, clipping, and the state to an archive and back --- */

static bool goes_through_archive(rapt_optimizer *optimizer)
{
    rapt_archive *state = rapt_archive_new();
    const bool good =
        rapt_optimizer_to_archive(optimizer, "o.", state) && rapt_optimizer_from_archive(optimizer, "o.", state);
    rapt_archive_free(state);
    return good;
}

static bool takes_steps(rapt_optimizer *optimizer)
{
    const bool good = optimizer && learns() && rapt_optimizer_step(optimizer) &&
                      rapt_clip_gradient_value(optimizer, 1e-3) && rapt_clip_gradient_norm(optimizer, 1e-4, NULL) &&
                      rapt_optimizer_step_clipped(optimizer, 1e-5, NULL) && goes_through_archive(optimizer) &&
                      rapt_optimizer_step(optimizer);
    rapt_optimizer_free(optimizer);
    rapt_module_clear_gradients(&linear->module);
    return good;
}

#define OPTIMIZER(id, call)                                                                                            \
    static bool steps_##id(void)                                                                                       \
    {                                                                                                                  \
        return takes_steps(call);                                                                                      \
    }

OPTIMIZER(sgd, rapt_sgd_new(&linear->module, &(rapt_sgd_config){.momentum = 0.9, .nesterov = true}))
OPTIMIZER(adam, rapt_adam_new(&linear->module, &(rapt_adam_config){.weight_decay = 0.1}))
OPTIMIZER(adamw, rapt_adamw_new(&linear->module, NULL))
OPTIMIZER(rmsprop, rapt_rmsprop_new(&linear->module, &(rapt_rmsprop_config){.centered = true, .momentum = 0.5}))
OPTIMIZER(adagrad, rapt_adagrad_new(&linear->module, NULL))
OPTIMIZER(lion, rapt_lion_new(&linear->module, NULL))
OPTIMIZER(adafactor, rapt_adafactor_new(&linear->module, NULL))
OPTIMIZER(muon, rapt_muon_new(&linear->module, NULL))

/* A step that was prepared takes no memory: the first one, which has a state to make. */
Test(optim_memory, what_was_prepared_needs_none)
{
    RAPT_SCOPE;
    rapt_optimizer *const optimizers[] = {rapt_sgd_new(&linear->module, &(rapt_sgd_config){.momentum = 0.9}),
                                          rapt_adam_new(&linear->module, NULL), rapt_lion_new(&linear->module, NULL),
                                          rapt_rmsprop_new(&linear->module, &(rapt_rmsprop_config){.centered = true})};
    for (int i = 0; i < 4; i++) {
        cr_assert(learns() && rapt_optimizer_prepare(optimizers[i]), "%s", rapt_error());
        cr_expect_eq(rapt_optimizer_get_steps(optimizers[i]), 0);
        cr_expect(rapt_gradient(linear->weight));
        rapt_memory_fail_after(0);
        fail_malloc(0, true);
        const bool stepped = rapt_optimizer_step(optimizers[i]);
        rapt_memory_fail_after(-1);
        fail_malloc(-1, false);
        cr_expect(stepped, "optimizer %d: %s", i, rapt_error());
        rapt_optimizer_free(optimizers[i]);
    }
}

/* Schedules of a group call it at each step: only so many groups are kept as have parameters. */
Test(optim_memory, groups_made_at_each_step_take_none)
{
    rapt_optimizer *sgd = rapt_sgd_new(&linear->module, NULL);
    rapt_group_config group = {.learning_rate = 0.5};
    for (int i = 0; i < 2; i++) cr_assert(rapt_optimizer_group(sgd, "bias", &group), "%s", rapt_error());
    fail_malloc(0, true);
    bool good = true;
    for (int i = 0; i < 100 && good; i++) {
        group.learning_rate = 0.25;
        good = rapt_optimizer_group(sgd, "bias", &group);
    }
    fail_malloc(-1, false);
    cr_expect(good, "%s", rapt_error());
    const double before = rapt_at(linear->bias, (int64_t[]){0}), kept = rapt_at(linear->weight, (int64_t[]){0, 0});
    cr_assert(learns() && rapt_optimizer_step(sgd), "%s", rapt_error());
    cr_expect_float_eq(before - rapt_at(linear->bias, (int64_t[]){0}), 0.25 / 2, 1e-6);
    cr_expect_float_eq(kept - rapt_at(linear->weight, (int64_t[]){0, 0}), 0.01 / 2, 1e-6);
    rapt_optimizer_free(sgd);
}

static bool prepares(void)
{
    rapt_optimizer *adam = rapt_adam_new(&linear->module, NULL);
    const bool good = adam && learns() && rapt_optimizer_prepare(adam);
    rapt_optimizer_free(adam);
    rapt_module_clear_gradients(&linear->module);
    return good;
}

Test(optim_memory, preparing)
{
    try_all_failures("prepare", prepares);
}

static bool steps_muon_in_part(void)
{
    rapt_optimizer *muon = rapt_muon_new(&linear->module, NULL);
    if (muon && rapt_muon_by_adamw(muon, "*") &&
        rapt_optimizer_group(muon, "bias", &(rapt_group_config){.learning_rate = 1e-3}))
        return takes_steps(muon);
    rapt_optimizer_free(muon);
    return false;
}

/* A parameter of its own, that is not in rows. */
static bool steps_added(void)
{
    rapt_optimizer *adam = rapt_adam_new(NULL, NULL);
    rapt_tensor *leaf = rapt_require_gradient(rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2, 3)));
    const bool good = adam && leaf && rapt_optimizer_add(adam, "leaf", leaf) &&
                      rapt_backward(rapt_sum(rapt_mul(leaf, leaf), RAPT_ALL_AXES, false)) && rapt_optimizer_step(adam);
    rapt_optimizer_free(adam);
    return good;
}

Test(optim_memory, of_optimizers)
{
    try_all_failures("SGD", steps_sgd);
    try_all_failures("Adam", steps_adam);
    try_all_failures("AdamW", steps_adamw);
    try_all_failures("RMSprop", steps_rmsprop);
    try_all_failures("Adagrad", steps_adagrad);
    try_all_failures("Lion", steps_lion);
    try_all_failures("Adafactor", steps_adafactor);
    try_all_failures("Muon", steps_muon);
    try_all_failures("Muon and AdamW", steps_muon_in_part);
    try_all_failures("an added parameter", steps_added);
}

static bool accumulates(void)
{
    rapt_optimizer *sgd = rapt_sgd_new(&linear->module, NULL), *const twice[] = {sgd, sgd};
    rapt_accumulation accumulation = {0};
    double mean;
    const bool good = sgd && rapt_accumulate(&accumulation, loss(), 2) && rapt_accumulate(&accumulation, loss(), 3) &&
                      rapt_accumulation_end_many(&accumulation, 2, twice, &mean) && rapt_optimizer_step(sgd);
    rapt_optimizer_free(sgd);
    rapt_module_clear_gradients(&linear->module);
    return good;
}

Test(optim_memory, of_accumulated_gradients)
{
    try_all_failures("accumulation", accumulates);
}

static bool averages(void)
{
    rapt_average *average = rapt_average_new(&linear->module, &(rapt_average_config){.warms_up = true});
    rapt_archive *archive = rapt_archive_new();
    const bool good = average && archive && rapt_average_update(average) && rapt_average_swap(average) &&
                      rapt_average_swap(average) && rapt_average_to_archive(average, "a.", archive) &&
                      rapt_average_from_archive(average, "a.", archive);
    rapt_archive_free(archive);
    rapt_average_free(average);
    return good;
}

Test(optim_memory, of_averages)
{
    try_all_failures("average", averages);
}

/* --- loaders --- */

/* Items of lengths 0 to 3, padded or packed, and a number for each. */
static bool makes_batches(const rapt_loader_config *options, bool packed)
{
    rapt_column columns[2] = {{.values = rapt_arange(RAPT_INT64, 0, 9, 1),
                               .starts = rapt_from(RAPT_INT64, RAPT_SHAPE(7), (int64_t[]){0, 1, 3, 3, 6, 8, 9}),
                               .padding = -1,
                               .packed = packed},
                              {.values = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(6, 2))}};
    rapt_loader_config config = *options;
    config.columns = columns;
    config.column_count = 2;
    rapt_loader *loader = columns[0].values && columns[0].starts && columns[1].values ? rapt_loader_new(&config) : NULL;
    rapt_loader_state state;
    rapt_batch batch;
    const bool good = loader && rapt_loader_count_batches(loader) > 0 && rapt_loader_next(loader, &batch) &&
                      rapt_loader_get_state(loader, &state) && rapt_loader_set_state(loader, state) &&
                      rapt_loader_next(loader, &batch);
    rapt_loader_free(loader);
    return good;
}

static bool makes_padded_batches(void)
{
    return makes_batches(&(rapt_loader_config){.batch_size = 2, .shuffle = true, .bucket = 4, .seed = 1}, false);
}

static bool makes_packed_batches(void)
{
    return makes_batches(&(rapt_loader_config){.batch_size = 3, .drop_last = true}, true);
}

static bool makes_batches_of_tokens(void)
{
    return makes_batches(&(rapt_loader_config){.most_tokens = 4, .shuffle = true, .bucket = 4, .seed = 1}, true);
}

#ifndef UNDER_ADDRESS_SANITIZER
static bool makes_batches_ahead(void)
{
    return makes_batches(&(rapt_loader_config){.batch_size = 2, .prefetch = 1}, false);
}
#endif

Test(optim_memory, of_loaders)
{
#ifndef UNDER_ADDRESS_SANITIZER
    try_all_failures("batches made ahead", makes_batches_ahead);
#endif
    try_all_failures("padded batches", makes_padded_batches);
    try_all_failures("packed batches", makes_packed_batches);
    try_all_failures("batches of tokens", makes_batches_of_tokens);
}

/* --- checkpoints of all that they can hold --- */

static rapt_optimizer *kept_optimizer;
static rapt_average *kept_average;
static rapt_loader *kept_loader;
static rapt_watch watch = {.patience = 2};
static rapt_plateau plateau = {.watch = {.patience = 2}};

static rapt_checkpoint everything(void)
{
    return (rapt_checkpoint){.module = &linear->module,
                             .optimizer = kept_optimizer,
                             .step = 7,
                             .note = "options",
                             .average = kept_average,
                             .loader = kept_loader,
                             .watch = &watch,
                             .plateau = &plateau};
}

static bool saves_checkpoint(void)
{
    rapt_checkpoint checkpoint = everything();
    checkpoint.order = rapt_arange(RAPT_INT64, 0, 4, 1);
    checkpoint.records = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(3));
    return checkpoint.order && checkpoint.records && rapt_checkpoint_save(path, &checkpoint);
}

static bool loads_checkpoint(void)
{
    rapt_checkpoint checkpoint = everything();
    checkpoint.step = 0;
    const bool good = rapt_checkpoint_load(path, &checkpoint);
    cr_expect_eq(checkpoint.step, good ? 7 : 0);
    return good && checkpoint.order && checkpoint.records;
}

static bool saves_and_loads_module(void)
{
    return rapt_module_save(&linear->module, path) && rapt_module_load(&linear->module, path);
}

Test(optim_memory, of_checkpoints)
{
    RAPT_SCOPE;
    rapt_column column = {.values = rapt_arange(RAPT_INT64, 0, 9, 1)};
    kept_optimizer = rapt_adam_new(&linear->module, NULL);
    kept_average = rapt_average_new(&linear->module, NULL);
    kept_loader = rapt_loader_new(&(rapt_loader_config){.columns = &column, .column_count = 1, .batch_size = 2});
    cr_assert(kept_loader && learns() && rapt_optimizer_step(kept_optimizer) && rapt_average_update(kept_average) &&
                  rapt_watch_take(&watch, 1) && rapt_plateau_factor(&plateau, 1) == 1,
              "%s", rapt_error());
    try_all_failures("save a checkpoint", saves_checkpoint);
    cr_assert(saves_checkpoint(), "%s", rapt_error());
    try_all_failures("load a checkpoint", loads_checkpoint);
    try_all_failures("save and load a module", saves_and_loads_module);
    rapt_loader_free(kept_loader);
    rapt_average_free(kept_average);
    rapt_optimizer_free(kept_optimizer);
}

/* --- metrics --- */

static rapt_metrics_format format;

/* Rows with names that need quotes and more room than the rows before. */
static bool writes_rows(void)
{
    bool good = true;
    for (int append = 0; append < 2 && good; append++) {
        rapt_metrics *metrics = rapt_metrics_open(path, format, append);
        for (int step = append; step < 3 && good; step++)
            good =
                metrics && rapt_metrics_write(metrics, step, RAPT_METRIC_ROW({"a \"name\"", step}, {"b, longer", 0.1}));
        if (good) good = rapt_metrics_rewind(metrics, 2);
        rapt_metrics_close(metrics);
    }
    return good;
}

Test(optim_memory, of_metrics)
{
    format = RAPT_METRICS_CSV;
    try_failures("CSV", writes_rows, one_request);
    try_failures("CSV", writes_rows, all_requests);
    format = RAPT_METRICS_JSON_LINES;
    try_failures("JSON lines", writes_rows, one_request);
    try_failures("JSON lines", writes_rows, all_requests);
}
