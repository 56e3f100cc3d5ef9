/* What goes wrong with attention on one rank is an error on all, which names it, and the next call is as if nothing had
 * happened. For two ranks or more. */
#include "ranks.h"

int rank, ranks, failures;

enum { length = 23, size = 4 };

static rapt_attention *attention_across(rapt_ring *ring)
{
    rapt_attention *attention = rapt_dot_product_attention_new(0);
    rapt_attention_set_ring(&attention->module, ring);
    return attention;
}

static rapt_tensor *rows(const rapt_ring *ring)
{
    return rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, rapt_ring_count(ring), size)));
}

/* Equal keys: the values' mean, 1. */
static void expect_good_call(rapt_attention *attention)
{
    RAPT_SCOPE;
    rapt_tensor *x = rows(attention->ring),
                *out = rapt_attention_forward(attention, x, x, x, RAPT_MASK(.causal = true));
    expect(out && rapt_backward(rapt_sum(out, RAPT_ALL_AXES, false)), "%s", rapt_error());
    expect(!out || rapt_count(out) == 0 || rapt_item(rapt_max(out, RAPT_ALL_AXES, false)) == 1, "another mean");
}

static void rings_that_are_wrong(void)
{
    expect(!rapt_mpi_ring_new(MPI_COMM_NULL, 5), "no error");
    expect_error(RAPT_ERROR_NULL, "MPI_COMM_NULL");
    expect(!rapt_mpi_ring_new(MPI_COMM_WORLD, rank == ranks - 1 ? -1 : 5), "no error");
    expect_error_of_last(RAPT_ERROR_VALUE, "a sequence of -1; a length of 0 or more expected");
    expect(!rapt_mpi_ring_new(MPI_COMM_WORLD, rank == ranks - 1 ? 6 : 5), "no error");
    expect_error_of_last(RAPT_ERROR_RANK, "'a sequence of 6' here is 'a sequence of 5' on rank 0");
    expect(rapt_ring_count(NULL) == 0, "no error");
    expect_error(RAPT_ERROR_NULL, "ring is NULL");
    expect(!rapt_ring_places(NULL), "no error");
    expect_error(RAPT_ERROR_NULL, "ring is NULL");
    expect(rapt_ring_count(&(rapt_ring){.rank = 2, .ranks = 2, .length = 5}) == 0, "no error");
    expect_error(RAPT_ERROR_VALUE, "rank 2 of 2 has a part of a sequence of 5");
    rapt_mpi_ring_free(NULL);
}

