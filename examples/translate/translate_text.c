/* --translate: one sentence, or the lines of standard input, with a saved model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drawn.h"
#include "evaluate.h"
#include "saved_model.h"

static bool print_translation(struct saved_model *saved, const char *sentence, int beams)
{
    struct translation translation;
    if (!translate_sentence(saved->model, saved->source_vocabulary, saved->target_vocabulary, saved->num_steps,
                            sentence, beams, &translation)) {
        translation_free(&translation);
        return false;
    }
    bool good = puts(translation.text) >= 0 && fflush(stdout) == 0;
    translation_free(&translation);
    return good || rapt_fail(RAPT_ERROR_FILE, "translate", "cannot write to standard output");
}

/* A bad line is named, and the others are still translated. */
static bool print_translations(struct saved_model *saved, int beams)
{
    char *line = NULL;
    size_t room = 0;
    bool good = true;
    ssize_t length;
    for (int64_t number = 1; (length = getline(&line, &room, stdin)) >= 0; number++) {
        while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r')) line[--length] = '\0';
        bool is_text = strlen(line) == (size_t)length;
        if (is_text && print_translation(saved, line, beams)) continue;
        fprintf(stderr, "line %lld: %s\n", (long long)number, is_text ? rapt_error() : "it has a NUL byte");
        rapt_clear_error();
        good = false;
    }
    free(line);
    return good;
}

int translate_text(const char *model_path, const char *sentence, int beams)
{
    struct saved_model saved;
    bool good = saved_model_read(model_path, &saved);
    if (good) good = sentence ? print_translation(&saved, sentence, beams) : print_translations(&saved, beams);
    if (!good && rapt_error()) fprintf(stderr, "%s\n", rapt_error());
    saved_model_free(&saved);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
