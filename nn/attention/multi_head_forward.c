/* Multi-head attention: W_o [f(W_q q, W_k k, W_v v)], the heads as an axis of their own. */
#include "attention.h"
#include "attention_cache.h"
#include "multi_head.h"
#include "nn/entry.h"
#include "nn/padding.h"
#include "ring/ring.h"
#include "tensor/core.h"
#include "tensor/random.h"

/* --- what forward is given --- */

static bool is_packed(const rapt_mask *mask)
{
    return mask && mask->starts;
}

static bool check_input(const char *what, const rapt_tensor *x, int64_t batch, int64_t size, bool packed)
{
    char text[128];
    if (!x) return rapt_fail(RAPT_ERROR_NULL, rapt_multi_head_kind.name, "the %s are NULL", what);
    if (packed)
        return (x->rank == 2 && x->shape[1] == size) ||
               rapt_fail(RAPT_ERROR_SHAPE, rapt_multi_head_kind.name,
                         "%s of shape (rows, %lld) expected beside starts, not %s", what, (long long)size,
                         rapt_describe(x, text, sizeof text));
    bool fits = x->rank == 3 && x->shape[2] == size && (batch < 0 || x->shape[0] == batch);
    if (fits) return true;
    rapt_describe(x, text, sizeof text);
    if (batch < 0)
        return rapt_fail(RAPT_ERROR_SHAPE, rapt_multi_head_kind.name,
                         "%s of shape (B, length, %lld) expected, not %s%s", what, (long long)size, text,
                         rapt_batch_cure(x, 3));
    return rapt_fail(RAPT_ERROR_SHAPE, rapt_multi_head_kind.name, "%s of shape (%lld, length, %lld) expected, not %s%s",
                     what, (long long)batch, (long long)size, text, rapt_batch_cure(x, 3));
}

static int64_t input_size(const rapt_multi_head_attention *m, const rapt_tensor *weight)
{
    return (m->in_proj_weight ? m->in_proj_weight : weight)->shape[1];
}

static bool check_cached(const rapt_attention_cache *cache, int64_t batch)
{
    if (!cache || cache->length == 0)
        return rapt_fail(RAPT_ERROR_NULL, rapt_multi_head_kind.name,
                         "keys and values are NULL, and no cache holds any");
    return cache->keys->shape[0] == batch ||
           rapt_fail(RAPT_ERROR_SHAPE, rapt_multi_head_kind.name, "queries of %lld items, but the cache holds %lld",
                     (long long)batch, (long long)cache->keys->shape[0]);
}

/* By numpy's rules a third axis from the end is the heads'; who gives (B, Q, K) means something else. */
static bool check_mask(const char *field, const rapt_tensor *x)
{
    char text[RAPT_SHAPE_TEXT];
    if (!x || x->rank != 3 || x->shape[0] == 1) return true;
    return rapt_fail(RAPT_ERROR_SHAPE, rapt_multi_head_kind.name,
                     "the mask's %s has shape %s; (B, 1, Q, K), (1, heads, Q, K) or (B, heads, Q, K) expected", field,
                     rapt_shape_text(3, x->shape, text));
}

/* Items of a cache that packed sequences filled end at one place and begin at several, by which these would go. */
static bool check_continued(const rapt_mask *mask, const rapt_attention_cache *cache)
{
    const bool continues = mask && cache && cache->missing && cache->length > 0;
    const char *refused = !continues             ? NULL
                          : mask->block > 0      ? "block"
                          : mask->prefix_lengths ? "prefix_lengths"
                          : mask->rule.see       ? "rule"
                                                 : NULL;
    return !refused || rapt_fail(RAPT_ERROR_UNSUPPORTED, rapt_multi_head_kind.name,
                                 "the mask has %s beside a cache that packed sequences filled, whose places are not "
                                 "those within a sequence",
                                 refused);
}

