/* Tests of examples/translate/pairs.c: data sets as ids, split into parts. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pairs.h"
#include "temporary_file.h"
#include "text.h"

static const char small_file[] = "Go.\tVa !\tCC-BY\n"
                                 "Hi.\tSalut\u202f!\r\n"
                                 "Run!\tCours !\tCC-BY\tmore\n"
                                 "Run!\tCourez !\n"
                                 "Go on.\tVa, cours !";

static const struct pairs_options small_options = {.num_steps = 4,
                                                   .minimum_frequency = 1,
                                                   .num_train = 3,
                                                   .num_validation = 2,
                                                   .in_file_order = true};

static struct pairs *pairs_from_bytes(const char *bytes, size_t size, const struct pairs_options *options,
                                      struct translate_error *error)
{
    char path[32];
    write_temporary_file(path, bytes, size);
    struct pairs *pairs = pairs_from_file(path, options, error);
    unlink(path);
    return pairs;
}

static struct pairs *pairs_from_string(const char *text, const struct pairs_options *options)
{
    struct translate_error error = {""};
    struct pairs *pairs = pairs_from_bytes(text, strlen(text), options, &error);
    cr_assert_not_null(pairs, "%s", error.message);
    return pairs;
}

static void expect_ids(const int64_t *ids, const int64_t *expected, int64_t count, const char *what)
{
    for (int64_t i = 0; i < count; i++)
        cr_expect_eq(ids[i], expected[i], "%s[%" PRId64 "] is %" PRId64 ", not %" PRId64, what, i, ids[i], expected[i]);
}

static int64_t count_ids(const int64_t *ids, int64_t count, int64_t id)
{
    int64_t num_equal = 0;
    for (int64_t i = 0; i < count; i++) num_equal += ids[i] == id;
    return num_equal;
}

static void expect_vocabulary(const struct vocabulary *vocabulary, const char *expected)
{
    char *text = vocabulary_to_text(vocabulary);
    cr_expect_str_eq(text, expected);
    free(text);
}

Test(pairs, small_file_in_file_order)
{
    struct pairs *pairs = pairs_from_string(small_file, &small_options);
    /*                                            0  1  2      3      4      5   6   7   8 */
    expect_vocabulary(pairs->source_vocabulary, "!\n.\n<eos>\n<pad>\n<unk>\ngo\nhi\non\nrun\n");
    /*                                            0  1  2      3      4      5      6       7      8      9 */
    expect_vocabulary(pairs->target_vocabulary, "!\n,\n<bos>\n<eos>\n<pad>\n<unk>\ncourez\ncours\nsalut\nva\n");
    const int64_t sources[] = {5, 1, 2, 3, 6, 1, 2, 3, 8, 0, 2, 3, 8, 0, 2, 3, 5, 7, 1, 2};
    const int64_t decoder_inputs[] = {2, 9, 0, 3, 2, 8, 0, 3, 2, 7, 0, 3, 2, 6, 0, 3, 2, 9, 1, 7};
    const int64_t labels[] = {9, 0, 3, 4, 8, 0, 3, 4, 7, 0, 3, 4, 6, 0, 3, 4, 9, 1, 7, 0}; /* the last lost its <eos> */
    const int64_t valid_lengths[] = {3, 3, 3, 3, 4};
    expect_ids(pairs->sources, sources, 20, "sources");
    expect_ids(pairs->decoder_inputs, decoder_inputs, 20, "decoder_inputs");
    expect_ids(pairs->labels, labels, 20, "labels");
    expect_ids(pairs->valid_lengths, valid_lengths, 5, "valid_lengths");
    cr_expect(pairs->num_steps == 4 && pairs->num_train == 3 && pairs->num_validation == 2 && pairs->num_test == 0);
    cr_expect_str_eq(pairs->source_texts[4], "go on .");
    cr_expect_str_eq(pairs->target_texts[4], "va , cours !");
    cr_expect_str_eq(pairs->target_texts[1], "salut !");
    char *text = vocabulary_decode(pairs->target_vocabulary, pairs->labels + 4, 4);
    cr_expect_str_eq(text, "salut !");
    free(text);
    pairs_free(pairs);
}

