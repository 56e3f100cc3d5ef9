/* Projected keys of additive attention that carry their exponentials with them. */
#include <string.h>

#include "nn/additive_inputs.h"
#include "nn/fused_additive.h"
#include "tensor/kernels.h"
#include "tensor/memory.h"
#include "tensor/parallel.h"

/* The owner of the elements of such keys: they lie in `rows`. */
typedef struct carried {
    rapt_tensor *rows, *powers, *reach;
    uint64_t version; /* of the rows, for which the others hold */
    size_t capacity;  /* of the block that this is */
    int holders;      /* the storage, and while it is made its maker */
} carried;

typedef struct work {
    rapt_dtype dtype;
    int64_t hidden;
    size_t bytes; /* of an element */
    const char *x;
    double factor;
    const void *factors;
    char *powers, *reach;
} work;

static void run_rows(void *context, int64_t first, int64_t last)
{
    const work *w = context;
    const int64_t bytes = (int64_t)w->bytes;
    rapt_kernel.additive.powers[w->dtype](last - first, w->hidden, w->x + first * w->hidden * bytes, w->factor,
                                          w->factors, w->powers + first * RAPT_ADDITIVE_PADDED(w->hidden) * bytes,
                                          w->reach ? w->reach + first * bytes : NULL);
}

rapt_tensor *rapt_additive_powers(const rapt_tensor *x, double factor, const void *factors, rapt_tensor *reach)
{
    enum { cost = 16 }; /* of an exponential, in additions */
    const int64_t hidden = x->shape[x->rank - 1], count = hidden > 0 ? x->count / hidden : 0;
    const rapt_tensor *dense = rapt_as_contiguous(x);
    rapt_tensor *powers =
        rapt_new("additive_attention", (rapt_dtype)x->dtype, RAPT_SHAPE(count, RAPT_ADDITIVE_PADDED(hidden)));
    if (!dense || !powers) return NULL;
    work w = {.dtype = (rapt_dtype)x->dtype,
              .hidden = hidden,
              .bytes = rapt_dtype_size((rapt_dtype)x->dtype),
              .x = dense->data,
              .factor = factor,
              .factors = factors,
              .powers = powers->data,
              .reach = reach ? reach->data : NULL};
    rapt_parallel(count, rapt_grain(hidden * cost), run_rows, &w);
    return powers;
}

static bool make_powers(const rapt_tensor *keys, rapt_tensor **powers, rapt_tensor **reach)
{
    const int64_t hidden = keys->shape[keys->rank - 1], count = hidden > 0 ? keys->count / hidden : 0;
    *reach = rapt_new("additive_attention", (rapt_dtype)keys->dtype, RAPT_SHAPE(count));
    *powers = *reach ? rapt_additive_powers(keys, 1, NULL, *reach) : NULL;
    return *powers != NULL;
}

static void release(void *owner)
{
    carried *c = owner;
    if (--c->holders > 0) return;
    rapt_release(c->rows);
    rapt_release(c->powers);
    rapt_release(c->reach);
    rapt_block_give(c, c->capacity);
}

static uint64_t version_of(const rapt_tensor *tensor)
{
    return atomic_load_explicit(&tensor->storage->version, memory_order_relaxed);
}

bool rapt_additive_key_powers(const rapt_tensor *keys, rapt_tensor **powers, rapt_tensor **reach)
{
    const carried *c = keys->storage->release_foreign == release ? keys->storage->foreign_owner : NULL;
    bool fits = c && keys->contiguous && keys->data == c->rows->data && keys->count == c->rows->count &&
                keys->shape[keys->rank - 1] == c->rows->shape[c->rows->rank - 1] && version_of(keys) == 0 &&
                version_of(c->rows) == c->version;
    if (!fits) return make_powers(keys, powers, reach);
    *powers = c->powers;
    *reach = c->reach;
    return true;
}

/* The same elements in a storage of which `carried` is the owner. */
static rapt_tensor *carry(rapt_tensor *rows, rapt_tensor *powers, rapt_tensor *reach)
{
    size_t capacity;
    carried *c = rapt_block_take("additive_keys", sizeof *c, &capacity);
    if (!c) return NULL;
    *c = (carried){rapt_retain(rows), rapt_retain(powers), rapt_retain(reach), version_of(rows), capacity, 2};
    rapt_tensor *keys = rapt_new_foreign((rapt_dtype)rows->dtype, rows->rank, rows->shape, rows->data, release, c);
    if (!keys) c->holders = 1; /* whether or not the storage came to be */
    release(c);
    return keys;
}

static rapt_tensor *forward(rapt_call *call)
{
    rapt_tensor *projected = rapt_call_input(call, 0), *powers, *reach;
    if (!rapt_is_floating(projected) || projected->rank == 0) {
        char text[128];
        rapt_fail(RAPT_ERROR_SHAPE, "additive_keys", "floating keys (…, K, hidden) expected, not %s",
                  rapt_describe(projected, text, sizeof text));
        return NULL;
    }
    RAPT_SCOPE;
    rapt_tensor *rows = projected->contiguous ? rapt_new_alias(projected, false) : rapt_clone(projected);
    if (!rows || !make_powers(rows, &powers, &reach)) return NULL;
    return rapt_keep(carry(rows, powers, reach));
}

static bool vjp(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_call_gradient(call, 0));
}

static const rapt_op op = {.name = "additive_keys", .forward = forward, .vjp = vjp};

rapt_tensor *rapt_additive_keys(rapt_tensor *projected)
{
    return RAPT_APPLY(&op, NULL, projected);
}
