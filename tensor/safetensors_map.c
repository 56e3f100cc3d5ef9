/* safetensors files in memory, whose pages the system reads when they are looked at. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "byte_order.h"
#include "safetensors.h"
#include "tensor/archive.h"
#include "tensor/core.h"
#include "tensor/system.h"

struct rapt_mapping {
    _Atomic int64_t references;
    char *bytes;
    size_t size;
};

rapt_mapping *rapt_mapping_new(const rapt_reading *r)
{
    char text[128];
    rapt_mapping *mapping = malloc(sizeof *mapping);
    if (!mapping) {
        rapt_fail(RAPT_ERROR_MEMORY, r->op, "'%.200s': no memory for a mapping", r->path);
        return NULL;
    }
    *mapping = (rapt_mapping){.references = 1, .size = (size_t)r->size};
    if (r->size == 0) return mapping; /* which the header's reader refuses */
    /* on 32 bits a size_t may be too small */
    errno = EFBIG;
    if ((int64_t)mapping->size == r->size) mapping->bytes = rapt_system_map(r->file, mapping->size);
    if (mapping->bytes) return mapping;
    const int reason = errno;
    rapt_fail(RAPT_ERROR_FILE, r->op, "cannot map '%.200s' of %lld bytes: %s", r->path, (long long)r->size,
              rapt_system_reason(reason, text, sizeof text));
    free(mapping);
    return NULL;
}

void rapt_mapping_release(void *owner)
{
    rapt_mapping *mapping = owner;
    if (!mapping || !rapt_drop_reference(&mapping->references)) return;
    if (mapping->size > 0) rapt_system_unmap(mapping->bytes, mapping->size);
    free(mapping);
}

/* A tensor in the mapping, or, where its place is not aligned or the machine has another order of bytes, a copy. */
static rapt_tensor *look_at(rapt_mapping *mapping, const char *op, rapt_dtype dtype, int rank, const int64_t *shape,
                            const char *place)
{
    const size_t size = rapt_element_bytes[dtype];
    if ((uintptr_t)place % size != 0 || (size > 1 && !RAPT_IS_LITTLE_ENDIAN)) {
        rapt_tensor *copy = rapt_new(op, dtype, rank, shape);
        if (!copy) return NULL;
        memcpy(copy->data, place, (size_t)copy->count * size);
        if (!RAPT_IS_LITTLE_ENDIAN) rapt_swap_bytes(copy);
        return copy;
    }
    rapt_tensor *tensor = rapt_new_wrapped(op, dtype, rank, shape, NULL, place, true, rapt_mapping_release, mapping);
    if (tensor) atomic_fetch_add_explicit(&mapping->references, 1, memory_order_relaxed);
    return tensor;
}

bool rapt_mapping_add(rapt_mapping *mapping, const rapt_reading *r, int64_t data, const rapt_stored_tensor *stored,
                      rapt_archive *archive)
{
    RAPT_SCOPE;
    const char *place = mapping->bytes + data + stored->begin;
    const bool widens = stored->type->widen, keeps = widens && stored->rank < RAPT_MAX_RANK;
    int64_t shape[RAPT_MAX_RANK];
    memcpy(shape, stored->shape, sizeof shape);
    if (keeps) shape[stored->rank] = (int64_t)stored->type->size;
    rapt_tensor *tensor;
    if (widens && !keeps) {
        tensor = rapt_new(r->op, stored->type->dtype, stored->rank, shape);
        if (tensor) stored->type->widen(place, tensor->count, (float *)(void *)tensor->data);
    } else {
        tensor = look_at(mapping, r->op, keeps ? RAPT_UINT8 : stored->type->dtype, stored->rank + keeps, shape, place);
    }
    if (!tensor) return false;
    if (tensor->dtype == RAPT_BOOL && !rapt_reading_check_bools(r, stored->name, tensor)) return false;
    return rapt_archive_keep(archive, stored->name, tensor, keeps ? stored->type : NULL) ||
           rapt_fail(RAPT_ERROR_MEMORY, r->op, "'%.150s': no memory for the name '%.100s'", r->path, stored->name);
}
