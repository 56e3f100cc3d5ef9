/* Tests of examples/translate/vocabulary.c. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vocabulary.h"

static const char *const sentences[] = {"va !", "salut !", "ça va ?", "été . été , va"};

static int64_t id_of(const struct vocabulary *vocabulary, const char *token)
{
    return vocabulary_id(vocabulary, token, strlen(token));
}

static void expect_text(const struct vocabulary *vocabulary, const char *expected)
{
    cr_assert_not_null(vocabulary);
    char *text = vocabulary_to_text(vocabulary);
    cr_expect_str_eq(text, expected);
    free(text);
}

Test(vocabulary, sorts_by_code_point)
{
    struct vocabulary *vocabulary = vocabulary_build(sentences, 4, 9, 1, true, NULL);
    expect_text(vocabulary, "!\n,\n.\n<bos>\n<eos>\n<pad>\n<unk>\n?\nsalut\nva\nça\nété\n");
    cr_expect_eq(vocabulary->size, 12);
    cr_expect_eq(vocabulary->begin, 3);
    cr_expect_eq(vocabulary->end, 4);
    cr_expect_eq(vocabulary->padding, 5);
    cr_expect_eq(vocabulary->unknown, 6);
    vocabulary_free(vocabulary);
}

Test(vocabulary, keeps_words_seen_often_enough)
{
    struct vocabulary *vocabulary = vocabulary_build(sentences, 4, 9, 2, false, NULL);
    expect_text(vocabulary, "!\n<eos>\n<pad>\n<unk>\nva\nété\n");
    cr_expect_eq(vocabulary->begin, -1);
    vocabulary_free(vocabulary);
    vocabulary = vocabulary_build(sentences, 4, 9, 3, false, NULL);
    expect_text(vocabulary, "<eos>\n<pad>\n<unk>\nva\n");
    vocabulary_free(vocabulary);
}

Test(vocabulary, counts_only_what_is_not_cut)
{
    struct vocabulary *vocabulary = vocabulary_build(sentences, 4, 2, 2, false, NULL);
    expect_text(vocabulary, "!\n<eos>\n<pad>\n<unk>\nva\n");
    vocabulary_free(vocabulary);
}

Test(vocabulary, of_no_sentence_has_the_reserved_tokens)
{
    struct vocabulary *vocabulary = vocabulary_build(NULL, 0, 9, 2, true, NULL);
    expect_text(vocabulary, "<bos>\n<eos>\n<pad>\n<unk>\n");
    vocabulary_free(vocabulary);
}

Test(vocabulary, looks_up_both_ways)
{
    struct vocabulary *vocabulary = vocabulary_build(sentences, 4, 9, 1, true, NULL);
    cr_expect_eq(id_of(vocabulary, "ça"), 10);
    cr_expect_eq(vocabulary_id(vocabulary, "vaste", 2), 9);
    cr_expect_eq(id_of(vocabulary, "v"), vocabulary->unknown);
    cr_expect_eq(id_of(vocabulary, ""), vocabulary->unknown);
    cr_expect_eq(id_of(vocabulary, "absent"), vocabulary->unknown);
    cr_expect_str_eq(vocabulary_token(vocabulary, 10), "ça");
    cr_expect_null(vocabulary_token(vocabulary, -1));
    cr_expect_null(vocabulary_token(vocabulary, 12));
    vocabulary_free(vocabulary);
}

Test(vocabulary, text_cannot_fake_reserved_tokens)
{
    const char *const sly[] = {"a <eos> b <pad> <bos> <unk>"};
    struct vocabulary *vocabulary = vocabulary_build(sly, 1, 9, 1, true, NULL);
    expect_text(vocabulary, "<bos>\n<eos>\n<pad>\n<unk>\na\nb\n");
    const char *const reserved[] = {"<bos>", "<eos>", "<pad>", "<unk>"};
    for (size_t i = 0; i < 4; i++) cr_expect_eq(id_of(vocabulary, reserved[i]), vocabulary->unknown);
    vocabulary_free(vocabulary);
}

Test(vocabulary, holds_many_tokens)
{
    enum { COUNT = 20000 };
    char(*words)[8] = calloc(COUNT, sizeof *words);
    const char **list = calloc(COUNT, sizeof *list);
    cr_assert(words != NULL && list != NULL);
    for (int i = 0; i < COUNT; i++) {
        snprintf(words[i], sizeof words[i], "w%05d", COUNT - 1 - i);
        list[i] = words[i];
    }
    struct vocabulary *vocabulary = vocabulary_build(list, COUNT, 1, 1, false, NULL);
    cr_assert_eq(vocabulary->size, COUNT + 3);
    for (int i = 0; i < COUNT; i++) cr_assert_eq(id_of(vocabulary, words[i]), COUNT - 1 - i + 3);
    vocabulary_free(vocabulary);
    free(list);
    free(words);
}

Test(vocabulary, survives_saving_and_loading)
{
    struct vocabulary *saved = vocabulary_build(sentences, 4, 9, 1, true, NULL);
    char *text = vocabulary_to_text(saved);
    struct vocabulary *loaded = vocabulary_from_text(text, strlen(text), true, NULL);
    expect_text(loaded, text);
    cr_expect_eq(loaded->begin, saved->begin);
    cr_expect_eq(loaded->unknown, saved->unknown);
    cr_expect_eq(id_of(loaded, "été"), id_of(saved, "été"));
    vocabulary_free(loaded);
    loaded = vocabulary_from_tokens((const char *const *)saved->tokens, saved->size, true, NULL);
    expect_text(loaded, text);
    vocabulary_free(loaded);
    vocabulary_free(saved);
    free(text);
}

static void expect_refused(const char *text, bool with_begin, const char *part_of_message)
{
    struct translate_error error = {""};
    cr_expect_null(vocabulary_from_text(text, strlen(text), with_begin, &error));
    cr_expect_not_null(strstr(error.message, part_of_message), "'%s' lacks '%s'", error.message, part_of_message);
}

Test(vocabulary, refuses_what_it_did_not_write)
{
    expect_refused("", false, "lacks <unk>");
    expect_refused("<eos>\n<pad>\na\n", false, "lacks <unk>");
    expect_refused("<eos>\n<pad>\n<unk>\n", true, "lacks <bos>");
    expect_refused("<eos>\n<pad>\n<unk>\na\nb\na\n", false, "\"a\" twice, as numbers 3 and 5");
    expect_refused("<eos>\n<pad>\n<unk>\n\na\n", false, "number 3 ");
    expect_refused("<eos>\n<pad>\n<unk>\na b\n", false, "number 3 ");
    expect_refused("<eos>\n<pad>\n<unk>\ncaf\xE9\n", false, "number 3 ");
    expect_refused("<eos>\n<pad>\n<unk>\nabc", false, "cut off after line 3");
    struct translate_error error = {""};
    cr_expect_null(vocabulary_from_text("<eos>\na\0b\n", 10, false, &error));
    cr_expect_not_null(strstr(error.message, "number 1 "));
    const char *const tokens[] = {"<eos>", "<pad>", "<unk>", "a\nb"};
    cr_expect_null(vocabulary_from_tokens(tokens, 4, false, &error));
    cr_expect_not_null(strstr(error.message, "number 3 "));
}

static void expect_decoded(const struct vocabulary *vocabulary, const int64_t *ids, int64_t num_ids,
                           const char *expected)
{
    char *text = vocabulary_decode(vocabulary, ids, num_ids);
    cr_assert_not_null(text);
    cr_expect_str_eq(text, expected);
    free(text);
}

Test(vocabulary, decodes_up_to_the_end)
{
    struct vocabulary *vocabulary = vocabulary_build(sentences, 4, 9, 1, true, NULL);
    expect_decoded(vocabulary, (int64_t[]){10, 9, 7, 4, 5, 5}, 6, "ça va ?");
    expect_decoded(vocabulary, (int64_t[]){10, 9, 6}, 3, "ça va <unk>");
    expect_decoded(vocabulary, (int64_t[]){4, 9}, 2, "");
    expect_decoded(vocabulary, NULL, 0, "");
    expect_decoded(vocabulary, (int64_t[]){9, 4, 99}, 3, "va");
    cr_expect_null(vocabulary_decode(vocabulary, (int64_t[]){9, 12}, 2));
    cr_expect_null(vocabulary_decode(vocabulary, (int64_t[]){-1}, 1));
    vocabulary_free(vocabulary);
}

Test(vocabulary, frees_null)
{
    vocabulary_free(NULL);
}
