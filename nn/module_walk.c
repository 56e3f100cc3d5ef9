/* Walking through modules: every module once, every tensor once, or to one by its name. */
#include <stdio.h>
#include <string.h>

#include "nn/entry.h"
#include "tensor/pointer_set.h"

/* --- modules --- */

static bool each(rapt_pointer_set *met, rapt_module *module, bool (*function)(rapt_module *, void *), void *context)
{
    if (rapt_module_is_shared(module) && rapt_pointer_set_add(met, module) == RAPT_SET_KNOWN) return true;
    if (!function(module, context)) return false;
    for (int i = 0; i < module->count; i++)
        if (module->entries[i].child && !each(met, module->entries[i].child, function, context)) return false;
    return true;
}

bool rapt_module_each(rapt_module *module, bool (*function)(rapt_module *module, void *context), void *context)
{
    rapt_pointer_set met = {0};
    const bool all = each(&met, module, function, context);
    rapt_pointer_set_free(&met);
    return all;
}

static bool set_training(rapt_module *module, void *training)
{
    module->training = *(const bool *)training;
    return true;
}

void rapt_module_train(rapt_module *module, bool training)
{
    if (module && !rapt_was_freed("module_train", module)) rapt_module_each(module, set_training, &training);
}

/* --- tensors --- */

int rapt_module_put_name(const rapt_module_entry *entry, char name[RAPT_NAME_SIZE], int used)
{
    const char *dot = used > 0 && *entry->name ? "." : "";
    return used + snprintf(name + used, (size_t)(RAPT_NAME_SIZE - used), "%s%s", dot, entry->name);
}

int rapt_module_append_name(const rapt_module *module, const rapt_module_entry *entry, char name[RAPT_NAME_SIZE],
                            int used)
{
    const int end = rapt_module_put_name(entry, name, used);
    if (end < RAPT_NAME_SIZE) return end;
    rapt_fail(RAPT_ERROR_VALUE, module->kind->name, "a name is longer than %d bytes", RAPT_NAME_SIZE - 1);
    return -1;
}

typedef struct walk {
    int what;
    rapt_module_visitor *visitor;
    rapt_submodule_visitor *submodule_visitor; /* or NULL */
    void *context;
    rapt_pointer_set modules, tensors; /* met so far */
    char name[RAPT_NAME_SIZE];         /* of where it stands */
} walk;

static bool fail_memory(const walk *w, const rapt_module *module)
{
    return rapt_fail(RAPT_ERROR_MEMORY, module->kind->name, "no memory to visit %lld modules and tensors",
                     (long long)(w->modules.count + w->tensors.count + 1));
}

static bool visit_tensor(walk *w, const rapt_module *module, rapt_tensor *tensor)
{
    switch (rapt_pointer_set_add(&w->tensors, tensor)) {
    case RAPT_SET_NEW:
        return w->visitor(w->name, tensor, w->context);
    case RAPT_SET_KNOWN:
        return true;
    case RAPT_SET_NO_MEMORY:
        break;
    }
    return fail_memory(w, module);
}

/* `used` bytes of the name are the module's own. A visitor may add members, which moves the entries. */
static bool visit(walk *w, rapt_module *module, int used)
{
    const rapt_set_result met =
        rapt_module_is_shared(module) ? rapt_pointer_set_add(&w->modules, module) : RAPT_SET_NEW;
    if (met == RAPT_SET_KNOWN) return true;
    const int count = module->count;
    if (w->submodule_visitor) {
        if (met == RAPT_SET_NO_MEMORY) return fail_memory(w, module);
        if (!w->submodule_visitor(w->name, module, w->context)) return false;
    }
    for (int i = 0; i < count; i++) {
        const rapt_module_entry entry = module->entries[i];
        const int end = rapt_module_append_name(module, &entry, w->name, used);
        if (end < 0) return false;
        const bool wanted = entry.tensor && (w->what & (entry.is_parameter ? RAPT_PARAMETERS : RAPT_BUFFERS));
        if (wanted && !visit_tensor(w, module, entry.tensor)) return false;
        if (entry.child && !visit(w, entry.child, end)) return false;
    }
    return true;
}

