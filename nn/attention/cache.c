/* The projected keys and values of earlier steps: a cache that grows by doubling and is filled in place. */
#include "attention_cache.h"

#include "tensor/packing.h"

enum { least_capacity = 16 };

void rapt_attention_cache_clear(rapt_attention_cache *cache)
{
    if (!cache) return;
    rapt_release(cache->keys);
    rapt_release(cache->values);
    rapt_release(cache->missing);
    *cache = (rapt_attention_cache){0};
}

rapt_attention_cache rapt_attention_cache_share(const rapt_attention_cache *cache)
{
    rapt_retain(cache->keys);
    rapt_retain(cache->values);
    rapt_retain(cache->missing);
    return *cache;
}

void rapt_attention_cache_return(rapt_attention_cache *cache, int64_t length)
{
    if (length == 0)
        rapt_attention_cache_clear(cache);
    else
        cache->length = length;
}

bool rapt_attention_cache_select(rapt_attention_cache *cache, rapt_tensor *rows)
{
    const char *op = "attention_cache_select";
    if (!cache || !rows) return rapt_fail_null(op, cache ? "rows" : "cache");
    if (!cache->keys || !cache->values) return true;
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_tensor *keys = rapt_index_select(cache->keys, 0, rows), *values = rapt_index_select(cache->values, 0, rows);
    rapt_tensor *missing = cache->missing ? rapt_index_select(cache->missing, 0, rows) : NULL;
    if (!keys || !values || (cache->missing && !missing)) return false;
    rapt_attention_cache selected = {rapt_retain(keys), rapt_retain(values), cache->length, rapt_retain(missing)};
    rapt_attention_cache_clear(cache);
    *cache = selected;
    return true;
}

/* Can the new ones stand behind those of the buffer? */
static bool fits(const char *op, const rapt_tensor *buffer, const rapt_tensor *added)
{
    bool same = buffer->dtype == added->dtype;
    for (int axis = 0; axis < 4; axis++) same = same && (axis == 2 || buffer->shape[axis] == added->shape[axis]);
    char a[128], b[128];
    return same || rapt_fail(RAPT_ERROR_SHAPE, op,
                             "the cache holds %s (the third size is its capacity), which %s does "
                             "not continue; clear it for another sequence",
                             rapt_describe(buffer, a, sizeof a), rapt_describe(added, b, sizeof b));
}

/* Makes room for `needed`, keeping the first `length`. */
static bool grow(const char *op, rapt_tensor **buffer, const rapt_tensor *like, int64_t length, int64_t needed)
{
    rapt_tensor *old = *buffer;
    if (old && old->shape[2] >= needed) return true;
    int64_t capacity = old ? 2 * old->shape[2] : least_capacity;
    if (capacity < needed) capacity = needed;
    rapt_tensor *larger =
        rapt_new(op, like->dtype, RAPT_SHAPE(like->shape[0], like->shape[1], capacity, like->shape[3]));
    if (!larger) return false;
    if (old && !rapt_copy(rapt_slice(larger, 2, 0, length, 1), rapt_slice(old, 2, 0, length, 1))) return false;
    rapt_release(old);
    *buffer = rapt_retain(larger);
    return true;
}

/* Puts the new ones behind the first `length` of the buffer, and makes them a view of all. */
static bool append(const char *op, rapt_tensor **buffer, rapt_tensor **added, int64_t length)
{
    const int64_t end = length + (*added ? (*added)->shape[2] : 0);
    if (*added) {
        if (length > 0 && !fits(op, *buffer, *added)) return false;
        if (!grow(op, buffer, *added, length, end)) return false;
        if (!rapt_copy(rapt_slice(*buffer, 2, length, end, 1), *added)) return false;
    }
    *added = rapt_slice(*buffer, 2, 0, end, 1);
    return *added != NULL;
}

bool rapt_attention_cache_append(const char *op, rapt_attention_cache *cache, rapt_tensor **keys, rapt_tensor **values)
{
    RAPT_NO_GRADIENT;
    if (cache->length == 0) rapt_attention_cache_clear(cache); /* what is left of a step that failed */
    return append(op, &cache->keys, keys, cache->length) && append(op, &cache->values, values, cache->length);
}

/* Rows (1, groups, rows, size) → (B, groups, longest, size), each sequence at the end, zeros before it. */
static rapt_tensor *put_at_end(const char *op, const rapt_tensor *rows, const rapt_raw_packing *p)
{
    rows = rapt_as_dense_rows(rows);
    const int64_t groups = rows ? rows->shape[1] : 0, size = rows ? rows->shape[3] : 0;
    rapt_tensor *all = rows ? rapt_new(op, rows->dtype, RAPT_SHAPE(p->sequences, groups, p->longest, size)) : NULL;
    if (!all) return NULL;
    const int64_t bytes = (int64_t)rapt_dtype_size(rows->dtype), row = size * bytes;
    for (int64_t b = 0; b < p->sequences; b++)
        for (int64_t g = 0; g < groups; g++) {
            const int64_t length = rapt_packed_length(p, b), missing = p->longest - length;
            char *to = all->data + (b * groups + g) * p->longest * row;
            const char *from = rows->data + (g * rows->strides[1] + p->starts[b] * rows->strides[2]) * bytes;
            memset(to, 0, (size_t)(missing * row));
            for (int64_t i = 0; i < length; i++)
                memcpy(to + (missing + i) * row, from + i * rows->strides[2] * bytes, (size_t)row);
        }
    return all;
}

bool rapt_attention_cache_fill(const char *op, rapt_attention_cache *cache, rapt_tensor *keys, rapt_tensor *values,
                               rapt_tensor *starts)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_raw_packing p;
    if (!rapt_read_packing(op, starts, &p)) return false;
    rapt_tensor *missing = rapt_new(op, RAPT_INT64, RAPT_SHAPE(p.sequences));
    rapt_tensor *all_keys = put_at_end(op, keys, &p), *all_values = put_at_end(op, values, &p);
    if (!missing || !all_keys || !all_values) return false;
    for (int64_t b = 0; b < p.sequences; b++)
        ((int64_t *)(void *)missing->data)[b] = p.longest - rapt_packed_length(&p, b);
    rapt_attention_cache_clear(cache);
    *cache = (rapt_attention_cache){rapt_retain(all_keys), rapt_retain(all_values), 0, rapt_retain(missing)};
    return true;
}