static bool check_call(const rapt_multi_head_attention *m, const rapt_tensor *queries, const rapt_tensor *keys,
                       const rapt_tensor *values, const rapt_mask *mask, const rapt_attention_cache *cache)
{
    if (!m || !m->pooling)
        return rapt_fail(RAPT_ERROR_NULL, rapt_multi_head_kind.name, "the %s is NULL", m ? "pooling" : "layer");
    const bool packed = is_packed(mask);
    if (packed && cache && (cache->length > 0 || !keys || mask->key_starts))
        return rapt_fail(RAPT_ERROR_UNSUPPORTED, rapt_multi_head_kind.name,
                         "packed sequences fill an empty cache with keys that are queries too, and no other");
    if (!packed && mask && mask->first_keys && cache && cache->missing)
        return rapt_fail(RAPT_ERROR_UNSUPPORTED, rapt_multi_head_kind.name,
                         "the mask has first_keys, which the cache has too");
    if (!check_continued(mask, cache)) return false;
    if (!check_input("queries", queries, -1, input_size(m, m->q_proj_weight), packed)) return false;
    const int64_t batch = queries->shape[0];
    if (!keys && !values) {
        if (!check_cached(cache, batch)) return false;
    } else {
        if (!check_input("keys", keys, batch, input_size(m, m->k_proj_weight), packed) ||
            !check_input("values", values, batch, input_size(m, m->v_proj_weight), packed))
            return false;
        if (rapt_length_of(keys) != rapt_length_of(values))
            return rapt_fail(RAPT_ERROR_SHAPE, rapt_multi_head_kind.name,
                             "%lld keys and %lld values; one number expected", (long long)rapt_length_of(keys),
                             (long long)rapt_length_of(values));
    }
    if (mask && (!check_mask("seen", mask->seen) || !check_mask("bias", mask->bias))) return false;
    if (m->pooling->ring && cache)
        return rapt_fail(RAPT_ERROR_UNSUPPORTED, rapt_multi_head_kind.name, "a cache beside attention across ranks");
    return !cache || !rapt_is_recording() ||
           rapt_fail(RAPT_ERROR_UNSUPPORTED, rapt_multi_head_kind.name,
                     "a cache is changed in place, which gradients cannot follow; use RAPT_NO_GRADIENT");
}

/* --- forward --- */

/* Rows of a packed tensor. */
static rapt_tensor *rows_of(rapt_tensor *packed, int64_t start, int64_t count)
{
    return packed && count < packed->shape[0] ? rapt_slice(packed, 0, start, start + count, 1) : packed;
}

/* x W_inᵀ + b for each of the three; neighbours that are one tensor are projected by one product. Absent ones stay
 * NULL. */
static bool project(const rapt_multi_head_attention *m, rapt_tensor *const inputs[RAPT_ATTENTION_PARTS],
                    rapt_tensor *results[RAPT_ATTENTION_PARTS])
{
    rapt_tensor *const weights[RAPT_ATTENTION_PARTS] = {m->q_proj_weight, m->k_proj_weight, m->v_proj_weight};
    int64_t sizes[RAPT_ATTENTION_PARTS], start = 0;
    rapt_multi_head_part_sizes(m, sizes);
    for (int first = 0, last; first < RAPT_ATTENTION_PARTS; first = last) {
        int64_t rows = sizes[first];
        for (last = first + 1; m->in_proj_weight && last < RAPT_ATTENTION_PARTS && inputs[last] == inputs[first];)
            rows += sizes[last++];
        for (int i = first; i < last; i++) results[i] = NULL;
        if (inputs[first]) {
            rapt_tensor *weight = m->in_proj_weight ? rows_of(m->in_proj_weight, start, rows) : weights[first];
            rapt_tensor *bias = rows_of(m->in_proj_bias, start, rows);
            if (m->in_proj_bias && !bias) return false;
            rapt_tensor *projected = rapt_affine(inputs[first], weight, bias);
            if (last - first == 1) results[first] = projected;
            if (!projected ||
                (last - first > 1 && !rapt_split(projected, -1, last - first, sizes + first, results + first)))
                return false;
        }
        start += rows;
    }
    return true;
}

