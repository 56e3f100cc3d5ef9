/* Score modifications: what each computes, its derivatives, threads, memory, and as modules. */
#include "attention_memory.h"
#include "score_modifications.h"

static rapt_attention *modified(rapt_scoring *scoring, rapt_score_modification *modification, rapt_dtype dtype)
{
    rapt_attention *attention = rapt_attention_new(scoring, 0);
    cr_assert(rapt_attention_modify(attention, "modification", modification), "%s", rapt_error());
    cr_assert(rapt_module_cast(&attention->module, dtype));
    return attention;
}

/* --- values --- */

/* Element j is the number of the bucket of position first + j. */
static const double *buckets_of(int64_t buckets, int64_t max_distance, bool bidirectional, int64_t first, int64_t count,
                                bool by_functions)
{
    rapt_score_modification *m = rapt_bucketed_bias_new(1, buckets, max_distance, bidirectional);
    cr_assert(m && rapt_copy(rapt_module_find(&m->module, "weight"),
                             rapt_reshape(rapt_arange(RAPT_FLOAT32, 0, (double)buckets, 1), RAPT_SHAPE(buckets, 1))));
    if (by_functions) m->by_ops = NULL;
    const double *values = values_of(rapt_modify_scores(m, rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(1, 1, count)), -first));
    rapt_module_free(&m->module);
    return values;
}

