/* The caching allocator: a steady program takes every block from a free list and the system is not asked again. */
#include "tensor/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "free_blocks.h"
#include "system_memory.h"
#include "tensor/debug.h"
#include "tensor/system.h"
#include "tensor/thread.h"

/* The statistics hear of what a thread takes and gives when so many bytes have come together, or when it asks. */
enum { uncounted_bytes = 1 << 16 };

typedef struct block_cache {
    free_blocks own;
    int64_t uncounted, uncounted_peak; /* live bytes that live_bytes does not know of yet, and the most they were */
} block_cache;

static _Atomic int64_t live_bytes, peak_bytes;
static _Atomic int64_t forgotten_peak; /* the highest one before rapt_memory_reset_peak */
static _Atomic int64_t fail_after = -1;
static atomic_bool fails_once;
/* Is somebody to hear of every block: are failures planned, is AddressSanitizer there, or the debugging mode? */
static atomic_bool is_watched;

static bool is_always_watched(void)
{
    return rapt_forbids() || rapt_debugging;
}

static void count_live(int64_t bytes, int64_t most)
{
    int64_t reached = atomic_fetch_add_explicit(&live_bytes, bytes, memory_order_relaxed) + most;
    int64_t peak = atomic_load_explicit(&peak_bytes, memory_order_relaxed);
    while (reached > peak && !atomic_compare_exchange_weak_explicit(&peak_bytes, &peak, reached, memory_order_relaxed,
                                                                    memory_order_relaxed)) {
    }
}

static __attribute__((noinline)) void count_cache(block_cache *cache)
{
    count_live(cache->uncounted, cache->uncounted_peak);
    cache->uncounted = cache->uncounted_peak = 0;
}

static void count_any(block_cache *cache, int64_t bytes)
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
    if (is_always_watched()) atomic_store_explicit(&is_watched, true, memory_order_relaxed);
    return this_cache = calloc(1, sizeof *this_cache);
}

/* NULL when there is no memory even for that. */
static inline block_cache *thread_cache(void)
{
    return this_cache ? this_cache : make_thread_cache();
}

static free_blocks *own_blocks(block_cache *cache)
{
    return cache ? &cache->own : NULL;
}

static bool injected_failure(void)
{
    int64_t left = atomic_load_explicit(&fail_after, memory_order_relaxed);
    if (left > 0 || (left == 0 && atomic_load(&fails_once))) atomic_store(&fail_after, left - 1);
    return left == 0;
}

/* Rather a block up to twice as large than more memory: where sizes differ from batch to batch, those of a rare one are
 * found among those of the others. How many classes larger it is goes to *more. */
static void *take_roomier(free_blocks *own, int class, int *more)
{
    const int most = class < small_classes ? 0 : steps_per_doubling;
    for (int larger = 1; larger <= most && class + larger < class_count; larger++) {
        void *block = rapt_free_blocks_take(own, class + larger);
        if (!block) continue;
        *more = larger;
        return block;
    }
    return NULL;
}

static int64_t at_least(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Bytes that the allocator has from the system in excess of twice the most that was ever in use, were there so many
 * more. */
static int64_t excess_with(size_t size)
{
    const int64_t more = (int64_t)size, in_use = atomic_load_explicit(&live_bytes, memory_order_relaxed) + more;
    const int64_t peak = at_least(atomic_load(&peak_bytes), atomic_load(&forgotten_peak));
    return rapt_system_bytes() + more - 2 * at_least(in_use, peak);
}

/* Where sizes grow or differ from step to step, blocks of all of them would come together. So before one of a class
 * that no thread keeps is asked for, as many kept ones go as are too many. */
static void *take_from_system(int class)
{
    const size_t size = rapt_class_size(class);
    if (class >= private_classes) rapt_free_blocks_release_shared(private_classes, excess_with(size));
    void *block = rapt_system_take(size);
    if (block) return block;
    rapt_memory_trim(); /* the thread's cache is gone, too */
    return rapt_system_take(size);
}

/* What is counted is what was asked for, whatever was at hand. */
static void *take_any(size_t bytes, size_t *capacity)
{
    *capacity = 0;
    if (bytes > SIZE_MAX / 4 || injected_failure()) return NULL;
    const int class = rapt_class_of(bytes);
    int more = 0;
    free_blocks *own = own_blocks(thread_cache());
    const size_t size = rapt_class_size(class);
    void *block = rapt_free_blocks_take(own, class);
    if (!block) block = take_roomier(own, class, &more);
    if (!block && (block = take_from_system(class))) rapt_free_blocks_count(own_blocks(this_cache), class, size);
    if (!block) return NULL;
    count_any(this_cache, (int64_t)size);
    *capacity = size + (size_t)more;
    rapt_allow(block, *capacity);
    return block;
}

void *rapt_block_try(size_t bytes, size_t *capacity)
{
    return take_any(bytes, capacity);
}

static __attribute__((noinline)) void *take_or_fail(const char *op, size_t bytes, size_t *capacity)
{
    void *block = take_any(bytes, capacity);
    if (!block)
        rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for %zu bytes beside the %lld in use", bytes,
                  (long long)rapt_memory_get_statistics().live_bytes);
    return block;
}

