/* Weights in files, with the bytes that their tokens stand for and the shape of their model. */
#include "weights.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "options.h"
#include "resume.h"

/* The bytes in the order of their tokens, two digits each. */
static void spell_bytes(const struct text *text, char spelled[2 * 256 + 1])
{
    spelled[0] = '\0';
    for (int64_t token = 0; token < text->vocabulary; token++)
        snprintf(spelled + 2 * token, 3, "%02x", text->byte_of[token]);
}

/* What makes another model of the same tensors, or of some of them. */
enum { num_parts = 6 };
static const char *const shape_keys[num_parts] = {"positions", "blocks", "layers", "heads", "context", "hidden"};

static void spell_shape(const rapt_gpt_config *config, char spelled[num_parts][32])
{
    const int64_t numbers[num_parts] = {0, 0, config->layers, config->heads, config->context, config->hidden};
    snprintf(spelled[0], sizeof spelled[0], "%s", position_names[config->positions]);
    snprintf(spelled[1], sizeof spelled[1], "%s", block_names[config->rms_norm ? llama_blocks : gpt2_blocks]);
    for (int i = 2; i < num_parts; i++) snprintf(spelled[i], sizeof spelled[i], "%" PRId64, numbers[i]);
}

static bool add_shape(const rapt_gpt_config *config, rapt_archive *archive)
{
    char spelled[num_parts][32];
    bool good = true;
    spell_shape(config, spelled);
    for (int i = 0; good && i < num_parts; i++) good = rapt_archive_add_text(archive, shape_keys[i], spelled[i]);
    return good;
}

static bool check_shape(const rapt_gpt_config *config, const rapt_archive *archive, const char *path)
{
    char spelled[num_parts][32];
    spell_shape(config, spelled);
    for (int i = 0; i < num_parts; i++) {
        const char *theirs = rapt_archive_find_text(archive, shape_keys[i]);
        if (!theirs || strcmp(theirs, spelled[i]) == 0) continue;
        char clean[resume_path_size];
        fprintf(stderr, "gpt: the weights of %s are of a model with %s %s, not %s\n", path, shape_keys[i],
                resume_path(theirs, clean), spelled[i]);
        return false;
    }
    return true;
}

static bool check_bytes(const struct text *text, const rapt_archive *archive, const char *path)
{
    char bytes[2 * 256 + 1];
    spell_bytes(text, bytes);
    const char *theirs = rapt_archive_find_text(archive, "bytes");
    if (!theirs || strcmp(theirs, bytes) == 0) return true;
    char clean[resume_path_size];
    fprintf(stderr, "gpt: the weights of %s are of a text with other bytes: %s there, %s here (hexadecimal)\n", path,
            resume_path(theirs, clean), bytes);
    return false;
}

bool weights_save(const rapt_gpt *gpt, const struct text *text, const char *path)
{
    char bytes[2 * 256 + 1];
    spell_bytes(text, bytes);
    rapt_error_handler *handler = rapt_on_error(NULL);
    rapt_archive *archive = rapt_archive_new();
    const bool saved = archive && rapt_module_to_archive(&gpt->module, NULL, archive) &&
                       rapt_archive_add_text(archive, "bytes", bytes) && add_shape(&gpt->config, archive) &&
                       rapt_save_safetensors(path, archive);
    if (!saved) fprintf(stderr, "%s\n", rapt_error());
    rapt_archive_free(archive);
    rapt_clear_error();
    rapt_on_error(handler);
    return saved;
}

bool weights_load(rapt_gpt *gpt, const struct text *text, const char *path)
{
    rapt_archive *archive = rapt_map_safetensors(path); /* of which texts alone are read */
    const bool fit = archive && check_bytes(text, archive, path) && check_shape(&gpt->config, archive, path);
    rapt_archive_free(archive);
    return fit && rapt_module_load(&gpt->module, path); /* which refuses tensors that the model has not */
}
