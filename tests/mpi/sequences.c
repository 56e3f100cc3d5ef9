/* Models whose sequences are shared by the ranks: a GPT and a Transformer train, and have the losses and weights of one
 * process that has the whole sequence. Prints the weights' hashes. */
#include <math.h>

#include "ranks.h"

int rank, ranks, failures;

enum { vocabulary = 11, items = 2, context = 40, hidden = 16, no_token = -1 };

/* A way to train. Each rank has its places of every sequence, and of it all one process has. */
typedef struct sequence_case {
    const char *name;
    int64_t length, source_length; /* 0: that of the target, in one ring */
    int steps;
    rapt_gpt_config gpt; /* positions, groups, sinks, recompute */
    bool is_transformer, ends_early, shards;
    rapt_dtype dtype;
} sequence_case;

static const sequence_case cases[] = {
    {.name = "learned", .length = 37, .steps = 3, .gpt = {.positions = RAPT_POSITIONS_LEARNED}},
    {.name = "sinusoidal", .length = 37, .steps = 3, .gpt = {.positions = RAPT_POSITIONS_SINUSOIDAL}},
    {.name = "rotary",
     .length = 37,
     .steps = 50,
     .gpt = {.positions = RAPT_POSITIONS_ROTARY, .groups = 1, .sinks = true}},
    {.name = "ALiBi", .length = 37, .steps = 3, .gpt = {.positions = RAPT_POSITIONS_ALIBI}},
    {.name = "recompute", .length = 37, .steps = 3, .gpt = {.positions = RAPT_POSITIONS_ROTARY, .recompute = true}},
    {.name = "a token or none", .length = 3, .steps = 3, .gpt = {.positions = RAPT_POSITIONS_LEARNED}},
    {.name = "few targets", .length = 37, .steps = 3, .ends_early = true, .gpt = {.positions = RAPT_POSITIONS_ROTARY}},
    {.name = "sharded gradients",
     .length = 37,
     .steps = 3,
     .shards = true,
     .gpt = {.positions = RAPT_POSITIONS_ROTARY}},
    {.name = "Transformer", .length = 23, .steps = 10, .is_transformer = true},
    {.name = "two rings", .length = 23, .source_length = 31, .steps = 3, .is_transformer = true},
};
enum { case_count = sizeof cases / sizeof *cases };

/* Of what a rank reads: where that stands in sequences. */
typedef struct places_read {
    rapt_tensor *own, *source; /* of GPT's tokens or the target's, and of the source's */
} places_read;

/* The token of an item at a place in the step's sequences, which are one longer than what is read of them. */
static int64_t token_at(int step, int64_t item, int64_t place)
{
    return (place * place + 5 * item + 3 * step + place / 7) % vocabulary;
}

/* int64 (items, places): those tokens, `shift` places on; from the place `counting` on, two less in the second item,
 * no_token. */
static rapt_tensor *tokens_before(int64_t counting, int step, const rapt_tensor *places, int64_t shift)
{
    const int64_t count = rapt_count(places), *place = rapt_data(places);
    rapt_tensor *tokens = rapt_empty(RAPT_INT64, RAPT_SHAPE(items, count));
    int64_t *to = rapt_data_for_writing(tokens);
    for (int64_t item = 0; item < items; item++)
        for (int64_t i = 0; i < count; i++)
            *to++ = place[i] < counting - 2 * item ? token_at(step, item, place[i] + shift) : no_token;
    return tokens;
}

static rapt_tensor *tokens_at(int step, const rapt_tensor *places, int64_t shift)
{
    return tokens_before(INT64_MAX, step, places, shift);
}

static int64_t count_targets(const rapt_tensor *targets)
{
    const int64_t *target = rapt_data(targets);
    int64_t count = 0;
    for (int64_t i = 0; i < rapt_count(targets); i++) count += target[i] != no_token;
    return count;
}

/* --- models --- */

/* Source and target share the embedding, and the positions. */
typedef struct transformer {
    rapt_module module;
    rapt_embedding *embedding;
    rapt_sinusoidal_positions *positions;
    rapt_transformer *body;
    rapt_linear *head;
} transformer;

static rapt_module *make_transformer(void)
{
    static const rapt_module_class kind = {.name = "TestTransformer"};
    const rapt_transformer_config config = {.hidden = hidden,
                                            .feed_forward = 2 * hidden,
                                            .kind = RAPT_FEED_FORWARD_GELU,
                                            .heads = 2,
                                            .encoder_layers = 2,
                                            .decoder_layers = 2,
                                            .final_norm = true};
    transformer *t = rapt_module_new(sizeof *t, &kind);
    t->embedding =
        rapt_module_add_child(&t->module, "embedding", (rapt_module *)rapt_embedding_new(vocabulary, hidden));
    t->positions =
        rapt_module_add_child(&t->module, "positions", (rapt_module *)rapt_sinusoidal_positions_new(hidden, 0));
    t->body = rapt_module_add_child(&t->module, "body", (rapt_module *)rapt_transformer_new(&config));
    t->head = rapt_module_add_child(&t->module, "head", (rapt_module *)rapt_linear_new(hidden, vocabulary, RAPT_BIAS));
    return rapt_module_finish(&t->module);
}

