/* The caching allocator: a steady program takes every block from a free list and the system is not asked again. */
#include "tensor/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tensor/debug.h"
#include "tensor/lock.h"
#include "tensor/thread.h"

/* Size classes: 64, 128, 192, 256, then four to each doubling, so that at most a fifth of a block is waste. */
enum { alignment = 64, steps_per_doubling = 4, class_count = 4 * 58 };

/* A thread keeps blocks of the small classes to itself, so many bytes of each, and exchanges batches with the
 * others. */
enum { private_classes = 64, private_bytes = 1 << 20, batch_bytes = 1 << 14 };

/* The statistics hear of what a thread takes and gives when so many bytes have come together, or when it asks. */
enum { uncounted_bytes = 1 << 16 };

/* What stands at the beginning of a free block. */
typedef struct free_block {
    struct free_block *next;
} free_block;

typedef struct block_cache {
    free_block *head[private_classes];
    size_t bytes[private_classes];
    int64_t uncounted, uncounted_peak; /* live bytes that live_bytes does not know of yet, and the most they were */
} block_cache;

RAPT_LOCK(shared_lock, MEMORY)
static free_block *shared_head[class_count];

static _Atomic int64_t live_bytes, peak_bytes, system_bytes, system_allocations;
static _Atomic int64_t fail_after = -1;

static int class_of(size_t bytes)
{
    size_t units = (bytes + alignment - 1) / alignment;
    if (units <= steps_per_doubling) return units == 0 ? 0 : (int)units - 1;
    int doubling =
        63 - __builtin_clzll((unsigned long long)(units - 1)); /* 2^doubling ≤ units − 1 < 2^(doubling + 1) */
    size_t step = (size_t)1 << (doubling - 2);
    size_t within = (units - 1 - ((size_t)1 << doubling)) / step;
    return (doubling - 1) * steps_per_doubling + (int)within;
}

static size_t class_size(int class)
{
    if (class < steps_per_doubling) return (size_t)(class + 1) * alignment;
    int doubling = class / steps_per_doubling + 1;
    size_t within = (size_t)(class % steps_per_doubling) + 1;
    return (((size_t)1 << doubling) + (within << (doubling - 2))) * alignment;
}

static void count_live(int64_t bytes, int64_t most)
{
    int64_t reached = atomic_fetch_add_explicit(&live_bytes, bytes, memory_order_relaxed) + most;
    int64_t peak = atomic_load_explicit(&peak_bytes, memory_order_relaxed);
    while (reached > peak && !atomic_compare_exchange_weak_explicit(&peak_bytes, &peak, reached, memory_order_relaxed,
                                                                    memory_order_relaxed)) {
    }
}

static void count_cache(block_cache *cache)
{
    count_live(cache->uncounted, cache->uncounted_peak);
    cache->uncounted = cache->uncounted_peak = 0;
}

static void count(block_cache *cache, int64_t bytes)
{
    if (!cache) {
        count_live(bytes, bytes > 0 ? bytes : 0);
        return;
    }
    cache->uncounted += bytes;
    if (cache->uncounted > cache->uncounted_peak) cache->uncounted_peak = cache->uncounted;
    if (cache->uncounted > uncounted_bytes || cache->uncounted < -uncounted_bytes) count_cache(cache);
}

static void free_thread_cache(void);

static RAPT_THREAD_LOCAL block_cache *this_cache;

static __attribute__((noinline)) block_cache *make_thread_cache(void)
{
    rapt_error_reserve();
    rapt_at_thread_end(RAPT_THREAD_BLOCKS, free_thread_cache);
    return this_cache = calloc(1, sizeof *this_cache);
}

/* NULL when there is no memory even for that. */
static inline block_cache *thread_cache(void)
{
    return this_cache ? this_cache : make_thread_cache();
}

static void push(free_block **head, free_block *block)
{
    rapt_allow(block, sizeof *block);
    block->next = *head;
    *head = block;
}

static free_block *pop(free_block **head)
{
    free_block *block = *head;
    if (block) *head = block->next;
    return block;
}

/* A block that others gave back; further ones of a small class move to the thread's cache. */
static free_block *take_shared(block_cache *cache, int class)
{
    size_t size = class_size(class);
    shared_lock_take();
    free_block *block = pop(&shared_head[class]);
    while (cache && class < private_classes && shared_head[class] && cache->bytes[class] + size <= batch_bytes) {
        push(&cache->head[class], pop(&shared_head[class]));
        cache->bytes[class] += size;
    }
    shared_lock_give();
    return block;
}

/* Half of what the thread holds of a full class. */
static void share_half(block_cache *cache, int class)
{
    size_t size = class_size(class);
    shared_lock_take();
    while (cache->bytes[class] > private_bytes / 2) {
        push(&shared_head[class], pop(&cache->head[class]));
        cache->bytes[class] -= size;
    }
    shared_lock_give();
}

static bool injected_failure(void)
{
    if (atomic_load_explicit(&fail_after, memory_order_relaxed) < 0) return false;
    int64_t left = atomic_load(&fail_after);
    if (left > 0) atomic_store(&fail_after, left - 1);
    return left == 0;
}

/* Large blocks on huge pages where the system has them: a tensor that is read across its rows touches a page a row. */
static void *allocate(size_t size)
{
    enum { huge_page = 2 << 20 };
    if (size < huge_page) return aligned_alloc(alignment, size);
    void *block = aligned_alloc(huge_page, (size + huge_page - 1) / huge_page * huge_page);
    if (block) madvise(block, size / huge_page * huge_page, MADV_HUGEPAGE); /* only advice: it may fail */
    return block;
}

