/* The header of a safetensors file, which is untrusted: every name, type, shape and offset is checked. */
#include <stdlib.h>
#include <string.h>

#include "tensor/archive.h"
#include "tensor/core.h"
#include "tensor/safetensors.h"

#define OP "load_safetensors"

static bool check_metadata(const char *path, const json_t *metadata)
{
    const char *key;
    json_t *value;
    if (!json_is_object(metadata))
        return rapt_fail(RAPT_ERROR_FORMAT, OP, "'%.200s': __metadata__ is not an object of texts", path);
    json_object_foreach((json_t *)metadata, key, value)
    {
        if (!json_is_string(value))
            return rapt_fail(RAPT_ERROR_FORMAT, OP, "'%.200s': the metadata '%.100s' is not a text", path, key);
    }
    return true;
}

/* An integer of 0 or more; anything else gives -1. */
static int64_t size_of(const json_t *value)
{
    return json_is_integer(value) ? (int64_t)json_integer_value(value) : -1;
}

static bool parse_type(const char *path, rapt_stored_tensor *tensor, const json_t *value)
{
    const char *name = json_string_value(value);
    if (!name) return rapt_fail(RAPT_ERROR_FORMAT, OP, "'%.150s': tensor '%.100s' has no dtype", path, tensor->name);
    tensor->type = rapt_stored_type_find(name);
    return tensor->type ||
           rapt_fail(RAPT_ERROR_UNSUPPORTED, OP,
                     "'%.150s': tensor '%.100s' has dtype %.20s; F64, F32, F16, BF16, I64, I32, U8 and BOOL "
                     "can be read",
                     path, tensor->name, name);
}

/* Reads the shape; *bytes is what its elements take in the file. */
static bool parse_shape(const char *path, rapt_stored_tensor *tensor, const json_t *value, int64_t *bytes)
{
    if (!json_is_array(value))
        return rapt_fail(RAPT_ERROR_FORMAT, OP, "'%.150s': tensor '%.100s' has no shape", path, tensor->name);
    const size_t rank = json_array_size(value);
    if (rank > RAPT_MAX_RANK)
        return rapt_fail(RAPT_ERROR_UNSUPPORTED, OP, "'%.150s': tensor '%.100s' has rank %zu; at most %d can be read",
                         path, tensor->name, rank, RAPT_MAX_RANK);
    tensor->rank = (int)rank;
    bool overflow = false, empty = false;
    int64_t product = (int64_t)tensor->type->size;
    for (size_t axis = 0; axis < rank; axis++) {
        const int64_t size = tensor->shape[axis] = size_of(json_array_get(value, axis));
        if (size < 0)
            return rapt_fail(RAPT_ERROR_FORMAT, OP, "'%.150s': size %zu in the shape of tensor '%.100s' is not a count",
                             path, axis, tensor->name);
        empty |= size == 0;
        overflow |= __builtin_mul_overflow(product, size ? size : 1, &product);
    }
    if (overflow)
        return rapt_fail(RAPT_ERROR_FORMAT, OP,
                         "'%.150s': the shape of tensor '%.100s' has more bytes than 64 bits can count", path,
                         tensor->name);
    *bytes = empty ? 0 : product;
    return true;
}

static bool parse_offsets(const char *path, rapt_stored_tensor *tensor, const json_t *value, int64_t bytes,
                          int64_t data_size)
{
    tensor->begin = json_array_size(value) == 2 ? size_of(json_array_get(value, 0)) : -1;
    tensor->end = json_array_size(value) == 2 ? size_of(json_array_get(value, 1)) : -1;
    if (tensor->begin < 0 || tensor->end < tensor->begin)
        return rapt_fail(RAPT_ERROR_FORMAT, OP,
                         "'%.150s': the data_offsets of tensor '%.100s' are not a begin and an end", path,
                         tensor->name);
    if (tensor->end - tensor->begin != bytes)
        return rapt_fail(RAPT_ERROR_FORMAT, OP, "'%.150s': tensor '%.100s' has %lld bytes where its shape needs %lld",
                         path, tensor->name, (long long)(tensor->end - tensor->begin), (long long)bytes);
    return tensor->end <= data_size || rapt_fail(RAPT_ERROR_FORMAT, OP,
                                                 "'%.150s': the file is cut short: tensor '%.100s' ends at byte %lld "
                                                 "of the data, of which there are %lld",
                                                 path, tensor->name, (long long)tensor->end, (long long)data_size);
}

