/* Writing JSON piece by piece. */
#include "json_write.h"

#include <stdio.h>
#include <string.h>

bool rapt_json_flush(rapt_json_sink *s)
{
    s->failed = s->failed || (s->file && !rapt_replacement_write(s->file, s->buffer, s->waiting));
    s->waiting = 0;
    return !s->failed;
}

void rapt_json_put(rapt_json_sink *s, const char *text, size_t size)
{
    s->size += size;
    while (s->file && size > 0) {
        if (s->waiting == sizeof s->buffer) rapt_json_flush(s);
        const size_t room = sizeof s->buffer - s->waiting, piece = size < room ? size : room;
        memcpy(s->buffer + s->waiting, text, piece);
        s->waiting += piece;
        text += piece;
        size -= piece;
    }
}

void rapt_json_put_text(rapt_json_sink *s, const char *text)
{
    rapt_json_put(s, text, strlen(text));
}

void rapt_json_put_number(rapt_json_sink *s, int64_t number)
{
    char digits[24];
    rapt_json_put(s, digits, (size_t)snprintf(digits, sizeof digits, "%lld", (long long)number));
}

void rapt_json_put_string(rapt_json_sink *s, const char *text)
{
    static const char special[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
    rapt_json_put(s, "\"", 1);
    for (; *text; text++) {
        const char *found = strchr(special, *text);
        char escape[8];
        if (found)
            rapt_json_put(s, escape, (size_t)snprintf(escape, sizeof escape, "\\%c", names[found - special]));
        else if ((unsigned char)*text < 0x20)
            rapt_json_put(s, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", (unsigned char)*text));
        else
            rapt_json_put(s, text, 1);
    }
    rapt_json_put(s, "\"", 1);
}
