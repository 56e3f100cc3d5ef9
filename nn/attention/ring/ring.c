/* Which rows of a sequence a rank has, and what a mask says of them. */
#include "ring.h"

#include "autograd/meeting.h"
#include "nn/padding.h"

static int64_t begin_of(const rapt_ring *ring, int64_t block)
{
    const int64_t blocks = 2 * (int64_t)ring->ranks;
    return ring->length / blocks * block + ring->length % blocks * block / blocks;
}

int64_t rapt_ring_longest_block(const rapt_ring *ring)
{
    const int64_t blocks = 2 * (int64_t)ring->ranks;
    return ring->length / blocks + (ring->length % blocks > 0);
}

rapt_ring_run rapt_ring_block(const rapt_ring *ring, int rank, int half)
{
    const int64_t mirror = 2 * (int64_t)ring->ranks - 1 - rank, block = half == 0 ? rank : mirror;
    const int64_t first = begin_of(ring, block);
    return (rapt_ring_run){.first = first,
                           .count = begin_of(ring, block + 1) - first,
                           .row = half == 0 ? 0 : begin_of(ring, (int64_t)rank + 1) - begin_of(ring, rank)};
}

static bool check(const char *op, const rapt_ring *ring)
{
    if (!ring) return rapt_fail(RAPT_ERROR_NULL, op, "ring is NULL");
    const bool fits = ring->ranks > 0 && ring->rank >= 0 && ring->rank < ring->ranks && ring->length >= 0;
    return fits || rapt_fail(RAPT_ERROR_VALUE, op, "rank %d of %d has a part of a sequence of %lld", ring->rank,
                             ring->ranks, (long long)ring->length);
}

int64_t rapt_ring_count(const rapt_ring *ring)
{
    if (!check("ring_count", ring)) return 0;
    return rapt_ring_block(ring, ring->rank, 0).count + rapt_ring_block(ring, ring->rank, 1).count;
}

rapt_tensor *rapt_ring_places(const rapt_ring *ring)
{
    const char *op = "ring_places";
    if (!check(op, ring)) return NULL;
    rapt_tensor *places = rapt_new(op, RAPT_INT64, RAPT_SHAPE(rapt_ring_count(ring)));
    if (!places) return NULL;
    for (int half = 0; half < 2; half++) {
        const rapt_ring_run block = rapt_ring_block(ring, ring->rank, half);
        int64_t *place = (int64_t *)(void *)places->data + block.row;
        for (int64_t i = 0; i < block.count; i++) place[i] = block.first + i;
    }
    return places;
}

/* --- meetings --- */

bool rapt_ring_agree(rapt_ring *ring, const char *op, bool good, const char *text)
{
    ring->meetings++;
    good = ring->agree(ring, op, good, text);
    if (!good) ring->failures++, rapt_failed_meetings++;
    return good;
}

bool rapt_ring_end_backward(void *ring, const char *op, bool good)
{
    return rapt_ring_agree(ring, op, good, NULL);
}

void rapt_ring_tell(rapt_ring *ring, const char *op, bool failed, int64_t before)
{
    if (ring && failed && ring->meetings == before) rapt_ring_agree(ring, op, false, NULL);
}

rapt_ring_call rapt_ring_begin(rapt_ring *ring)
{
    return (rapt_ring_call){ring, ring ? ring->failures : 0};
}

rapt_tensor *rapt_ring_end(const rapt_ring_call *call, const char *op, rapt_tensor *result)
{
    if (!call->ring) return result;
    if (call->ring->failures > call->failures) return NULL;
    return rapt_ring_agree(call->ring, op, result != NULL, NULL) ? result : NULL;
}

/* --- masks --- */

static const char *refused_field(const rapt_mask *mask)
{
    if (mask->starts || mask->key_starts) return "starts; documents tell sequences of one row apart";
    if (mask->seen) return "seen";
    if (mask->bias) return "a bias";
    if (mask->rule.see || mask->rule.judge) return "a rule";
    if (mask->dilation > 1) return "dilation";
    return mask->fills_million ? "fills_million" : NULL;
}

/* bool (B, 1, own keys, 1): which of them may any query see, on whatever rank it is? NULL: all of them. Lengths of each
 * query are those of this rank's alone. */
static bool find_own_seen(const char *op, const rapt_mask *mask, rapt_dtype dtype, rapt_resolved_mask *r)
{
    const bool by_query = mask->valid_lengths && mask->valid_lengths->rank > 1;
    const rapt_mask lengths = {.valid_lengths = by_query ? NULL : mask->valid_lengths, .first_keys = mask->first_keys};
    rapt_resolved_mask of_any;
    rapt_tensor *seen;
    if (!rapt_resolve_mask(op, &lengths, dtype, r->batch, 1, 1, r->keys, &of_any) ||
        !rapt_find_seen_keys(&of_any, 1, &seen))
        return false;
    if (seen) r->own_seen = rapt_index_select(seen, 2, rapt_ring_places(r->ring));
    return !seen || r->own_seen;
}

bool rapt_ring_resolve_mask(const char *op, rapt_ring *ring, rapt_mask *mask, rapt_dtype dtype, int64_t batch,
                            int64_t heads, int64_t queries, int64_t own, rapt_resolved_mask *r)
{
    if (!check(op, ring)) return false;
    const char *refused = refused_field(mask);
    if (refused) return rapt_fail(RAPT_ERROR_UNSUPPORTED, op, "attention across ranks under a mask with %s", refused);
    const int64_t expected = rapt_ring_count(ring);
    if (own != expected)
        return rapt_fail(RAPT_ERROR_SHAPE, op, "%lld keys; the %lld of rank %d in a sequence of %lld expected",
                         (long long)own, (long long)expected, ring->rank, (long long)ring->length);
    if (!mask->query_places && queries != own)
        return rapt_fail(RAPT_ERROR_SHAPE, op,
                         "%lld queries and %lld keys, but no query_places that say where in the "
                         "whole sequence the queries stand",
                         (long long)queries, (long long)own);
    if (!mask->query_places && !(mask->query_places = rapt_ring_places(ring))) return false;
    if (!rapt_resolve_mask(op, mask, dtype, batch, heads, queries, ring->length, r)) return false;
    r->ring = ring;
    return find_own_seen(op, mask, dtype, r);
}
