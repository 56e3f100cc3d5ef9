/* Masks of packed sequences: what each query sees of its own one, and the padded batch that says the same. */
#include "packed.h"

#include <string.h>

#include "tensor/debug.h"
#include "tensor/packing.h"

typedef struct packings {
    rapt_raw_packing queries, keys;
} packings;

static bool read_packings(const char *op, const rapt_mask *mask, packings *p)
{
    if (!rapt_read_packing(op, mask->starts, &p->queries) ||
        !rapt_read_packing(op, mask->key_starts ? mask->key_starts : mask->starts, &p->keys))
        return false;
    return p->queries.sequences == p->keys.sequences ||
           rapt_fail(RAPT_ERROR_SHAPE, op, "%lld sequences of queries and %lld of keys; one number expected",
                     (long long)p->queries.sequences, (long long)p->keys.sequences);
}

static bool check(const char *op, const rapt_mask *mask, const packings *p, const rapt_resolved_mask *r)
{
    char text[128];
    const rapt_tensor *lengths = mask->valid_lengths, *prefixes = mask->prefix_lengths;
    const char *refused = mask->seen            ? "seen"
                          : mask->first_keys    ? "first_keys"
                          : mask->bias          ? "bias"
                          : mask->fills_million ? "fills_million"
                                                : NULL;
    if (refused)
        return rapt_fail(RAPT_ERROR_UNSUPPORTED, op,
                         "the mask has %s beside starts, which packed sequences cannot have", refused);
    if (r->batch != 1)
        return rapt_fail(RAPT_ERROR_SHAPE, op, "a batch of %lld beside starts; packed sequences have no axis for it",
                         (long long)r->batch);
    if (lengths && (lengths->rank != 1 || lengths->shape[0] != p->queries.sequences))
        return rapt_fail(RAPT_ERROR_SHAPE, op, "valid lengths (%lld) expected beside starts, not %s",
                         (long long)p->queries.sequences, rapt_describe(lengths, text, sizeof text));
    if (prefixes && (prefixes->rank != 1 || (prefixes->count != 1 && prefixes->count != p->queries.sequences)))
        return rapt_fail(RAPT_ERROR_SHAPE, op, "prefix lengths (%lld) or (1) expected beside starts, not %s",
                         (long long)p->queries.sequences, rapt_describe(prefixes, text, sizeof text));
    return rapt_check_packed_rows(op, "queries", &p->queries, r->queries) &&
           rapt_check_packed_rows(op, "keys", &p->keys, r->keys);
}

/* Within a sequence they never fall. */
static bool check_documents(const char *op, const rapt_tensor *documents, const rapt_raw_packing *keys)
{
    const int64_t *document = rapt_integers_of(documents);
    for (int64_t b = 0; document && b < keys->sequences; b++)
        if (!rapt_check_documents(op, document + keys->starts[b], rapt_packed_length(keys, b), "sequence", b))
            return false;
    return true;
}

static int64_t keys_of(const rapt_mask *mask, const packings *p, int64_t sequence)
{
    const int64_t keys = rapt_packed_length(&p->keys, sequence);
    return mask->valid_lengths ? rapt_keys_below(rapt_at(mask->valid_lengths, &sequence), keys) : keys;
}

