/* Bytes that are UTF-8, and those that are not. */
#include "tensor/utf8.h"

#include <string.h>

size_t rapt_utf8_length(const char *text, size_t size)
{
    const unsigned char *byte = (const unsigned char *)text;
    if (size == 0) return 0;
    if (byte[0] < 0x80) return 1;
    const size_t length = byte[0] < 0xe0 ? 2 : byte[0] < 0xf0 ? 3 : 4;
    if (byte[0] < 0xc2 || byte[0] > 0xf4 || size < length) return 0;
    for (size_t i = 1; i < length; i++)
        if ((byte[i] & 0xc0) != 0x80) return 0;
    /* overlong forms, surrogates, beyond U+10FFFF */
    const bool bad = (byte[0] == 0xe0 && byte[1] < 0xa0) || (byte[0] == 0xed && byte[1] > 0x9f) ||
                     (byte[0] == 0xf0 && byte[1] < 0x90) || (byte[0] == 0xf4 && byte[1] > 0x8f);
    return bad ? 0 : length;
}

size_t rapt_control_length(const char *text)
{
    const unsigned char first = (unsigned char)text[0];
    if (first == '\0') return 0;
    if (first < ' ' || first == 0x7f) return 1;
    return first == 0xc2 && (unsigned char)text[1] >= 0x80 && (unsigned char)text[1] < 0xa0 ? 2 : 0;
}

bool rapt_is_utf8(const char *text)
{
    for (size_t size = strlen(text), length; size > 0; text += length, size -= length)
        if ((length = rapt_utf8_length(text, size)) == 0) return false;
    return true;
}
