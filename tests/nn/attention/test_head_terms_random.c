/* Random calls of fused attention with sinks and with sigmoid, values and all gradients, against the plain way. */
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

/* A sink or sigmoid, constant or learned, for each head or for all; sometimes beside a modification of the scores. */
static void draw_head_terms(drawn *d)
{
    rapt_attention *attention = d->attention;
    const int64_t count = draw_chance(&d->state, 20) ? 1 : d->heads;
    const double usual = -log((double)d->keys);
    switch (draw_below(&d->state, 4)) {
    case 0:
        attention->sink = draw_chance(&d->state, 50) ? 0 : 2.5;
        break;
    case 1:
        cr_assert(rapt_fill_normal(rapt_attention_learn_sinks(attention, count), 0, 2));
        break;
    case 2:
        attention->normalizer = rapt_masked_sigmoid;
        attention->sigmoid_bias = d->keys > 100 || draw_chance(&d->state, 50) ? usual : 0; /* sums of about 1 value */
        break;
    default:
        cr_assert(rapt_fill_normal(rapt_attention_learn_sigmoid(attention, count, usual), usual, 2));
    }
    if (draw_chance(&d->state, 40)) {
        rapt_score_modification *m = draw_modification(&d->state, d->batch, d->heads, true);
        cr_assert(m && rapt_attention_modify(attention, "one", m), "%s", rapt_error());
        if (d->dtype == RAPT_FLOAT32) d->mask.offset %= 8; /* far away biases by distance are rounded to more */
    }
    cr_assert(rapt_module_cast(&attention->module, d->dtype));
}

static rapt_scoring *draw_additive(drawn *d, double scales[2])
{
    scales[0] = scales[1] = 0.5;
    return rapt_additive_scoring_new(d->query_size, d->key_size, draw_length(&d->state, 150));
}

static void run_random(int part, draw_scoring *draw_one)
{
    run_more_drawn_cases(case_count(), part, random_parts, draw_one, draw_head_terms);
}

Test(head_terms_random, dot_part_1)
{
    run_random(0, draw_dot_family);
}

Test(head_terms_random, dot_part_2)
{
    run_random(1, draw_dot_family);
}

Test(head_terms_random, additive_part_1)
{
    run_random(0, draw_additive);
}

Test(head_terms_random, additive_part_2)
{
    run_random(1, draw_additive);
}

Test(head_terms_random, second_derivatives_of_dot)
{
    compare_more_second_derivatives(case_count() / 8, draw_dot_family, draw_head_terms);
}

Test(head_terms_random, second_derivatives_of_additive)
{
    compare_more_second_derivatives(case_count() / 8, draw_additive, draw_head_terms);
}
