/* Scopes: one list of owned tensors a thread, cut into regions by the open scopes. */
#include <stdlib.h>

#include "tensor/debug.h"
#include "tensor/memory.h"
#include "tensor/thread.h"

static const uintptr_t kept_bit = 1;

static rapt_tensor *tensor_of(uintptr_t entry)
{
    return (rapt_tensor *)(entry & ~kept_bit);
}

/* The tensors of all open scopes, innermost last (bit 0 set: to be kept once), and where in `owned` each scope
 * begins. */
static RAPT_THREAD_LOCAL struct {
    uintptr_t *owned;
    int64_t owned_count, owned_capacity;
    int64_t *starts;
    int64_t count, capacity;
} scopes;

static void end_scopes(void);

/* Makes room for one more number in a growing list; false and an error when there is no memory. */
static bool grow(void **list, int64_t count, int64_t *capacity, size_t item)
{
    if (count < *capacity) return true;
    int64_t wanted = *capacity ? *capacity * 2 : 64;
    void *grown = realloc(*list, (size_t)wanted * item);
    if (!grown)
        return rapt_fail(RAPT_ERROR_MEMORY, "scope", "no memory for its list of %lld tensors", (long long)wanted);
    if (!*list) rapt_at_thread_end(RAPT_THREAD_SCOPES, end_scopes);
    *list = grown;
    *capacity = wanted;
    return true;
}

/* A scope with so many tensors is most likely a loop's without one. */
enum { many_tensors = 1 << 17 };

static void look_for_loop(void)
{
    static atomic_flag was_said = ATOMIC_FLAG_INIT;
    const int64_t start = scopes.count > 0 ? scopes.starts[scopes.count - 1] : 0;
    if (scopes.owned_count - start >= many_tensors && !atomic_flag_test_and_set(&was_said))
        rapt_warn(
            "scope",
            "over 100,000 tensors belong to one scope and live until it ends. If a loop makes them, RAPT_SCOPE; at "
            "the top of its block drops them after each round. (Said once; RAPT_DEBUG=0 silences it.)");
}

static __attribute__((noinline)) rapt_tensor *own_after_a_look(rapt_tensor *tensor)
{
    if (!grow((void **)&scopes.owned, scopes.owned_count, &scopes.owned_capacity, sizeof *scopes.owned)) {
        rapt_release(tensor);
        return NULL;
    }
    scopes.owned[scopes.owned_count++] = (uintptr_t)tensor;
    if (scopes.owned_count % many_tensors == 0) look_for_loop();
    return tensor;
}

rapt_tensor *rapt_scope_own(rapt_tensor *tensor)
{
    const int64_t count = scopes.owned_count;
    if (!tensor) return NULL;
    if (count >= scopes.owned_capacity || (count + 1) % many_tensors == 0) return own_after_a_look(tensor);
    scopes.owned[count] = (uintptr_t)tensor;
    scopes.owned_count = count + 1;
    return tensor;
}

rapt_tensor *rapt_scope_take(rapt_tensor *tensor)
{
    const int64_t start = scopes.count > 0 ? scopes.starts[scopes.count - 1] : 0, last = scopes.owned_count - 1;
    if (last < start || scopes.owned[last] != (uintptr_t)tensor) return rapt_retain(tensor);
    scopes.owned_count = last;
    return tensor;
}

rapt_scope rapt_scope_begin(void)
{
    if (!grow((void **)&scopes.starts, scopes.count, &scopes.capacity, sizeof *scopes.starts)) return -1;
    scopes.starts[scopes.count] = scopes.owned_count;
    return scopes.count++;
}

/* Drops the innermost scope's tensors, but for the kept ones, which become the enclosing scope's. */
static void end_innermost(void)
{
    int64_t start = scopes.starts[--scopes.count];
    int64_t end = scopes.owned_count;
    int64_t kept = start;
    for (int64_t i = start; i < end; i++) {
        uintptr_t entry = scopes.owned[i];
        if (entry & kept_bit)
            scopes.owned[kept++] = entry & ~kept_bit;
        else
            rapt_release(tensor_of(entry));
    }
    scopes.owned_count = kept;
}

void rapt_scope_end(rapt_scope scope)
{
    while (scope >= 0 && scopes.count > scope) end_innermost();
}

void rapt_scope_renew(rapt_scope scope)
{
    if (scopes.count == scope + 1 && scopes.owned_count == scopes.starts[scope]) return;
    rapt_scope_end(scope);
    scopes.starts[scopes.count++] = scopes.owned_count;
}

void rapt_scope_cleanup(rapt_scope *scope)
{
    if (scope) rapt_scope_end(*scope);
}

rapt_tensor *rapt_keep(rapt_tensor *tensor)
{
    if (!rapt_check_alive("keep", "the tensor", tensor)) return NULL;
    if (!tensor || scopes.count == 0) return tensor;
    int64_t start = scopes.starts[scopes.count - 1];
    for (int64_t i = scopes.owned_count - 1; i >= start; i--) {
        if (tensor_of(scopes.owned[i]) != tensor) continue;
        scopes.owned[i] |= kept_bit;
        break;
    }
    return tensor;
}

static void end_scopes(void)
{
    while (scopes.count > 0) end_innermost();
    while (scopes.owned_count > 0) rapt_release(tensor_of(scopes.owned[--scopes.owned_count]));
    free(scopes.owned);
    free(scopes.starts);
    scopes.owned = NULL;
    scopes.starts = NULL;
    scopes.owned_capacity = scopes.capacity = 0;
}
