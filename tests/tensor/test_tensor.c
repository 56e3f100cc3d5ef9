/* Making tensors, their properties and elements, and changes in place. */
#include "expect.h"

#include <float.h>
#include <math.h>

#include "tensor/core.h"
#include "tensor/memory.h"

static const rapt_dtype all_dtypes[] = {RAPT_FLOAT32, RAPT_FLOAT64, RAPT_INT64, RAPT_INT32, RAPT_UINT8, RAPT_BOOL};

#define for_each_dtype(dtype) for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_BOOL; dtype++)

/* The elements in row-major order are these numbers. */
static void check(const rapt_tensor *tensor, int64_t count, const double *expected)
{
    cr_assert_not_null(tensor, "%s", rapt_error());
    cr_assert_eq(rapt_count(tensor), count);
    for (int64_t i = 0; i < count; i++) {
        int64_t indices[RAPT_MAX_RANK], rest = i;
        for (int axis = rapt_rank(tensor) - 1; axis >= 0; axis--) {
            indices[axis] = rest % rapt_size(tensor, axis);
            rest /= rapt_size(tensor, axis);
        }
        const double got = rapt_at(tensor, indices);
        cr_expect(got == expected[i] || (isnan(got) && isnan(expected[i])), "element %lld is %g, not %g", (long long)i,
                  got, expected[i]);
    }
    expect_no_error();
}

#define CHECK(tensor, ...) check(tensor, sizeof((double[]){__VA_ARGS__}) / sizeof(double), (double[]){__VA_ARGS__})

static rapt_tensor *transposed(const rapt_tensor *matrix)
{
    return rapt_new_view(matrix, matrix->data, 2, (int64_t[]){matrix->shape[1], matrix->shape[0]},
                         (int64_t[]){matrix->strides[1], matrix->strides[0]});
}

Test(tensor, dtypes)
{
    const size_t sizes[] = {4, 8, 8, 4, 1, 1};
    const char *const names[] = {"float32", "float64", "int64", "int32", "uint8", "bool"};
    for (size_t i = 0; i < RAPT_DTYPE_COUNT; i++) {
        cr_expect_eq(rapt_dtype_size(all_dtypes[i]), sizes[i]);
        cr_expect_str_eq(rapt_dtype_name(all_dtypes[i]), names[i]);
        cr_expect_eq(rapt_dtype_is_floating(all_dtypes[i]), i < 2);
    }
    cr_expect_eq(rapt_dtype_size((rapt_dtype)6), 0);
    cr_expect_str_eq(rapt_dtype_name((rapt_dtype)-1), "invalid");
}

Test(tensor, properties)
{
    rapt_tensor *tensor = rapt_zeros(RAPT_INT32, RAPT_SHAPE(2, 3, 4));
    cr_expect_eq(rapt_get_dtype(tensor), RAPT_INT32);
    cr_expect_eq(rapt_rank(tensor), 3);
    cr_expect_eq(rapt_count(tensor), 24);
    cr_expect_eq(rapt_size(tensor, 1), 3);
    cr_expect_eq(rapt_size(tensor, -1), 4);
    cr_expect_eq(rapt_stride(tensor, 0), 12);
    cr_expect_eq(rapt_stride(tensor, -2), 4);
    cr_expect_eq(rapt_shape(tensor)[2], 4);
    cr_expect(rapt_is_contiguous(tensor));
    cr_expect_eq((uintptr_t)rapt_data(tensor) % 64, 0);
    expect_no_error();
    cr_expect_eq(rapt_size(tensor, 3), 0);
    expect_error(RAPT_ERROR_SHAPE, "axis 3 of a tensor of rank 3; -3 to 2 expected");
    cr_expect_eq(rapt_stride(tensor, -4), 0);
    expect_error(RAPT_ERROR_SHAPE, "axis -4");
    rapt_tensor *view = transposed(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2, 3)));
    cr_expect_not(rapt_is_contiguous(view));
    cr_expect(rapt_as_contiguous(tensor) == tensor);
    cr_expect(rapt_is_contiguous(rapt_as_contiguous(view)));
    cr_expect(rapt_is_contiguous(transposed(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(1, 3)))));
    cr_expect(rapt_is_contiguous(transposed(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(3, 0)))));
}

