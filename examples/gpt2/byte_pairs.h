/* GPT-2's tokens (Radford et al. 2019): bytes, of which two that stand side by side are merged to one token, and this
 * again, as merges were learned from texts. */
#ifndef GPT2_BYTE_PAIRS_H
#define GPT2_BYTE_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "token_table.h"

struct byte_string {
    char *bytes;
    size_t length;
};

struct byte_merge {
    int64_t pair[2], merged;
};

/* Starts as {0}. */
struct byte_pairs {
    int64_t count; /* of tokens, which are numbered from 0 on */
    int64_t end;   /* the number of "<|endoftext|>", which stands between texts; −1: there is none */
    struct byte_string *tokens;
    int64_t token_of[256]; /* of each byte */
    struct byte_merge *merges;
    struct token_table ranks; /* the index in merges of each pair, whose key lies there */
    char *text;               /* which has the tokens' bytes */
};

/* Reads vocab.json, {"token": number, ...}, and merges.txt, two tokens a line, the first line first, maybe behind one
 * that begins with "#version". Both spell bytes by GPT-2's alphabet, which has a character for each. False after an
 * error. */
bool byte_pairs_read(struct byte_pairs *pairs, const char *folder);

/* The tokens of a text, at least one for an empty one too: the end token. The caller frees them. NULL after an error:
 * the text is not UTF-8, or there is no memory. "<|endoftext|>" in a text is text. */
int64_t *byte_pairs_encode(const struct byte_pairs *pairs, const char *text, size_t size, int64_t *count);

/* The bytes of a token; NULL after an error: there is none of that number. */
const struct byte_string *byte_pairs_token(const struct byte_pairs *pairs, int64_t token);

void byte_pairs_free(struct byte_pairs *pairs);

#endif
