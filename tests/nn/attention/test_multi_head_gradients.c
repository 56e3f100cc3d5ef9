/* Multi-head attention: derivatives of both orders for all inputs and parameters. */
#include "multi_head_reference.h"

typedef struct subject {
    rapt_multi_head_attention *m;
    rapt_mask mask;
    bool self; /* queries, keys and values are one tensor */
} subject;

static rapt_tensor *call(rapt_tensor *const *inputs, void *context)
{
    const subject *s = context;
    return rapt_multi_head_attention_forward(s->m, inputs[0], inputs[s->self ? 0 : 1], inputs[s->self ? 0 : 2],
                                             &s->mask, NULL);
}

/* First order in all directions, second order in one. */
static void check(const char *name, subject *s, int64_t query_size, int64_t key_size)
{
    rapt_tensor *inputs[5], **next = inputs;
    draw_parameters(s->m);
    *next++ = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 2, query_size)));
    for (int i = 1; i < 3 && !s->self; i++)
        *next++ = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 3, key_size)));
    if (s->mask.relative_bias) *next++ = s->mask.relative_bias;
    if (s->m->head_mask) *next++ = s->m->head_mask;
    for (int second = 0; second < 2; second++) {
        rapt_gradcheck_options options = {.context = s, .second_order = second, .random_projection = second};
        rapt_gradcheck_result result =
            rapt_module_gradcheck(&s->m->module, call, (int)(next - inputs), inputs, &options);
        cr_expect(result.passed, "%s: %s", name, result.message);
    }
}

/* Each layout under each mask: lengths (B) and (B, Q), some of them 0; causal; relative biases. */
Test(multi_head_gradients, gradcheck)
{
    const struct {
        const char *name;
        config c;
        bool additive, rotary, self, head_mask;
    } layouts[] = {
        {.name = "packed", .c = {.hidden = 4, .heads = 2, .bias = true}},
        {.name = "self", .c = {.hidden = 4, .heads = 2, .bias = true}, .self = true},
        {.name = "groups", .c = {.hidden = 8, .heads = 4, .groups = 2, .value_hidden = 4, .output_size = 3}},
        {.name = "multi-query", .c = {.hidden = 4, .heads = 2, .groups = 1}, .self = true, .head_mask = true},
        {.name = "apart", .c = {.hidden = 4, .heads = 2, .key_size = 3, .value_size = 3, .bias = true}},
        {.name = "additive", .c = {.hidden = 4, .heads = 2}, .additive = true},
        {.name = "additive groups", .c = {.hidden = 4, .heads = 2, .groups = 1}, .additive = true, .self = true},
        {.name = "rotary", .c = {.hidden = 4, .heads = 2}, .rotary = true, .self = true},
    };
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        for (int kind = 0; kind < 4; kind++) {
            RAPT_SCOPE;
            rapt_seed(30 + i);
            config c = layouts[i].c;
            if (layouts[i].additive) c.pooling = rapt_additive_attention_new(2, 2, 3, 0);
            if (layouts[i].rotary) c.rotary = rapt_rotary_new();
            subject s = {.m = multi_head(&c, RAPT_FLOAT64), .self = layouts[i].self};
            if (kind == 1) s.mask.valid_lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){2, 0});
            if (kind == 2) s.mask.valid_lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(2, 2), (int64_t[]){0, 3, 1, 2});
            if (kind == 3) {
                rapt_tensor *biases = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(c.heads, 1, 3));
                s.mask = (rapt_mask){.causal = true, .offset = 1, .relative_bias = rapt_require_gradient(biases)};
            }
            if (layouts[i].head_mask)
                rapt_multi_head_attention_set_head_mask(s.m, rapt_require_gradient(
                                                                 rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(c.heads))));
            check(layouts[i].name, &s, c.hidden, c.key_size ? c.key_size : c.hidden);
            rapt_module_free(&s.m->module);
        }
    expect_no_error();
}