Test(tensor, null_is_an_error_everywhere)
{
    const double zero = 0;
    rapt_tensor *tensor = rapt_scalar(RAPT_FLOAT32, 1);
#define NULL_IS_ERROR(expression)                                                                                      \
    do {                                                                                                               \
        (void)(expression);                                                                                            \
        expect_error(RAPT_ERROR_NULL, " is NULL");                                                                     \
    } while (0)
    NULL_IS_ERROR(rapt_get_dtype(NULL));
    NULL_IS_ERROR(rapt_rank(NULL));
    NULL_IS_ERROR(rapt_count(NULL));
    NULL_IS_ERROR(rapt_size(NULL, 0));
    NULL_IS_ERROR(rapt_stride(NULL, 0));
    NULL_IS_ERROR(rapt_shape(NULL));
    NULL_IS_ERROR(rapt_is_contiguous(NULL));
    NULL_IS_ERROR(rapt_same_shape(NULL, tensor));
    NULL_IS_ERROR(rapt_same_shape(tensor, NULL));
    NULL_IS_ERROR(rapt_data(NULL));
    NULL_IS_ERROR(rapt_data_for_writing(NULL));
    NULL_IS_ERROR(rapt_item(NULL));
    NULL_IS_ERROR(rapt_at(NULL, (int64_t[]){0}));
    NULL_IS_ERROR(rapt_at(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2)), NULL));
    NULL_IS_ERROR(rapt_version(NULL));
    NULL_IS_ERROR(rapt_clone(NULL));
    NULL_IS_ERROR(rapt_empty_like(NULL));
    NULL_IS_ERROR(rapt_from(RAPT_FLOAT32, RAPT_SHAPE(1), NULL));
    NULL_IS_ERROR(rapt_from(RAPT_FLOAT64, 1, NULL, &zero));
    NULL_IS_ERROR(rapt_fill(NULL, 1));
    NULL_IS_ERROR(rapt_copy(NULL, tensor));
    NULL_IS_ERROR(rapt_copy(tensor, NULL));
    NULL_IS_ERROR(rapt_add_in_place(NULL, tensor, 1));
    NULL_IS_ERROR(rapt_add_in_place(tensor, NULL, 1));
    NULL_IS_ERROR(rapt_scale_in_place(NULL, 2));
}

Test(tensor, bad_shapes)
{
    const int64_t ones[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    cr_expect_eq(rapt_rank(rapt_zeros(RAPT_FLOAT32, 8, ones)), 8);
    cr_expect_null(rapt_zeros(RAPT_FLOAT32, 9, ones));
    expect_error(RAPT_ERROR_SHAPE, "zeros: rank 9; 0 to 8 expected");
    cr_expect_null(rapt_ones(RAPT_FLOAT32, -1, ones));
    expect_error(RAPT_ERROR_SHAPE, "ones: rank -1");
    cr_expect_null(rapt_empty((rapt_dtype)6, 1, ones));
    expect_error(RAPT_ERROR_DTYPE, "6 is not a dtype");
    cr_expect_null(rapt_empty((rapt_dtype)-1, 1, ones));
    expect_error(RAPT_ERROR_DTYPE, "-1 is not a dtype");
    const int64_t large = (int64_t)1 << 62;
    cr_expect_null(rapt_full(RAPT_FLOAT32, RAPT_SHAPE(large), 1));
    expect_error(RAPT_ERROR_MEMORY, "full: ");
    cr_expect_null(rapt_empty(RAPT_UINT8, RAPT_SHAPE(large, 4)));
    expect_error(RAPT_ERROR_MEMORY, TOO_MANY_BYTES);
    cr_expect_null(rapt_empty(RAPT_UINT8, RAPT_SHAPE(0, large, 4)));
    expect_error(RAPT_ERROR_MEMORY, TOO_MANY_BYTES);
    cr_expect_null(rapt_empty(RAPT_UINT8, RAPT_SHAPE(0, -1)));
    expect_error(RAPT_ERROR_SHAPE, "size -1 of axis 1 is negative");
}

Test(tensor, empty_tensors)
{
    for_each_dtype(dtype)
    {
        rapt_tensor *tensor = rapt_full(dtype, RAPT_SHAPE(2, 0, 3), 1);
        cr_assert_not_null(tensor);
        cr_expect_eq(rapt_count(tensor), 0);
        cr_expect(rapt_is_contiguous(tensor));
        cr_expect(rapt_fill(tensor, 2));
        cr_expect(rapt_copy(tensor, rapt_scalar(dtype, 1)));
        cr_expect_eq(rapt_count(rapt_clone(tensor)), 0);
    }
    expect_no_error();
    cr_expect(isnan(rapt_item(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(0)))));
    expect_error(RAPT_ERROR_SHAPE, "a tensor of one element expected, not shape [0]");
}

