/* How fast fused additive attention is, with its projections. */
#include "attention_cases.h"

enum { hidden = 256 };

static const attention_case cases[] = {
    /* name, batch, heads, groups, queries, keys, size, causal, lengths, layout */
    {"additive_256", 8, 0, 0, 256, 256, 256, false, true, DENSE, NULL},
    {"additive_512", 4, 0, 0, 512, 512, 256, false, true, DENSE, NULL},
    {"additive_32", 64, 0, 0, 32, 32, 256, false, true, DENSE, NULL},
    {"additive_step", 128, 0, 0, 1, 10, 256, false, true, DENSE, NULL},
};

static rapt_attention *make(int64_t size)
{
    return rapt_additive_attention_new(size, size, hidden, 0);
}

/* At the least a multiply-add in each tanh and one by its weight; backward again, and one for each of three sums. */
static double cost(int64_t size, bool backward)
{
    (void)size;
    return 2 * hidden * (backward ? 7 : 2);
}

int main(int count, char **arguments)
{
    const attention_kind kind = {make, cost,
                                 "2 multiply-adds of a hidden unit of a pair forward, 7 forward and backward; "
                                 "projections and values are not counted"};
    return attention_cases_main(count, arguments, &kind, cases, (int)(sizeof cases / sizeof *cases));
}
