/* Tests of examples/translate/text.c: preprocessing of sentences. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "text.h"

static void expect_preprocessed(const char *text, const char *expected)
{
    size_t length = strlen(text);
    char *out = malloc(TEXT_ROOM(length)); /* exactly the room promised, so that a sanitizer sees more */
    cr_assert_not_null(out);
    size_t num_tokens = text_preprocess(text, length, out);
    cr_expect_str_eq(out, expected);
    cr_expect_eq(num_tokens, text_count_tokens(expected), "%zu tokens in '%s'", num_tokens, expected);
    free(out);
}

Test(text, preprocesses_as_the_book)
{
    expect_preprocessed("Go.", "go .");
    expect_preprocessed("Va !", "va !");
    expect_preprocessed("I'm home.", "i'm home .");
    expect_preprocessed("Va\u202f!", "va !");
    expect_preprocessed("Va\u00a0!", "va !");
    expect_preprocessed("Ça alors\u202f!", "ça alors !");
    expect_preprocessed("À L'ÉCOLE, Œuvre ÿ", "à l'école , œuvre ÿ");
    expect_preprocessed("ÉTÉ ΑΒΓ ЖЯ", "été αβγ жя");
    expect_preprocessed("a,b", "a ,b");
    expect_preprocessed("Wait... what?!", "wait . . . what ? !");
    expect_preprocessed("!", "!");
    expect_preprocessed("?!", "? !");
    expect_preprocessed("3.5; 4:5", "3 .5; 4:5");
    expect_preprocessed("«Oui», dit-il", "«oui» , dit-il");
}

Test(text, joins_tokens_by_single_spaces)
{
    expect_preprocessed("", "");
    expect_preprocessed("   ", "");
    expect_preprocessed("\u00a0\u202f ", "");
    expect_preprocessed("  A   b  ", "a b");
    expect_preprocessed(" . ", ".");
    expect_preprocessed("a\tb\rc", "a\tb\rc");
}

Test(text, empties_and_marks_fit_the_room)
{
    char text[257], expected[512];
    for (size_t i = 0; i < 256; i++) {
        text[i] = '.';
        memcpy(expected + 2 * i, ". ", 2);
    }
    text[256] = '\0';
    expected[511] = '\0';
    expect_preprocessed(text, expected);
}

Test(text, lower_case_of_every_code_point_fits_the_room)
{
    for (utf8proc_int32_t code_point = 1; code_point < 0x110000; code_point++) {
        if (code_point >= 0xD800 && code_point < 0xE000) continue;
        char text[5] = {0}, out[TEXT_ROOM(4)];
        utf8proc_ssize_t length = utf8proc_encode_char(code_point, (utf8proc_uint8_t *)text);
        text_preprocess(text, (size_t)length, out);
        cr_assert_leq(strlen(out), (size_t)(2 * length), "U+%04X", (unsigned)code_point);
    }
}

static void expect_bad_byte(const char *text, size_t expected)
{
    size_t bad_byte = 999;
    cr_expect(!text_is_utf8(text, strlen(text), &bad_byte), "'%s' was taken for UTF-8", text);
    cr_expect_eq(bad_byte, expected, "byte %zu, not %zu", bad_byte, expected);
}

Test(text, accepts_utf8)
{
    size_t bad_byte;
    const char *good[] = {"", "plain", "é\u202f\u20ac", "\xF0\x9F\x98\x80", "\xF4\x8F\xBF\xBF", "\xED\x9F\xBF"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        cr_expect(text_is_utf8(good[i], strlen(good[i]), &bad_byte), "string %zu", i);
}

Test(text, names_the_first_bad_byte)
{
    expect_bad_byte("caf\xE9", 3);           /* Latin-1 */
    expect_bad_byte("caf\xE9 noir", 3);      /* Latin-1 */
    expect_bad_byte("\x80", 0);              /* a continuation alone */
    expect_bad_byte("ab\xC3", 2);            /* cut off */
    expect_bad_byte("é\xE2\x82", 2);         /* cut off */
    expect_bad_byte("a\xC0\x80", 1);         /* overlong NUL */
    expect_bad_byte("a\xC1\xBF", 1);         /* overlong */
    expect_bad_byte("a\xE0\x9F\xBF", 1);     /* overlong */
    expect_bad_byte("a\xF0\x8F\xBF\xBF", 1); /* overlong */
    expect_bad_byte("ab\xED\xA0\x80", 2);    /* a surrogate */
    expect_bad_byte("\xF4\x90\x80\x80", 0);  /* U+110000 */
    expect_bad_byte("\xFE\xFF", 0);          /* UTF-16's mark */
}

Test(text, walks_over_tokens)
{
    const char *cursor = "va bien !";
    size_t length;
    const char *token = text_next_token(&cursor, &length);
    cr_expect(length == 2 && strncmp(token, "va", 2) == 0);
    token = text_next_token(&cursor, &length);
    cr_expect(length == 4 && strncmp(token, "bien", 4) == 0);
    token = text_next_token(&cursor, &length);
    cr_expect(length == 1 && *token == '!');
    cr_expect_null(text_next_token(&cursor, &length));
    cr_expect_null(text_next_token(&cursor, &length));
}
