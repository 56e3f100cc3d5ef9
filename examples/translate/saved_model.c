/* model.safetensors: written after training, read by --translate. */
#include "saved_model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool add_number(rapt_archive *archive, const char *key, int64_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)number);
    return rapt_archive_add_text(archive, key, text);
}

static bool add_vocabulary(rapt_archive *archive, const char *key, const struct vocabulary *vocabulary)
{
    char *text = vocabulary_to_text(vocabulary);
    bool good = text ? rapt_archive_add_text(archive, key, text)
                     : rapt_fail(RAPT_ERROR_MEMORY, "save", "no memory for %s", key);
    free(text);
    return good;
}

static bool add_sizes(rapt_archive *archive, const struct model_sizes *sizes)
{
    return rapt_archive_add_text(archive, "model", model_architectures[sizes->architecture]) &&
           rapt_archive_add_text(archive, "scoring", model_scorings[sizes->scoring]) &&
           rapt_archive_add_text(archive, "positions", sizes->is_book ? "book" : "counted") &&
           rapt_archive_add_text(archive, "padding", sizes->reads_padding ? "read" : "left out") &&
           add_number(archive, "embedding", sizes->embedding) && add_number(archive, "hidden", sizes->hidden) &&
           add_number(archive, "layers", sizes->layers) && add_number(archive, "heads", sizes->heads) &&
           add_number(archive, "feed_forward", sizes->feed_forward);
}

bool saved_model_write(const char *path, struct model *model, const struct pairs *pairs)
{
    rapt_archive *archive = rapt_archive_new();
    bool good = archive && rapt_module_to_archive(&model->module, NULL, archive) &&
                rapt_archive_add_text(archive, "format", "rapt translator 3") &&
                add_number(archive, "num_steps", pairs->num_steps) && add_sizes(archive, &model->sizes) &&
                add_vocabulary(archive, "source_vocabulary", pairs->source_vocabulary) &&
                add_vocabulary(archive, "target_vocabulary", pairs->target_vocabulary) &&
                rapt_save_safetensors(path, archive);
    rapt_archive_free(archive);
    return good;
}

static bool fail(const char *path, const char *what)
{
    return rapt_fail(RAPT_ERROR_FORMAT, "translate", "%s is not a translator: %s", path, what);
}

static bool read_number(const rapt_archive *archive, const char *path, const char *key, int64_t largest,
                        int64_t *number)
{
    const char *text = rapt_archive_find_text(archive, key);
    char *end = NULL, what[64];
    errno = 0;
    *number = text ? strtoll(text, &end, 10) : 0;
    if (text && errno == 0 && end != text && *end == '\0' && *number >= 1 && *number <= largest) return true;
    snprintf(what, sizeof what, "its metadata has no good %s", key);
    return fail(path, what);
}

/* The index of the text among the names. */
static bool read_choice(const rapt_archive *archive, const char *path, const char *key, const char *const *names,
                        int *choice)
{
    const char *text = rapt_archive_find_text(archive, key);
    char what[64];
    for (*choice = 0; text && names[*choice]; ++*choice)
        if (strcmp(text, names[*choice]) == 0) return true;
    snprintf(what, sizeof what, "its metadata has no good %s", key);
    return fail(path, what);
}

static bool read_sizes(const rapt_archive *archive, const char *path, struct model_sizes *sizes)
{
    static const char *const positions[] = {"counted", "book", NULL}, *const padding[] = {"left out", "read", NULL};
    int is_book = 0, reads_padding = 0;
    bool good = read_choice(archive, path, "model", model_architectures, &sizes->architecture) &&
                read_choice(archive, path, "scoring", model_scorings, &sizes->scoring) &&
                read_choice(archive, path, "positions", positions, &is_book) &&
                read_choice(archive, path, "padding", padding, &reads_padding) &&
                read_number(archive, path, "embedding", 65536, &sizes->embedding) &&
                read_number(archive, path, "hidden", 65536, &sizes->hidden) &&
                read_number(archive, path, "layers", 64, &sizes->layers) &&
                read_number(archive, path, "heads", 1024, &sizes->heads) &&
                read_number(archive, path, "feed_forward", 65536, &sizes->feed_forward);
    sizes->is_book = is_book == 1;
    sizes->reads_padding = reads_padding == 1;
    return good;
}

static struct vocabulary *read_vocabulary(const rapt_archive *archive, const char *path, const char *key,
                                          bool with_begin)
{
    struct translate_error error = {.message = "it is missing"};
    const char *text = rapt_archive_find_text(archive, key);
    struct vocabulary *vocabulary = text ? vocabulary_from_text(text, strlen(text), with_begin, &error) : NULL;
    char what[600];
    snprintf(what, sizeof what, "%s: %s", key, error.message);
    if (!vocabulary) fail(path, what);
    return vocabulary;
}

/* A file has all numbers of its model: sizes that ask for more than it has are refused before they ask for memory. What
 * is counted are only the largest matrices. */
static bool check_sizes(const rapt_archive *archive, const char *path, const struct model_sizes *s)
{
    const bool is_transformer = s->architecture == TRANSFORMER;
    const double hidden = (double)s->hidden, inner = (double)(is_transformer ? s->feed_forward : s->embedding);
    const double words = (double)(s->source_vocabulary + s->target_vocabulary);
    const double least =
        words * (is_transformer ? hidden : inner) + (double)s->layers * hidden * hidden + hidden * inner;
    double numbers = 0;
    for (int64_t i = 0; i < rapt_archive_count(archive); i++)
        numbers += (double)rapt_count(rapt_archive_tensor(archive, i));
    return least <= numbers || fail(path, "its metadata speaks of more numbers than it has");
}

static bool read_parts(const rapt_archive *archive, const char *path, struct saved_model *saved)
{
    struct model_sizes sizes = {0};
    const char *format = rapt_archive_find_text(archive, "format");
    if (!format || strcmp(format, "rapt translator 3") != 0) return fail(path, "its metadata does not say so");
    if (!read_number(archive, path, "num_steps", 1000, &saved->num_steps) || !read_sizes(archive, path, &sizes))
        return false;
    saved->source_vocabulary = read_vocabulary(archive, path, "source_vocabulary", false);
    saved->target_vocabulary =
        saved->source_vocabulary ? read_vocabulary(archive, path, "target_vocabulary", true) : NULL;
    if (!saved->target_vocabulary) return false;
    sizes.source_vocabulary = saved->source_vocabulary->size;
    sizes.target_vocabulary = saved->target_vocabulary->size;
    saved->model = check_sizes(archive, path, &sizes) ? model_new(&sizes) : NULL;
    if (!saved->model) return false;
    rapt_module_train(&saved->model->module, false);
    return rapt_module_from_archive(&saved->model->module, NULL, archive);
}

bool saved_model_read(const char *path, struct saved_model *saved)
{
    RAPT_SCOPE;
    *saved = (struct saved_model){0};
    rapt_archive *archive = rapt_load_safetensors(path);
    bool good = archive && read_parts(archive, path, saved);
    rapt_archive_free(archive);
    return good;
}

void saved_model_free(struct saved_model *saved)
{
    rapt_module_free(saved->model ? &saved->model->module : NULL);
    vocabulary_free(saved->source_vocabulary);
    vocabulary_free(saved->target_vocabulary);
}
