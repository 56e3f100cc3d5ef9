/* How long a GPT's step takes on ranks, and what the cost model says of it: step_time HIDDEN LAYERS CONTEXT ROWS
 * [REPEATS]. Rows are those of the whole batch. All that is compared is done in turn, REPEATS times (15), and the
 * medians are told: the step of one process with as many threads as there are ranks, what a step costs a rank that does
 * its rows without the others, and the steps of all ranks. Ranks must not be bound to processors (--bind-to none). */
#include <math.h>
#include <time.h>

#include "../bench/timing.h"
#include "cost_model.h"
#include "ranks.h"

int rank, ranks, failures;

enum { most_repeats = 1000, vocabulary = 256, few_bytes = 64, megabyte = 1 << 20 };

static int64_t context, rows;
static int repeats = 15;

typedef double times[most_repeats];

static rapt_tensor *loss_of(rapt_module *model, int64_t count)
{
    rapt_tensor *tokens = rapt_randint(0, vocabulary, RAPT_SHAPE(count, context));
    return rapt_gpt_loss((rapt_gpt *)model, tokens, tokens, NULL);
}

static double together(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime();
}

/* What the slowest rank takes: the others wait for it. */
static double of_all(double seconds)
{
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds;
}

/* Waits for all ranks without taking the processor from those that compute. */
static void sleep_until_all_do(void)
{
    const struct timespec pause = {.tv_nsec = 200000};
    MPI_Request request;
    int over = 0;
    PMPI_Ibarrier(MPI_COMM_WORLD, &request);
    while (PMPI_Test(&request, &over, MPI_STATUS_IGNORE) == MPI_SUCCESS && !over) nanosleep(&pause, NULL);
}

/* A step of the whole batch in rank 0, with a thread for each rank; the others sleep. */
static double time_one_process(rapt_module *model, rapt_optimizer *adamw)
{
    double seconds = 0;
    sleep_until_all_do();
    if (rank == 0) {
        RAPT_SCOPE;
        const double begin = MPI_Wtime();
        rapt_set_threads(rapt_get_threads() * ranks);
        rapt_backward(loss_of(model, rows));
        rapt_optimizer_step_clipped(adamw, 1, NULL);
        rapt_set_threads(rapt_get_threads() / ranks);
        seconds = MPI_Wtime() - begin;
    }
    sleep_until_all_do();
    return seconds;
}

/* Of this rank's rows, at the same time as the others', but without them. */
typedef struct own_times {
    times forward, backward, update;
} own_times;

static void time_alone(rapt_module *model, rapt_optimizer *adamw, int i, own_times *t)
{
    RAPT_SCOPE;
    const double begin = together();
    rapt_tensor *loss = loss_of(model, rows / ranks);
    const double between = MPI_Wtime();
    rapt_backward(loss);
    const double end = MPI_Wtime();
    rapt_optimizer_step_clipped(adamw, 1, NULL);
    const double last = MPI_Wtime(), slowest = of_all(last - begin), factor = slowest / (last - begin);
    t->forward[i] = factor * (between - begin);
    t->backward[i] = factor * (end - between);
    t->update[i] = factor * (last - end);
}

/* Seconds in which so many bytes, those of all gradients, go out and come in again, a megabyte at once; and one message
 * of a few bytes. By this machine's memory even in front of a slow network. */
