/* Texts to tokens, and tokens to bytes. */
#include "byte_pairs.h"

#include <stdlib.h>

#include <rapt.h>

#include "pieces.h"
#include "tensor/utf8.h"

static const char op[] = "gpt2";

/* The rank of a pair that does not merge. */
static const int64_t never = INT64_MAX;

static int64_t rank_of(const struct byte_pairs *pairs, int64_t left, int64_t right)
{
    const int64_t pair[2] = {left, right};
    const struct token_slot *slot = token_table_find(&pairs->ranks, (const char *)pair, sizeof pair);
    return slot ? slot->value : never;
}

/* Merges the pairs of that rank, from left to right. ranks[i] is that of tokens i and i + 1. Returns how many tokens
 * are left. */
static size_t merge_rank(const struct byte_pairs *pairs, int64_t rank, int64_t *tokens, int64_t *ranks, size_t count)
{
    size_t left = 0;
    bool is_new = false; /* is the last of those that are left? */
    for (size_t i = 0; i < count; left++) {
        const bool merges = i + 1 < count && ranks[i] == rank;
        tokens[left] = merges ? pairs->merges[rank].merged : tokens[i];
        if (left > 0)
            ranks[left - 1] = merges || is_new ? rank_of(pairs, tokens[left - 1], tokens[left]) : ranks[i - 1];
        is_new = merges;
        i += merges ? 2 : 1;
    }
    return left;
}

/* Merges the tokens of a piece, the lowest rank first, until none merge. */
static size_t merge(const struct byte_pairs *pairs, int64_t *tokens, int64_t *ranks, size_t count)
{
    for (size_t i = 0; i + 1 < count; i++) ranks[i] = rank_of(pairs, tokens[i], tokens[i + 1]);
    for (;;) {
        int64_t lowest = never;
        for (size_t i = 0; i + 1 < count; i++)
            if (ranks[i] < lowest) lowest = ranks[i];
        if (lowest == never) return count;
        count = merge_rank(pairs, lowest, tokens, ranks, count);
    }
}

static bool check_text(const struct byte_pairs *pairs, const char *text, size_t size)
{
    if (size == 0 && pairs->end < 0)
        return rapt_fail(RAPT_ERROR_VALUE, op,
                         "no text is given, and the vocabulary has no <|endoftext|> to begin with");
    for (size_t at = 0, length; at < size; at += length)
        if ((length = rapt_utf8_length(text + at, size - at)) == 0)
            return rapt_fail(RAPT_ERROR_VALUE, op, "the text is not UTF-8 at byte %zu", at);
    return true;
}

int64_t *byte_pairs_encode(const struct byte_pairs *pairs, const char *text, size_t size, int64_t *count)
{
    if (!check_text(pairs, text, size)) return NULL;
    int64_t *tokens = calloc(size + 1, sizeof *tokens), *ranks = calloc(size + 1, sizeof *ranks);
    if (!tokens || !ranks) {
        free(tokens);
        free(ranks);
        rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for the tokens of %zu bytes", size);
        return NULL;
    }
    size_t used = 0;
    for (size_t at = 0, length; at < size; at += length) {
        length = piece_length(text + at, size - at);
        for (size_t i = 0; i < length; i++) tokens[used + i] = pairs->token_of[(unsigned char)text[at + i]];
        used += merge(pairs, tokens + used, ranks, length);
    }
    if (size == 0) tokens[used++] = pairs->end;
    free(ranks);
    *count = (int64_t)used;
    return tokens;
}

const struct byte_string *byte_pairs_token(const struct byte_pairs *pairs, int64_t token)
{
    if (token >= 0 && token < pairs->count) return &pairs->tokens[token];
    rapt_fail(RAPT_ERROR_VALUE, op, "the model gives token %lld; the vocabulary has %lld", (long long)token,
              (long long)pairs->count);
    return NULL;
}

void byte_pairs_free(struct byte_pairs *pairs)
{
    free(pairs->tokens);
    free(pairs->merges);
    free(pairs->text);
    token_table_free(&pairs->ranks);
    *pairs = (struct byte_pairs){0};
}
