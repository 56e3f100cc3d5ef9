/* Preprocessing of sentences and walking over their tokens. */
#include "text.h"

#include <utf8proc.h>

bool text_is_utf8(const char *text, size_t length, size_t *bad_byte)
{
    for (size_t at = 0; at < length;) {
        if ((unsigned char)text[at] < 0x80) { /* most bytes of a file */
            at++;
            continue;
        }
        utf8proc_int32_t code_point;
        utf8proc_ssize_t size =
            utf8proc_iterate((const utf8proc_uint8_t *)text + at, (utf8proc_ssize_t)(length - at), &code_point);
        if (size < 1) {
            *bad_byte = at;
            return false;
        }
        at += (size_t)size;
    }
    return true;
}

static bool is_mark(utf8proc_int32_t code_point)
{
    return code_point == ',' || code_point == '.' || code_point == '!' || code_point == '?';
}

static bool is_space(utf8proc_int32_t code_point)
{
    return code_point == ' ' || code_point == 0xA0 || code_point == 0x202F;
}

size_t text_preprocess(const char *text, size_t length, char *out)
{
    size_t num_tokens = 0;
    char *end = out;
    bool starts_token = true;
    for (size_t at = 0; at < length;) {
        utf8proc_int32_t code_point;
        utf8proc_ssize_t size =
            utf8proc_iterate((const utf8proc_uint8_t *)text + at, (utf8proc_ssize_t)(length - at), &code_point);
        if (size < 1) break;
        at += (size_t)size;
        if (is_space(code_point)) {
            starts_token = true;
            continue;
        }
        if (starts_token || is_mark(code_point)) {
            if (num_tokens > 0) *end++ = ' ';
            num_tokens++;
        }
        starts_token = false;
        end += utf8proc_encode_char(utf8proc_tolower(code_point), (utf8proc_uint8_t *)end);
    }
    *end = '\0';
    return num_tokens;
}

size_t text_count_tokens(const char *text)
{
    size_t count = 0, length;
    while (text_next_token(&text, &length) != NULL) count++;
    return count;
}

const char *text_next_token(const char **cursor, size_t *length)
{
    const char *token = *cursor;
    if (*token == '\0') return NULL;
    const char *end = token;
    while (*end != ' ' && *end != '\0') end++;
    *length = (size_t)(end - token);
    *cursor = *end == ' ' ? end + 1 : end;
    return token;
}
