/* Modules to and from archives and files; conversion of a module to another dtype. */
#include <stdio.h>
#include <string.h>

#include "nn/entry.h"
#include "tensor/core.h"

/* A walk that copies between a module and an archive under a prefix. */
typedef struct transfer {
    const char *prefix;
    rapt_archive *target;
    const rapt_archive *source;
} transfer;

static bool full_name(const transfer *t, const char *name, char *text, size_t size)
{
    int length = snprintf(text, size, "%s%s", t->prefix ? t->prefix : "", name);
    return length < (int)size || rapt_fail(RAPT_ERROR_VALUE, "archive", "a name is longer than %zu bytes: %s after %s",
                                           size - 1, name, t->prefix);
}

static bool add_to_archive(const char *name, rapt_tensor *tensor, void *context)
{
    const transfer *t = context;
    char text[RAPT_NAME_SIZE * 2];
    return full_name(t, name, text, sizeof text) && rapt_archive_add(t->target, text, tensor);
}

bool rapt_module_to_archive(const rapt_module *module, const char *prefix, rapt_archive *archive)
{
    if (!module || !archive)
        return rapt_fail(RAPT_ERROR_NULL, "module_to_archive", "%s is NULL", module ? "archive" : "module");
    transfer t = {.prefix = prefix, .target = archive};
    return rapt_module_visit(module, RAPT_PARAMETERS | RAPT_BUFFERS, add_to_archive, &t);
}

static bool check_stored(const char *name, rapt_tensor *tensor, void *context)
{
    const transfer *t = context;
    char text[RAPT_NAME_SIZE * 2], expected[256], found[256];
    if (!full_name(t, name, text, sizeof text)) return false;
    const rapt_tensor *stored = rapt_archive_find(t->source, text);
    rapt_describe(tensor, expected, sizeof expected);
    if (!stored)
        return rapt_fail(RAPT_ERROR_FORMAT, "module_from_archive", "no tensor %s (%s expected)", text, expected);
    if (rapt_same_shape(stored, tensor) && rapt_get_dtype(stored) == rapt_get_dtype(tensor)) return true;
    return rapt_fail(RAPT_ERROR_SHAPE, "module_from_archive", "%s is %s; %s expected", text,
                     rapt_describe(stored, found, sizeof found), expected);
}

static bool copy_stored(const char *name, rapt_tensor *tensor, void *context)
{
    const transfer *t = context;
    char text[RAPT_NAME_SIZE * 2];
    return full_name(t, name, text, sizeof text) && rapt_copy(tensor, rapt_archive_find(t->source, text));
}

bool rapt_module_from_archive(rapt_module *module, const char *prefix, const rapt_archive *archive)
{
    if (!module || !archive)
        return rapt_fail(RAPT_ERROR_NULL, "module_from_archive", "%s is NULL", module ? "archive" : "module");
    transfer t = {.prefix = prefix, .source = archive};
    const int all = RAPT_PARAMETERS | RAPT_BUFFERS;
    return rapt_module_visit(module, all, check_stored, &t) && rapt_module_visit(module, all, copy_stored, &t);
}

bool rapt_module_save(const rapt_module *module, const char *path)
{
    rapt_archive *archive = rapt_archive_new();
    bool good = archive && rapt_module_to_archive(module, NULL, archive) && rapt_save_safetensors(path, archive);
    rapt_archive_free(archive);
    return good;
}

bool rapt_module_load(rapt_module *module, const char *path)
{
    RAPT_SCOPE;
    rapt_archive *archive = rapt_load_safetensors(path);
    bool good = archive && rapt_module_from_archive(module, NULL, archive);
    rapt_archive_free(archive);
    return good;
}

static bool cast_tensor(const char *name, rapt_tensor *tensor, void *context)
{
    (void)name;
    if (!rapt_is_floating(tensor)) return true;
    bool is_leaf = rapt_requires_gradient(tensor);
    return rapt_cast_in_place(tensor, *(const rapt_dtype *)context) && (!is_leaf || rapt_require_gradient(tensor));
}

bool rapt_module_cast(rapt_module *module, rapt_dtype dtype)
{
    if (!rapt_dtype_is_floating(dtype))
        return rapt_fail(RAPT_ERROR_DTYPE, "module_cast", "%s is not floating", rapt_dtype_name(dtype));
    RAPT_SCOPE;
    return rapt_module_visit(module, RAPT_PARAMETERS | RAPT_BUFFERS, cast_tensor, &dtype);
}