/* Where PyTorch, computing as Hugging Face's T5 does, has another bucket than for the position before. */
Test(score_modification, buckets_are_those_of_t5)
{
    static const struct {
        int64_t buckets, max_distance;
        bool bidirectional;
        int64_t runs[40][2]; /* position, bucket */
    } cases[] = {
        {32, 128, true, {{-300, 15}, {-90, 14}, {-63, 13}, {-45, 12}, {-31, 11}, {-22, 10}, {-15, 9}, {-11, 8},
                         {-7, 7},    {-6, 6},   {-5, 5},   {-4, 4},   {-3, 3},   {-2, 2},   {-1, 1},  {0, 0},
                         {1, 17},    {2, 18},   {3, 19},   {4, 20},   {5, 21},   {6, 22},   {7, 23},  {8, 24},
                         {12, 25},   {16, 26},  {23, 27},  {32, 28},  {46, 29},  {64, 30},  {91, 31}, {301, 0}}},
        {32, 128, false, {{-300, 31}, {-112, 30}, {-98, 29}, {-86, 28}, {-76, 27}, {-66, 26}, {-58, 25},
                          {-51, 24},  {-45, 23},  {-39, 22}, {-34, 21}, {-30, 20}, {-26, 19}, {-23, 18},
                          {-20, 17},  {-18, 16},  {-15, 15}, {-14, 14}, {-13, 13}, {-12, 12}, {-11, 11},
                          {-10, 10},  {-9, 9},    {-8, 8},   {-7, 7},   {-6, 6},   {-5, 5},   {-4, 4},
                          {-3, 3},    {-2, 2},    {-1, 1},   {0, 0},    {301, 0}}},
        {16,
         60,
         true,
         {{-300, 7},
          {-30, 6},
          {-15, 5},
          {-7, 4},
          {-3, 3},
          {-2, 2},
          {-1, 1},
          {0, 0},
          {1, 9},
          {2, 10},
          {3, 11},
          {4, 12},
          {8, 13},
          {16, 14},
          {31, 15},
          {301, 0}}},
        {12,
         40,
         false,
         {{-300, 11},
          {-29, 10},
          {-21, 9},
          {-15, 8},
          {-11, 7},
          {-8, 6},
          {-5, 5},
          {-4, 4},
          {-3, 3},
          {-2, 2},
          {-1, 1},
          {0, 0},
          {301, 0}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int by_functions = 0; by_functions < 2; by_functions++) {
            RAPT_SCOPE;
            const double *buckets =
                buckets_of(cases[i].buckets, cases[i].max_distance, cases[i].bidirectional, -300, 601, by_functions);
            const int64_t(*run)[2] = cases[i].runs;
            for (int64_t position = -300; position <= 300; position++) {
                if (position == run[1][0]) run++;
                cr_expect_eq(buckets[position + 300], (double)(*run)[1], "case %zu: position %lld has bucket %g", i,
                             (long long)position, buckets[position + 300]);
            }
        }
}

/* Scores 2 × 3 of two heads, query 0 at place 1. */
static const double scores[] = {0.5, -1, 2, 3, 0, -0.25, 1, 1, 1, -2, 4, 0.75};
enum { score_count = sizeof scores / sizeof *scores };

typedef double expected_score(double score, int head, double position);

static double capped(double s, int head, double position)
{
    (void)head, (void)position;
    return 2 * tanh(s / 2);
}

static double heated(double s, int head, double position)
{
    (void)position;
    return s / (head == 0 ? 2 : 0.5);
}

static double sloped(double s, int head, double position)
{
    return s - (head == 0 ? 1.0 / 16 : 1.0 / 256) * fabs(position);
}

static double tabled(double s, int head, double position)
{
    return s + (head == 0 ? 10 : 20) + fmax(-1, fmin(1, position));
}

static double windowed(double s, int head, double position)
{
    (void)head;
    return s - position * position / 18;
}

static double prefixed(double s, int head, double position)
{
    (void)head;
    return position > 0 ? -1e6 : s;
}

static void expect_scores(const char *what, rapt_score_modification *m, expected_score *expected)
{
    for (int way = 0; way < 2; way++) {
        double wanted[score_count];
        for (int n = 0; n < score_count; n++) wanted[n] = expected(scores[n], n / 6, n % 3 - (n / 3 % 2 + 1));
        rapt_tensor *changed = rapt_modify_scores(m, doubles(RAPT_SHAPE(1, 2, 2, 3), scores), 1);
        changed = rapt_maximum_scalar(changed, -1e6); /* −∞ */
        expect_values(what, changed, score_count, wanted, 1e-14);
        m->by_ops = NULL;
    }
    rapt_module_free(&m->module);
}

Test(score_modification, values_are_those_of_the_formulas)
{
    RAPT_SCOPE;
    expect_scores("soft cap", rapt_soft_cap_new(2), capped);
    expect_scores("ALiBi", rapt_alibi_modification_new(2), sloped);
    rapt_score_modification *m = rapt_head_temperature_new(2);
    rapt_copy(rapt_module_find(&m->module, "temperature"), doubles(RAPT_SHAPE(2), (double[]){2, 0.5}));
    rapt_module_cast(&m->module, RAPT_FLOAT64);
    expect_scores("temperature", m, heated);
    m = rapt_learned_bias_new(2, 1);
    rapt_copy(rapt_module_find(&m->module, "weight"), doubles(RAPT_SHAPE(2, 3), (double[]){9, 10, 11, 19, 20, 21}));
    rapt_module_cast(&m->module, RAPT_FLOAT64);
    expect_scores("learned bias", m, tabled);
    m = rapt_gaussian_window_new(2, 3, false);
    rapt_module_cast(&m->module, RAPT_FLOAT64);
    expect_scores("window", m, windowed);
    expect_scores("prefix", rapt_prefix_modification_new(rapt_from(RAPT_INT64, RAPT_SHAPE(1), (int64_t[]){2})),
                  prefixed);
    expect_no_error();
}

Test(score_modification, alibi_is_that_of_the_mask)
{
    RAPT_SCOPE;
    subject s = new_subject(RAPT_FLOAT64, 6, 3, 20, 20, 5);
    rapt_alibi *biases = rapt_alibi_new(6);
    s.mask.causal = true;
    rapt_attention *plain = s.attention;
    s.mask.relative_bias = rapt_alibi_forward(biases, RAPT_FLOAT64, 19);
    outcome of_mask = differentiate(&s);
    s.mask.relative_bias = NULL;
    s.attention = modified(rapt_scaled_dot_product_scoring_new(), rapt_alibi_modification_new(6), RAPT_FLOAT64);
    outcome of_modification = differentiate(&s);
    expect_near("ALiBi", &of_mask, &of_modification, 1e-13);
    rapt_module_free(&plain->module);
    rapt_module_free(&s.attention->module);
    rapt_module_free(&biases->module);
}

/* cap · tanh(score / cap) + bias, whatever the order in which both are said. */
Test(score_modification, comes_before_the_biases_of_the_mask)
{
    RAPT_SCOPE;
    rapt_tensor *x = doubles(RAPT_SHAPE(1, 2, 1), (double[]){3, -2}),
                *v = doubles(RAPT_SHAPE(1, 2, 1), (double[]){1, 0});
    rapt_attention *attention = modified(rapt_dot_product_scoring_new(), rapt_soft_cap_new(1), RAPT_FLOAT64);
    for (int plain = 0; plain < 2; plain++) {
        attention->plain = plain;
        rapt_tensor *y =
            rapt_attention_forward(attention, x, x, v, RAPT_MASK(.bias = doubles(RAPT_SHAPE(1, 2), (double[]){5, 0})));
        const double a = tanh(9) + 5 - tanh(-6), b = tanh(-6) + 5 - tanh(4);
        expect_values("weights of key 0", y, 2, (double[]){1 / (1 + exp(-a)), 1 / (1 + exp(-b))}, 1e-14);
    }
    rapt_module_free(&attention->module);
}

/* --- derivatives --- */

static rapt_tensor *call(rapt_tensor *const *inputs, void *attention)
{
    return rapt_attention_forward(attention, inputs[0], inputs[1], inputs[2], RAPT_MASK(.window = 3, .offset = 1));
}

static void check_gradients(rapt_scoring *scoring, rapt_score_modification *m, bool second)
{
    RAPT_SCOPE;
    const char *name = m->module.kind->name;
    rapt_attention *attention = modified(scoring, m, RAPT_FLOAT64);
    rapt_tensor *inputs[] = {leaf(RAPT_FLOAT64, RAPT_SHAPE(2, 4, 3, 3)), leaf(RAPT_FLOAT64, RAPT_SHAPE(2, 2, 5, 3)),
                             leaf(RAPT_FLOAT64, RAPT_SHAPE(2, 2, 5, 2))};
    const rapt_gradcheck_options options = {.context = attention, .second_order = second, .random_projection = second};
    rapt_gradcheck_result result = rapt_module_gradcheck(&attention->module, call, 3, inputs, &options);
    cr_expect(result.passed, "%s: %s", name, result.message);
    rapt_module_free(&attention->module);
}

Test(score_modification, gradcheck_of_both_orders)
{
    for (int which = 0; which < own_count + library_count; which++)
        for (int second = 0; second < 2; second++) {
            RAPT_SCOPE;
            rapt_seed((uint64_t)which + 3);
            for (int additive = 0; additive < 2; additive++) {
                rapt_score_modification *m =
                    which < own_count ? own_new(which, 2, 4) : library_new(which - own_count, 2, 4);
                check_gradients(additive ? rapt_additive_scoring_new(3, 3, 4) : rapt_scaled_dot_product_scoring_new(),
                                m, second);
            }
        }
    expect_no_error();
}

Test(score_modification, without_ops_a_second_derivative_is_an_error_that_asks_for_them)
{
    RAPT_SCOPE;
    rapt_score_modification *m = rapt_soft_cap_new(2);
    m->by_ops = NULL;
    rapt_tensor *x = leaf(RAPT_FLOAT64, RAPT_SHAPE(1, 2, 3)), *first, *second;
    rapt_tensor *y = rapt_sum(rapt_modify_scores(m, x, 0), RAPT_ALL_AXES, false);
    cr_assert(rapt_gradients(1, &y, NULL, 1, &x, &first, RAPT_CREATE_GRAPH), "%s", rapt_error());
    rapt_tensor *sum = rapt_sum(first, RAPT_ALL_AXES, false);
    cr_expect(!rapt_gradients(1, &sum, NULL, 1, &x, &second, 0));
    expect_error(RAPT_ERROR_UNSUPPORTED, "by_ops");
    rapt_module_free(&m->module);
}

/* --- threads and memory --- */

static const struct {
    int64_t heads, groups, queries, keys;
} shapes[] = {{1, 1, 1, 3000}, {1, 1, 700, 700}, {6, 2, 90, 130}, {8, 1, 4, 1500}};

static rapt_scoring *scoring_for(bool additive)
{
    return additive ? rapt_additive_scoring_new(8, 8, 20) : rapt_scaled_dot_product_scoring_new();
}

/* The outcome, and the gradients of three parameters. */
static outcome differentiate_all(const subject *s, rapt_tensor *gradients[3])
{
    static const char *const names[] = {"gate.first", "gate.second", "t5.weight"};
    outcome o = {{pool(s)}};
    rapt_seed(4);
    rapt_tensor *from = rapt_randn(RAPT_FLOAT32, rapt_rank(o.tensors[0]), rapt_shape(o.tensors[0]));
    rapt_tensor *inputs[6] = {s->queries, s->keys, s->values}, *all[6];
    for (int i = 0; i < 3; i++) inputs[3 + i] = rapt_module_find(&s->attention->module, names[i]);
    cr_assert(rapt_gradients(1, o.tensors, &from, 6, inputs, all, 0), "%s", rapt_error());
    for (int i = 0; i < 3; i++) o.tensors[1 + i] = all[i], gradients[i] = all[3 + i];
    return o;
}

Test(score_modification, any_number_of_threads_gives_the_same_bits)
{
    for (int n = 0; n < 8; n++) {
        RAPT_SCOPE;
        subject s = new_subject(RAPT_FLOAT32, shapes[n / 2].heads, shapes[n / 2].groups, shapes[n / 2].queries,
                                shapes[n / 2].keys, 8);
        rapt_module_free(&s.attention->module);
        s.attention = rapt_attention_new(scoring_for(n % 2), 0);
        rapt_attention_modify(s.attention, "gate", own_new(gate, 2, shapes[n / 2].heads));
        rapt_attention_modify(s.attention, "t5", rapt_bucketed_bias_new(shapes[n / 2].heads, 32, 128, true));
        rapt_tensor *ones[3], *many[3];
        rapt_set_threads(1);
        outcome one = differentiate_all(&s, ones);
        for (int threads = 2; threads <= 4; threads++) {
            rapt_set_threads(threads);
            outcome other = differentiate_all(&s, many);
            expect_same_bits("threads", &one, &other);
            for (int i = 0; i < 3; i++) cr_expect(same_bits(ones[i], many[i]), "captured %d has other bits", i);
        }
        rapt_module_free(&s.attention->module);
    }
    expect_no_error();
}

Test(score_modification, nothing_as_large_as_the_scores_is_stored)
{
    for (int additive = 0; additive < 2; additive++) {
        RAPT_SCOPE;
        const int64_t length = additive ? 4096 : 16384;
        subject s = new_subject(RAPT_FLOAT32, 1, 1, length, length, 8);
        rapt_module_free(&s.attention->module);
        s.attention = rapt_attention_new(scoring_for(additive), 0);
        rapt_attention_modify(s.attention, "t5", rapt_bucketed_bias_new(1, 32, 128, false));
        rapt_attention_modify(s.attention, "temperature", rapt_head_temperature_new(1));
        s.mask = *RAPT_MASK(.causal = true);
        rapt_set_threads(2);
        expect_less_than_a_byte_for(2, &s);
        rapt_module_free(&s.attention->module);
    }
}

Test(score_modification, without_memory_it_is_an_error_and_nothing_leaks)
{
    for (int n = 0; n < 4; n++) {
        RAPT_SCOPE;
        subject s = new_subject(RAPT_FLOAT32, 6, 2, 9, 13, 8);
        rapt_module_free(&s.attention->module);
        s.attention = rapt_attention_new(scoring_for(n % 2), 0);
        s.attention->plain = n > 1;
        rapt_score_modification *gated = rapt_attention_modify(s.attention, "gate", own_new(gate, 2, 6));
        gated->by_ops = NULL;
        rapt_attention_modify(s.attention, "t5", rapt_bucketed_bias_new(6, 32, 128, true));
        rapt_tensor *parameter = rapt_module_find(&s.attention->module, "gate.first");
        expect_errors_without_memory(&s, parameter);
        rapt_module_free(&s.attention->module);
    }
    expect_no_error();
}

/* --- as modules --- */

Test(score_modification, is_a_child_whose_parameters_are_named_saved_and_shared)
{
    RAPT_SCOPE;
    rapt_multi_head_attention *layers[2];
    rapt_score_modification *t5 = rapt_bucketed_bias_new(4, 32, 128, true);
    for (int i = 0; i < 2; i++) {
        layers[i] = rapt_multi_head_attention_new(&(rapt_multi_head_attention_config){.hidden = 8, .heads = 4});
        cr_expect_eq(rapt_attention_modify(layers[i]->pooling, "relative_attention_bias", t5), t5);
    }
    rapt_tensor *weight = rapt_module_find(&layers[0]->module, "attention.relative_attention_bias.weight");
    cr_assert_not_null(weight);
    expect_shape(weight, RAPT_SHAPE(32, 4));
    cr_expect_eq(weight, rapt_module_find(&layers[1]->module, "attention.relative_attention_bias.weight"));
    rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, 5, 8));
    rapt_tensor *y = rapt_multi_head_attention_forward(layers[0], x, x, x, NULL, NULL);
    cr_assert(rapt_backward(rapt_sum(rapt_mul(y, y), RAPT_ALL_AXES, false)), "%s", rapt_error());
    cr_expect_gt(largest_of(rapt_gradient(weight)), 0);
    for (int i = 0; i < 2; i++) rapt_module_free(&layers[i]->module);
    expect_no_error();
}
