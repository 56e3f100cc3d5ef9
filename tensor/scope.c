/* Scopes: one list of owned tensors a thread, cut into regions by the open scopes. */
#include <stdlib.h>
#include <string.h>

#include "tensor/debug.h"
#include "tensor/memory.h"
#include "tensor/thread.h"

static const uintptr_t kept_bit = 1;

static rapt_tensor *tensor_of(uintptr_t entry)
{
    return (rapt_tensor *)(entry & ~kept_bit);
}

/* The tensors of all open scopes, innermost last (bit 0 set: to be kept once), and where in `owned` each scope begins,
 * of the first `capacity` scopes. One behind these, for which there was no memory, is one with the scope around it. */
static RAPT_THREAD_LOCAL struct {
    uintptr_t *owned;
    int64_t owned_count, owned_capacity;
    int64_t *starts;
    int64_t capacity;
} scopes;

RAPT_THREAD_LOCAL int64_t rapt_open_scopes;

static void end_scopes(void);

/* Makes room for item number `count` in a growing list; false when there is no memory. */
static bool grow(void **list, int64_t count, int64_t *capacity, size_t item)
{
    int64_t wanted = *capacity ? *capacity * 2 : 64;
    while (wanted <= count) wanted *= 2;
    void *grown = realloc(*list, (size_t)wanted * item);
    if (!grown) return false;
    if (!*list) rapt_at_thread_end(RAPT_THREAD_SCOPES, end_scopes);
    *list = grown;
    *capacity = wanted;
    return true;
}

/* A scope with so many tensors is most likely a loop's without one. */
enum { many_tensors = 1 << 17 };

/* The first tensor of the innermost scope, in `owned`; where that was not noted, the end. */
static int64_t first_of_innermost(void)
{
    if (rapt_open_scopes == 0) return 0;
    return rapt_open_scopes <= scopes.capacity ? scopes.starts[rapt_open_scopes - 1] : scopes.owned_count;
}

static void look_for_loop(void)
{
    static atomic_flag was_said = ATOMIC_FLAG_INIT;
    if (scopes.owned_count - first_of_innermost() >= many_tensors && !atomic_flag_test_and_set(&was_said))
        rapt_warn(
            "scope",
            "over 100,000 tensors belong to one scope and live until it ends. If a loop makes them, RAPT_SCOPE; at "
            "the top of its block drops them after each round. (Said once; RAPT_DEBUG=0 silences it.)");
}

static __attribute__((noinline)) rapt_tensor *own_after_a_look(rapt_tensor *tensor)
{
    const int64_t count = scopes.owned_count;
    if (count >= scopes.owned_capacity &&
        !grow((void **)&scopes.owned, count, &scopes.owned_capacity, sizeof *scopes.owned)) {
        rapt_release(tensor);
        rapt_fail(RAPT_ERROR_MEMORY, "scope", "no memory for its list of %lld tensors", (long long)count + 1);
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
    const int64_t last = scopes.owned_count - 1;
    if (last < first_of_innermost() || scopes.owned[last] != (uintptr_t)tensor) return rapt_retain(tensor);
    scopes.owned_count = last;
    return tensor;
}

/* Of the scopes around it that were not noted, what is there already stays with the scope around them. */
static __attribute__((noinline, cold)) bool make_room(int64_t scope)
{
    const int64_t noted = scopes.capacity;
    if (!grow((void **)&scopes.starts, scope, &scopes.capacity, sizeof *scopes.starts)) return false;
    for (int64_t i = noted; i < scope; i++) scopes.starts[i] = scopes.owned_count;
    return true;
}

rapt_scope rapt_scope_begin(void)
{
    const int64_t scope = rapt_open_scopes++;
    if (scope < scopes.capacity || make_room(scope)) scopes.starts[scope] = scopes.owned_count;
    return scope;
}

/* Drops the innermost scope's tensors, but for the kept ones, which become the enclosing scope's. What is freed with
 * them may call a function that makes more. */
static void end_innermost(void)
{
    const int64_t start = first_of_innermost();
    int64_t kept = start;
    rapt_open_scopes--;
    for (int64_t i = start; i < scopes.owned_count; i++) {
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
    while (scope >= 0 && rapt_open_scopes > scope) end_innermost();
}

void rapt_scope_renew(rapt_scope scope)
{
    if (rapt_open_scopes == scope + 1 && scopes.owned_count == first_of_innermost()) return;
    rapt_scope_end(scope);
    rapt_scope_begin();
}

void rapt_scope_cleanup(rapt_scope *scope)
{
    if (scope) rapt_scope_end(*scope);
}

rapt_tensor *rapt_keep(rapt_tensor *tensor)
{
    if (!rapt_check_alive("keep", "the tensor", tensor)) return NULL;
    if (!tensor || rapt_open_scopes == 0) return tensor;
    const int64_t start = first_of_innermost();
    for (int64_t i = scopes.owned_count - 1; i >= start; i--) {
        if (tensor_of(scopes.owned[i]) != tensor) continue;
        scopes.owned[i] |= kept_bit;
        break;
    }
    return tensor;
}

/* Of the scopes that were opened later, its entry moves to before the first: no share is taken, and none given up. */
void rapt_scope_hand_out(int64_t open, rapt_tensor *tensor)
{
    const int64_t start = open < scopes.capacity ? scopes.starts[open] : scopes.owned_count;
    int64_t at = scopes.owned_count - 1;
    while (at >= start && tensor_of(scopes.owned[at]) != tensor) at--;
    if (at < start) return;
    memmove(&scopes.owned[start + 1], &scopes.owned[start], (size_t)(at - start) * sizeof *scopes.owned);
    scopes.owned[start] = (uintptr_t)tensor;
    for (int64_t i = open; i < rapt_open_scopes && i < scopes.capacity && scopes.starts[i] <= at; i++)
        scopes.starts[i]++;
}

static void end_scopes(void)
{
    rapt_scope_end(0);
    while (scopes.owned_count > 0) rapt_release(tensor_of(scopes.owned[--scopes.owned_count]));
    free(scopes.owned);
    free(scopes.starts);
    scopes.owned = NULL;
    scopes.starts = NULL;
    scopes.owned_capacity = scopes.capacity = 0;
}
