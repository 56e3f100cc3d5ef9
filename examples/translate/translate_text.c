/* --translate: one sentence, or the lines of standard input, with a saved model. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drawn.h"
#include "evaluate.h"
#include "saved_model.h"
#include "sentences.h"

/* Says on stderr which words the model reads as <unk>. */
static bool name_unknown(const struct saved_model *saved, const char *sentence, const char *place)
{
    char *words;
    if (!pairs_unknown_words(saved->source_vocabulary, sentence, &words))
        return rapt_fail(RAPT_ERROR_MEMORY, "translate", "no memory for a sentence");
    if (words) fprintf(stderr, "%s: the model does not know: %s\n", place, words);
    free(words);
    return true;
}

static bool print_translation(struct saved_model *saved, const char *sentence, const char *place, int beams)
{
    struct translation translation;
    bool good = translate_sentence(saved->model, saved->source_vocabulary, saved->target_vocabulary, saved->num_steps,
                                   sentence, beams, &translation) &&
                name_unknown(saved, sentence, place);
    if (good) puts(translation.text);
    fflush(stdout);
    translation_free(&translation);
    return good;
}

/* A bad line is named, and the others are still translated. */
static bool print_translations(struct saved_model *saved, int beams)
{
    char *line = NULL, place[32];
    size_t room = 0;
    bool good = true;
    ssize_t length;
    for (int64_t number = 1; !ferror(stdout) && (length = getline(&line, &room, stdin)) >= 0; number++) {
        while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r')) line[--length] = '\0';
        bool is_text = strlen(line) == (size_t)length;
        snprintf(place, sizeof place, "line %lld", (long long)number);
        const char *text = number == 1 ? sentences_skip_mark(line) : line;
        if (is_text && print_translation(saved, text, place, beams)) continue;
        fprintf(stderr, "%s: %s\n", place, is_text ? rapt_error() : "it has a NUL byte");
        rapt_clear_error();
        good = false;
    }
    if (ferror(stdin)) {
        fprintf(stderr, "translate: cannot read standard input: %s\n", strerror(errno));
        good = false;
    }
    free(line);
    return good;
}

int translate_text(const char *model_path, const char *sentence, int beams)
{
    struct saved_model saved;
    bool good = saved_model_read(model_path, &saved);
    if (good)
        good = sentence ? print_translation(&saved, sentence, "translate", beams) : print_translations(&saved, beams);
    if (!good && rapt_error()) fprintf(stderr, "%s\n", rapt_error());
    saved_model_free(&saved);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