static double exchange(char *out, char *in, int64_t bytes, int piece)
{
    const double begin = together();
    for (int64_t at = 0; at < bytes; at += (int64_t)ranks * piece) {
        MPI_Request request;
        PMPI_Ialltoall(out + at, piece, MPI_CHAR, in + at, piece, MPI_CHAR, MPI_COMM_WORLD, &request);
        PMPI_Wait(&request, MPI_STATUS_IGNORE);
        PMPI_Iallgather(in + at, piece, MPI_CHAR, out + at, piece, MPI_CHAR, MPI_COMM_WORLD, &request);
        PMPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    return of_all(MPI_Wtime() - begin);
}

/* The processor's own time for all gradients: into buckets, and out of them; sums are of the copies' kind. */
static double handle(rapt_tensor *a, rapt_tensor *b)
{
    const double begin = together();
    rapt_copy(a, b);
    rapt_add_in_place(a, b, 1);
    rapt_copy(b, a);
    return of_all(MPI_Wtime() - begin);
}

/* How ranks share the work. */
typedef struct way {
    const char *text;
    int64_t bucket;
    bool sharded, shards_gradients;
    rapt_data_parallel *parallel;
    rapt_optimizer *adamw;
    times seconds;
} way;

static way all_ways[] =
    {{.text = "buckets of 1 MB, whole", .bucket = 1 << 20},
     {.text = "buckets of 1 MB, sharded", .bucket = 1 << 20, .sharded = true},
     {.text = "buckets of 1 MB, gradients too", .bucket = 1 << 20, .sharded = true, .shards_gradients = true},
     {.text = "one bucket, whole", .bucket = INT64_MAX / 2},
     {.text = "one bucket, sharded", .bucket = INT64_MAX / 2, .sharded = true}};
enum { way_count = sizeof all_ways / sizeof *all_ways };

static void begin_way(way *w, rapt_module *model)
{
    const rapt_data_parallel_config config = {.bucket_bytes = w->bucket, .shards_gradients = w->shards_gradients};
    w->parallel = rapt_data_parallel_new(MPI_COMM_WORLD, model, &config);
    w->adamw = rapt_adamw_new(w->sharded ? NULL : model, NULL);
    expect(w->parallel && (!w->sharded || rapt_data_parallel_shard(w->parallel, w->adamw)), "%s", rapt_error());
}

static double time_together(const way *w, rapt_module *model)
{
    RAPT_SCOPE;
    const double begin = together();
    const rapt_part part = rapt_data_parallel_part(w->parallel, 0, rows);
    const int64_t count = part.last - part.first;
    rapt_data_parallel_backward(w->parallel, loss_of(model, count), (double)count);
    bool good = rapt_data_parallel_finish(w->parallel, NULL);
    good = good && (w->sharded ? rapt_data_parallel_step(w->parallel, 1, NULL)
                               : rapt_optimizer_step_clipped(w->adamw, 1, NULL));
    expect(good, "%s", rapt_error());
    return of_all(MPI_Wtime() - begin);
}

/* What was measured. */
static struct {
    own_times own;
    times whole, handling, message, copies;
} measured;

/* What moves and handles gradients, without a model. */
static void measure_memory(int64_t numbers, int i)
{
    RAPT_SCOPE;
    const int64_t bytes = 4 * numbers, room = bytes + 2 * (int64_t)ranks * megabyte;
    rapt_tensor *a = rapt_zeros(RAPT_UINT8, RAPT_SHAPE(room)), *b = rapt_zeros(RAPT_UINT8, RAPT_SHAPE(room));
    rapt_tensor *x = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(numbers)), *y = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(numbers));
    char *out = rapt_data_for_writing(a), *in = rapt_data_for_writing(b);
    for (int again = 0; again < 3; again++) measured.message[i] = exchange(out, in, 1, few_bytes) / 2;
    measured.copies[i] = exchange(out, in, bytes, megabyte / ranks);
    measured.handling[i] = handle(x, y);
}

static void measure(rapt_module *model)
{
    rapt_optimizer *adamw = rapt_adamw_new(model, NULL);
    for (int i = 0; i < way_count; i++) begin_way(&all_ways[i], model);
    for (int i = -2; i < repeats; i++) {
        const int at = i < 0 ? 0 : i;
        measured.whole[at] = time_one_process(model, adamw);
        time_alone(model, adamw, at, &measured.own);
        measure_memory(rapt_module_parameter_count(model), at);
        for (int k = 0; k < way_count; k++) all_ways[k].seconds[at] = time_together(&all_ways[k], model);
    }
    for (int i = 0; i < way_count; i++) {
        rapt_optimizer_free(all_ways[i].adamw);
        rapt_data_parallel_free(all_ways[i].parallel);
    }
    rapt_optimizer_free(adamw);
}

