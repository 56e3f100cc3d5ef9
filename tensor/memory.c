/* The caching allocator: a steady program takes every block from a free list and the system is not asked again. */
#include "tensor/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/core.h"
#include "tensor/thread.h"

/* Size classes: 64, 128, 192, 256, then four to each doubling, so that at most a fifth of a block is waste. */
enum { alignment = 64, steps_per_doubling = 4, class_count = 4 * 58, private_classes = 64, private_limit = 64 };

typedef struct free_block {
    struct free_block *next;
} free_block;

typedef struct block_cache {
    free_block *head[private_classes];
    int held[private_classes];
} block_cache;

static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static free_block *shared_head[class_count];

static _Atomic int64_t live_bytes, peak_bytes, cached_bytes, system_allocations;
static _Atomic int64_t fail_after = -1;

static int class_of(size_t bytes)
{
    size_t units = (bytes + alignment - 1) / alignment;
    if (units <= steps_per_doubling) return units == 0 ? 0 : (int)units - 1;
    int doubling = 63 - __builtin_clzll((unsigned long long)(units - 1)); /* 2^doubling ≤ units − 1 < 2^(doubling + 1) */
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

static void count_live(int64_t bytes)
{
    int64_t now = atomic_fetch_add_explicit(&live_bytes, bytes, memory_order_relaxed) + bytes;
    int64_t peak = atomic_load_explicit(&peak_bytes, memory_order_relaxed);
    while (now > peak && !atomic_compare_exchange_weak_explicit(&peak_bytes, &peak, now, memory_order_relaxed,
                                                                memory_order_relaxed)) {
    }
}

static block_cache *thread_cache(void)
{
    rapt_thread *thread = rapt_this_thread();
    if (thread && !thread->block_cache) thread->block_cache = calloc(1, sizeof(block_cache));
    return thread ? thread->block_cache : NULL;
}

static free_block *take_cached(int class)
{
    free_block *block = NULL;
    block_cache *cache = class < private_classes ? thread_cache() : NULL;
    if (cache && cache->head[class]) {
        block = cache->head[class];
        cache->head[class] = block->next;
        cache->held[class]--;
        return block;
    }
    pthread_mutex_lock(&shared_lock);
    block = shared_head[class];
    if (block) shared_head[class] = block->next;
    pthread_mutex_unlock(&shared_lock);
    return block;
}

static bool injected_failure(void)
{
    if (atomic_load_explicit(&fail_after, memory_order_relaxed) < 0) return false;
    int64_t left = atomic_load(&fail_after);
    if (left > 0) atomic_store(&fail_after, left - 1);
    return left == 0;
}

void *rapt_block_take(const char *op, size_t bytes, size_t *capacity)
{
    *capacity = 0;
    if (bytes > SIZE_MAX / 4 || injected_failure()) {
        rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for %zu bytes", bytes);
        return NULL;
    }
    int class = class_of(bytes);
    size_t size = class_size(class);
    void *block = take_cached(class);
    if (block) {
        atomic_fetch_sub_explicit(&cached_bytes, (int64_t)size, memory_order_relaxed);
    } else {
        block = aligned_alloc(alignment, size);
        if (!block) {
            rapt_memory_trim();
            block = aligned_alloc(alignment, size);
        }
        if (!block) {
            rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for %zu bytes", bytes);
            return NULL;
        }
        atomic_fetch_add_explicit(&system_allocations, 1, memory_order_relaxed);
    }
    count_live((int64_t)size);
    *capacity = size;
    return block;
}

void rapt_block_give(void *block, size_t capacity)
{
    if (!block) return;
    int class = class_of(capacity);
    free_block *freed = block;
    atomic_fetch_sub_explicit(&live_bytes, (int64_t)capacity, memory_order_relaxed);
    atomic_fetch_add_explicit(&cached_bytes, (int64_t)capacity, memory_order_relaxed);
    block_cache *cache = class < private_classes ? thread_cache() : NULL;
    if (cache && cache->held[class] < private_limit) {
        freed->next = cache->head[class];
        cache->head[class] = freed;
        cache->held[class]++;
        return;
    }
    pthread_mutex_lock(&shared_lock);
    freed->next = shared_head[class];
    shared_head[class] = freed;
    pthread_mutex_unlock(&shared_lock);
}

static void free_list(free_block **head, int class)
{
    while (*head) {
        free_block *next = (*head)->next;
        free(*head);
        *head = next;
        atomic_fetch_sub_explicit(&cached_bytes, (int64_t)class_size(class), memory_order_relaxed);
    }
}

void rapt_block_cache_free(rapt_thread *thread)
{
    block_cache *cache = thread->block_cache;
    for (int class = 0; cache && class < private_classes; class ++) free_list(&cache->head[class], class);
    free(cache);
    thread->block_cache = NULL;
}

void rapt_memory_trim(void)
{
    rapt_thread *thread = rapt_this_thread();
    if (thread) rapt_block_cache_free(thread);
    pthread_mutex_lock(&shared_lock);
    for (int class = 0; class < class_count; class ++) free_list(&shared_head[class], class);
    pthread_mutex_unlock(&shared_lock);
}

void rapt_memory_fail_after(int64_t count)
{
    atomic_store(&fail_after, count);
}

rapt_memory_statistics rapt_memory_get_statistics(void)
{
    return (rapt_memory_statistics){
        .live_bytes = atomic_load(&live_bytes),
        .peak_bytes = atomic_load(&peak_bytes),
        .cached_bytes = atomic_load(&cached_bytes),
        .system_allocations = atomic_load(&system_allocations),
    };
}

void rapt_memory_reset_peak(void)
{
    atomic_store(&peak_bytes, atomic_load(&live_bytes));
}
