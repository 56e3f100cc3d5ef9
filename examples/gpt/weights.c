/* Weights in files, with the bytes that their tokens stand for. */
#include "weights.h"

#include <stdio.h>
#include <string.h>

/* The bytes in the order of their tokens, two digits each. */
static void spell_bytes(const struct text *text, char spelled[2 * 256 + 1])
{
    spelled[0] = '\0';
    for (int64_t token = 0; token < text->vocabulary; token++)
        snprintf(spelled + 2 * token, 3, "%02x", text->byte_of[token]);
}

bool weights_save(const rapt_gpt *gpt, const struct text *text, const char *path)
{
    char bytes[2 * 256 + 1];
    spell_bytes(text, bytes);
    rapt_error_handler *handler = rapt_on_error(NULL);
    rapt_archive *archive = rapt_archive_new();
    const bool saved = archive && rapt_module_to_archive(&gpt->module, NULL, archive) &&
                       rapt_archive_add_text(archive, "bytes", bytes) && rapt_save_safetensors(path, archive);
    if (!saved) fprintf(stderr, "%s\n", rapt_error());
    rapt_archive_free(archive);
    rapt_clear_error();
    rapt_on_error(handler);
    return saved;
}

bool weights_load(rapt_gpt *gpt, const struct text *text, const char *path)
{
    char bytes[2 * 256 + 1];
    spell_bytes(text, bytes);
    rapt_archive *archive = rapt_load_safetensors(path);
    const char *theirs = archive ? rapt_archive_find_text(archive, "bytes") : NULL;
    const bool are_ours = !theirs || strcmp(theirs, bytes) == 0;
    if (!are_ours)
        fprintf(stderr, "gpt: the weights of %s are of a text with other bytes: %s there, %s here (hexadecimal)\n",
                path, theirs, bytes);
    const bool loaded = archive && are_ours && rapt_module_from_archive(&gpt->module, NULL, archive);
    rapt_archive_free(archive);
    return loaded;
}
