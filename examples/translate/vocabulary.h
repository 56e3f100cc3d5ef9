/* A vocabulary: tokens and their ids, in the order of their code points. */
#ifndef TRANSLATE_VOCABULARY_H
#define TRANSLATE_VOCABULARY_H

#include "error.h"
#include "token_table.h"

/* Read the first six fields, change none. */
struct vocabulary {
    int64_t size;
    char **tokens;                 /* tokens[id], size of them */
    int64_t unknown, padding, end; /* ids of <unk>, <pad> and <eos> */
    int64_t begin;                 /* id of <bos>, or -1: only target vocabularies have it */
    struct token_table ids;
};

/* The tokens seen at least minimum_frequency times among the first max_tokens of each preprocessed sentence, with
   <unk>, <pad>, <eos> and, with_begin, <bos>. Free it with vocabulary_free. NULL without memory. */
struct vocabulary *vocabulary_build(const char *const *sentences, int64_t num_sentences, int64_t max_tokens,
                                    int64_t minimum_frequency, bool with_begin, struct translate_error *error);

/* The vocabulary whose tokens[id] are given, copied. NULL if one is empty, stands twice, is not UTF-8 or holds a space
   or line break, and if <unk>, <pad>, <eos> or, with_begin, <bos> is missing. */
struct vocabulary *vocabulary_from_tokens(const char *const *tokens, int64_t num_tokens, bool with_begin,
                                          struct translate_error *error);

/* All tokens in the order of their ids, one a line, each line closed by \n. The caller frees it. NULL without
   memory. */
char *vocabulary_to_text(const struct vocabulary *vocabulary);

/* What vocabulary_to_text wrote (length bytes, no NUL needed), under the conditions of vocabulary_from_tokens. */
struct vocabulary *vocabulary_from_text(const char *text, size_t length, bool with_begin,
                                        struct translate_error *error);

/* The id of a word of text. <unk>'s for one that is not in the vocabulary or is spelled like a reserved token. */
int64_t vocabulary_id(const struct vocabulary *vocabulary, const char *token, size_t length);

/* The token with this id, owned by the vocabulary; NULL outside 0 .. size - 1. */
const char *vocabulary_token(const struct vocabulary *vocabulary, int64_t id);

/* Tokens up to the first <eos>, or all, joined by spaces. The caller frees it. NULL for an id outside the vocabulary or
   without memory. */
char *vocabulary_decode(const struct vocabulary *vocabulary, const int64_t *ids, int64_t num_ids);

/* NULL is fine. */
void vocabulary_free(struct vocabulary *vocabulary);

#endif