/* In a steady program the thread has a small block of its own, and nothing else is to be asked. */
void *rapt_block_take(const char *op, size_t bytes, size_t *capacity)
{
    block_cache *cache = this_cache;
    const size_t class = (bytes - 1) / alignment, size = (class + 1) * alignment;
    if (class >= small_classes || !cache || !cache->own.of[class].head ||
        atomic_load_explicit(&is_watched, memory_order_relaxed))
        return take_or_fail(op, bytes, capacity);
    const int64_t uncounted = cache->uncounted + (int64_t)size;
    if (uncounted > cache->uncounted_peak) {
        if (uncounted > uncounted_bytes) return take_or_fail(op, bytes, capacity);
        cache->uncounted_peak = uncounted;
    }
    free_block *block = cache->own.of[class].head;
    cache->own.of[class].head = block->next;
    cache->own.of[class].bytes -= size;
    cache->uncounted = uncounted;
    *capacity = size;
    return block;
}

static __attribute__((noinline)) void give_any(void *block, size_t capacity)
{
    if (!block) return;
    block_cache *cache = thread_cache();
    count_any(cache, -(int64_t)rapt_class_size(rapt_class_asked(capacity)));
    if (!rapt_debugging) {
        rapt_free_blocks_keep(own_blocks(cache), block, rapt_class_had(capacity));
        return;
    }
    rapt_quarantine_add(block, capacity);
    for (void *old; (old = rapt_quarantine_take(false, &capacity));)
        rapt_free_blocks_keep(own_blocks(cache), old, rapt_class_had(capacity));
}

/* Likewise back to the thread's own. Of a small block a caller may say what it asked for instead of the capacity. */
void rapt_block_give_as_it_is(void *block, size_t capacity)
{
    block_cache *cache = this_cache;
    const size_t class = (capacity - 1) / alignment, size = (class + 1) * alignment;
    if (!block || class >= small_classes || !cache ||
        cache->own.of[class].bytes >= most_kept(&cache->own, (int)class) ||
        cache->uncounted - (int64_t)size < -uncounted_bytes ||
        atomic_load_explicit(&is_watched, memory_order_relaxed)) {
        give_any(block, capacity);
        return;
    }
    free_block *freed = block;
    freed->next = cache->own.of[class].head;
    cache->own.of[class].head = freed;
    cache->own.of[class].bytes += size;
    cache->uncounted -= (int64_t)size;
}

static __attribute__((noinline, cold)) void spoil(void *block, size_t capacity)
{
    enum { nonsense = 0xff }; /* NaN, or −1 */
    memset(block, nonsense, capacity);
    rapt_forbid(block, capacity);
}

void rapt_block_give(void *block, size_t capacity)
{
    if (rapt_debugging && block) spoil(block, capacity);
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

static void free_thread_cache(void)
{
    if (!this_cache) return;
    count_cache(this_cache);
    rapt_free_blocks_release(&this_cache->own);
    free(this_cache);
    this_cache = NULL;
}

/* Also when the program ends, where other threads may go on: what nobody uses. */
static __attribute__((destructor(200))) void give_all_back(void)
{
    size_t capacity;
    for (void *block; (block = rapt_quarantine_take(true, &capacity));)
        rapt_free_blocks_keep(NULL, block, rapt_class_had(capacity));
    free_thread_cache();
    rapt_free_blocks_release_shared(0, INT64_MAX);
}

void rapt_memory_trim(void)
{
    give_all_back();
    rapt_system_trim();
}

int64_t rapt_memory_fail_after(int64_t count)
{
    const int64_t left = atomic_exchange(&fail_after, count);
    atomic_store(&fails_once, false);
    atomic_store(&is_watched, count >= 0 || is_always_watched());
    return left;
}

void rapt_memory_fail_once(int64_t count)
{
    rapt_memory_fail_after(count);
    atomic_store(&fails_once, true);
}

rapt_memory_statistics rapt_memory_get_statistics(void)
{
    block_cache *cache = thread_cache();
    if (cache) count_cache(cache);
    int64_t live = atomic_load(&live_bytes);
    return (rapt_memory_statistics){
        .live_bytes = live,
        .peak_bytes = atomic_load(&peak_bytes),
        .cached_bytes = rapt_system_bytes() - live,
        .system_allocations = rapt_system_allocations(),
    };
}

void rapt_memory_reset_peak(void)
{
    atomic_store(&forgotten_peak, at_least(atomic_load(&forgotten_peak), atomic_load(&peak_bytes)));
    atomic_store(&peak_bytes, rapt_memory_get_statistics().live_bytes);
}
