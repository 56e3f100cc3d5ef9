/* The header of a safetensors file, which is untrusted: every name, type, shape and offset is checked. It is read by
 * the grammar that the format allows, and in no other way: an object of objects of a string and two arrays of
 * counts. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "safetensors.h"
#include "tensor/archive.h"
#include "tensor/core.h"

#define OP "load_safetensors"

typedef struct parser {
    const char *path;
    rapt_json json;
    int64_t data_size;
    rapt_archive *archive;
    rapt_stored_header *header;
} parser;

static bool fail(const parser *p, rapt_error_code code, const char *format, ...)
    __attribute__((format(RAPT_PRINTF, 3, 4)));

/* "'path': byte 17 of the JSON header: what is wrong" */
static bool fail(const parser *p, rapt_error_code code, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return rapt_fail(code, OP, "'%.150s': byte %lld of the JSON header: %s", p->path,
                     (long long)(p->json.next - p->json.begin), text);
}

/* True unless the text is no JSON. */
static bool check_syntax(const parser *p)
{
    return !p->json.error || fail(p, RAPT_ERROR_FORMAT, "%s", p->json.error);
}

static bool fail_memory(const parser *p)
{
    return rapt_fail(RAPT_ERROR_MEMORY, OP, "'%.200s': no memory for its header", p->path);
}

static bool add_text(const parser *p, const char *key, const char *text)
{
    char *copy = strdup(text);
    if (copy && rapt_names_add(&p->archive->texts, key, copy)) return true;
    free(copy);
    return fail_memory(p);
}

static bool parse_metadata(parser *p)
{
    if (!rapt_json_take(&p->json, '{'))
        return fail(p, RAPT_ERROR_FORMAT, RAPT_METADATA_KEY " is not an object of texts");
    for (bool first = true; rapt_json_more(&p->json, '}', &first);) {
        const char *key = rapt_json_key(&p->json);
        if (!key) break;
        if (rapt_names_find(&p->archive->texts, key))
            return fail(p, RAPT_ERROR_FORMAT, "duplicate metadata '%.100s'", key);
        const char *text = rapt_json_string(&p->json);
        if (!text) return fail(p, RAPT_ERROR_FORMAT, "the metadata '%.100s' is not a text: %s", key, p->json.error);
        if (!add_text(p, key, text)) return false;
    }
    return check_syntax(p);
}

static bool parse_type(parser *p, rapt_stored_tensor *tensor)
{
    const char *name = rapt_json_string(&p->json);
    if (!name) return fail(p, RAPT_ERROR_FORMAT, "tensor '%.100s' has no dtype: %s", tensor->name, p->json.error);
    tensor->type = rapt_stored_type_find(name);
    return tensor->type ||
           fail(p, RAPT_ERROR_UNSUPPORTED,
                "tensor '%.100s' has dtype %.20s; F64, F32, F16, BF16, I64, I32, U8 and BOOL can be read", tensor->name,
                name);
}

static bool parse_shape(parser *p, rapt_stored_tensor *tensor)
{
    int64_t rank = 0, size;
    if (!rapt_json_take(&p->json, '[')) return fail(p, RAPT_ERROR_FORMAT, "tensor '%.100s' has no shape", tensor->name);
    for (bool first = true; rapt_json_more(&p->json, ']', &first); rank++) {
        if (!rapt_json_count(&p->json, &size))
            return fail(p, RAPT_ERROR_FORMAT, "size %lld in the shape of tensor '%.100s' is not a count",
                        (long long)rank, tensor->name);
        if (rank < RAPT_MAX_RANK) tensor->shape[rank] = size;
    }
    tensor->rank = (int)rank;
    return check_syntax(p) && (rank <= RAPT_MAX_RANK ||
                               fail(p, RAPT_ERROR_UNSUPPORTED, "tensor '%.100s' has rank %lld; at most %d can be read",
                                    tensor->name, (long long)rank, RAPT_MAX_RANK));
}

static bool parse_offsets(parser *p, rapt_stored_tensor *tensor)
{
    rapt_json *json = &p->json;
    if (rapt_json_take(json, '[') && rapt_json_count(json, &tensor->begin) && rapt_json_take(json, ',') &&
        rapt_json_count(json, &tensor->end) && rapt_json_take(json, ']') && tensor->begin <= tensor->end)
        return true;
    return fail(p, RAPT_ERROR_FORMAT, "the data_offsets of tensor '%.100s' are not a begin and an end", tensor->name);
}

/* Does the shape need the bytes that the offsets give it? */
static bool check_size(const parser *p, const rapt_stored_tensor *tensor)
{
    bool overflow = false, empty = false;
    int64_t bytes = (int64_t)tensor->type->size, stored = tensor->end - tensor->begin;
    for (int axis = 0; axis < tensor->rank; axis++) {
        const int64_t size = tensor->shape[axis];
        empty |= size == 0;
        overflow |= __builtin_mul_overflow(bytes, size ? size : 1, &bytes);
    }
    if (overflow)
        return fail(p, RAPT_ERROR_FORMAT, "the shape of tensor '%.100s' has more bytes than 64 bits can count",
                    tensor->name);
    if (empty) bytes = 0;
    if (stored != bytes)
        return fail(p, RAPT_ERROR_FORMAT, "tensor '%.100s' has %lld bytes where its shape needs %lld", tensor->name,
                    (long long)stored, (long long)bytes);
    return tensor->end <= p->data_size ||
           fail(p, RAPT_ERROR_FORMAT,
                "the file is cut short: tensor '%.100s' ends at byte %lld of the data, of which there are %lld",
                tensor->name, (long long)tensor->end, (long long)p->data_size);
}

