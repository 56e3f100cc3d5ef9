/* What libFuzzer makes up, read as what people write: a file of sentence pairs, a sentence, a vocabulary, a command
 * line. The answer is data that keeps its promises, or one sentence. The first byte says which it is. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rapt.h>

#include "command_line.h"
#include "fuzz_file.h"
#include "pairs.h"
#include "text.h"

#define PATH "fuzz/file"

static bool is_said(const struct translate_error *error)
{
    const size_t length = strlen(error->message);
    return length > 0 && !strchr(error->message, '\n');
}

static void check_vocabulary(const struct vocabulary *vocabulary)
{
    for (int64_t id = 0; id < vocabulary->size; id++) {
        const char *token = vocabulary_token(vocabulary, id);
        const bool is_reserved =
            id == vocabulary->unknown || id == vocabulary->padding || id == vocabulary->end || id == vocabulary->begin;
        expect(*token && vocabulary_id(vocabulary, token, strlen(token)) == (is_reserved ? vocabulary->unknown : id),
               "a token has another id");
    }
}

static void read_pairs(unsigned char choices)
{
    struct translate_error error = {""};
    struct pairs_options options = choices & 1 ? pairs_options_book : pairs_options_file;
    if (choices & 2) options.num_steps = 2 + choices / 16;
    if (choices & 4) options.minimum_frequency = 1;
    if (choices & 8) options.num_train = options.num_validation = options.num_test = 1;
    struct pairs *pairs = pairs_from_file(PATH, &options, &error);
    expect(!pairs == is_said(&error), "neither pairs nor a sentence, or both");
    if (!pairs) return;
    const int64_t rows = pairs->num_train + pairs->num_validation + pairs->num_test;
    for (int64_t i = 0; i < rows * pairs->num_steps; i++)
        expect(vocabulary_token(pairs->source_vocabulary, pairs->sources[i]) &&
                   vocabulary_token(pairs->target_vocabulary, pairs->labels[i]) &&
                   vocabulary_token(pairs->target_vocabulary, pairs->decoder_inputs[i]),
               "an id of no token");
    for (int64_t i = 0; i < rows; i++)
        expect(pairs->valid_lengths[i] > 0 && pairs->valid_lengths[i] <= pairs->num_steps, "a length that cannot be");
    check_vocabulary(pairs->source_vocabulary);
    check_vocabulary(pairs->target_vocabulary);
    pairs_free(pairs);
}

static void read_vocabulary(const char *text, size_t size)
{
    struct translate_error error = {""};
    struct vocabulary *vocabulary = vocabulary_from_text(text, size, size & 1, &error);
    expect(!vocabulary == is_said(&error), "neither a vocabulary nor a sentence, or both");
    if (!vocabulary) return;
    check_vocabulary(vocabulary);
    char *again = vocabulary_to_text(vocabulary);
    expect(again && strncmp(again, text, size) == 0, "written, it is another text");
    free(again);
    vocabulary_free(vocabulary);
}

static void read_sentence(const char *sentence, size_t size)
{
    static struct vocabulary *vocabulary;
    static const char *const tokens[] = {"<unk>", "<pad>", "<eos>", "a", "go", ".", "é"};
    enum { steps = 9 };
    int64_t ids[steps], valid = 0;
    struct translate_error error = {""};
    if (!vocabulary) vocabulary = vocabulary_from_tokens(tokens, sizeof tokens / sizeof *tokens, false, NULL);
    const bool good = pairs_encode_source(vocabulary, steps, sentence, ids, &valid, &error);
    expect(good != is_said(&error), "neither ids nor a sentence, or both");
    size_t bad_byte;
    const bool is_utf8 = text_is_utf8(sentence, size, &bad_byte);
    expect(is_utf8 || (!good && bad_byte < size), "broken UTF-8 is taken");
    char *unknown = NULL;
    expect(!is_utf8 || pairs_unknown_words(vocabulary, sentence, &unknown), "no answer about unknown words");
    for (int64_t i = 0; good && i < steps; i++)
        expect(vocabulary_token(vocabulary, ids[i]) && (i < valid || ids[i] == vocabulary->padding), "a wrong id");
    free(unknown);
}

/* An argument a line. */
static void read_command_line(char *text)
{
    static const char *const choices[] = {"first", "second", NULL};
    bool flag = false, has_string = false;
    int64_t integer = 3, any = 0;
    double real = 0.5;
    const char *string = NULL;
    int choice = 0;
    const struct command_option options[] = {
        {.name = "--flag", .help = "on", .flag = &flag},
        {.help = "more"},
        {.name = "--integer", .help = "a number", .integer = &integer, .integer_range = {1, 9}},
        {.name = "--any", .help = "any number", .integer = &any},
        {.name = "--real", .help = "a number", .real = &real, .real_range = {0, 1}},
        {.name = "--string", .help = "a text", .string = &string, .flag = &has_string, .is_optional = true},
        {.name = "--choice", .help = "one of them", .choice = &choice, .choices = choices},
        {0},
    };
    const struct command_line line = {.program = "fuzz", .summary = "A program.", .options = options};
    char *arguments[64] = {"fuzz"};
    int count = 1;
    for (char *at = strtok(text, "\n"); at && count < 63; at = strtok(NULL, "\n")) arguments[count++] = at;
    fuzz_quiet(true);
    const enum command_line_result result = command_line_parse(&line, count, arguments);
    fuzz_quiet(false);
    expect(result == COMMAND_LINE_RUN || result == COMMAND_LINE_HELP || result == COMMAND_LINE_WRONG, "no result");
    expect(integer >= 1 && integer <= 9 && real >= 0 && real <= 1 && choice >= 0 && choice < 2, "out of range");
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
    if (size < 2) return 0;
    const fuzz_memory before = fuzz_begin();
    char *text = malloc(size - 1);
    expect(text, "no memory");
    memcpy(text, bytes + 2, size - 2);
    text[size - 2] = '\0';
    switch (bytes[0] % 4) {
    case 0:
        fuzz_file_put(PATH, text, size - 2);
        read_pairs(bytes[1]);
        break;
    case 1:
        read_sentence(text, strlen(text));
        break;
    case 2:
        read_vocabulary(text, size - 2);
        break;
    default:
        read_command_line(text);
    }
    free(text);
    expect_little_memory(before, size);
    fuzz_end(before);
    return 0;
}