Test(pairs, rare_words_are_unknown)
{
    struct pairs_options options = small_options;
    options.minimum_frequency = 2;
    struct pairs *pairs = pairs_from_string(small_file, &options);
    expect_vocabulary(pairs->source_vocabulary, "!\n.\n<eos>\n<pad>\n<unk>\ngo\nrun\n");
    expect_vocabulary(pairs->target_vocabulary, "!\n<bos>\n<eos>\n<pad>\n<unk>\ncours\nva\n");
    expect_ids(pairs->sources + 4, (int64_t[]){4, 1, 2, 3}, 4, "hi .");
    expect_ids(pairs->labels + 16, (int64_t[]){6, 4, 5, 0}, 4, "va , cours !");
    pairs_free(pairs);
}

Test(pairs, cuts_a_sentence_longer_than_the_steps)
{
    struct pairs_options options = small_options;
    options.num_steps = 2;
    struct pairs *pairs = pairs_from_string(small_file, &options);
    expect_vocabulary(pairs->source_vocabulary, "!\n.\n<eos>\n<pad>\n<unk>\ngo\nhi\non\nrun\n");
    expect_vocabulary(pairs->target_vocabulary, "!\n,\n<bos>\n<eos>\n<pad>\n<unk>\ncourez\ncours\nsalut\nva\n");
    expect_ids(pairs->sources + 8, (int64_t[]){5, 7}, 2, "go on");
    expect_ids(pairs->valid_lengths, (int64_t[]){2, 2, 2, 2, 2}, 5, "valid_lengths");
    expect_ids(pairs->decoder_inputs + 8, (int64_t[]){2, 9}, 2, "decoder_inputs");
    pairs_free(pairs);
}

Test(pairs, byte_order_mark_and_line_breaks_do_not_matter)
{
    struct pairs *plain = pairs_from_string(small_file, &small_options);
    char other[512] = "\xEF\xBB\xBF";
    size_t end = 3;
    for (const char *byte = small_file; *byte != '\0'; byte++) {
        if (*byte == '\r') continue;
        if (*byte == '\n') other[end++] = '\r';
        other[end++] = *byte;
    }
    strcpy(other + end, "\r\n");
    struct pairs *same = pairs_from_string(other, &small_options);
    expect_ids(same->sources, plain->sources, 20, "sources");
    expect_ids(same->labels, plain->labels, 20, "labels");
    pairs_free(same);
    pairs_free(plain);
}

static void expect_options_refused(struct pairs_options options, const char *part_of_message)
{
    struct translate_error error = {""};
    cr_expect_null(pairs_from_bytes(small_file, sizeof small_file - 1, &options, &error));
    cr_expect_not_null(strstr(error.message, part_of_message), "'%s' lacks '%s'", error.message, part_of_message);
    error.message[0] = '\0';
    cr_expect_null(pairs_from_numbers(&options, &error));
    cr_expect_not_null(strstr(error.message, part_of_message), "'%s' lacks '%s'", error.message, part_of_message);
}

Test(pairs, refuses_senseless_options)
{
    struct pairs_options options = small_options;
    options.num_steps = 1;
    expect_options_refused(options, "the longest sentence, with <eos>, must be between 2 and 1000, not 1");
    options.num_steps = 1001;
    expect_options_refused(options, "not 1001");
    options = small_options;
    options.minimum_frequency = 0;
    expect_options_refused(options, "the rarest word's frequency");
    options = small_options;
    options.num_train = 0;
    expect_options_refused(options, "training pairs must not be 0");
    options = small_options;
    options.num_validation = -2;
    expect_options_refused(options, "the number of validation pairs");
    options = small_options;
    options.num_test = INT64_MAX;
    expect_options_refused(options, "the number of test pairs");
}

/* A file of count pairs, three of each source; the first num_long ones have 9 tokens a side. */
static char *many_pairs(int count, int num_long)
{
    char *text = calloc((size_t)count, 64), *end = text;
    cr_assert_not_null(text);
    for (int i = 0; i < count; i++) {
        const char *filler = i < num_long ? "a b c d e f g h" : "a";
        end += sprintf(end, "%s s%d\t%s t%d\n", filler, i / 3, filler, i);
    }
    return text;
}

