/* How long a GPT's step takes on ranks, and what the cost model says of it: step_time HIDDEN LAYERS CONTEXT ROWS. Rows
 * are those of the whole batch. Alone, the time of a step in one process. */
#include <math.h>

#include "cost_model.h"
#include "ranks.h"

int rank, ranks, failures;

enum { repeats = 15, vocabulary = 256 };

static int64_t context, rows;

/* The quickest: others may want the processor, too. */
static double least(const double *times)
{
    double quickest = INFINITY;
    for (int i = 0; i < repeats; i++) quickest = fmin(quickest, times[i]);
    return quickest;
}

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

/* Forward, backward and update of this rank's rows, at the same time as the others', but without them. */
static void time_alone(rapt_module *model, int64_t count, cost_input *in)
{
    double forward[repeats], backward[repeats], update[repeats];
    rapt_optimizer *adamw = rapt_adamw_new(model, NULL);
    for (int i = -2; i < repeats; i++) {
        RAPT_SCOPE;
        const double begin = together();
        rapt_tensor *loss = loss_of(model, count);
        const double between = MPI_Wtime();
        rapt_backward(loss);
        const double end = MPI_Wtime();
        rapt_optimizer_step_clipped(adamw, 1, NULL);
        const double last = MPI_Wtime(), slowest = of_all(last - begin), own = slowest / (last - begin);
        if (i < 0) continue;
        forward[i] = own * (between - begin);
        backward[i] = own * (end - between);
        update[i] = own * (last - end);
    }
    rapt_optimizer_free(adamw);
    in->forward = least(forward);
    in->backward = least(backward);
    in->update = least(update);
}

/* Seconds of one exchange of pieces of so many bytes. */
static double time_exchange(int bytes)
{
    double times[repeats];
    char *out = calloc((size_t)(ranks * bytes), 1), *in = calloc((size_t)(ranks * bytes), 1);
    for (int i = -2; out && in && i < repeats; i++) {
        MPI_Request request;
        const double begin = together();
        MPI_Ialltoall(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Iallgather(in, bytes, MPI_CHAR, out, bytes, MPI_CHAR, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (i >= 0) times[i] = (MPI_Wtime() - begin) / 2;
    }
    free(out);
    free(in);
    return least(times);
}

/* The processor's own time for a byte: into the bucket, and out of it; sums are of the copies' kind. */
static double time_handling(void)
{
    enum { numbers = 1 << 20 };
    double times[repeats];
    RAPT_SCOPE;
    rapt_tensor *a = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(numbers)), *b = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(numbers));
    for (int i = 0; i < repeats; i++) {
        const double begin = together();
        rapt_copy(a, b);
        rapt_add_in_place(a, b, 1);
        rapt_copy(b, a);
        times[i] = MPI_Wtime() - begin;
    }
    return least(times) / (4.0 * numbers);
}

static double time_together(rapt_module *model, int64_t bucket, bool sharded)
{
    double times[repeats];
    rapt_data_parallel *parallel =
        rapt_data_parallel_new(MPI_COMM_WORLD, model, &(rapt_data_parallel_config){.bucket_bytes = bucket});
    rapt_optimizer *adamw = rapt_adamw_new(sharded ? NULL : model, NULL);
    expect(parallel && (!sharded || rapt_data_parallel_shard(parallel, adamw)), "%s", rapt_error());
    for (int i = -2; i < repeats; i++) {
        RAPT_SCOPE;
        const double begin = together();
        const rapt_part part = rapt_data_parallel_part(parallel, 0, rows);
        const int64_t count = part.last - part.first;
        rapt_data_parallel_backward(parallel, loss_of(model, count), (double)count);
        bool good = rapt_data_parallel_finish(parallel, NULL);
        good = good &&
               (sharded ? rapt_data_parallel_step(parallel, 1, NULL) : rapt_optimizer_step_clipped(adamw, 1, NULL));
        expect(good, "%s", rapt_error());
        const double seconds = of_all(MPI_Wtime() - begin);
        if (i >= 0) times[i] = seconds;
    }
    rapt_optimizer_free(adamw);
    rapt_data_parallel_free(parallel);
    return least(times);
}

/* In front of a network that is made slow, copies in memory are the processor's work. */
static void take_network(cost_input *in)
{
    const char *latency = getenv("RAPT_LATENCY"), *bandwidth = getenv("RAPT_BANDWIDTH");
    const double small = time_exchange(64), large = time_exchange(1 << 20);
    in->latency = small / (ranks - 1);
    in->bandwidth = (1 << 20) * (ranks - 1) / (large - small);
    in->latency_of_copies = in->bandwidth_of_copies = 0;
    if (latency && bandwidth) {
        in->latency = atof(latency);
        in->bandwidth = atof(bandwidth);
    } else {
        in->overlaps = false; /* there is nobody but the processor who could move the bytes */
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 5) return fprintf(stderr, "usage: step_time HIDDEN LAYERS CONTEXT ROWS\n"), 2;
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
    cost_input in = {.ranks = ranks, .overlaps = true, .state = 2};
    in.parameters = 4.0 * (double)rapt_module_parameter_count(&gpt->module);
    time_alone(&gpt->module, rows / ranks, &in);
    if (rank == 0)
        printf("%.1f MB of parameters; alone, %lld rows: forward %.1f, backward %.1f, update %.1f, step %.1f ms\n",
               in.parameters / 1e6, (long long)(rows / ranks), 1e3 * in.forward, 1e3 * in.backward, 1e3 * in.update,
               1e3 * (in.forward + in.backward + in.update));
    if (ranks > 1) {
        in.handling = time_handling();
        take_network(&in);
        if (rank == 0)
            printf("latency %.1f us, %.2f GB/s, %.2f ns a byte for handling\n", 1e6 * in.latency, in.bandwidth / 1e9,
                   1e9 * in.handling);
    }
    const bool overlaps = in.overlaps;
    for (int way = 0; ranks > 1 && way < 4; way++) {
        in.sharded = way % 2;
        in.overlaps = overlaps && way < 2;
        const int64_t bucket = way < 2 ? 1 << 20 : INT64_MAX / 2;
        in.bucket = way < 2 ? (double)bucket : in.parameters;
        const double measured = time_together(&gpt->module, bucket, in.sharded), predicted = cost_predict(&in).step;
        if (rank == 0)
            printf("%d ranks, %s, %s: measured %.1f ms, predicted %.1f ms, %.2f of it\n", ranks,
                   way < 2 ? "buckets of 1 MB" : "one bucket", in.sharded ? "sharded" : "whole", 1e3 * measured,
                   1e3 * predicted, predicted / measured);
    }
    rapt_module_free(&gpt->module);
    MPI_Finalize();
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