static rapt_module *make(const sequence_case *c)
{
    rapt_seed(7);
    rapt_gpt_config config = c->gpt;
    config.vocabulary = vocabulary;
    config.context = context;
    config.hidden = hidden;
    config.layers = 2;
    config.heads = 2;
    config.bias = true;
    config.kind = RAPT_FEED_FORWARD_GELU; /* ReLU has a corner, where a rounding makes another gradient */
    rapt_module *model = c->is_transformer ? make_transformer() : (rapt_module *)rapt_gpt_new(&config);
    rapt_module_cast(model, c->dtype);
    return model;
}

static rapt_tensor *embed(transformer *t, rapt_tensor *tokens, rapt_tensor *places)
{
    return rapt_sinusoidal_positions_forward_at(t->positions, rapt_embedding_forward(t->embedding, tokens), places);
}

/* Sources of different lengths are turned into targets of different lengths. */
static rapt_tensor *transformer_loss(transformer *t, int step, const places_read *at, rapt_tensor *targets)
{
    const rapt_mask padding = {.valid_lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(items), (int64_t[]){19, 8})};
    rapt_mask of_memory = padding;
    if (at->source != at->own) of_memory.query_places = at->own;
    rapt_tensor *source = embed(t, tokens_at(step, at->source, 0), at->source),
                *target = embed(t, tokens_at(step, at->own, 1), at->own);
    rapt_tensor *out =
        rapt_transformer_forward(t->body, source, target, &padding, RAPT_MASK(.causal = true), &of_memory);
    return rapt_cross_entropy(rapt_linear_forward(t->head, out), targets,
                              &(rapt_cross_entropy_options){.has_ignore_index = true, .ignore_index = no_token});
}

/* The mean loss of what stands at those places; *counting: of so many tokens. */
static rapt_tensor *loss_of(const sequence_case *c, rapt_module *model, int step, const places_read *at,
                            double *counting)
{
    const rapt_cross_entropy_options options = {.has_ignore_index = true, .ignore_index = no_token};
    rapt_tensor *targets = tokens_before(c->ends_early ? 4 : c->length, step, at->own, c->is_transformer ? 2 : 1);
    *counting = (double)count_targets(targets);
    if (c->is_transformer) return transformer_loss((transformer *)model, step, at, targets);
    return rapt_gpt_loss((rapt_gpt *)model, tokens_at(step, at->own, 0), targets, &options);
}

/* --- training --- */

/* The rings of a model: of what it reads, or of the target, and of the source. */
typedef struct rings {
    rapt_ring *own, *source;
    places_read places;
} rings;

static rings join_rings(const sequence_case *c, rapt_module *model)
{
    rings r = {.own = rapt_mpi_ring_new(MPI_COMM_WORLD, c->length)};
    rapt_attention_set_ring(model, r.own);
    r.places.own = r.places.source = rapt_ring_places(r.own);
    if (c->source_length == 0) return r;
    const transformer *t = (const transformer *)model;
    r.source = rapt_mpi_ring_new(MPI_COMM_WORLD, c->source_length);
    rapt_attention_set_ring(&t->body->encoder->module, r.source);
    for (int i = 0; i < t->body->decoder->count; i++)
        rapt_attention_set_ring(&t->body->decoder->layers[i]->multihead_attn->module, r.source);
    r.places.source = rapt_ring_places(r.source);
    return r;
}

static void leave_rings(const rings *r)
{
    rapt_mpi_ring_free(r->own);
    rapt_mpi_ring_free(r->source);
}

static double step_across(const sequence_case *c, rapt_data_parallel *parallel, rapt_module *model, int step,
                          const places_read *places, rapt_optimizer *optimizer)
{
    RAPT_SCOPE;
    double weight, mean = NAN;
    rapt_tensor *loss = loss_of(c, model, step, places, &weight);
    expect(rapt_data_parallel_backward(parallel, loss, weight), "%s, %s", c->name, rapt_error());
    expect(rapt_data_parallel_finish(parallel, &mean), "%s, %s", c->name, rapt_error());
    expect(c->shards ? rapt_data_parallel_step(parallel, 0.5, NULL) : rapt_optimizer_step_clipped(optimizer, 0.5, NULL),
           "%s, %s", c->name, rapt_error());
    return mean;
}

static rapt_tensor *all_places(int64_t length)
{
    return rapt_arange(RAPT_INT64, 0, (double)length, 1);
}

static double step_whole(const sequence_case *c, rapt_module *model, int step, rapt_optimizer *optimizer)
{
    RAPT_SCOPE;
    double weight;
    places_read all = {.own = all_places(c->length)};
    all.source = c->source_length > 0 ? all_places(c->source_length) : all.own;
    rapt_tensor *loss = loss_of(c, model, step, &all, &weight);
    expect(rapt_backward(loss) && rapt_optimizer_step_clipped(optimizer, 0.5, NULL), "%s", rapt_error());
    return rapt_item(loss);
}