/* What moves bytes is the processor, as between processes of one machine; in front of it there may be a network that
 * is made slow. */
static void take_network(cost_input *in)
{
    const char *latency = getenv("RAPT_LATENCY"), *bandwidth = getenv("RAPT_BANDWIDTH");
    const double message = timing_median(repeats, measured.message), all = timing_median(repeats, measured.copies);
    const double exchanges = 2 * ceil(in->parameters / megabyte);
    in->latency_of_copies = message / (ranks - 1);
    /* the pieces of others alone: one's own stays */
    in->bandwidth_of_copies = 2 * in->parameters * (ranks - 1) / ranks / (all - exchanges * message);
    in->latency = latency ? atof(latency) : 0;
    in->bandwidth = bandwidth ? atof(bandwidth) : INFINITY;
    in->handling = timing_median(repeats, measured.handling) / in->parameters;
}

static cost_input input_of(const rapt_module *model)
{
    cost_input in = {.ranks = ranks, .state = 2};
    in.parameters = 4.0 * (double)rapt_module_parameter_count(model);
    in.forward = timing_median(repeats, measured.own.forward);
    in.backward = timing_median(repeats, measured.own.backward);
    in.update = timing_median(repeats, measured.own.update);
    take_network(&in);
    return in;
}

static void report(cost_input in)
{
    const double whole = timing_median(repeats, measured.whole);
    printf("%.1f MB of parameters; %lld rows alone: forward %.1f, backward %.1f, update %.1f ms\n", in.parameters / 1e6,
           (long long)(rows / ranks), 1e3 * in.forward, 1e3 * in.backward, 1e3 * in.update);
    printf("copies: %.1f us, %.2f GB/s; %.2f ns a byte for handling\n", 1e6 * in.latency_of_copies,
           in.bandwidth_of_copies / 1e9, 1e9 * in.handling);
    printf("one process of %d threads, %lld rows: %.1f ms\n", rapt_get_threads() * ranks, (long long)rows, 1e3 * whole);
    for (int i = 0; i < way_count; i++) {
        way *w = &all_ways[i];
        in.sharded = w->sharded;
        in.overlaps = w->bucket < INT64_MAX / 2;
        in.bucket = in.overlaps ? (double)w->bucket : in.parameters;
        const double seconds = timing_median(repeats, w->seconds), predicted = cost_predict(&in).step;
        printf("%d ranks, %s: %.1f ms, %.2f of one process's speed; predicted %.1f ms, %.2f of it\n", ranks, w->text,
               1e3 * seconds, whole / seconds, 1e3 * predicted, predicted / seconds);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc > 5) repeats = atoi(argv[5]);
    if (argc < 5 || argc > 6 || repeats < 1 || repeats > most_repeats || ranks < 2)
        return fprintf(stderr, "usage, on 2 ranks or more: step_time HIDDEN LAYERS CONTEXT ROWS [REPEATS]\n"), 2;
    context = atoi(argv[3]);
    rows = atoi(argv[4]);
    rapt_seed(1);
    rapt_gpt *gpt = rapt_gpt_new(&(rapt_gpt_config){.vocabulary = vocabulary,
                                                    .context = context,
                                                    .hidden = atoi(argv[1]),
                                                    .layers = atoi(argv[2]),
                                                    .heads = atoi(argv[1]) / 32,
                                                    .bias = true});
    expect(gpt, "%s", rapt_error());
    measure(&gpt->module);
    if (rank == 0) report(input_of(&gpt->module));
    rapt_module_free(&gpt->module);
    MPI_Finalize();
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
