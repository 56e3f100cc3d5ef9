/* Modules to and from archives and files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rapt/module_values.h>

#include "nn/entry.h"
#include "tensor/archive.h"
#include "tensor/core.h"
#include "tensor/system.h"

/* --- to an archive --- */

/* prefix + name */
static bool full_name(const char *prefix, const char *name, char *text, size_t size)
{
    int length = snprintf(text, size, "%s%s", prefix ? prefix : "", name);
    return length < (int)size || rapt_fail(RAPT_ERROR_VALUE, "archive", "a name is longer than %zu bytes: %s after %s",
                                           size - 1, name, prefix);
}

typedef struct collection {
    const char *prefix;
    rapt_archive *archive;
} collection;

static bool add_to_archive(const char *name, rapt_tensor *tensor, void *context)
{
    const collection *c = context;
    char text[RAPT_NAME_SIZE * 2];
    return full_name(c->prefix, name, text, sizeof text) && rapt_archive_add(c->archive, text, tensor);
}

bool rapt_module_to_archive(const rapt_module *module, const char *prefix, rapt_archive *archive)
{
    const char *op = "module_to_archive";
    if (!rapt_module_is_there(op, module)) return false;
    if (!archive) return rapt_fail_null(op, "archive");
    if (rapt_was_freed(op, archive)) return false;
    const int64_t before = archive->tensors.count;
    return rapt_module_visit(module, rapt_all_tensors, add_to_archive, &(collection){prefix, archive}) ||
           rapt_archive_cut(archive, before, archive->texts.count);
}

/* --- what of an archive goes where --- */

bool rapt_module_check_stored(const char *op, const char *name, const rapt_tensor *tensor, const rapt_tensor *stored)
{
    char expected[256], found[256];
    rapt_describe(tensor, expected, sizeof expected);
    if (!stored) return rapt_fail(RAPT_ERROR_FORMAT, op, "no tensor %s (%s expected)", name, expected);
    const bool same = rapt_same_shape(stored, tensor);
    if (same && stored->dtype == tensor->dtype) return true;
    const bool can_cast = same && rapt_is_floating(stored) && rapt_is_floating(tensor);
    return rapt_fail(RAPT_ERROR_SHAPE, op, "%s is %s; %s expected%s", name, rapt_describe(stored, found, sizeof found),
                     expected, can_cast ? " (rapt_module_cast gives the module that dtype)" : "");
}

/* The tensors of a module, and for each the one of the archive that goes there. */
typedef struct match {
    const char *op;
    const rapt_module *module;
    const rapt_load_part *part;
    const rapt_archive *archive;
    rapt_tensor_list *list;
    rapt_pointer_set numbers; /* of the list's tensors in it */
    rapt_tensor **stored;     /* NULL: none */
    int taken, missing;
    int64_t unused; /* names of the archive that the module has not */
    const char *first_unused;
} match;

static bool is_wanted(const match *m, const char *name)
{
    return !m->part->pattern || rapt_system_matches(m->part->pattern, name);
}

/* The name of an entry of the archive without the prefix; NULL when it begins otherwise. */
static const char *name_of(const match *m, int64_t entry)
{
    const char *name = rapt_archive_name(m->archive, entry);
    const size_t length = m->part->prefix ? strlen(m->part->prefix) : 0;
    return length == 0 || strncmp(name, m->part->prefix, length) == 0 ? name + length : NULL;
}

static bool same_bits(rapt_tensor *a, rapt_tensor *b)
{
    RAPT_SCOPE;
    const rapt_tensor *first = rapt_as_contiguous(a), *second = rapt_as_contiguous(b);
    return first && second && memcmp(first->data, second->data, (size_t)a->count * rapt_dtype_size(a->dtype)) == 0;
}

/* Of one tensor under several names, all must be the same. */
static bool take_entry(match *m, int64_t entry)
{
    const char *name = name_of(m, entry);
    if (!name) return true;
    rapt_tensor *tensor = rapt_module_find(m->module, name);
    if (!tensor) {
        if (m->unused++ == 0) m->first_unused = name;
        return true;
    }
    const int64_t number = rapt_pointer_set_find(&m->numbers, tensor);
    if (!is_wanted(m, m->list->names[number])) return true;
    rapt_tensor *stored = rapt_archive_tensor(m->archive, entry);
    if (!rapt_module_check_stored(m->op, rapt_archive_name(m->archive, entry), tensor, stored)) return false;
    rapt_tensor **place = &m->stored[number];
    if (!*place) {
        *place = stored;
        m->taken++;
    }
    return *place == stored || same_bits(*place, stored) ||
           rapt_fail(RAPT_ERROR_FORMAT, m->op, "%s has other values than another name of the same tensor",
                     rapt_archive_name(m->archive, entry));
}

/* The usual reason why names are missing: in the archive they stand behind a prefix. */
static const char *prefix_cure(const match *m, const char *name, char *text, size_t size)
{
    const size_t length = strlen(name);
    *text = '\0';
    for (int64_t i = 0; i < rapt_archive_count(m->archive) && !*text; i++) {
        const char *stored = rapt_archive_name(m->archive, i);
        const size_t before = strlen(stored) > length ? strlen(stored) - length : 0;
        if (before > 0 && stored[before - 1] == '.' && strcmp(stored + before, name) == 0)
            snprintf(text, size, "; there is '%.200s': rapt_load_part takes a prefix off", stored);
    }
    return text;
}