/* All ranks have all rows once. */
static void places_are_the_sequence(void)
{
    for (int64_t rows_of_all = 0; rows_of_all < 20; rows_of_all++) {
        RAPT_SCOPE;
        rapt_ring *ring = rapt_mpi_ring_new(MPI_COMM_WORLD, rows_of_all);
        rapt_tensor *places = rapt_ring_places(ring);
        int seen[20] = {0};
        expect(rapt_count(places) == rapt_ring_count(ring), "%lld places", (long long)rapt_count(places));
        for (int64_t i = 0; i < rapt_count(places); i++) {
            const int64_t place = rapt_at_int64(places, &i);
            expect(i == 0 || place > rapt_at_int64(places, (int64_t[]){i - 1}), "not rising");
            seen[place]++;
        }
        MPI_Allreduce(MPI_IN_PLACE, seen, 20, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        for (int64_t i = 0; i < 20; i++) expect(seen[i] == (i < rows_of_all), "%d of %lld", seen[i], (long long)i);
        rapt_mpi_ring_free(ring);
    }
}

/* Of what the last rank hands over. */
static void inputs_that_are_wrong(rapt_attention *attention)
{
    static const struct {
        const char *text;
        rapt_error_code code;
    } ways[] = {{"the queries are NULL", RAPT_ERROR_NULL},
                {"keys; the", RAPT_ERROR_SHAPE},
                {"but no query_places", RAPT_ERROR_SHAPE},
                {"keys of 4 and values of 4 float64", RAPT_ERROR_RANK},
                {"keys of 5 and values of 4 float32", RAPT_ERROR_RANK},
                {"under a mask with seen", RAPT_ERROR_UNSUPPORTED},
                {"under a mask with starts", RAPT_ERROR_UNSUPPORTED},
                {"under a mask with dilation", RAPT_ERROR_UNSUPPORTED},
                {"across ranks without a fused way", RAPT_ERROR_UNSUPPORTED},
                {"across ranks that keeps its weights", RAPT_ERROR_UNSUPPORTED}};
    {
        RAPT_SCOPE;
        rapt_tensor *x = rows(attention->ring);
        expect(!rapt_attention_pool(attention, rank == ranks - 1 ? NULL : x, x, x, NULL), "no error");
        expect_error_of_last(ways[0].code, ways[0].text);
    }
    for (int way = 0; way < (int)(sizeof ways / sizeof *ways); way++) {
        RAPT_SCOPE;
        rapt_tensor *x = rows(attention->ring), *queries = x, *keys = x, *values = x;
        rapt_mask mask = {.causal = true};
        if (rank == ranks - 1) {
            const int64_t count = rapt_ring_count(attention->ring);
            if (way == 0) queries = NULL;
            if (way == 1) queries = keys = values = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, count + 1, size));
            if (way == 2) queries = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, count + 1, size));
            if (way == 3) queries = keys = values = rapt_cast(x, RAPT_FLOAT64);
            if (way == 4) queries = keys = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, count, size + 1));
            if (way == 5) mask.seen = rapt_ones(RAPT_BOOL, RAPT_SHAPE(1));
            if (way == 6) mask.starts = rapt_arange(RAPT_INT64, 0, 2, 1);
            if (way == 7) mask.dilation = 2;
            attention->plain = way == 8;
            attention->keep_weights = way == 9;
        }
        if (way == 6 && rank == ranks - 1) queries = keys = values = rapt_select(x, 0, 0);
        expect(!rapt_attention_forward(attention, queries, keys, values, &mask), "way %d: no error", way);
        expect_error_of_last(ways[way].code, ways[way].text);
        attention->plain = attention->keep_weights = false;
        expect_good_call(attention);
    }
}

static void what_goes_to_no_other_rank(rapt_ring *ring)
{
    RAPT_SCOPE;
    rapt_attention *gaussian = rapt_attention_new(rapt_gaussian_scoring_new(1, false), 0);
    rapt_attention_set_ring(&gaussian->module, ring);
    rapt_tensor *x = rows(ring);
    expect(!rapt_attention_forward(gaussian, x, x, x, NULL), "no error");
    expect(rapt_error() && strstr(rapt_error(), "Gaussian scores go to no other rank"), "%s", rapt_error());
    rapt_clear_error();
    expect(!rapt_attention_prepare(gaussian, x, NULL), "no error");
    expect_error(RAPT_ERROR_UNSUPPORTED, "keys prepared beforehand go to no other rank");
    rapt_module_free(&gaussian->module);
    rapt_attention *dropping = rapt_attention_new(rapt_additive_scoring_new(size, size, 3), 0.5);
    rapt_attention_set_ring(&dropping->module, ring);
    expect(!rapt_attention_forward(dropping, x, x, x, NULL), "no error");
    expect(rapt_error() && strstr(rapt_error(), "dropout of additive attention goes to no other rank"), "%s",
           rapt_error() ? rapt_error() : "no error");
    rapt_clear_error();
    rapt_module_free(&dropping->module);
    const rapt_multi_head_attention_config config = {.hidden = size, .heads = 1};
    rapt_multi_head_attention *layer = rapt_multi_head_attention_new(&config);
    rapt_attention_set_ring(&layer->module, ring);
    rapt_attention_cache cache = {0};
    {
        RAPT_NO_GRADIENT;
        expect(!rapt_multi_head_attention_forward(layer, x, x, x, NULL, rank == ranks - 1 ? &cache : NULL), "no error");
    }
    expect_error_of_last(RAPT_ERROR_UNSUPPORTED, "a cache beside attention across ranks");
    rapt_module_free(&layer->module);
}

