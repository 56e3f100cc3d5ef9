/* Elements chosen by indices: embed, index_select, gather; and one_hot. */
#include <rapt/ops.h>

#include <string.h>

#include "indices.h"
#include "tensor/map.h"

/* out[i] = the element that lies indices[i] · step elements behind places[i], where both have out's shape or
 * broadcast. */
static void gather_from(const rapt_tensor *out, const rapt_tensor *places, int64_t step, const rapt_tensor *indices)
{
    int64_t bytes = step * (int64_t)rapt_dtype_size(out->dtype);
    rapt_map(rapt_kernel.index.gather[out->dtype], &bytes, 2, 3, (const rapt_tensor *[]){out, places, indices});
}

/* A header of x for gather_from: the first place along the axis, for each element of the output. */
static rapt_tensor places_of(const rapt_tensor *x, int axis, const rapt_tensor *out)
{
    rapt_tensor places = rapt_header_of(x);
    memcpy(places.shape, out->shape, out->rank * sizeof *out->shape);
    places.strides[axis] = 0;
    places.count = out->count;
    places.contiguous = false;
    return places;
}

/* table[indices]; backward adds each row of g to the row that it came from */
static rapt_tensor *embed_forward(rapt_call *call)
{
    const rapt_tensor *table = rapt_call_input(call, 0), *indices = rapt_call_input(call, 1);
    if (table->rank != 2 || indices->rank == RAPT_MAX_RANK) {
        char a[RAPT_SHAPE_TEXT], b[RAPT_SHAPE_TEXT];
        rapt_fail(RAPT_ERROR_SHAPE, "embed",
                  "table is %s, indices are %s; a table of rank 2 and indices of rank %d at most expected",
                  rapt_shape_text(table->rank, table->shape, a), rapt_shape_text(indices->rank, indices->shape, b),
                  RAPT_MAX_RANK - 1);
        return NULL;
    }
    rapt_tensor *checked = rapt_checked_indices("embed", indices, table->shape[0]);
    if (!checked) return NULL;
    rapt_tensor each = rapt_header_of(checked), places = rapt_header_of(table);
    each.rank = places.rank = (uint8_t)(indices->rank + 1);
    each.shape[indices->rank] = 1;
    each.strides[indices->rank] = 0;
    int64_t shape[RAPT_MAX_RANK];
    memcpy(shape, indices->shape, indices->rank * sizeof *shape);
    shape[indices->rank] = table->shape[1];
    memset(places.strides, 0, sizeof places.strides);
    memcpy(places.shape, shape, places.rank * sizeof *shape);
    places.strides[indices->rank] = table->strides[1];
    each.contiguous = places.contiguous = false;
    rapt_tensor *output = rapt_new("embed", table->dtype, indices->rank + 1, shape);
    if (!output) return NULL;
    gather_from(output, &places, table->strides[0], &each);
    rapt_call_save(call, checked);
    return output;
}

static bool embed_vjp(rapt_call *call)
{
    return rapt_give_embedded(call, rapt_call_saved(call, 0), rapt_call_gradient(call, 0));
}

static const rapt_op embed = {.name = "embed", .forward = embed_forward, .vjp = embed_vjp};

rapt_tensor *rapt_embed(rapt_tensor *table, rapt_tensor *indices)
{
    return RAPT_APPLY(&embed, NULL, table, indices);
}

/* x[…, indices, …]; backward adds each place of g to the one that it came from */
static rapt_tensor *index_select_forward(rapt_call *call)
{
    const rapt_tensor *x = rapt_call_input(call, 0), *indices = rapt_call_input(call, 1);
    int axis = rapt_check_axis("index_select", *(const int *)rapt_call_options(call), x->rank, 0);
    if (axis < 0) return NULL;
    if (indices->rank != 1) {
        rapt_fail(RAPT_ERROR_SHAPE, "index_select", "indices have rank %d; 1 expected", indices->rank);
        return NULL;
    }
    rapt_tensor *checked = rapt_checked_indices("index_select", indices, x->shape[axis]);
    if (!checked) return NULL;
    int64_t shape[RAPT_MAX_RANK];
    memcpy(shape, x->shape, x->rank * sizeof *shape);
    shape[axis] = indices->count;
    rapt_tensor *output = rapt_new("index_select", x->dtype, x->rank, shape);
    if (!output) return NULL;
    rapt_tensor each = rapt_header_of(checked);
    each.rank = x->rank;
    each.contiguous = false;
    for (int i = 0; i < x->rank; i++) {
        each.shape[i] = i == axis ? indices->count : 1;
        each.strides[i] = i == axis ? checked->strides[0] : 0;
    }
    const rapt_tensor places = places_of(x, axis, output);
    gather_from(output, &places, x->strides[axis], &each);
    rapt_call_save(call, checked);
    return output;
}

