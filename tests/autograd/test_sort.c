/* sort, argsort and topk where the order is a choice: equal numbers, NaN, zeros of both signs; and at random. */
#include <criterion/criterion.h>
#include <fenv.h>
#include <math.h>

#include <rapt.h>

#include "expect.h"
#include "number_row.h"

/* Expected of PyTorch 2.6: torch.sort(..., stable=True). */
Test(sort, order_of_special_numbers)
{
    RAPT_SCOPE;
    for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) {
        rapt_tensor *x = rapt_cast(ROW(2, NAN, 0.0, -INFINITY, -0.0, INFINITY, -NAN, 0.0, -3), dtype), *places;
        EXPECT(rapt_sort(x, 0, false, &places), -INFINITY, -3, 0, 0, 0, 2, INFINITY, NAN, NAN);
        EXPECT(places, 3, 8, 2, 4, 7, 0, 5, 1, 6);
        EXPECT(rapt_sort(x, -1, true, &places), NAN, NAN, INFINITY, 2, 0, 0, 0, -3, -INFINITY);
        EXPECT(places, 1, 6, 5, 0, 2, 4, 7, 8, 3);
        EXPECT(rapt_argsort(x, 0, true), 1, 6, 5, 0, 2, 4, 7, 8, 3);
        EXPECT(rapt_topk(x, 0, 3, true, &places), NAN, NAN, INFINITY);
        EXPECT(places, 1, 6, 5);
        EXPECT(rapt_topk(x, 0, 4, false, &places), -INFINITY, -3, 0, 0);
        EXPECT(places, 3, 8, 2, 4);
        cr_expect(signbit(rapt_at(rapt_sort(x, 0, false, NULL), (int64_t[]){3})), "-0 stays -0");
    }
}

/* −0 + 0 is −0 where sums are rounded down. */
Test(sort, zeros_of_both_signs_stay_in_order_however_the_caller_rounds)
{
    RAPT_SCOPE;
    for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) {
        rapt_tensor *x = rapt_cast(ROW(0.0, -0.0, 0.0), dtype), *places = NULL;
        cr_assert_eq(fesetround(FE_DOWNWARD), 0);
        rapt_sort(x, 0, false, &places);
        fesetround(FE_TONEAREST);
        EXPECT(places, 0, 1, 2);
    }
}

Test(sort, integers_to_their_limits)
{
    RAPT_SCOPE;
    const int64_t numbers[] = {0, INT64_MAX, -1, INT64_MIN, 1, INT64_MAX, INT64_MIN};
    rapt_tensor *x = rapt_from(RAPT_INT64, RAPT_SHAPE(7), numbers);
    EXPECT(rapt_argsort(x, 0, false), 3, 6, 2, 0, 4, 1, 5);
    EXPECT(rapt_argsort(x, 0, true), 1, 5, 4, 0, 2, 3, 6);
    const int32_t shorts[] = {INT32_MIN, 7, INT32_MAX, -7, INT32_MIN};
    EXPECT(rapt_argsort(rapt_from(RAPT_INT32, RAPT_SHAPE(5), shorts), 0, false), 0, 4, 3, 1, 2);
}

/* Each before the next, equal ones by place, and all there. */
static void check_order(const rapt_tensor *x, const rapt_tensor *values, const rapt_tensor *places, bool descending)
{
    const int64_t count = rapt_count(places);
    double before = NAN;
    int64_t before_at = -1;
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = (int64_t)rapt_at(places, &i);
        const double value = rapt_at(values, &i);
        cr_assert(at >= 0 && at < rapt_count(x) && rapt_at(x, &at) == value, "place %d", (int)i);
        if (i > 0)
            cr_assert(value == before ? at > before_at
                      : descending    ? value < before
                                      : value > before,
                      "place %d of %d", (int)i, (int)count);
        before = value;
        before_at = at;
    }
}

/* Lines of all lengths about the limits of the kernel's ways, of numbers with many that are equal. */
Test(sort, random_lines_and_their_first)
{
    rapt_seed(7);
    for (int64_t count = 1; count < 3000; count = count < 150 ? count + 1 : count * 2 - 11) {
        RAPT_SCOPE;
        rapt_tensor *x = rapt_cast(rapt_randint(-count, count, 1, &count), count % 2 ? RAPT_FLOAT32 : RAPT_FLOAT64);
        rapt_tensor *places, *first_places;
        for (int descending = 0; descending < 2; descending++) {
            rapt_tensor *values = rapt_sort(x, 0, descending, &places);
            check_order(x, values, places, descending);
            for (int64_t wanted = 1; wanted <= count; wanted = wanted * 3 + 1) {
                rapt_tensor *first = rapt_topk(x, 0, wanted, descending, &first_places);
                check_order(x, first, first_places, descending);
                rapt_tensor *same = rapt_equal(first_places, rapt_slice(places, 0, 0, wanted, 1));
                cr_assert(rapt_item(rapt_all(same, RAPT_ALL_AXES, false)) == 1, "%d of %d", (int)wanted, (int)count);
            }
        }
    }
    expect_no_error();
}

/* What is worst for the first few: each element is better than all before it. */
Test(sort, first_of_rising_and_equal_lines)
{
    RAPT_SCOPE;
    rapt_tensor *rising = rapt_arange(RAPT_FLOAT32, 0, 5000, 1), *equal = rapt_full(RAPT_INT32, RAPT_SHAPE(5000), 3);
    rapt_tensor *places;
    EXPECT(rapt_topk(rising, 0, 3, true, &places), 4999, 4998, 4997);
    EXPECT(rapt_topk(rising, 0, 3, false, &places), 0, 1, 2);
    rapt_topk(equal, 0, 3, true, &places);
    EXPECT(places, 0, 1, 2);
    rapt_topk(rapt_full(RAPT_FLOAT64, RAPT_SHAPE(5000), NAN), 0, 3, false, &places);
    EXPECT(places, 0, 1, 2);
}

Test(sort, errors)
{
    RAPT_SCOPE;
    rapt_tensor *x = ROW(1, 2, 3), *places = x;
    cr_expect_null(rapt_topk(x, 0, 4, true, &places));
    cr_expect_null(places);
    expect_error(RAPT_ERROR_VALUE, "topk: 4 elements wanted along axis 0, which has 3");
    cr_expect_null(rapt_argsort(x, 1, false));
    expect_error(RAPT_ERROR_SHAPE, "argsort: axis 1");
}

Test(sort, lines_are_shorter_than_4294967296)
{
    if (sizeof(size_t) < 8) cr_skip_test("no tensor has so much");
    RAPT_SCOPE;
    rapt_tensor *line = rapt_expand(rapt_zeros(RAPT_UINT8, RAPT_SHAPE(1)), RAPT_SHAPE(INT64_C(1) << 32));
    cr_expect_null(rapt_topk(line, 0, 1, true, NULL));
    expect_error(RAPT_ERROR_SHAPE, "axis 0 has 4294967296 elements; fewer than 2^32 expected");
}
