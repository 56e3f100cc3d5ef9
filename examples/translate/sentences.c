/* Reading sentence pairs from tab-separated files and making them from number names. */
#include "sentences.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "numbers.h"
#include "splitmix.h"
#include "text.h"

void sentences_free(struct sentences *sentences)
{
    free(sentences->text);
    free(sentences->sources);
    free(sentences->targets);
    *sentences = (struct sentences){0};
}

static bool sentences_make_room(struct sentences *sentences, size_t num_pairs, size_t num_bytes,
                                struct translate_error *error)
{
    *sentences = (struct sentences){
        .text = malloc(num_bytes),
        .sources = calloc(num_pairs, sizeof *sentences->sources),
        .targets = calloc(num_pairs, sizeof *sentences->targets),
    };
    if (sentences->text != NULL && sentences->sources != NULL && sentences->targets != NULL) return true;
    sentences_free(sentences);
    return translate_fail(error, "out of memory for %zu sentence pairs", num_pairs);
}

/* Where a line is, for error sentences. */
struct line {
    const char *path;
    size_t number;
    const char *start; /* of the line as it stands in the file, byte 1 */
    const char *text, *end;
};

static bool line_is_text(const struct line *line, struct translate_error *error)
{
    size_t length = (size_t)(line->end - line->text), bad_byte;
    const char *nul = memchr(line->text, '\0', length);
    if (nul != NULL)
        return translate_fail(error, "%s: line %zu: byte %zu is a NUL, so this is not a text file", line->path,
                              line->number, (size_t)(nul - line->start) + 1);
    if (!text_is_utf8(line->text, length, &bad_byte))
        return translate_fail(error, "%s: line %zu: byte %zu (0x%02X) is not valid UTF-8", line->path, line->number,
                              (size_t)(line->text - line->start) + bad_byte + 1, (unsigned char)line->text[bad_byte]);
    return true;
}

/* Appends the pair of a line at *end, which is moved behind it unless the pair is left out. */
static bool add_line(struct sentences *sentences, const struct line *line, int64_t max_tokens, char **end,
                     struct translate_error *error)
{
    if (!line_is_text(line, error)) return false;
    const char *tab = memchr(line->text, '\t', (size_t)(line->end - line->text));
    if (tab == NULL)
        return translate_fail(error, "%s: line %zu: no tab between a sentence and its translation", line->path,
                              line->number);
    const char *target = tab + 1;
    const char *target_end = memchr(target, '\t', (size_t)(line->end - target));
    if (target_end == NULL) target_end = line->end;
    char *source_out = *end;
    size_t num_source_tokens = text_preprocess(line->text, (size_t)(tab - line->text), source_out);
    char *target_out = source_out + strlen(source_out) + 1;
    size_t num_target_tokens = text_preprocess(target, (size_t)(target_end - target), target_out);
    if (num_source_tokens == 0 || num_target_tokens == 0)
        return translate_fail(error, "%s: line %zu: nothing %s the tab", line->path, line->number,
                              num_source_tokens == 0 ? "before" : "after");
    if (num_source_tokens > (size_t)max_tokens || num_target_tokens > (size_t)max_tokens) {
        sentences->num_left_out++;
        return true;
    }
    sentences->sources[sentences->count] = source_out;
    sentences->targets[sentences->count++] = target_out;
    *end = target_out + strlen(target_out) + 1;
    return true;
}

const char *sentences_skip_mark(const char *text)
{
    static const char byte_order_mark[] = "\xEF\xBB\xBF";
    return strncmp(text, byte_order_mark, 3) == 0 ? text + 3 : text;
}

static bool add_lines(struct sentences *sentences, const char *path, const char *bytes, size_t size, int64_t max_pairs,
                      int64_t max_tokens, struct translate_error *error)
{
    struct line line = {.path = path, .start = bytes};
    char *end = sentences->text;
    while (line.start < bytes + size && sentences->count < max_pairs) {
        line.number++;
        line.end = memchr(line.start, '\n', (size_t)(bytes + size - line.start));
        if (line.end == NULL) line.end = bytes + size;
        const char *next = line.end + 1;
        line.text = line.start;
        if (line.number == 1) line.text = sentences_skip_mark(line.text);
        if (line.end > line.text && line.end[-1] == '\r') line.end--;
        if (!add_line(sentences, &line, max_tokens, &end, error)) return false;
        line.start = next;
    }
    return true;
}

bool sentences_read(struct sentences *sentences, const char *path, int64_t max_pairs, int64_t max_tokens,
                    struct translate_error *error)
{
    size_t size, num_lines = 1;
    *sentences = (struct sentences){0};
    char *bytes = file_read(path, &size);
    if (bytes == NULL) return translate_fail(error, "%s: cannot be read: %s", path, strerror(errno));
    while (size > 0 && memchr(" \r\n", bytes[size - 1], 3) != NULL) size--; /* blank lines at the end */
    for (size_t i = 0; i < size; i++) num_lines += bytes[i] == '\n';
    /* A line's tab and line break, or the last line's tab alone, make the room for its two NULs. */
    bool is_read = size == 0 ? translate_fail(error, "%s: the file is empty", path)
                             : sentences_make_room(sentences, num_lines, TEXT_ROOM(size), error) &&
                                   add_lines(sentences, path, bytes, size, max_pairs, max_tokens, error);
    free(bytes);
    if (!is_read) sentences_free(sentences);
    return is_read;
}

