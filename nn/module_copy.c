/* Values of a module copied: into another module, into a snapshot, into averages. */
#include <stdlib.h>

#include <rapt/module_values.h>

#include "nn/entry.h"
#include "tensor/core.h"
#include "tensor/map.h"

bool rapt_module_copy(rapt_module *target, const rapt_module *source)
{
    const char *op = "module_copy";
    if (!target || !source) return rapt_fail(RAPT_ERROR_NULL, op, "%s is NULL", target ? "source" : "target");
    rapt_archive *archive = rapt_archive_new();
    bool good = archive && rapt_module_to_archive(source, NULL, archive) &&
                rapt_module_take(op, target, &(rapt_load_part){0}, true, archive);
    rapt_archive_free(archive);
    return good;
}

static bool add_clone(const char *name, rapt_tensor *tensor, void *archive)
{
    RAPT_SCOPE;
    rapt_tensor *clone = rapt_clone(tensor);
    return clone && rapt_archive_add(archive, name, clone);
}

rapt_archive *rapt_module_snapshot(const rapt_module *module)
{
    rapt_archive *archive = rapt_module_is_there("module_snapshot", module) ? rapt_archive_new() : NULL;
    if (archive && rapt_module_visit(module, rapt_all_tensors, add_clone, archive)) return archive;
    rapt_archive_free(archive);
    return NULL;
}

/* --- what shares memory with a module --- */

typedef struct rapt_span {
    const char *begin, *end;
} rapt_span;

static bool add_memory(const char *name, rapt_tensor *tensor, void *context)
{
    rapt_module_memory *memory = context;
    if (memory->count == memory->capacity) {
        const int64_t capacity = 2 * memory->capacity + 16;
        rapt_span *grown = realloc(memory->spans, (size_t)capacity * sizeof *grown);
        if (!grown) return rapt_fail(RAPT_ERROR_MEMORY, memory->op, "no memory to remember %s", name);
        memory->spans = grown;
        memory->capacity = capacity;
    }
    memory->spans[memory->count++] = (rapt_span){tensor->data, rapt_end_of(tensor)};
    memory->is_foreign |= tensor->storage->is_foreign;
    return rapt_pointer_set_add(&memory->storages, tensor->storage) != RAPT_SET_NO_MEMORY ||
           rapt_fail(RAPT_ERROR_MEMORY, memory->op, "no memory to remember %s", name);
}

bool rapt_module_memory_find(rapt_module_memory *memory, const char *op, const rapt_module *module)
{
    *memory = (rapt_module_memory){.op = op};
    return rapt_module_visit(module, rapt_all_tensors, add_memory, memory);
}

/* Memory of others may be seen through several storages. */
bool rapt_module_memory_has(const rapt_module_memory *memory, const rapt_tensor *tensor)
{
    bool has = rapt_pointer_set_find(&memory->storages, tensor->storage) >= 0;
    if (!memory->is_foreign && !tensor->storage->is_foreign) return has;
    const char *begin = tensor->data, *end = rapt_end_of(tensor);
    for (int64_t i = 0; i < memory->count && !has; i++)
        has = begin < memory->spans[i].end && memory->spans[i].begin < end;
    return has;
}

void rapt_module_memory_free(rapt_module_memory *memory)
{
    free(memory->spans);
    rapt_pointer_set_free(&memory->storages);
}

/* --- averages --- */

typedef struct averaging {
    const char *op;
    rapt_archive *archive;
    rapt_module_memory memory;          /* of the module's tensors */
    rapt_pointer_set tensors, averages; /* pairs by their numbers */
} averaging;

static bool match(const char *name, rapt_tensor *tensor, void *context)
{
    averaging *a = context;
    rapt_tensor *average = rapt_archive_find(a->archive, name);
    if (!rapt_module_check_stored(a->op, name, tensor, average) || !rapt_check_writable(a->op, average)) return false;
    if (rapt_module_memory_has(&a->memory, average) || rapt_pointer_set_find(&a->averages, average) >= 0)
        return rapt_fail(RAPT_ERROR_VALUE, a->op,
                         "%s is a tensor of something else too; a rapt_module_snapshot expected", name);
    return (rapt_pointer_set_add(&a->tensors, tensor) == RAPT_SET_NEW &&
            rapt_pointer_set_add(&a->averages, average) == RAPT_SET_NEW) ||
           rapt_fail(RAPT_ERROR_MEMORY, a->op, "no memory to remember %s", name);
}

/* average += (1 − decay) · (tensor − average), in one pass, so that what does not change stays. Of what was checked; it
 * cannot fail. */
static void add_to_average(rapt_tensor *average, const rapt_tensor *tensor, double decay)
{
    if (!rapt_is_floating(tensor) || decay == 0) {
        rapt_copy(average, tensor);
    } else if (decay < 1) {
        enum { cost = 2, operand_count = 2 };
        const rapt_average_numbers numbers = {.share = 1 - decay};
        rapt_begin_writing("module_average", average);
        rapt_map(rapt_kernel.optimizer.average[average->dtype], &numbers, cost, operand_count,
                 (const rapt_tensor *[]){average, tensor});
    }
}

bool rapt_module_average(const rapt_module *module, rapt_archive *averages, double decay)
{
    averaging a = {.op = "module_average", .archive = averages};
    if (!module || !averages) return rapt_fail(RAPT_ERROR_NULL, a.op, "%s is NULL", module ? "averages" : "module");
    if (!(decay >= 0 && decay <= 1)) return rapt_fail(RAPT_ERROR_VALUE, a.op, "decay %g; 0 to 1 expected", decay);
    bool good =
        rapt_module_memory_find(&a.memory, a.op, module) && rapt_module_visit(module, rapt_all_tensors, match, &a);
    for (int64_t i = 0; good && i < a.tensors.count; i++)
        add_to_average((rapt_tensor *)a.averages.pointers[i], a.tensors.pointers[i], decay);
    rapt_module_memory_free(&a.memory);
    rapt_pointer_set_free(&a.tensors);
    rapt_pointer_set_free(&a.averages);
    return good;
}
