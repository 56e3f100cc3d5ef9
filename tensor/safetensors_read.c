/* Reading safetensors files. */
#include <stdlib.h>

#include "byte_order.h"
#include "safetensors.h"
#include "tensor/archive.h"
#include "tensor/core.h"

#define OP "load_safetensors"

enum { size_bytes = 8, piece_bytes = 16384 };

/* Elements that are wider in memory than in the file, piece by piece. */
static bool read_widened(const rapt_reading *r, const rapt_stored_type *type, rapt_tensor *tensor)
{
    _Alignas(8) char piece[piece_bytes];
    const int64_t most = (int64_t)(sizeof piece / type->size);
    for (int64_t first = 0; first < tensor->count; first += most) {
        const int64_t count = tensor->count - first < most ? tensor->count - first : most;
        if (!rapt_reading_take(r, piece, (size_t)count * type->size)) return false;
        type->widen(piece, count, (float *)(void *)tensor->data + first);
    }
    return true;
}

static bool read_tensor(const rapt_reading *r, const rapt_stored_tensor *stored, rapt_archive *archive)
{
    RAPT_SCOPE;
    rapt_tensor *tensor = rapt_new(OP, stored->type->dtype, stored->rank, stored->shape);
    if (!tensor) return false;
    if (stored->type->widen) {
        if (!read_widened(r, stored->type, tensor)) return false;
    } else if (!rapt_reading_take(r, tensor->data, (size_t)(stored->end - stored->begin))) {
        return false;
    }
    if (!RAPT_IS_LITTLE_ENDIAN && !stored->type->widen) rapt_swap_bytes(tensor);
    if (tensor->dtype == RAPT_BOOL && !rapt_reading_check_bools(r, stored->name, tensor)) return false;
    return rapt_archive_keep(archive, stored->name, tensor, NULL) ||
           rapt_fail(RAPT_ERROR_MEMORY, OP, "'%.150s': no memory for the name '%.100s'", r->path, stored->name);
}

/* The size of the header, -1 and an error when there cannot be one of that size. */
static int64_t read_header_size(const rapt_reading *r)
{
    uint8_t bytes[size_bytes];
    uint64_t size = 0;
    if (r->size < size_bytes) {
        rapt_fail(RAPT_ERROR_FORMAT, OP, "'%.200s' has %lld bytes; a safetensors file has %d at least", r->path,
                  (long long)r->size, size_bytes + 2);
        return -1;
    }
    if (!rapt_reading_take(r, bytes, sizeof bytes)) return -1;
    for (int i = size_bytes - 1; i >= 0; i--) size = size << 8 | bytes[i];
    if (size > RAPT_SAFETENSORS_MAX_HEADER) {
        rapt_fail(RAPT_ERROR_FORMAT, OP, "'%.200s': a header of %llu bytes; at most %d expected; is this safetensors?",
                  r->path, (unsigned long long)size, RAPT_SAFETENSORS_MAX_HEADER);
        return -1;
    }
    if ((int64_t)size > r->size - size_bytes) {
        rapt_fail(RAPT_ERROR_FORMAT, OP,
                  "'%.200s': the file is cut short: %lld bytes where the header alone needs %llu", r->path,
                  (long long)r->size, (unsigned long long)size + size_bytes);
        return -1;
    }
    return (int64_t)size;
}

/* A header and its text, to be freed by free_header, also after an error. */
typedef struct header_text {
    char *text;
    int64_t size;
    rapt_stored_header header;
} header_text;

static bool read_header(const rapt_reading *r, rapt_archive *archive, header_text *h)
{
    *h = (header_text){.size = read_header_size(r)};
    if (h->size < 0) return false;
    h->text = malloc((size_t)h->size + 1);
    if (!h->text)
        return rapt_fail(RAPT_ERROR_MEMORY, OP, "'%.200s': no memory for a header of %lld bytes", r->path,
                         (long long)h->size);
    return rapt_reading_take(r, h->text, (size_t)h->size) &&
           rapt_stored_header_parse(r->path, h->text, (size_t)h->size, r->size - size_bytes - h->size, archive,
                                    &h->header);
}

static void free_header(header_text *h)
{
    free(h->text);
    rapt_stored_header_free(&h->header);
}

/* Reads, or with a mapping maps, all of a file. */
static bool read_archive(const rapt_reading *r, rapt_mapping *mapping, rapt_archive *archive)
{
    header_text h;
    bool done = read_header(r, archive, &h);
    for (int64_t i = 0; done && i < h.header.count; i++)
        done = mapping ? rapt_mapping_add(mapping, r, size_bytes + h.size, &h.header.tensors[i], archive)
                       : read_tensor(r, &h.header.tensors[i], archive);
    free_header(&h);
    return done;
}

bool rapt_read_safetensors(const char *path, bool maps, rapt_archive *archive)
{
    rapt_reading r;
    rapt_mapping *mapping = NULL;
    if (!rapt_reading_begin(&r, OP, path)) return false;
    const bool done = (!maps || (mapping = rapt_mapping_new(&r))) && read_archive(&r, mapping, archive);
    rapt_mapping_release(mapping);
    rapt_reading_end(&r);
    return done;
}

bool rapt_visit_safetensors(const char *path, rapt_stored_visitor *visitor, void *context)
{
    rapt_reading r;
    header_text h = {0};
    if (!rapt_reading_begin(&r, OP, path)) return false;
    rapt_archive *texts = rapt_archive_new();
    bool done = texts && read_header(&r, texts, &h);
    for (int64_t i = 0; done && i < h.header.count; i++) done = visitor(&h.header.tensors[i], context);
    free_header(&h);
    rapt_archive_free(texts);
    rapt_reading_end(&r);
    return done;
}

static rapt_archive *load(const char *path, bool maps)
{
    if (!path) {
        rapt_fail_null(OP, "path");
        return NULL;
    }
    rapt_archive *archive = calloc(1, sizeof *archive);
    if (!archive) rapt_fail(RAPT_ERROR_MEMORY, OP, "'%.200s': no memory for an archive", path);
    if (archive &&
        (rapt_is_index(path) ? rapt_read_index(path, maps, archive) : rapt_read_safetensors(path, maps, archive)))
        return archive;
    rapt_archive_free(archive);
    return NULL;
}

rapt_archive *rapt_load_safetensors(const char *path)
{
    return load(path, false);
}

rapt_archive *rapt_map_safetensors(const char *path)
{
    return load(path, true);
}
