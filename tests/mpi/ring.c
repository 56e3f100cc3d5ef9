/* Attention across ranks against the same in one process: results and gradients, under masks of every kind that goes
 * round. */
#include <math.h>

#include "ranks.h"

int rank, ranks, failures;

/* One case. The length is that of the sequence; zeros are a usual one. */
typedef struct ring_case {
    const char *name;
    rapt_scoring *(*scoring)(void); /* NULL: scaled dot products */
    int64_t length;
    int batch, heads, groups; /* heads 0: without the axis */
    bool causal, lengths, first_keys, documents, prefix, sinks, sigmoid, alibi, soft_cap, relative, undefined, cross;
    int window;
} ring_case;

enum { size = 5, value_size = 6 };

static rapt_scoring *additive(void)
{
    rapt_seed(3);
    return rapt_additive_scoring_new(size, size, 7);
}

static rapt_scoring *cosine(void)
{
    return rapt_cosine_scoring_new(0.5, true);
}

static const ring_case cases[] = {
    {.name = "plain", .length = 37, .batch = 2},
    {.name = "causal", .length = 41, .batch = 2, .causal = true},
    {.name = "long", .length = 2500, .batch = 1, .heads = 2, .causal = true},
    {.name = "heads", .length = 37, .batch = 2, .heads = 4, .causal = true},
    {.name = "groups", .length = 37, .batch = 2, .heads = 4, .groups = 2, .causal = true},
    {.name = "lengths", .length = 37, .batch = 3, .heads = 2, .groups = 2, .lengths = true},
    {.name = "lengths, NaN in padding", .length = 37, .batch = 3, .heads = 2, .lengths = true, .undefined = true},
    {.name = "first keys", .length = 37, .batch = 3, .first_keys = true, .causal = true},
    {.name = "documents", .length = 37, .batch = 2, .heads = 2, .documents = true},
    {.name = "documents, causal", .length = 37, .batch = 2, .heads = 2, .documents = true, .causal = true},
    {.name = "prefix", .length = 37, .batch = 2, .causal = true, .prefix = true},
    {.name = "window", .length = 37, .batch = 2, .causal = true, .window = 5},
    {.name = "sinks", .length = 37, .batch = 2, .heads = 2, .causal = true, .sinks = true},
    {.name = "sinks of few keys", .length = 37, .batch = 2, .heads = 2, .lengths = true, .sinks = true},
    {.name = "sigmoid", .length = 37, .batch = 2, .heads = 2, .causal = true, .sigmoid = true},
    {.name = "ALiBi", .length = 37, .batch = 2, .heads = 2, .causal = true, .alibi = true},
    {.name = "soft cap", .length = 37, .batch = 2, .heads = 2, .causal = true, .soft_cap = true},
    {.name = "relative bias", .length = 37, .batch = 2, .heads = 2, .causal = true, .relative = true},
    {.name = "cosine", .scoring = cosine, .length = 37, .batch = 2, .heads = 2, .causal = true},
    {.name = "additive", .scoring = additive, .length = 37, .batch = 2},
    {.name = "additive, long", .scoring = additive, .length = 1300, .batch = 1, .causal = true},
    {.name = "additive, causal", .scoring = additive, .length = 37, .batch = 2, .heads = 2, .causal = true},
    {.name = "additive, groups", .scoring = additive, .length = 37, .batch = 2, .heads = 4, .groups = 2},
    {.name = "additive, NaN in padding",
     .scoring = additive,
     .length = 37,
     .batch = 3,
     .heads = 2,
     .lengths = true,
     .undefined = true},
    {.name = "additive, documents", .scoring = additive, .length = 37, .batch = 2, .heads = 2, .documents = true},
    {.name = "additive, sinks",
     .scoring = additive,
     .length = 37,
     .batch = 3,
     .heads = 2,
     .lengths = true,
     .sinks = true},
    {.name = "additive, sigmoid", .scoring = additive, .length = 37, .batch = 2, .heads = 2, .sigmoid = true},
    {.name = "additive, ALiBi",
     .scoring = additive,
     .length = 37,
     .batch = 2,
     .heads = 2,
     .causal = true,
     .alibi = true},
    {.name = "additive, relative", .scoring = additive, .length = 37, .batch = 2, .heads = 2, .relative = true},
    {.name = "additive, cross", .scoring = additive, .length = 37, .batch = 2, .heads = 2, .cross = true},
    {.name = "additive, a row or none", .scoring = additive, .length = 3, .batch = 2, .heads = 2, .causal = true},
    {.name = "cross", .length = 37, .batch = 2, .heads = 2, .cross = true},
    {.name = "a row or none", .length = 3, .batch = 2, .heads = 2, .causal = true},
    {.name = "one row", .length = 1, .batch = 2, .causal = true},
    {.name = "no row", .length = 0, .batch = 2},
};
enum { case_count = sizeof cases / sizeof *cases };

