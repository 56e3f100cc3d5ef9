/* Text as tokens, one for each different byte; and sentences that are made up. */
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"

static const char *const animals[] = {"owl", "dog", "cat", "bee", "lion", "frog", "hen", "duck"};
static const char *const voices[] = {"hoot", "bark", "purr", "hum", "roar", "croak", "cluck", "quack"};
enum { choices = 8, made_up = 10000 };

static int64_t draw(int64_t low, int64_t high)
{
    RAPT_SCOPE;
    return (int64_t)rapt_item(rapt_randint(low, high, RAPT_SHAPE(1)));
}

int text_make_sentence(char sentence[longest_sentence], int *asked)
{
    int animal = (int)draw(0, choices), number = (int)draw(1, 5);
    bool is_one = number == 1;
    *asked = snprintf(sentence, longest_sentence, "%d %s", number, animals[animal]);
    return *asked + snprintf(sentence + *asked, (size_t)(longest_sentence - *asked), "%s %s%s.\n", is_one ? "" : "s",
                             voices[animal], is_one ? "s" : "");
}

bool text_make_up(struct text *text)
{
    text->bytes = malloc((size_t)made_up * longest_sentence);
    if (!text->bytes) fprintf(stderr, "gpt: no memory for %d sentences\n", made_up);
    for (int i = 0; text->bytes && i < made_up; i++) {
        char sentence[longest_sentence];
        int asked, length = text_make_sentence(sentence, &asked);
        memcpy(text->bytes + text->count, sentence, (size_t)length);
        text->count += length;
    }
    return text->bytes != NULL;
}

static bool has_only_zeros(const struct text *text)
{
    int64_t zeros = 0;
    while (zeros < text->count && text->bytes[zeros] == 0) zeros++;
    return zeros == text->count;
}

bool text_read(const char *path, struct text *text)
{
    size_t size;
    text->bytes = (unsigned char *)file_read(path, &size);
    text->count = (int64_t)size;
    const bool is_usable = text->bytes && !has_only_zeros(text);
    if (!text->bytes)
        fprintf(stderr, "gpt: cannot read %s: %s\n", path, strerror(errno));
    else if (!is_usable)
        fprintf(stderr, "gpt: %s %s\n", path,
                size > 0 ? "has only NUL bytes, of which a prompt can have none" : "is empty");
    return is_usable;
}

bool text_index(struct text *text, int64_t context)
{
    text->training = text->count / 10 * 9;
    bool occurs[256] = {false};
    for (int64_t i = 0; i < text->count; i++) occurs[text->bytes[i]] = true;
    for (int b = 0; b < 256; b++) {
        text->token_of[b] = occurs[b] ? (int)text->vocabulary : -1;
        if (occurs[b]) text->byte_of[text->vocabulary++] = (unsigned char)b;
    }
    int64_t first = 0;
    while (text->bytes[first] == 0) first++; /* there is one that is not */
    text->beginning[0] = occurs['\n'] ? '\n' : (char)text->bytes[first];
    bool good = text->count - text->training > context && text->training > context;
    if (!good)
        fprintf(stderr, "gpt: %lld bytes of text are too few: a tenth of it must be longer than the context, %lld\n",
                (long long)text->count, (long long)context);
    return good;
}

bool text_check_prompt(const struct text *text, const char *prompt)
{
    for (const char *p = prompt; *p; p++)
        if (text->token_of[(unsigned char)*p] < 0) {
            fprintf(stderr, "gpt: the prompt has the byte 0x%02x, which the text does not have\n", (unsigned char)*p);
            return false;
        }
    return true;
}

void text_windows(const struct text *text, int64_t count, const int64_t *starts, int64_t context, rapt_tensor **inputs,
                  rapt_tensor **targets)
{
    rapt_tensor *windows = rapt_empty(RAPT_INT64, RAPT_SHAPE(count, context + 1));
    int64_t *token = rapt_data_for_writing(windows);
    for (int64_t i = 0; i < count; i++)
        for (int64_t t = 0; t <= context; t++) *token++ = text->token_of[text->bytes[starts[i] + t]];
    *inputs = rapt_slice(windows, 1, 0, context, 1);
    *targets = rapt_slice(windows, 1, 1, context + 1, 1);
}