static const struct {
    const char *key;
    bool (*parse)(parser *p, rapt_stored_tensor *tensor);
} parts[] = {{"dtype", parse_type}, {"shape", parse_shape}, {"data_offsets", parse_offsets}};

enum { part_count = sizeof parts / sizeof *parts };

static bool fail_parts(const parser *p, const rapt_stored_tensor *tensor, const char *why, const char *key)
{
    return fail(p, RAPT_ERROR_FORMAT,
                "tensor '%.80s' is not an object of dtype, shape and data_offsets, and nothing else%s%.20s",
                tensor->name, why, key);
}

static bool parse_tensor(parser *p, rapt_stored_tensor *tensor)
{
    bool has[part_count] = {false};
    if (!rapt_json_take(&p->json, '{')) return fail_parts(p, tensor, "", "");
    for (bool first = true; rapt_json_more(&p->json, '}', &first);) {
        const char *key = rapt_json_key(&p->json);
        if (!key) break;
        int part = 0;
        while (part < part_count && strcmp(parts[part].key, key) != 0) part++;
        if (part == part_count) return fail_parts(p, tensor, ": it has ", key);
        if (has[part]) return fail_parts(p, tensor, ": duplicate ", key);
        has[part] = true;
        if (!parts[part].parse(p, tensor)) return false;
    }
    if (!check_syntax(p)) return false;
    for (int part = 0; part < part_count; part++)
        if (!has[part]) return fail_parts(p, tensor, ": it has no ", parts[part].key);
    return check_size(p, tensor);
}

/* The place for one more tensor; NULL and an error without memory. */
static rapt_stored_tensor *next_place(const parser *p)
{
    rapt_stored_header *header = p->header;
    if (header->count == header->capacity) {
        const int64_t capacity = header->capacity ? header->capacity * 2 : 16;
        rapt_stored_tensor *grown = realloc(header->tensors, (size_t)capacity * sizeof *grown);
        if (!grown) return fail_memory(p), NULL;
        header->tensors = grown;
        header->capacity = capacity;
    }
    return &header->tensors[header->count];
}

static bool parse_entries(parser *p)
{
    bool has_metadata = false;
    rapt_json_take(&p->json, '{');
    for (bool first = true; rapt_json_more(&p->json, '}', &first);) {
        const char *key = rapt_json_key(&p->json);
        if (!key) break;
        if (strcmp(key, RAPT_METADATA_KEY) == 0) {
            if (has_metadata) return fail(p, RAPT_ERROR_FORMAT, "duplicate " RAPT_METADATA_KEY);
            has_metadata = true;
            if (!parse_metadata(p)) return false;
            continue;
        }
        rapt_stored_tensor *tensor = next_place(p);
        if (!tensor) return false;
        *tensor = (rapt_stored_tensor){.name = key, .position = p->header->count};
        if (!parse_tensor(p, tensor)) return false;
        p->header->count++;
    }
    return rapt_json_end(&p->json) || check_syntax(p);
}

static int compare_names(const void *a, const void *b)
{
    const rapt_stored_tensor *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* By begin, then end (an empty tensor comes before the one that begins at the same byte), then position. */
static int compare_places(const void *a, const void *b)
{
    const rapt_stored_tensor *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return x->position < y->position ? -1 : 1;
}

static void sort(rapt_stored_header *header, int (*compare)(const void *a, const void *b))
{
    if (header->count > 0) qsort(header->tensors, (size_t)header->count, sizeof *header->tensors, compare);
}

static bool check_names(const parser *p)
{
    sort(p->header, compare_names);
    for (int64_t i = 1; i < p->header->count; i++)
        if (strcmp(p->header->tensors[i].name, p->header->tensors[i - 1].name) == 0)
            return rapt_fail(RAPT_ERROR_FORMAT, OP, "'%.150s': duplicate tensor '%.100s'", p->path,
                             p->header->tensors[i].name);
    return true;
}

/* Each byte of the data belongs to one tensor. */
static bool check_coverage(const parser *p)
{
    int64_t covered = 0;
    sort(p->header, compare_places);
    for (int64_t i = 0; i < p->header->count; i++) {
        const rapt_stored_tensor *tensor = &p->header->tensors[i];
        if (tensor->begin < covered)
            return rapt_fail(RAPT_ERROR_FORMAT, OP, "'%.150s': tensors '%.100s' and '%.100s' overlap", p->path,
                             tensor[-1].name, tensor->name);
        if (tensor->begin > covered)
            return rapt_fail(RAPT_ERROR_FORMAT, OP,
                             "'%.150s': the %lld bytes of data before tensor '%.100s' belong to none", p->path,
                             (long long)(tensor->begin - covered), tensor->name);
        covered = tensor->end;
    }
    return covered == p->data_size ||
           rapt_fail(RAPT_ERROR_FORMAT, OP, "'%.200s': %lld bytes of data where the tensors have %lld", p->path,
                     (long long)p->data_size, (long long)covered);
}

bool rapt_stored_header_parse(const char *path, char *text, size_t size, int64_t data_size, rapt_archive *archive,
                              rapt_stored_header *header)
{
    *header = (rapt_stored_header){0};
    parser p = {.path = path,
                .json = {.begin = text, .next = text, .end = text + size},
                .data_size = data_size,
                .archive = archive,
                .header = header};
    if (size == 0 || text[0] != '{')
        return rapt_fail(RAPT_ERROR_FORMAT, OP, "'%.200s': the header does not begin with '{'; is this safetensors?",
                         path);
    return parse_entries(&p) && check_names(&p) && check_coverage(&p);
}

void rapt_stored_header_free(rapt_stored_header *header)
{
    free(header->tensors);
    *header = (rapt_stored_header){0};
}
