/* Attention and queries that see nothing: whatever they are, NaN too, no bit of a result or a gradient of any order
 * knows. */
#include "scorings.h"

enum { batch = 2, heads = 2, queries = 4, keys = 5, size = 6, value_size = 3 };
enum { by_length, by_bytes, by_head, by_bias, by_cause, by_rule, by_rule_of_heads, by_packing, ways };

static const int64_t lengths[batch * queries] = {3, 0, 5, 1, 0, 0, 2, 5};

/* Keys below the captured length of the query's item, less one for each head before numbers[0]. */
static void see(const rapt_mask_tile *tile, uint8_t *seen)
{
    const int64_t *length = (const int64_t *)tile->captured[0] + queries * tile->item;
    for (int64_t r = 0; r < tile->rows; r++)
        for (int64_t c = 0; c < tile->columns; c++)
            *seen++ = tile->first_key + c < length[tile->queries[r]] - tile->head * tile->numbers[0];
}

static rapt_mask make_mask(int way, bool has_heads, rapt_dtype dtype)
{
    rapt_tensor *of_queries = rapt_from(RAPT_INT64, RAPT_SHAPE(batch, queries), lengths),
                *last = rapt_reshape(of_queries, RAPT_SHAPE(batch, queries, 1)),
                *key = rapt_arange(RAPT_INT64, 0, keys, 1), *bytes;
    if (has_heads) last = rapt_unsqueeze(last, 1);
    if (way == by_head && has_heads) /* head 1 sees one key less */
        last = rapt_sub(last, rapt_reshape(rapt_arange(RAPT_INT64, 0, heads, 1), RAPT_SHAPE(heads, 1, 1)));
    bytes = rapt_less(key, last);
    switch (way) {
    case by_length:
        return (rapt_mask){.valid_lengths = of_queries};
    case by_bytes:
    case by_head:
        return (rapt_mask){.seen = bytes};
    case by_bias:
        return (rapt_mask){.bias = rapt_where(bytes, rapt_scalar(dtype, 0.25), rapt_scalar(dtype, -(double)INFINITY))};
    case by_cause:
        return (rapt_mask){.causal = true, .offset = -2};
    default:
        return (rapt_mask){.rule = {.see = see, .captured = {of_queries}, .numbers = {way == by_rule_of_heads}}};
    }
}

typedef struct setting {
    rapt_attention *attention;
    rapt_dtype dtype;
    bool has_heads;
    int way;
    rapt_mask mask;
} setting;

/* Sequences of 3 and 5 rows, of which each one's first sees nothing. */
static rapt_mask packed_mask(void)
{
    return (rapt_mask){.starts = rapt_from(RAPT_INT64, RAPT_SHAPE(3), (int64_t[]){0, 3, 8}),
                       .key_starts = rapt_from(RAPT_INT64, RAPT_SHAPE(3), (int64_t[]){0, 4, 10}),
                       .causal = true,
                       .offset = -1};
}

/* Of shape (B, length, width), with heads and packed as the setting has it. */
static rapt_tensor *draw(const setting *s, int64_t length, int64_t width)
{
    const bool packed = s->way == by_packing;
    rapt_tensor *x = rapt_randn(s->dtype, RAPT_SHAPE(batch, s->has_heads ? heads : 1, length, width));
    if (packed) x = rapt_reshape(x, RAPT_SHAPE(s->has_heads ? heads : 1, batch * length, width));
    return s->has_heads ? x : rapt_squeeze(x, packed ? 0 : 1);
}

/* bool, broadcasts to the queries: which of them see nothing? */
static rapt_tensor *find_blind(const setting *s)
{
    if (s->way == by_packing) {
        rapt_tensor *blind = rapt_zeros(RAPT_BOOL, RAPT_SHAPE(batch * queries, 1));
        cr_assert(rapt_fill(rapt_select(blind, 0, 0), 1) && rapt_fill(rapt_select(blind, 0, 3), 1));
        return blind;
    }
    rapt_tensor *scores = rapt_zeros(s->dtype, RAPT_SHAPE(batch, heads, queries, keys));
    if (!s->has_heads) scores = rapt_select(scores, 1, 0);
    return rapt_logical_not(rapt_any(rapt_mask_seen(&s->mask, scores), RAPT_AXES(-1), true));
}

/* The output, the gradients of inputs and parameters and, where orders is 2, those of a product with them. */
enum { most_inputs = 3 + most_parameters, results = 1 + 2 * most_inputs };

typedef struct outcome {
    rapt_tensor *of[results];
} outcome;

