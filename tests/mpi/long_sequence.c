/* A sequence for many ranks against the same in one process: results, gradients, the memory of each rank and the time.
 * It is run once on one rank, which writes what it gives to the folder, then on more: mpirun -n 4 long_sequence FOLDER
 * LENGTH float32|float64 dot|additive [float64]. The last says that float32 is compared with one process's float64.
 * With gpt for dot it tells the memory of such a model. Not part of the suite: 65,536 take minutes. */
#include <math.h>
#include <time.h>

#include "ranks.h"

int rank, ranks, failures;

enum { size = 8, tensors = 4 };

static const char *const names[tensors] = {"result", "gradient of queries", "gradient of keys", "gradient of values"};

/* This rank's rows of a sequence whose numbers each depend on their place alone. */
static rapt_tensor *rows_of(rapt_dtype dtype, int heads, int number, const rapt_tensor *places)
{
    const int64_t count = rapt_count(places);
    rapt_tensor *x = rapt_empty(RAPT_FLOAT64, RAPT_SHAPE(1, heads, count, size));
    double *to = rapt_data_for_writing(x);
    const int64_t *place = rapt_data(places);
    for (int64_t i = 0; i < heads * count * size; i++) {
        const int64_t row = i / size % count, in_row = i / (count * size) * size + i % size;
        uint64_t bits =
            (uint64_t)((place[row] * heads * size + in_row) * tensors + number) * UINT64_C(0x9E3779B97F4A7C15);
        bits = (bits ^ (bits >> 29)) * UINT64_C(0xBF58476D1CE4E5B9);
        to[i] = (double)(bits >> 11) * 0x1p-52 - 1;
    }
    return rapt_cast(x, dtype);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Eight heads of dot products; additive scores cost as much as several of them. */
static rapt_attention *attention_of(rapt_dtype dtype, bool additive, int *heads)
{
    rapt_seed(1);
    rapt_attention *attention = additive ? rapt_attention_new(rapt_additive_scoring_new(size, size, size), 0)
                                         : rapt_dot_product_attention_new(0);
    rapt_module_cast(&attention->module, dtype);
    *heads = additive ? 1 : 8;
    return attention;
}

/* Causal attention of these rows, forward and backward; ring NULL: one process. */
static double run(rapt_dtype dtype, bool additive, rapt_ring *ring, rapt_tensor *places, rapt_tensor *results[tensors])
{
    int heads;
    rapt_attention *attention = attention_of(dtype, additive, &heads);
    rapt_attention_set_ring(&attention->module, ring);
    rapt_tensor *in[tensors];
    for (int i = 0; i < tensors; i++) {
        RAPT_SCOPE;
        in[i] = rapt_retain(rows_of(dtype, heads, i, places));
    }
    for (int i = 0; i < 3; i++) rapt_require_gradient(in[i]);
    rapt_memory_trim();
    rapt_memory_reset_peak();
    const double start = seconds();
    results[0] = rapt_attention_forward(attention, in[0], in[1], in[2], RAPT_MASK(.causal = true));
    expect(results[0] && rapt_backward_from(1, &results[0], &in[3], 0), "%s", rapt_error());
    const double time = seconds() - start;
    for (int i = 0; i < 3; i++) results[i + 1] = rapt_gradient(in[i]);
    printf("rank %d of %d, %s: %.1f s, %.1f MB\n", rank, ranks, rapt_dtype_name(dtype), time,
           (double)rapt_memory_get_statistics().peak_bytes * 1e-6);
    rapt_module_free(&attention->module);
    return time;
}

/* The second step of a GPT, whose weights have gradients by then. */
static void measure_gpt(rapt_dtype dtype, int64_t length, rapt_ring *ring, const rapt_tensor *places)
{
    const rapt_gpt_config config = {.vocabulary = 256,
                                    .context = length,
                                    .hidden = 64,
                                    .layers = 4,
                                    .heads = 4,
                                    .kind = RAPT_FEED_FORWARD_GELU,
                                    .positions = RAPT_POSITIONS_ROTARY};
    rapt_gpt *gpt = rapt_gpt_new(&config);
    rapt_module_cast(&gpt->module, dtype);
    rapt_attention_set_ring(&gpt->module, ring);
    rapt_tensor *tokens = rapt_zeros(RAPT_INT64, RAPT_SHAPE(1, rapt_count(places)));
    for (int step = 0; step < 2; step++) {
        RAPT_SCOPE;
        rapt_memory_trim();
        rapt_memory_reset_peak();
        rapt_backward(rapt_gpt_loss(gpt, tokens, tokens, NULL));
    }
    printf("rank %d of %d, GPT in %s: %.1f MB\n", rank, ranks, rapt_dtype_name(dtype),
           (double)rapt_memory_get_statistics().peak_bytes * 1e-6);
    rapt_module_free(&gpt->module);
}

static double largest_of(rapt_tensor *x)
{
    return rapt_item(rapt_max(rapt_abs(x), RAPT_ALL_AXES, false));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    rapt_on_error(rapt_abort_on_error);
    if (argc < 5)
        return fprintf(stderr, "usage: long_sequence FOLDER LENGTH float32|float64 dot|additive|gpt [float64]\n"),
               EXIT_FAILURE;
    const int64_t length = atoll(argv[2]);
    const bool wide = strcmp(argv[3], "float64") == 0;
    const rapt_dtype dtype = wide ? RAPT_FLOAT64 : RAPT_FLOAT32;
    RAPT_SCOPE;
    char path[300];
    rapt_tensor *results[tensors];
    rapt_ring *ring = ranks > 1 ? rapt_mpi_ring_new(MPI_COMM_WORLD, length) : NULL;
    rapt_tensor *places = ring ? rapt_ring_places(ring) : rapt_arange(RAPT_INT64, 0, (double)length, 1);
    const bool is_gpt = strcmp(argv[4], "gpt") == 0;
    if (is_gpt)
        measure_gpt(dtype, length, ring, places);
    else
        run(dtype, strcmp(argv[4], "additive") == 0, ring, places, results);
    RAPT_NO_GRADIENT;
    for (int i = 0; i < tensors && !is_gpt; i++) {
        snprintf(path, sizeof path, "%s/%s.%d.npy", argv[1], argc > 5 ? argv[5] : argv[3], i);
        if (!ring) {
            rapt_save_npy(path, results[i]);
            continue;
        }
        rapt_tensor *whole = rapt_load_npy(path);
        const double scale = largest_of(whole);
        const double apart =
            largest_of(rapt_sub(rapt_cast(results[i], rapt_get_dtype(whole)), rapt_index_select(whole, 2, places))) /
            scale;
        expect(apart <= (wide ? 1e-12 : 2e-6), "%s differs by %g", names[i], apart);
        printf("rank %d, %s: within %.2g of the largest number\n", rank, names[i], apart);
    }
    rapt_mpi_ring_free(ring);
    MPI_Finalize();
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
