/* Reading a vocabulary and its merges. */
#include <stdlib.h>
#include <string.h>

#include <rapt.h>

#include "byte_pairs.h"
#include "folder.h"

static const char op[] = "gpt2";

/* What is needed while they are read. */
struct reading {
    struct byte_pairs *pairs;
    const char *folder;
    struct token_table ids; /* of tokens as they are spelled */
    int64_t room;           /* of pairs->tokens */
};

/* --- the alphabet --- */

enum { bytes = 256, last_character = 255 + 68 };

/* Bytes that are printed in Latin-1, but for the soft hyphen, are spelled by their characters there, the 68 others by
 * those from 256 on. */
static int character_of(int byte)
{
    if (byte <= ' ') return bytes + byte;
    if (byte >= 0x7F && byte <= 0xA0) return bytes + 33 + byte - 0x7F;
    return byte == 0xAD ? last_character : byte;
}

/* The UTF-8 of a character below 0x800; returns its bytes. */
static size_t put_character(int character, char text[2])
{
    if (character < 0x80) return text[0] = (char)character, 1;
    text[0] = (char)(0xC0 | character >> 6);
    text[1] = (char)(0x80 | (character & 0x3F));
    return 2;
}

/* The byte that a character of UTF-8 spells; −1: none. */
static int byte_at(const char *text, const int byte_of[last_character + 1])
{
    const unsigned char first = (unsigned char)*text;
    if (first < 0x80) return byte_of[first];
    const int character = first < 0xE0 ? (first & 0x1F) << 6 | (text[1] & 0x3F) : INT32_MAX;
    return character <= last_character ? byte_of[character] : -1;
}

static size_t length_at(const char *text)
{
    return (unsigned char)*text < 0x80 ? 1 : 2;
}

/* A token as it is spelled becomes the bytes that it stands for. */
static bool spell_out(const struct reading *r, struct byte_string *token, const int byte_of[last_character + 1])
{
    char *const text = token->bytes;
    for (const char *at = text; at < text + token->length; at += length_at(at))
        if (byte_at(at, byte_of) < 0)
            return rapt_fail(RAPT_ERROR_FORMAT, op, "%s/vocab.json: the token '%s' is not of GPT-2's alphabet",
                             r->folder, text);
    size_t length = 0, step;
    for (size_t at = 0; at < token->length; at += step) {
        step = length_at(text + at);
        text[length++] = (char)byte_at(text + at, byte_of);
    }
    token->length = length;
    return true;
}

static bool spell_all_out(struct reading *r)
{
    int byte_of[last_character + 1];
    for (int i = 0; i <= last_character; i++) byte_of[i] = -1;
    for (int byte = 0; byte < bytes; byte++) byte_of[character_of(byte)] = byte;
    bool good = true;
    for (int64_t id = 0; good && id < r->pairs->count; id++) good = spell_out(r, &r->pairs->tokens[id], byte_of);
    return good;
}

/* --- vocab.json --- */

static bool add_token(struct reading *r, char *spelled, int64_t id)
{
    const size_t used = r->ids.used;
    struct token_slot *slot = token_table_insert(&r->ids, spelled, strlen(spelled));
    if (!slot) return rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for the vocabulary");
    if (r->ids.used == used)
        return rapt_fail(RAPT_ERROR_FORMAT, op, "%s/vocab.json has the token '%s' twice", r->folder, spelled);
    if (id >= r->room || r->pairs->tokens[id].bytes)
        return rapt_fail(RAPT_ERROR_FORMAT, op,
                         "%s/vocab.json: the token '%s' has the number %lld; each from 0 on is expected once",
                         r->folder, spelled, (long long)id);
    slot->value = id;
    r->pairs->tokens[id] = (struct byte_string){spelled, strlen(spelled)};
    r->pairs->count++;
    return true;
}

static bool take_tokens(struct reading *r, rapt_json *json)
{
    if (!rapt_json_take(json, '{')) json->error = "'{' expected";
    for (bool first = true; rapt_json_more(json, '}', &first);) {
        int64_t id;
        char *spelled = rapt_json_key(json);
        if (spelled && !rapt_json_count(json, &id) && !json->error) json->error = "a token's number expected";
        if (json->error) break;
        if (!add_token(r, spelled, id)) return false;
    }
    return rapt_json_end(json) || folder_fail(r->folder, "vocab.json", json);
}

static int64_t find(const struct reading *r, const char *spelled, size_t length)
{
    const struct token_slot *slot = token_table_find(&r->ids, spelled, length);
    return slot ? slot->value : -1;
}

