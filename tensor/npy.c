/* Reading and writing npy files. */
#include "npy.h"

#include <stdio.h>
#include <string.h>

#include <rapt/npy.h>

#include "byte_order.h"
#include "tensor/debug.h"
#include "tensor/replace_file.h"

/* The next bytes of the source. */
static bool take(rapt_npy_source *s, void *data, size_t size)
{
    if ((uint64_t)s->left < size)
        return rapt_fail(RAPT_ERROR_FORMAT, s->reading->op, "%s: cut short: %zu bytes expected where %lld are left",
                         s->where, size, (long long)s->left);
    if (!rapt_reading_take(s->reading, data, size)) return false;
    s->left -= (int64_t)size;
    if (s->sum) rapt_crc32_add(s->sum, data, size);
    return true;
}

static bool read_header(rapt_npy_source *s, rapt_npy_header *header)
{
    enum { most = 65536 };
    uint8_t magic[8], length[4] = {0};
    char text[most];
    if (!take(s, magic, sizeof magic)) return false;
    if (memcmp(magic, "\x93NUMPY", 6) != 0)
        return rapt_fail(RAPT_ERROR_FORMAT, s->reading->op, "%s: no npy file: it does not begin with \\x93NUMPY",
                         s->where);
    if (magic[6] < 1 || magic[6] > 3 || magic[7] != 0)
        return rapt_fail(RAPT_ERROR_FORMAT, s->reading->op, "%s: npy version %d.%d; 1.0, 2.0 or 3.0 expected", s->where,
                         magic[6], magic[7]);
    if (!take(s, length, magic[6] == 1 ? 2 : 4)) return false;
    uint32_t size = 0;
    for (int i = 3; i >= 0; i--) size = size << 8 | length[i];
    if (size > most)
        return rapt_fail(RAPT_ERROR_FORMAT, s->reading->op, "%s: an npy header of %u bytes; at most %d expected",
                         s->where, size, most);
    return take(s, text, size) && rapt_npy_header_parse(s, text, size, header);
}

/* The array as it lies in the file: of Fortran's order, the axes are the other way round. */
static rapt_tensor *read_elements(rapt_npy_source *s, const rapt_npy_header *h, const int64_t *shape)
{
    int64_t count;
    if (!rapt_check_shape(s->reading->op, h->dtype, h->rank, shape, &count)) return NULL;
    const int64_t bytes = count * rapt_element_bytes[h->dtype];
    if (bytes != s->left) {
        char text[RAPT_SHAPE_TEXT];
        rapt_fail(RAPT_ERROR_FORMAT, s->reading->op, "%s: %lld bytes of elements where shape %s of %s needs %lld",
                  s->where, (long long)s->left, rapt_shape_text(h->rank, h->shape, text), rapt_dtype_name(h->dtype),
                  (long long)bytes);
        return NULL;
    }
    rapt_tensor *tensor = rapt_new(s->reading->op, h->dtype, h->rank, shape);
    if (!tensor || !take(s, tensor->data, (size_t)bytes)) return NULL;
    if (h->is_swapped) rapt_swap_bytes(tensor);
    if (h->dtype == RAPT_BOOL && !rapt_reading_check_bools(s->reading, s->name, tensor)) return NULL;
    return tensor;
}

rapt_tensor *rapt_npy_read(rapt_npy_source *s)
{
    rapt_npy_header h = {0};
    if (!read_header(s, &h)) return NULL;
    if (!h.is_fortran) return read_elements(s, &h, h.shape);
    RAPT_SCOPE;
    int64_t shape[RAPT_MAX_RANK], strides[RAPT_MAX_RANK];
    for (int axis = 0; axis < h.rank; axis++) shape[axis] = h.shape[h.rank - 1 - axis];
    const rapt_tensor *stored = read_elements(s, &h, shape);
    if (!stored) return NULL;
    for (int axis = 0; axis < h.rank; axis++) strides[axis] = stored->strides[h.rank - 1 - axis];
    return rapt_keep(rapt_new_view(stored, stored->data, h.rank, h.shape, strides));
}

rapt_tensor *rapt_load_npy(const char *path)
{
    rapt_reading reading;
    if (!rapt_reading_begin(&reading, "load_npy", path)) return NULL;
    rapt_npy_source source = {.reading = &reading, .name = path, .left = reading.size};
    snprintf(source.where, sizeof source.where, "'%.200s'", path);
    rapt_tensor *tensor = rapt_npy_read(&source);
    rapt_reading_end(&reading);
    return tensor;
}

bool rapt_save_npy(const char *path, const rapt_tensor *tensor)
{
    const char *op = "save_npy";
    char prefix[RAPT_NPY_PREFIX];
    rapt_replacement file;
    if (!path || !tensor) return rapt_fail_null(op, path ? "tensor" : "path");
    if (!rapt_check_alive(op, "the tensor", tensor)) return false;
    RAPT_SCOPE;
    const rapt_tensor *dense = rapt_as_in_file(tensor);
    if (!dense || !rapt_replacement_begin(&file, op, path)) return false;
    const bool done =
        rapt_replacement_write(&file, prefix, rapt_npy_prefix(dense, prefix)) &&
        rapt_replacement_write(&file, dense->data, (size_t)dense->count * rapt_element_bytes[dense->dtype]);
    return rapt_replacement_end(&file, done);
}
