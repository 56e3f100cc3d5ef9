/* What a GPT has read so far, and generation with it. */
#include <stdlib.h>

#include "attention_cache.h"
#include "gpt.h"
#include "tensor/random.h"

static const char op[] = "GPT";

struct rapt_gpt_cache {
    rapt_gpt *gpt;
    int64_t length;
    rapt_tensor *tokens;           /* int64 (B, context), the first `length` of each row filled; NULL when empty */
    rapt_attention_cache blocks[]; /* one for each, and as many empty ones, where a selection is put together */
};

rapt_gpt_cache *rapt_gpt_cache_new(rapt_gpt *gpt)
{
    if (!gpt) {
        rapt_fail(RAPT_ERROR_NULL, op, "the model is NULL");
        return NULL;
    }
    rapt_gpt_cache *cache = calloc(1, sizeof *cache + 2 * (size_t)gpt->config.layers * sizeof *cache->blocks);
    if (cache)
        cache->gpt = gpt;
    else
        rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for a cache");
    return cache;
}

void rapt_gpt_cache_clear(rapt_gpt_cache *cache)
{
    if (!cache) return;
    for (int i = 0; i < cache->gpt->config.layers; i++) rapt_attention_cache_clear(&cache->blocks[i]);
    rapt_release(cache->tokens);
    cache->tokens = NULL;
    cache->length = 0;
}

void rapt_gpt_cache_free(rapt_gpt_cache *cache)
{
    rapt_gpt_cache_clear(cache);
    free(cache);
}

int64_t rapt_gpt_cache_length(const rapt_gpt_cache *cache)
{
    if (!cache) rapt_fail(RAPT_ERROR_NULL, op, "the cache is NULL");
    return cache ? cache->length : 0;
}

bool rapt_gpt_cache_select(rapt_gpt_cache *cache, rapt_tensor *rows)
{
    if (!cache || !rows) return rapt_fail(RAPT_ERROR_NULL, op, "the %s", cache ? "rows are NULL" : "cache is NULL");
    if (!cache->tokens) return true;
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    const int layers = cache->gpt->config.layers;
    rapt_attention_cache *selected = cache->blocks + layers;
    rapt_tensor *tokens = rapt_index_select(cache->tokens, 0, rows);
    bool good = tokens != NULL;
    for (int i = 0; i < layers && good; i++) {
        selected[i] = rapt_attention_cache_share(&cache->blocks[i]);
        good = rapt_attention_cache_select(&selected[i], rows);
    }
    for (int i = 0; i < layers; i++) {
        rapt_attention_cache old = good ? cache->blocks[i] : selected[i];
        if (good) cache->blocks[i] = selected[i];
        selected[i] = (rapt_attention_cache){0};
        rapt_attention_cache_clear(&old);
    }
    if (!good) return false;
    rapt_release(cache->tokens);
    cache->tokens = rapt_retain(tokens);
    return true;
}

/* Writes down what has been read. */
static bool add_tokens(rapt_gpt_cache *cache, const rapt_tensor *tokens)
{
    const int64_t end = cache->length + rapt_size(tokens, 1);
    if (cache->length == 0) {
        rapt_release(cache->tokens);
        cache->tokens =
            rapt_retain(rapt_empty(RAPT_INT64, RAPT_SHAPE(rapt_size(tokens, 0), cache->gpt->config.context)));
    }
    if (!cache->tokens || !rapt_copy(rapt_slice(cache->tokens, 1, cache->length, end, 1), tokens)) return false;
    cache->length = end;
    return true;
}

/* Reads tokens (B, T) → logits (B, T, vocabulary), or of the last position only (B, vocabulary). */
static rapt_tensor *read_tokens(rapt_gpt_cache *cache, rapt_tensor *tokens, bool last)
{
    RAPT_SCOPE;
    rapt_tensor *states = rapt_gpt_states(cache->gpt, tokens, cache->length, cache->blocks);
    rapt_tensor *logits = rapt_gpt_logits(cache->gpt, states && last ? rapt_select(states, 1, -1) : states);
    if (logits && add_tokens(cache, tokens)) return rapt_keep(logits);
    for (int i = 0; i < cache->gpt->config.layers; i++) rapt_attention_cache_return(&cache->blocks[i], cache->length);
    return NULL;
}

rapt_tensor *rapt_gpt_forward(rapt_gpt *gpt, rapt_tensor *tokens, rapt_gpt_cache *cache)
{
    RAPT_UNDO_DRAWS;
    if (cache && gpt && cache->gpt != gpt) {
        rapt_fail(RAPT_ERROR_VALUE, op, "the cache belongs to another model");
        return NULL;
    }
    if (cache && gpt) return read_tokens(cache, tokens, false);
    RAPT_SCOPE;
    return rapt_keep(rapt_gpt_logits(gpt, rapt_gpt_states(gpt, tokens, 0, NULL)));
}

/* --- generation --- */

/* The latter half of a context, out of what was read and what is new; the cache is empty then. */
static rapt_tensor *begin_anew(rapt_gpt_cache *cache, rapt_tensor *tokens)
{
    const int64_t half = cache->gpt->config.context / 2, kept = half > 0 ? half : 1;
    if (cache->length > 0) {
        rapt_tensor *parts[] = {rapt_slice(cache->tokens, 1, 0, cache->length, 1), rapt_cast(tokens, RAPT_INT64)};
        tokens = rapt_concat(2, parts, 1);
        if (!tokens) return NULL;
        rapt_gpt_cache_clear(cache);
    }
    const int64_t length = rapt_size(tokens, 1);
    return rapt_slice(tokens, 1, length - kept, length, 1);
}

static rapt_tensor *next(void *context, rapt_tensor *tokens)
{
    rapt_gpt_cache *cache = context;
    RAPT_SCOPE;
    if (cache->length + rapt_size(tokens, 1) > cache->gpt->config.context) tokens = begin_anew(cache, tokens);
    return tokens ? rapt_keep(read_tokens(cache, tokens, true)) : NULL;
}

static bool choose(void *context, rapt_tensor *rows)
{
    return rapt_gpt_cache_select(context, rows);
}

rapt_token_model rapt_gpt_token_model(rapt_gpt_cache *cache)
{
    if (!cache) rapt_fail(RAPT_ERROR_NULL, op, "the cache is NULL");
    return cache ? (rapt_token_model){.context = cache, .next = next, .select = choose} : (rapt_token_model){0};
}
