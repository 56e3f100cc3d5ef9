/* Characters of UTF-8 from bytes that come in parts. */
#include "characters.h"

#include <stdbool.h>

static void write_waiting(struct characters *out)
{
    fwrite(out->waiting, 1, out->count, out->stream);
    out->count = 0;
}

/* The bytes of the character that begins so; 1 of what begins none. */
static size_t length_of(unsigned char first)
{
    return first < 0xC2 || first > 0xF4 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

void characters_put(struct characters *out, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const bool goes_on = out->count > 0 && ((unsigned char)bytes[i] & 0xC0) == 0x80;
        if (!goes_on) {
            write_waiting(out);
            out->length = length_of((unsigned char)bytes[i]);
        }
        out->waiting[out->count++] = bytes[i];
        if (out->count == out->length) write_waiting(out);
    }
    fflush(out->stream);
}

void characters_end(struct characters *out)
{
    write_waiting(out);
    fflush(out->stream);
}
