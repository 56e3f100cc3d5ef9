/* The debugging mode: a quarantine for what is free, and errors that name tensors and objects which are gone. */
#include "tensor/debug.h"

#include <stdlib.h>

#include "tensor/lock.h"

bool rapt_debugging;
RAPT_THREAD_LOCAL const char *rapt_running_op;

/* The share count of a tensor that is gone. */
static const int64_t gone = INT64_MIN / 2;

static __attribute__((constructor(200))) void start(void)
{
    const char *wanted = getenv("RAPT_DEBUG");
#ifdef RAPT_DEBUG_BUILD
    rapt_debugging = true;
#endif
    if (wanted && *wanted) rapt_debugging = *wanted != '0';
}

bool rapt_check_alive_now(const char *op, const char *what, const rapt_tensor *tensor)
{
    char text[128];
    if (atomic_load_explicit(&tensor->references, memory_order_relaxed) > 0) return true;
    return rapt_fail(RAPT_ERROR_GONE, op,
                     "%s is gone: %s, made by %s; its scope has ended, or it was released. rapt_keep hands a tensor to "
                     "the scope around, rapt_retain takes a share",
                     what, rapt_describe(tensor, text, sizeof text), tensor->made_by ? tensor->made_by : "rapt");
}

void rapt_mark_gone(rapt_tensor *tensor)
{
    atomic_store_explicit(&tensor->references, gone, memory_order_relaxed);
}

/* --- the quarantine --- */

enum { most_blocks = 1 << 16 };
static const size_t most_bytes = 64 << 20;

RAPT_LOCK(quarantine_lock, MEMORY)

/* First in, first out. */
static struct {
    struct {
        void *block;
        size_t capacity;
    } ring[most_blocks];
    int64_t first, count;
    size_t bytes;
} quarantine;

void rapt_quarantine_add(void *block, size_t capacity)
{
    quarantine_lock_take();
    const int64_t place = (quarantine.first + quarantine.count++) % most_blocks;
    quarantine.ring[place].block = block;
    quarantine.ring[place].capacity = capacity;
    quarantine.bytes += capacity;
    quarantine_lock_give();
}

void *rapt_quarantine_take(bool all, size_t *capacity)
{
    void *block = NULL;
    quarantine_lock_take();
    if (quarantine.count > 0 && (all || quarantine.count > most_blocks / 2 || quarantine.bytes > most_bytes)) {
        block = quarantine.ring[quarantine.first].block;
        *capacity = quarantine.ring[quarantine.first].capacity;
        quarantine.first = (quarantine.first + 1) % most_blocks;
        quarantine.count--;
        quarantine.bytes -= *capacity;
    }
    quarantine_lock_give();
    return block;
}

/* --- objects --- */

enum { most_objects = 1024 };

RAPT_LOCK(objects_lock, MEMORY)

/* Those that were freed last: first in, first out. */
static struct {
    void *object;
    const char *kind;
} freed[most_objects];
static int next_freed;

void rapt_free_object(void *object, const char *kind)
{
    if (rapt_debugging && object) {
        objects_lock_take();
        void *oldest = freed[next_freed].object;
        freed[next_freed].object = object;
        freed[next_freed].kind = kind;
        next_freed = (next_freed + 1) % most_objects;
        objects_lock_give();
        object = oldest;
    }
    free(object);
}

bool rapt_was_freed_now(const char *op, const void *object)
{
    const char *kind = NULL;
    objects_lock_take();
    for (int i = 0; i < most_objects && freed[i].object && !kind; i++)
        if (freed[i].object == object) kind = freed[i].kind;
    objects_lock_give();
    return kind &&
           !rapt_fail(RAPT_ERROR_GONE, op,
                      "the %s is gone: it was freed. (A module goes with the last of its parents; rapt_module_retain "
                      "takes a share in it)",
                      kind);
}
