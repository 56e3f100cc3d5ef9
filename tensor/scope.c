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

/* Makes room for one more number in a growing list; false and an error when there is no memory. */
static bool grow(void **list, int64_t count, int64_t *capacity, size_t item)
{
    if (count < *capacity) return true;
    int64_t wanted = *capacity ? *capacity * 2 : 64;
    void *grown = realloc(*list, (size_t)wanted * item);
    if (!grown)
        return rapt_fail(RAPT_ERROR_MEMORY, "scope", "no memory for its list of %lld tensors", (long long)wanted);
    *list = grown;
    *capacity = wanted;
    return true;
}

/* A scope with so many tensors is most likely a loop's without one. */
enum { many_tensors = 1 << 17 };

static void look_for_loop(const rapt_thread *thread)
{
    const int64_t start = thread->scope_count > 0 ? thread->scope_starts[thread->scope_count - 1] : 0;
    if (thread->owned_count - start >= many_tensors)
        rapt_notice(
            "over 100,000 tensors belong to one scope and live until it ends. If a loop makes them, RAPT_SCOPE; at "
            "the top of its block drops them after each round. (Said once; RAPT_DEBUG=0 silences it.)");
}

rapt_tensor *rapt_scope_own(rapt_tensor *tensor)
{
    if (!tensor) return NULL;
    rapt_thread *thread = rapt_this_thread();
    if (!thread ||
        !grow((void **)&thread->owned, thread->owned_count, &thread->owned_capacity, sizeof *thread->owned)) {
        rapt_release(tensor);
        return NULL;
    }
    thread->owned[thread->owned_count++] = (uintptr_t)tensor;
    if (thread->owned_count % many_tensors == 0) look_for_loop(thread);
    return tensor;
}

rapt_scope rapt_scope_begin(void)
{
    rapt_thread *thread = rapt_this_thread();
    if (!thread || !grow((void **)&thread->scope_starts, thread->scope_count, &thread->scope_capacity,
                         sizeof *thread->scope_starts))
        return -1;
    thread->scope_starts[thread->scope_count] = thread->owned_count;
    return thread->scope_count++;
}

/* Drops the innermost scope's tensors, but for the kept ones, which become the enclosing scope's. */
static void end_innermost(rapt_thread *thread)
{
    int64_t start = thread->scope_starts[--thread->scope_count];
    int64_t end = thread->owned_count;
    int64_t kept = start;
    for (int64_t i = start; i < end; i++) {
        uintptr_t entry = thread->owned[i];
        if (entry & kept_bit)
            thread->owned[kept++] = entry & ~kept_bit;
        else
            rapt_release(tensor_of(entry));
    }
    thread->owned_count = kept;
}

void rapt_scope_end(rapt_scope scope)
{
    rapt_thread *thread = rapt_this_thread();
    while (thread && scope >= 0 && thread->scope_count > scope) end_innermost(thread);
}

void rapt_scope_cleanup(rapt_scope *scope)
{
    if (scope) rapt_scope_end(*scope);
}

rapt_tensor *rapt_keep(rapt_tensor *tensor)
{
    rapt_thread *thread = rapt_this_thread();
    if (!rapt_check_alive("keep", "the tensor", tensor)) return NULL;
    if (!tensor || !thread || thread->scope_count == 0) return tensor;
    int64_t start = thread->scope_starts[thread->scope_count - 1];
    for (int64_t i = thread->owned_count - 1; i >= start; i--) {
        if (tensor_of(thread->owned[i]) != tensor) continue;
        thread->owned[i] |= kept_bit;
        break;
    }
    return tensor;
}

void rapt_scopes_free(rapt_thread *thread)
{
    while (thread->scope_count > 0) end_innermost(thread);
    while (thread->owned_count > 0) rapt_release(tensor_of(thread->owned[--thread->owned_count]));
    free(thread->owned);
    free(thread->scope_starts);
    thread->owned = NULL;
    thread->scope_starts = NULL;
    thread->owned_capacity = thread->scope_capacity = 0;
}