static outcome run(const setting *s, double fill, int orders)
{
    outcome o = {0};
    rapt_seed(35);
    rapt_tensor *q = draw(s, queries, size), *blind = find_blind(s);
    rapt_tensor *inputs[most_inputs] = {rapt_where(blind, rapt_scalar(s->dtype, fill), q), draw(s, keys, size),
                                        draw(s, keys, value_size)};
    for (int i = 0; i < 3; i++) cr_assert(inputs[i] = rapt_require_gradient(inputs[i]), "%s", rapt_error());
    const parameter_list parameters = parameters_of(s->attention);
    memcpy(inputs + 3, parameters.tensors, sizeof parameters.tensors);
    const int count = 3 + parameters.count;
    o.of[0] = rapt_attention_forward(s->attention, inputs[0], inputs[1], inputs[2], &s->mask);
    cr_assert_not_null(o.of[0], "%s", rapt_error());
    rapt_tensor *cotangent = rapt_sin(rapt_detach(o.of[0])), *root = NULL;
    cr_assert(rapt_gradients(1, o.of, &cotangent, count, inputs, o.of + 1, orders > 1 ? RAPT_CREATE_GRAPH : 0), "%s",
              rapt_error());
    for (int i = 1; i <= count && orders > 1; i++) {
        if (!o.of[i]) continue;
        rapt_tensor *random = rapt_randn(s->dtype, rapt_rank(o.of[i]), rapt_shape(o.of[i]));
        rapt_tensor *sum = rapt_sum(rapt_mul(o.of[i], random), RAPT_ALL_AXES, false);
        root = root ? rapt_add(root, sum) : sum;
    }
    if (root && rapt_requires_gradient(root))
        cr_assert(rapt_gradients(1, &root, NULL, count, inputs, o.of + 1 + most_inputs, 0), "%s", rapt_error());
    return o;
}

static void expect_blind_do_not_matter(const char *name, const setting *s, int orders)
{
    static const double fills[] = {(double)NAN, (double)INFINITY, -1e30};
    const outcome clean = run(s, 0.5, orders);
    for (size_t i = 0; i < sizeof fills / sizeof *fills; i++) {
        const outcome dirty = run(s, fills[i], orders);
        for (int k = 0; k < results; k++) {
            if (!clean.of[k] && !dirty.of[k]) continue;
            cr_expect(same_bits(clean.of[k], dirty.of[k]), "%s, %s, way %d, heads %d, plain %d: result %d with %g",
                      s->attention->scoring->module.kind->name, name, s->way, s->has_heads, s->attention->plain, k,
                      fills[i]);
        }
    }
    rapt_tensor *blind = find_blind(s);
    for (int k = 0; k < 2; k++) { /* of the output and of the queries' gradient */
        if (!clean.of[k]) continue;
        const double *left = values_of(rapt_where(blind, clean.of[k], rapt_scalar(s->dtype, 0)));
        for (int64_t at = 0; at < rapt_count(clean.of[k]); at++) cr_assert_eq(left[at], 0, "%s: result %d", name, k);
    }
}

static void check_all(const scoring_case *c, rapt_dtype dtype, int orders)
{
    static const struct {
        const char *name;
        rapt_normalizer *normalizer;
    } normalizers[] = {{"softmax", rapt_masked_softmax},     {"sigmoid", rapt_masked_sigmoid},
                       {"sparsemax", rapt_masked_sparsemax}, {"entmax15", rapt_masked_entmax15},
                       {"none", rapt_masked_none},           {"sum", rapt_masked_sum}};
    rapt_seed(36);
    setting s = {.attention = rapt_attention_new(scoring_of(c, size, size, dtype), 0), .dtype = dtype};
    cr_assert_not_null(s.attention, "%s", rapt_error());
    for (int which = 0; which < 5 + c->is_kernel; which++)
        for (int trial = 0; trial < 4 * ways; trial++) {
            RAPT_SCOPE;
            s.attention->normalizer = normalizers[which].normalizer;
            s.attention->plain = trial & 1;
            s.has_heads = trial & 2;
            s.way = trial / 4;
            s.mask = s.way == by_packing ? packed_mask() : make_mask(s.way, s.has_heads, dtype);
            expect_blind_do_not_matter(normalizers[which].name, &s, orders);
        }
    rapt_module_free(&s.attention->module);
}

Test(blind_queries, change_no_bit)
{
    for (int c = 0; c < scoring_case_count; c++)
        for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) check_all(&scoring_cases[c], dtype, 1);
    expect_no_error();
}

Test(blind_queries, change_no_bit_of_second_derivatives)
{
    for (int c = 0; c < scoring_case_count; c++) check_all(&scoring_cases[c], RAPT_FLOAT64, 2);
    expect_no_error();
}

/* --- with projections --- */

enum { hidden = 8, length = 5, most_results = 4 + most_parameters };
enum { crossing, asking_itself, asking_itself_packed, asking_by_head, layer_ways };