bool rapt_check_what(const char *op, int what)
{
    return (what & ~rapt_all_tensors) == 0 ||
           rapt_fail(RAPT_ERROR_VALUE, op, "flags %d; RAPT_PARAMETERS, RAPT_BUFFERS, both or 0 expected", what);
}

static bool visit_all(walk w, const rapt_module *module)
{
    const bool all = visit(&w, (rapt_module *)(uintptr_t)module, 0);
    rapt_pointer_set_free(&w.modules);
    rapt_pointer_set_free(&w.tensors);
    return all;
}

bool rapt_module_visit(const rapt_module *module, int what, rapt_module_visitor *visitor, void *context)
{
    if (!rapt_module_is_there("module_visit", module) || !rapt_check_what("module_visit", what)) return false;
    if (!visitor) return rapt_fail_null("module_visit", "visitor");
    return visit_all((walk){.what = what, .visitor = visitor, .context = context}, module);
}

bool rapt_module_visit_modules(rapt_module *module, rapt_submodule_visitor *visitor, void *context)
{
    if (!rapt_module_is_there("module_visit_modules", module)) return false;
    if (!visitor) return rapt_fail_null("module_visit_modules", "visitor");
    return visit_all((walk){.submodule_visitor = visitor, .context = context}, module);
}

static bool add_count(const char *name, rapt_tensor *tensor, void *context)
{
    (void)name;
    *(int64_t *)context += rapt_count(tensor);
    return true;
}

bool rapt_module_count(const rapt_module *module, int64_t *count)
{
    *count = 0;
    return rapt_module_visit(module, RAPT_PARAMETERS, add_count, count);
}

int64_t rapt_module_parameter_count(const rapt_module *module)
{
    int64_t count;
    return rapt_module_is_there("module_parameter_count", module) && rapt_module_count(module, &count) ? count : 0;
}

static bool clear_gradients(rapt_module *module, void *context)
{
    (void)context;
    for (int i = 0; i < module->count; i++)
        if (module->entries[i].is_parameter) rapt_clear_gradient(module->entries[i].tensor);
    return true;
}

void rapt_module_clear_gradients(rapt_module *module)
{
    if (rapt_module_is_there("module_clear_gradients", module)) rapt_module_each(module, clear_gradients, NULL);
}

/* --- by name --- */

static const rapt_module_entry *find(const rapt_module *module, const char *name, bool is_child)
{
    const size_t length = strcspn(name, ".");
    const rapt_module_entry *entry = length > 0 ? rapt_module_member(module, name, length, NULL) : NULL, *found = NULL;
    if (entry && name[length] == '\0' && is_child == !entry->tensor) return entry;
    if (entry && entry->child && name[length] == '.') found = find(entry->child, name + length + 1, is_child);
    for (entry = NULL; !found && (entry = rapt_module_member(module, "", 0, entry));)
        found = find(entry->child, name, is_child);
    return found;
}

static const rapt_module_entry *find_entry(const char *op, const rapt_module *module, const char *name, bool is_child)
{
    if (!rapt_module_is_there(op, module)) return NULL;
    if (!name) rapt_fail_null(op, "name");
    return name ? find(module, name, is_child) : NULL;
}

rapt_tensor *rapt_module_find(const rapt_module *module, const char *name)
{
    const rapt_module_entry *entry = find_entry("module_find", module, name, false);
    return entry ? entry->tensor : NULL;
}

rapt_module *rapt_module_find_module(rapt_module *module, const char *name)
{
    if (module && name && *name == '\0') return rapt_module_is_there("module_find_module", module) ? module : NULL;
    const rapt_module_entry *entry = find_entry("module_find_module", module, name, true);
    return entry ? entry->child : NULL;
}
