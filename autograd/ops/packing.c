/* Sequences of different lengths behind one another, without padding: packed from a padded batch, and the way back. */
#include <rapt/ops.h>
#include <rapt/packing.h>

#include <math.h>
#include <string.h>

#include "elementwise.h"
#include "tensor/packing.h"
#include "tensor/parallel.h"

typedef struct unpack_options {
    int64_t length;
    double value;
} unpack_options;

typedef struct work {
    rapt_raw_packing packing;
    size_t row;            /* bytes */
    int64_t length;        /* of a padded sequence */
    char *packed, *padded; /* rows */
    char element[8];       /* padding */
    size_t element_size;
} work;

static void pack_sequences(void *context, int64_t first, int64_t last)
{
    const work *w = context;
    for (int64_t b = first; b < last; b++)
        memcpy(w->packed + (size_t)w->packing.starts[b] * w->row, w->padded + (size_t)(b * w->length) * w->row,
               (size_t)rapt_packed_length(&w->packing, b) * w->row);
}

/* Copies of the first element, twice as many each time. */
static void fill(char *to, size_t bytes, const work *w)
{
    if (bytes == 0) return;
    memcpy(to, w->element, w->element_size);
    for (size_t done = w->element_size; done < bytes; done *= 2)
        memcpy(to + done, to, done < bytes - done ? done : bytes - done);
}

static void unpack_sequences(void *context, int64_t first, int64_t last)
{
    const work *w = context;
    for (int64_t b = first; b < last; b++) {
        const size_t used = (size_t)rapt_packed_length(&w->packing, b) * w->row;
        char *to = w->padded + (size_t)(b * w->length) * w->row;
        memcpy(to, w->packed + (size_t)w->packing.starts[b] * w->row, used);
        fill(to + used, (size_t)w->length * w->row - used, w);
    }
}

/* Elements of what the axes from `first` on make one of. */
static int64_t elements_of(const rapt_tensor *tensor, int first)
{
    int64_t count = 1;
    for (int axis = first; axis < tensor->rank; axis++) count *= tensor->shape[axis];
    return count;
}

static void run(work *w, const rapt_tensor *packed, const rapt_tensor *padded, void (*body)(void *, int64_t, int64_t))
{
    const int64_t size = elements_of(packed, 1);
    w->length = padded->shape[1];
    w->row = (size_t)size * rapt_dtype_size(packed->dtype);
    w->packed = packed->data;
    w->padded = padded->data;
    if (size > 0) rapt_parallel(w->packing.sequences, rapt_grain(w->length * size), body, w);
}

/* out[starts[b] + t] = x[b, t] for t below the length of sequence b; dx is g unpacked among zeros */
static rapt_tensor *pack_forward(rapt_call *call)
{
    const char *op = "pack";
    char text[128];
    work w;
    RAPT_SCOPE;
    const rapt_tensor *x = rapt_call_input(call, 0);
    if (!rapt_read_packing(op, rapt_call_input(call, 1), &w.packing)) return NULL;
    if (x->rank < 2 || x->shape[0] != w.packing.sequences || x->shape[1] < w.packing.longest) {
        rapt_fail(RAPT_ERROR_SHAPE, op,
                  "an input (B, length, ...) of %lld sequences, with room for %lld rows each, expected, not %s",
                  (long long)w.packing.sequences, (long long)w.packing.longest, rapt_describe(x, text, sizeof text));
        return NULL;
    }
    int64_t shape[RAPT_MAX_RANK] = {w.packing.rows};
    for (int axis = 2; axis < x->rank; axis++) shape[axis - 1] = x->shape[axis];
    rapt_tensor *packed = rapt_new(op, x->dtype, x->rank - 1, shape);
    if (!packed || !(x = rapt_as_contiguous(x))) return NULL;
    run(&w, packed, x, pack_sequences);
    rapt_call_save(call, rapt_call_input(call, 1));
    return rapt_keep(packed);
}

static bool pack_vjp(rapt_call *call)
{
    int rank;
    const int64_t *shape = rapt_call_input_shape(call, 0, &rank);
    return rapt_call_give(call, 0, rapt_unpack(rapt_call_gradient(call, 0), rapt_call_saved(call, 0), shape[1], 0));
}

static const rapt_op pack = {.name = "pack", .forward = pack_forward, .vjp = pack_vjp};

rapt_tensor *rapt_pack(rapt_tensor *x, rapt_tensor *starts)
{
    return RAPT_APPLY(&pack, NULL, x, starts);
}

