/* Single numbers, texts and tensors of a known shape in archives. */
#include "archive.h"

#include <string.h>

#include "tensor/core.h"

bool rapt_archive_add_integer(rapt_archive *archive, const char *name, int64_t value)
{
    RAPT_SCOPE;
    rapt_tensor *tensor = rapt_from(RAPT_INT64, 0, NULL, &value);
    return tensor && rapt_archive_add(archive, name, tensor);
}

bool rapt_archive_check_integer(const char *op, rapt_error_code code, const char *name, int64_t value)
{
    return (value >= 0 && value < INT64_C(1) << 62) ||
           rapt_fail(code, op, "%s is %lld; 0 or more expected, below 2^62", name, (long long)value);
}

bool rapt_archive_get_integer(const char *op, const rapt_archive *archive, const char *name, int64_t *value)
{
    const rapt_tensor *tensor = rapt_archive_get(op, archive, name, RAPT_INT64, 0, NULL);
    if (!tensor) return false;
    const int64_t found = *(const int64_t *)rapt_data(tensor);
    if (!rapt_archive_check_integer(op, RAPT_ERROR_FORMAT, name, found)) return false;
    *value = found;
    return true;
}

static bool has_shape(const rapt_tensor *tensor, rapt_dtype dtype, int rank, const int64_t *shape)
{
    bool same = tensor->dtype == dtype && tensor->rank == rank;
    for (int axis = 0; same && axis < rank; axis++) same = tensor->shape[axis] == shape[axis];
    return same;
}

const rapt_tensor *rapt_archive_get(const char *op, const rapt_archive *archive, const char *name, rapt_dtype dtype,
                                    int rank, const int64_t *shape)
{
    const rapt_tensor *tensor = rapt_archive_find(archive, name);
    if (tensor && has_shape(tensor, dtype, rank, shape)) return tensor;
    char found[RAPT_SHAPE_TEXT + 16] = "missing", expected[RAPT_SHAPE_TEXT];
    if (tensor) rapt_describe(tensor, found, sizeof found);
    rapt_fail(RAPT_ERROR_FORMAT, op, "%s is %s; %s %s expected", name, found, rapt_dtype_name(dtype),
              rapt_shape_text(rank, shape, expected));
    return NULL;
}

/* Where a message begins to show two texts: shortly before their first difference, or where they begin. */
static size_t start_of_difference(const char *found, const char *expected)
{
    enum { before = 30, shown = 150 };
    size_t from = 0;
    while (found[from] && found[from] == expected[from]) from++;
    if (from < shown - before) return 0;
    from -= before;
    while (from > 0 && (found[from] & 0xC0) == 0x80) from--; /* within a character of UTF-8 */
    return from;
}

bool rapt_archive_check_text(const char *op, const rapt_archive *archive, const char *key, const char *expected)
{
    const char *found = rapt_archive_find_text(archive, key);
    if (found && strcmp(found, expected) == 0) return true;
    if (!found) return rapt_fail(RAPT_ERROR_FORMAT, op, "%s is missing; '%.150s' expected", key, expected);
    const size_t from = start_of_difference(found, expected);
    if (from == 0) return rapt_fail(RAPT_ERROR_FORMAT, op, "%s is '%.150s'; '%.150s' expected", key, found, expected);
    return rapt_fail(RAPT_ERROR_FORMAT, op, "%s is '...%.150s'; '...%.150s' expected", key, found + from,
                     expected + from);
}