static bool check_missing(match *m)
{
    char cure[256], expected[256];
    char text[RAPT_NAME_SIZE * 2];
    for (int i = 0; i < m->list->count; i++) {
        const char *name = m->list->names[i];
        if (m->stored[i] || !is_wanted(m, name)) continue;
        m->missing++;
        if (!full_name(m->part->prefix, name, text, sizeof text)) return false;
        if (m->part->allow_missing) continue;
        return rapt_fail(RAPT_ERROR_FORMAT, m->op, "no tensor %s (%s expected)%s", text,
                         rapt_describe(m->list->tensors[i], expected, sizeof expected),
                         prefix_cure(m, name, cure, sizeof cure));
    }
    if (m->taken > 0 || m->list->count == 0) return true;
    if (m->missing == 0)
        return rapt_fail(RAPT_ERROR_VALUE, m->op, "nothing matches '%s', of the module's %d tensors", m->part->pattern,
                         m->list->count);
    return rapt_fail(RAPT_ERROR_FORMAT, m->op, "none of the module's %d names is there, not even %s%s%s",
                     m->list->count, m->part->prefix ? m->part->prefix : "", m->list->names[0],
                     prefix_cure(m, m->list->names[0], cure, sizeof cure));
}

/* Of a whole module nothing may be left: it is of another architecture. */
static bool check_unused(const match *m)
{
    return m->unused == 0 ||
           rapt_fail(RAPT_ERROR_FORMAT, m->op,
                     "there are %lld tensors that the module has not, such as '%.200s'; rapt_load_part leaves them out",
                     (long long)m->unused, m->first_unused);
}

/* Where the archive shares elements with the module, but not those of the same tensor, copies are taken before they
 * change. */
static bool detach_stored(match *m)
{
    rapt_module_memory memory;
    bool good = rapt_module_memory_find(&memory, m->op, m->module);
    for (int i = 0; i < m->list->count && good; i++) {
        rapt_tensor *stored = m->stored[i];
        if (!stored || stored == m->list->tensors[i]) continue;
        if (rapt_module_memory_has(&memory, stored)) m->stored[i] = rapt_clone(stored);
        good = m->stored[i] && rapt_check_writable(m->op, m->list->tensors[i]);
    }
    rapt_module_memory_free(&memory);
    return good;
}

/* Everything that can fail. */
static bool prepare(match *m, bool is_whole)
{
    m->list = rapt_module_list(m->module, rapt_all_tensors);
    if (!m->list) return false;
    m->stored = calloc((size_t)m->list->count + 1, sizeof(rapt_tensor *));
    bool good = m->stored;
    for (int i = 0; i < m->list->count && good; i++)
        good = rapt_pointer_set_add(&m->numbers, m->list->tensors[i]) == RAPT_SET_NEW;
    if (!good) return rapt_fail(RAPT_ERROR_MEMORY, m->op, "no memory for %d tensors", m->list->count);
    for (int64_t i = 0; i < rapt_archive_count(m->archive); i++)
        if (!take_entry(m, i)) return false;
    return check_missing(m) && (!is_whole || check_unused(m)) && detach_stored(m);
}

static void report(const match *m)
{
    const rapt_load_part *part = m->part;
    for (int i = 0; i < m->list->count; i++) {
        const char *name = m->list->names[i];
        part->report(name,
                     m->stored[i]         ? RAPT_LOAD_TAKEN
                     : is_wanted(m, name) ? RAPT_LOAD_MISSING
                                          : RAPT_LOAD_SKIPPED,
                     part->context);
    }
    for (int64_t i = 0; i < rapt_archive_count(m->archive); i++) {
        const char *name = name_of(m, i);
        if (name && !rapt_module_find(m->module, name)) part->report(name, RAPT_LOAD_UNUSED, part->context);
    }
}

bool rapt_module_take(const char *op, rapt_module *module, const rapt_load_part *part, bool is_whole,
                      const rapt_archive *archive)
{
    if (!module || !archive) return rapt_fail(RAPT_ERROR_NULL, op, "%s is NULL", module ? "archive" : "module");
    RAPT_SCOPE;
    match m = {.op = op, .module = module, .part = part, .archive = archive};
    bool good = prepare(&m, is_whole);
    for (int i = 0; good && i < m.list->count; i++)
        if (m.stored[i] && m.stored[i] != m.list->tensors[i]) rapt_copy(m.list->tensors[i], m.stored[i]);
    if (good && part->report) report(&m);
    free(m.stored);
    rapt_pointer_set_free(&m.numbers);
    rapt_tensor_list_free(m.list);
    return good;
}

/* --- from an archive, to and from a file --- */

static const char from_archive[] = "module_from_archive";
static const rapt_load_part everything = {0};

bool rapt_module_from_archive_part(rapt_module *module, const rapt_load_part *part, const rapt_archive *archive)
{
    return rapt_module_take(from_archive, module, part ? part : &everything, false, archive);
}

bool rapt_module_from_archive(rapt_module *module, const char *prefix, const rapt_archive *archive)
{
    return rapt_module_from_archive_part(module, &(rapt_load_part){.prefix = prefix}, archive);
}

bool rapt_module_save(const rapt_module *module, const char *path)
{
    rapt_archive *archive = rapt_module_is_there("module_save", module) ? rapt_archive_new() : NULL;
    bool good = archive && rapt_module_to_archive(module, NULL, archive) && rapt_save_safetensors(path, archive);
    rapt_archive_free(archive);
    return good;
}

static bool load(const char *op, rapt_module *module, const rapt_load_part *part, bool is_whole, const char *path)
{
    RAPT_SCOPE;
    rapt_archive *archive = rapt_load_safetensors(path);
    bool good = archive && rapt_module_take(op, module, part ? part : &everything, is_whole, archive);
    rapt_archive_free(archive);
    return good;
}

bool rapt_module_load_part(rapt_module *module, const rapt_load_part *part, const char *path)
{
    return load(from_archive, module, part, false, path);
}

bool rapt_module_load(rapt_module *module, const char *path)
{
    return load("module_load", module, NULL, true, path);
}
