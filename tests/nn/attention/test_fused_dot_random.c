/* 10,000 random calls of fused dot-product attention, values and gradients, against the plain way. */
#include "fused_family.h"

enum { random_cases = 10000, random_parts = 4 };

static void run_random(int part)
{
    run_drawn_cases(random_cases, part, random_parts, draw_dot_family);
}

Test(fused_dot_random, part_1)
{
    run_random(0);
}

Test(fused_dot_random, part_2)
{
    run_random(1);
}

Test(fused_dot_random, part_3)
{
    run_random(2);
}

Test(fused_dot_random, part_4)
{
    run_random(3);
}

Test(fused_dot_random, second_derivatives)
{
    compare_second_derivatives(600, draw_dot_family);
}