Test(tensor, creation)
{
    for_each_dtype(dtype)
    {
        CHECK(rapt_zeros(dtype, RAPT_SHAPE(2, 2)), 0, 0, 0, 0);
        CHECK(rapt_ones(dtype, RAPT_SHAPE(3)), 1, 1, 1);
        CHECK(rapt_full(dtype, RAPT_SHAPE(1, 2), dtype == RAPT_BOOL ? 1 : 7), dtype == RAPT_BOOL ? 1 : 7,
              dtype == RAPT_BOOL ? 1 : 7);
        CHECK(rapt_scalar(dtype, 1), 1);
        CHECK(rapt_eye(dtype, 3), 1, 0, 0, 0, 1, 0, 0, 0, 1);
        CHECK(rapt_arange(dtype, 0, 2, 1), 0, 1);
    }
    CHECK(rapt_full(RAPT_FLOAT32, RAPT_SHAPE(2), (double)NAN), (double)NAN, (double)NAN);
    cr_expect(signbit(rapt_item(rapt_scalar(RAPT_FLOAT32, -0.0))), "a negative zero stays one");
    cr_expect_eq(rapt_count(rapt_eye(RAPT_FLOAT32, 0)), 0);
    const int32_t numbers[] = {3, -1, 2};
    CHECK(rapt_from(RAPT_INT32, RAPT_SHAPE(3), numbers), 3, -1, 2);
    rapt_tensor *like = rapt_empty_like(rapt_zeros(RAPT_UINT8, RAPT_SHAPE(4, 5)));
    cr_expect_eq(rapt_get_dtype(like), RAPT_UINT8);
    cr_expect(rapt_same_shape(like, rapt_zeros(RAPT_BOOL, RAPT_SHAPE(4, 5))));
    cr_expect_not(rapt_same_shape(like, rapt_zeros(RAPT_BOOL, RAPT_SHAPE(5, 4))));
    cr_expect_not(rapt_same_shape(like, rapt_zeros(RAPT_BOOL, RAPT_SHAPE(4, 5, 1))));
    cr_expect_null(rapt_eye(RAPT_FLOAT32, -1));
    expect_error(RAPT_ERROR_SHAPE, "eye: size -1");
}