/* Are all numbers and all bytes there? */
static bool check_tokens(struct reading *r)
{
    for (int64_t id = 0; id < r->pairs->count; id++)
        if (!r->pairs->tokens[id].bytes)
            return rapt_fail(RAPT_ERROR_FORMAT, op, "%s/vocab.json has %lld tokens, but none of the number %lld",
                             r->folder, (long long)r->pairs->count, (long long)id);
    for (int byte = 0; byte < bytes; byte++) {
        char spelled[2];
        r->pairs->token_of[byte] = find(r, spelled, put_character(character_of(byte), spelled));
        if (r->pairs->token_of[byte] < 0)
            return rapt_fail(RAPT_ERROR_FORMAT, op, "%s/vocab.json has no token for the byte %d", r->folder, byte);
    }
    r->pairs->end = find(r, "<|endoftext|>", strlen("<|endoftext|>"));
    return true;
}

static bool read_vocabulary(struct reading *r)
{
    enum { shortest_entry = 5 }; /* "":1, */
    size_t size;
    char *text = r->pairs->text = folder_read(r->folder, "vocab.json", &size);
    if (!text) return false;
    r->room = (int64_t)(size / shortest_entry) + 1;
    r->pairs->tokens = calloc((size_t)r->room, sizeof *r->pairs->tokens);
    if (!r->pairs->tokens) return rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for the vocabulary");
    rapt_json json = {.begin = text, .next = text, .end = text + size};
    return take_tokens(r, &json) && check_tokens(r);
}

/* --- merges.txt --- */

static bool fail_merge(const struct reading *r, int64_t line, const char *what, const char *token, size_t length)
{
    return rapt_fail(RAPT_ERROR_FORMAT, op, "%s/merges.txt, line %lld: %s%.*s", r->folder, (long long)line, what,
                     (int)length, token);
}

/* A line of two tokens, which becomes the one that they make. */
static bool take_merge(const struct reading *r, int64_t line, char *left, size_t length, struct byte_merge *merge)
{
    char *gap = memchr(left, ' ', length);
    const size_t left_length = gap ? (size_t)(gap - left) : 0, right_length = gap ? length - left_length - 1 : 0;
    if (left_length == 0 || right_length == 0 || memchr(gap + 1, ' ', right_length))
        return fail_merge(r, line, "two tokens expected, with a space between them", "", 0);
    merge->pair[0] = find(r, left, left_length);
    if (merge->pair[0] < 0) return fail_merge(r, line, "vocab.json has no token ", left, left_length);
    merge->pair[1] = find(r, gap + 1, right_length);
    if (merge->pair[1] < 0) return fail_merge(r, line, "vocab.json has no token ", gap + 1, right_length);
    memmove(gap, gap + 1, right_length);
    merge->merged = find(r, left, length - 1);
    return merge->merged >= 0 || fail_merge(r, line, "vocab.json has no token ", left, length - 1);
}

static bool add_merge(const struct reading *r, int64_t line, int64_t rank)
{
    struct token_table *ranks = &r->pairs->ranks;
    const struct byte_merge *merge = &r->pairs->merges[rank];
    const size_t used = ranks->used;
    struct token_slot *slot = token_table_insert(ranks, (const char *)merge->pair, sizeof merge->pair);
    if (!slot) return rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for the merges");
    if (ranks->used == used) return fail_merge(r, line, "a pair that an earlier line has", "", 0);
    slot->value = rank;
    return true;
}

static bool take_merges(const struct reading *r, char *text, size_t size)
{
    size_t lines = 1;
    for (size_t i = 0; i < size; i++) lines += text[i] == '\n';
    r->pairs->merges = calloc(lines, sizeof *r->pairs->merges);
    if (!r->pairs->merges) return rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for the merges");
    int64_t rank = 0, line = 1;
    for (char *at = text, *end; at < text + size; at = end + 1, line++) {
        end = memchr(at, '\n', (size_t)(text + size - at));
        if (!end) end = text + size;
        if (line == 1 && strncmp(at, "#version", strlen("#version")) == 0) continue;
        const size_t length = (size_t)(end - at) - (end > at && end[-1] == '\r');
        if (!take_merge(r, line, at, length, &r->pairs->merges[rank]) || !add_merge(r, line, rank)) return false;
        rank++;
    }
    return true;
}

static bool read_merges(const struct reading *r)
{
    size_t size;
    char *text = folder_read(r->folder, "merges.txt", &size);
    const bool good = text && take_merges(r, text, size);
    free(text);
    return good;
}

bool byte_pairs_read(struct byte_pairs *pairs, const char *folder)
{
    struct reading reading = {.pairs = pairs, .folder = folder};
    const bool good = read_vocabulary(&reading) && read_merges(&reading) && spell_all_out(&reading);
    token_table_free(&reading.ids);
    if (!good) byte_pairs_free(pairs);
    return good;
}