static rapt_tensor *tokens(int64_t count, double token)
{
    return rapt_full(RAPT_INT64, RAPT_SHAPE(1, count), token);
}

/* Losses of a GPT that goes wrong on the last rank, before, between and behind its layers' attention. */
static void models_that_fail_on_their_way(rapt_ring *ring)
{
    enum { token_outside, token_too_many, norm_is_gone, target_outside, no_targets, ways };
    static const struct {
        const char *text;
        rapt_error_code code;
    } errors[ways] = {[token_outside] = {"embed: index 9", RAPT_ERROR_VALUE},
                      [token_too_many] = {"in a sequence of 23, expected, not", RAPT_ERROR_SHAPE},
                      [norm_is_gone] = {"the layer is NULL", RAPT_ERROR_NULL},
                      [target_outside] = {"target 9 in row 0", RAPT_ERROR_VALUE},
                      [no_targets] = {"input 3 is NULL", RAPT_ERROR_NULL}};
    rapt_gpt *gpt =
        rapt_gpt_new(&(rapt_gpt_config){.vocabulary = 7, .context = length, .hidden = size, .heads = 1, .layers = 2});
    rapt_attention_set_ring(&gpt->module, ring);
    const int64_t count = rapt_ring_count(ring);
    for (int way = 0; way < ways; way++) {
        RAPT_SCOPE;
        rapt_tensor *good = tokens(count, 3), *read = good, *targets = good;
        rapt_encoder_layer *layer = gpt->blocks->layers[0];
        const rapt_encoder_layer kept = *layer;
        if (rank == ranks - 1) {
            if (way == token_outside) read = tokens(count, 9);
            if (way == token_too_many) read = tokens(count + 1, 3);
            if (way == norm_is_gone) layer->norm2 = NULL;
            if (way == target_outside) targets = tokens(count, 9);
            if (way == no_targets) targets = NULL;
        }
        expect(!rapt_gpt_loss(gpt, read, targets, NULL), "way %d: no error", way);
        *layer = kept;
        expect_error_of_last(errors[way].code, errors[way].text);
        rapt_tensor *loss = rapt_gpt_loss(gpt, good, good, NULL);
        expect(loss && rapt_backward(loss), "%s", rapt_error());
    }
    rapt_module_free(&gpt->module);
}

/* --- backward --- */

/* Of the last rank: the op of that number cannot go backward, or, `again` more, not run a second time. */
static int place_of_failure;

enum { again = 100 };

static rapt_tensor *pass_forward(rapt_call *call)
{
    const int number = *(const int *)rapt_call_options(call);
    if (rank == ranks - 1 && number + again == place_of_failure && rapt_is_recomputing())
        return rapt_fail(RAPT_ERROR_MEMORY, "pass", "no memory in op %d", number), NULL;
    return rapt_clone(rapt_call_input(call, 0));
}

static bool pass_vjp(rapt_call *call)
{
    if (rank == ranks - 1 && *(const int *)rapt_call_options(call) == place_of_failure)
        return rapt_fail(RAPT_ERROR_MEMORY, "pass", "no memory in op %d", place_of_failure);
    return rapt_call_give(call, 0, rapt_call_gradient(call, 0));
}

static const rapt_op pass = {.name = "pass", .forward = pass_forward, .vjp = pass_vjp, .options_size = sizeof(int)};

typedef struct stage {
    rapt_attention *attention;
    int number;
} stage;

/* An op before attention, and one behind it. */
static rapt_tensor *run_stage(rapt_tensor *const *inputs, void *context)
{
    const stage *s = context;
    const int before = s->number, behind = s->number + 1;
    rapt_tensor *x = RAPT_APPLY(&pass, &before, inputs[0]);
    x = rapt_attention_forward(s->attention, x, x, x, RAPT_MASK(.causal = true));
    return RAPT_APPLY(&pass, &behind, x);
}

