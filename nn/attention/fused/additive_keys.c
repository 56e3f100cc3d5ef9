/* Projected keys of additive attention that carry their exponentials with them. */
#include <math.h>

#include "additive_powers.h"
#include "attention/fused_additive.h"
#include "nn/padding.h"
#include "tensor/core.h"
#include "tensor/kernels.h"
#include "tensor/memory.h"

static const char *const name = "additive_keys";

/* The owner of the elements of such keys: they lie in `rows`. */
typedef struct carried {
    rapt_tensor *rows;
    rapt_key_powers powers;
    uint64_t version; /* of the rows, for which the powers hold */
    size_t capacity;  /* of the block that this is */
    int holders;      /* the storage, and while it is made its maker */
} carried;

rapt_tensor *rapt_make_powers(const rapt_tensor *x, double factor, const void *factors, rapt_tensor *largest)
{
    const rapt_dtype dtype = x->dtype;
    const int64_t hidden = x->shape[x->rank - 1], count = hidden > 0 ? x->count / hidden : 0;
    const rapt_tensor *dense = rapt_as_contiguous(x);
    rapt_tensor *powers = rapt_new(name, dtype, RAPT_SHAPE(count, RAPT_ADDITIVE_PADDED(hidden)));
    if (!dense || !powers) return NULL;
    rapt_additive_powers(dtype, count, hidden, dense->data, factor, factors, powers->data,
                         largest ? largest->data : NULL);
    return powers;
}

static bool make_key_powers(const rapt_tensor *keys, rapt_key_powers *p)
{
    const int64_t hidden = keys->shape[keys->rank - 1], count = hidden > 0 ? keys->count / hidden : 0;
    p->largest = rapt_new(name, keys->dtype, RAPT_SHAPE(count));
    p->powers = p->largest ? rapt_make_powers(keys, 1, NULL, p->largest) : NULL;
    return p->powers != NULL;
}

static void release(void *owner)
{
    carried *c = owner;
    if (--c->holders > 0) return;
    rapt_release(c->rows);
    rapt_release(c->powers.powers);
    rapt_release(c->powers.largest);
    rapt_block_give(c, c->capacity);
}

/* Those that the keys carry, or made now; false after an error (no memory). */
static bool key_powers_of(const rapt_tensor *keys, rapt_key_powers *powers)
{
    const carried *c = keys->storage->release_foreign == release ? keys->storage->foreign_owner : NULL;
    bool fits = c && keys->contiguous && keys->data == c->rows->data && keys->count == c->rows->count &&
                keys->shape[keys->rank - 1] == c->rows->shape[c->rows->rank - 1] && rapt_version_of(keys) == 0 &&
                rapt_version_of(c->rows) == c->version;
    if (!fits) return make_key_powers(keys, powers);
    *powers = c->powers;
    return true;
}

/* The same elements in a storage of which `carried` is the owner. */
static rapt_tensor *carry(rapt_tensor *rows, rapt_key_powers powers)
{
    size_t capacity;
    carried *c = rapt_block_take(name, sizeof *c, &capacity);
    if (!c) return NULL;
    rapt_retain(powers.powers);
    rapt_retain(powers.largest);
    *c = (carried){rapt_retain(rows), powers, rapt_version_of(rows), capacity, 2};
    rapt_tensor *keys = rapt_new_foreign(name, rows->dtype, rows->rank, rows->shape, rows->data, release, c);
    if (!keys) c->holders = 1; /* whether or not the storage came to be */
    release(c);
    return keys;
}

static rapt_tensor *forward(rapt_call *call)
{
    rapt_tensor *projected = rapt_call_input(call, 0);
    rapt_key_powers powers;
    if (!rapt_is_floating(projected) || projected->rank == 0) {
        char text[128];
        rapt_fail(RAPT_ERROR_SHAPE, name, "floating keys (…, K, hidden) expected, not %s",
                  rapt_describe(projected, text, sizeof text));
        return NULL;
    }
    RAPT_SCOPE;
    rapt_tensor *rows = projected->contiguous ? rapt_new_alias(projected, false) : rapt_clone(projected);
    if (!rows || !make_key_powers(rows, &powers)) return NULL;
    return rapt_keep(carry(rows, powers));
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

rapt_raw_grid rapt_raw_grid_of(const rapt_tensor *tensor)
{
    const int64_t *s = tensor->strides;
    if (tensor->rank == 4) return (rapt_raw_grid){tensor->data, {s[0], s[1], s[2], s[3]}};
    return (rapt_raw_grid){tensor->data, {s[0], 0, s[1], s[2]}};
}

bool rapt_additive_make_constants(rapt_additive_attention *a)
{
    rapt_tensor *weight = rapt_new(name, a->dtype, RAPT_SHAPE(a->padded)),
                *offset = rapt_new(name, a->dtype, RAPT_SHAPE(a->padded));
    if (!weight || !offset) return false;
    a->constants = (rapt_additive_constants){.weight = weight->data, .offset = offset->data};
    a->constants.scale = rapt_kernel.additive[a->dtype].constants(a->hidden, a->raw_weight, &a->constants);
    return true;
}

/* Kernels read tiles of keys whole: where keys are not finite, those that no query sees become zeros. */
static bool hide_undefined(const rapt_additive_inputs *in, const rapt_tensor **keys, rapt_key_powers *powers)
{
    rapt_tensor *sum = rapt_sum(powers->largest, RAPT_ALL_AXES, false);
    if (!sum || isfinite(rapt_item(sum))) return sum != NULL;
    const rapt_tensor *read = rapt_hide_padding((rapt_tensor *)(uintptr_t)*keys, in->mask);
    if (!read || read == *keys) return read != NULL;
    *keys = read;
    return key_powers_of(read, powers);
}

bool rapt_additive_describe(rapt_additive_attention *a, const rapt_raw_mask *mask, const rapt_additive_inputs *in)
{
    const rapt_tensor *keys = rapt_as_contiguous(in->keys), *weight = rapt_as_contiguous(in->weight),
                      *values = rapt_as_dense_rows(in->values);
    if (!keys || !weight || !values) return false;
    const int last = keys->rank - 1;
    *a = (rapt_additive_attention){.dtype = keys->dtype,
                                   .mask = *mask,
                                   .groups = rapt_heads_of(keys),
                                   .hidden = keys->shape[last],
                                   .padded = RAPT_ADDITIVE_PADDED(keys->shape[last]),
                                   .value_size = values->shape[last],
                                   .raw_weight = weight->data,
                                   .values = rapt_raw_grid_of(values)};
    rapt_key_powers powers;
    if (!key_powers_of(keys, &powers) || !hide_undefined(in, &keys, &powers)) return false;
    a->keys = (rapt_additive_rows){keys->data, powers.powers->data, powers.largest->data};
    return true;
}
