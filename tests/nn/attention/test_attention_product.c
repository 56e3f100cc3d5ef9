/* Gradients of attention, first and second order: every scoring function × every normaliser × every kind of mask ×
 * every layout of heads, in all inputs, biases and parameters. */
#include "scorings.h"

#include <stdio.h>

enum { batch = 2, queries = 2, keys = 3, query_size = 2, value_size = 2 };

typedef struct layout {
    const char *name;
    int64_t heads, groups; /* 0: without an axis of heads */
} layout;

static const layout layouts[] = {{"rank 3", 0, 0}, {"heads", 2, 2}, {"grouped heads", 4, 2}};

enum { softmax, sum, none, hard, uniform, normalizer_count };
static const char *const normalizer_names[] = {"softmax", "sum", "none", "hard", "uniform"};
static rapt_normalizer *const normalizers[] = {rapt_masked_softmax, rapt_masked_sum, rapt_masked_none, rapt_masked_hard,
                                               rapt_masked_uniform};

enum { no_mask, lengths, causal, window, seen, bias, relative_bias, everything, million, mask_count };
static const char *const mask_names[] = {"no mask",       "lengths",    "causal lengths by query",
                                         "window",        "seen",       "bias",
                                         "relative bias", "everything", "million"};

/* What is not differentiated. */
typedef struct subject {
    rapt_attention *attention;
    rapt_mask mask;
    rapt_tensor *finite; /* where the bias is not −∞ */
    bool has_bias, has_positions;
} subject;

/* Inputs: queries, keys, values, bias, distance bias, parameters. */
static rapt_tensor *call(rapt_tensor *const *inputs, void *context)
{
    const subject *s = context;
    rapt_mask mask = s->mask;
    if (s->has_bias) mask.bias = rapt_where(s->finite, inputs[3], rapt_scalar(RAPT_FLOAT64, -(double)INFINITY));
    if (s->has_positions) mask.relative_bias = inputs[4];
    return rapt_attention_forward(s->attention, inputs[0], inputs[1], inputs[2], &mask);
}

/* Some queries see nothing, some everything. */
static subject subject_of(rapt_attention *attention, int kind)
{
    const bool all = kind == everything;
    subject s = {.attention = attention,
                 .has_bias = kind == bias || all,
                 .has_positions = kind == relative_bias || all};
    s.finite = rapt_from(RAPT_BOOL, RAPT_SHAPE(queries, keys), (bool[]){true, false, true, true, true, true});
    if (kind == lengths || kind == million)
        s.mask.valid_lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(batch), (int64_t[]){2, 0});
    if (kind == causal || all)
        s.mask.valid_lengths = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(batch, queries), (float[]){0, 3, 3, 2});
    s.mask.causal = kind == causal || all;
    if (kind == window || all) s.mask.window = 2;
    if (kind == window || all) s.mask.offset = 1;
    if (kind == seen || all)
        s.mask.seen = rapt_from(RAPT_BOOL, RAPT_SHAPE(batch, 1, keys), (bool[]){true, true, false, true, false, true});
    s.mask.fills_million = kind == million;
    return s;
}

static rapt_tensor *leaf(const layout *l, int64_t heads, int64_t length, int64_t size)
{
    rapt_tensor *x = l->heads ? rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(batch, heads, length, size))
                              : rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(batch, length, size));
    return rapt_require_gradient(x);
}

/* Along a random direction of everything that is differentiated. */
static void check(const char *name, subject *s, const layout *l, int64_t key_size, bool second_order)
{
    RAPT_SCOPE;
    rapt_seed(1);
    rapt_tensor *inputs[] = {
        leaf(l, l->heads, queries, query_size),
        leaf(l, l->groups, keys, key_size),
        leaf(l, l->groups, keys, value_size),
        rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(queries, keys))),
        rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(queries, 3))),
    };
    rapt_gradcheck_options options = {.context = s,
                                      .second_order = second_order,
                                      .random_projection = true,
                                      .step = 1e-5,
                                      .seed = 5};
    rapt_gradcheck_result result = rapt_module_gradcheck(&s->attention->module, call, 5, inputs, &options);
    if (!result.passed) cr_expect_fail("%s, order %d: %s", name, second_order + 1, result.message);
    rapt_clear_error();
}

static int check_masks(const char *name, rapt_attention *attention, const layout *l, int64_t key_size)
{
    int checked = 0;
    for (int kind = 0; kind < mask_count; kind++) {
        RAPT_SCOPE;
        char text[200];
        if (kind == million && attention->normalizer != rapt_masked_softmax) continue;
        snprintf(text, sizeof text, "%s, %s, %s", name, mask_names[kind], l->name);
        subject s = subject_of(attention, kind);
        if (s.mask.seen && l->heads) s.mask.seen = rapt_unsqueeze(s.mask.seen, 1);
        for (int order = 0; order < 2; order++)
            for (int plain = 0; plain < 2; plain++) {
                attention->plain = plain;
                check(text, &s, l, key_size, order);
                checked++;
            }
    }
    return checked;
}

static void check_normalizer(int normalizer)
{
    int checked = 0;
    for (int i = 0; i <= scoring_case_count; i++)
        for (int n = 0; n < 3; n++) {
            const scoring_case *c = i < scoring_case_count ? &scoring_cases[i] : NULL;
            if (normalizer == sum && !(c && c->is_kernel)) continue;
            rapt_seed((uint64_t)i);
            int64_t key_size = c && !c->one_size ? 3 : query_size;
            rapt_scoring *scoring =
                c ? c->make(query_size, key_size) : rapt_relative_scoring_new(query_size, value_size, scoring_reach);
            rapt_attention *attention = in_float64(rapt_attention_new(scoring, 0));
            attention->normalizer = normalizers[normalizer];
            char name[100];
            snprintf(name, sizeof name, "%s, %s", c ? c->name : "relative with values", normalizer_names[normalizer]);
            checked += check_masks(name, attention, &layouts[n], key_size);
            rapt_module_free(&attention->module);
        }
    printf("attention_product, %s: %d gradients\n", normalizer_names[normalizer], checked);
    expect_no_error();
}

#define NORMALIZER(name)                                                                                               \
    Test(attention_product, name)                                                                                      \
    {                                                                                                                  \
        check_normalizer(name);                                                                                        \
    }
NORMALIZER(softmax)
NORMALIZER(sum)
NORMALIZER(none)
NORMALIZER(hard)
NORMALIZER(uniform)
