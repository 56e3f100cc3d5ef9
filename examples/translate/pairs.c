/* Splitting sentence pairs and turning them into ids. */
#include "pairs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "sentences.h"
#include "splitmix.h"
#include "text.h"

const struct pairs_options pairs_options_book = {.num_steps = 9,
                                                 .minimum_frequency = 2,
                                                 .num_train = 512,
                                                 .num_validation = 129,
                                                 .in_file_order = true};
const struct pairs_options pairs_options_file = {.num_steps = 16,
                                                 .minimum_frequency = 2,
                                                 .num_train = PAIRS_AUTOMATIC,
                                                 .num_validation = PAIRS_AUTOMATIC,
                                                 .num_test = PAIRS_AUTOMATIC};
const struct pairs_options pairs_options_numbers = {.num_steps = 12,
                                                    .minimum_frequency = 1,
                                                    .num_train = 40000,
                                                    .num_validation = 1000,
                                                    .num_test = 2000};

enum { MAX_STEPS = 1000, MAX_PAIRS = 1000000000 };

/* A pair's place in the shuffled order. Equal sources have equal keys, so that they stay together. */
struct place {
    uint64_t key;
    const char *source;
    int64_t index;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *left = a, *right = b;
    if (left->key != right->key) return left->key < right->key ? -1 : 1;
    int by_source = strcmp(left->source, right->source);
    return by_source != 0 ? by_source : (left->index > right->index) - (left->index < right->index);
}

static void make_places(struct place *places, const struct sentences *sentences, uint64_t seed)
{
    for (int64_t i = 0; i < sentences->count; i++) {
        const char *source = sentences->sources[i];
        struct splitmix generator = {seed ^ token_hash(source, strlen(source))};
        places[i] = (struct place){splitmix_next(&generator), source, i};
    }
    qsort(places, (size_t)sentences->count, sizeof *places, compare_places);
}

/* Returns where the next part begins: at from, or behind the places whose source the part before has too. */
static int64_t next_part(const struct place *places, int64_t num_places, int64_t from)
{
    while (from > 0 && from < num_places && strcmp(places[from].source, places[from - 1].source) == 0) from++;
    return from;
}

/* Writes into order the numbers of the sentences as the data set has them. Test and validation pairs come from the
   front of the shuffled places, so that all the rest can be training pairs. The sizes are in pairs. */
static bool split(struct pairs *pairs, const struct place *places, int64_t num_places, int64_t *order)
{
    int64_t test = 0;
    int64_t validation = next_part(places, num_places, test + pairs->num_test);
    int64_t train = next_part(places, num_places, validation + pairs->num_validation);
    int64_t num_left = num_places - train;
    if (pairs->num_train == PAIRS_AUTOMATIC) pairs->num_train = num_left;
    if (num_left < 1 || num_left < pairs->num_train) return false;
    for (int64_t i = 0; i < pairs->num_train; i++) *order++ = places[train + i].index;
    for (int64_t i = 0; i < pairs->num_validation; i++) *order++ = places[validation + i].index;
    for (int64_t i = 0; i < pairs->num_test; i++) *order++ = places[test + i].index;
    return true;
}

/* The same without a shuffle: training pairs, validation pairs, test pairs, as they come. */
static bool split_in_order(struct pairs *pairs, int64_t num_sentences, int64_t *order)
{
    int64_t num_left = num_sentences - pairs->num_validation - pairs->num_test;
    if (pairs->num_train == PAIRS_AUTOMATIC) pairs->num_train = num_left;
    if (num_left < 1 || num_left < pairs->num_train) return false;
    for (int64_t i = 0; i < num_sentences - num_left + pairs->num_train; i++) order[i] = i;
    return true;
}

static int64_t automatic_size(int64_t size, int64_t num_pairs)
{
    if (size != PAIRS_AUTOMATIC) return size;
    size = num_pairs / 20;
    return size < 1 ? 1 : size > 2000 ? 2000 : size;
}

static int64_t num_rows(const struct pairs *pairs)
{
    return pairs->num_train + pairs->num_validation + pairs->num_test;
}

static uint64_t hash_sentences(const struct sentences *sentences)
{
    uint64_t hash = HASH_BEGIN;
    for (int64_t i = 0; i < sentences->count; i++) {
        hash = hash_bytes(hash, sentences->sources[i], strlen(sentences->sources[i]) + 1);
        hash = hash_bytes(hash, sentences->targets[i], strlen(sentences->targets[i]) + 1);
    }
    return hash;
}

