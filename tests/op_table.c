/* The op table put together, and how the elements of an input lie in memory. */
#include "ops.h"

#include <math.h>

static const op_family *const families[] = {&ops_arithmetic, &ops_unary,   &ops_compare, &ops_reduce,    &ops_matrix,
                                            &ops_view,       &ops_join,    &ops_index,   &ops_normalize, &ops_loss,
                                            &ops_sequence,   &ops_packing, &ops_scan,    &ops_einsum,    &ops_image};

const op_row *op_at(int i)
{
    for (size_t family = 0; family < sizeof families / sizeof *families; i -= families[family++]->count)
        if (i < families[family]->count) return &families[family]->rows[i];
    return NULL;
}

rapt_dtype result_bool(rapt_dtype dtype, const op_sample *sample)
{
    (void)dtype, (void)sample;
    return RAPT_BOOL;
}

rapt_dtype result_int64(rapt_dtype dtype, const op_sample *sample)
{
    (void)dtype, (void)sample;
    return RAPT_INT64;
}

/* A contiguous tensor of the dtype with the array's numbers. */
static rapt_tensor *dense_of(const array *a, rapt_dtype dtype)
{
    double none = 0;
    return rapt_cast(rapt_from(RAPT_FLOAT64, a->rank, a->shape, a->count ? a->data : &none), dtype);
}

/* Memory around the elements holds what no correct op may read: a number that spoils every result. */
static rapt_tensor *spoiled(rapt_dtype dtype, int rank, const int64_t *shape)
{
    return rapt_full(dtype, rank, shape, rapt_dtype_is_floating(dtype) ? NAN : 77);
}

rapt_tensor *op_lay_out(const array *a, rapt_dtype dtype, op_layout layout)
{
    int64_t shape[RAPT_MAX_RANK];
    int reversed[RAPT_MAX_RANK];
    rapt_tensor *x = NULL;
    if (layout == dense || a->rank == 0) return dense_of(a, dtype);
    for (int axis = 0; axis < a->rank; axis++) {
        reversed[axis] = a->rank - 1 - axis;
        shape[axis] = layout == transposed ? a->shape[a->rank - 1 - axis] : a->shape[axis];
    }
    if (layout == transposed) {
        x = rapt_permute(spoiled(dtype, a->rank, shape), a->rank, reversed);
    } else if (layout == stepped) {
        shape[a->rank - 1] = 2 * shape[a->rank - 1] + 1;
        x = rapt_slice(spoiled(dtype, a->rank, shape), -1, 1, INT64_MAX, 2);
    } else if (layout == offset) {
        shape[0] += 2;
        x = rapt_slice(spoiled(dtype, a->rank, shape), 0, 1, shape[0] - 1, 1);
    } else {
        if (a->shape[0] > 0) shape[0] = 1;
        x = rapt_expand(rapt_contiguous(rapt_slice(dense_of(a, dtype), 0, 0, shape[0], 1)), a->rank, a->shape);
    }
    if (layout != expanded) rapt_copy(x, dense_of(a, dtype));
    return x;
}
