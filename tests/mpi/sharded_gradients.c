/* Sharded gradients: what a rank holds of them, and that weights are those of whole ones whatever is trained and
 * whatever fails. */
#include <math.h>

#include "ranks.h"

int rank, ranks, failures;

/* The aligned_alloc of this program, which librapt calls: that one and all after it fail; 0: none. */
static int failing_call;

void *aligned_alloc(size_t alignment, size_t size)
{
    void *block = NULL;
    if (failing_call == 1 || (failing_call > 1 && --failing_call == 1)) return NULL;
    return posix_memalign(&block, alignment, size) == 0 ? block : NULL;
}

/* --- memory --- */

enum { vocabulary = 256, length = 16, bucket = 256 << 10, hidden = 110 };

static rapt_tensor *gpt_loss(rapt_gpt *gpt)
{
    rapt_tensor *tokens = rapt_randint(0, vocabulary, RAPT_SHAPE(2, length));
    return rapt_gpt_loss(gpt, tokens, tokens, NULL);
}

static double live(void)
{
    return (double)rapt_memory_get_statistics().live_bytes;
}

static bool drop(void *context, rapt_tensor *leaf, rapt_tensor *gradient)
{
    (void)context, (void)leaf, (void)gradient;
    return true;
}

/* The most that backward has beside what was there when it began: of one that keeps no gradient, or of the ranks'. */
static double peak_of_backward(rapt_gpt *gpt, rapt_data_parallel *parallel)
{
    RAPT_SCOPE;
    rapt_seed(3);
    rapt_tensor *loss = gpt_loss(gpt);
    const double before = live();
    rapt_memory_reset_peak();
    expect(parallel ? rapt_data_parallel_backward(parallel, loss, 1) : rapt_backward_to(1, &loss, NULL, 0, drop, NULL),
           "%s", rapt_error());
    return (double)rapt_memory_get_statistics().peak_bytes - before;
}

/* Beside backward a rank has its 1 / ranks of the gradients, and the buckets under way: 4 of them, each twice, and the
 * one that is filled. Pieces and slots are a little longer than their share. */
static void memory_falls_with_the_ranks(void)
{
    const rapt_gpt_config config =
        {.vocabulary = vocabulary, .context = length, .hidden = hidden, .layers = 8, .heads = 2, .bias = true};
    rapt_gpt *gpt = rapt_gpt_new(&config);
    const double all = 4 * (double)rapt_module_parameter_count(&gpt->module), share = 1.05 * all / ranks;
    const double largest = 16.0 * hidden * hidden, slots = 2 * 4 * 1.05 * bucket;
    const double alone = peak_of_backward(gpt, NULL), begin = live();
    rapt_data_parallel *parallel =
        rapt_data_parallel_new(MPI_COMM_WORLD, &gpt->module,
                               &(rapt_data_parallel_config){.bucket_bytes = bucket, .shards_gradients = true});
    rapt_optimizer *adam = rapt_adam_new(NULL, NULL);
    expect(rapt_data_parallel_shard(parallel, adam), "%s", rapt_error());
    expect(live() - begin <= share + slots, "%.0f bytes; %.0f for values, %.0f for slots expected", live() - begin,
           share, slots);
    for (int step = 0; step < 3; step++) {
        const double before = live(), peak = peak_of_backward(gpt, parallel);
        expect(peak <= alone + share + bucket + largest, "%.0f bytes in backward, %.0f alone, a share is %.0f", peak,
               alone, share);
        expect(rapt_data_parallel_finish(parallel, NULL), "%s", rapt_error());
        const double held = live() - before;
        expect(held >= all / ranks && held <= share, "%.0f bytes of gradients; %.0f expected", held, all / ranks);
        if (rank == 0 && step == 2)
            fprintf(stderr,
                    "%d ranks: %.3f of %.3f MB of gradients; backward %.3f MB beside what was there, %.3f alone\n",
                    ranks, held / 1e6, all / 1e6, peak / 1e6, alone / 1e6);
        rapt_memory_reset_peak();
        expect(rapt_data_parallel_step(parallel, 1, NULL), "%s", rapt_error());
        /* the state is made in the first step */
        const double most = (double)rapt_memory_get_statistics().peak_bytes - before;
        expect(most <= (step == 0 ? 3 : 1) * share + largest + bucket, "%.0f bytes in the step", most);
    }
    rapt_optimizer_free(adam);
    rapt_data_parallel_free(parallel);
    rapt_module_free(&gpt->module);
}

