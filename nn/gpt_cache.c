/* What a GPT has read so far, and generation with it. */
#include <stdlib.h>
#include <string.h>

#include "attention_cache.h"
#include "gpt.h"
#include "nn/entry.h"
#include "tensor/packing.h"
#include "tensor/random.h"

static const char op[] = "GPT";

struct rapt_gpt_cache {
    rapt_gpt *gpt;
    int64_t length;
    /* int64 (B, capacity), the first `length` of each row filled, but for those that an item misses; NULL when empty */
    rapt_tensor *tokens;
    rapt_attention_cache blocks[]; /* one for each, and as many spare ones, empty between calls */
};

rapt_gpt_cache *rapt_gpt_cache_new(rapt_gpt *gpt)
{
    if (!gpt) {
        rapt_fail(RAPT_ERROR_NULL, op, "the model is NULL");
        return NULL;
    }
    if (rapt_was_freed(op, gpt)) return NULL;
    rapt_gpt_cache *cache = calloc(1, sizeof *cache + 2 * (size_t)gpt->config.layers * sizeof *cache->blocks);
    if (cache)
        cache->gpt = gpt;
    else
        rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for a cache");
    return cache;
}

static rapt_attention_cache *spare_blocks(rapt_gpt_cache *cache)
{
    return cache->blocks + cache->gpt->config.layers;
}

/* The blocks become spare, and the spare ones the blocks. */
static void exchange_blocks(rapt_gpt_cache *cache)
{
    rapt_attention_cache *spare = spare_blocks(cache);
    for (int i = 0; i < cache->gpt->config.layers; i++) {
        const rapt_attention_cache block = cache->blocks[i];
        cache->blocks[i] = spare[i];
        spare[i] = block;
    }
}

/* All blocks, or all spare ones. */
static void clear_all(const rapt_gpt_cache *cache, rapt_attention_cache *blocks)
{
    for (int i = 0; i < cache->gpt->config.layers; i++) rapt_attention_cache_clear(&blocks[i]);
}

void rapt_gpt_cache_clear(rapt_gpt_cache *cache)
{
    if (!cache || rapt_was_freed("gpt_cache_clear", cache)) return;
    clear_all(cache, cache->blocks);
    rapt_release(cache->tokens);
    cache->tokens = NULL;
    cache->length = 0;
}

void rapt_gpt_cache_free(rapt_gpt_cache *cache)
{
    if (rapt_was_freed("gpt_cache_free", cache)) return;
    rapt_gpt_cache_clear(cache);
    rapt_free_object(cache, "GPT's cache");
}

int64_t rapt_gpt_cache_length(const rapt_gpt_cache *cache)
{
    if (!cache) rapt_fail(RAPT_ERROR_NULL, op, "the cache is NULL");
    return cache && !rapt_was_freed(op, cache) ? cache->length : 0;
}

bool rapt_gpt_cache_select(rapt_gpt_cache *cache, rapt_tensor *rows)
{
    if (!cache || !rows) return rapt_fail(RAPT_ERROR_NULL, op, cache ? "the rows are NULL" : "the cache is NULL");
    if (rapt_was_freed(op, cache)) return false;
    if (!cache->tokens) return true;
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_attention_cache *selected = spare_blocks(cache);
    rapt_tensor *tokens = rapt_index_select(rapt_slice(cache->tokens, 1, 0, cache->length, 1), 0, rows);
    bool good = tokens != NULL;
    for (int i = 0; i < cache->gpt->config.layers && good; i++) {
        selected[i] = rapt_attention_cache_share(&cache->blocks[i]);
        good = rapt_attention_cache_select(&selected[i], rows);
    }
    if (good) exchange_blocks(cache);
    clear_all(cache, selected);
    if (!good) return false;
    rapt_release(cache->tokens);
    cache->tokens = rapt_retain(tokens);
    return true;
}

