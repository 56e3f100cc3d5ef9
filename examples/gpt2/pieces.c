/* GPT-2's pattern, alternative by alternative. */
#include "pieces.h"

#include <stdbool.h>
#include <string.h>
#include <utf8proc.h>

enum kind { letter, number, space, other };

/* Of the first character, and its bytes. */
static enum kind kind_of(const char *text, size_t size, size_t *length)
{
    utf8proc_int32_t code;
    const utf8proc_ssize_t bytes = utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)size, &code);
    *length = bytes > 0 ? (size_t)bytes : 1;
    if ((code >= '\t' && code <= '\r') || code == 0x85) return space;
    switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
        return letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
        return number;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return space;
    default:
        return other;
    }
}

/* The bytes of the characters of one kind that the text begins with, and of the last of them. */
static size_t run_length(const char *text, size_t size, enum kind kind, size_t *last)
{
    size_t run = 0, length;
    for (; run < size && kind_of(text + run, size - run, &length) == kind; run += length) *last = length;
    return run;
}

/* 's|'t|'re|'ve|'m|'ll|'d; 0: none of them. */
static size_t contraction_length(const char *text, size_t size)
{
    static const char *const contractions[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
    for (size_t i = 0; i < sizeof contractions / sizeof *contractions; i++) {
        const size_t length = strlen(contractions[i]);
        if (length <= size && memcmp(text, contractions[i], length) == 0) return length;
    }
    return 0;
}

size_t piece_length(const char *text, size_t size)
{
    const size_t contraction = contraction_length(text, size);
    if (contraction > 0) return contraction;
    /* ` ?` and a run of one kind */
    const size_t before = text[0] == ' ' && size > 1 ? 1 : 0;
    size_t last;
    const enum kind kind = kind_of(text + before, size - before, &last);
    if (kind != space) return before + run_length(text + before, size - before, kind, &last);
    /* \s+(?!\S): all of the run at the end, else all but its last; \s+: where that is none, the one */
    const size_t run = run_length(text, size, space, &last);
    return run < size && run > last ? run - last : run;
}
