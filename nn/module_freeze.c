/* Freezing parameters by the pattern of their names. */
#include <rapt/module.h>

#include "tensor/pointer_set.h"
#include "tensor/system.h"

typedef struct freezing {
    const char *pattern;
    bool frozen;
    int count;
    rapt_pointer_set thawed;
} freezing;

static bool freeze(const char *name, rapt_tensor *parameter, void *context)
{
    freezing *f = context;
    if (!rapt_system_matches(f->pattern, name)) return true;
    f->count++;
    if (f->frozen) return rapt_refuse_gradient(parameter);
    if (rapt_requires_gradient(parameter)) return true;
    if (rapt_pointer_set_add(&f->thawed, parameter) == RAPT_SET_NO_MEMORY)
        return rapt_fail(RAPT_ERROR_MEMORY, "module_freeze", "no memory to remember %s", name);
    return rapt_require_gradient(parameter);
}

/* What was trained before stays so. A visit would take memory. */
static void undo(const freezing *f)
{
    for (int64_t i = 0; i < f->thawed.count; i++) rapt_refuse_gradient((rapt_tensor *)f->thawed.pointers[i]);
}

typedef struct unmatched {
    const char *op, *kind, *pattern;
    const rapt_tensor *named; /* what has the pattern for a name, or NULL */
} unmatched;

/* False, and an error, when that is the parameter, by another name than the one that counts. */
static bool is_another(const char *name, rapt_tensor *parameter, void *context)
{
    const unmatched *u = context;
    return parameter != u->named ||
           rapt_fail(RAPT_ERROR_VALUE, u->op, "'%s' of %s is the parameter '%s' by a later name; its first expected",
                     u->pattern, u->kind, name);
}

int rapt_module_freeze(rapt_module *module, const char *pattern, bool frozen)
{
    const char *op = "module_freeze";
    freezing f = {.pattern = pattern, .frozen = frozen};
    if (!module || !pattern) {
        rapt_fail(RAPT_ERROR_NULL, op, "%s is NULL", module ? "the pattern" : "the module");
        return 0;
    }
    const bool good = rapt_module_visit(module, RAPT_PARAMETERS, freeze, &f);
    if (!good) undo(&f);
    rapt_pointer_set_free(&f.thawed);
    if (!good) return 0;
    if (f.count > 0) return f.count;
    unmatched u = {op, module->kind->name, pattern, rapt_module_find(module, pattern)};
    if (rapt_module_visit(module, RAPT_PARAMETERS, is_another, &u))
        rapt_fail(RAPT_ERROR_VALUE, op, "no name of the parameters of %s matches '%s'", module->kind->name, pattern);
    return 0;
}