/* Writes down what has been read. */
static bool add_tokens(rapt_gpt_cache *cache, const rapt_tensor *tokens)
{
    const int64_t end = cache->length + rapt_size(tokens, 1);
    const int64_t capacity = cache->length > 0 ? rapt_size(cache->tokens, 1) : 0;
    if (end > capacity) { /* which doubles, and may pass the context, which a program may raise */
        rapt_tensor *larger =
            rapt_empty(RAPT_INT64, RAPT_SHAPE(rapt_size(tokens, 0), 2 * capacity > end ? 2 * capacity : end));
        if (!larger || (cache->length > 0 && !rapt_copy(rapt_slice(larger, 1, 0, cache->length, 1),
                                                        rapt_slice(cache->tokens, 1, 0, cache->length, 1))))
            return false;
        rapt_release(cache->tokens);
        cache->tokens = rapt_retain(larger);
    }
    if (!rapt_copy(rapt_slice(cache->tokens, 1, cache->length, end, 1), tokens)) return false;
    cache->length = end;
    return true;
}

/* An error while something was read: the blocks hold what they held. */
static rapt_tensor *give_back(rapt_gpt_cache *cache)
{
    for (int i = 0; i < cache->gpt->config.layers; i++) rapt_attention_cache_return(&cache->blocks[i], cache->length);
    return NULL;
}

/* Reads tokens (B, T) → logits (B, T, vocabulary), or of the last position only (B, vocabulary). */
static rapt_tensor *read_tokens(rapt_gpt_cache *cache, rapt_tensor *tokens, bool last)
{
    RAPT_SCOPE;
    rapt_tensor *states = rapt_gpt_states(cache->gpt, tokens, cache->length, cache->blocks);
    rapt_tensor *logits = rapt_gpt_logits(cache->gpt, states && last ? rapt_select(states, 1, -1) : states);
    return logits && add_tokens(cache, tokens) ? rapt_keep(logits) : give_back(cache);
}

/* Packed tokens as a batch (B, longest) whose sequences end at one place. */
static rapt_tensor *align_at_end(const rapt_tensor *tokens, const rapt_raw_packing *p)
{
    rapt_tensor *all = rapt_zeros(RAPT_INT64, RAPT_SHAPE(p->sequences, p->longest));
    const int64_t *token = rapt_data(tokens);
    int64_t *to = all ? rapt_data_for_writing(all) : NULL;
    for (int64_t b = 0; to && b < p->sequences; b++)
        for (int64_t i = 0; i < rapt_packed_length(p, b); i++)
            to[(b + 1) * p->longest - rapt_packed_length(p, b) + i] = token[p->starts[b] + i];
    return all;
}

/* Reads packed tokens into the empty cache → logits of the last of each sequence (B, vocabulary). */
static rapt_tensor *read_packed(rapt_gpt_cache *cache, rapt_tensor *tokens, rapt_tensor *starts)
{
    rapt_raw_packing p;
    RAPT_SCOPE;
    if (!rapt_read_packing(op, starts, &p)) return NULL;
    tokens = rapt_contiguous(rapt_cast(tokens, RAPT_INT64));
    rapt_tensor *states = rapt_gpt_packed_states(cache->gpt, tokens, starts, cache->blocks);
    rapt_tensor *last = states ? rapt_empty(RAPT_INT64, RAPT_SHAPE(p.sequences)) : NULL;
    int64_t *row = last ? rapt_data_for_writing(last) : NULL;
    for (int64_t b = 0; row && b < p.sequences; b++) row[b] = p.starts[b + 1] - 1;
    rapt_tensor *logits = last ? rapt_gpt_logits(cache->gpt, rapt_index_select(states, 0, last)) : NULL;
    rapt_tensor *aligned = logits ? align_at_end(tokens, &p) : NULL;
    return aligned && add_tokens(cache, aligned) ? rapt_keep(logits) : give_back(cache);
}

