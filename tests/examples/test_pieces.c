/* Tests of examples/gpt2: how a text is cut before its bytes are merged, and how bytes become characters again. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "characters.h"
#include "pieces.h"

static void expect_pieces(const char *const *pieces)
{
    char text[256] = "";
    for (int i = 0; pieces[i]; i++) strcat(text, pieces[i]);
    size_t at = 0;
    for (int i = 0; pieces[i]; i++) {
        const size_t length = piece_length(text + at, strlen(text) - at);
        cr_expect(length == strlen(pieces[i]) && memcmp(text + at, pieces[i], length) == 0,
                  "piece %d of '%s' is '%.*s', not '%s'", i, text, (int)length, text + at, pieces[i]);
        at += length;
    }
}

#define PIECES(...) expect_pieces((const char *const[]){__VA_ARGS__, NULL})

Test(pieces, of_words_numbers_and_marks)
{
    PIECES("Hello", ",", " my", " dog", " is", " cute");
    PIECES("I", "'ll", " say", ":", " it", "'s", " 10", " o", "'", "clock", "?!");
    PIECES("you", "'re", " they", "'ve", " I", "'m", " he", "'d", " don", "'t");
    PIECES("IT", "'", "S"); /* capital letters are no contraction */
    PIECES("x", "86", "_", "64", "++;");
    PIECES(" '", "s"); /* a mark takes the space before it, and is then no contraction */
    PIECES("?'", "s");
    PIECES("'s", "'", "x");
    PIECES("a", "'");
    PIECES("'");
}

Test(pieces, of_spaces)
{
    PIECES("a", "  ", " b"); /* the last space is the next word's */
    PIECES("a", " \n", "\n", "b");
    PIECES("a", "\n", "b");
    PIECES("a", "\t", "\t", "b");
    PIECES("a", "\n\n", " b");
    PIECES("a", "  ");
    PIECES("a", " ");
    PIECES(" ");
    PIECES(" ", " a");
    PIECES("a", "\u00A0", "!", "\u3000", "?");             /* no-break space, ideographic space */
    PIECES("\xC2\x85", "!", "\u2028", "!", "\u1680", "!"); /* next line, line separator, Ogham space mark */
    PIECES("\t", "!", "\v", "!", "\f", "!", "\r", "!");
    PIECES("a", "\u200B!", "b", "\x1C!", "c"); /* zero width space and file separator are no White_Space */
}

Test(pieces, of_other_scripts)
{
    PIECES("été", " naïve");
    PIECES("e", "\u0301", "t"); /* a combining accent is no letter */
    PIECES("你好", "，", "世界");
    PIECES("٣٤", " ⅷ", " ½²");
    PIECES("Привет", " мир");
    PIECES("hi", " 👋🏽", "x", "🙂🙂");
}

/* --- characters --- */

/* What the stream has got after each of these bytes. */
static void expect_written(const char *bytes, size_t count, const size_t *written)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    struct characters out = {.stream = stream};
    for (size_t i = 0; i < count; i++) {
        characters_put(&out, bytes + i, 1);
        cr_expect_eq(size, written[i], "%zu bytes are written after %zu, not %zu", size, i + 1, written[i]);
    }
    characters_end(&out);
    cr_expect_eq(size, count);
    cr_expect_arr_eq(text, bytes, count);
    fclose(stream);
    free(text);
}

Test(characters, wait_until_they_are_whole)
{
    expect_written("aé€🙂b", 11, (size_t[]){1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11});
    expect_written("\xE2\x82", 2, (size_t[]){0, 0});
}

Test(characters, that_are_no_utf8_go_out)
{
    expect_written("\x80\xFF\xC3", 3, (size_t[]){1, 2, 2});
    expect_written("\xE2\x82z", 3, (size_t[]){0, 0, 3});
    expect_written("\xF0\x9F\xC3\xA9", 4, (size_t[]){0, 0, 2, 4});
}