Test(tensor, sequences)
{
    CHECK(rapt_arange(RAPT_FLOAT64, 1, 2, 0.25), 1, 1.25, 1.5, 1.75);
    CHECK(rapt_arange(RAPT_INT64, 5, -4, -3), 5, 2, -1);
    CHECK(rapt_arange(RAPT_FLOAT64, 0, 1, 0.4), 0, 0.4, 0.8);
    cr_expect_eq(rapt_count(rapt_arange(RAPT_INT64, 3, 3, 1)), 0);
    cr_expect_eq(rapt_count(rapt_arange(RAPT_INT64, 3, 0, 1)), 0);
    CHECK(rapt_linspace(RAPT_FLOAT64, 0, 1, 5), 0, 0.25, 0.5, 0.75, 1);
    CHECK(rapt_linspace(RAPT_FLOAT32, 3, 9, 1), 3);
    cr_expect_eq(rapt_count(rapt_linspace(RAPT_FLOAT32, 3, 9, 0)), 0);
    for (int64_t count = 2; count < 200; count++)
        cr_expect_eq(rapt_at(rapt_linspace(RAPT_FLOAT64, 0.1, 0.7, count), (int64_t[]){-1}), 0.7,
                     "the last of %lld is 0.7", (long long)count);
    expect_no_error();
    cr_expect_null(rapt_arange(RAPT_FLOAT32, 0, 1, 0));
    expect_error(RAPT_ERROR_VALUE, "arange: start 0, stop 1 and step 0");
    cr_expect_null(rapt_arange(RAPT_FLOAT32, 0, (double)INFINITY, 1));
    expect_error(RAPT_ERROR_VALUE, "finite");
    cr_expect_null(rapt_arange(RAPT_FLOAT32, 0, 1e300, 1e-300));
    expect_error(RAPT_ERROR_MEMORY, "too many");
    cr_expect_null(rapt_linspace(RAPT_FLOAT32, 0, 1, -2));
    expect_error(RAPT_ERROR_SHAPE, "linspace: size -2");
    const double none[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    for (int i = 0; i < 6; i++) {
        cr_expect_null(rapt_linspace(RAPT_FLOAT64, i % 2 ? none[i / 2] : 0, i % 2 ? 1 : none[i / 2], 3));
        expect_error(RAPT_ERROR_VALUE, "must be finite");
    }
}

Test(tensor, sequences_between_numbers_whose_difference_is_none)
{
    CHECK(rapt_linspace(RAPT_FLOAT64, -1e308, 1e308, 3), -1e308, 0, 1e308);
    CHECK(rapt_linspace(RAPT_FLOAT64, 0x1p1023, -0x1p1023, 5), 0x1p1023, 0x1p1022, 0, -0x1p1022, -0x1p1023);
    CHECK(rapt_linspace(RAPT_FLOAT64, -DBL_MAX, DBL_MAX, 2), -DBL_MAX, DBL_MAX);
    CHECK(rapt_arange(RAPT_FLOAT64, -0x1p1023, 0x1p1023, 0x1p1022), -0x1p1023, -0x1p1022, 0, 0x1p1022);
    CHECK(rapt_arange(RAPT_FLOAT64, 0x1.8p1023, -0x1.8p1023, -0x1p1023), 0x1.8p1023, 0x1p1022, -0x1p1022);
    CHECK(rapt_arange(RAPT_FLOAT64, -0x1.8p1023, 0x1.8p1023, DBL_MAX), -0x1.8p1023, DBL_MAX - 0x1.8p1023);
    rapt_tensor *many = rapt_arange(RAPT_FLOAT64, -1e308, 1e308, 1e307);
    cr_assert_eq(rapt_count(many), 20, "%s", rapt_error());
    for (int64_t i = 0; i < 20; i++) cr_expect_float_eq(rapt_at(many, &i) / 1e307, (double)i - 10, 1e-14);
    expect_no_error();
}

Test(tensor, casts)
{
    const double numbers[] = {-3.7, -0.5, 0, 0.5, 1, 2.9, 254.5};
    rapt_tensor *tensor = rapt_from(RAPT_FLOAT64, RAPT_SHAPE(7), numbers), *target[RAPT_DTYPE_COUNT];
    for_each_dtype(dtype)
    {
        target[dtype] = rapt_empty(dtype, RAPT_SHAPE(7));
        cr_expect(rapt_copy(target[dtype], tensor));
    }
    CHECK(target[RAPT_FLOAT32], (double)-3.7f, -0.5, 0, 0.5, 1, (double)2.9f, 254.5);
    CHECK(target[RAPT_INT64], -3, 0, 0, 0, 1, 2, 254);
    CHECK(target[RAPT_INT32], -3, 0, 0, 0, 1, 2, 254);
    CHECK(target[RAPT_UINT8], 0, 0, 0, 0, 1, 2, 254);
    CHECK(target[RAPT_BOOL], 1, 1, 0, 1, 1, 1, 1);
    rapt_tensor *whole = rapt_arange(RAPT_INT32, 0, 3, 1);
    for_each_dtype(from)
    {
        rapt_tensor *source = rapt_empty(from, RAPT_SHAPE(3));
        cr_expect(rapt_copy(source, whole));
        for_each_dtype(to)
        {
            rapt_tensor *copy = rapt_empty(to, RAPT_SHAPE(3));
            cr_expect(rapt_copy(copy, source));
            const bool truth = from == RAPT_BOOL || to == RAPT_BOOL;
            CHECK(copy, 0, 1, truth ? 1 : 2);
        }
    }
}

Test(tensor, casts_outside_the_range_go_to_its_end)
{
    const double numbers[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, 1e30, -1e30};
    rapt_tensor *tensor = rapt_from(RAPT_FLOAT64, RAPT_SHAPE(5), numbers),
                *int64 = rapt_empty(RAPT_INT64, RAPT_SHAPE(5));
    rapt_tensor *int32 = rapt_empty(RAPT_INT32, RAPT_SHAPE(5)), *uint8 = rapt_empty(RAPT_UINT8, RAPT_SHAPE(5));
    rapt_tensor *single = rapt_empty(RAPT_FLOAT32, RAPT_SHAPE(5));
    cr_expect(rapt_copy(single, tensor));
    for (int i = 0; i < 2; i++, tensor = single) {
        cr_expect(rapt_copy(int64, tensor) && rapt_copy(int32, tensor) && rapt_copy(uint8, tensor));
        const int64_t *whole = rapt_data(int64);
        cr_expect_eq(whole[0], 0);
        cr_expect_eq(whole[1], INT64_MAX);
        cr_expect_eq(whole[2], INT64_MIN);
        cr_expect_eq(whole[3], INT64_MAX);
        cr_expect_eq(whole[4], INT64_MIN);
        CHECK(int32, 0, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN);
        CHECK(uint8, 0, 255, 0, 255, 0);
    }
}

Test(tensor, copies_broadcast_and_follow_strides)
{
    rapt_tensor *target = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2, 3));
    cr_expect(rapt_copy(target, rapt_arange(RAPT_INT64, 1, 4, 1)));
    CHECK(target, 1, 2, 3, 1, 2, 3);
    const double column[] = {7, 8};
    cr_expect(rapt_copy(target, rapt_from(RAPT_FLOAT64, RAPT_SHAPE(2, 1), column)));
    CHECK(target, 7, 7, 7, 8, 8, 8);
    cr_expect(rapt_copy(transposed(target), rapt_arange(RAPT_FLOAT32, 0, 2, 1)));
    CHECK(target, 0, 0, 0, 1, 1, 1);
    cr_expect_not(rapt_copy(target, rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2))));
    expect_error(RAPT_ERROR_SHAPE, "copy: shapes [2, 3] and [2] do not broadcast");
    cr_expect_not(rapt_copy(target, rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(4, 2, 3))));
    expect_error(RAPT_ERROR_SHAPE, "source of shape [4, 2, 3] does not broadcast to target of shape [2, 3]");
    cr_expect_not(rapt_copy(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(1)), target));
    expect_error(RAPT_ERROR_SHAPE, "does not broadcast to target of shape [1]");
}