bool rapt_resolve_packing(const char *op, const rapt_mask *mask, rapt_resolved_mask *r)
{
    packings p;
    int64_t ends, pairs = 0, places;
    if (!read_packings(op, mask, &p) || !check(op, mask, &p, r)) return false;
    r->packed = true;
    r->sequences = p.queries.sequences;
    r->longest_queries = p.queries.longest;
    r->longest_keys = p.keys.longest;
    if (__builtin_mul_overflow(r->longest_queries, r->longest_keys, &places) ||
        __builtin_mul_overflow(places, r->sequences * r->heads, &places))
        return rapt_fail(RAPT_ERROR_MEMORY, op, "more pairs of queries and keys than 64 bits can count");
    rapt_tensor *documents = NULL;
    if (!rapt_read_integers(op, "documents", "K", mask->documents, r->keys, r, &documents) ||
        !rapt_read_integers(op, "query_places", "Q", mask->query_places, r->queries, r, &r->places) ||
        !check_documents(op, documents, &p.keys))
        return false;
    const int64_t *document = rapt_integers_of(documents), *place = rapt_integers_of(r->places);
    ends = 2 * r->queries;
    r->ranges = rapt_new(op, RAPT_INT64, RAPT_SHAPE(ends + 3 * (r->sequences + 1)));
    if (!r->ranges) return false;
    int64_t *range = (int64_t *)(void *)r->ranges->data, *start = range + ends;
    for (int64_t b = 0; b <= r->sequences; b++, start += 3) {
        start[0] = p.queries.starts[b];
        start[1] = p.keys.starts[b];
        start[2] = pairs;
        if (b == r->sequences) break;
        const int64_t queries = rapt_packed_length(&p.queries, b), length = keys_of(mask, &p, b);
        const int64_t prefix = rapt_mask_prefix(mask, b, length), keys = rapt_packed_length(&p.keys, b);
        pairs += queries * keys;
        for (int64_t query = 0; query < queries; query++, range += 2) {
            const int64_t stands = place ? place[start[0] + query] : rapt_mask_place(mask, query);
            rapt_mask_range(mask, stands, prefix, length, range);
            if (document) rapt_limit_to_document(document + start[1], keys, stands, range);
        }
    }
    return true;
}

/* (1, heads, rows, size) → (B, heads, longest, size), zeros behind each sequence; without the axis of heads too. */
static rapt_tensor *unpack(rapt_tensor *x, rapt_tensor *starts)
{
    if (!x) return NULL;
    const bool heads = x->rank == 4;
    rapt_tensor *rows = rapt_squeeze(heads ? rapt_permute(x, RAPT_AXES(0, 2, 1, 3)) : x, 0);
    rapt_tensor *padded = rapt_unpack(rows, starts, 0, 0);
    return heads ? rapt_permute(padded, RAPT_AXES(0, 2, 1, 3)) : padded;
}

rapt_tensor *rapt_pack_pooled(const rapt_mask *mask, rapt_tensor *pooled)
{
    if (!pooled) return NULL;
    const bool heads = pooled->rank == 4;
    rapt_tensor *rows = rapt_pack(heads ? rapt_permute(pooled, RAPT_AXES(0, 2, 1, 3)) : pooled, mask->starts);
    rows = rapt_unsqueeze(rows, 0);
    return heads ? rapt_permute(rows, RAPT_AXES(0, 2, 1, 3)) : rows;
}

/* Each sequence's own, then zeros. */
static bool pad_places(const rapt_resolved_mask *packed, rapt_resolved_mask *padded)
{
    if (!packed->places) return true;
    padded->places = rapt_zeros(RAPT_INT64, RAPT_SHAPE(packed->sequences, packed->longest_queries));
    if (!padded->places) return false;
    int64_t *to = (int64_t *)(void *)padded->places->data;
    const int64_t *from = rapt_integers_of(packed->places), *start = rapt_resolved_starts(packed);
    for (int64_t b = 0; b < packed->sequences; b++, start += 3, to += padded->queries)
        memcpy(to, from + start[0], (size_t)(start[3] - start[0]) * sizeof *to);
    return true;
}

/* The padded batch under the mask that the packed one was resolved to; what is behind a sequence sees nothing. */
static bool pad_resolved(const rapt_resolved_mask *packed, rapt_resolved_mask *padded)
{
    *padded = (rapt_resolved_mask){.batch = packed->sequences,
                                   .heads = packed->heads,
                                   .queries = packed->longest_queries,
                                   .keys = packed->longest_keys,
                                   .offset = packed->offset,
                                   .answers = packed->answers,
                                   .code = packed->code,
                                   .padding_is_zero = packed->padding_is_zero,
                                   .blind_is_zero = packed->blind_is_zero};
    padded->ranges = rapt_zeros(RAPT_INT64, RAPT_SHAPE(packed->sequences, packed->longest_queries, 2));
    if (!padded->ranges) return false;
    int64_t *to = (int64_t *)(void *)padded->ranges->data;
    const int64_t *from = (const int64_t *)(const void *)packed->ranges->data, *start = rapt_resolved_starts(packed);
    for (int64_t b = 0; b < packed->sequences; b++, start += 3, to += 2 * padded->queries)
        memcpy(to, from + 2 * start[0], (size_t)(2 * (start[3] - start[0])) * sizeof *to);
    memcpy(padded->captured, packed->captured, sizeof padded->captured);
    return pad_places(packed, padded);
}