static rapt_tensor *randn(rapt_dtype dtype, int number, const ring_case *c, int heads, int64_t length, int64_t last)
{
    rapt_seed(100 + (uint64_t)number);
    rapt_tensor *x = c->heads > 0 ? rapt_randn(dtype, RAPT_SHAPE(c->batch, heads, length, last))
                                  : rapt_randn(dtype, RAPT_SHAPE(c->batch, length, last));
    return x;
}

/* Whole, then this rank's rows. */
typedef struct ring_inputs {
    rapt_tensor *queries, *keys, *values, *gradient, *table;
} ring_inputs;

static rapt_tensor *of_places(rapt_tensor *x, rapt_tensor *places)
{
    return rapt_index_select(x, -2, places);
}

static rapt_attention *attention_of(const ring_case *c, rapt_dtype dtype)
{
    rapt_scoring *scoring = c->scoring ? c->scoring() : rapt_scaled_dot_product_scoring_new();
    rapt_attention *attention = rapt_attention_new(scoring, 0);
    if (c->sinks) rapt_fill(rapt_attention_learn_sinks(attention, c->heads), 0.3);
    if (c->sigmoid) rapt_attention_learn_sigmoid(attention, c->heads, -1.5);
    if (c->soft_cap) rapt_attention_modify(attention, "cap", rapt_soft_cap_new(2));
    if (c->alibi) rapt_attention_modify(attention, "alibi", rapt_alibi_modification_new(c->heads));
    rapt_module_cast(&attention->module, dtype);
    return attention;
}

static rapt_mask mask_of(const ring_case *c, rapt_tensor *table)
{
    rapt_mask mask = {.causal = c->causal, .window = c->window, .relative_bias = table};
    rapt_tensor *item = rapt_arange(RAPT_INT64, 0, c->batch, 1);
    if (c->lengths)
        mask.valid_lengths =
            rapt_add(rapt_mul(item, rapt_scalar(RAPT_INT64, 11)), rapt_scalar(RAPT_INT64, c->sinks ? 0 : 3));
    if (c->first_keys) mask.first_keys = rapt_mul(item, rapt_scalar(RAPT_INT64, 7));
    if (c->prefix) mask.prefix_lengths = rapt_mul(item, rapt_scalar(RAPT_INT64, 9));
    if (c->documents) {
        rapt_tensor *documents = rapt_empty(RAPT_INT64, RAPT_SHAPE(c->length));
        for (int64_t i = 0; i < c->length; i++) rapt_set_at_int64(documents, &i, i / 10 + i / 17);
        mask.documents = documents;
    }
    return mask;
}

/* What attention gives, and all gradients by Σ out · gradient. */
static rapt_tensor *attend(rapt_attention *attention, const ring_inputs *in, const rapt_mask *mask)
{
    rapt_tensor *out = rapt_attention_forward(attention, in->queries, in->keys, in->values, mask);
    expect(out, "%s", rapt_error());
    if (out) expect(rapt_backward(rapt_sum(rapt_mul(out, in->gradient), RAPT_ALL_AXES, false)), "%s", rapt_error());
    return out;
}

static double largest_of(rapt_tensor *x)
{
    if (!x || rapt_count(x) == 0) return 0;
    RAPT_NO_GRADIENT;
    rapt_tensor *most = rapt_max(rapt_abs(x), RAPT_ALL_AXES, false);
    return most ? rapt_item(most) : NAN;
}

static uint64_t hash = UINT64_C(0xCBF29CE484222325); /* of all results of this rank, FNV-1a */

static void add_bits(rapt_tensor *x)
{
    rapt_tensor *dense = x ? rapt_contiguous(x) : NULL;
    const unsigned char *bytes = dense ? rapt_data(dense) : NULL;
    const size_t count = dense ? (size_t)rapt_count(dense) * rapt_dtype_size(rapt_get_dtype(dense)) : 0;
    for (size_t i = 0; i < count; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001B3);
}