/* A block from the other threads' or the system's memory. */
static __attribute__((noinline)) void *take_elsewhere(block_cache *cache, int class, size_t *capacity)
{
    const size_t size = class_size(class);
    void *block = take_shared(cache, class);
    if (!block) {
        block = allocate(size);
        if (!block) {
            rapt_memory_trim();
            cache = NULL; /* it is gone */
            block = allocate(size);
        }
        if (!block) return NULL;
        atomic_fetch_add_explicit(&system_allocations, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&system_bytes, (int64_t)size, memory_order_relaxed);
    }
    rapt_allow(block, size);
    count(cache, (int64_t)size);
    *capacity = size;
    return block;
}

/* In a steady program the thread has one of the class, and nobody else is asked. */
void *rapt_block_try(size_t bytes, size_t *capacity)
{
    *capacity = 0;
    if (bytes > SIZE_MAX / 4 || injected_failure()) return NULL;
    const int class = class_of(bytes);
    block_cache *cache = thread_cache();
    if (!cache || class >= private_classes || !cache->head[class]) return take_elsewhere(cache, class, capacity);
    const size_t size = class_size(class);
    void *block = pop(&cache->head[class]);
    cache->bytes[class] -= size;
    rapt_allow(block, size);
    count(cache, (int64_t)size);
    *capacity = size;
    return block;
}

void *rapt_block_take(const char *op, size_t bytes, size_t *capacity)
{
    void *block = rapt_block_try(bytes, capacity);
    if (!block) rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for %zu bytes", bytes);
    return block;
}

/* Keeps a block for reuse. */
static inline void cache_block(block_cache *cache, void *block, int class, size_t capacity)
{
    rapt_forbid((char *)block + sizeof(free_block), capacity - sizeof(free_block));
    if (cache && class < private_classes && capacity <= private_bytes / 2) {
        push(&cache->head[class], block);
        cache->bytes[class] += capacity;
        if (cache->bytes[class] > private_bytes) share_half(cache, class);
        return;
    }
    shared_lock_take();
    push(&shared_head[class], block);
    shared_lock_give();
}

void rapt_block_give_as_it_is(void *block, size_t capacity)
{
    if (!block) return;
    const int class = class_of(capacity);
    capacity = class_size(class); /* a caller may say what it asked for instead */
    block_cache *cache = thread_cache();
    count(cache, -(int64_t)capacity);
    if (!rapt_debugging) {
        cache_block(cache, block, class, capacity);
        return;
    }
    rapt_quarantine_add(block, capacity);
    for (void *old; (old = rapt_quarantine_take(false, &capacity));)
        cache_block(cache, old, class_of(capacity), capacity);
}

void rapt_block_give(void *block, size_t capacity)
{
    enum { nonsense = 0xff }; /* NaN, or −1 */
    if (block && rapt_debugging) {
        memset(block, nonsense, capacity);
        rapt_forbid(block, capacity);
    }
    rapt_block_give_as_it_is(block, capacity);
}

void *rapt_block_grow(const char *op, void *block, size_t *capacity, size_t used, size_t wanted)
{
    enum { least = 512 };
    size_t grown_capacity;
    if (block && wanted <= *capacity) return block;
    if (wanted < 2 * *capacity) wanted = 2 * *capacity;
    void *grown = rapt_block_take(op, wanted < least ? least : wanted, &grown_capacity);
    if (!grown) return NULL;
    if (used > 0) memcpy(grown, block, used);
    rapt_block_give(block, *capacity);
    *capacity = grown_capacity;
    return grown;
}

static void free_list(free_block **head, int class)
{
    for (free_block *block = pop(head); block; block = pop(head)) {
        rapt_allow(block, class_size(class));
        free(block);
        atomic_fetch_sub_explicit(&system_bytes, (int64_t)class_size(class), memory_order_relaxed);
    }
}

static void free_thread_cache(void)
{
    if (!this_cache) return;
    count_cache(this_cache);
    for (int class = 0; class < private_classes; class ++) free_list(&this_cache->head[class], class);
    free(this_cache);
    this_cache = NULL;
}

void rapt_memory_trim(void)
{
    size_t capacity;
    for (void *block; (block = rapt_quarantine_take(true, &capacity));)
        cache_block(NULL, block, class_of(capacity), capacity);
    free_thread_cache();
    shared_lock_take();
    for (int class = 0; class < class_count; class ++) free_list(&shared_head[class], class);
    shared_lock_give();
}

/* When the program ends, after its last thread did. */
static __attribute__((destructor(200))) void give_all_back(void)
{
    rapt_memory_trim();
}

void rapt_memory_fail_after(int64_t count)
{
    atomic_store(&fail_after, count);
}

rapt_memory_statistics rapt_memory_get_statistics(void)
{
    block_cache *cache = thread_cache();
    if (cache) count_cache(cache);
    int64_t live = atomic_load(&live_bytes);
    return (rapt_memory_statistics){
        .live_bytes = live,
        .peak_bytes = atomic_load(&peak_bytes),
        .cached_bytes = atomic_load(&system_bytes) - live,
        .system_allocations = atomic_load(&system_allocations),
    };
}

void rapt_memory_reset_peak(void)
{
    atomic_store(&peak_bytes, rapt_memory_get_statistics().live_bytes);
}