/* (B, T, heads·size) → (B, heads, T, size), a view; with a norm, of each head */
static rapt_tensor *split_heads(rapt_tensor *x, int64_t heads, int64_t size, rapt_rms_norm *norm)
{
    if (!x) return NULL;
    x = rapt_reshape(x, RAPT_SHAPE(x->shape[0], x->shape[1], heads, size));
    if (x && norm) x = rapt_rms_norm_forward(norm, x);
    return rapt_permute(x, RAPT_AXES(0, 2, 1, 3));
}

/* The inverse of split_heads. */
static rapt_tensor *join_heads(rapt_tensor *x)
{
    if (!x) return NULL;
    return rapt_reshape(rapt_permute(x, RAPT_AXES(0, 2, 1, 3)),
                        RAPT_SHAPE(x->shape[0], x->shape[2], x->shape[1] * x->shape[3]));
}

/* The queries turned by the places that the mask gives them, less what an item misses. */
static rapt_tensor *turn_at(rapt_rotary *rotary, rapt_tensor *x, rapt_tensor *places, rapt_tensor *missing)
{
    if (places->rank == 2) places = rapt_unsqueeze(places, 1);
    if (missing)
        places = rapt_sub(rapt_cast(places, RAPT_INT64), rapt_reshape(missing, RAPT_SHAPE(missing->count, 1, 1)));
    return places ? rapt_rotary_forward_at(rotary, x, places) : NULL;
}

/* x turned by its positions: those from `first` on, or, packed, those in each sequence; less what an item misses. */
static rapt_tensor *turn(rapt_rotary *rotary, rapt_tensor *x, rapt_tensor *starts, int64_t first, rapt_tensor *missing)
{
    if (!starts && !missing) return rapt_rotary_forward(rotary, x, first);
    rapt_tensor *places =
        starts ? rapt_packing_positions(starts) : rapt_arange(RAPT_INT64, 0, (double)rapt_length_of(x), 1);
    if (first != 0) places = rapt_add(places, rapt_scalar(RAPT_INT64, (double)first));
    return places ? turn_at(rotary, x, places, missing) : NULL;
}

/* Projections cut into heads and, with rotary positions, turned. The keys begin at position `first`, the queries where
 * the mask has them. */
static bool prepare_heads(rapt_multi_head_attention *m, rapt_tensor *const inputs[RAPT_ATTENTION_PARTS],
                          const rapt_mask *mask, int64_t first, rapt_tensor *missing,
                          rapt_tensor *heads[RAPT_ATTENTION_PARTS])
{
    if (!project(m, inputs, heads)) return false;
    heads[0] = split_heads(heads[0], m->heads, m->head_size, m->q_norm);
    heads[1] = split_heads(heads[1], m->groups, m->head_size, m->k_norm);
    heads[2] = split_heads(heads[2], m->groups, m->value_size, NULL);
    if (m->rotary && heads[0])
        heads[0] = mask->query_places ? turn_at(m->rotary, heads[0], mask->query_places, missing)
                                      : turn(m->rotary, heads[0], mask->starts, mask->offset, missing);
    if (m->rotary && heads[1] && m->pooling->ring)
        heads[1] = turn_at(m->rotary, heads[1], rapt_ring_places(m->pooling->ring), NULL);
    else if (m->rotary && heads[1])
        heads[1] = turn(m->rotary, heads[1], mask->key_starts ? mask->key_starts : mask->starts, first, missing);
    return heads[0] && (!inputs[1] || (heads[1] && heads[2]));
}

/* Packed rows (rows, size) become a batch of one; what was one tensor stays one. */
static bool add_batch(rapt_tensor *inputs[RAPT_ATTENTION_PARTS])
{
    rapt_tensor *const rows[RAPT_ATTENTION_PARTS] = {inputs[0], inputs[1], inputs[2]};
    for (int i = 0; i < RAPT_ATTENTION_PARTS; i++) {
        int same = 0;
        while (rows[same] != rows[i]) same++;
        inputs[i] = same < i ? inputs[same] : rapt_unsqueeze(rows[i], 0);
        if (!inputs[i]) return false;
    }
    return true;
}

