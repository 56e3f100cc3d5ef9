/* Packings: starts of lengths, places of rows, lists of sequences, and starts that are none. */
#include <criterion/criterion.h>
#include <math.h>

#include <rapt/autograd.h>

#include "../expect.h"

static rapt_tensor *numbers(int64_t count, const int64_t *values)
{
    return rapt_from(RAPT_INT64, RAPT_SHAPE(count), values);
}

#define NUMBERS(...) numbers(RAPT_LENGTH_OF(int64_t, __VA_ARGS__), (const int64_t[]){__VA_ARGS__})

static void expect_numbers(rapt_tensor *got, rapt_tensor *expected)
{
    cr_assert(got, "%s", rapt_error());
    cr_expect_eq(rapt_get_dtype(got), RAPT_INT64);
    cr_assert_eq(rapt_count(got), rapt_count(expected));
    for (int64_t i = 0; i < rapt_count(got); i++)
        cr_expect_eq(rapt_at(got, &i), rapt_at(expected, &i), "element %lld is %g", (long long)i, rapt_at(got, &i));
}

Test(packing, starts_are_the_sums_of_the_lengths_before)
{
    RAPT_SCOPE;
    expect_numbers(rapt_packing_starts(NUMBERS(3, 0, 2)), NUMBERS(0, 3, 3, 5));
    expect_numbers(rapt_packing_starts(rapt_cast(NUMBERS(1, 4), RAPT_INT32)), NUMBERS(0, 1, 5));
    expect_numbers(rapt_packing_starts(rapt_empty(RAPT_INT64, RAPT_SHAPE(0))), NUMBERS(0));
}

Test(packing, positions_begin_anew_with_each_sequence)
{
    RAPT_SCOPE;
    expect_numbers(rapt_packing_positions(NUMBERS(0, 3, 3, 5)), NUMBERS(0, 1, 2, 0, 1));
    cr_expect_eq(rapt_count(rapt_packing_positions(NUMBERS(0))), 0);
    cr_expect_eq(rapt_count(rapt_packing_positions(NUMBERS(0, 0, 0))), 0);
}

Test(packing, a_list_of_sequences_becomes_rows_and_starts)
{
    RAPT_SCOPE;
    rapt_tensor *starts, *list[] = {NUMBERS(5, 6), rapt_empty(RAPT_INT64, RAPT_SHAPE(0)), NUMBERS(7)};
    expect_numbers(rapt_pack_sequences(3, list, &starts), NUMBERS(5, 6, 7));
    expect_numbers(starts, NUMBERS(0, 2, 2, 3));
    cr_expect_null(rapt_pack_sequences(0, list, &starts));
    expect_error(RAPT_ERROR_VALUE, "0 sequences; 1 or more expected");
    cr_expect_null(rapt_pack_sequences(1, NULL, &starts));
    expect_error(RAPT_ERROR_NULL, "pack_sequences: the list of sequences is NULL");
    cr_expect_null(rapt_pack_sequences(1, list, NULL));
    expect_error(RAPT_ERROR_NULL, "pack_sequences: the place for the starts is NULL");
    list[1] = NULL;
    cr_expect_null(rapt_pack_sequences(3, list, &starts));
    cr_expect_null(starts);
    rapt_clear_error();
    list[1] = rapt_zeros(RAPT_INT64, RAPT_SHAPE(2, 2));
    cr_expect_null(rapt_pack_sequences(3, list, &starts));
    rapt_clear_error();
}

Test(packing, starts_that_are_none_are_errors)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2, 3));
    cr_expect_null(rapt_pack(x, NUMBERS(0, 2, 6)));
    expect_error(RAPT_ERROR_SHAPE, "of 2 sequences, with room for 4 rows each, expected, not float32 [2, 3]");
    cr_expect_null(rapt_pack(x, NUMBERS(1, 2, 3)));
    expect_error(RAPT_ERROR_VALUE, "start 0 is 1");
    cr_expect_null(rapt_pack(x, NUMBERS(0, 2, 1)));
    expect_error(RAPT_ERROR_VALUE, "start 2 is 1");
    cr_expect_null(rapt_pack(x, rapt_cast(NUMBERS(0, 1, 2), RAPT_FLOAT32)));
    expect_error(RAPT_ERROR_DTYPE, "int64");
    cr_expect_null(rapt_pack(x, rapt_empty(RAPT_INT64, RAPT_SHAPE(0))));
    expect_error(RAPT_ERROR_SHAPE, "(B + 1)");
    cr_expect_null(rapt_packing_positions(rapt_zeros(RAPT_INT64, RAPT_SHAPE(2, 2))));
    expect_error(RAPT_ERROR_SHAPE, "(B + 1)");
    cr_expect_null(rapt_packing_starts(rapt_zeros(RAPT_INT64, RAPT_SHAPE(2, 2))));
    expect_error(RAPT_ERROR_SHAPE, "(B)");
    cr_expect_null(rapt_packing_starts(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2))));
    expect_error(RAPT_ERROR_DTYPE, "int64");
    cr_expect_null(rapt_packing_starts(NUMBERS(INT64_MAX, 1)));
    expect_error(RAPT_ERROR_VALUE, "length 1");
}

Test(packing, the_value_beside_the_rows_is_of_their_dtype)
{
    RAPT_SCOPE;
    rapt_tensor *starts = NUMBERS(0, 1, 3), *rows = NUMBERS(5, 6, 7);
    cr_expect_eq(rapt_at(rapt_unpack(rows, starts, 0, -2), (int64_t[]){0, 1}), -2);
    static const double values[] = {2.5, NAN, 0x1p63};
    for (int i = 0; i < 3; i++) {
        cr_expect_null(rapt_unpack(rows, starts, 0, values[i]));
        expect_error(RAPT_ERROR_VALUE, "is not a number of type int64, which the tensor has");
    }
    cr_expect_null(rapt_unpack(rapt_cast(rows, RAPT_UINT8), starts, 0, 256));
    expect_error(RAPT_ERROR_VALUE, "unpack: 256 is not a number of type uint8");
    expect_no_error();
}

Test(packing, places_that_are_not_packed_may_hold_nan)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_full(RAPT_FLOAT64, RAPT_SHAPE(2, 3, 1), NAN), *starts = NUMBERS(0, 1, 3);
    cr_assert(rapt_copy(rapt_slice(x, 1, 0, 2, 1), rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2, 2, 1))));
    rapt_require_gradient(x);
    rapt_tensor *loss = rapt_sum(rapt_pack(x, starts), RAPT_ALL_AXES, false);
    cr_assert_eq(rapt_item(loss), 3);
    cr_assert(rapt_backward(loss));
    const double expected[] = {1, 0, 0, 1, 1, 0};
    for (int64_t i = 0; i < 6; i++) cr_expect_eq(rapt_at(rapt_gradient(x), (int64_t[]){i / 3, i % 3, 0}), expected[i]);
}