/* Decides the parts and moves the sentences into them. */
static bool take_sentences(struct pairs *pairs, struct sentences *sentences, const struct pairs_options *options,
                           bool is_shuffled, const char *name, struct translate_error *error)
{
    size_t count = (size_t)sentences->count;
    pairs->hash = hash_sentences(sentences);
    pairs->num_train = options->num_train;
    pairs->num_validation = automatic_size(options->num_validation, sentences->count);
    pairs->num_test = automatic_size(options->num_test, sentences->count);
    int64_t *order = calloc(count + 1, sizeof *order);
    struct place *places = is_shuffled ? calloc(count + 1, sizeof *places) : NULL;
    pairs->source_texts = calloc(count + 1, sizeof *pairs->source_texts);
    pairs->target_texts = calloc(count + 1, sizeof *pairs->target_texts);
    bool has_memory =
        order != NULL && (places != NULL || !is_shuffled) && pairs->source_texts != NULL && pairs->target_texts != NULL;
    if (has_memory && is_shuffled) make_places(places, sentences, options->seed);
    bool is_split = has_memory && (is_shuffled ? split(pairs, places, sentences->count, order)
                                               : split_in_order(pairs, sentences->count, order));
    if (is_split) {
        for (int64_t i = 0; i < num_rows(pairs); i++) {
            pairs->source_texts[i] = sentences->sources[order[i]];
            pairs->target_texts[i] = sentences->targets[order[i]];
        }
        pairs->text = sentences->text;
        sentences->text = NULL;
        pairs->num_left_out = sentences->num_left_out;
        pairs->num_without_part = sentences->count - num_rows(pairs);
    } else if (has_memory) {
        if (pairs->num_train < 1) pairs->num_train = 1;
        translate_fail(error,
                       "%s: %" PRId64 " usable pairs (%" PRId64 " longer than %" PRId64 " tokens left out) are too few "
                       "for %" PRId64 " training, %" PRId64 " validation and %" PRId64 " test pairs%s",
                       name, sentences->count, sentences->num_left_out, options->num_steps - 1, pairs->num_train,
                       pairs->num_validation, pairs->num_test,
                       num_rows(pairs) <= sentences->count ? ": translations of one sentence stay in one part" : "");
    } else {
        translate_fail(error, "%s: out of memory for %" PRId64 " pairs", name, sentences->count);
    }
    free(places);
    free(order);
    return is_split;
}

/* Ids of a preprocessed text, then <eos>, then padding, cut at num_steps. Returns how many are not padding. */
static int64_t encode(const struct vocabulary *vocabulary, const char *text, int64_t num_steps, int64_t *ids)
{
    const char *token;
    size_t length;
    int64_t count = 0;
    while (count < num_steps && (token = text_next_token(&text, &length)) != NULL)
        ids[count++] = vocabulary_id(vocabulary, token, length);
    if (count < num_steps) ids[count++] = vocabulary->end;
    for (int64_t i = count; i < num_steps; i++) ids[i] = vocabulary->padding;
    return count;
}

/* Builds the vocabularies from the first num_seen pairs and the ids of all. */
static bool fill_arrays(struct pairs *pairs, const struct pairs_options *options, int64_t num_seen,
                        struct translate_error *error)
{
    int64_t n = num_rows(pairs), steps = pairs->num_steps = options->num_steps;
    pairs->source_vocabulary =
        vocabulary_build(pairs->source_texts, num_seen, steps, options->minimum_frequency, false, error);
    if (pairs->source_vocabulary == NULL) return false;
    pairs->target_vocabulary =
        vocabulary_build(pairs->target_texts, num_seen, steps, options->minimum_frequency, true, error);
    if (pairs->target_vocabulary == NULL) return false;
    size_t row_size = (size_t)steps * sizeof(int64_t);
    pairs->sources = calloc((size_t)n, row_size);
    pairs->decoder_inputs = calloc((size_t)n, row_size);
    pairs->labels = calloc((size_t)n, row_size);
    pairs->valid_lengths = calloc((size_t)n, sizeof(int64_t));
    if (pairs->sources == NULL || pairs->decoder_inputs == NULL || pairs->labels == NULL ||
        pairs->valid_lengths == NULL)
        return translate_fail(error, "out of memory for the ids of %" PRId64 " pairs", n);
    for (int64_t i = 0; i < n; i++) {
        int64_t *labels = pairs->labels + i * steps, *decoder_inputs = pairs->decoder_inputs + i * steps;
        pairs->valid_lengths[i] =
            encode(pairs->source_vocabulary, pairs->source_texts[i], steps, pairs->sources + i * steps);
        encode(pairs->target_vocabulary, pairs->target_texts[i], steps, labels);
        decoder_inputs[0] = pairs->target_vocabulary->begin;
        memcpy(decoder_inputs + 1, labels, row_size - sizeof(int64_t));
    }
    return true;
}

static bool check_range(int64_t value, int64_t lowest, int64_t highest, const char *what, struct translate_error *error)
{
    if (value >= lowest && value <= highest) return true;
    return translate_fail(error, "%s must be between %" PRId64 " and %" PRId64 ", not %" PRId64, what, lowest, highest,
                          value);
}

/* least: 0, or PAIRS_AUTOMATIC where that is allowed. */
static bool check_options(const struct pairs_options *options, int64_t least, struct translate_error *error)
{
    if (options->num_train == 0) return translate_fail(error, "the number of training pairs must not be 0");
    return check_range(options->num_steps, 2, MAX_STEPS, "the longest sentence, with <eos>,", error) &&
           check_range(options->minimum_frequency, 1, MAX_PAIRS, "the rarest word's frequency", error) &&
           check_range(options->num_train, least, MAX_PAIRS, "the number of training pairs", error) &&
           check_range(options->num_validation, least, MAX_PAIRS, "the number of validation pairs", error) &&
           check_range(options->num_test, least, MAX_PAIRS, "the number of test pairs", error);
}

