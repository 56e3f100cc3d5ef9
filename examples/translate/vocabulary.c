/* Building, saving, loading and using vocabularies. */
#include "vocabulary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

static const char *const reserved_tokens[] = {"<unk>", "<pad>", "<eos>", "<bos>"};

static int num_reserved(bool with_begin)
{
    return with_begin ? 4 : 3;
}

static struct vocabulary *out_of_memory(struct vocabulary *unfinished, struct translate_error *error)
{
    vocabulary_free(unfinished);
    translate_fail(error, "out of memory while making a vocabulary");
    return NULL;
}

static struct vocabulary *vocabulary_with_room(size_t num_tokens)
{
    struct vocabulary *vocabulary = calloc(1, sizeof *vocabulary);
    if (vocabulary == NULL) return NULL;
    vocabulary->tokens = calloc(num_tokens + 1, sizeof *vocabulary->tokens);
    if (vocabulary->tokens == NULL) {
        free(vocabulary);
        return NULL;
    }
    return vocabulary;
}

static bool add_token(struct vocabulary *vocabulary, const char *token, size_t length)
{
    char *copy = strndup(token, length);
    if (copy == NULL) return false;
    vocabulary->tokens[vocabulary->size++] = copy;
    return true;
}

/* Fills the table of ids and the reserved ids from tokens, which must be distinct. */
static struct vocabulary *with_ids(struct vocabulary *vocabulary, bool with_begin, struct translate_error *error)
{
    for (int64_t id = 0; id < vocabulary->size; id++) {
        const char *token = vocabulary->tokens[id];
        size_t used = vocabulary->ids.used;
        struct token_slot *slot = token_table_insert(&vocabulary->ids, token, strlen(token));
        if (slot == NULL) return out_of_memory(vocabulary, error);
        if (vocabulary->ids.used == used) {
            translate_fail(error, "the vocabulary holds the token \"%s\" twice, as numbers %" PRId64 " and %" PRId64,
                           token, slot->value, id);
            vocabulary_free(vocabulary);
            return NULL;
        }
        slot->value = id;
    }
    int64_t *const reserved_ids[] = {&vocabulary->unknown, &vocabulary->padding, &vocabulary->end, &vocabulary->begin};
    vocabulary->begin = -1;
    for (int i = 0; i < num_reserved(with_begin); i++) {
        const struct token_slot *slot =
            token_table_find(&vocabulary->ids, reserved_tokens[i], strlen(reserved_tokens[i]));
        if (slot == NULL) {
            translate_fail(error, "the vocabulary of %" PRId64 " tokens lacks %s", vocabulary->size,
                           reserved_tokens[i]);
            vocabulary_free(vocabulary);
            return NULL;
        }
        *reserved_ids[i] = slot->value;
    }
    return vocabulary;
}

static bool count_tokens(struct token_table *counts, const char *sentence, int64_t max_tokens)
{
    const char *token;
    size_t length;
    for (int64_t i = 0; i < max_tokens && (token = text_next_token(&sentence, &length)) != NULL; i++) {
        struct token_slot *slot = token_table_insert(counts, token, length);
        if (slot == NULL) return false;
        slot->value++;
    }
    return true;
}