static bool parse_tensor(const char *path, rapt_stored_tensor *tensor, const json_t *value, int64_t data_size)
{
    int64_t bytes = 0;
    if (!json_is_object(value) || json_object_size(value) != 3)
        return rapt_fail(
            RAPT_ERROR_FORMAT, OP,
            "'%.150s': tensor '%.100s' is not an object of dtype, shape and data_offsets, and nothing else", path,
            tensor->name);
    return parse_type(path, tensor, json_object_get(value, "dtype")) &&
           parse_shape(path, tensor, json_object_get(value, "shape"), &bytes) &&
           parse_offsets(path, tensor, json_object_get(value, "data_offsets"), bytes, data_size);
}

/* By begin, then end (an empty tensor comes before the one that begins at the same byte), then position. */
static int compare(const void *a, const void *b)
{
    const rapt_stored_tensor *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return x->position < y->position ? -1 : 1;
}

/* Each byte of the data belongs to one tensor. */
static bool check_coverage(const char *path, const rapt_stored_header *header, int64_t data_size)
{
    int64_t covered = 0;
    for (int64_t i = 0; i < header->count; i++) {
        const rapt_stored_tensor *tensor = &header->tensors[i];
        if (tensor->begin < covered)
            return rapt_fail(RAPT_ERROR_FORMAT, OP, "'%.150s': tensors '%.100s' and '%.100s' overlap", path,
                             tensor[-1].name, tensor->name);
        if (tensor->begin > covered)
            return rapt_fail(RAPT_ERROR_FORMAT, OP,
                             "'%.150s': the %lld bytes of data before tensor '%.100s' belong to none", path,
                             (long long)(tensor->begin - covered), tensor->name);
        covered = tensor->end;
    }
    return covered == data_size ||
           rapt_fail(RAPT_ERROR_FORMAT, OP, "'%.200s': %lld bytes of data where the tensors have %lld", path,
                     (long long)data_size, (long long)covered);
}

static bool parse_tensors(const char *path, int64_t data_size, rapt_stored_header *header)
{
    const char *key;
    json_t *value;
    json_object_foreach(header->document, key, value)
    {
        if (strcmp(key, RAPT_METADATA_KEY) == 0) {
            header->metadata = value;
            if (!check_metadata(path, value)) return false;
            continue;
        }
        rapt_stored_tensor *tensor = &header->tensors[header->count];
        *tensor = (rapt_stored_tensor){.name = key, .position = header->count};
        if (!parse_tensor(path, tensor, value, data_size)) return false;
        header->count++;
    }
    if (header->count > 0) qsort(header->tensors, (size_t)header->count, sizeof *header->tensors, compare);
    return check_coverage(path, header, data_size);
}

bool rapt_stored_header_parse(const char *path, const char *text, size_t size, int64_t data_size,
                              rapt_stored_header *header)
{
    json_error_t error;
    *header = (rapt_stored_header){0};
    if (size == 0 || text[0] != '{')
        return rapt_fail(RAPT_ERROR_FORMAT, OP, "'%.200s': the header does not begin with '{'; is this safetensors?",
                         path);
    header->document = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (!header->document) {
        const bool memory = json_error_code(&error) == json_error_out_of_memory;
        return rapt_fail(memory ? RAPT_ERROR_MEMORY : RAPT_ERROR_FORMAT, OP, "'%.150s': byte %d of the JSON header: %s",
                         path, error.position, error.text);
    }
    header->tensors = calloc(json_object_size(header->document) + 1, sizeof *header->tensors);
    if (!header->tensors)
        return rapt_fail(RAPT_ERROR_MEMORY, OP, "'%.200s': no memory for a list of %zu tensors", path,
                         json_object_size(header->document));
    return parse_tensors(path, data_size, header);
}

void rapt_stored_header_free(rapt_stored_header *header)
{
    json_decref(header->document);
    free(header->tensors);
    *header = (rapt_stored_header){0};
}