static bool index_select_vjp(rapt_call *call)
{
    int rank, axis = *(const int *)rapt_call_options(call);
    rapt_call_input_shape(call, 0, &rank);
    rapt_tensor *indices = rapt_call_saved(call, 0), *g = rapt_call_gradient(call, 0);
    int64_t alone[RAPT_MAX_RANK];
    for (int i = 0; i < rank; i++) alone[i] = 1;
    alone[axis < 0 ? axis + rank : axis] = -1;
    if (indices && indices->count == 0) alone[axis < 0 ? axis + rank : axis] = 0;
    rapt_tensor *each = rapt_expand(rapt_reshape(indices, rank, alone), g->rank, g->shape);
    return rapt_give_scattered(call, axis, each, g);
}

static const rapt_op index_select = {.name = "index_select",
                                     .forward = index_select_forward,
                                     .vjp = index_select_vjp,
                                     .options_size = sizeof(int)};

rapt_tensor *rapt_index_select(rapt_tensor *x, int axis, rapt_tensor *indices)
{
    return RAPT_APPLY(&index_select, &axis, x, indices);
}

/* out[i, j, …] = x[indices[i, j, …], j, …] for axis 0; backward adds each element of g to the one that it came from */
static rapt_tensor *gather_forward(rapt_call *call)
{
    const rapt_tensor *x = rapt_call_input(call, 0), *indices = rapt_call_input(call, 1);
    int axis = rapt_check_axis("gather", *(const int *)rapt_call_options(call), x->rank, 0);
    if (axis < 0) return NULL;
    bool fits = indices->rank == x->rank;
    for (int i = 0; fits && i < x->rank; i++) fits = i == axis || indices->shape[i] <= x->shape[i];
    if (!fits) {
        char a[RAPT_SHAPE_TEXT], b[RAPT_SHAPE_TEXT];
        rapt_fail(RAPT_ERROR_SHAPE, "gather",
                  "x is %s, indices are %s; one rank expected, and sizes within x's but for axis %d",
                  rapt_shape_text(x->rank, x->shape, a), rapt_shape_text(indices->rank, indices->shape, b), axis);
        return NULL;
    }
    rapt_tensor *checked = rapt_checked_indices("gather", indices, x->shape[axis]);
    rapt_tensor *output = checked ? rapt_new("gather", x->dtype, indices->rank, indices->shape) : NULL;
    if (!output) return NULL;
    const rapt_tensor places = places_of(x, axis, output);
    gather_from(output, &places, x->strides[axis], checked);
    rapt_call_save(call, checked);
    return output;
}

static bool gather_vjp(rapt_call *call)
{
    return rapt_give_scattered(call, *(const int *)rapt_call_options(call), rapt_call_saved(call, 0),
                               rapt_call_gradient(call, 0));
}

static const rapt_op gather = {.name = "gather",
                               .forward = gather_forward,
                               .vjp = gather_vjp,
                               .options_size = sizeof(int)};

rapt_tensor *rapt_gather(rapt_tensor *x, int axis, rapt_tensor *indices)
{
    return RAPT_APPLY(&gather, &axis, x, indices);
}

typedef struct one_hot_options {
    int64_t classes;
    rapt_dtype dtype;
} one_hot_options;

static rapt_tensor *one_hot_forward(rapt_call *call)
{
    const rapt_tensor *indices = rapt_call_input(call, 0);
    const one_hot_options *o = rapt_call_options(call);
    int64_t shape[RAPT_MAX_RANK + 1];
    memcpy(shape, indices->shape, indices->rank * sizeof *shape);
    shape[indices->rank] = o->classes;
    rapt_tensor *output = rapt_new("one_hot", o->dtype, indices->rank + 1, shape);
    if (!output) return NULL;
    const rapt_tensor *checked = rapt_as_contiguous(rapt_checked_indices("one_hot", indices, o->classes));
    if (!checked) return NULL;
    const int64_t *index = (const int64_t *)(const void *)checked->data;
    size_t item = rapt_dtype_size(o->dtype);
    double one; /* room for any dtype */
    rapt_write_element(o->dtype, 1, &one);
    memset(output->data, 0, (size_t)output->count * item);
    for (int64_t i = 0; i < checked->count; i++)
        memcpy(output->data + (size_t)(i * o->classes + index[i]) * item, &one, item);
    return output;
}

static const rapt_op one_hot = {.name = "one_hot", .forward = one_hot_forward, .no_gradient = "it is made of integers"};

rapt_tensor *rapt_one_hot(rapt_tensor *indices, int64_t classes, rapt_dtype dtype)
{
    return RAPT_APPLY(&one_hot, (&(one_hot_options){classes, dtype}), indices);
}
