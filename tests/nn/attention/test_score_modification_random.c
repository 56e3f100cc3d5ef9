/* Random calls of fused attention with modifications of the scores, values and all gradients, against the plain way. */
#include <stdlib.h>

#include "fused_family.h"
#include "score_modifications.h"

enum { random_parts = 2 };

/* More of them when asked: RAPT_CASES=10000. */
static int case_count(void)
{
    const char *wanted = getenv("RAPT_CASES");
    return wanted ? atoi(wanted) : 400;
}

/* One, two or three; by_functions: the plain way is that of the functions on whole matrices. */
static void modify(drawn *d, bool by_functions)
{
    const int count = (int)draw_below(&d->state, 3) + 1;
    for (int k = 0; k < count; k++) {
        const char *const names[] = {"one", "two", "three"};
        rapt_score_modification *m = draw_modification(&d->state, d->batch, d->heads, k == count - 1);
        cr_assert(m && rapt_attention_modify(d->attention, names[k], m), "%s", rapt_error());
        if (by_functions) m->by_ops = NULL;
    }
    /* where all keys are far away, float32 rounds biases by distance to more than is allowed here */
    if (d->dtype == RAPT_FLOAT32) {
        d->mask.offset %= 8;
        d->mask.query_places = NULL;
    }
    cr_assert(rapt_module_cast(&d->attention->module, d->dtype));
}

static void draw_modifications(drawn *d)
{
    modify(d, draw_chance(&d->state, 20));
}

static void draw_differentiable(drawn *d)
{
    modify(d, false);
}

static rapt_scoring *draw_additive(drawn *d, double scales[2])
{
    scales[0] = scales[1] = 0.5;
    return rapt_additive_scoring_new(d->query_size, d->key_size, draw_length(&d->state, 150));
}

static void run_random(int part, draw_scoring *draw_one)
{
    run_more_drawn_cases(case_count(), part, random_parts, draw_one, draw_modifications);
}

Test(score_modification_random, dot_part_1)
{
    run_random(0, draw_dot_family);
}

Test(score_modification_random, dot_part_2)
{
    run_random(1, draw_dot_family);
}

Test(score_modification_random, additive_part_1)
{
    run_random(0, draw_additive);
}

Test(score_modification_random, additive_part_2)
{
    run_random(1, draw_additive);
}

Test(score_modification_random, second_derivatives_of_dot)
{
    compare_more_second_derivatives(case_count() / 8, draw_dot_family, draw_differentiable);
}

Test(score_modification_random, second_derivatives_of_additive)
{
    compare_more_second_derivatives(case_count() / 8, draw_additive, draw_differentiable);
}
