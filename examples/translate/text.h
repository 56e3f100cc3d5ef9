/* Text as the translator sees it: checked UTF-8, lower case, punctuation set apart, tokens between single spaces. */
#ifndef TRANSLATE_TEXT_H
#define TRANSLATE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Strict UTF-8 (no surrogates, no overlong forms, nothing above U+10FFFF): true, or false with *bad_byte, the offset
   of the first sequence that is none. */
bool text_is_utf8(const char *text, size_t length, size_t *bad_byte);

/* Writes the tokens of valid UTF-8 text into out, joined by single spaces and closed by a NUL; returns how many.
   Dive into Deep Learning, 10.5: U+00A0 and U+202F become spaces, each code point its lower case, and a mark out of
   , . ! ? gets a space before it; what stands between spaces is a token. out holds TEXT_ROOM(length) bytes. */
size_t text_preprocess(const char *text, size_t length, char *out);

/* A mark grows from one byte to two, and no code point's lower case is longer than twice the code point. */
#define TEXT_ROOM(length) (2 * (size_t)(length) + 1)

/* Number of tokens of a preprocessed text. */
size_t text_count_tokens(const char *text);

/* The token at *cursor of a preprocessed text and its length; moves *cursor to the next one. NULL at the end. */
const char *text_next_token(const char **cursor, size_t *length);

#endif
