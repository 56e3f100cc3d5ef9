/* The projected keys and values of earlier steps: a cache that grows by doubling and is filled in place. */
#include "attention_cache.h"

#include "tensor/core.h"

enum { least_capacity = 16 };

void rapt_attention_cache_clear(rapt_attention_cache *cache)
{
    if (!cache) return;
    rapt_release(cache->keys);
    rapt_release(cache->values);
    *cache = (rapt_attention_cache){0};
}

rapt_attention_cache rapt_attention_cache_share(const rapt_attention_cache *cache)
{
    rapt_retain(cache->keys);
    rapt_retain(cache->values);
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
    if (!keys || !values) return false;
    rapt_release(cache->keys);
    rapt_release(cache->values);
    cache->keys = rapt_retain(keys);
    cache->values = rapt_retain(values);
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
