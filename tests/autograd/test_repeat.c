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
