/* Elements of tensors whose axes lie in any order, reversed, with gaps or repeated, and are short or long, and of
 * tensors of many pieces. */
#include "expect.h"

#include <string.h>

#include <rapt.h>

enum { axes = 3 };

/* 0, 1, 2, … of that dtype; a bool is whether the number is odd. */
static rapt_tensor *counting(rapt_dtype dtype, const int64_t *shape)
{
    rapt_tensor *x = rapt_empty(RAPT_FLOAT64, axes, shape);
    double *data = rapt_data_for_writing(x);
    for (int64_t i = 0; i < rapt_count(x); i++) data[i] = (double)(dtype == RAPT_BOOL ? i % 2 : i % 251);
    return rapt_cast(x, dtype);
}

static void expect_permuted(const rapt_tensor *copy, const rapt_tensor *x, const int *order)
{
    for (int64_t i = 0; i < rapt_size(copy, 0); i++) {
        for (int64_t j = 0; j < rapt_size(copy, 1); j++) {
            for (int64_t k = 0; k < rapt_size(copy, 2); k++) {
                int64_t from[axes];
                from[order[0]] = i, from[order[1]] = j, from[order[2]] = k;
                const double found = rapt_at(copy, (int64_t[]){i, j, k}), expected = rapt_at(x, from);
                cr_assert_eq(found, expected, "%s [%d %d %d] at %d %d %d: %g, not %g",
                             rapt_dtype_name(rapt_get_dtype(x)), order[0], order[1], order[2], (int)i, (int)j, (int)k,
                             found, expected);
            }
        }
    }
}

static void check_copies(rapt_dtype dtype, const int64_t *shape)
{
    static const int orders[][axes] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int i = 0; i < 6; i++) {
        RAPT_SCOPE;
        rapt_tensor *x = counting(dtype, shape);
        expect_permuted(rapt_clone(rapt_permute(x, axes, orders[i])), x, orders[i]);
        rapt_tensor *shifted = rapt_slice(x, 1, 1, rapt_size(x, 1), 1);
        expect_permuted(rapt_clone(rapt_permute(shifted, axes, orders[i])), shifted, orders[i]);
        expect_no_error();
    }
}

Test(map, copies_permuted_axes_of_every_dtype)
{
    static const int64_t shapes[][axes] = {{1, 70, 131}, {5, 17, 33}, {3, 2, 16}, {64, 3, 64}};
    for (int dtype = 0; dtype < RAPT_DTYPE_COUNT; dtype++)
        for (int i = 0; i < 4; i++) check_copies((rapt_dtype)dtype, shapes[i]);
}

Test(map, writes_nothing_beside_a_transposed_copy)
{
    enum { rows = 37, columns = 70, room = 100 };
    rapt_tensor *x = counting(RAPT_FLOAT32, (int64_t[]){1, columns, rows});
    rapt_tensor *target = rapt_full(RAPT_FLOAT32, RAPT_SHAPE(1, rows, room), -1);
    rapt_copy(rapt_slice(target, 2, 10, 10 + columns, 1), rapt_transpose(x, 1, 2));
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < room; j++) {
            const bool inside = j >= 10 && j < 10 + columns;
            const double expected = inside ? rapt_at(x, (int64_t[]){0, j - 10, i}) : -1;
            cr_assert_eq(rapt_at(target, (int64_t[]){0, i, j}), expected, "%d %d", (int)i, (int)j);
        }
    }
    expect_no_error();
}

/* More elements than 256 pieces of the smallest size have. */
Test(map, reaches_every_element_of_a_large_tensor)
{
    const int64_t count = 5000011;
    rapt_tensor *y = rapt_add_scalar(rapt_arange(RAPT_FLOAT64, 0, (double)count, 1), 1);
    const double *data = rapt_data(y);
    for (int64_t i = 0; i < count; i++) cr_assert_eq(data[i], (double)(i + 1), "%d", (int)i);
    expect_no_error();
}

/* --- any views --- */

enum { cases = 400, most_elements = 6000 };

static uint32_t state;

static int64_t below(int64_t bound)
{
    state = state * 1664525 + 1013904223;
    return (int64_t)(state >> 8) % bound;
}

static int64_t any_size(void)
{
    static const int64_t sizes[] = {1, 2, 3, 7, 8, 9, 16, 17, 63, 65, 130};
    return sizes[below(sizeof sizes / sizeof *sizes)];
}

/* A view of that shape of numbers that are all different. */
static rapt_tensor *any_view(rapt_dtype dtype, int rank, const int64_t *shape)
{
    int order[RAPT_MAX_RANK], back[RAPT_MAX_RANK];
    int64_t sizes[RAPT_MAX_RANK], starts[RAPT_MAX_RANK], steps[RAPT_MAX_RANK], count = 1;
    for (int i = 0; i < rank; i++) order[i] = i;
    for (int i = rank - 1; i > 0; i--) {
        const int64_t other = below(i + 1);
        const int axis = order[i];
        order[i] = order[other];
        order[other] = axis;
    }
    for (int i = 0; i < rank; i++) {
        const int axis = order[i];
        back[axis] = i;
        starts[axis] = below(2);
        steps[axis] = below(3) == 0 ? 2 : 1;
        sizes[i] = below(5) == 0 ? 1 : starts[axis] + shape[axis] * steps[axis];
        count *= sizes[i];
    }
    rapt_tensor *x = rapt_reshape(rapt_arange(dtype, 0, (double)count, 1), rank, sizes);
    x = rapt_permute(x, rank, back);
    for (int axis = 0; axis < rank; axis++)
        if (sizes[back[axis]] > 1)
            x = rapt_slice(x, axis, starts[axis], starts[axis] + shape[axis] * steps[axis], steps[axis]);
    return rapt_expand(x, rank, shape);
}

static void next_place(int rank, const int64_t *shape, int64_t *place)
{
    for (int axis = rank - 1; axis >= 0; axis--) {
        if (++place[axis] < shape[axis]) return;
        place[axis] = 0;
    }
}

Test(map, reaches_every_element_of_any_views)
{
    for (int i = 0; i < cases; i++) {
        RAPT_SCOPE;
        state = (uint32_t)i;
        const rapt_dtype dtype = below(2) ? RAPT_FLOAT32 : RAPT_FLOAT64;
        int64_t shape[RAPT_MAX_RANK], place[RAPT_MAX_RANK] = {0}, count = 1;
        const int rank = (int)below(4) + 1;
        for (int axis = 0; axis < rank; axis++) {
            do shape[axis] = any_size();
            while (count * shape[axis] > most_elements);
            count *= shape[axis];
        }
        const int flipped = (int)below(rank);
        rapt_tensor *a = any_view(dtype, rank, shape), *b = any_view(dtype, rank, shape);
        rapt_tensor *copy = rapt_contiguous(a), *sum = rapt_add(a, b), *flip = rapt_flip(a, 1, &flipped);
        cr_assert(copy && sum && flip, "case %d: %s", i, rapt_error());
        for (int64_t k = 0; k < count; k++) {
            const double at_a = rapt_at(a, place), at_b = rapt_at(b, place);
            cr_assert_eq(rapt_at(copy, place), at_a, "case %d: copy at %lld", i, (long long)k);
            cr_assert_eq(rapt_at(sum, place), at_a + at_b, "case %d: sum at %lld", i, (long long)k);
            place[flipped] = shape[flipped] - 1 - place[flipped];
            cr_assert_eq(rapt_at(flip, place), at_a, "case %d: flip at %lld", i, (long long)k);
            place[flipped] = shape[flipped] - 1 - place[flipped];
            next_place(rank, shape, place);
        }
    }
}