/* Turns the sentences into a data set and frees them. */
static struct pairs *pairs_from_sentences(struct sentences *sentences, const struct pairs_options *options,
                                          bool is_shuffled, const char *name, struct translate_error *error)
{
    struct pairs *pairs = calloc(1, sizeof *pairs);
    if (pairs == NULL) translate_fail(error, "out of memory for the data set");
    bool is_made = pairs != NULL && take_sentences(pairs, sentences, options, is_shuffled, name, error) &&
                   fill_arrays(pairs, options, options->in_file_order ? num_rows(pairs) : pairs->num_train, error);
    sentences_free(sentences);
    if (is_made) return pairs;
    pairs_free(pairs);
    return NULL;
}

struct pairs *pairs_from_file(const char *path, const struct pairs_options *options, struct translate_error *error)
{
    struct sentences sentences;
    if (!check_options(options, PAIRS_AUTOMATIC, error)) return NULL;
    int64_t max_pairs = INT64_MAX, max_tokens = options->num_steps - 1;
    if (options->in_file_order) {
        max_tokens = INT64_MAX;
        if (options->num_train > 0 && options->num_validation >= 0 && options->num_test >= 0)
            max_pairs = options->num_train + options->num_validation + options->num_test;
    }
    if (!sentences_read(&sentences, path, max_pairs, max_tokens, error)) return NULL;
    return pairs_from_sentences(&sentences, options, !options->in_file_order, path, error);
}

struct pairs *pairs_from_numbers(const struct pairs_options *options, struct translate_error *error)
{
    struct sentences sentences;
    if (!check_options(options, 0, error)) return NULL;
    int64_t count = options->num_train + options->num_validation + options->num_test;
    if (!sentences_from_numbers(&sentences, count, options->num_steps - 1, options->seed, error)) return NULL;
    /* They come in random order. */
    return pairs_from_sentences(&sentences, options, false, "numbers", error);
}

void pairs_free(struct pairs *pairs)
{
    if (pairs == NULL) return;
    vocabulary_free(pairs->source_vocabulary);
    vocabulary_free(pairs->target_vocabulary);
    free(pairs->sources);
    free(pairs->decoder_inputs);
    free(pairs->labels);
    free(pairs->valid_lengths);
    free(pairs->source_texts);
    free(pairs->target_texts);
    free(pairs->text);
    free(pairs);
}

bool pairs_encode_source(const struct vocabulary *vocabulary, int64_t num_steps, const char *sentence, int64_t *ids,
                         int64_t *valid_length, struct translate_error *error)
{
    size_t length = strlen(sentence), bad_byte;
    if (!text_is_utf8(sentence, length, &bad_byte))
        return translate_fail(error, "the sentence is not valid UTF-8: byte %zu is 0x%02X", bad_byte + 1,
                              (unsigned char)sentence[bad_byte]);
    char *text = malloc(TEXT_ROOM(length));
    if (text == NULL) return translate_fail(error, "out of memory for a sentence of %zu bytes", length);
    size_t num_tokens = text_preprocess(sentence, length, text);
    bool is_encoded = false;
    if (num_tokens == 0)
        translate_fail(error, "the sentence to translate is empty");
    else if (num_tokens > (size_t)(num_steps - 1))
        translate_fail(error, "the sentence has %zu words and marks, but the model reads at most %" PRId64, num_tokens,
                       num_steps - 1);
    else
        is_encoded = (*valid_length = encode(vocabulary, text, num_steps, ids)) > 0;
    free(text);
    return is_encoded;
}

bool pairs_unknown_words(const struct vocabulary *vocabulary, const char *sentence, char **words)
{
    size_t length = strlen(sentence), token_length, used = 0;
    char *text = malloc(TEXT_ROOM(length)), *list = malloc(2 * TEXT_ROOM(length)); /* ", " for each token */
    struct token_table seen = {0};
    const char *cursor = text, *token;
    bool enough_memory = text != NULL && list != NULL;
    if (enough_memory) text_preprocess(sentence, length, text);
    while (enough_memory && (token = text_next_token(&cursor, &token_length)) != NULL) {
        if (vocabulary_id(vocabulary, token, token_length) != vocabulary->unknown) continue;
        struct token_slot *slot = token_table_insert(&seen, token, token_length);
        enough_memory = slot != NULL;
        if (slot == NULL || slot->value++ > 0) continue;
        used += (size_t)sprintf(list + used, "%s%.*s", used > 0 ? ", " : "", (int)token_length, token);
    }
    token_table_free(&seen);
    free(text);
    *words = enough_memory && used > 0 ? list : NULL;
    if (*words == NULL) free(list);
    return enough_memory;
}
