/* multinomial: the procedure that ops.h promises, the shares that come out, and weights that are none. */
#include <criterion/criterion.h>
#include <math.h>

#include <rapt.h>

#include "expect.h"
#include "number_row.h"

enum { rows = 5, categories = 7, draws = 4 };

static rapt_tensor *random_weights(void)
{
    rapt_seed(3);
    rapt_tensor *weights = rapt_rand(RAPT_FLOAT64, RAPT_SHAPE(rows, categories));
    return rapt_masked_fill(weights, rapt_less_scalar(weights, 0.3), 0);
}

/* By plain loops over the numbers that rapt_rand gives after the same seed. */
Test(multinomial, with_replacement_searches_the_sums)
{
    RAPT_SCOPE;
    rapt_tensor *weights = random_weights();
    rapt_seed(11);
    rapt_tensor *u = rapt_rand(RAPT_FLOAT64, RAPT_SHAPE(rows, draws));
    rapt_seed(11);
    rapt_tensor *drawn = rapt_multinomial(weights, draws, true);
    cr_assert(drawn, "%s", rapt_error());
    for (int64_t r = 0; r < rows; r++) {
        double total = 0;
        for (int64_t i = 0; i < categories; i++) total += rapt_at(weights, (int64_t[]){r, i});
        for (int64_t k = 0; k < draws; k++) {
            double sum = 0;
            int64_t i = -1;
            while (sum <= rapt_at(u, (int64_t[]){r, k}) * total) sum += rapt_at(weights, (int64_t[]){r, ++i});
            cr_expect_eq(rapt_at(drawn, (int64_t[]){r, k}), (double)i);
        }
    }
}

Test(multinomial, without_replacement_is_a_race)
{
    RAPT_SCOPE;
    rapt_tensor *weights = rapt_add_scalar(random_weights(), 0.125);
    rapt_seed(12);
    rapt_tensor *u = rapt_rand(RAPT_FLOAT64, RAPT_SHAPE(rows, categories));
    rapt_seed(12);
    rapt_tensor *drawn = rapt_multinomial(weights, categories, false);
    cr_assert(drawn, "%s", rapt_error());
    for (int64_t r = 0; r < rows; r++) {
        double before = 0;
        for (int64_t k = 0; k < categories; k++) {
            const int64_t i = (int64_t)rapt_at(drawn, (int64_t[]){r, k});
            const double time = -log1p(-rapt_at(u, (int64_t[]){r, i})) / rapt_at(weights, (int64_t[]){r, i});
            cr_expect(time >= before, "row %d, draw %d", (int)r, (int)k);
            before = time;
        }
    }
}

static double share_of(rapt_tensor *drawn, int index)
{
    return rapt_item(rapt_mean(rapt_equal_scalar(drawn, index), RAPT_ALL_AXES, false));
}

/* Of 20,000 draws the share of each index is within 5 deviations of its probability. The first of two without
 * replacement is drawn likewise, and the two are never one. */
Test(multinomial, shares)
{
    RAPT_SCOPE;
    enum { many = 20000, n = 4 };
    static const double chance[n] = {0.1, 0, 0.6, 0.3};
    rapt_tensor *weights = rapt_mul_scalar(rapt_from(RAPT_FLOAT64, RAPT_SHAPE(n), chance), 30);
    rapt_seed(5);
    rapt_tensor *with = rapt_multinomial(rapt_cast(weights, RAPT_FLOAT32), many, true);
    rapt_tensor *pairs = rapt_multinomial(rapt_expand(weights, RAPT_SHAPE(many, n)), 2, false);
    rapt_tensor *first = rapt_select(pairs, 1, 0);
    cr_expect_eq(rapt_item(rapt_sum(rapt_equal(first, rapt_select(pairs, 1, 1)), RAPT_ALL_AXES, false)), 0);
    for (int i = 0; i < n; i++) {
        const double most = 5 * sqrt(chance[i] * (1 - chance[i]) / many);
        cr_expect(fabs(share_of(with, i) - chance[i]) <= most, "%d: %g", i, share_of(with, i));
        cr_expect(fabs(share_of(first, i) - chance[i]) <= most, "%d: %g", i, share_of(first, i));
    }
}

Test(multinomial, extreme_weights)
{
    RAPT_SCOPE;
    EXPECT(rapt_multinomial(ROW(0, 5e-324, 0), 3, true), 1, 1, 1);
    EXPECT(rapt_multinomial(ROW(0, 5e-324, 0, 1e308), 2, false), 3, 1);
    EXPECT(rapt_multinomial(ROW(0, 0, 7), 1, false), 2);
}

Test(multinomial, rows_of_nothing_take_no_time)
{
    RAPT_SCOPE;
    rapt_tensor *nothing = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(SIZE_MAX / 32, 0));
    for (int replace = 0; replace < 2; replace++) cr_expect_eq(rapt_count(rapt_multinomial(nothing, 0, replace)), 0);
    expect_no_error();
    cr_expect_null(rapt_multinomial(nothing, 1, true));
    expect_error(RAPT_ERROR_VALUE, "row 0 has 0 weights above 0; 1 or more");
}

Test(multinomial, errors_leave_the_generator_alone)
{
    RAPT_SCOPE;
    rapt_seed(1);
    cr_expect_null(rapt_multinomial(ROW(1, -1), 1, true));
    expect_error(RAPT_ERROR_VALUE, "multinomial: weight 1 of row 0 is -1");
    cr_expect_null(rapt_multinomial(ROW(1, NAN), 1, true));
    expect_error(RAPT_ERROR_VALUE, "weight 1 of row 0 is nan");
    cr_expect_null(rapt_multinomial(ROW(INFINITY, 1), 1, true));
    expect_error(RAPT_ERROR_VALUE, "weight 0 of row 0 is inf");
    cr_expect_null(rapt_multinomial(ROW(0, 0), 1, true));
    expect_error(RAPT_ERROR_VALUE, "row 0 has 0 weights above 0; 1 or more");
    cr_expect_null(rapt_multinomial(ROW(1, 0, 1), 3, false));
    expect_error(RAPT_ERROR_VALUE, "row 0 has 2 weights above 0; 3 or more expected to draw 3 without replacement");
    cr_expect_null(rapt_multinomial(rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(0, 3)), 4, false));
    expect_error(RAPT_ERROR_VALUE, "multinomial: 4 draws without replacement; at most 3 expected");
    cr_expect_null(rapt_multinomial(ROW(1, 1), INT64_MAX, true));
    expect_error(RAPT_ERROR_MEMORY, "multinomial: a tensor of shape [9223372036854775807]");
    cr_expect_null(rapt_multinomial(ROW(1e308, 1e308), 1, true));
    expect_error(RAPT_ERROR_VALUE, "the weights of row 0 sum to infinity");
    cr_expect_null(rapt_multinomial(rapt_ones(RAPT_INT64, RAPT_SHAPE(2)), 1, true));
    expect_error(RAPT_ERROR_DTYPE, "multinomial");
    cr_expect_eq(rapt_random_get_state().offset, 0);
}
