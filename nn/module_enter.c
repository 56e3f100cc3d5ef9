/* The path of the module whose forward runs: found from the one around it, and remembered in the module for each place
 * where it runs. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/entry.h"

/* Puts the name of a module below another behind the first `used` bytes; its length, −1 where it is not there. Most
 * are children, which are looked at first: a list of thousands asks for each of its own. */
static int find_below(const rapt_module *module, const rapt_module *wanted, char name[RAPT_NAME_SIZE], int used)
{
    for (int i = 0; i < module->count; i++) {
        if (module->entries[i].child != wanted) continue;
        const int end = rapt_module_put_name(&module->entries[i], name, used);
        if (end < RAPT_NAME_SIZE) return end;
    }
    for (int i = 0; i < module->count; i++) {
        const rapt_module_entry *entry = &module->entries[i];
        if (!entry->child || entry->child->count == 0) continue;
        const int end = rapt_module_put_name(entry, name, used);
        const int found = end < RAPT_NAME_SIZE ? find_below(entry->child, wanted, name, end) : -1;
        if (found >= 0) return found;
    }
    return -1;
}

static const char *find_path(const rapt_module *module, const rapt_module_place *around)
{
    char name[RAPT_NAME_SIZE] = "", path[2 * RAPT_NAME_SIZE + 1];
    if (!around->module || !around->path || find_below(around->module, module, name, 0) < 0)
        return rapt_lasting_text(module->kind->name);
    const char *between = !*name ? "" : strchr(around->path, ' ') ? "." : " ";
    snprintf(path, sizeof path, "%.*s%s%s", RAPT_NAME_SIZE, around->path, between, name);
    return rapt_lasting_text(path);
}

/* --- paths that are known --- */

/* Where a module runs: inside that module, which has that path. */
struct rapt_module_path {
    struct rapt_module_path *next;
    const void *around;
    const char *around_path;
    _Atomic(const char *) path;
    atomic_uint_fast64_t changes; /* of all trees, when the path was found */
};

static atomic_uint_fast64_t changes;

void rapt_module_tree_changes(void)
{
    atomic_fetch_add_explicit(&changes, 1, memory_order_relaxed);
}

static void remember(rapt_module *module, const rapt_module_place *around, const char *path, uint64_t now)
{
    struct rapt_module_path *known = malloc(sizeof *known);
    if (!known) return;
    known->around = around->module;
    known->around_path = around->path;
    atomic_init(&known->path, path);
    atomic_init(&known->changes, now);
    known->next = __atomic_load_n(&module->paths, __ATOMIC_RELAXED);
    while (
        !__atomic_compare_exchange_n(&module->paths, &known->next, known, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
}

/* Found once more whenever a module anywhere got a child or went. */
static const char *path_of(rapt_module *module, const rapt_module_place *around)
{
    enum { most = 8 }; /* of a module that runs in more places, the path is found each time */
    const uint64_t now = atomic_load_explicit(&changes, memory_order_relaxed);
    struct rapt_module_path *known = __atomic_load_n(&module->paths, __ATOMIC_ACQUIRE);
    int count = 0;
    for (; known && (known->around != around->module || known->around_path != around->path); known = known->next)
        count++;
    if (known && atomic_load_explicit(&known->changes, memory_order_acquire) == now)
        return atomic_load_explicit(&known->path, memory_order_relaxed);
    const char *path = find_path(module, around);
    if (known) {
        atomic_store_explicit(&known->path, path, memory_order_relaxed);
        atomic_store_explicit(&known->changes, now, memory_order_release);
    } else if (count < most)
        remember(module, around, path, now);
    return path;
}

void rapt_module_forget_paths(rapt_module *module)
{
    while (module->paths) {
        struct rapt_module_path *known = module->paths;
        module->paths = known->next;
        free(known);
    }
}

/* --- entering and leaving --- */

void rapt_module_enter_now(rapt_module *module)
{
    const rapt_module_place around = rapt_running_place;
    const bool is_timed = rapt_observed() & RAPT_PROFILES;
    rapt_running_place = (rapt_module_place){module, path_of(module, &around), is_timed ? rapt_profile_clock() : 0};
}

void rapt_module_leave_now(void)
{
    const rapt_module_place place = rapt_running_place;
    const unsigned observers = rapt_observed();
    if (observers & RAPT_SUMMARIZES) rapt_module_left(place.module);
    if (observers & RAPT_PROFILES) rapt_profile_add_module(&place);
}
