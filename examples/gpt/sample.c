/* Continuing a text. */
#include "sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes `length` bytes after the prompt to `written`. */
static void continue_text(rapt_gpt *gpt, const struct text *text, const char *prompt, const rapt_generation *how,
                          char *written)
{
    RAPT_SCOPE;
    int64_t length = (int64_t)strlen(prompt);
    rapt_tensor *start = rapt_empty(RAPT_INT64, RAPT_SHAPE(1, length));
    int64_t *tokens = rapt_data_for_writing(start);
    for (int64_t i = 0; i < length; i++) tokens[i] = text->token_of[(unsigned char)prompt[i]];
    rapt_gpt_cache *cache = rapt_gpt_cache_new(gpt);
    const rapt_token_model model = rapt_gpt_token_model(cache);
    rapt_tensor *generated = rapt_generate(&model, start, how);
    for (int64_t i = 0; i < how->length; i++)
        written[i] = (char)text->byte_of[((const int64_t *)rapt_data(generated))[i]];
    written[how->length] = '\0';
    rapt_gpt_cache_free(cache);
}

void sample_print(rapt_gpt *gpt, const struct text *text, const struct options *o)
{
    char *written = malloc((size_t)o->sample + 1);
    if (!written) {
        fprintf(stderr, "gpt: no memory for %lld bytes of text\n", (long long)o->sample);
        exit(EXIT_FAILURE);
    }
    const double start = rapt_seconds();
    continue_text(gpt, text, o->prompt,
                  &(rapt_generation){.length = o->sample,
                                     .temperature = o->temperature,
                                     .top_k = o->top_k,
                                     .top_p = o->top_p},
                  written);
    const double seconds = rapt_seconds() - start;
    printf("%s", o->prompt);
    fwrite(written, 1, (size_t)o->sample, stdout); /* any bytes, 0 too */
    printf("\n(%lld bytes in %.2f s)\n", (long long)o->sample, seconds);
    free(written);
}

int sample_count_right_ends(rapt_gpt *gpt, const struct text *text)
{
    int right = 0;
    for (int i = 0; i < 100; i++) {
        char sentence[longest_sentence], prompt[longest_sentence], written[longest_sentence];
        int asked, length = text_make_sentence(sentence, &asked);
        snprintf(prompt, sizeof prompt, "\n%.*s", asked, sentence);
        continue_text(gpt, text, prompt, &(rapt_generation){.length = length - asked}, written);
        right += strcmp(written, sentence + asked) == 0;
    }
    return right;
}