/* out[b, t] = rows[starts[b] + t] for t below the length of sequence b, else the value; d rows is g packed */
static rapt_tensor *unpack_forward(rapt_call *call)
{
    const char *op = "unpack";
    const unpack_options *o = rapt_call_options(call);
    char text[128];
    work w;
    RAPT_SCOPE;
    const rapt_tensor *rows = rapt_call_input(call, 0);
    if (!rapt_read_packing(op, rapt_call_input(call, 1), &w.packing)) return NULL;
    const int64_t length = o->length ? o->length : w.packing.longest;
    if (rows->rank < 1 || rows->rank == RAPT_MAX_RANK || rows->shape[0] != w.packing.rows) {
        rapt_fail(RAPT_ERROR_SHAPE, op, "rows (%lld, ...) expected, not %s", (long long)w.packing.rows,
                  rapt_describe(rows, text, sizeof text));
        return NULL;
    }
    if (length < w.packing.longest) {
        rapt_fail(RAPT_ERROR_VALUE, op, "a length of %lld; the longest sequence has %lld rows", (long long)length,
                  (long long)w.packing.longest);
        return NULL;
    }
    int64_t shape[RAPT_MAX_RANK] = {w.packing.sequences, length};
    for (int axis = 1; axis < rows->rank; axis++) shape[axis + 1] = rows->shape[axis];
    rapt_tensor *padded = rapt_new(op, rows->dtype, rows->rank + 1, shape);
    if (!padded || !(rows = rapt_as_contiguous(rows))) return NULL;
    rapt_write_element(rows->dtype, o->value, w.element);
    w.element_size = rapt_dtype_size(rows->dtype);
    run(&w, rows, padded, unpack_sequences);
    rapt_call_save(call, rapt_call_input(call, 1));
    return rapt_keep(padded);
}

static bool unpack_vjp(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_pack(rapt_call_gradient(call, 0), rapt_call_saved(call, 0)));
}

static const rapt_op unpack = {.name = "unpack",
                               .forward = unpack_forward,
                               .vjp = unpack_vjp,
                               .options_size = sizeof(unpack_options)};

rapt_tensor *rapt_unpack(rapt_tensor *rows, rapt_tensor *starts, int64_t length, double value)
{
    const unpack_options options = {length, value};
    if (rows && !rapt_check_number("unpack", rows, value)) return NULL;
    if (isfinite(value) || !rows || !rapt_is_floating(rows)) return RAPT_APPLY(&unpack, &options, rows, starts);
    return RAPT_APPLY(&unpack, &options, rows, starts, rapt_scalar(rows->dtype, value)); /* for the hunt to see */
}

/* --- starts and positions --- */

rapt_tensor *rapt_packing_starts(rapt_tensor *lengths)
{
    const char *op = "packing_starts";
    char text[128];
    if (!lengths) return NULL;
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    if (lengths->rank != 1 || !rapt_is_integer(lengths)) {
        rapt_fail(lengths->rank != 1 ? RAPT_ERROR_SHAPE : RAPT_ERROR_DTYPE, op,
                  "lengths (B) of int64 or int32 expected, not %s", rapt_describe(lengths, text, sizeof text));
        return NULL;
    }
    const rapt_tensor *dense = rapt_contiguous(rapt_cast(lengths, RAPT_INT64));
    rapt_tensor *starts = dense ? rapt_new(op, RAPT_INT64, RAPT_SHAPE(dense->count + 1)) : NULL;
    if (!starts) return NULL;
    const int64_t *length = (const int64_t *)(void *)dense->data;
    int64_t *start = (int64_t *)(void *)starts->data;
    *start = 0;
    for (int64_t b = 0; b < dense->count; b++)
        if (length[b] < 0 || __builtin_add_overflow(start[b], length[b], &start[b + 1])) {
            rapt_fail(RAPT_ERROR_VALUE, op, "length %lld is %lld; 0 or more expected, and a sum within int64",
                      (long long)b, (long long)length[b]);
            return NULL;
        }
    return rapt_keep(starts);
}

rapt_tensor *rapt_packing_positions(rapt_tensor *starts)
{
    const char *op = "packing_positions";
    rapt_raw_packing p;
    if (!starts) return NULL;
    RAPT_SCOPE;
    if (!rapt_read_packing(op, starts, &p)) return NULL;
    rapt_tensor *positions = rapt_new(op, RAPT_INT64, RAPT_SHAPE(p.rows));
    if (!positions) return NULL;
    int64_t *position = (int64_t *)(void *)positions->data;
    for (int64_t b = 0; b < p.sequences; b++)
        for (int64_t t = 0; t < rapt_packed_length(&p, b); t++) *position++ = t;
    return rapt_keep(positions);
}

rapt_tensor *rapt_pack_sequences(int count, rapt_tensor *const *sequences, rapt_tensor **starts)
{
    const char *op = "pack_sequences";
    if (starts) *starts = NULL;
    if (count < 1) rapt_fail(RAPT_ERROR_VALUE, op, "%d sequences; 1 or more expected", count);
    if (!sequences || !starts) rapt_fail_null(op, sequences ? "the place for the starts" : "the list of sequences");
    if (!sequences || !starts || count < 1) return NULL;
    RAPT_SCOPE;
    rapt_tensor *rows = rapt_concat(count, sequences, 0);
    rapt_tensor *lengths = rows ? rapt_new(op, RAPT_INT64, RAPT_SHAPE(count)) : NULL;
    if (!lengths) return NULL;
    for (int b = 0; b < count; b++) ((int64_t *)(void *)lengths->data)[b] = sequences[b]->shape[0];
    *starts = rapt_keep(rapt_packing_starts(lengths));
    return *starts ? rapt_keep(rows) : NULL;
}