/* --- weights --- */

/* Two dtypes, a layer that only some losses reach, and a parameter without numbers, which has a bucket of its own. */
typedef struct odd {
    rapt_module module;
    rapt_linear *first, *other, *wide;
} odd;

static odd *make_odd(void)
{
    RAPT_SCOPE;
    static const rapt_module_class kind = {.name = "Odd"};
    rapt_seed(5);
    odd *m = rapt_module_new(sizeof *m, &kind);
    rapt_module_add_parameter(&m->module, "none", rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(0, 3)));
    m->first = rapt_module_add_child(&m->module, "first", (rapt_module *)rapt_linear_new(4, 40, RAPT_BIAS));
    m->other = rapt_module_add_child(&m->module, "other", (rapt_module *)rapt_linear_new(40, 1, RAPT_BIAS));
    m->wide = rapt_module_add_child(&m->module, "wide", (rapt_module *)rapt_linear_new(7, 30, RAPT_BIAS));
    rapt_module_cast(&m->wide->module, RAPT_FLOAT64);
    return rapt_module_finish(&m->module);
}

/* The loss of a part: the other layer is reached in odd parts of odd steps, the wide one in all but the first. */
static rapt_tensor *odd_loss(odd *m, int step, int part)
{
    rapt_tensor *x = rapt_full(RAPT_FLOAT32, RAPT_SHAPE(3, 4), 0.1 * step + part);
    rapt_tensor *y = rapt_linear_forward(m->first, x);
    if (step % 2 && part % 2) y = rapt_linear_forward(m->other, rapt_tanh(y));
    rapt_tensor *loss = rapt_mean(rapt_mul(y, y), RAPT_ALL_AXES, false);
    if (part == 0) return loss;
    x = rapt_full(RAPT_FLOAT64, RAPT_SHAPE(2, 7), 0.3 * part - step);
    y = rapt_tanh(rapt_linear_forward(m->wide, x));
    return rapt_add(loss, rapt_cast(rapt_mean(rapt_mul(y, y), RAPT_ALL_AXES, false), RAPT_FLOAT32));
}

/* Whether all parts, and the finish, went well; the last rank's memory ends at that call. */
static bool go_through(odd *m, rapt_data_parallel *parallel, int step, int failing)
{
    RAPT_SCOPE;
    const int own = rapt_data_parallel_count_parts(parallel);
    bool good = true;
    for (int i = 0; i < own; i++) {
        const int part = rapt_data_parallel_part(parallel, i, 100).number;
        rapt_tensor *loss = odd_loss(m, step, part);
        failing_call = rank == ranks - 1 && i == own - 1 ? failing : 0;
        good = rapt_data_parallel_backward(parallel, loss, 1 + part % 3) && good;
    }
    good = rapt_data_parallel_finish(parallel, NULL) && good;
    return good;
}

static rapt_data_parallel *join(odd *m, rapt_optimizer *optimizer, int own_parts, bool shards_gradients)
{
    rapt_data_parallel *parallel =
        rapt_data_parallel_new(MPI_COMM_WORLD, &m->module,
                               &(rapt_data_parallel_config){.parts = own_parts * ranks,
                                                            .bucket_bytes = 300,
                                                            .shards_gradients = shards_gradients});
    expect(parallel && rapt_data_parallel_shard(parallel, optimizer), "%s", rapt_error());
    return parallel;
}

