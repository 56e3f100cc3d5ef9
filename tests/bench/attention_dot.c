/* How fast fused dot-product attention is. */
#include "attention_cases.h"

static rapt_score_modification *soft_cap(int64_t heads)
{
    (void)heads;
    return rapt_soft_cap_new(50);
}

static rapt_score_modification *alibi(int64_t heads)
{
    return rapt_alibi_modification_new(heads);
}

static rapt_score_modification *t5(int64_t heads)
{
    return rapt_bucketed_bias_new(heads, 32, 128, false);
}

static const attention_case cases[] = {
    /* name, batch, heads, groups, queries, keys, size, causal, lengths, layout, modification */
    {"dot_causal_1024", 4, 12, 12, 1024, 1024, 64, true, false, DENSE, NULL},
    {"dot_causal_4096", 1, 12, 12, 4096, 4096, 64, true, false, DENSE, NULL},
    {"dot_lengths_128", 32, 8, 8, 128, 128, 64, false, true, DENSE, NULL},
    {"dot_causal_1024_split", 4, 12, 12, 1024, 1024, 64, true, false, SPLIT, NULL},
    {"dot_lengths_128_split", 32, 8, 8, 128, 128, 64, false, true, SPLIT, NULL},
    {"dot_1024", 4, 12, 12, 1024, 1024, 64, false, false, DENSE, NULL},
    {"dot_causal_4_groups", 2, 16, 4, 1024, 1024, 64, true, false, DENSE, NULL},
    {"dot_causal_size_128", 2, 12, 12, 1024, 1024, 128, true, false, DENSE, NULL},
    /* A step reads keys and values from a cache: those of a head lie one after another, and here they fill it. */
    {"dot_step_8192", 1, 8, 8, 1, 8192, 64, true, false, DENSE, NULL},
    {"dot_step_32768", 1, 1, 1, 1, 32768, 64, true, false, DENSE, NULL},
    {"dot_step_4_groups", 1, 16, 4, 1, 8192, 64, true, false, DENSE, NULL},
    {"dot_soft_cap_1024", 4, 12, 12, 1024, 1024, 64, true, false, DENSE, soft_cap},
    {"dot_alibi_1024", 4, 12, 12, 1024, 1024, 64, true, false, DENSE, alibi},
    {"dot_t5_1024", 4, 12, 12, 1024, 1024, 64, true, false, DENSE, t5},
    {"dot_soft_cap_4096", 1, 12, 12, 4096, 4096, 64, true, false, DENSE, soft_cap},
    {"dot_alibi_4096", 1, 12, 12, 4096, 4096, 64, true, false, DENSE, alibi},
    {"dot_t5_4096", 1, 12, 12, 4096, 4096, 64, true, false, DENSE, t5},
    /* 32 sequences, of 368 places 46 % are tokens: padded, and without padding */
    {"dot_causal_lengths_368", 32, 8, 8, 368, 368, 64, true, true, DENSE, NULL},
    {"dot_causal_lengths_368_packed", 32, 8, 8, 368, 368, 64, true, true, PACKED, NULL},
    {"dot_causal_65536", 1, 1, 1, 65536, 65536, 64, true, false, DENSE, NULL},
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
