/* Mistakes with files: paths, other models, and archives. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mistakes.h"

/* The path of a name in a new folder. */
static const char *in_folder(const char *name)
{
    static char path[64];
    char folder[] = "/tmp/rapt-mistakes-XXXXXX";
    if (!mkdtemp(folder)) return NULL;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void remove_folder(char *path)
{
    remove(path);
    *strrchr(path, '/') = '\0';
    rmdir(path);
}

static rapt_linear *linear(int64_t out)
{
    return rapt_linear_new(3, out, RAPT_BIAS);
}

/* Saves one module and loads the file into another. */
static bool load_saved(rapt_module *saved, rapt_module *loading)
{
    const char *path = in_folder("model.safetensors");
    char copy[64];
    if (!path || !rapt_module_save(saved, path)) return false;
    const bool failed = !rapt_module_load(loading, path);
    remove_folder(strcpy(copy, path));
    return failed;
}

static bool other_sizes(void)
{
    return load_saved(&linear(2)->module, &linear(4)->module);
}

static bool other_layers(void)
{
    return load_saved(&linear(2)->module, &RAPT_SEQUENTIAL(&linear(2)->module)->module);
}

static bool missing_file(void)
{
    return !rapt_module_load(&linear(2)->module, "/tmp/rapt-there-is-no-such.safetensors");
}

static bool folder_as_file(void)
{
    return !rapt_module_load(&linear(2)->module, "/tmp");
}

static bool save_to_folder(void)
{
    return !rapt_module_save(&linear(2)->module, "/tmp");
}

static bool save_to_missing_folder(void)
{
    return !rapt_module_save(&linear(2)->module, "/tmp/rapt-there-is-no-such/model.safetensors");
}

static bool text_as_model(void)
{
    const char *path = in_folder("model.safetensors");
    FILE *file = path ? fopen(path, "w") : NULL;
    char copy[64];
    if (!file || fputs("These are no weights, but a text.\n", file) < 0 || fclose(file) != 0) return false;
    const bool failed = !rapt_module_load(&linear(2)->module, path);
    remove_folder(strcpy(copy, path));
    return failed;
}

static bool null_path(void)
{
    return !rapt_load_safetensors(NULL);
}

static bool name_not_there(void)
{
    rapt_archive *archive = rapt_archive_new();
    const bool good = !rapt_archive_find(archive, "weight");
    rapt_archive_free(archive);
    return good;
}

static bool name_added_twice(void)
{
    rapt_archive *archive = rapt_archive_new();
    return rapt_archive_add(archive, "x", ones(RAPT_SHAPE(2))) && !rapt_archive_add(archive, "x", ones(RAPT_SHAPE(2)));
}

static bool archive_after_free(void)
{
    rapt_archive *archive = rapt_archive_new();
    rapt_archive_free(archive);
    return !rapt_archive_find(archive, "weight");
}

static bool archive_freed_twice(void)
{
    rapt_archive *archive = rapt_archive_new();
    rapt_archive_free(archive);
    rapt_archive_free(archive);
    return true;
}

static bool tensor_after_archive(void)
{
    rapt_archive *archive = rapt_archive_new();
    {
        RAPT_SCOPE;
        if (!rapt_archive_add(archive, "x", rapt_exp(ones(RAPT_SHAPE(2, 3))))) return false;
    }
    rapt_tensor *x = rapt_archive_find(archive, "x");
    rapt_archive_free(archive);
    return !rapt_neg(x);
}

static bool checkpoint_without_module(void)
{
    return !rapt_checkpoint_save("/tmp/rapt-there-is-no-such", &(rapt_checkpoint){.step = 1});
}

static bool metrics_after_close(void)
{
    const char *path = in_folder("log.csv");
    char copy[64];
    if (!path) return false;
    rapt_metrics *metrics = rapt_metrics_open(path, RAPT_METRICS_BY_NAME, false);
    const bool closed = metrics && rapt_metrics_close(metrics);
    const bool failed = closed && !rapt_metrics_write(metrics, 1, RAPT_METRIC_ROW({"loss", 1}));
    remove_folder(strcpy(copy, path));
    return failed;
}

static bool metrics_of_other_ending(void)
{
    return !rapt_metrics_open("/tmp/rapt-log.xls", RAPT_METRICS_BY_NAME, false);
}

const mistake file_mistakes[] = {
    {"The file of a model of other sizes", other_sizes, FAILS, RAPT_ERROR_SHAPE,
     "weight is float32 [2, 3]; float32 [4, 3] expected",
     "Make the model with the sizes that were saved. Nothing was changed."},
    {"The file of another architecture", other_layers, FAILS, RAPT_ERROR_FORMAT,
     "no tensor 0.weight (float32 [2, 3] expected)",
     "`rapt_module_load_part` takes a part, with a prefix and a pattern. Nothing was changed."},
    {"A path that leads nowhere", missing_file, FAILS, RAPT_ERROR_FILE,
     "cannot read '/tmp/rapt-there-is-no-such.safetensors': No such file or directory", "Look at the path."},
    {"A folder as a file", folder_as_file, FAILS, RAPT_ERROR_FILE, "load_safetensors: '/tmp' is not a regular file",
     "Name the file in it."},
    {"A model is saved over a folder", save_to_folder, FAILS, RAPT_ERROR_FILE,
     "save_safetensors: '/tmp' is not a regular file", "Name a file in it."},
    {"A model is saved into a folder that is not there", save_to_missing_folder, FAILS, RAPT_ERROR_FILE,
     "cannot open the directory '/tmp/rapt-there-is-no-such': No such file or directory",
     "`rapt_can_save(path)` asks before hours of training."},
    {"A file that is no safetensors", text_as_model, FAILS, RAPT_ERROR_FORMAT,
     "at most 100000000 expected; is this safetensors?", "Convert it where it comes from."},
    {"A NULL path", null_path, FAILS, RAPT_ERROR_NULL, "path is NULL", "Look at the command line."},
    {"A name that an archive has not", name_not_there, WORKS, RAPT_OK, "NULL, without an error", "Ask for NULL."},
    {"A name is added twice", name_added_twice, FAILS, RAPT_ERROR_VALUE, "the name 'x' is in use already",
     "Put a prefix before one."},
    {"An archive is used after it was freed", archive_after_free, GONE, RAPT_ERROR_GONE,
     "archive_find: the archive is gone", "Free it last."},
    {"An archive is freed twice", archive_freed_twice, GONE, RAPT_ERROR_GONE, "archive_free: the archive is gone",
     "Set the pointer to NULL."},
    {"A tensor of an archive is used after the archive was freed", tensor_after_archive, GONE, RAPT_ERROR_GONE,
     "neg: input 0 is gone", "`rapt_retain` it before."},
    {"A checkpoint without a module", checkpoint_without_module, FAILS, RAPT_ERROR_NULL, "module is NULL",
     "Set `.module`."},
    {"Metrics are written after they were closed", metrics_after_close, GONE, RAPT_ERROR_GONE,
     "metrics_write: the metrics is gone", "Close them last."},
    {"Metrics of an unknown ending", metrics_of_other_ending, FAILS, RAPT_ERROR_VALUE, "ends in .xls",
     "`.csv`, `.jsonl`, or a folder for TensorBoard."},
    {0},
};