enum { stages = 2, passes = 2 * stages, wrong_root = passes, ways_of_backward };

/* The loss of two attentions, each in a segment of its own if it is to be run again. */
static rapt_tensor *loss_of_stages(stage *list, rapt_tensor *x, bool recomputes)
{
    for (int i = 0; i < stages; i++)
        x = recomputes ? rapt_recompute(run_stage, 1, &x, &list[i], NULL) : run_stage(&x, &list[i]);
    return rapt_sum(x, RAPT_ALL_AXES, false);
}

/* Goes backward as it can be done; the root's gradient is of another shape on the last rank, if that is to fail. */
static bool go_backward(rapt_tensor *loss, rapt_tensor *x, bool to_inputs)
{
    const bool is_wrong = rank == ranks - 1 && place_of_failure == wrong_root;
    rapt_tensor *seed = is_wrong ? rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2)) : NULL, *gradient;
    if (to_inputs) return rapt_gradients(1, &loss, &seed, 1, &x, &gradient, 0);
    return rapt_backward_from(1, &loss, &seed, 0);
}

/* Wherever one rank fails on its way, before, between and behind attention, of one ring or two, or before the first op,
 * all others have an error and no gradients, and wait for nobody. */
static void backward_that_fails_on_its_way(rapt_attention *attention, rapt_attention *second)
{
    stage list[stages] = {{attention, 0}, {second, 2}};
    for (int way = 0; way < 4; way++) {
        const bool recomputes = way & 1, to_inputs = way & 2;
        for (int i = 0; i < ways_of_backward + (recomputes ? passes : 0); i++) {
            place_of_failure = i < ways_of_backward ? i : again + i - ways_of_backward;
            RAPT_SCOPE;
            rapt_tensor *x = rows(attention->ring), *loss = loss_of_stages(list, x, recomputes);
            expect(!go_backward(loss, x, to_inputs), "way %d, place %d: no error", way, place_of_failure);
            expect(!rapt_gradient(x), "way %d, place %d: a gradient", way, place_of_failure);
            if (place_of_failure == wrong_root)
                expect_error_of_last(RAPT_ERROR_SHAPE, "the gradient is float32 [2], its root float32 []");
            else
                expect_error_of_last(RAPT_ERROR_MEMORY, "pass: no memory in op");
            expect_good_call(attention);
            expect_good_call(second);
        }
        RAPT_SCOPE;
        place_of_failure = -1;
        rapt_tensor *x = rows(attention->ring);
        expect(go_backward(loss_of_stages(list, x, recomputes), x, to_inputs), "%s", rapt_error());
    }
}

/* The same of a model that ranks train together: the step fails on all, and the next one does not. */
static void steps_that_fail_on_their_way(rapt_ring *ring)
{
    const int last = 0;
    rapt_gpt *gpt =
        rapt_gpt_new(&(rapt_gpt_config){.vocabulary = 7, .context = length, .hidden = size, .heads = 1, .layers = 2});
    rapt_attention_set_ring(&gpt->module, ring);
    rapt_data_parallel *parallel = rapt_data_parallel_new(MPI_COMM_WORLD, &gpt->module, NULL);
    for (int step = 0; step < 4; step++) {
        RAPT_SCOPE;
        rapt_tensor *read = tokens(rapt_ring_count(ring), 3), *loss = rapt_gpt_loss(gpt, read, read, NULL);
        place_of_failure = step % 2 ? -1 : last;
        rapt_data_parallel_backward(parallel, RAPT_APPLY(&pass, &last, loss), 1);
        expect(rapt_data_parallel_finish(parallel, NULL) == (step % 2 == 1), "step %d", step);
        if (step % 2 == 0) expect_error_of_last(RAPT_ERROR_MEMORY, "pass: no memory in op 0");
    }
    rapt_data_parallel_free(parallel);
    rapt_module_free(&gpt->module);
}