/* The numbers of one count of digits that were not drawn yet: a shuffled list, taken from its end. */
struct deck {
    int32_t *values;
    uint64_t count;
};

static void shuffle(int32_t *values, uint64_t count, struct splitmix *generator)
{
    for (uint64_t i = count; i > 1; i--) {
        uint64_t j = splitmix_below(generator, i);
        int32_t value = values[i - 1];
        values[i - 1] = values[j];
        values[j] = value;
    }
}

enum { MAX_DIGITS = 6 };

/* Takes a number from a deck chosen uniformly among those that are not empty; -1 if all are. */
static int32_t draw_number(struct deck decks[MAX_DIGITS], struct splitmix *generator)
{
    uint64_t num_open = 0;
    for (int i = 0; i < MAX_DIGITS; i++) num_open += decks[i].count > 0;
    if (num_open == 0) return -1;
    uint64_t chosen = splitmix_below(generator, num_open);
    struct deck *deck = decks;
    while (deck->count == 0 || chosen-- > 0) deck++;
    return deck->values[--deck->count];
}

static size_t num_name_tokens(int32_t value)
{
    char english[NUMBER_NAME_SIZE], french[NUMBER_NAME_SIZE];
    number_in_english(value, english);
    number_in_french(value, french);
    size_t num_english = text_count_tokens(english), num_french = text_count_tokens(french);
    return num_english > num_french ? num_english : num_french;
}

/* Draws num_pairs numbers into drawn, using all, a list of every number. Returns how many there were. */
static int64_t draw_numbers(int32_t *drawn, int32_t *all, int64_t num_pairs, int64_t max_tokens, uint64_t seed,
                            int64_t *num_left_out)
{
    struct splitmix generator = {seed};
    struct deck decks[MAX_DIGITS];
    int32_t first = 0, limit = 10;
    for (int32_t value = 0; value < NUMBER_LIMIT; value++) all[value] = value;
    for (int i = 0; i < MAX_DIGITS; i++, first = limit, limit *= 10) {
        decks[i] = (struct deck){all + first, (uint64_t)(limit - first)};
        shuffle(decks[i].values, decks[i].count, &generator);
    }
    int64_t count = 0;
    int32_t value;
    while (count < num_pairs && (value = draw_number(decks, &generator)) >= 0) {
        if (num_name_tokens(value) <= (size_t)max_tokens)
            drawn[count++] = value;
        else
            ++*num_left_out;
    }
    shuffle(drawn, (uint64_t)count, &generator);
    for (int64_t i = 0; i < count; i++)
        if (drawn[i] == 0) {
            drawn[i] = drawn[0];
            drawn[0] = 0;
        }
    return count;
}

static void add_number(struct sentences *sentences, int32_t value, char **end)
{
    number_in_english(value, *end);
    sentences->sources[sentences->count] = *end;
    *end += strlen(*end) + 1;
    number_in_french(value, *end);
    sentences->targets[sentences->count++] = *end;
    *end += strlen(*end) + 1;
}

bool sentences_from_numbers(struct sentences *sentences, int64_t num_pairs, int64_t max_tokens, uint64_t seed,
                            struct translate_error *error)
{
    *sentences = (struct sentences){0};
    if (num_pairs < 1 || num_pairs > NUMBER_LIMIT)
        return translate_fail(error, "%" PRId64 " numbers were asked for, between 1 and %d can be named", num_pairs,
                              NUMBER_LIMIT);
    int32_t *all = calloc(NUMBER_LIMIT, sizeof *all);
    int32_t *drawn = calloc((size_t)num_pairs, sizeof *drawn);
    bool is_made = all != NULL && drawn != NULL ? sentences_make_room(sentences, (size_t)num_pairs,
                                                                      (size_t)num_pairs * 2 * NUMBER_NAME_SIZE, error)
                                                : translate_fail(error, "out of memory for the list of numbers");
    if (is_made) {
        int64_t count = draw_numbers(drawn, all, num_pairs, max_tokens, seed, &sentences->num_left_out);
        char *end = sentences->text;
        for (int64_t i = 0; i < count; i++) add_number(sentences, drawn[i], &end);
        if (count < num_pairs)
            is_made = translate_fail(error,
                                     "%" PRId64 " numbers were asked for, but only %" PRId64
                                     " have names of at most %" PRId64 " tokens",
                                     num_pairs, count, max_tokens);
    }
    free(all);
    free(drawn);
    if (!is_made) sentences_free(sentences);
    return is_made;
}