Test(tensor, overlapping_copies_read_before_they_write)
{
    rapt_tensor *matrix = rapt_arange(RAPT_INT32, 0, 9, 1);
    matrix = rapt_new_view(matrix, matrix->data, 2, (int64_t[]){3, 3}, (int64_t[]){3, 1});
    cr_expect(rapt_copy(matrix, transposed(matrix)));
    CHECK(matrix, 0, 3, 6, 1, 4, 7, 2, 5, 8);
    rapt_tensor *line = rapt_arange(RAPT_FLOAT64, 0, 6, 1);
    rapt_tensor *front = rapt_new_view(line, line->data, 1, (int64_t[]){5}, (int64_t[]){1});
    rapt_tensor *back = rapt_new_view(line, line->data + 8, 1, (int64_t[]){5}, (int64_t[]){1});
    cr_expect(rapt_copy(back, front));
    CHECK(line, 0, 0, 1, 2, 3, 4);
    cr_expect(rapt_add_in_place(front, back, 10));
    CHECK(line, 0, 10, 21, 32, 43, 4);
}

/* A row, or a number, of the target itself, which begins where the target does. */
Test(tensor, a_part_added_to_its_whole_is_read_first)
{
    rapt_tensor *rows = rapt_arange(RAPT_FLOAT64, 0, 6, 1);
    rows = rapt_new_view(rows, rows->data, 2, (int64_t[]){3, 2}, (int64_t[]){2, 1});
    const rapt_tensor *first = rapt_new_view(rows, rows->data, 2, (int64_t[]){1, 2}, (int64_t[]){2, 1});
    cr_expect(rapt_add_in_place(rows, first, 1));
    CHECK(rows, 0, 2, 2, 4, 4, 6);
    rapt_tensor *many = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1 << 18));
    const rapt_tensor *one = rapt_new_view(many, many->data, 1, (int64_t[]){1}, (int64_t[]){1});
    cr_expect(rapt_add_in_place(many, one, 1));
    for (int64_t i = 0; i < many->count; i++) cr_assert_eq(rapt_at(many, &i), 2, "element %d", (int)i);
}

