/* Making modules, their owners, and what they are made of. */
#include <rapt/module.h>

#include <stdlib.h>
#include <string.h>

#include "autograd/leaf.h"
#include "nn/entry.h"
#include "tensor/debug.h"
#include "tensor/names.h"
#include "tensor/random.h"

void *rapt_module_new(size_t size, const rapt_module_class *kind)
{
    if (!kind || size < sizeof(rapt_module)) {
        rapt_fail(RAPT_ERROR_VALUE, "module", "a class and a size of at least %zu bytes expected", sizeof(rapt_module));
        return NULL;
    }
    if (!kind->name) {
        rapt_fail_null("module", "its class's name");
        return NULL;
    }
    rapt_module *module = calloc(1, size);
    if (!module) {
        rapt_fail(RAPT_ERROR_MEMORY, kind->name, "no memory for the module");
        return NULL;
    }
    module->kind = kind;
    module->training = true;
    module->shares = module->held = 1;
    module->constructing = true;
    module->random = rapt_random_get_state();
    return module;
}

void *rapt_module_finish(rapt_module *module)
{
    if (!module) return NULL;
    const bool constructing = module->constructing;
    module->constructing = false;
    if (!module->failed) return module;
    if (constructing) rapt_random_set_state(module->random);
    rapt_module_free(module);
    return NULL;
}

/* --- shares --- */

/* Of the module and of those below it that are its alone. The gradients of parameters that only they have go, too,
 * where they are part of a graph: nobody can ask for them any more. */
static void forget_calls(rapt_module *module)
{
    if (module->kind->forget) module->kind->forget(module);
    for (int i = 0; i < module->count; i++) {
        rapt_module *child = module->entries[i].child;
        if (module->entries[i].tensor) rapt_drop_linked_gradient(module->entries[i].tensor);
        if (child && __atomic_load_n(&child->shares, __ATOMIC_RELAXED) == 1) forget_calls(child);
    }
}

/* When all others are graphs', the module goes with them. One that begins at what the module itself keeps of its last
 * call, or at the gradient of its own parameter, would be there for ever. */
static void give_share(rapt_module *module)
{
    const int in_graphs = __atomic_load_n(&module->in_graphs, __ATOMIC_RELAXED);
    if (in_graphs > 0 && __atomic_load_n(&module->shares, __ATOMIC_RELAXED) - 1 == in_graphs) forget_calls(module);
    if (__atomic_sub_fetch(&module->shares, 1, __ATOMIC_ACQ_REL) > 0) return;
    if (module->kind->destroy) module->kind->destroy(module);
    for (int i = 0; i < module->count; i++) {
        rapt_release(module->entries[i].tensor);
        if (module->entries[i].child) give_share(module->entries[i].child);
        free(module->entries[i].name);
    }
    rapt_module_tree_changes();
    rapt_module_forget_paths(module);
    free(module->entries);
    module->entries = NULL;
    module->count = 0;
    rapt_free_object(module, module->kind->name);
}