static int64_t num_pairs(const struct pairs *pairs)
{
    return pairs->num_train + pairs->num_validation + pairs->num_test;
}

/* Which part has a row: 0 training, 1 validation, 2 test. */
static int part_of(const struct pairs *pairs, int64_t row)
{
    return (row >= pairs->num_train) + (row >= pairs->num_train + pairs->num_validation);
}

Test(pairs, splits_by_source)
{
    struct pairs_options options = pairs_options_file;
    options.num_validation = 100;
    options.num_test = 50;
    options.minimum_frequency = 1;
    char *text = many_pairs(3000, 0);
    struct pairs *pairs = pairs_from_string(text, &options);
    cr_expect(pairs->num_validation == 100 && pairs->num_test == 50);
    cr_expect_eq(num_pairs(pairs) + pairs->num_without_part, 3000);
    cr_expect_eq(pairs->num_without_part, 2 + 1, "100 and 50 pairs end inside groups of three");
    int part_of_source[1000], is_seen[3000] = {0};
    memset(part_of_source, -1, sizeof part_of_source);
    for (int64_t i = 0; i < num_pairs(pairs); i++) {
        int source, target;
        cr_assert_eq(sscanf(pairs->source_texts[i], "a s%d", &source), 1);
        cr_assert_eq(sscanf(pairs->target_texts[i], "a t%d", &target), 1);
        cr_expect_eq(target / 3, source);
        cr_expect(!is_seen[target], "pair %d stands twice", target);
        is_seen[target] = 1;
        cr_expect(part_of_source[source] == -1 || part_of_source[source] == part_of(pairs, i), "s%d is in two parts",
                  source);
        part_of_source[source] = part_of(pairs, i);
    }
    /* The vocabulary is that of the training pairs: reserved tokens, "a" and one for each training pair. */
    cr_expect_eq(pairs->target_vocabulary->size, 5 + pairs->num_train);
    pairs_free(pairs);
    free(text);
}

Test(pairs, split_depends_on_the_seed_alone)
{
    char *text = many_pairs(600, 0);
    struct pairs_options options = pairs_options_file;
    struct pairs *first = pairs_from_string(text, &options), *again = pairs_from_string(text, &options);
    options.seed = 1;
    struct pairs *other = pairs_from_string(text, &options);
    cr_expect_eq(first->num_test, 30);
    cr_expect_eq(first->num_validation, 30);
    int num_equal = 0, num_equal_to_other = 0, num_in_file_order = 0;
    for (int64_t i = 0; i < 500; i++) {
        char in_file_order[16];
        sprintf(in_file_order, "a t%d", (int)i);
        num_equal += strcmp(first->target_texts[i], again->target_texts[i]) == 0;
        num_equal_to_other += strcmp(first->target_texts[i], other->target_texts[i]) == 0;
        num_in_file_order += strcmp(first->target_texts[i], in_file_order) == 0;
    }
    cr_expect_eq(num_equal, 500);
    cr_expect_lt(num_equal_to_other, 50);
    cr_expect_lt(num_in_file_order, 50);
    pairs_free(first);
    pairs_free(again);
    pairs_free(other);
    free(text);
}

Test(pairs, leaves_out_longer_sentences)
{
    char *text = many_pairs(300, 60);
    struct pairs_options options = pairs_options_file;
    options.num_steps = 9;
    struct pairs *pairs = pairs_from_string(text, &options);
    cr_expect_eq(pairs->num_left_out, 60);
    cr_expect_eq(pairs->num_test, 12);
    cr_expect_eq(num_pairs(pairs) + pairs->num_without_part, 240);
    pairs_free(pairs);
    options.num_steps = 10;
    pairs = pairs_from_string(text, &options);
    cr_expect_eq(pairs->num_left_out, 0);
    pairs_free(pairs);
    free(text);
}