rapt_tensor *rapt_gpt_forward(rapt_gpt *gpt, rapt_tensor *tokens, rapt_gpt_cache *cache)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((rapt_module *)gpt);
    if (rapt_was_freed(op, cache)) return NULL;
    if (cache && gpt && cache->gpt != gpt) {
        rapt_fail(RAPT_ERROR_VALUE, op, "the cache belongs to another model");
        return NULL;
    }
    RAPT_SCOPE;
    const rapt_ring_call across = rapt_gpt_begin(gpt);
    rapt_tensor *logits =
        cache && gpt ? read_tokens(cache, tokens, false) : rapt_gpt_logits(gpt, rapt_gpt_states(gpt, tokens, 0, NULL));
    return rapt_keep(rapt_gpt_end(&across, logits));
}

/* --- generation --- */

/* All that was read, and what is new: (B, length). */
static rapt_tensor *join_tokens(const rapt_gpt_cache *cache, rapt_tensor *tokens)
{
    tokens = rapt_cast(tokens, RAPT_INT64);
    if (cache->length == 0) return tokens;
    rapt_tensor *parts[] = {rapt_slice(cache->tokens, 1, 0, cache->length, 1), tokens};
    return rapt_concat(2, parts, 1);
}

/* How many tokens an item goes on with whose text has grown to `length`: the latter half of a context, if it is too
 * long. */
static int64_t kept_of(const rapt_gpt *gpt, int64_t length)
{
    const int64_t half = gpt->config.context / 2;
    return length <= gpt->config.context ? length : half > 0 ? half : 1;
}

static bool check_begin(const rapt_gpt_cache *cache, const rapt_tensor *tokens, const rapt_raw_packing *p)
{
    char text[128];
    if (!tokens) return rapt_fail_null(op, "tokens");
    if (cache->length > 0)
        return rapt_fail(RAPT_ERROR_UNSUPPORTED, op,
                         "the cache holds %lld tokens; packed prompts begin with an empty one",
                         (long long)cache->length);
    if (rapt_rank(tokens) != 1 || !rapt_is_integer(tokens))
        return rapt_fail(RAPT_ERROR_SHAPE, op, "packed tokens (rows) of integers expected, not %s",
                         rapt_describe(tokens, text, sizeof text));
    const int64_t empty = rapt_find_empty_sequence(p);
    if (empty >= 0)
        return rapt_fail(RAPT_ERROR_VALUE, op, "sequence %lld is empty; 1 token or more expected", (long long)empty);
    return rapt_check_packed_rows(op, "tokens", p, rapt_count(tokens));
}

/* What is too long for a context goes on with its latter half. */
static rapt_tensor *begin_packed(void *context, rapt_tensor *tokens, rapt_tensor *starts)
{
    RAPT_UNDO_DRAWS;
    rapt_gpt_cache *cache = context;
    rapt_raw_packing p;
    if (rapt_was_freed(op, cache)) return NULL;
    RAPT_ENTER((rapt_module *)cache->gpt);
    RAPT_SCOPE;
    if (!rapt_read_packing(op, starts, &p) || !check_begin(cache, tokens, &p)) return NULL;
    rapt_tensor *lengths = rapt_empty(RAPT_INT64, RAPT_SHAPE(p.sequences)),
                *parts = rapt_contiguous(rapt_cast(tokens, RAPT_INT64));
    rapt_tensor *kept = parts ? rapt_empty(RAPT_INT64, RAPT_SHAPE(rapt_count(parts))) : NULL;
    int64_t *length = lengths ? rapt_data_for_writing(lengths) : NULL, *to = kept ? rapt_data_for_writing(kept) : NULL;
    if (!length || !to) return NULL;
    const int64_t *from = rapt_data(parts);
    int64_t rows = 0;
    for (int64_t b = 0; b < p.sequences; rows += length[b++]) {
        length[b] = kept_of(cache->gpt, rapt_packed_length(&p, b));
        memcpy(to + rows, from + p.starts[b + 1] - length[b], (size_t)length[b] * sizeof *to);
    }
    return rapt_keep(read_packed(cache, rapt_slice(kept, 0, 0, rows, 1), rapt_packing_starts(lengths)));
}

