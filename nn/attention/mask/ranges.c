/* What lengths and rules of a mask leave to each query: a range of keys. */
#include <math.h>

#include "nn/mask.h"
#include "tensor/debug.h"

/* a + b, or the end of int64 that it overflows. */
static int64_t add(int64_t a, int64_t b)
{
    int64_t sum;
    if (!__builtin_add_overflow(a, b, &sum)) return sum;
    return b > 0 ? INT64_MAX : INT64_MIN;
}

static int64_t within(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* Leaves of a range what is in [first, last) too. */
static void limit(int64_t range[2], int64_t first, int64_t last)
{
    range[1] = within(last, range[0], range[1]);
    range[0] = within(first, range[0], range[1]);
}

int64_t rapt_keys_below(double length, int64_t keys)
{
    if (!(length > 0)) return 0;
    return length >= (double)keys ? keys : (int64_t)ceil(length);
}

int64_t rapt_mask_place(const rapt_mask *mask, int64_t query)
{
    return add(query, mask->offset);
}

int64_t rapt_mask_prefix(const rapt_mask *mask, int64_t item, int64_t keys)
{
    const rapt_tensor *lengths = mask->prefix_lengths;
    if (!lengths) return 0;
    return rapt_keys_below(rapt_at(lengths, &(int64_t){lengths->count == 1 ? 0 : item}), keys);
}

static void limit_to_blocks(const rapt_mask *mask, int64_t place, int64_t range[2])
{
    int64_t before, beyond = place % mask->block;
    if (beyond < 0) beyond += mask->block;
    if (__builtin_mul_overflow(mask->blocks_before, mask->block, &before)) before = INT64_MAX;
    const int64_t start = add(place, -beyond);
    limit(range, add(start, -before), add(start, mask->block));
}

void rapt_mask_range(const rapt_mask *mask, int64_t place, int64_t prefix, int64_t length, int64_t range[2])
{
    const int64_t after = add(place, 1);
    range[0] = 0;
    range[1] = length;
    if (mask->causal) limit(range, 0, after > prefix ? after : prefix);
    if (mask->window > 0) limit(range, add(place, 1 - mask->window), add(place, mask->window));
    if (mask->window_left > 0) limit(range, add(place, 1 - mask->window_left), INT64_MAX);
    if (mask->window_right > 0) limit(range, 0, add(place, mask->window_right));
    if (mask->block > 0) limit_to_blocks(mask, place, range);
}

/* Does a rule hide keys that come before the query's place? */
static bool hides_before(const rapt_mask *mask)
{
    return mask->window > 0 || mask->window_left > 0 || mask->block > 0 || mask->documents;
}

/* Rules leave every query its own place, and places are neighbours, unless the mask gives them; but lengths of each
 * query may cut it off. */
bool rapt_ranges_may_leave_gaps(const rapt_mask *mask)
{
    const bool cuts = mask->valid_lengths && mask->valid_lengths->rank == 2;
    return hides_before(mask) && (cuts || mask->query_places);
}

bool rapt_read_integers(const char *op, const char *field, const char *axis, rapt_tensor *tensor, int64_t size,
                        const rapt_resolved_mask *r, rapt_tensor **read)
{
    char a[RAPT_SHAPE_TEXT], b[RAPT_SHAPE_TEXT];
    if (!tensor) return true;
    if (!rapt_is_integer(tensor))
        return rapt_fail(RAPT_ERROR_DTYPE, op, "the mask's %s are %s; int64 or int32 expected", field,
                         rapt_dtype_name(tensor->dtype));
    const bool by_item = tensor->rank == 2 && tensor->shape[0] != 1;
    const bool fits = (tensor->rank == 1 || tensor->rank == 2) && tensor->shape[tensor->rank - 1] == size &&
                      (!by_item || tensor->shape[0] == r->batch);
    if (!fits)
        return rapt_fail(RAPT_ERROR_SHAPE, op, "%s (%s), (1, %s) or (B, %s) expected for scores %s, not %s", field,
                         axis, axis, axis, rapt_scores_text(r, a), rapt_shape_text(tensor->rank, tensor->shape, b));
    RAPT_NO_GRADIENT;
    *read = rapt_contiguous(rapt_cast(tensor, RAPT_INT64));
    return *read != NULL;
}

static const int64_t *integers_of_item(const rapt_tensor *integers, int64_t item, int64_t size)
{
    return integers ? rapt_integers_of(integers) + item * rapt_integers_item(integers, size) : NULL;
}

bool rapt_check_documents(const char *op, const int64_t *documents, int64_t keys, const char *of, int64_t number)
{
    for (int64_t key = 1; key < keys; key++)
        if (documents[key] < documents[key - 1])
            return rapt_fail(RAPT_ERROR_VALUE, op,
                             "the mask's documents fall from %lld to %lld at key %lld of %s %lld; one document after "
                             "the other expected",
                             (long long)documents[key - 1], (long long)documents[key], (long long)key, of,
                             (long long)number);
    return true;
}

static bool check_documents(const char *op, const rapt_tensor *documents, const rapt_resolved_mask *r)
{
    const int64_t items = !documents ? 0 : rapt_integers_by_item(documents) ? r->batch : 1;
    for (int64_t item = 0; item < items; item++) {
        const int64_t *document = integers_of_item(documents, item, r->keys);
        if (!rapt_check_documents(op, document, r->keys, "item", item)) return false;
    }
    return true;
}

static bool check_numbers(const char *op, const rapt_mask *mask)
{
    const struct {
        const char *field;
        int64_t number;
    } numbers[] = {{"window", mask->window},
                   {"window_left", mask->window_left},
                   {"window_right", mask->window_right},
                   {"dilation", mask->dilation},
                   {"block", mask->block},
                   {"blocks_before", mask->blocks_before}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].number < 0)
            return rapt_fail(RAPT_ERROR_VALUE, op, "the mask's %s is %lld; 0 or more expected", numbers[i].field,
                             (long long)numbers[i].number);
    if (mask->blocks_before > 0 && mask->block == 0)
        return rapt_fail(RAPT_ERROR_VALUE, op, "the mask has blocks_before, but no block");
    return !mask->prefix_lengths || mask->causal ||
           rapt_fail(RAPT_ERROR_VALUE, op, "the mask has prefix_lengths, but is not causal");
}