Test(pairs, needs_a_training_pair)
{
    const char same[] = "a\tb\na\tc\na\td\n"; /* one source: all in one part */
    struct translate_error error = {""};
    cr_expect_null(pairs_from_bytes(same, sizeof same - 1, &pairs_options_file, &error));
    cr_expect_not_null(strstr(error.message, "3 usable pairs"), "%s", error.message);
    cr_expect_not_null(strstr(error.message, "stay in one part"), "%s", error.message);
    const char three[] = "a\tb\nb\tc\nc\td\n";
    struct pairs *pairs = pairs_from_string(three, &pairs_options_file);
    cr_expect(pairs->num_train == 1 && pairs->num_validation == 1 && pairs->num_test == 1);
    pairs_free(pairs);
    struct pairs_options options = pairs_options_file;
    options.num_train = 2;
    cr_expect_null(pairs_from_bytes(three, sizeof three - 1, &options, &error));
    cr_expect_not_null(strstr(error.message, "for 2 training, 1 validation and 1 test pairs"), "%s", error.message);
    cr_expect_null(strstr(error.message, "stay in one part"), "%s", error.message);
}

Test(pairs, numbers_are_split_by_value)
{
    struct pairs_options options = pairs_options_numbers;
    options.num_train = 5000;
    options.num_validation = 300;
    options.num_test = 700;
    struct translate_error error = {""};
    struct pairs *pairs = pairs_from_numbers(&options, &error);
    cr_assert_not_null(pairs, "%s", error.message);
    cr_expect(pairs->num_train == 5000 && pairs->num_validation == 300 && pairs->num_test == 700);
    cr_expect(pairs->num_left_out == 0 && pairs->num_without_part == 0);
    struct token_table seen = {0};
    for (int i = 0; i < 6000; i++)
        cr_assert_not_null(token_table_insert(&seen, pairs->source_texts[i], strlen(pairs->source_texts[i])));
    cr_expect_eq(seen.used, 6000);
    token_table_free(&seen);
    cr_expect_eq(count_ids(pairs->labels, 6000 * pairs->num_steps, pairs->target_vocabulary->unknown), 0);
    cr_expect_eq(count_ids(pairs->sources, 6000 * pairs->num_steps, pairs->source_vocabulary->unknown), 0);
    pairs_free(pairs);
}

Test(pairs, encodes_a_new_sentence)
{
    struct pairs *pairs = pairs_from_string(small_file, &small_options);
    int64_t ids[4], valid_length;
    struct translate_error error = {""};
    cr_assert(pairs_encode_source(pairs->source_vocabulary, 4, "  Go  away ", ids, &valid_length, &error));
    expect_ids(ids, (int64_t[]){5, 4, 2, 3}, 4, "ids");
    cr_expect_eq(valid_length, 3);
    cr_assert(pairs_encode_source(pairs->source_vocabulary, 4, "RUN on!", ids, &valid_length, &error));
    expect_ids(ids, (int64_t[]){8, 7, 0, 2}, 4, "ids");
    cr_expect_eq(valid_length, 4);
    cr_expect(!pairs_encode_source(pairs->source_vocabulary, 4, "Go on, run", ids, &valid_length, &error));
    cr_expect_str_eq(error.message, "the sentence has 4 words and marks, but the model reads at most 3");
    cr_expect(!pairs_encode_source(pairs->source_vocabulary, 4, " \u00a0", ids, &valid_length, &error));
    cr_expect_str_eq(error.message, "the sentence to translate is empty");
    cr_expect(!pairs_encode_source(pairs->source_vocabulary, 4, "caf\xE9", ids, &valid_length, &error));
    cr_expect_str_eq(error.message, "the sentence is not valid UTF-8: byte 4 is 0xE9");
    pairs_free(pairs);
}