static rapt_tensor *forward(rapt_multi_head_attention *m, rapt_tensor *queries, rapt_tensor *keys, rapt_tensor *values,
                            const rapt_mask *mask, rapt_attention_cache *cache, rapt_tensor **weights)
{
    if (!check_call(m, queries, keys, values, mask, cache)) return NULL;
    RAPT_SCOPE;
    const bool packed = is_packed(mask);
    rapt_tensor *inputs[RAPT_ATTENTION_PARTS] = {queries, keys, values}, *heads[RAPT_ATTENTION_PARTS];
    if (packed && !add_batch(inputs)) return NULL;
    queries = inputs[0];
    keys = inputs[1];
    rapt_mask moved;
    const int64_t before = cache ? cache->length : 0;
    if (!rapt_mask_move(rapt_multi_head_kind.name, mask, keys ? before : 0, &moved)) return NULL;
    rapt_tensor *missing = before > 0 ? cache->missing : NULL;
    if (missing) moved.first_keys = missing;
    rapt_resolved_mask resolved;
    const int64_t length = before + (keys ? keys->shape[1] : 0);
    if (!(m->pooling->ring ? rapt_ring_resolve_mask(rapt_multi_head_kind.name, m->pooling->ring, &moved, queries->dtype,
                                                    queries->shape[0], m->heads, queries->shape[1], length, &resolved)
                           : rapt_resolve_mask(rapt_multi_head_kind.name, &moved, queries->dtype, queries->shape[0],
                                               m->heads, queries->shape[1], length, &resolved)))
        return NULL;
    if (!cache && !rapt_hide_padding_of_inputs(&resolved, &inputs[0], &inputs[1], &inputs[2])) return NULL;
    if (!prepare_heads(m, inputs, &moved, before, missing, heads)) return NULL;
    if (cache &&
        !(packed ? rapt_attention_cache_fill(rapt_multi_head_kind.name, cache, heads[1], heads[2], moved.starts)
                 : rapt_attention_cache_append(rapt_multi_head_kind.name, cache, &heads[1], &heads[2]))) {
        rapt_attention_cache_return(cache, before);
        return NULL;
    }
    rapt_tensor *pooled =
        rapt_attention_forward_resolved(m->pooling, heads[0], heads[1], heads[2], &moved, &resolved, weights);
    if (pooled && weights) rapt_keep(*weights);
    if (pooled && m->head_mask) { /* the layer may have been cast since it was set */
        rapt_tensor *head_mask = rapt_cast(m->head_mask, pooled->dtype);
        pooled = rapt_mul(pooled, rapt_reshape(head_mask, RAPT_SHAPE(m->heads, 1, 1)));
    }
    rapt_tensor *output = pooled ? rapt_linear_forward(m->out_proj, join_heads(pooled)) : NULL;
    if (output && packed) output = rapt_squeeze(output, 0);
    if (cache && !output)
        rapt_attention_cache_return(cache, before);
    else if (cache && keys)
        cache->length += packed ? resolved.longest_keys : keys->shape[1];
    return rapt_keep(output);
}

rapt_tensor *rapt_multi_head_attention_weigh(rapt_multi_head_attention *m, rapt_tensor *queries, rapt_tensor *keys,
                                             rapt_tensor *values, const rapt_mask *mask, rapt_attention_cache *cache,
                                             rapt_tensor **weights)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((rapt_module *)m);
    rapt_ring *ring = rapt_multi_head_ring(m);
    const int64_t before = ring ? ring->meetings : 0;
    rapt_tensor *output = forward(m, queries, keys, values, mask, cache, weights);
    rapt_ring_tell(ring, rapt_multi_head_kind.name, !output, before);
    return output;
}

rapt_tensor *rapt_multi_head_attention_forward(rapt_multi_head_attention *m, rapt_tensor *queries, rapt_tensor *keys,
                                               rapt_tensor *values, const rapt_mask *mask, rapt_attention_cache *cache)
{
    return rapt_multi_head_attention_weigh(m, queries, keys, values, mask, cache, NULL);
}