static bool check_lengths(const char *op, const rapt_mask *mask, const rapt_resolved_mask *r)
{
    const rapt_tensor *lengths = mask->valid_lengths, *first = mask->first_keys, *prefixes = mask->prefix_lengths;
    const bool fits = !lengths || ((lengths->rank == 1 || lengths->rank == 2) && lengths->shape[0] == r->batch &&
                                   (lengths->rank == 1 || lengths->shape[1] == r->queries));
    char a[RAPT_SHAPE_TEXT], b[RAPT_SHAPE_TEXT];
    if (!fits)
        return rapt_fail(RAPT_ERROR_SHAPE, op, "valid lengths (B) or (B, Q) expected for scores %s, not %s",
                         rapt_scores_text(r, a), rapt_shape_text(lengths->rank, lengths->shape, b));
    if (first && (first->rank != 1 || first->shape[0] != r->batch))
        return rapt_fail(RAPT_ERROR_SHAPE, op, "first keys (B) expected for scores %s, not %s", rapt_scores_text(r, a),
                         rapt_shape_text(first->rank, first->shape, b));
    return !prefixes || (prefixes->rank == 1 && (prefixes->count == 1 || prefixes->count == r->batch)) ||
           rapt_fail(RAPT_ERROR_SHAPE, op, "prefix lengths (B) or (1) expected for scores %s, not %s",
                     rapt_scores_text(r, a), rapt_shape_text(prefixes->rank, prefixes->shape, b));
}