/* Takes one share from those that the program holds; false when it holds none. */
static bool take_held(rapt_module *module)
{
    int held = __atomic_load_n(&module->held, __ATOMIC_RELAXED);
    while (held > 0 &&
           !__atomic_compare_exchange_n(&module->held, &held, held - 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return held > 0;
}

/* Takes the constructor's share over; false when somebody has done so before. */
static bool adopt(rapt_module *module)
{
    return !__atomic_exchange_n(&module->adopted, true, __ATOMIC_RELAXED) && take_held(module);
}

void rapt_module_free(rapt_module *module)
{
    if (module && !rapt_was_freed("module_free", module) && take_held(module)) give_share(module);
}

void *rapt_module_retain(rapt_module *module)
{
    if (!module || rapt_was_freed("module_retain", module)) return NULL;
    __atomic_add_fetch(&module->shares, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&module->held, 1, __ATOMIC_RELAXED);
    return module;
}

void rapt_module_hold_in_graph(rapt_module *module)
{
    __atomic_add_fetch(&module->shares, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&module->in_graphs, 1, __ATOMIC_RELAXED);
}

void rapt_module_leave_graph(rapt_module *module)
{
    __atomic_sub_fetch(&module->in_graphs, 1, __ATOMIC_RELAXED);
    give_share(module);
}

/* --- members --- */

/* Behind the entries: the number of the first one of each chain, −1 for none. Whose names' hashes are alike are in one
 * chain, in the order in which they came. */
static int *chain_of(const rapt_module *module, const char *name, size_t length)
{
    int *chains = (int *)(void *)(module->entries + module->capacity);
    static const uint64_t key[2]; /* the names are the program's own: nobody chooses them so that they collide */
    return &chains[rapt_name_hash(key, name, length) & (uint64_t)(module->capacity - 1)];
}

static void put_in_chain(rapt_module *module, int number)
{
    rapt_module_entry *entry = &module->entries[number];
    int *end = chain_of(module, entry->name, strlen(entry->name));
    while (*end >= 0) end = &module->entries[*end].next;
    *end = number;
    entry->next = -1;
}

const rapt_module_entry *rapt_module_member(const rapt_module *module, const char *name, size_t length,
                                            const rapt_module_entry *before)
{
    if (module->count == 0) return NULL;
    int number = before ? before->next : *chain_of(module, name, length);
    for (; number >= 0; number = module->entries[number].next) {
        const rapt_module_entry *entry = &module->entries[number];
        if (strncmp(entry->name, name, length) == 0 && entry->name[length] == '\0') return entry;
    }
    return NULL;
}

static bool check_name(const rapt_module *module, const char *name, bool is_child)
{
    if (!name) return rapt_fail(RAPT_ERROR_NULL, module->kind->name, "the name of a member is NULL");
    bool empty = *name == '\0';
    if ((empty && !is_child) || strlen(name) > 100 || strchr(name, '.'))
        return rapt_fail(RAPT_ERROR_VALUE, module->kind->name,
                         "'%s' cannot be a member's name (1 to 100 bytes, no dot)", name);
    return empty || !rapt_module_member(module, name, strlen(name), NULL) ||
           rapt_fail(RAPT_ERROR_VALUE, module->kind->name, "the name '%s' is in use", name);
}

/* Room for one more. */
static bool grow(rapt_module *module)
{
    if (module->count < module->capacity) return true;
    const int capacity = module->capacity ? module->capacity * 2 : 4;
    rapt_module_entry *entries = realloc(module->entries, (size_t)capacity * (sizeof *entries + sizeof(int)));
    if (!entries) return false;
    module->entries = entries;
    module->capacity = capacity;
    memset(entries + capacity, -1, (size_t)capacity * sizeof(int));
    for (int i = 0; i < module->count; i++) put_in_chain(module, i);
    return true;
}

static bool add_entry(rapt_module *module, const char *name, rapt_module_entry entry)
{
    if (!check_name(module, name, entry.child != NULL)) return false;
    entry.name = strdup(name);
    const bool good = (entry.name && grow(module)) ||
                      rapt_fail(RAPT_ERROR_MEMORY, module->kind->name, "no memory for member '%s'", name);
    if (!good || (entry.is_parameter && !rapt_require_gradient(entry.tensor))) {
        free(entry.name);
        return false;
    }
    module->entries[module->count] = entry;
    put_in_chain(module, module->count++);
    return true;
}

/* A result would keep its graph, and could not be loaded. */
static bool check_buffer(const rapt_module *module, const char *name, const rapt_tensor *tensor)
{
    return !tensor->link || tensor->link->kind->is_leaf ||
           rapt_fail(RAPT_ERROR_GRAPH, module->kind->name,
                     "buffer '%s' is the result of a recorded op; its values alone expected (rapt_detach)",
                     name ? name : "NULL");
}

static rapt_tensor *add_tensor(rapt_module *module, const char *name, rapt_tensor *tensor, bool is_parameter)
{
    if (!module || rapt_was_freed("module_add", module)) return NULL; /* rapt_module_new has said why */
    if (!module->kind) {
        rapt_fail(RAPT_ERROR_VALUE, "module", "member '%s' is added to what rapt_module_new has not made",
                  name ? name : "NULL");
        return NULL;
    }
    const bool good = tensor && rapt_check_alive(module->kind->name, "the tensor", tensor) &&
                      (is_parameter || check_buffer(module, name, tensor)) &&
                      add_entry(module, name, (rapt_module_entry){.tensor = tensor, .is_parameter = is_parameter});
    if (!good) {
        module->failed = true;
        if (!tensor) rapt_fail(RAPT_ERROR_NULL, module->kind->name, "member '%s' is NULL", name ? name : "NULL");
        return NULL;
    }
    return rapt_retain(tensor);
}

rapt_tensor *rapt_module_add_parameter(rapt_module *module, const char *name, rapt_tensor *tensor)
{
    return add_tensor(module, name, tensor, true);
}

rapt_tensor *rapt_module_add_buffer(rapt_module *module, const char *name, rapt_tensor *tensor)
{
    return add_tensor(module, name, tensor, false);
}

static bool is_other(rapt_module *module, void *other)
{
    return module != other;
}

/* Registers the child; false after an error. */
static bool add_child(rapt_module *module, const char *name, rapt_module *child)
{
    if (!child) return rapt_fail(RAPT_ERROR_NULL, module->kind->name, "member '%s' is NULL", name ? name : "NULL");
    if (!add_entry(module, name, (rapt_module_entry){.child = child})) return false;
    rapt_module_tree_changes();
    if (!adopt(child)) __atomic_add_fetch(&child->shares, 1, __ATOMIC_RELAXED);
    return true;
}

/* Is the module the child, or below it? A module that no parent has is below none. */
static bool is_cycle(rapt_module *module, rapt_module *child)
{
    return module == child || (module->adopted && !rapt_module_each(child, is_other, module));
}

void *rapt_module_add_child(rapt_module *module, const char *name, rapt_module *child)
{
    if (rapt_was_freed("module_add_child", module)) module = NULL;
    if (rapt_was_freed("module_add_child", child)) child = NULL;
    if (module && child && is_cycle(module, child)) {
        module->failed = true;
        rapt_fail(RAPT_ERROR_VALUE, module->kind->name, "member '%s' (%s) is the module itself or has it below it",
                  name ? name : "NULL", child->kind->name);
        return NULL;
    }
    if (module && add_child(module, name, child)) return child;
    if (module) module->failed = true;
    if (child && adopt(child)) give_share(child);
    return NULL;
}

rapt_tensor *rapt_module_forward(rapt_module *module, rapt_tensor *x)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER(module);
    if (!module || !x) {
        rapt_fail(RAPT_ERROR_NULL, module ? module->kind->name : "module_forward", "%s is NULL",
                  module ? "the input" : "the module");
        return NULL;
    }
    if (!module->kind->forward) {
        rapt_fail(RAPT_ERROR_UNSUPPORTED, module->kind->name,
                  "is not a layer that maps one tensor to one; call its own forward function");
        return NULL;
    }
    rapt_tensor *y = module->kind->forward(module, x);
    if (!y) rapt_fail(RAPT_ERROR_VALUE, module->kind->name, "its forward failed without a reason");
    if (rapt_observed() & RAPT_SUMMARIZES) rapt_module_gave(x, y);
    return y;
}

rapt_tensor *rapt_layer_forward(const char *name, rapt_module *layer, rapt_tensor *x)
{
    if (layer) return rapt_module_forward(layer, x);
    rapt_fail(RAPT_ERROR_NULL, name, "the layer is NULL");
    return NULL;
}
