/* The header of an npy file, {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }: read strictly, and written.
 */
#include <stdio.h>
#include <string.h>

#include "byte_order.h"
#include "npy.h"
#include "tensor/core.h"

/* The text that is being read; after an error nothing more is. */
typedef struct cursor {
    const rapt_npy_source *source;
    const char *begin, *next, *end;
    bool failed;
} cursor;

static bool fail(cursor *c, const char *expected)
{
    if (c->failed) return false;
    c->failed = true;
    return rapt_fail(RAPT_ERROR_FORMAT, c->source->reading->op, "%s: byte %lld of the npy header: %s expected",
                     c->source->where, (long long)(c->next - c->begin), expected);
}

static void skip_space(cursor *c)
{
    while (c->next < c->end && (*c->next == ' ' || *c->next == '\t' || *c->next == '\n')) c->next++;
}

/* Takes the mark if it is what comes next. */
static bool take(cursor *c, char mark)
{
    skip_space(c);
    if (c->failed || c->next == c->end || *c->next != mark) return false;
    c->next++;
    return true;
}

static bool take_word(cursor *c, const char *word)
{
    const size_t size = strlen(word);
    skip_space(c);
    if (c->failed || (size_t)(c->end - c->next) < size || memcmp(c->next, word, size) != 0) return false;
    c->next += size;
    return true;
}

/* A short string without escapes. */
static bool take_string(cursor *c, char text[16])
{
    skip_space(c);
    const char quote = c->next < c->end ? *c->next : 0;
    if (quote != '\'' && quote != '"') return fail(c, "a string");
    size_t size = 0;
    for (c->next++; c->next < c->end && *c->next != quote; c->next++) {
        if (size == 15 || *c->next == '\\') return fail(c, "one of numpy's names");
        text[size++] = *c->next;
    }
    text[size] = '\0';
    return take(c, quote) || fail(c, "the end of a string");
}

static bool take_size(cursor *c, int64_t *size)
{
    skip_space(c);
    const char *first = c->next;
    *size = 0;
    for (; c->next < c->end && *c->next >= '0' && *c->next <= '9'; c->next++)
        if (__builtin_mul_overflow(*size, (int64_t)10, size) ||
            __builtin_add_overflow(*size, (int64_t)(*c->next - '0'), size))
            return fail(c, "a size below 2^63");
    return c->next > first || fail(c, "a size");
}

static bool parse_dtype(cursor *c, rapt_npy_header *header)
{
    static const struct {
        char name[3];
        rapt_dtype dtype;
    } types[] = {{"f4", RAPT_FLOAT32}, {"f8", RAPT_FLOAT64}, {"i8", RAPT_INT64},
                 {"i4", RAPT_INT32},   {"u1", RAPT_UINT8},   {"b1", RAPT_BOOL}};
    char text[16];
    skip_space(c);
    if (c->next < c->end && *c->next == '[')
        return rapt_fail(RAPT_ERROR_DTYPE, c->source->reading->op, "%s: the elements are records; numbers expected",
                         c->source->where);
    if (!take_string(c, text)) return false;
    const bool names_order = text[0] && strchr("<>=|", text[0]);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (!names_order || strcmp(text + 1, types[i].name) != 0) continue;
        header->dtype = types[i].dtype;
        const bool has_order = rapt_element_bytes[header->dtype] > 1;
        if (has_order && text[0] == '|') break;
        header->is_swapped = has_order && text[0] == (RAPT_IS_LITTLE_ENDIAN ? '>' : '<');
        return true;
    }
    return rapt_fail(RAPT_ERROR_DTYPE, c->source->reading->op,
                     "%s: elements of numpy's type '%s'; f4, f8, i8, i4, u1 or b1 expected (convert with astype)",
                     c->source->where, text);
}

static bool parse_shape(cursor *c, rapt_npy_header *header)
{
    if (!take(c, '(')) return fail(c, "a shape in parentheses");
    bool comma = true; /* one size needs one behind it: (3) is a number */
    for (header->rank = 0; !take(c, ')'); header->rank++) {
        if (!comma) return fail(c, "',' or ')'");
        if (header->rank == RAPT_MAX_RANK)
            return rapt_fail(RAPT_ERROR_SHAPE, c->source->reading->op, "%s: more than %d axes", c->source->where,
                             RAPT_MAX_RANK);
        if (!take_size(c, &header->shape[header->rank])) return false;
        comma = take(c, ',');
    }
    return header->rank != 1 || comma || fail(c, "',' behind the only size");
}

bool rapt_npy_header_parse(const rapt_npy_source *source, const char *text, size_t size, rapt_npy_header *header)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    cursor c = {.source = source, .begin = text, .next = text, .end = text + size};
    int seen = 0;
    if (!take(&c, '{')) return fail(&c, "'{'");
    bool comma = true;
    while (!take(&c, '}')) {
        char name[16];
        int key = 0;
        if (!comma) return fail(&c, "',' or '}'");
        if (!take_string(&c, name)) return false;
        while (key < 3 && strcmp(name, keys[key]) != 0) key++;
        if (key == 3 || seen >> key & 1) return fail(&c, "each of descr, fortran_order and shape once");
        seen |= 1 << key;
        if (!take(&c, ':')) return fail(&c, "':'");
        if (key == 0 && !parse_dtype(&c, header)) return false;
        if (key == 1) {
            header->is_fortran = take_word(&c, "True");
            if (!header->is_fortran && !take_word(&c, "False")) return fail(&c, "True or False");
        }
        if (key == 2 && !parse_shape(&c, header)) return false;
        comma = take(&c, ',');
    }
    skip_space(&c);
    if (seen != 7) return fail(&c, "each of descr, fortran_order and shape once");
    return c.next == c.end || fail(&c, "nothing more");
}

size_t rapt_npy_prefix(const rapt_tensor *tensor, char prefix[RAPT_NPY_PREFIX])
{
    enum { before = 10, line = 64 };
    static const char types[RAPT_DTYPE_COUNT][3] = {"f4", "f8", "i8", "i4", "u1", "b1"};
    const char order = rapt_element_bytes[tensor->dtype] == 1 ? '|' : '<';
    char *text = prefix + before;
    int used = snprintf(text, RAPT_NPY_PREFIX - before, "{'descr': '%c%s', 'fortran_order': False, 'shape': (", order,
                        types[tensor->dtype]);
    for (int axis = 0; axis < tensor->rank; axis++)
        used += snprintf(text + used, (size_t)(RAPT_NPY_PREFIX - before - used), "%s%lld%s", axis ? " " : "",
                         (long long)tensor->shape[axis], axis + 1 < tensor->rank || axis == 0 ? "," : "");
    used += snprintf(text + used, (size_t)(RAPT_NPY_PREFIX - before - used), "), }");
    while ((before + used + 1) % line != 0) text[used++] = ' ';
    text[used++] = '\n';
    memcpy(prefix, "\x93NUMPY\x01", 8);
    prefix[8] = (char)(used & 255);
    prefix[9] = (char)(used >> 8);
    return (size_t)(before + used);
}
