/* Averages of a module's values: exponential, or all alike. */
#include "average.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive.h"
#include "core.h"
#include "tensor/archive.h"
#include "tensor/core.h"
#include "tensor/debug.h"

struct rapt_average {
    rapt_module *module;
    rapt_average_config config;
    double decay;
    int64_t updates;
    rapt_archive *values; /* the averages */
    rapt_archive *own;    /* the module's, while it has the averages; else NULL */
};

rapt_average *rapt_average_new(rapt_module *module, const rapt_average_config *config)
{
    const char *op = "average_new";
    const rapt_average_config c = config ? *config : (rapt_average_config){0};
    double decay;
    if (!module) return rapt_fail_null(op, "module"), NULL;
    if (!rapt_take_number(op, "decay", c.decay, 0.999, 1, &decay)) return NULL;
    if (c.equal && c.warms_up)
        return rapt_fail(RAPT_ERROR_VALUE, op, "equal beside warms_up, by which the beginning counts less"), NULL;
    rapt_average *average = malloc(sizeof *average);
    if (!average) return rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for the averages"), NULL;
    *average = (rapt_average){module, c, decay, 0, rapt_module_snapshot(module), NULL};
    if (average->values) return average;
    rapt_average_free(average);
    return NULL;
}

void rapt_average_free(rapt_average *average)
{
    if (!average || rapt_was_freed("average_free", average)) return;
    rapt_archive_free(average->values);
    rapt_archive_free(average->own);
    rapt_free_object(average, "average");
}

static bool check(const char *op, const rapt_average *average)
{
    if (!average) return rapt_fail_null(op, "average");
    if (rapt_was_freed(op, average)) return false;
    return !average->own ||
           rapt_fail(RAPT_ERROR_VALUE, op, "the module has the averages now; rapt_average_swap expected before it");
}

bool rapt_average_update(rapt_average *average)
{
    if (!check("average_update", average)) return false;
    const double n = (double)average->updates;
    double decay = average->config.equal ? n / (n + 1) : average->decay;
    if (average->config.warms_up) decay = fmin(decay, (1 + n) / (10 + n));
    if (!rapt_module_average(average->module, average->values, average->updates == 0 ? 0 : decay)) return false;
    average->updates++;
    return true;
}

static bool swap_in(rapt_average *average)
{
    rapt_archive *own = rapt_module_snapshot(average->module);
    if (own && rapt_module_from_archive(average->module, NULL, average->values)) {
        average->own = own;
        return true;
    }
    rapt_archive_free(own);
    return false;
}

/* Has the parameter the very bits of its average still? */
static bool is_average(const char *name, rapt_tensor *parameter, void *context)
{
    RAPT_SCOPE;
    const rapt_average *average = context;
    const rapt_tensor *value = rapt_archive_find(average->values, name);
    const rapt_tensor *now = rapt_contiguous(rapt_detach(parameter));
    if (!now) return false;
    return (value && value->dtype == now->dtype && rapt_same_shape(value, now) &&
            memcmp(value->data, now->data, (size_t)now->count * rapt_dtype_size(now->dtype)) == 0) ||
           rapt_fail(RAPT_ERROR_VALUE, "average_swap",
                     "%s was changed since the averages were swapped in, by a step, by loading or by another's swap, "
                     "which is to be swapped back before",
                     name);
}

/* Buffers that were computed anew with the averages belong to them. */
static bool swap_back(rapt_average *average)
{
    if (!rapt_module_visit(average->module, RAPT_PARAMETERS, is_average, average) ||
        !rapt_module_average(average->module, average->values, 0) ||
        !rapt_module_from_archive(average->module, NULL, average->own))
        return false;
    rapt_archive_free(average->own);
    average->own = NULL;
    return true;
}

bool rapt_average_swap(rapt_average *average)
{
    if (!average) return rapt_fail_null("average_swap", "average");
    if (rapt_was_freed("average_swap", average)) return false;
    return average->own ? swap_back(average) : swap_in(average);
}

int64_t rapt_average_get_updates(const rapt_average *average)
{
    const char *op = "average_get_updates";
    if (!average) return rapt_fail_null(op, "average"), 0;
    return rapt_was_freed(op, average) ? 0 : average->updates;
}

enum { name_size = 2 * RAPT_PARAMETER_NAME_SIZE };

static bool full_name(char text[name_size], const char *prefix, const char *part, const char *name)
{
    return snprintf(text, name_size, "%s%s%s", prefix ? prefix : "", part, name) < name_size ||
           rapt_fail(RAPT_ERROR_VALUE, "average_archive", "the name %s is too long", name);
}

static bool collect(const rapt_average *average, const char *prefix, rapt_archive *archive)
{
    char name[name_size];
    if (!full_name(name, prefix, "updates", "") || !rapt_archive_add_integer(archive, name, average->updates))
        return false;
    for (int64_t i = 0; i < rapt_archive_count(average->values); i++)
        if (!full_name(name, prefix, "values.", rapt_archive_name(average->values, i)) ||
            !rapt_archive_add(archive, name, rapt_archive_tensor(average->values, i)))
            return false;
    return true;
}

bool rapt_average_to_archive(const rapt_average *average, const char *prefix, rapt_archive *archive)
{
    const char *op = "average_to_archive";
    if (!check(op, average)) return false;
    if (!archive) return rapt_fail_null(op, "archive");
    if (rapt_was_freed(op, archive)) return false;
    const int64_t before = archive->tensors.count;
    return collect(average, prefix, archive) || rapt_archive_cut(archive, before, archive->texts.count);
}

bool rapt_average_read(const rapt_average *average, const char *prefix, const rapt_archive *archive,
                       rapt_average_image *image)
{
    const char *op = "average_from_archive";
    char name[name_size];
    *image = (rapt_average_image){0};
    if (!check(op, average)) return false;
    if (!archive) return rapt_fail_null(op, "archive");
    if (!full_name(name, prefix, "updates", "") || !rapt_archive_get_integer(op, archive, name, &image->updates))
        return false;
    image->values = rapt_archive_new();
    RAPT_SCOPE;
    for (int64_t i = 0; image->values && i < rapt_archive_count(average->values); i++) {
        const char *own = rapt_archive_name(average->values, i);
        const rapt_tensor *like = rapt_archive_tensor(average->values, i);
        if (!full_name(name, prefix, "values.", own)) return false;
        const rapt_tensor *stored = rapt_archive_get(op, archive, name, like->dtype, like->rank, like->shape);
        rapt_tensor *copy = stored ? rapt_clone(stored) : NULL;
        if (!copy || !rapt_archive_add(image->values, own, copy)) return false;
    }
    return image->values != NULL;
}

void rapt_average_take(rapt_average *average, rapt_average_image *image)
{
    rapt_archive *before = average->values;
    average->values = image->values;
    average->updates = image->updates;
    image->values = before;
}

bool rapt_average_from_archive(rapt_average *average, const char *prefix, const rapt_archive *archive)
{
    rapt_average_image image;
    const bool good = rapt_average_read(average, prefix, archive, &image);
    if (good) rapt_average_take(average, &image);
    rapt_archive_free(image.values);
    return good;
}