Test(pairs, words_that_the_vocabulary_lacks)
{
    struct pairs *pairs = pairs_from_string(small_file, &small_options);
    const struct {
        const char *sentence, *words;
    } cases[] = {{"Go away", "away"},
                 {"RUN on!", NULL},
                 {"Été, <unk> ÉTÉ go x", "été, ,, <unk>, x"},
                 {"", NULL},
                 {"<eos>", "<eos>"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *words;
        cr_assert(pairs_unknown_words(pairs->source_vocabulary, cases[i].sentence, &words));
        cr_expect_eq(words == NULL, cases[i].words == NULL, "%s: %s", cases[i].sentence, words ? words : "none");
        if (words && cases[i].words) cr_expect_str_eq(words, cases[i].words);
        free(words);
    }
    pairs_free(pairs);
}

Test(pairs, frees_null)
{
    pairs_free(NULL);
}

/* The share of <unk> among ids that are not padding; num_begin counts each <bos> as one more. */
static double unknown_share(const struct vocabulary *vocabulary, const int64_t *ids, int64_t count, int64_t num_begin)
{
    int64_t num_words = count - count_ids(ids, count, vocabulary->padding) + num_begin;
    return (double)count_ids(ids, count, vocabulary->unknown) / (double)num_words;
}

/* Facts about the data of Dive into Deep Learning, 11.4; the file is not ours to distribute. */
Test(pairs, the_books_data)
{
    const char *path = RAPT_SOURCE_ROOT "/../shared/data/fra-eng-head.tsv";
    if (access(path, R_OK) != 0) cr_skip_test("skipped: %s is not there", path);
    struct translate_error error = {""};
    struct pairs *pairs = pairs_from_file(path, &pairs_options_book, &error);
    cr_assert_not_null(pairs, "%s", error.message);
    const struct vocabulary *source = pairs->source_vocabulary, *target = pairs->target_vocabulary;
    cr_expect_eq(num_pairs(pairs), 641);
    cr_expect_eq(source->size, 194);
    cr_expect_eq(target->size, 214);
    const char *const source_tokens[] = {"!", ",", ".", "<eos>", "<pad>", "<unk>", "?"};
    const char *const target_tokens[] = {"!", ",", ".", "<bos>", "<eos>", "<pad>", "<unk>", "?"};
    for (int64_t i = 0; i < 7; i++) cr_expect_str_eq(vocabulary_token(source, i), source_tokens[i]);
    for (int64_t i = 0; i < 8; i++) cr_expect_str_eq(vocabulary_token(target, i), target_tokens[i]);
    expect_ids(pairs->sources, (int64_t[]){59, 2, 3, 4, 4, 4, 4, 4, 4}, 9, "go .");
    expect_ids(pairs->decoder_inputs, (int64_t[]){3, 201, 0, 4, 5, 5, 5, 5, 5}, 9, "<bos> va !");
    expect_ids(pairs->labels, (int64_t[]){201, 0, 4, 5, 5, 5, 5, 5, 5}, 9, "va !");
    cr_expect_str_eq(pairs->source_texts[0], "go .");
    cr_expect_str_eq(pairs->source_texts[49], "i lost .");
    cr_expect_str_eq(pairs->source_texts[349], "i'm home .");
    cr_expect_str_eq(pairs->source_texts[640], "i said no .");
    cr_expect_str_eq(pairs->target_texts[640], "j'ai dit non .");
    size_t longest_source = 0, longest_target = 0;
    for (int64_t i = 0; i < 641; i++) {
        size_t num_source = text_count_tokens(pairs->source_texts[i]);
        size_t num_target = text_count_tokens(pairs->target_texts[i]);
        cr_expect_eq(pairs->valid_lengths[i], (int64_t)num_source + 1);
        longest_source = num_source > longest_source ? num_source : longest_source;
        longest_target = num_target > longest_target ? num_target : longest_target;
    }
    cr_expect_eq(longest_source + 1, 5, "%zu and <eos>", longest_source);
    cr_expect_eq(longest_target + 1, 9, "%zu and <eos>", longest_target);
    cr_expect_eq(512 * 9 - count_ids(pairs->labels, 512 * 9, target->padding), 2136);
    double unknown_source = unknown_share(source, pairs->sources, 641 * 9, 0);
    double unknown_target = unknown_share(target, pairs->labels, 641 * 9, 641);
    cr_expect(unknown_source > 0.0325 && unknown_source < 0.0335, "%f", unknown_source);
    cr_expect(unknown_target > 0.1075 && unknown_target < 0.1085, "%f", unknown_target);
    pairs_free(pairs);
}