Test(tensor, changes_in_place)
{
    rapt_tensor *tensor = rapt_arange(RAPT_FLOAT32, 0, 4, 1);
    cr_expect(rapt_scale_in_place(tensor, 3));
    CHECK(tensor, 0, 3, 6, 9);
    cr_expect(rapt_add_in_place(tensor, rapt_scalar(RAPT_FLOAT32, 2), -0.5));
    CHECK(tensor, -1, 2, 5, 8);
    cr_expect_not(rapt_add_in_place(tensor, rapt_scalar(RAPT_FLOAT64, 2), 1));
    expect_error(RAPT_ERROR_DTYPE, "target is float32, source is float64");
    cr_expect_not(rapt_scale_in_place(rapt_scalar(RAPT_INT64, 2), 1));
    expect_error(RAPT_ERROR_DTYPE, "target is int64; floating expected");
    CHECK(tensor, -1, 2, 5, 8);
    const rapt_tensor *clone = rapt_clone(tensor);
    cr_expect(rapt_fill(tensor, 9));
    CHECK(clone, -1, 2, 5, 8);
}

Test(tensor, expanded_views_cannot_be_changed)
{
    rapt_tensor *base = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2));
    rapt_tensor *view = rapt_new_view(base, base->data, 2, (int64_t[]){3, 2}, (int64_t[]){0, 1});
    CHECK(view, 0, 0, 0, 0, 0, 0);
    cr_expect_not(rapt_fill(view, 1));
    expect_error(RAPT_ERROR_SHAPE, "fill: axis 0 of the tensor is expanded: one element stands for 3");
    CHECK(base, 0, 0);
}

Test(tensor, versions_count_changes_of_the_memory)
{
    rapt_tensor *tensor = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2));
    rapt_tensor *alias = rapt_new_alias(tensor, true);
    const uint64_t before = rapt_version(tensor);
    rapt_fill(tensor, 1);
    cr_expect_gt(rapt_version(tensor), before);
    const uint64_t after = rapt_version(tensor);
    cr_expect_not_null(rapt_data_for_writing(alias));
    cr_expect_eq(rapt_version(tensor), after + 1);
    rapt_data(tensor);
    cr_expect_eq(rapt_version(tensor), after + 1);
}

/* Else a backward would be refused for a change that never was. */
Test(tensor, versions_count_no_change_that_was_refused)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_arange(RAPT_FLOAT32, 0, 4, 1), *whole = rapt_zeros(RAPT_INT64, RAPT_SHAPE(4));
    rapt_tensor *front = rapt_new_view(x, x->data, 1, (int64_t[]){3}, (int64_t[]){1});
    rapt_tensor *back = rapt_new_view(x, x->data + sizeof(float), 1, (int64_t[]){3}, (int64_t[]){1});
    const uint64_t before = rapt_version(x), of_whole = rapt_version(whole);
    cr_expect_not(rapt_add_in_place(x, rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(4)), 1));
    cr_expect_not(rapt_add_in_place(whole, rapt_ones(RAPT_INT64, RAPT_SHAPE(4)), 1));
    cr_expect_not(rapt_scale_in_place(whole, 2));
    cr_expect_not(rapt_add_in_place(x, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3)), 1));
    cr_expect_not(rapt_copy(x, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 4))));
    cr_expect_not(rapt_set_at(x, (int64_t[]){4}, 1));
    cr_expect(!rapt_fill_uniform(x, 1, 0) && !rapt_fill_uniform(whole, 0, 1));
    rapt_clear_error();
    for (int copies = 0; copies < 2; copies++) {
        rapt_memory_fail_after(0);
        cr_expect_not(copies ? rapt_copy(front, back) : rapt_add_in_place(front, back, 1));
        rapt_memory_fail_after(-1);
        expect_error(RAPT_ERROR_MEMORY, "no memory");
    }
    cr_expect_eq(rapt_version(x), before);
    cr_expect_eq(rapt_version(whole), of_whole);
    CHECK(x, 0, 1, 2, 3);
}

Test(tensor, large_ones_are_worked_on_in_pieces)
{
    for (int threads = 1; threads <= 4; threads++) {
        rapt_set_threads(threads);
        rapt_tensor *source = rapt_arange(RAPT_INT64, 0, 100000, 1);
        rapt_tensor *grid = rapt_new_view(source, source->data, 2, (int64_t[]){250, 400}, (int64_t[]){1, 250});
        rapt_tensor *copy = rapt_clone(grid);
        const int64_t *numbers = rapt_data(copy);
        for (int64_t i = 0; i < 250; i++)
            for (int64_t j = 0; j < 400; j++) cr_assert_eq(numbers[i * 400 + j], i + 250 * j);
    }
}