/* The bound is of the largest number of the whole, or of a larger scale. places: of the part; NULL: all. */
static void compare_by(const ring_case *c, const char *what, rapt_tensor *part, rapt_tensor *whole, rapt_tensor *places,
                       double bound, double least_scale)
{
    RAPT_NO_GRADIENT;
    add_bits(part);
    expect(part && whole, "%s: no %s: %s", c->name, what, rapt_error() ? rapt_error() : "");
    if (!part || !whole) return;
    const double scale = fmax(least_scale, largest_of(whole));
    const double apart = largest_of(rapt_sub(part, places ? of_places(whole, places) : whole));
    expect(apart <= bound * scale, "%s: %s differs by %g of %g", c->name, what, apart, scale);
}

static void compare(const ring_case *c, const char *what, rapt_tensor *part, rapt_tensor *whole, rapt_tensor *places,
                    double bound)
{
    compare_by(c, what, part, whole, places, bound, 1e-3);
}

/* Of a tensor: √(Σ x²). */
static double norm_of(rapt_tensor *x)
{
    RAPT_NO_GRADIENT;
    return x ? sqrt(rapt_item(rapt_sum(rapt_mul(x, x), RAPT_ALL_AXES, false))) : 0;
}

/* Leaves of copies. */
static ring_inputs leaves_of(const ring_inputs *in, rapt_tensor *places, rapt_tensor *query_places)
{
    RAPT_NO_GRADIENT;
    ring_inputs part = *in;
    part.queries = rapt_clone(query_places ? of_places(in->queries, query_places) : in->queries);
    part.keys = rapt_clone(places ? of_places(in->keys, places) : in->keys);
    part.values = rapt_clone(places ? of_places(in->values, places) : in->values);
    if (query_places) part.gradient = of_places(in->gradient, query_places);
    if (in->table) part.table = rapt_clone(in->table);
    rapt_require_gradient(part.queries);
    rapt_require_gradient(part.keys);
    rapt_require_gradient(part.values);
    if (part.table) rapt_require_gradient(part.table);
    return part;
}

