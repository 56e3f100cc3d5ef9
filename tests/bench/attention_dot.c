/* How fast fused dot-product attention is. */
#include "attention_cases.h"

static const attention_case cases[] = {
    /* name, batch, heads, groups, queries, keys, size, causal, lengths, layout */
    {"dot_causal_1024", 4, 12, 12, 1024, 1024, 64, true, false, DENSE},
    {"dot_causal_4096", 1, 12, 12, 4096, 4096, 64, true, false, DENSE},
    {"dot_lengths_128", 32, 8, 8, 128, 128, 64, false, true, DENSE},
    {"dot_causal_1024_split", 4, 12, 12, 1024, 1024, 64, true, false, SPLIT},
    {"dot_lengths_128_split", 32, 8, 8, 128, 128, 64, false, true, SPLIT},
    {"dot_1024", 4, 12, 12, 1024, 1024, 64, false, false, DENSE},
    {"dot_causal_4_groups", 2, 16, 4, 1024, 1024, 64, true, false, DENSE},
    {"dot_causal_size_128", 2, 12, 12, 1024, 1024, 128, true, false, DENSE},
    /* A step reads keys and values from a cache: those of a head lie one after another, and here they fill it. */
    {"dot_step_8192", 1, 8, 8, 1, 8192, 64, true, false, DENSE},
    {"dot_step_32768", 1, 1, 1, 1, 32768, 64, true, false, DENSE},
    {"dot_step_4_groups", 1, 16, 4, 1, 8192, 64, true, false, DENSE},
    {"dot_causal_65536", 1, 1, 1, 65536, 65536, 64, true, false, DENSE},
};

static rapt_attention *make(int64_t size)
{
    (void)size;
    return rapt_dot_product_attention_new(0);
}

/* Two products forward, and five backward, one of them the scores again. */
static double cost(int64_t size, bool backward)
{
    return 2 * (double)size * (backward ? 7 : 2);
}

int main(int count, char **arguments)
{
    const attention_kind kind = {make, cost, "2 products of a pair forward, 7 forward and backward"};
    return attention_cases_main(count, arguments, &kind, cases, (int)(sizeof cases / sizeof *cases));
}