/* UTF-8 in the order of its bytes is in the order of its code points. */
static int compare_tokens(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

struct vocabulary *vocabulary_build(const char *const *sentences, int64_t num_sentences, int64_t max_tokens,
                                    int64_t minimum_frequency, bool with_begin, struct translate_error *error)
{
    struct token_table counts = {0};
    struct vocabulary *vocabulary = NULL;
    bool enough_memory = true;
    for (int64_t i = 0; i < num_sentences && enough_memory; i++)
        enough_memory = count_tokens(&counts, sentences[i], max_tokens);
    for (int i = 0; i < num_reserved(with_begin) && enough_memory; i++) {
        struct token_slot *slot = token_table_insert(&counts, reserved_tokens[i], strlen(reserved_tokens[i]));
        enough_memory = slot != NULL;
        if (enough_memory) slot->value = INT64_MAX;
    }
    if (enough_memory) enough_memory = (vocabulary = vocabulary_with_room(counts.used)) != NULL;
    for (size_t i = 0; i < counts.capacity && enough_memory; i++) {
        const struct token_slot *slot = &counts.slots[i];
        if (slot->token != NULL && slot->value >= minimum_frequency)
            enough_memory = add_token(vocabulary, slot->token, slot->length);
    }
    token_table_free(&counts);
    if (!enough_memory) return out_of_memory(vocabulary, error);
    qsort(vocabulary->tokens, (size_t)vocabulary->size, sizeof *vocabulary->tokens, compare_tokens);
    return with_ids(vocabulary, with_begin, error);
}

static bool is_token(const char *token, size_t length)
{
    size_t bad_byte;
    return length > 0 && memchr(token, ' ', length) == NULL && memchr(token, '\n', length) == NULL &&
           memchr(token, '\0', length) == NULL && text_is_utf8(token, length, &bad_byte);
}

/* Adds a token that comes from outside; else frees the vocabulary, says why and returns false. */
static bool add_outside_token(struct vocabulary *vocabulary, const char *token, size_t length,
                              struct translate_error *error)
{
    if (!is_token(token, length)) {
        translate_fail(error, "number %" PRId64 " of the vocabulary is not a token (UTF-8, not empty, without a space)",
                       vocabulary->size);
        vocabulary_free(vocabulary);
        return false;
    }
    if (add_token(vocabulary, token, length)) return true;
    out_of_memory(vocabulary, error);
    return false;
}

struct vocabulary *vocabulary_from_tokens(const char *const *tokens, int64_t num_tokens, bool with_begin,
                                          struct translate_error *error)
{
    struct vocabulary *vocabulary = vocabulary_with_room((size_t)num_tokens);
    if (vocabulary == NULL) return out_of_memory(NULL, error);
    for (int64_t i = 0; i < num_tokens; i++)
        if (!add_outside_token(vocabulary, tokens[i], strlen(tokens[i]), error)) return NULL;
    return with_ids(vocabulary, with_begin, error);
}

struct vocabulary *vocabulary_from_text(const char *text, size_t length, bool with_begin, struct translate_error *error)
{
    size_t num_lines = 0;
    for (size_t i = 0; i < length; i++) num_lines += text[i] == '\n';
    if (length > 0 && text[length - 1] != '\n') {
        translate_fail(error, "the vocabulary is cut off after line %zu: it does not end in a line break", num_lines);
        return NULL;
    }
    struct vocabulary *vocabulary = vocabulary_with_room(num_lines);
    if (vocabulary == NULL) return out_of_memory(NULL, error);
    for (const char *line = text; line < text + length;) {
        const char *line_end = memchr(line, '\n', (size_t)(text + length - line));
        if (!add_outside_token(vocabulary, line, (size_t)(line_end - line), error)) return NULL;
        line = line_end + 1;
    }
    return with_ids(vocabulary, with_begin, error);
}

char *vocabulary_to_text(const struct vocabulary *vocabulary)
{
    size_t room = 1;
    for (int64_t id = 0; id < vocabulary->size; id++) room += strlen(vocabulary->tokens[id]) + 1;
    char *text = malloc(room);
    if (text == NULL) return NULL;
    char *end = text;
    for (int64_t id = 0; id < vocabulary->size; id++) {
        end = stpcpy(end, vocabulary->tokens[id]);
        *end++ = '\n';
    }
    *end = '\0';
    return text;
}

int64_t vocabulary_id(const struct vocabulary *vocabulary, const char *token, size_t length)
{
    const struct token_slot *slot = token_table_find(&vocabulary->ids, token, length);
    if (slot == NULL) return vocabulary->unknown;
    bool is_reserved =
        slot->value == vocabulary->padding || slot->value == vocabulary->end || slot->value == vocabulary->begin;
    return is_reserved ? vocabulary->unknown : slot->value;
}

const char *vocabulary_token(const struct vocabulary *vocabulary, int64_t id)
{
    return id >= 0 && id < vocabulary->size ? vocabulary->tokens[id] : NULL;
}

char *vocabulary_decode(const struct vocabulary *vocabulary, const int64_t *ids, int64_t num_ids)
{
    int64_t count = 0;
    size_t room = 1;
    for (; count < num_ids && ids[count] != vocabulary->end; count++) {
        const char *token = vocabulary_token(vocabulary, ids[count]);
        if (token == NULL) return NULL;
        room += strlen(token) + 1;
    }
    char *text = malloc(room);
    if (text == NULL) return NULL;
    char *end = text;
    for (int64_t i = 0; i < count; i++) {
        if (i > 0) *end++ = ' ';
        end = stpcpy(end, vocabulary->tokens[ids[i]]);
    }
    *end = '\0';
    return text;
}

void vocabulary_free(struct vocabulary *vocabulary)
{
    if (vocabulary == NULL) return;
    for (int64_t id = 0; id < vocabulary->size; id++) free(vocabulary->tokens[id]);
    free(vocabulary->tokens);
    token_table_free(&vocabulary->ids);
    free(vocabulary);
}
