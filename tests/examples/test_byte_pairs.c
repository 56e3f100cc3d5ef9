/* Tests of examples/gpt2/byte_pairs.c: how bytes are merged, and that they come back. What an independent tokenizer
 * makes of more texts is in check_gpt2.py. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "byte_pairs.h"
#include "draw.h"
#include "expect.h"
#include "failing_malloc.h"

/* --- a vocabulary of 256 bytes, some merges and an end --- */

static const char *const merges[] = {"l l", "h e",   "he ll", "hell o", "Ġ hello", "o w",
                                     "a a", "aa aa", "Ã ©",   "x y",    "w x"};
enum { num_merges = sizeof merges / sizeof *merges, end_token = 256 + num_merges };

static bool is_printed(int byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

/* GPT-2's alphabet by the words of its release: bytes that are not printed get the characters from 256 on. */
static int spelling_of(int byte)
{
    int character = 256;
    for (int other = 0; other < byte; other++) character += !is_printed(other);
    return is_printed(byte) ? byte : character;
}

static void make_folder(char folder[32])
{
    char path[64];
    strcpy(folder, "/tmp/rapt-test-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/vocab.json", folder);
    FILE *file = fopen(path, "w");
    for (int byte = 0; byte < 256; byte++)
        fprintf(file, "%s\"\\u%04x\": %d", byte == 0 ? "{" : ", ", (unsigned)spelling_of(byte), byte);
    for (int i = 0; i < num_merges; i++) {
        const char *gap = strchr(merges[i], ' ');
        fprintf(file, ", \"%.*s%s\": %d", (int)(gap - merges[i]), merges[i], gap + 1, 256 + i);
    }
    fprintf(file, ", \"<|endoftext|>\": %d}\n", end_token);
    fclose(file);
    snprintf(path, sizeof path, "%s/merges.txt", folder);
    file = fopen(path, "w");
    fputs("#version: 0.2\n", file);
    for (int i = 0; i < num_merges; i++) fprintf(file, "%s\n", merges[i]);
    fclose(file);
}

static void remove_folder(const char *folder)
{
    static const char *const names[] = {"vocab.json", "merges.txt"};
    for (int i = 0; i < 2; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static struct byte_pairs pairs;

static void begin(void)
{
    char folder[32];
    make_folder(folder);
    cr_assert(byte_pairs_read(&pairs, folder), "%s", rapt_error());
    remove_folder(folder);
}

static void end(void)
{
    byte_pairs_free(&pairs);
}

TestSuite(byte_pairs, .init = begin, .fini = end);

static void expect_tokens(const char *text, int64_t count, const int64_t *expected)
{
    int64_t actual_count = -1;
    int64_t *actual = byte_pairs_encode(&pairs, text, strlen(text), &actual_count);
    cr_assert_not_null(actual, "%s", rapt_error());
    cr_expect_eq(actual_count, count, "'%s': %lld tokens, not %lld", text, (long long)actual_count, (long long)count);
    for (int64_t i = 0; i < count && i < actual_count; i++)
        cr_expect_eq(actual[i], expected[i], "'%s', token %lld: %lld, not %lld", text, (long long)i,
                     (long long)actual[i], (long long)expected[i]);
    free(actual);
}

/* The bytes come back as they were; returns how many tokens there are. */
static int64_t expect_back(const char *text, size_t size)
{
    int64_t count = 0;
    size_t at = 0;
    int64_t *tokens = byte_pairs_encode(&pairs, text, size, &count);
    cr_assert_not_null(tokens, "%s", rapt_error());
    for (int64_t i = 0; i < count; i++) {
        const struct byte_string *token = byte_pairs_token(&pairs, tokens[i]);
        cr_assert_not_null(token);
        cr_assert(at + token->length <= size && memcmp(text + at, token->bytes, token->length) == 0,
                  "token %lld of '%.*s' is not what stands at %zu", (long long)i, (int)size, text, at);
        at += token->length;
    }
    cr_expect_eq(at, size);
    free(tokens);
    return count;
}

/* --- tokens --- */

Test(byte_pairs, merges_the_lowest_rank_first)
{
    expect_tokens("hello", 1, (int64_t[]){259});
    expect_tokens(" hello", 1, (int64_t[]){260});
    expect_tokens("  hello", 2, (int64_t[]){' ', 260});
    expect_tokens("hellow", 2, (int64_t[]){259, 'w'}); /* not hell, ow: "hell o" was learned earlier */
    expect_tokens("how", 2, (int64_t[]){'h', 261});
    expect_tokens("heL", 2, (int64_t[]){257, 'L'});
    expect_tokens("aaaaaaa", 3, (int64_t[]){263, 262, 'a'}); /* pairs from left to right */
    expect_tokens("wxy", 2, (int64_t[]){'w', 265});
    expect_tokens("wx", 1, (int64_t[]){266});
    expect_tokens("é", 1, (int64_t[]){264});
    expect_tokens("<|endoftext|>", 13, (int64_t[]){'<', '|', 'e', 'n', 'd', 'o', 'f', 't', 'e', 'x', 't', '|', '>'});
    expect_tokens("", 1, (int64_t[]){end_token});
    cr_expect_eq(pairs.end, end_token);
}

Test(byte_pairs, gives_all_bytes_back)
{
    for (int byte = 0; byte < 256; byte++) {
        const struct byte_string *token = byte_pairs_token(&pairs, pairs.token_of[byte]);
        cr_assert_not_null(token);
        cr_expect(token->length == 1 && (unsigned char)token->bytes[0] == byte, "byte %d", byte);
    }
    expect_back("a\0b \0", 5);
}

Test(byte_pairs, gives_random_texts_back)
{
    static const int ranges[][2] = {{0, 0x20},     {0x20, 0x7F},    {'a', 'p'},
                                    {0x80, 0x800}, {0x800, 0xD800}, {0xE000, 0x110000}};
    uint64_t state = 1;
    for (int trial = 0; trial < 500; trial++) {
        char text[512];
        size_t size = 0;
        while (size < 500 && !draw_chance(&state, 2)) {
            const int *range = ranges[draw_below(&state, 6)];
            const int code = range[0] + (int)draw_below(&state, range[1] - range[0]);
            const int following = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
            const int marks[] = {0, 0xC0, 0xE0, 0xF0};
            text[size++] = (char)(marks[following] | code >> 6 * following);
            for (int i = following - 1; i >= 0; i--) text[size++] = (char)(0x80 | (code >> 6 * i & 0x3F));
        }
        if (size > 0) expect_back(text, size);
    }
}

/* 100,000 letters of one piece. */
Test(byte_pairs, takes_a_long_word)
{
    enum { length = 100000 };
    char *text = malloc(length);
    memset(text, 'a', length);
    cr_expect_eq(expect_back(text, length), length / 4);
    free(text);
}

Test(byte_pairs, refuses_what_is_no_text)
{
    int64_t count;
    static const char *const bad[] = {"a\xFFz", "ab\xC3", "\xED\xA0\x80", "\xC0\x80", "\xF4\x90\x80\x80"};
    static const char *const places[] = {"at byte 1", "at byte 2", "at byte 0", "at byte 0", "at byte 0"};
    for (int i = 0; i < 5; i++) {
        cr_expect_null(byte_pairs_encode(&pairs, bad[i], strlen(bad[i]), &count));
        expect_error(RAPT_ERROR_VALUE, places[i]);
    }
    for (int64_t token = -1; token <= end_token + 1; token += end_token + 2) {
        cr_expect_null(byte_pairs_token(&pairs, token));
        expect_error(RAPT_ERROR_VALUE, "the vocabulary has");
    }
}

/* --- without memory --- */

static char trial_folder[32];

static bool read_and_encode(void)
{
    struct byte_pairs read = {0};
    int64_t count;
    int64_t *tokens = byte_pairs_read(&read, trial_folder) ? byte_pairs_encode(&read, "hello", 5, &count) : NULL;
    const bool good = tokens;
    free(tokens);
    byte_pairs_free(&read);
    return good;
}

/* One run, of which that many requests succeed before one fails, or all. Returns whether some did. */
static bool starve(long after, bool for_good)
{
    const long live = allocator.live;
    fail_malloc(after, for_good);
    const bool good = read_and_encode(), failed = allocator.failed > 0;
    fail_malloc(-1, false);
    cr_expect(allocator.live == live, "%ld blocks leak after %ld requests", allocator.live - live, after);
    cr_expect(good == !rapt_error(), "after %ld requests: %s", after, rapt_error() ? rapt_error() : "no error");
    rapt_clear_error();
    return failed;
}

Test(without_memory, is_an_error)
{
    make_folder(trial_folder);
    cr_expect_not(byte_pairs_read(&pairs, "nowhere")); /* what the C library allocates for its first error */
    rapt_clear_error();
    for (int for_good = 0; for_good < 2; for_good++) {
        long after = 0;
        while (after < 1000 && starve(after, for_good)) after++;
        cr_expect(after > 10 && after < 1000, "%ld requests fail", after);
    }
    remove_folder(trial_folder);
}
