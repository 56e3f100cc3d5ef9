/* Multi-head attention: W_o [f(W_q q, W_k k, W_v v)], the heads as an axis of their own. */
#include <rapt/multi_head.h>

#include <rapt/initialize.h>

#include <stdio.h>

#include "attention.h"
#include "attention_cache.h"
#include "nn/entry.h"
#include "nn/padding.h"
#include "tensor/core.h"
#include "tensor/random.h"

enum { parts = 3 }; /* queries, keys, values */

static void destroy(rapt_module *module)
{
    rapt_release(((rapt_multi_head_attention *)module)->head_mask);
}

static void describe(const rapt_module *module, char *text, size_t size)
{
    const rapt_multi_head_attention *m = (const rapt_multi_head_attention *)module;
    int used = snprintf(text, size, "%lld in %d heads", (long long)(m->heads * m->head_size), m->heads);
    if (m->groups != m->heads && used > 0 && (size_t)used < size)
        snprintf(text + used, size - (size_t)used, ", keys in %d", m->groups);
}

static const rapt_module_class kind = {.name = "MultiHeadAttention", .destroy = destroy, .describe = describe};

static bool check_config(const rapt_multi_head_attention_config *c)
{
    const char *op = kind.name;
    const int64_t sizes[] = {c->query_size, c->key_size, c->value_size, c->output_size, c->value_hidden};
    if (c->heads < 1 || c->hidden < 1 || c->hidden % c->heads != 0)
        return rapt_fail(RAPT_ERROR_VALUE, op, "hidden size %lld and %d heads; a multiple of 1 or more heads expected",
                         (long long)c->hidden, c->heads);
    if (c->groups < 0 || (c->groups > 0 && c->heads % c->groups != 0))
        return rapt_fail(RAPT_ERROR_VALUE, op, "%d groups for %d heads; a divisor of the number of heads expected",
                         c->groups, c->heads);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] < 0)
            return rapt_fail(RAPT_ERROR_VALUE, op, "a size of %lld; 1 or more, or 0 for the hidden size, expected",
                             (long long)sizes[i]);
    if (c->value_hidden % c->heads != 0)
        return rapt_fail(RAPT_ERROR_VALUE, op, "values of size %lld and %d heads; a multiple expected",
                         (long long)c->value_hidden, c->heads);
    if (c->hidden > INT64_MAX / 4 || c->value_hidden > INT64_MAX / 4)
        return rapt_fail(RAPT_ERROR_MEMORY, op, "hidden sizes %lld and %lld are too large", (long long)c->hidden,
                         (long long)c->value_hidden);
    for (int i = 1; i < parts && c->names == RAPT_NAMES_GPT2; i++)
        if ((sizes[i] ? sizes[i] : c->hidden) != (sizes[0] ? sizes[0] : c->hidden))
            return rapt_fail(RAPT_ERROR_VALUE, op, "GPT-2's names are for queries, keys and values of one size");
    if (c->pooling && c->dropout != 0)
        return rapt_fail(RAPT_ERROR_VALUE, op, "dropout %g beside a pooling, which has its own; 0 expected",
                         c->dropout);
    if (c->rotary && c->hidden / c->heads % 2 != 0)
        return rapt_fail(RAPT_ERROR_VALUE, op, "heads of size %lld; rotary positions need an even size",
                         (long long)(c->hidden / c->heads));
    return true;
}

/* How many rows of the projection are the queries', the keys' and the values'. */
static void part_sizes(const rapt_multi_head_attention *m, int64_t sizes[parts])
{
    sizes[0] = m->heads * m->head_size;
    sizes[1] = m->groups * m->head_size;
    sizes[2] = m->groups * m->value_size;
}

static rapt_tensor *add_weight(rapt_module *module, const char *name, int64_t out, int64_t in)
{
    rapt_tensor *weight = rapt_empty(RAPT_FLOAT32, RAPT_SHAPE(out, in));
    bool good = weight && rapt_init_xavier_uniform(weight, 1);
    return rapt_module_add_parameter(module, name, good ? weight : NULL);
}