static bool read_rules(const char *op, const rapt_mask *mask, rapt_resolved_mask *r, rapt_tensor **documents)
{
    return check_lengths(op, mask, r) &&
           rapt_read_integers(op, "documents", "K", mask->documents, r->keys, r, documents) &&
           rapt_read_integers(op, "query_places", "Q", mask->query_places, r->queries, r, &r->places) &&
           check_documents(op, *documents, r);
}

/* How many of the documents, which never fall, come before that one. */
static int64_t count_before(const int64_t *documents, int64_t count, int64_t document)
{
    int64_t first = 0, last = count;
    while (first < last) {
        const int64_t middle = first + (last - first) / 2;
        if (documents[middle] < document)
            first = middle + 1;
        else
            last = middle;
    }
    return first;
}

void rapt_limit_to_document(const int64_t *documents, int64_t keys, int64_t place, int64_t range[2])
{
    if (place < 0 || place >= keys) {
        limit(range, 0, 0);
        return;
    }
    const int64_t document = documents[place], next = add(document, 1);
    limit(range, count_before(documents, keys, document), next > document ? count_before(documents, keys, next) : keys);
}

/* The ranges of an item's queries. */
static void find_ranges(const rapt_mask *mask, const rapt_tensor *all_documents, const rapt_resolved_mask *r,
                        int64_t item, int64_t *range)
{
    const rapt_tensor *lengths = mask->valid_lengths;
    const int64_t *documents = integers_of_item(all_documents, item, r->keys);
    const int64_t *places = integers_of_item(r->places, item, r->queries);
    const double first_key = mask->first_keys ? rapt_at(mask->first_keys, &item) : 0; /* NaN: no key is ≥ it */
    const int64_t first = isnan(first_key) ? r->keys : rapt_keys_below(first_key, r->keys);
    const int64_t prefix = rapt_mask_prefix(mask, item, r->keys);
    int64_t length = r->keys;
    for (int64_t query = 0; query < r->queries; query++, range += 2) {
        if (lengths && (query == 0 || lengths->rank == 2))
            length = rapt_keys_below(rapt_at(lengths, (int64_t[]){item, query}), r->keys);
        const int64_t place = places ? places[query] : rapt_mask_place(mask, query);
        rapt_mask_range(mask, place, prefix, length, range);
        if (documents) rapt_limit_to_document(documents, r->keys, place, range);
        limit(range, first, INT64_MAX);
    }
}

bool rapt_resolve_ranges(const char *op, const rapt_mask *mask, rapt_resolved_mask *r)
{
    rapt_tensor *documents = NULL;
    if (!check_numbers(op, mask)) return false;
    if (mask->starts) return rapt_resolve_packing(op, mask, r);
    if (!rapt_check_starts(op, mask) || !read_rules(op, mask, r, &documents)) return false;
    const bool has_lengths = mask->valid_lengths || mask->first_keys;
    if (!has_lengths && !mask->causal && mask->window_right == 0 && !hides_before(mask)) return true;
    const bool by_item = has_lengths || (mask->prefix_lengths && mask->prefix_lengths->count != 1) ||
                         rapt_integers_by_item(documents) || rapt_integers_by_item(r->places);
    const int64_t items = by_item ? r->batch : 1;
    rapt_tensor *ranges = rapt_new(op, RAPT_INT64, RAPT_SHAPE(items, r->queries, 2));
    if (!ranges) return false;
    int64_t *range = (int64_t *)(void *)ranges->data;
    bool all = true;
    for (int64_t item = 0; item < items; item++) find_ranges(mask, documents, r, item, range + 2 * item * r->queries);
    for (int64_t n = 0; all && n < items * r->queries; n++) all = range[2 * n] == 0 && range[2 * n + 1] == r->keys;
    if (!all) r->ranges = ranges;
    return true;
}