/* Sequences are generated by one rank alone. */
static void generation_is_refused(rapt_ring *ring)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_gpt *gpt =
        rapt_gpt_new(&(rapt_gpt_config){.vocabulary = 7, .context = length, .hidden = size, .heads = 1, .layers = 2});
    rapt_attention_set_ring(&gpt->module, ring);
    rapt_gpt_cache *cache = rapt_gpt_cache_new(gpt);
    const rapt_token_model model = rapt_gpt_token_model(cache);
    rapt_tensor *prompt = tokens(3, 3);
    expect(!rapt_generate(&model, prompt, &(rapt_generation){.length = 4}), "no error");
    expect_error(RAPT_ERROR_UNSUPPORTED, "a cache beside attention across ranks");
    rapt_attention_set_ring(&gpt->module, NULL);
    expect(rapt_generate(&model, prompt, &(rapt_generation){.length = 4}), "%s", rapt_error());
    rapt_gpt_cache_clear(cache);
    rapt_attention_set_ring(&gpt->module, ring);
    expect(!rapt_gpt_forward(gpt, prompt, rank == ranks - 1 ? cache : NULL), "no error");
    if (ranks == 1 || rank == ranks - 1) expect_error(RAPT_ERROR_UNSUPPORTED, "a cache beside attention across ranks");
    rapt_clear_error();
    rapt_gpt_cache_free(cache);
    expect(!rapt_gpt_forward_packed(gpt, rapt_full(RAPT_INT64, RAPT_SHAPE(rapt_ring_count(ring)), 3),
                                    rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){0, rapt_ring_count(ring)})),
           "no error");
    expect(rapt_error() && strstr(rapt_error(), "under a mask with starts"), "%s",
           rapt_error() ? rapt_error() : "none");
    rapt_clear_error();
    rapt_module_free(&gpt->module);
    rapt_gpt *short_one =
        rapt_gpt_new(&(rapt_gpt_config){.vocabulary = 7, .context = 5, .hidden = size, .heads = 1, .layers = 1});
    rapt_attention_set_ring(&short_one->module, ring);
    expect(!rapt_gpt_forward(short_one, tokens(rapt_ring_count(ring), 3), NULL), "no error");
    expect(rapt_error() && strstr(rapt_error(), "a sequence of 23 tokens; the context is 5"), "%s",
           rapt_error() ? rapt_error() : "no error");
    rapt_clear_error();
    rapt_module_free(&short_one->module);
}

/* A second derivative is refused before anything goes round. */
static void second_derivatives_are_refused(rapt_attention *attention)
{
    RAPT_SCOPE;
    rapt_tensor *x = rows(attention->ring), *out = rapt_attention_forward(attention, x, x, x, NULL), *gradient;
    rapt_tensor *loss = rapt_sum(out, RAPT_ALL_AXES, false);
    expect(!rapt_gradients(1, &loss, NULL, 1, &x, &gradient, RAPT_CREATE_GRAPH), "no error");
    expect(rapt_error() && strstr(rapt_error(), "attention across ranks has first derivatives only"), "%s",
           rapt_error() ? rapt_error() : "no error");
    rapt_clear_error();
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    rings_that_are_wrong();
    places_are_the_sequence();
    rapt_ring *ring = rapt_mpi_ring_new(MPI_COMM_WORLD, length);
    rapt_attention *attention = attention_across(ring);
    inputs_that_are_wrong(attention);
    second_derivatives_are_refused(attention);
    expect_good_call(attention);
    what_goes_to_no_other_rank(ring);
    models_that_fail_on_their_way(ring);
    backward_that_fails_on_its_way(attention, attention);
    rapt_ring *other = rapt_mpi_ring_new(MPI_COMM_WORLD, length);
    rapt_attention *second = attention_across(other);
    backward_that_fails_on_its_way(attention, second);
    rapt_module_free(&second->module);
    rapt_mpi_ring_free(other);
    steps_that_fail_on_their_way(ring);
    generation_is_refused(ring);
    rapt_module_free(&attention->module);
    rapt_mpi_ring_free(ring);
    expect(!rapt_error(), "%s", rapt_error());
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
