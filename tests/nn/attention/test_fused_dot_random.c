/* 10,000 random calls of fused dot-product attention, values and gradients, against the plain way. */
#include "fused.h"

enum { random_cases = 10000, random_parts = 4 };

static const char *const family[] = {"dot",    "scaled dot", "padded dot",  "bilinear",
                                     "cosine", "relative",   "log Gaussian"};

static const scoring_case *find_scoring(const char *name)
{
    for (int i = 0; i < scoring_case_count; i++)
        if (strcmp(scoring_cases[i].name, name) == 0) return &scoring_cases[i];
    cr_assert_fail("no scoring function %s", name);
    return NULL;
}

static rapt_scoring *draw_family(drawn *d, double scales[2])
{
    const scoring_case *scoring = find_scoring(family[draw_below(&d->state, sizeof family / sizeof *family)]);
    if (scoring->one_size) d->key_size = d->query_size;
    const double scale = 1 / sqrt((double)d->query_size); /* scores of about 1, which float32 rounds to 1e-7 */
    if (scoring->define == defined_log_gaussian) scales[0] = scales[1] = scale;
    if (scoring->define == defined_dot) scales[0] = scale;
    return scoring_of(scoring, d->query_size, d->key_size, d->dtype);
}

static void run_random(int part)
{
    run_drawn_cases(random_cases, part, random_parts, draw_family);
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
    compare_second_derivatives(600, draw_family);
}
