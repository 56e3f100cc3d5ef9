/* Writes a file of each kind that we write, or reads them, in the current folder. What is in them follows from a
 * number. Usage: file_kinds save|load NUMBER */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rapt.h>

#include "pairs.h"
#include "picture.h"
#include "saved_model.h"
#include "web_page.h"

static double number;
static char error[600];

/* The error of what was tried, if it failed, and none for the next. */
static bool told(const char *what, bool good)
{
    if (!good) fprintf(stderr, "%s: %s\n", what, rapt_error() ? rapt_error() : error);
    rapt_clear_error();
    return good;
}

static rapt_tensor *make_tensor(void)
{
    return rapt_full(RAPT_FLOAT32, RAPT_SHAPE(40, 50), number);
}

static bool has_numbers(rapt_tensor *x)
{
    if (!x || rapt_count(x) != 2000) return false;
    const float *values = rapt_data(x);
    for (int i = 0; i < 2000; i++)
        if (values[i] != (float)number) return fprintf(stderr, "other numbers are read\n"), exit(3), false;
    return true;
}

/* --- archives --- */

static rapt_archive *make_archive(void)
{
    rapt_archive *archive = rapt_archive_new();
    char name[] = "a";
    for (; archive && *name <= 'c'; (*name)++)
        if (!rapt_archive_add(archive, name, make_tensor())) return rapt_archive_free(archive), NULL;
    return archive;
}

static bool has_archive(rapt_archive *archive)
{
    bool good = archive != NULL;
    char name[] = "a";
    for (; good && *name <= 'c'; (*name)++) good = has_numbers(rapt_archive_find(archive, name));
    rapt_archive_free(archive);
    return good;
}

static bool save_archives(void)
{
    rapt_archive *archive = make_archive();
    bool good = told("single", rapt_save_safetensors("single.safetensors", archive));
    good = told("shards", rapt_save_safetensors_shards("shards.safetensors.index.json", archive, 9000)) && good;
    good = told("npz", rapt_save_npz("archive.npz", archive)) && good;
    rapt_archive_free(archive);
    return told("npy", rapt_save_npy("tensor.npy", make_tensor())) && good;
}

static bool load_archives(void)
{
    bool good = told("single", has_archive(rapt_load_safetensors("single.safetensors")));
    good = told("mapped", has_archive(rapt_map_safetensors("single.safetensors"))) && good;
    good = told("shards", has_archive(rapt_load_safetensors("shards.safetensors.index.json"))) && good;
    good = told("npz", has_archive(rapt_load_npz("archive.npz"))) && good;
    return told("npy", has_numbers(rapt_load_npy("tensor.npy"))) && good;
}

/* --- a run --- */

static bool with_checkpoint(bool (*function)(rapt_checkpoint *checkpoint))
{
    rapt_seed(1);
    rapt_linear *layer = rapt_linear_new(50, 40, 0);
    rapt_optimizer *adam = rapt_adam_new(&layer->module, NULL);
    rapt_copy(layer->weight, make_tensor());
    rapt_checkpoint checkpoint = {.module = &layer->module, .optimizer = adam, .step = (int64_t)number, .note = NULL};
    const bool good = function(&checkpoint);
    rapt_optimizer_free(adam);
    rapt_module_free(&layer->module);
    return good;
}

static bool save_checkpoint(rapt_checkpoint *checkpoint)
{
    const bool good = told("checkpoint", rapt_checkpoint_save("checkpoint.safetensors", checkpoint));
    return told("module", rapt_module_save(checkpoint->module, "module.safetensors")) && good;
}

static bool load_checkpoint(rapt_checkpoint *checkpoint)
{
    rapt_tensor *weight = ((rapt_linear *)checkpoint->module)->weight;
    rapt_fill(weight, 0);
    checkpoint->step = 0;
    const bool good = told("checkpoint", rapt_checkpoint_load("checkpoint.safetensors", checkpoint)) &&
                      has_numbers(weight) && checkpoint->step == (int64_t)number;
    rapt_fill(weight, 0);
    return told("module", rapt_module_load(checkpoint->module, "module.safetensors") && has_numbers(weight)) && good;
}

