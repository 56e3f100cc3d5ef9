/* Printing a module: its kinds as a tree, its tensors by their full names. */
#include <stdio.h>

#include "nn/entry.h"
#include "nn/summary.h"
#include "tensor/core.h"
#include "tensor/pointer_set.h"

typedef struct printing {
    const char *op;
    const rapt_module *root;
    const rapt_module_results *results; /* of a summary, or NULL */
    FILE *stream;
    rapt_pointer_set met;      /* modules and tensors that were printed */
    char name[RAPT_NAME_SIZE]; /* of what is printed now */
} printing;

typedef struct search {
    const void *wanted;        /* a module or tensor */
    rapt_pointer_set met;      /* modules that it is not in */
    char name[RAPT_NAME_SIZE]; /* of what is looked at */
} search;

/* The first entry below that holds what is wanted, NULL when there is none; `used` bytes of the name are the
 * module's. */
static const rapt_module_entry *first_entry(search *s, const rapt_module *module, int used)
{
    if (rapt_module_is_shared(module) && rapt_pointer_set_add(&s->met, module) == RAPT_SET_KNOWN) return NULL;
    for (int i = 0; i < module->count; i++) {
        const rapt_module_entry *entry = &module->entries[i];
        const int end = rapt_module_append_name(module, entry, s->name, used);
        if (end < 0) return NULL;
        if (entry->tensor == s->wanted || entry->child == s->wanted) return entry;
        const rapt_module_entry *found = entry->child ? first_entry(s, entry->child, end) : NULL;
        if (found) return found;
    }
    return NULL;
}

/* The end of a line about what was printed already. */
static void print_place(const printing *p, const void *member)
{
    search s = {.wanted = member};
    const rapt_module_entry *entry = first_entry(&s, p->root, 0);
    const bool has_name = entry && *entry->name;
    fprintf(p->stream, ", the same as %s%s\n", has_name || !*s.name ? "" : "in ", *s.name ? s.name : "above");
    rapt_pointer_set_free(&s.met);
}

/* Remembers it; false and an error when there is no memory for that. */
static bool mark_seen(printing *p, const void *member, bool *is_known)
{
    const rapt_set_result result = rapt_pointer_set_add(&p->met, member);
    *is_known = result == RAPT_SET_KNOWN;
    return result != RAPT_SET_NO_MEMORY ||
           rapt_fail(RAPT_ERROR_MEMORY, p->op, "no memory to remember what was printed");
}

static bool print_tensor(printing *p, const rapt_module_entry *entry, int depth)
{
    char text[256];
    bool is_known;
    if (!mark_seen(p, entry->tensor, &is_known)) return false;
    fprintf(p->stream, "%*s%s: %s%s", 2 * depth, "", p->name, rapt_describe(entry->tensor, text, sizeof text),
            !entry->is_parameter                    ? ", a buffer"
            : rapt_requires_gradient(entry->tensor) ? ""
                                                    : ", frozen");
    if (is_known)
        print_place(p, entry->tensor);
    else
        fputc('\n', p->stream);
    return true;
}

static bool add_bytes(const char *name, rapt_tensor *tensor, void *bytes)
{
    (void)name;
    *(int64_t *)bytes += rapt_count(tensor) * (int64_t)rapt_dtype_size(rapt_get_dtype(tensor));
    return true;
}

/* The end of a module's line in a summary. */
static bool print_result(const printing *p, const rapt_module *module)
{
    const rapt_module_result *result = rapt_module_result_of(p->results, module);
    int64_t bytes = 0;
    if (!rapt_module_visit(module, rapt_all_tensors, add_bytes, &bytes)) return false;
    fprintf(p->stream, ", %lld bytes -> %s", (long long)bytes, result ? result->outputs : "it did not run");
    if (result && result->calls > 1) fprintf(p->stream, ", %d times", result->calls);
    return true;
}

/* name is the module's part of its full name, of which `used` bytes are written. */
static bool print(printing *p, const rapt_module *module, const char *name, int used, int depth)
{
    char text[256] = "";
    int64_t parameters;
    bool is_known;
    if (!mark_seen(p, module, &is_known) || !rapt_module_count(module, &parameters)) return false;
    fprintf(p->stream, "%*s%s%s%s", 2 * depth, "", *name ? p->name : "", *name ? ": " : "", module->kind->name);
    if (is_known) {
        print_place(p, module);
        return true;
    }
    if (module->kind->describe) module->kind->describe(module, text, sizeof text);
    text[sizeof text - 1] = '\0'; /* which a describe of one's own may have left out, as strncpy does */
    fprintf(p->stream, "(%s)  %lld parameters", text, (long long)parameters);
    if (p->results && !print_result(p, module)) return false;
    fputc('\n', p->stream);
    for (int i = 0; i < module->count; i++) {
        const rapt_module_entry *entry = &module->entries[i];
        const int end = rapt_module_append_name(module, entry, p->name, used);
        if (end < 0) return false;
        if (entry->child ? !print(p, entry->child, entry->name, end, depth + 1)
                         : !p->results && !print_tensor(p, entry, depth + 1))
            return false;
    }
    return true;
}

bool rapt_module_print_tree(const char *op, const rapt_module *module, FILE *stream, const rapt_module_results *results)
{
    printing p = {.op = op, .root = module, .stream = stream, .results = results};
    const bool good = print(&p, module, "", 0, 0);
    rapt_pointer_set_free(&p.met);
    if (good && (fflush(stream) != 0 || ferror(stream)))
        return rapt_fail(RAPT_ERROR_FILE, op, "the stream cannot be written to");
    return good;
}

bool rapt_module_print(const rapt_module *module, FILE *stream)
{
    const char *op = "module_print";
    if (!module || !stream) return rapt_fail_null(op, module ? "stream" : "module");
    return rapt_module_print_tree(op, module, stream, NULL);
}
