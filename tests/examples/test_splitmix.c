/* Tests of examples/translate/splitmix.c. */
#include <criterion/criterion.h>

#include "splitmix.h"

/* The outputs that Rosetta Code quotes for seed 1234567. */
Test(splitmix, known_answers)
{
    struct splitmix generator = {1234567};
    cr_expect_eq(splitmix_next(&generator), UINT64_C(6457827717110365317));
    cr_expect_eq(splitmix_next(&generator), UINT64_C(3203168211198807973));
    cr_expect_eq(splitmix_next(&generator), UINT64_C(9817491932198370423));
    for (int i = 0; i < 1000; i++) cr_expect_lt(splitmix_below(&generator, 7), 7);
    cr_expect_eq(splitmix_below(&generator, 1), 0);
}
