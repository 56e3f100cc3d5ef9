/* Values of a module copied: into another module, into a snapshot, into averages. */
#include <rapt/module_values.h>

#include "nn/entry.h"
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

/* --- averages --- */

typedef struct averaging {
    const char *op;
    rapt_archive *archive;
    rapt_pointer_set storages;          /* of the module's tensors */
    rapt_pointer_set tensors, averages; /* pairs by their numbers */
} averaging;

static bool match(const char *name, rapt_tensor *tensor, void *context)
{
    averaging *a = context;
    rapt_tensor *average = rapt_archive_find(a->archive, name);
    if (!rapt_module_check_stored(a->op, name, tensor, average) || !rapt_check_writable(a->op, average)) return false;
    if (rapt_pointer_set_find(&a->storages, average->storage) >= 0 || rapt_pointer_set_find(&a->averages, average) >= 0)
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
        rapt_module_add_storages(a.op, module, &a.storages) && rapt_module_visit(module, rapt_all_tensors, match, &a);
    for (int64_t i = 0; good && i < a.tensors.count; i++)
        add_to_average((rapt_tensor *)a.averages.pointers[i], a.tensors.pointers[i], decay);
    rapt_pointer_set_free(&a.storages);
    rapt_pointer_set_free(&a.tensors);
    rapt_pointer_set_free(&a.averages);
    return good;
}