enum { odd_steps = 6 };

static odd *train_odd(int own_parts, bool shards_gradients)
{
    odd *m = make_odd();
    rapt_optimizer *adam = rapt_adam_new(NULL, NULL);
    rapt_data_parallel *parallel = join(m, adam, own_parts, shards_gradients);
    for (int step = 0; step < odd_steps; step++) {
        expect(go_through(m, parallel, step, 0), "%s", rapt_error());
        /* gradients of a step that is not made are forgotten */
        if (step == 2) expect(go_through(m, parallel, step, 0), "%s", rapt_error());
        expect(rapt_data_parallel_step(parallel, 0.1, NULL), "%s", rapt_error());
    }
    rapt_optimizer_free(adam);
    rapt_data_parallel_free(parallel);
    return m;
}

static void weights_are_those_of_whole_gradients(void)
{
    const bool is_power = (ranks & (ranks - 1)) == 0;
    for (int own_parts = 1; own_parts <= 8; own_parts *= 2) {
        odd *whole = train_odd(own_parts, false), *sharded = train_odd(own_parts, true);
        const double apart = difference(&sharded->module, &whole->module);
        expect(own_parts == 1 || is_power ? apart == 0 : apart < 1e-6, "%d own parts: weights differ by %g", own_parts,
               apart);
        if (rank == 0)
            printf("%d own parts: hash %016llx\n", own_parts, (unsigned long long)hash_of(&sharded->module, 0));
        rapt_module_free(&whole->module);
        rapt_module_free(&sharded->module);
    }
}

/* --- what goes wrong --- */

/* Wherever one rank's memory ends, in the first step of Adam too, which makes its state, all have the error, and on no
 * rank a weight or the state has changed: the next step is as if nothing had happened. */
static void steps_without_memory_are_errors_everywhere(int own_parts)
{
    const double begin = live();
    odd *m = make_odd(), *undisturbed = make_odd();
    rapt_optimizer *adam = rapt_adam_new(NULL, NULL), *other = rapt_adam_new(NULL, NULL);
    rapt_data_parallel *parallel = join(m, adam, own_parts, true), *second = join(undisturbed, other, own_parts, true);
    int errors = 0;
    for (int way = 1; way >= 0; way--) { /* in the step, and in backward and finish */
        bool good = false;
        for (int call = 1; !good && call < 1000; call++) {
            const uint64_t before = hash_of(&m->module, 0);
            rapt_memory_trim();
            good = go_through(m, parallel, errors, way == 0 ? call : 0);
            failing_call = rank == ranks - 1 && way == 1 ? call : 0;
            good = good && rapt_data_parallel_step(parallel, INFINITY, NULL);
            failing_call = 0;
            if (!good) {
                expect_error(rank == ranks - 1 ? RAPT_ERROR_MEMORY : RAPT_ERROR_RANK, "no memory");
                expect(hash_of(&m->module, 0) == before, "way %d, call %d: weights have changed", way, call);
                expect(rapt_optimizer_get_steps(adam) == 1 - way, "way %d, call %d: a step ahead", way, call);
                errors++;
            }
            expect(call < 999, "no end");
        }
        expect(go_through(undisturbed, second, errors, 0) && rapt_data_parallel_step(second, INFINITY, NULL), "%s",
               rapt_error());
        expect(difference(&m->module, &undisturbed->module) == 0, "way %d: other weights", way);
    }
    expect(errors > 4, "only %d errors", errors);
    rapt_data_parallel_free(parallel);
    rapt_data_parallel_free(second);
    rapt_optimizer_free(adam);
    rapt_optimizer_free(other);
    rapt_module_free(&m->module);
    rapt_module_free(&undisturbed->module);
    expect(live() == begin, "%.0f bytes are left", live() - begin);
}