static void add_projections(rapt_multi_head_attention *m, const int64_t inputs[parts],
                            const rapt_multi_head_attention_config *c)
{
    static const rapt_module_class in_kind = {.name = "InProjection"};
    const bool is_gpt = c->names == RAPT_NAMES_GPT2;
    rapt_module *module = &m->module, *in = is_gpt ? rapt_module_new(sizeof *in, &in_kind) : module;
    int64_t sizes[parts];
    part_sizes(m, sizes);
    const int64_t rows = sizes[0] + sizes[1] + sizes[2];
    if (inputs[0] == inputs[1] && inputs[1] == inputs[2]) {
        m->in_proj_weight = add_weight(in, is_gpt ? "weight" : "in_proj_weight", rows, inputs[0]);
    } else {
        m->q_proj_weight = add_weight(module, "q_proj_weight", sizes[0], inputs[0]);
        m->k_proj_weight = add_weight(module, "k_proj_weight", sizes[1], inputs[1]);
        m->v_proj_weight = add_weight(module, "v_proj_weight", sizes[2], inputs[2]);
    }
    if (c->bias)
        m->in_proj_bias =
            rapt_module_add_parameter(in, is_gpt ? "bias" : "in_proj_bias", rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(rows)));
    if (is_gpt) rapt_module_add_child(module, "c_attn", rapt_module_finish(in));
    rapt_linear *output = rapt_linear_new(m->heads * m->value_size, c->output_size ? c->output_size : c->hidden,
                                          c->bias ? RAPT_BIAS : RAPT_NO_BIAS);
    if (output && output->bias) rapt_fill(output->bias, 0);
    m->out_proj = rapt_module_add_child(module, is_gpt ? "c_proj" : "out_proj", (rapt_module *)output);
}

rapt_multi_head_attention *rapt_multi_head_attention_new(const rapt_multi_head_attention_config *c)
{
    RAPT_SCOPE;
    if (!c) {
        rapt_fail(RAPT_ERROR_NULL, kind.name, "the configuration is NULL");
        return NULL;
    }
    rapt_multi_head_attention *m = check_config(c) ? rapt_module_new(sizeof *m, &kind) : NULL;
    if (!m) { /* what is new of its parts goes with it */
        rapt_module_add_child(NULL, NULL, (rapt_module *)c->pooling);
        rapt_module_add_child(NULL, NULL, (rapt_module *)c->rotary);
        return NULL;
    }
    const int64_t inputs[parts] = {c->query_size ? c->query_size : c->hidden, c->key_size ? c->key_size : c->hidden,
                                   c->value_size ? c->value_size : c->hidden};
    m->heads = c->heads;
    m->groups = c->groups ? c->groups : c->heads;
    m->head_size = c->hidden / c->heads;
    m->value_size = (c->value_hidden ? c->value_hidden : c->hidden) / c->heads;
    add_projections(m, inputs, c);
    rapt_attention *pooling = c->pooling ? c->pooling : rapt_dot_product_attention_new(c->dropout);
    m->pooling = rapt_module_add_child(&m->module, "attention", (rapt_module *)pooling);
    if (c->sinks && m->pooling && !m->pooling->sinks && !rapt_attention_learn_sinks(m->pooling, m->heads))
        m->module.failed = true;
    if (c->rotary) m->rotary = rapt_module_add_child(&m->module, "rotary", (rapt_module *)c->rotary);
    return rapt_module_finish(&m->module);
}

bool rapt_multi_head_attention_set_head_mask(rapt_multi_head_attention *m, rapt_tensor *mask)
{
    char text[128];
    if (!m) return rapt_fail(RAPT_ERROR_NULL, kind.name, "the layer is NULL");
    if (mask && (mask->rank != 1 || mask->shape[0] != m->heads || !rapt_is_floating(mask)))
        return rapt_fail(RAPT_ERROR_SHAPE, kind.name, "a floating head mask of shape (%d) expected, not %s", m->heads,
                         rapt_describe(mask, text, sizeof text));
    rapt_retain(mask);
    rapt_release(m->head_mask);
    m->head_mask = mask;
    return true;
}

/* --- what forward is given --- */

static bool is_packed(const rapt_mask *mask)
{
    return mask && mask->starts;
}

static bool check_input(const char *what, const rapt_tensor *x, int64_t batch, int64_t size, bool packed)
{
    char text[128];
    if (!x) return rapt_fail(RAPT_ERROR_NULL, kind.name, "the %s are NULL", what);
    if (packed)
        return (x->rank == 2 && x->shape[1] == size) ||
               rapt_fail(RAPT_ERROR_SHAPE, kind.name, "%s of shape (rows, %lld) expected beside starts, not %s", what,
                         (long long)size, rapt_describe(x, text, sizeof text));
    bool fits = x->rank == 3 && x->shape[2] == size && (batch < 0 || x->shape[0] == batch);
    if (fits) return true;
    rapt_describe(x, text, sizeof text);
    if (batch < 0)
        return rapt_fail(RAPT_ERROR_SHAPE, kind.name, "%s of shape (B, length, %lld) expected, not %s", what,
                         (long long)size, text);
    return rapt_fail(RAPT_ERROR_SHAPE, kind.name, "%s of shape (%lld, length, %lld) expected, not %s", what,
                     (long long)batch, (long long)size, text);
}