/* Left-padded sequences: rows of the padding neither see nor are seen. */
static rapt_mask layer_mask(int way)
{
    rapt_tensor *bytes = rapt_ones(RAPT_BOOL, RAPT_SHAPE(1, heads, length, length));
    switch (way) {
    case crossing:
        return (rapt_mask){.causal = true, .offset = -2};
    case asking_itself:
        return (rapt_mask){.causal = true, .first_keys = lengths_of(2, 1)};
    case asking_itself_packed: /* places before all keys, and keys behind a window that ends before them */
        return (rapt_mask){.starts = rapt_from(RAPT_INT64, RAPT_SHAPE(3), (int64_t[]){0, length, 2 * length}),
                           .causal = true,
                           .window = 1,
                           .query_places = rapt_from(RAPT_INT64, RAPT_SHAPE(2 * length),
                                                     (int64_t[]){-1, -1, 2, 3, 4, -1, 1, 2, 3, 4})};
    default: /* head 1 alone sees with query 0, and no head with query 1 */
        cr_assert(rapt_fill(rapt_slice(rapt_select(bytes, 1, 0), -2, 0, 1, 1), 0));
        cr_assert(rapt_fill(rapt_slice(bytes, -2, 1, 2, 1), 0));
        return (rapt_mask){.seen = bytes};
    }
}

/* Which rows are not read, in row-major order. */
static const bool hidden_rows[layer_ways][2 * length] = {
    {1, 1, 0, 0, 0, 1, 1, 0, 0, 0},
    {1, 1, 0, 0, 0, 1, 0, 0, 0, 0},
    {1, 1, 0, 0, 0, 1, 0, 0, 0, 0},
    {0, 1, 0, 0, 0, 0, 1, 0, 0, 0},
};

static void run_layer(rapt_multi_head_attention *m, int way, double fill, rapt_tensor *result[most_results])
{
    rapt_seed(37);
    const bool itself = way == asking_itself || way == asking_itself_packed;
    rapt_tensor *x = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2 * length, hidden)),
                *other = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, length, hidden)));
    for (int64_t row = 0; row < 2 * length; row++)
        if (hidden_rows[way][row]) cr_assert(rapt_fill(rapt_select(x, 0, row), fill));
    if (way != asking_itself_packed) x = rapt_reshape(x, RAPT_SHAPE(2, length, hidden));
    rapt_require_gradient(x);
    const rapt_mask mask = layer_mask(way);
    const parameter_list parameters = parameters_of(m);
    rapt_tensor *inputs[2 + most_parameters] = {x}, *key = itself ? x : other;
    int count = 1;
    if (!itself) inputs[count++] = other;
    for (int i = 0; i < parameters.count; i++) inputs[count++] = parameters.tensors[i];
    result[0] = rapt_multi_head_attention_forward(m, x, key, key, &mask, NULL);
    cr_assert_not_null(result[0], "%s", rapt_error());
    rapt_tensor *cotangent = rapt_sin(rapt_detach(result[0]));
    cr_assert(rapt_gradients(1, result, &cotangent, count, inputs, result + 1, 0), "%s", rapt_error());
}

static void check_layer(rapt_attention *pooling, bool rotary)
{
    static const double fills[] = {(double)NAN, (double)INFINITY, -1e30};
    rapt_multi_head_attention_config config = {.hidden = hidden, .heads = heads, .bias = true, .pooling = pooling};
    if (rotary) config.rotary = rapt_rotary_new();
    rapt_multi_head_attention *m = in_float64(rapt_multi_head_attention_new(&config));
    draw_parameters(m);
    for (int trial = 0; trial < 2 * layer_ways; trial++) {
        RAPT_SCOPE;
        rapt_tensor *clean[most_results] = {0}, *dirty[most_results] = {0};
        const int way = trial / 2;
        m->pooling->plain = trial & 1;
        run_layer(m, way, 0.5, clean);
        for (int i = 0; i < 3; i++) {
            run_layer(m, way, fills[i], dirty);
            for (int k = 0; k < most_results; k++)
                cr_expect((!clean[k] && !dirty[k]) || same_bits(clean[k], dirty[k]),
                          "%s, way %d, plain %d: result %d with %g", m->pooling->scoring->module.kind->name, way,
                          m->pooling->plain, k, fills[i]);
        }
    }
    rapt_module_free(&m->module);
}

Test(blind_queries, reach_no_projection)
{
    rapt_seed(38);
    check_layer(rapt_dot_product_attention_new(0), false);
    check_layer(rapt_dot_product_attention_new(0), true);
    check_layer(rapt_additive_attention_new(hidden / heads, hidden / heads, 7, 0), false);
    check_layer(rapt_attention_new(rapt_cosine_scoring_new(1, true), 0), false);
    check_layer(rapt_attention_new(rapt_relative_scoring_new(hidden / heads, 0, 2), 0), false);
    expect_no_error();
}