static void calls_out_of_order_are_errors(void)
{
    odd *m = make_odd();
    rapt_data_parallel *parallel =
        rapt_data_parallel_new(MPI_COMM_WORLD, &m->module, &(rapt_data_parallel_config){.shards_gradients = true});
    rapt_optimizer *adam = rapt_adam_new(NULL, NULL);
    expect(!rapt_data_parallel_backward(parallel, NULL, 0), "no error");
    expect_error(RAPT_ERROR_VALUE, "gradients are sharded; rapt_data_parallel_shard expected before it");
    expect(!rapt_data_parallel_finish(parallel, NULL), "no error");
    expect_error(RAPT_ERROR_VALUE, "rapt_data_parallel_shard expected");
    expect(rapt_data_parallel_shard(parallel, adam), "%s", rapt_error());
    expect(!rapt_data_parallel_step(parallel, 1, NULL), "no error");
    expect_error(RAPT_ERROR_VALUE, "rapt_data_parallel_finish expected before it");
    expect(go_through(m, parallel, 0, 0) && rapt_data_parallel_step(parallel, 1, NULL), "%s", rapt_error());
    expect(!rapt_data_parallel_step(parallel, 1, NULL), "no error");
    expect_error(RAPT_ERROR_VALUE, "rapt_data_parallel_finish expected before it");
    rapt_data_parallel_free(parallel);
    const rapt_data_parallel_config differs = {.shards_gradients = rank == ranks - 1};
    parallel = rapt_data_parallel_new(MPI_COMM_WORLD, &m->module, &differs);
    expect((parallel != NULL) == (ranks == 1), "no error");
    if (!parallel) expect_error(RAPT_ERROR_RANK, "'shards_gradients: 1' here is 'shards_gradients: 0' on rank 0");
    rapt_data_parallel_free(parallel);
    rapt_optimizer_free(adam);
    rapt_module_free(&m->module);
}

/* Kinds that need whole matrices, and what has parameters; of the last two pairs one rank's alone. Nothing was added to
 * a good one then. */
static void optimizers_that_step_no_pieces_are_errors(void)
{
    static const char *const texts[] = {"the optimizer steps parameters as a whole",
                                        "the optimizer steps parameters as a whole", "the optimizer has 7 parameters",
                                        "the optimizer has 7 parameters", "the optimizer steps parameters as a whole"};
    odd *m = make_odd();
    rapt_optimizer *good = rapt_adam_new(NULL, NULL);
    rapt_optimizer *const bad[] = {rapt_muon_new(NULL, NULL), rapt_adafactor_new(NULL, NULL),
                                   rapt_sgd_new(&m->module, NULL), rapt_adam_new(&m->module, NULL),
                                   rapt_muon_new(&m->module, NULL)};
    rapt_data_parallel *parallel = rapt_data_parallel_new(MPI_COMM_WORLD, &m->module, NULL);
    for (int i = 0; i < 5; i++) {
        const bool is_bad = i < 3 || rank == ranks - 1;
        expect(!rapt_data_parallel_shard(parallel, is_bad ? bad[i] : good), "%d: no error", i);
        expect_error(is_bad ? RAPT_ERROR_VALUE : RAPT_ERROR_RANK, texts[i]);
        rapt_optimizer_free(bad[i]);
    }
    expect(rapt_optimizer_count(good) == 0, "%d parameters", rapt_optimizer_count(good));
    expect(rapt_data_parallel_shard(parallel, good), "%s", rapt_error());
    expect(rapt_optimizer_count(good) > 0, "no parameters");
    rapt_data_parallel_free(parallel);
    rapt_optimizer_free(good);
    rapt_module_free(&m->module);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    memory_falls_with_the_ranks();
    weights_are_those_of_whole_gradients();
    for (int own_parts = 1; own_parts < 5; own_parts *= 4) steps_without_memory_are_errors_everywhere(own_parts);
    calls_out_of_order_are_errors();
    optimizers_that_step_no_pieces_are_errors();
    expect(!rapt_error(), "%s", rapt_error());
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
