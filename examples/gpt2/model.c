/* Published weights by rapt's names. */
#include "model.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char op[] = "gpt2", prefix[] = "transformer.";

/* The one file, or the index of several. */
static bool find_weights(const char *folder, char path[PATH_MAX])
{
    static const char *const names[] = {"model.safetensors", "model.safetensors.index.json"};
    for (int i = 0; i < 2; i++) {
        struct stat status;
        const int length = snprintf(path, PATH_MAX, "%s/%s", folder, names[i]);
        if (length < PATH_MAX && stat(path, &status) == 0) return true;
    }
    return rapt_fail(RAPT_ERROR_FILE, op, "%s has neither %s nor %s", folder, names[0], names[1]);
}

/* "h.N.attn.bias", a triangle, and "h.N.attn.masked_bias", a number, are the causal mask, which files have or have
 * not. */
static bool is_mask(const char *name)
{
    int layer, end = 0;
    sscanf(name, "h.%d.attn.%n", &layer, &end);
    return end > 0 && (strcmp(name + end, "bias") == 0 || strcmp(name + end, "masked_bias") == 0);
}

/* A tensor of theirs under the name that it has here; true also for what is left out. */
static bool take(rapt_archive *archive, const char *name, rapt_tensor *tensor, const rapt_gpt_config *config)
{
    RAPT_SCOPE;
    char full[256];
    if (strncmp(name, prefix, strlen(prefix)) == 0) name += strlen(prefix);
    if (is_mask(name)) return true;
    const bool is_head = strcmp(name, "lm_head.weight") == 0;
    if (is_head && !config->untied) return true; /* the embedding once more */
    /* Linear layers, c_attn and the like, have (in, out) there. */
    if (strstr(name, ".c_") && tensor && rapt_rank(tensor) == 2) tensor = rapt_transpose(tensor, 0, 1);
    snprintf(full, sizeof full, "%s%s", is_head ? "" : prefix, name);
    return tensor && rapt_archive_add(archive, full, tensor);
}

static rapt_archive *rename_all(const rapt_archive *file, const rapt_gpt_config *config)
{
    rapt_archive *archive = rapt_archive_new();
    bool good = archive;
    for (int64_t i = 0; good && i < rapt_archive_count(file); i++) {
        RAPT_SCOPE;
        good = take(archive, rapt_archive_name(file, i), rapt_archive_tensor(file, i), config);
    }
    if (good) return archive;
    rapt_archive_free(archive);
    return NULL;
}

/* Keeps the first name that the model has not. */
static void note(const char *name, rapt_load_outcome outcome, void *context)
{
    char *unknown = context;
    if (outcome == RAPT_LOAD_UNUSED && unknown[0] == '\0') snprintf(unknown, 256, "%s", name);
}

static bool load(rapt_gpt *gpt, const char *path)
{
    char unknown[256] = "";
    rapt_archive *file = rapt_map_safetensors(path), *archive = file ? rename_all(file, &gpt->config) : NULL;
    const bool good =
        archive &&
        rapt_module_from_archive_part(&gpt->module, &(rapt_load_part){.report = note, .context = unknown}, archive);
    rapt_archive_free(archive);
    rapt_archive_free(file);
    return good && (unknown[0] == '\0' ||
                    rapt_fail(RAPT_ERROR_FORMAT, op, "%s has a tensor '%s', and the model of config.json has not", path,
                              unknown));
}

rapt_gpt *model_load(const char *folder, const rapt_gpt_config *config)
{
    char path[PATH_MAX];
    rapt_gpt *gpt = find_weights(folder, path) ? rapt_gpt_new(config) : NULL;
    if (gpt && load(gpt, path)) {
        rapt_module_train(&gpt->module, false);
        return gpt;
    }
    if (gpt) rapt_module_free(&gpt->module);
    return NULL;
}
