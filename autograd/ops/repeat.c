/* Copies behind one another: tile and repeat_interleave. */
#include <rapt/ops.h>

#include "tensor/core.h"

/* x, seen as `before` rows, with each row `times` times in a new tensor of that shape. */
static rapt_tensor *repeat_rows(rapt_tensor *x, int64_t before, int64_t times, int rank, const int64_t *shape)
{
    const int64_t size = before > 0 ? x->count / before : 0;
    rapt_tensor *rows = rapt_reshape(x, 3, (int64_t[]){before, 1, size});
    rapt_tensor *repeated = rapt_expand(rows, 3, (int64_t[]){before, times, size});
    return rapt_reshape(rapt_concat(1, &repeated, 0), rank, shape); /* which copies always */
}

/* A size times a number of copies into *product. */
static bool multiply(const char *op, int64_t size, int64_t times, int axis, int64_t *product)
{
    if (times < 0)
        return rapt_fail(RAPT_ERROR_VALUE, op, "%lld times along axis %d; 0 or more expected", (long long)times, axis);
    if (!__builtin_mul_overflow(size, times, product)) return true;
    return rapt_fail(RAPT_ERROR_MEMORY, op, "axis %d would have more places than 64 bits can count", axis);
}

static int64_t count_before(const int64_t *shape, int axis)
{
    int64_t count = 1;
    for (int i = 0; i < axis; i++) count *= shape[i];
    return count;
}

rapt_tensor *rapt_tile(rapt_tensor *x, int rank, const int64_t *repeats)
{
    if (!x) return rapt_fail_null("tile", "x"), NULL;
    if (rank > 0 && !repeats) return rapt_fail_null("tile", "repeats"), NULL;
    if (rank < 0 || rank > RAPT_MAX_RANK) {
        rapt_fail(RAPT_ERROR_SHAPE, "tile", "%d repeats; 0 to %d expected", rank, RAPT_MAX_RANK);
        return NULL;
    }
    const int full = rank > x->rank ? rank : x->rank, more_axes = full - x->rank, more_repeats = full - rank;
    int64_t shape[RAPT_MAX_RANK];
    for (int axis = 0; axis < full; axis++) shape[axis] = axis < more_axes ? 1 : x->shape[axis - more_axes];
    bool is_new = false;
    x = rapt_reshape(x, full, shape);
    for (int zeros = 1; zeros >= 0; zeros--) /* those first, after which there is nothing to copy */
        for (int axis = full - 1; x && axis >= more_repeats; axis--) {
            const int64_t times = repeats[axis - more_repeats], before = count_before(shape, axis);
            if ((times == 0) != zeros) continue;
            if (!multiply("tile", shape[axis], times, axis, &shape[axis])) return NULL;
            if (times == 1) continue;
            x = repeat_rows(x, before, times, full, shape);
            is_new = true;
        }
    return is_new || !x ? x : repeat_rows(x, 1, 1, full, shape);
}

rapt_tensor *rapt_repeat_interleave(rapt_tensor *x, int axis, int64_t repeats)
{
    if (!x) return rapt_fail_null("repeat_interleave", "x"), NULL;
    if ((axis = rapt_check_axis("repeat_interleave", axis, x->rank, 0)) < 0) return NULL;
    int64_t shape[RAPT_MAX_RANK];
    for (int i = 0; i < x->rank; i++) shape[i] = x->shape[i];
    if (!multiply("repeat_interleave", shape[axis], repeats, axis, &shape[axis])) return NULL;
    return repeat_rows(x, count_before(x->shape, axis + 1), repeats, x->rank, shape);
}
