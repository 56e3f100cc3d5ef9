/* Copies of rows side by side: what they must be told, and whose memory they have. */
#include <criterion/criterion.h>

#include <rapt.h>

#include "expect.h"
#include "number_row.h"

Test(repeat, number_of_repeats_is_needed)
{
    RAPT_SCOPE;
    cr_expect_null(rapt_tile(ROW(1, 2), 1, NULL));
    expect_error(RAPT_ERROR_NULL, "tile: repeats is NULL");
}

/* Also where nothing is repeated, and where one element is: what is written there stays there. */
Test(repeat, results_have_memory_of_their_own)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_tensor *x = ROW(1, 2), *one = ROW(5), *number = rapt_scalar(RAPT_FLOAT64, 6);
    const int64_t once[] = {1, 1}, thrice[] = {3};
    rapt_tensor *repeated[] = {rapt_tile(x, 1, once),
                               rapt_tile(x, 2, once),
                               rapt_tile(number, 0, NULL),
                               rapt_tile(one, 1, thrice),
                               rapt_tile(number, 1, thrice),
                               rapt_repeat_interleave(x, 0, 1),
                               rapt_repeat_interleave(one, 0, 3)};
    for (size_t i = 0; i < sizeof repeated / sizeof *repeated; i++)
        cr_expect(rapt_is_contiguous(repeated[i]) && rapt_fill(repeated[i], 9), "%d: %s", (int)i, rapt_error());
    EXPECT(x, 1, 2);
    EXPECT(one, 5);
    EXPECT(number, 6);
    EXPECT(repeated[3], 9, 9, 9);
}

Test(repeat, expands_to_the_highest_rank)
{
    RAPT_SCOPE;
    int64_t shape[RAPT_MAX_RANK + 1];
    for (int axis = 0; axis <= RAPT_MAX_RANK; axis++) shape[axis] = 2;
    rapt_tensor *x = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2)));
    rapt_tensor *y = rapt_expand(x, RAPT_MAX_RANK, shape);
    cr_assert(y && rapt_rank(y) == RAPT_MAX_RANK, "%s", rapt_error());
    cr_assert(rapt_backward(rapt_sum(y, RAPT_ALL_AXES, false)), "%s", rapt_error());
    cr_expect_eq(rapt_at(rapt_gradient(x), (int64_t[]){1}), 1 << (RAPT_MAX_RANK - 1));
    cr_expect_null(rapt_expand(x, RAPT_MAX_RANK + 1, shape));
    expect_error(RAPT_ERROR_SHAPE, "shape [2] does not expand to rank 9");
}
