/* Making modules and walking through them. */
#include <rapt/module.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/entry.h"
#include "tensor/random.h"

void *rapt_module_new(size_t size, const rapt_module_class *kind)
{
    if (!kind || size < sizeof(rapt_module)) {
        rapt_fail(RAPT_ERROR_VALUE, "module", "a class and a size of at least %zu bytes expected", sizeof(rapt_module));
        return NULL;
    }
    rapt_module *module = calloc(1, size);
    if (!module) {
        rapt_fail(RAPT_ERROR_MEMORY, kind->name, "no memory for the module");
        return NULL;
    }
    module->kind = kind;
    module->training = true;
    return module;
}

void rapt_module_free(rapt_module *module)
{
    if (!module) return;
    if (module->kind->destroy) module->kind->destroy(module);
    for (int i = 0; i < module->count; i++) {
        rapt_release(module->entries[i].tensor);
        rapt_module_free(module->entries[i].child);
        free(module->entries[i].name);
    }
    free(module->entries);
    free(module);
}

static bool check_name(const rapt_module *module, const char *name, bool is_child)
{
    if (!name) return rapt_fail(RAPT_ERROR_NULL, module->kind->name, "the name of a member is NULL");
    bool empty = *name == '\0';
    if ((empty && !is_child) || strlen(name) > 100 || strchr(name, '.'))
        return rapt_fail(RAPT_ERROR_VALUE, module->kind->name,
                         "'%s' cannot be a member's name (1 to 100 bytes, no dot)", name);
    for (int i = 0; i < module->count && !empty; i++)
        if (strcmp(module->entries[i].name, name) == 0)
            return rapt_fail(RAPT_ERROR_VALUE, module->kind->name, "the name '%s' is in use", name);
    return true;
}

static bool add_entry(rapt_module *module, const char *name, rapt_module_entry entry)
{
    if (!check_name(module, name, entry.child != NULL)) return false;
    if (module->count == module->capacity) {
        int capacity = module->capacity ? module->capacity * 2 : 4;
        rapt_module_entry *entries = realloc(module->entries, (size_t)capacity * sizeof *entries);
        if (!entries) return rapt_fail(RAPT_ERROR_MEMORY, module->kind->name, "no memory for member '%s'", name);
        module->entries = entries;
        module->capacity = capacity;
    }
    entry.name = strdup(name);
    if (!entry.name) return rapt_fail(RAPT_ERROR_MEMORY, module->kind->name, "no memory for member '%s'", name);
    module->entries[module->count++] = entry;
    return true;
}

static rapt_tensor *add_tensor(rapt_module *module, const char *name, rapt_tensor *tensor, bool is_parameter)
{
    if (!module) return NULL;
    bool good = tensor && (!is_parameter || rapt_require_gradient(tensor)) &&
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

void *rapt_module_add_child(rapt_module *module, const char *name, rapt_module *child)
{
    if (!module) {
        rapt_module_free(child);
        return NULL;
    }
    if (child && add_entry(module, name, (rapt_module_entry){.child = child})) return child;
    module->failed = true;
    if (!child) rapt_fail(RAPT_ERROR_NULL, module->kind->name, "member '%s' is NULL", name ? name : "NULL");
    rapt_module_free(child);
    return NULL;
}

void *rapt_module_finish(rapt_module *module)
{
    if (!module || !module->failed) return module;
    rapt_module_free(module);
    return NULL;
}

rapt_tensor *rapt_module_forward(rapt_module *module, rapt_tensor *x)
{
    RAPT_UNDO_DRAWS;
    if (!module || !x) {
        rapt_fail(RAPT_ERROR_NULL, module ? module->kind->name : "module", "%s is NULL",
                  module ? "the input" : "the module");
        return NULL;
    }
    if (!module->kind->forward) {
        rapt_fail(RAPT_ERROR_UNSUPPORTED, module->kind->name, "is not a layer that maps one tensor to one");
        return NULL;
    }
    return module->kind->forward(module, x);
}

void rapt_module_train(rapt_module *module, bool training)
{
    if (!module) return;
    module->training = training;
    for (int i = 0; i < module->count; i++) rapt_module_train(module->entries[i].child, training);
}

/* name holds the prefix, `used` bytes of it. */
static bool visit(const rapt_module *module, int what, char *name, size_t used, rapt_module_visitor *visitor,
                  void *context)
{
    for (int i = 0; i < module->count; i++) {
        const rapt_module_entry *entry = &module->entries[i];
        const char *dot = used > 0 && *entry->name ? "." : "";
        int added = snprintf(name + used, RAPT_NAME_SIZE - used, "%s%s", dot, entry->name);
        size_t end = used + (size_t)added;
        if (end >= RAPT_NAME_SIZE)
            return rapt_fail(RAPT_ERROR_VALUE, module->kind->name, "a name is longer than %d bytes",
                             RAPT_NAME_SIZE - 1);
        bool wanted = entry->tensor && (what & (entry->is_parameter ? RAPT_PARAMETERS : RAPT_BUFFERS));
        if (wanted && !visitor(name, entry->tensor, context)) return false;
        if (entry->child && !visit(entry->child, what, name, end, visitor, context)) return false;
    }
    return true;
}

bool rapt_module_visit(const rapt_module *module, int what, rapt_module_visitor *visitor, void *context)
{
    if (!module || !visitor)
        return rapt_fail(RAPT_ERROR_NULL, "module_visit", "%s is NULL", module ? "visitor" : "module");
    char name[RAPT_NAME_SIZE] = "";
    return visit(module, what, name, 0, visitor, context);
}

typedef struct search {
    const char *name;
    rapt_tensor *found;
} search;

static bool compare_name(const char *name, rapt_tensor *tensor, void *context)
{
    search *s = context;
    if (strcmp(name, s->name) == 0) s->found = tensor;
    return !s->found;
}

rapt_tensor *rapt_module_find(const rapt_module *module, const char *name)
{
    if (!name) {
        rapt_fail(RAPT_ERROR_NULL, "module_find", "name is NULL");
        return NULL;
    }
    search s = {.name = name};
    rapt_module_visit(module, RAPT_PARAMETERS | RAPT_BUFFERS, compare_name, &s);
    return s.found;
}

static bool add_count(const char *name, rapt_tensor *tensor, void *context)
{
    (void)name;
    *(int64_t *)context += rapt_count(tensor);
    return true;
}

int64_t rapt_module_parameter_count(const rapt_module *module)
{
    int64_t count = 0;
    rapt_module_visit(module, RAPT_PARAMETERS, add_count, &count);
    return count;
}

static bool clear_gradient(const char *name, rapt_tensor *tensor, void *context)
{
    (void)name, (void)context;
    rapt_clear_gradient(tensor);
    return true;
}

void rapt_module_clear_gradients(rapt_module *module)
{
    rapt_module_visit(module, RAPT_PARAMETERS, clear_gradient, NULL);
}

static void print(const rapt_module *module, const char *name, int depth, FILE *stream)
{
    char text[256] = "";
    if (module->kind->describe) module->kind->describe(module, text, sizeof text);
    fprintf(stream, "%*s%s%s%s(%s)  %lld parameters\n", 2 * depth, "", name, *name ? ": " : "", module->kind->name,
            text, (long long)rapt_module_parameter_count(module));
    for (int i = 0; i < module->count; i++)
        if (module->entries[i].child) print(module->entries[i].child, module->entries[i].name, depth + 1, stream);
}

void rapt_module_print(const rapt_module *module, FILE *stream)
{
    if (module && stream) print(module, "", 0, stream);
}