static bool save_metrics(const char *path)
{
    rapt_metrics *metrics = rapt_metrics_open(path, RAPT_METRICS_BY_NAME, false);
    bool good = metrics != NULL;
    for (int step = 0; good && step < 5; step++)
        good = rapt_metrics_write(metrics, step, RAPT_METRIC_ROW({"loss", number}, {"rate", step}));
    good = rapt_metrics_close(metrics) && good;
    return told(path, good);
}

static bool save_trace(void)
{
    bool good = rapt_profile_start("profile.trace");
    if (good) {
        rapt_sum(make_tensor(), RAPT_ALL_AXES, false);
        good = rapt_profile_stop();
    }
    return told("trace", good);
}

/* --- the translator's --- */

static bool save_translator(void)
{
    struct translate_error why;
    struct pairs_options options = pairs_options_numbers;
    options.num_train = 20, options.num_validation = options.num_test = 1;
    rapt_seed((uint64_t)number);
    struct pairs *pairs = pairs_from_numbers(&options, &why);
    struct model *model = pairs ? model_new(&(struct model_sizes){.source_vocabulary = pairs->source_vocabulary->size,
                                                                  .target_vocabulary = pairs->target_vocabulary->size,
                                                                  .embedding = 4,
                                                                  .hidden = 4,
                                                                  .heads = 1,
                                                                  .feed_forward = 4,
                                                                  .layers = 1})
                                : NULL;
    const bool good = told("translator", model && saved_model_write("translator.safetensors", model, pairs));
    rapt_module_free(model ? &model->module : NULL);
    pairs_free(pairs);
    return good;
}

static bool load_translator(void)
{
    struct saved_model saved;
    const bool good = told("translator", saved_model_read("translator.safetensors", &saved));
    if (good) saved_model_free(&saved);
    return good;
}

static bool save_page(void)
{
    struct web_page page;
    bool good = web_page_open(&page, "page.html", "A run", "a note", 0, error, sizeof error);
    for (int step = 0; good && step < 100; step++) web_page_point(&page, step, "loss", number + step);
    good = good && web_page_close(&page, error, sizeof error);
    return told("page", good);
}

static bool save_pictures(void)
{
    const double x[] = {1, 2, 3}, y[] = {number, 2, 1};
    const struct chart_series series = {.x = x, .y = y, .count = 3};
    const struct chart chart = {.series = &series, .num_series = 1, .title = "A chart"};
    if (!picture_has_files) return true;
    const bool png = told("PNG", picture_chart("chart.png", &chart, error, sizeof error));
    return told("SVG", picture_chart("chart.svg", &chart, error, sizeof error)) && png;
}

static bool save_all(void)
{
    bool good = save_archives();
    good = with_checkpoint(save_checkpoint) && good;
    good = save_metrics("metrics.csv") && good;
    good = save_metrics("metrics.jsonl") && good;
    good = save_metrics("events") && good;
    good = save_trace() && good;
    good = save_translator() && good;
    good = save_page() && good;
    return save_pictures() && good;
}

static bool load_all(void)
{
    const bool good = load_archives();
    const bool has_run = with_checkpoint(load_checkpoint);
    return load_translator() && has_run && good;
}

int main(int count, char **arguments)
{
    RAPT_SCOPE;
    number = count == 3 ? atof(arguments[2]) : 0;
    if (number > 0 && strcmp(arguments[1], "save") == 0) return save_all() ? EXIT_SUCCESS : EXIT_FAILURE;
    if (number > 0 && strcmp(arguments[1], "load") == 0) return load_all() ? EXIT_SUCCESS : EXIT_FAILURE;
    fprintf(stderr, "usage: %s save|load NUMBER\n", arguments[0]);
    return 2;
}
