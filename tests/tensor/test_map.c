/* Elements of tensors whose axes lie in any order, and of tensors of many pieces. */
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