/* Reads tokens (B, T), or packed ones with starts, in the place of all that was read, which stays if that fails. */
static rapt_tensor *read_instead(rapt_gpt_cache *cache, rapt_tensor *tokens, rapt_tensor *starts)
{
    rapt_tensor *tokens_before = cache->tokens;
    const int64_t length_before = cache->length;
    exchange_blocks(cache);
    cache->tokens = NULL;
    cache->length = 0;
    rapt_tensor *logits = starts ? begin_packed(cache, tokens, starts) : read_tokens(cache, tokens, true);
    if (logits) {
        rapt_release(tokens_before);
    } else {
        exchange_blocks(cache);
        rapt_release(cache->tokens);
        cache->tokens = tokens_before;
        cache->length = length_before;
    }
    clear_all(cache, spare_blocks(cache));
    return logits;
}

/* Begins anew with what each item keeps. */
static rapt_tensor *read_anew(rapt_gpt_cache *cache, rapt_tensor *tokens)
{
    rapt_tensor *all = rapt_contiguous(join_tokens(cache, tokens)), *missing = cache->blocks[0].missing;
    if (!all) return NULL;
    const int64_t batch = rapt_size(all, 0), length = rapt_size(all, 1);
    if (!missing) {
        const int64_t kept = kept_of(cache->gpt, length);
        return read_instead(cache, rapt_slice(all, 1, length - kept, length, 1), NULL);
    }
    rapt_tensor *lengths = rapt_empty(RAPT_INT64, RAPT_SHAPE(batch)),
                *sequences = rapt_empty(RAPT_INT64, RAPT_SHAPE(batch * length));
    int64_t *grown = lengths ? rapt_data_for_writing(lengths) : NULL, rows = 0;
    int64_t *to = sequences ? rapt_data_for_writing(sequences) : NULL;
    const int64_t *from = rapt_data(all), *missed = rapt_data(missing);
    if (!grown || !to || !missed) return NULL;
    for (int64_t b = 0; b < batch; rows += grown[b++]) {
        grown[b] = length - missed[b];
        memcpy(to + rows, from + b * length + missed[b], (size_t)grown[b] * sizeof *to);
    }
    rapt_tensor *starts = rapt_packing_starts(lengths);
    return starts ? read_instead(cache, rapt_slice(sequences, 0, 0, rows, 1), starts) : NULL;
}

static bool check_next(const rapt_gpt_cache *cache, const rapt_tensor *tokens)
{
    if (!tokens) return rapt_fail_null(op, "tokens");
    if (!rapt_gpt_check_tokens(tokens)) return false;
    const int64_t batch = rapt_size(tokens, 0), held = cache->length > 0 ? rapt_size(cache->tokens, 0) : batch;
    return batch == held || rapt_fail(RAPT_ERROR_SHAPE, op, "tokens of %lld sequences after those of %lld in the cache",
                                      (long long)batch, (long long)held);
}

static rapt_tensor *next(void *context, rapt_tensor *tokens)
{
    RAPT_UNDO_DRAWS;
    rapt_gpt_cache *cache = context;
    if (rapt_was_freed(op, cache)) return NULL;
    RAPT_ENTER((rapt_module *)cache->gpt);
    if (!check_next(cache, tokens)) return NULL;
    RAPT_SCOPE;
    const bool overflows = cache->length + rapt_size(tokens, 1) > cache->gpt->config.context;
    return rapt_keep(overflows ? read_anew(cache, tokens) : read_tokens(cache, tokens, true));
}

static bool choose(void *context, rapt_tensor *rows)
{
    return rapt_gpt_cache_select(context, rows);
}

rapt_token_model rapt_gpt_token_model(rapt_gpt_cache *cache)
{
    if (!cache) rapt_fail(RAPT_ERROR_NULL, op, "the cache is NULL");
    return cache ? (rapt_token_model){.context = cache, .next = next, .select = choose, .begin_packed = begin_packed}
                 : (rapt_token_model){0};
}