static int64_t input_size(const rapt_multi_head_attention *m, const rapt_tensor *weight)
{
    return (m->in_proj_weight ? m->in_proj_weight : weight)->shape[1];
}

static bool check_cached(const rapt_attention_cache *cache, int64_t batch)
{
    if (!cache || cache->length == 0)
        return rapt_fail(RAPT_ERROR_NULL, kind.name, "keys and values are NULL, and no cache holds any");
    return cache->keys->shape[0] == batch ||
           rapt_fail(RAPT_ERROR_SHAPE, kind.name, "queries of %lld items, but the cache holds %lld", (long long)batch,
                     (long long)cache->keys->shape[0]);
}

/* By numpy's rules a third axis from the end is the heads'; who gives (B, Q, K) means something else. */
static bool check_mask(const char *field, const rapt_tensor *x)
{
    char text[RAPT_SHAPE_TEXT];
    if (!x || x->rank != 3 || x->shape[0] == 1) return true;
    return rapt_fail(RAPT_ERROR_SHAPE, kind.name,
                     "the mask's %s has shape %s; (B, 1, Q, K), (1, heads, Q, K) or (B, heads, Q, K) expected", field,
                     rapt_shape_text(3, x->shape, text));
}

static bool check_call(const rapt_multi_head_attention *m, const rapt_tensor *queries, const rapt_tensor *keys,
                       const rapt_tensor *values, const rapt_mask *mask, const rapt_attention_cache *cache)
{
    if (!m) return rapt_fail(RAPT_ERROR_NULL, kind.name, "the layer is NULL");
    const bool packed = is_packed(mask);
    if (packed && cache && (cache->length > 0 || !keys || mask->key_starts))
        return rapt_fail(RAPT_ERROR_UNSUPPORTED, kind.name,
                         "packed sequences fill an empty cache with keys that are queries too, and no other");
    if (!packed && mask && mask->first_keys && cache && cache->missing)
        return rapt_fail(RAPT_ERROR_UNSUPPORTED, kind.name, "the mask has first_keys, which the cache has too");
    if (!check_input("queries", queries, -1, input_size(m, m->q_proj_weight), packed)) return false;
    const int64_t batch = queries->shape[0];
    if (!keys && !values) {
        if (!check_cached(cache, batch)) return false;
    } else {
        if (!check_input("keys", keys, batch, input_size(m, m->k_proj_weight), packed) ||
            !check_input("values", values, batch, input_size(m, m->v_proj_weight), packed))
            return false;
        if (rapt_length_of(keys) != rapt_length_of(values))
            return rapt_fail(RAPT_ERROR_SHAPE, kind.name, "%lld keys and %lld values; one number expected",
                             (long long)rapt_length_of(keys), (long long)rapt_length_of(values));
    }
    if (mask && (!check_mask("seen", mask->seen) || !check_mask("bias", mask->bias))) return false;
    return !cache || !rapt_is_recording() ||
           rapt_fail(RAPT_ERROR_UNSUPPORTED, kind.name,
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
static bool project(const rapt_multi_head_attention *m, rapt_tensor *const inputs[parts], rapt_tensor *results[parts])
{
    rapt_tensor *const weights[parts] = {m->q_proj_weight, m->k_proj_weight, m->v_proj_weight};
    int64_t sizes[parts], start = 0;
    part_sizes(m, sizes);
    for (int first = 0, last; first < parts; first = last) {
        int64_t rows = sizes[first];
        for (last = first + 1; m->in_proj_weight && last < parts && inputs[last] == inputs[first];)
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

/* (B, T, heads·size) → (B, heads, T, size), a view */
static rapt_tensor *split_heads(rapt_tensor *x, int64_t heads, int64_t size)
{
    if (!x) return NULL;
    return rapt_permute(rapt_reshape(x, RAPT_SHAPE(x->shape[0], x->shape[1], heads, size)), RAPT_AXES(0, 2, 1, 3));
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
static bool prepare_heads(rapt_multi_head_attention *m, rapt_tensor *const inputs[parts], const rapt_mask *mask,
                          int64_t first, rapt_tensor *missing, rapt_tensor *heads[parts])
{
    if (!project(m, inputs, heads)) return false;
    heads[0] = split_heads(heads[0], m->heads, m->head_size);
    heads[1] = split_heads(heads[1], m->groups, m->head_size);
    heads[2] = split_heads(heads[2], m->groups, m->value_size);
    if (m->rotary && heads[0])
        heads[0] = mask->query_places ? turn_at(m->rotary, heads[0], mask->query_places, missing)
                                      : turn(m->rotary, heads[0], mask->starts, mask->offset, missing);
    if (m->rotary && heads[1])
        heads[1] = turn(m->rotary, heads[1], mask->key_starts ? mask->key_starts : mask->starts, first, missing);
    return heads[0] && (!inputs[1] || (heads[1] && heads[2]));
}

/* Packed rows (rows, size) become a batch of one; what was one tensor stays one. */
static bool add_batch(rapt_tensor *inputs[parts])
{
    rapt_tensor *const rows[parts] = {inputs[0], inputs[1], inputs[2]};
    for (int i = 0; i < parts; i++) {
        int same = 0;
        while (rows[same] != rows[i]) same++;
        inputs[i] = same < i ? inputs[same] : rapt_unsqueeze(rows[i], 0);
        if (!inputs[i]) return false;
    }
    return true;
}

rapt_tensor *rapt_multi_head_attention_weigh(rapt_multi_head_attention *m, rapt_tensor *queries, rapt_tensor *keys,
                                             rapt_tensor *values, const rapt_mask *mask, rapt_attention_cache *cache,
                                             rapt_tensor **weights)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((const rapt_module *)m);
    if (!check_call(m, queries, keys, values, mask, cache)) return NULL;
    RAPT_SCOPE;
    const bool packed = is_packed(mask);
    rapt_tensor *inputs[parts] = {queries, keys, values}, *heads[parts];
    if (packed && !add_batch(inputs)) return NULL;
    queries = inputs[0];
    keys = inputs[1];
    rapt_mask moved = mask ? *mask : (rapt_mask){0};
    const int64_t before = cache ? cache->length : 0;
    rapt_tensor *missing = before > 0 ? cache->missing : NULL;
    if (missing) moved.first_keys = missing;
    if (keys && __builtin_add_overflow(moved.offset, before, &moved.offset)) {
        rapt_fail(RAPT_ERROR_VALUE, kind.name, "the mask's offset %lld is too large", (long long)mask->offset);
        return NULL;
    }
    rapt_resolved_mask resolved;
    const int64_t length = before + (keys ? keys->shape[1] : 0);
    if (!rapt_resolve_mask(kind.name, &moved, queries->dtype, queries->shape[0], m->heads, queries->shape[1], length,
                           &resolved))
        return NULL;
    if (mask && !cache && !rapt_hide_padding_of_inputs(&resolved, queries, &inputs[1], &inputs[2])) return NULL;
    if (!prepare_heads(m, inputs, &moved, before, missing, heads)) return NULL;
    if (cache && !(packed ? rapt_attention_cache_fill(kind.name, cache, heads[1], heads[2], moved.starts)
                          : rapt_attention_cache_append(kind.name, cache, &heads[1], &heads[2])))
        return NULL;
    rapt_tensor *pooled =
        rapt_attention_forward_resolved(m->pooling, heads[0], heads[1], heads[2], &moved, &resolved, weights);
    if (pooled && weights) rapt_keep(*weights);
    if (pooled && m->head_mask) pooled = rapt_mul(pooled, rapt_reshape(m->head_mask, RAPT_SHAPE(m->heads, 1, 1)));
    rapt_tensor *output = pooled ? rapt_linear_forward(m->out_proj, join_heads(pooled)) : NULL;
    if (output && packed) output = rapt_squeeze(output, 0);
    if (output && cache && keys) cache->length += packed ? resolved.longest_keys : keys->shape[1];
    return rapt_keep(output);
}

rapt_tensor *rapt_multi_head_attention_forward(rapt_multi_head_attention *m, rapt_tensor *queries, rapt_tensor *keys,
                                               rapt_tensor *values, const rapt_mask *mask, rapt_attention_cache *cache)
{
    return rapt_multi_head_attention_weigh(m, queries, keys, values, mask, cache, NULL);
}