static void train(const sequence_case *c)
{
    const double bound = c->dtype == RAPT_FLOAT64 ? 1e-12 : 2e-6;
    RAPT_SCOPE;
    rapt_module *model = make(c), *alone = make(c);
    const rings r = join_rings(c, model);
    rapt_data_parallel *parallel =
        rapt_data_parallel_new(MPI_COMM_WORLD, model, &(rapt_data_parallel_config){.shards_gradients = c->shards});
    expect(r.own && parallel, "%s", rapt_error());
    /* Adam would make numbers of the size of others out of gradients that are 0 but for rounding. */
    const rapt_sgd_config config = {.learning_rate = 0.1, .momentum = 0.9};
    rapt_optimizer *optimizer = rapt_sgd_new(c->shards ? NULL : model, &config), *other = rapt_sgd_new(alone, &config);
    expect(!c->shards || rapt_data_parallel_shard(parallel, optimizer), "%s", rapt_error());
    double loss = 0;
    for (int step = 0; step < c->steps; step++) {
        loss = step_across(c, parallel, model, step, &r.places, optimizer);
        const double expected = step_whole(c, alone, step, other);
        expect(fabs(loss - expected) <= bound * expected, "%s, step %d: loss %.17g, alone %.17g", c->name, step, loss,
               expected);
    }
    const double apart = difference(model, alone);
    expect(apart <= bound, "%s: weights differ by %g", c->name, apart);
    if (rank == 0) {
        printf("%s %s: hash %016llx\n", c->name, rapt_dtype_name(c->dtype), (unsigned long long)hash_of(model, loss));
        fprintf(stderr, "%s %s on %d: weights differ by %.2g\n", c->name, rapt_dtype_name(c->dtype), ranks, apart);
    }
    rapt_optimizer_free(optimizer);
    rapt_optimizer_free(other);
    rapt_data_parallel_free(parallel);
    rapt_module_free(model);
    rapt_module_free(alone);
    leave_rings(&r);
}

/* --- dropout --- */

/* The mean over all ranks, which all have gradients of then. */
static double mean_loss(const sequence_case *c, rapt_module *model, rapt_data_parallel *parallel,
                        const places_read *places)
{
    RAPT_SCOPE;
    double weight, mean = NAN;
    rapt_seed(100 + (uint64_t)rank);
    rapt_tensor *loss = loss_of(c, model, 0, places, &weight);
    expect(rapt_data_parallel_backward(parallel, loss, weight), "%s", rapt_error());
    expect(rapt_data_parallel_finish(parallel, &mean), "%s", rapt_error());
    return mean;
}

/* parameters += step · gradients */
static void move(rapt_tensor_list *parameters, rapt_tensor *const *gradients, double step)
{
    RAPT_NO_GRADIENT;
    for (int i = 0; i < parameters->count; i++) rapt_add_in_place(parameters->tensors[i], gradients[i], step);
}

/* What is dropped forward is dropped backward, on each rank by its own seed: along the gradient g the loss grows by
 * Σ g². */
static void gradients_know_what_was_dropped(void)
{
    static const double step = 1e-5;
    const sequence_case c = {.length = 37, .dtype = RAPT_FLOAT64, .gpt = {.dropout = 0.2}};
    RAPT_SCOPE;
    rapt_module *model = make(&c);
    const rings r = join_rings(&c, model);
    rapt_data_parallel *parallel = rapt_data_parallel_new(MPI_COMM_WORLD, model, NULL);
    rapt_tensor *gradients[100];
    rapt_tensor_list *parameters = rapt_module_list(model, RAPT_PARAMETERS);
    double squares = 0;
    mean_loss(&c, model, parallel, &r.places);
    for (int i = 0; i < parameters->count; i++) {
        rapt_tensor *g = gradients[i] = rapt_clone(rapt_gradient(parameters->tensors[i]));
        squares += rapt_item(rapt_sum(rapt_mul(g, g), RAPT_ALL_AXES, false));
    }
    move(parameters, gradients, step);
    const double more = mean_loss(&c, model, parallel, &r.places);
    move(parameters, gradients, -2 * step);
    const double less = mean_loss(&c, model, parallel, &r.places), slope = (more - less) / (2 * step);
    expect(fabs(slope - squares) <= 1e-6 * squares, "slope %.12g, gradients' %.12g", slope, squares);
    rapt_module_train(model, false);
    expect(fabs(mean_loss(&c, model, parallel, &r.places) - less) > 1e-4, "nothing was dropped");
    rapt_tensor_list_free(parameters);
    rapt_data_parallel_free(parallel);
    rapt_module_free(model);
    leave_rings(&r);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < case_count; i++)
        for (int wide = 1; wide >= 0; wide--) {
            sequence_case c = cases[i];
            c.dtype = wide ? RAPT_FLOAT64 : RAPT_FLOAT32;
            train(&c);
        }
    gradients_know_what_was_dropped();
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