/* The sum over all ranks of a tensor, in place. */
static rapt_tensor *sum_over_ranks(rapt_tensor *x)
{
    if (!x) return NULL;
    rapt_tensor *sum = rapt_clone(x);
    MPI_Allreduce(MPI_IN_PLACE, rapt_data_for_writing(sum), (int)rapt_count(sum),
                  rapt_get_dtype(x) == RAPT_FLOAT32 ? MPI_FLOAT : MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

static void try_case(const ring_case *c, rapt_dtype dtype)
{
    RAPT_SCOPE;
    const double bound = dtype == RAPT_FLOAT64 ? 1e-12 : 2e-6;
    const int groups = c->groups ? c->groups : c->heads;
    const int64_t queries = c->cross ? 10 : c->length;
    ring_inputs whole = {.queries = randn(dtype, 1, c, c->heads, queries, size),
                         .keys = randn(dtype, 2, c, groups, c->length, size),
                         .values = randn(dtype, 3, c, groups, c->length, value_size),
                         .gradient = randn(dtype, 4, c, c->heads, queries, value_size)};
    if (c->relative) whole.table = rapt_randn(dtype, RAPT_SHAPE(1, c->heads, 1, 9));
    if (c->undefined) { /* item 0 has 3 keys */
        for (int64_t i = 0; i < size; i++) rapt_set_at(whole.keys, (int64_t[]){0, 1, 30, i}, NAN);
        for (int64_t i = 0; i < size; i++) rapt_set_at(whole.keys, (int64_t[]){0, 0, 4, i}, INFINITY);
        for (int64_t i = 0; i < value_size; i++) rapt_set_at(whole.values, (int64_t[]){0, 0, 20, i}, NAN);
    }
    rapt_attention *alone = attention_of(c, dtype), *across = attention_of(c, dtype);
    rapt_ring *ring = rapt_mpi_ring_new(MPI_COMM_WORLD, c->length);
    expect(ring && alone && across, "%s", rapt_error());
    rapt_attention_set_ring(&across->module, ring);
    rapt_tensor *places = rapt_ring_places(ring), *query_places = places;
    if (c->cross) query_places = rapt_arange(RAPT_INT64, 10 * rank / ranks, 10 * (rank + 1) / ranks, 1);
    const ring_inputs one = leaves_of(&whole, NULL, NULL), part = leaves_of(&whole, places, query_places);
    const rapt_mask of_one = mask_of(c, one.table);
    rapt_mask of_part = mask_of(c, part.table);
    if (c->cross) of_part.query_places = query_places;
    rapt_tensor *expected = attend(alone, &one, &of_one), *out = attend(across, &part, &of_part);
    compare(c, "result", out, expected, query_places, bound);
    compare(c, "gradient of queries", rapt_gradient(part.queries), rapt_gradient(one.queries), query_places, bound);
    compare(c, "gradient of keys", rapt_gradient(part.keys), rapt_gradient(one.keys), places, bound);
    compare(c, "gradient of values", rapt_gradient(part.values), rapt_gradient(one.values), places, bound);
    if (c->relative)
        compare(c, "gradient of the table", sum_over_ranks(rapt_gradient(part.table)), rapt_gradient(one.table), NULL,
                bound);
    rapt_tensor_list *parameters = rapt_module_list(&across->module, RAPT_PARAMETERS),
                     *others = rapt_module_list(&alone->module, RAPT_PARAMETERS);
    /* They are sums over all queries, which may cancel, and whose rounding grows like the root of their number (Higham
     * and Mary 2019). */
    const double of_sums = bound * fmax(1, sqrt((double)c->length) / 16);
    for (int i = 0; i < parameters->count; i++)
        compare_by(c, "gradient of a parameter", sum_over_ranks(rapt_gradient(parameters->tensors[i])),
                   rapt_gradient(others->tensors[i]), NULL, of_sums, norm_of(rapt_gradient(one.queries)));
    rapt_tensor_list_free(parameters);
    rapt_tensor_list_free(others);
    rapt_module_free(&alone->module);
    rapt_module_free(&across->module);
    rapt_mpi_ring_free(ring);
}

/* Multi-head self-attention with rotary positions, which are the places: as one process has it. */
static void try_multi_head(rapt_dtype dtype)
{
    enum { length = 37, hidden = 12 };
    static const ring_case c = {.name = "multi-head", .batch = 2};
    const double bound = dtype == RAPT_FLOAT64 ? 1e-12 : 2e-6;
    RAPT_SCOPE;
    rapt_multi_head_attention *layers[2];
    rapt_tensor *whole = randn(dtype, 1, &c, 0, length, hidden), *gradient = randn(dtype, 2, &c, 0, length, hidden);
    rapt_ring *ring = rapt_mpi_ring_new(MPI_COMM_WORLD, length);
    rapt_tensor *places = rapt_ring_places(ring), *inputs[2], *outs[2];
    for (int across = 0; across < 2; across++) {
        rapt_seed(5);
        const rapt_multi_head_attention_config config =
            {.hidden = hidden, .heads = 2, .groups = 1, .bias = true, .sinks = true, .rotary = rapt_rotary_new()};
        layers[across] = rapt_multi_head_attention_new(&config);
        rapt_module *module = &layers[across]->module;
        rapt_module_cast(module, dtype);
        if (across) rapt_attention_set_ring(module, ring);
        rapt_tensor *x = inputs[across] = rapt_require_gradient(rapt_clone(across ? of_places(whole, places) : whole));
        outs[across] = rapt_multi_head_attention_forward(layers[across], x, x, x, RAPT_MASK(.causal = true), NULL);
        expect(outs[across], "%s", rapt_error());
        rapt_tensor *seed = across ? of_places(gradient, places) : gradient;
        expect(rapt_backward(rapt_sum(rapt_mul(outs[across], seed), RAPT_ALL_AXES, false)), "%s", rapt_error());
    }
    compare(&c, "result", outs[1], outs[0], places, bound);
    compare(&c, "gradient", rapt_gradient(inputs[1]), rapt_gradient(inputs[0]), places, bound);
    rapt_tensor_list *alone = rapt_module_list(&layers[0]->module, RAPT_PARAMETERS),
                     *across = rapt_module_list(&layers[1]->module, RAPT_PARAMETERS);
    for (int i = 0; i < alone->count; i++)
        compare_by(&c, "gradient of a parameter", sum_over_ranks(rapt_gradient(across->tensors[i])),
                   rapt_gradient(alone->tensors[i]), NULL, bound, norm_of(rapt_gradient(inputs[0])));
    rapt_tensor_list_free(alone);
    rapt_tensor_list_free(across);
    rapt_module_free(&layers[0]->module);
    rapt_module_free(&layers[1]->module);
    rapt_mpi_ring_free(ring);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < case_count; i++)
        for (int wide = 0; wide < 2; wide++) try_case(&cases[i], wide ? RAPT_FLOAT64 : RAPT_FLOAT32);
    try_multi_head(RAPT_FLOAT64);
    try_multi_head(RAPT_FLOAT32);
    MPI_Allreduce(MPI_IN_PLACE, &hash, 1, MPI_UINT64_T, MPI_BXOR, MPI_COMM_WORLD);
    if (rank == 0) printf("hash %016llx\n", (unsigned long long)hash);
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