/* The rows of a relative bias (…, rows, 2R + 1) go to their places; one that repeats for all queries stays. */
static bool unpack_relative_bias(const rapt_pooling *packed, rapt_mask *mask)
{
    rapt_tensor *bias = mask->relative_bias;
    if (!bias || bias->rank < 2 || bias->shape[bias->rank - 2] == 1) return true;
    rapt_tensor *resolved = packed->resolved.relative_bias; /* (1, heads, rows, 2R + 1) */
    mask->relative_bias = unpack(packed->queries->rank == 4 ? resolved : rapt_squeeze(resolved, 1), mask->starts);
    return mask->relative_bias != NULL;
}

/* (B, longest): how many keys a query may see; none for what is behind a sequence. */
static rapt_tensor *padded_lengths(const rapt_mask *mask, const packings *p)
{
    rapt_tensor *lengths = rapt_zeros(RAPT_INT64, RAPT_SHAPE(p->queries.sequences, p->queries.longest));
    if (!lengths) return NULL;
    int64_t *length = (int64_t *)(void *)lengths->data;
    for (int64_t b = 0; b < p->queries.sequences; b++)
        for (int64_t query = 0; query < rapt_packed_length(&p->queries, b); query++)
            length[b * p->queries.longest + query] = keys_of(mask, p, b);
    return lengths;
}

/* (B, longest): behind a sequence is another document. */
static rapt_tensor *pad_documents(const rapt_mask *mask, const packings *p)
{
    RAPT_NO_GRADIENT;
    const int64_t sequences = p->keys.sequences, longest = p->keys.longest;
    const rapt_tensor *documents = rapt_contiguous(rapt_cast(mask->documents, RAPT_INT64));
    rapt_tensor *padded = rapt_new("mask", RAPT_INT64, RAPT_SHAPE(sequences, longest));
    if (!documents || !padded) return NULL;
    int64_t *to = (int64_t *)(void *)padded->data;
    for (int64_t b = 0; b < sequences; b++)
        for (int64_t key = 0; key < longest; key++)
            *to++ = key < rapt_packed_length(&p->keys, b) ? rapt_integers_of(documents)[p->keys.starts[b] + key]
                                                          : INT64_MAX;
    return padded;
}

bool rapt_unpack_pooling(const char *op, const rapt_pooling *packed, rapt_pooling *padded)
{
    const rapt_mask *mask = &packed->mask;
    rapt_tensor *key_starts = mask->key_starts ? mask->key_starts : mask->starts;
    packings p;
    *padded = *packed;
    if (!read_packings(op, mask, &p) || !pad_resolved(&packed->resolved, &padded->resolved)) return false;
    padded->queries = unpack(packed->queries, mask->starts);
    padded->keys = unpack(packed->keys, key_starts);
    padded->values = unpack(packed->values, key_starts);
    padded->mask.valid_lengths = padded_lengths(mask, &p);
    if (!padded->queries || !padded->keys || !padded->values || !padded->mask.valid_lengths ||
        !unpack_relative_bias(packed, &padded->mask))
        return false;
    padded->mask.starts = padded->mask.key_starts = NULL;
    padded->mask.query_places = padded->resolved.places;
    if (mask->documents && !(padded->mask.documents = pad_documents(mask, &p))) return false;
    rapt_tensor *bias = padded->mask.relative_bias;
    return !bias || rapt_resolve_relative_bias(op, bias, padded->queries->dtype, true, &padded->resolved);
}
