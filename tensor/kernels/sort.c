/* Sorting along one axis: elements become keys whose bits are in the order asked for, which are sorted by digits. */
#include <string.h>

#include "loop.h"

enum { digit_bits = 8, digit_values = 1 << digit_bits, few_items = 48 };

typedef struct short_item {
    uint32_t key, index;
} short_item;

static inline uint32_t key_of_float32(float a)
{
    const float number = a == 0 ? 0 : a; /* −0 becomes 0, whatever rounding is */
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return a != a ? UINT32_MAX : bits ^ ((uint32_t)((int32_t)bits >> 31) | UINT32_C(1) << 31);
}

static inline uint64_t key_of_float64(double a)
{
    const double number = a == 0 ? 0 : a;
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return a != a ? UINT64_MAX : bits ^ ((uint64_t)((int64_t)bits >> 63) | UINT64_C(1) << 63);
}

static inline uint64_t key_of_int64(int64_t a)
{
    return (uint64_t)a ^ UINT64_C(1) << 63;
}

static inline uint32_t key_of_int32(int32_t a)
{
    return (uint32_t)a ^ UINT32_C(1) << 31;
}

static inline uint32_t key_of_uint8(uint8_t a)
{
    return a;
}

/* Items by their keys, equal ones in the order that they have. The result stands in one of the two arrays. */
#define SORT_ITEMS(item, digits)                                                                                       \
    static inline int digit_of_##item(item i, int digit)                                                               \
    {                                                                                                                  \
        return (int)(i.key >> (digit * digit_bits) & (digit_values - 1));                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void sort_few_##item(item *items, int64_t count)                                                            \
    {                                                                                                                  \
        for (int64_t i = 1; i < count; i++) {                                                                          \
            const item moved = items[i];                                                                               \
            int64_t to = i;                                                                                            \
            for (; to > 0 && items[to - 1].key > moved.key; to--) items[to] = items[to - 1];                           \
            items[to] = moved;                                                                                         \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static item *sort_##item(item *from, item *to, int64_t count)                                                      \
    {                                                                                                                  \
        uint32_t places[digits][digit_values];                                                                         \
        if (count <= few_items) {                                                                                      \
            sort_few_##item(from, count);                                                                              \
            return from;                                                                                               \
        }                                                                                                              \
        memset(places, 0, sizeof places);                                                                              \
        for (int64_t i = 0; i < count; i++)                                                                            \
            for (int digit = 0; digit < digits; digit++) places[digit][digit_of_##item(from[i], digit)]++;             \
        for (int digit = 0; digit < digits; digit++) {                                                                 \
            uint32_t *place = places[digit], before = 0;                                                               \
            if (place[digit_of_##item(from[0], digit)] == count) continue; /* the same in all */                       \
            for (int value = 0; value < digit_values; value++) {                                                       \
                const uint32_t number = place[value];                                                                  \
                place[value] = before;                                                                                 \
                before += number;                                                                                      \
            }                                                                                                          \
            for (int64_t i = 0; i < count; i++) to[place[digit_of_##item(from[i], digit)]++] = from[i];                \
            item *sorted = to;                                                                                         \
            to = from;                                                                                                 \
            from = sorted;                                                                                             \
        }                                                                                                              \
        return from;                                                                                                   \
    }

SORT_ITEMS(short_item, 4)
SORT_ITEMS(rapt_sort_item, 8)

/* Once there are too many items, the best are kept; after them only what has a lower key can be among the best. */
#define SORT(T, dtype, item, K)                                                                                        \
    static void read_keys_##dtype(const char *in, int64_t stride, int64_t size, K flip, K *keys)                       \
    {                                                                                                                  \
        if (stride == sizeof(T) && size == rapt_sort_block) {                                                          \
            const T *dense = (const T *)(const void *)in;                                                              \
            RAPT_SIMD for (int i = 0; i < rapt_sort_block; i++) keys[i] = key_of_##dtype(dense[i]) ^ flip;             \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < size; i++)                                                                             \
            keys[i] = key_of_##dtype(*(const T *)(const void *)(in + i * stride)) ^ flip;                              \
        for (int64_t i = size; i < rapt_sort_block; i++) keys[i] = (K)-1;                                              \
    }                                                                                                                  \
                                                                                                                       \
    static bool has_lower_##dtype(const K *keys, K bound)                                                              \
    {                                                                                                                  \
        K lower = 0;                                                                                                   \
        for (int i = 0; i < rapt_sort_block; i++) lower |= keys[i] < bound;                                            \
        return lower;                                                                                                  \
    }                                                                                                                  \
                                                                                                                       \
    static void sort_##dtype(const rapt_sort_options *o, const char *in, char *values, char *indices, void *room)      \
    {                                                                                                                  \
        const int64_t capacity = rapt_sort_held(o->count, o->wanted);                                                  \
        const K flip = o->descending ? (K)-1 : 0;                                                                      \
        item *items = room, *others = items + capacity;                                                                \
        K keys[rapt_sort_block], bound = 0;                                                                            \
        bool all = true;                                                                                               \
        int64_t held = 0;                                                                                              \
        for (int64_t first = 0; first < o->count; first += rapt_sort_block) {                                          \
            const int64_t size = o->count - first < rapt_sort_block ? o->count - first : rapt_sort_block;              \
            read_keys_##dtype(in + first * o->in_stride, o->in_stride, size, flip, keys);                              \
            if (!all && !has_lower_##dtype(keys, bound)) continue;                                                     \
            if (held + size > capacity) {                                                                              \
                item *sorted = sort_##item(items, others, held);                                                       \
                others = sorted == items ? others : items;                                                             \
                items = sorted;                                                                                        \
                held = o->wanted;                                                                                      \
                bound = items[held - 1].key;                                                                           \
                all = false;                                                                                           \
            }                                                                                                          \
            for (int64_t i = 0; i < size; i++) {                                                                       \
                items[held] = (item){keys[i], (uint32_t)(first + i)};                                                  \
                held += all || keys[i] < bound;                                                                        \
            }                                                                                                          \
        }                                                                                                              \
        const item *sorted = sort_##item(items, others, held);                                                         \
        for (int64_t i = 0; i < o->wanted; i++) {                                                                      \
            *(int64_t *)(void *)(indices + i * o->index_stride) = sorted[i].index;                                     \
            if (values)                                                                                                \
                *(T *)(void *)(values + i * o->value_stride) =                                                         \
                    *(const T *)(const void *)(in + sorted[i].index * o->in_stride);                                   \
        }                                                                                                              \
    }

SORT(float, float32, short_item, uint32_t)
SORT(double, float64, rapt_sort_item, uint64_t)
SORT(int64_t, int64, rapt_sort_item, uint64_t)
SORT(int32_t, int32, short_item, uint32_t)
SORT(uint8_t, uint8, short_item, uint32_t)

void RAPT_AT_LEVEL(rapt_fill_sort)(rapt_kernels *kernels)
{
    kernels->sort = (rapt_sort_kernels){.sort = RAPT_FULL_ROW(sort)};
}
