/* Tokens of JSON. Whoever reads says what may come next, so there is nothing that nests or grows here. */
#include "json.h"

#include <stdint.h>
#include <string.h>

#include "tensor/utf8.h"

static bool fail(rapt_json *json, const char *error)
{
    if (!json->error) json->error = error;
    return false;
}

static void skip_space(rapt_json *json)
{
    while (!json->error && json->next < json->end && memchr(" \t\n\r", *json->next, 4)) json->next++;
}

bool rapt_json_take(rapt_json *json, char mark)
{
    skip_space(json);
    if (json->error || json->next == json->end || *json->next != mark) return false;
    json->next++;
    return true;
}

bool rapt_json_more(rapt_json *json, char close, bool *first)
{
    const bool is_first = *first;
    *first = false;
    if (rapt_json_take(json, close)) return false;
    if (is_first || rapt_json_take(json, ',')) return !json->error;
    return fail(json, close == ']' ? "',' or ']' expected" : "',' or '}' expected");
}

bool rapt_json_end(rapt_json *json)
{
    skip_space(json);
    return !json->error && (json->next == json->end || fail(json, "the end expected"));
}

bool rapt_json_count(rapt_json *json, int64_t *count)
{
    skip_space(json);
    if (json->error) return false;
    char *at = json->next;
    int64_t number = 0;
    bool overflow = false;
    for (; at < json->end && *at >= '0' && *at <= '9'; at++)
        overflow |= __builtin_mul_overflow(number, 10, &number) || __builtin_add_overflow(number, *at - '0', &number);
    const bool none = at == json->next, leading_zero = !none && *json->next == '0' && at > json->next + 1;
    const bool goes_on = at < json->end && memchr(".eE", *at, 3);
    if (none || leading_zero || goes_on || overflow) return false;
    json->next = at;
    *count = number;
    return true;
}

/* Four hexadecimal digits; −1 for anything else. */
static int32_t hexadecimal(const rapt_json *json, const char *at)
{
    int32_t code = 0;
    if (json->end - at < 4) return -1;
    for (int i = 0; i < 4; i++) {
        const char digit = at[i];
        const int value = digit >= '0' && digit <= '9'   ? digit - '0'
                          : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                          : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
                                                         : -1;
        if (value < 0) return -1;
        code = code << 4 | value;
    }
    return code;
}

static char *put_code(char *out, int32_t code)
{
    if (code < 0x80) {
        *out++ = (char)code;
        return out;
    }
    const int following = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    const int32_t marks[] = {0, 0xc0, 0xe0, 0xf0};
    *out++ = (char)(marks[following] | code >> 6 * following);
    for (int i = following - 1; i >= 0; i--) *out++ = (char)(0x80 | (code >> 6 * i & 0x3f));
    return out;
}

/* \uXXXX, or two of them that are a surrogate pair, with next at the first X. */
static char *take_code(rapt_json *json, char *out)
{
    int32_t code = hexadecimal(json, json->next);
    if (code <= 0) return fail(json, code < 0 ? "four hexadecimal digits expected" : "a NUL in a string"), NULL;
    json->next += 4;
    if (code >= 0xd800 && code < 0xe000) {
        const bool paired = code < 0xdc00 && json->end - json->next >= 2 && memcmp(json->next, "\\u", 2) == 0;
        const int32_t low = paired ? hexadecimal(json, json->next + 2) : -1;
        if (low < 0xdc00 || low >= 0xe000) return fail(json, "half of a surrogate pair"), NULL;
        json->next += 6;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    return put_code(out, code);
}

/* What follows a backslash. Decoded, it is never longer than it was. */
static char *take_escape(rapt_json *json, char *out)
{
    static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char name = json->next < json->end ? *json->next : '\0';
    const char *found = name ? strchr(names, name) : NULL;
    if (!found && name != 'u') return fail(json, "no escape of JSON"), NULL;
    json->next++;
    if (name == 'u') return take_code(json, out);
    *out++ = meanings[found - names];
    return out;
}

char *rapt_json_string(rapt_json *json)
{
    if (!rapt_json_take(json, '"')) return fail(json, "a string expected"), NULL;
    char *const text = json->next, *out = text;
    while (json->next < json->end && *json->next != '"') {
        if (*json->next == '\\') {
            json->next++;
            out = take_escape(json, out);
            if (!out) return NULL;
            continue;
        }
        const size_t length = rapt_utf8_length(json->next, (size_t)(json->end - json->next));
        if (length == 0) return fail(json, "no UTF-8"), NULL;
        if ((unsigned char)*json->next < 0x20) return fail(json, "a control character in a string"), NULL;
        memmove(out, json->next, length);
        out += length;
        json->next += length;
    }
    if (json->next == json->end) return fail(json, "a string without an end"), NULL;
    json->next++;
    *out = '\0';
    return text;
}

char *rapt_json_key(rapt_json *json)
{
    char *key = rapt_json_string(json);
    if (key && !rapt_json_take(json, ':')) fail(json, "':' expected");
    return json->error ? NULL : key;
}

static bool take_digits(rapt_json *json)
{
    const char *first = json->next;
    while (json->next < json->end && *json->next >= '0' && *json->next <= '9') json->next++;
    return json->next > first;
}

/* Of the characters the one that comes next. */
static bool take_one_of(rapt_json *json, const char *marks)
{
    const bool found = json->next < json->end && *json->next && strchr(marks, *json->next);
    json->next += found;
    return found;
}

static bool skip_number(rapt_json *json)
{
    take_one_of(json, "-");
    if (!take_one_of(json, "0") && !take_digits(json)) return false;
    if (take_one_of(json, ".") && !take_digits(json)) return false;
    if (!take_one_of(json, "eE")) return true;
    take_one_of(json, "+-");
    return take_digits(json);
}

/* A text, a number or a word. */
static bool skip_plain(rapt_json *json)
{
    static const char *const words[] = {"null", "true", "false"};
    skip_space(json);
    if (json->next < json->end && *json->next == '"') return rapt_json_string(json);
    for (int i = 0; i < 3; i++) {
        const size_t length = strlen(words[i]);
        if ((size_t)(json->end - json->next) < length || memcmp(json->next, words[i], length) != 0) continue;
        json->next += length;
        return true;
    }
    return skip_number(json) || fail(json, "a value expected");
}

bool rapt_json_skip(rapt_json *json)
{
    uint64_t objects = 0; /* a bit for each level, the innermost lowest: is it an object? */
    bool first = false;
    int levels = 0;
    do {
        const bool is_object = rapt_json_take(json, '{');
        if (is_object || rapt_json_take(json, '[')) {
            if (++levels > 64) return fail(json, "at most 64 levels expected");
            objects = objects << 1 | is_object;
            first = true;
        } else if (!skip_plain(json)) {
            return false;
        }
        for (; levels > 0 && !rapt_json_more(json, objects & 1 ? '}' : ']', &first); levels--) {
            if (json->error) return false;
            objects >>= 1;
        }
        if (levels > 0 && objects & 1 && !rapt_json_key(json)) return false;
    } while (levels > 0);
    return true;
}
