/* Work on the rows that some query sees: they are packed behind one another, and spread out again. */
#include "linear_of_seen.h"

#include <string.h>

#include <rapt/ops.h>

#include "tensor/core.h"
#include "tensor/parallel.h"

/* The shape of what is spread out; the last axis is a row. */
typedef struct spread_options {
    int rank;
    int64_t shape[RAPT_MAX_RANK];
} spread_options;

/* int64 (n): the numbers of the rows that are true, in order. */
static rapt_tensor *number_rows(const rapt_tensor *seen_keys)
{
    const rapt_tensor *dense = rapt_as_contiguous(seen_keys);
    int64_t count = 0;
    for (int64_t i = 0; dense && i < dense->count; i++) count += dense->data[i] != 0;
    rapt_tensor *rows = dense ? rapt_empty(RAPT_INT64, RAPT_SHAPE(count)) : NULL;
    if (!rows) return NULL;
    int64_t *next = (int64_t *)(void *)rows->data;
    for (int64_t i = 0; i < dense->count; i++)
        if (dense->data[i]) *next++ = i;
    return rows;
}

typedef struct work {
    const int64_t *rows;
    int64_t count, all; /* of packed rows, and of spread ones */
    size_t bytes;       /* of a row */
    char *packed, *spread;
} work;

static work work_of(const rapt_tensor *rows, const rapt_tensor *packed, const rapt_tensor *spread)
{
    const int64_t size = spread->shape[spread->rank - 1];
    return (work){.rows = (const int64_t *)(const void *)rows->data,
                  .count = rows->count,
                  .all = size > 0 ? spread->count / size : 0,
                  .bytes = (size_t)size * rapt_dtype_size(spread->dtype),
                  .packed = packed->data,
                  .spread = spread->data};
}

static void pack_rows(void *context, int64_t first, int64_t last)
{
    const work *w = context;
    for (int64_t i = first; i < last; i++)
        memcpy(w->packed + (size_t)i * w->bytes, w->spread + (size_t)w->rows[i] * w->bytes, w->bytes);
}

/* Each packed row goes to its place, with zeros from there to the place of the next; item 0 is what lies before the
 * first. */
static void spread_rows(void *context, int64_t first, int64_t last)
{
    const work *w = context;
    for (int64_t i = first; i < last; i++) {
        int64_t to = i > 0 ? w->rows[i - 1] : 0;
        const int64_t end = i < w->count ? w->rows[i] : w->all;
        if (i > 0) memcpy(w->spread + (size_t)to++ * w->bytes, w->packed + (size_t)(i - 1) * w->bytes, w->bytes);
        memset(w->spread + (size_t)to * w->bytes, 0, (size_t)(end - to) * w->bytes);
    }
}

static int64_t grain_of(const rapt_tensor *tensor)
{
    return rapt_grain(tensor->shape[tensor->rank - 1]);
}

static const rapt_op spread;

/* (n, size): the rows of x (…, size) that have the numbers; dx is g spread out */
static rapt_tensor *pack_forward(rapt_call *call)
{
    const rapt_tensor *x = rapt_as_contiguous(rapt_call_input(call, 0));
    rapt_tensor *rows = rapt_call_input(call, 1);
    rapt_tensor *packed = x ? rapt_new("pack_seen", x->dtype, RAPT_SHAPE(rows->count, x->shape[x->rank - 1])) : NULL;
    if (!packed) return NULL;
    work w = work_of(rows, packed, x);
    rapt_parallel(w.count, grain_of(x), pack_rows, &w);
    rapt_call_save(call, rows);
    return packed;
}

static bool pack_vjp(rapt_call *call)
{
    spread_options options;
    const int64_t *shape = rapt_call_input_shape(call, 0, &options.rank);
    memcpy(options.shape, shape, (size_t)options.rank * sizeof *shape);
    return rapt_call_give(call, 0,
                          RAPT_APPLY(&spread, &options, rapt_call_gradient(call, 0), rapt_call_saved(call, 0)));
}

static const rapt_op pack = {.name = "pack_seen", .forward = pack_forward, .vjp = pack_vjp};

/* The way back: dx is g packed */
static rapt_tensor *spread_forward(rapt_call *call)
{
    const spread_options *o = rapt_call_options(call);
    const rapt_tensor *packed = rapt_as_contiguous(rapt_call_input(call, 0));
    rapt_tensor *rows = rapt_call_input(call, 1);
    rapt_tensor *x = packed ? rapt_new("spread_seen", packed->dtype, o->rank, o->shape) : NULL;
    if (!x) return NULL;
    work w = work_of(rows, packed, x);
    rapt_parallel(w.count + 1, grain_of(x), spread_rows, &w);
    rapt_call_save(call, rows);
    return x;
}

static bool spread_vjp(rapt_call *call)
{
    return rapt_call_give(call, 0, RAPT_APPLY(&pack, NULL, rapt_call_gradient(call, 0), rapt_call_saved(call, 0)));
}

static const rapt_op spread = {.name = "spread_seen",
                               .forward = spread_forward,
                               .vjp = spread_vjp,
                               .options_size = sizeof(spread_options)};

rapt_tensor *rapt_linear_of_seen(rapt_linear *linear, rapt_tensor *x, rapt_tensor *seen_keys)
{
    RAPT_SCOPE;
    rapt_tensor *rows = number_rows(seen_keys), *packed = rows ? RAPT_APPLY(&pack, NULL, x, rows) : NULL;
    rapt_tensor *done = packed ? rapt_linear_forward(linear, packed) : NULL;
    if (!done) return NULL;
    spread_options options = {.rank = x->rank};
    memcpy(options.shape, x->shape, (size_t)x->rank * sizeof *x->shape);
    options.shape[x->rank - 1] = done->shape[1];
    return rapt_keep(RAPT_APPLY(&spread, &options, done, rows));
}
