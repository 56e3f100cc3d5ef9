/* What goes wrong on one rank is an error on all, which names it, and the next step is as if nothing had happened. For
 * two ranks or more. */
#include <dlfcn.h>
#include <math.h>

#include "ranks.h"

int rank, ranks, failures;

/* The calloc of this program, of whose calls by librapt-mpi that one fails; 0: none. */
static int failing_call;
static const void *library; /* where librapt-mpi lies */

static const void *library_of(const void *address)
{
    Dl_info found;
    return address && dladdr(address, &found) ? found.dli_fbase : NULL;
}

void *calloc(size_t count, size_t size)
{
    static void *(*volatile plain_malloc)(size_t) = malloc; /* the compiler would make calloc of malloc and memset */
    const bool is_counted = failing_call > 0 && library_of(__builtin_return_address(0)) == library;
    if (is_counted && --failing_call == 0) return NULL;
    void *block = plain_malloc(count * size);
    return block ? memset(block, 0, count * size) : NULL;
}

static rapt_linear *linear(int64_t in)
{
    rapt_seed(1);
    return rapt_linear_new(in, 3, RAPT_BIAS);
}

static rapt_data_parallel *parallel_of(rapt_linear *model, int parts, const char *note)
{
    return rapt_data_parallel_new(MPI_COMM_WORLD, &model->module,
                                  &(rapt_data_parallel_config){.parts = parts, .note = note});
}

/* The error text that a rank which is all right itself sees. */
static void expect_of_last(rapt_error_code code, const char *own, const char *text)
{
    char expected[200];
    if (rank == ranks - 1) {
        expect_error(code, own);
        return;
    }
    snprintf(expected, sizeof expected, "rank %d: %s", ranks - 1, text);
    expect_error(RAPT_ERROR_RANK, expected);
}

static void models_that_differ_are_told_apart(void)
{
    rapt_linear *model = linear(rank == ranks - 1 ? 5 : 4);
    expect(!parallel_of(model, 0, NULL), "no error");
    expect_of_last(RAPT_ERROR_RANK,
                   "'trained weight: float32 [3, 5]' here is 'trained weight: float32 [3, 4]' on rank 0",
                   "data_parallel: 'trained weight: float32 [3, 5]' here");
    rapt_module_free(&model->module);
    model = linear(4);
    expect(!parallel_of(model, 0, rank == ranks - 1 ? "other data" : "data"), "no error");
    expect_of_last(RAPT_ERROR_RANK, "'note: other data' here is 'note: data' on rank 0", "data_parallel: 'note: other");
    char options[900];
    snprintf(options, sizeof options, "%0800d, a rate of %d", 0, rank == ranks - 1 ? 2 : 1);
    expect(!parallel_of(model, 0, options), "no error");
    expect_of_last(RAPT_ERROR_RANK, "'note: 00000000000000 ... 2' here is 'note: 00000000000000 ... 1' on rank 0",
                   "data_parallel: 'note: 00000000000000 ... 2' here is 'note: 00000000000000 ... 1' on rank 0");
    if (rank == ranks - 1) rapt_module_freeze(&model->module, "bias", true);
    expect(!parallel_of(model, 0, NULL), "no error");
    expect_of_last(RAPT_ERROR_RANK, "'fixed bias: float32 [3]' here", "data_parallel: 'fixed bias");
    rapt_module_free(&model->module);
}

/* Whatever a rank has no memory for, the others are told, and none waits. */
static void joining_without_memory_is_an_error(void)
{
    rapt_linear *model = linear(4);
    rapt_data_parallel *p = NULL;
    for (int call = 1; !p; call++) {
        failing_call = rank == ranks - 1 ? call : 0;
        p = parallel_of(model, 0, NULL);
        failing_call = 0;
        if (!p) expect_of_last(RAPT_ERROR_MEMORY, "no memory for", "data_parallel: no memory for");
        expect(call < 100, "no end");
        expect(call > 6 || !p, "only %d calls", call);
    }
    rapt_data_parallel_free(p);
    rapt_module_free(&model->module);
    failing_call = rank == ranks - 1 ? 1 : 0;
    expect(!rapt_mpi_ring_new(MPI_COMM_WORLD, 10), "no error");
    failing_call = 0;
    expect_of_last(RAPT_ERROR_MEMORY, "no memory for the ring", "mpi_ring: no memory for the ring");
}

static void bad_arguments_are_errors(void)
{
    rapt_linear *model = linear(4);
    expect(!rapt_data_parallel_new(MPI_COMM_WORLD, rank == ranks - 1 ? NULL : &model->module, NULL), "no error");
    expect_of_last(RAPT_ERROR_NULL, "module is NULL", "data_parallel: module is NULL");
    expect(!rapt_data_parallel_new(MPI_COMM_NULL, &model->module, NULL), "no error");
    expect_error(RAPT_ERROR_NULL, "MPI_COMM_NULL");
    expect(!parallel_of(model, 3 * ranks, NULL), "no error");
    expect_error(RAPT_ERROR_VALUE, "the ranks times a power of two expected");
    expect(!parallel_of(model, ranks - 1, NULL), "no error");
    expect_error(RAPT_ERROR_VALUE, "the ranks times a power of two expected");
    expect(!parallel_of(model, -ranks, NULL), "no error");
    rapt_clear_error();
    rapt_data_parallel *p = parallel_of(model, 2 * ranks, NULL);
    expect(p && rapt_data_parallel_count_parts(p) == 2, "%s", rapt_error());
    expect(rapt_data_parallel_part(p, 2, 8).number == -1, "no error");
    expect_error(RAPT_ERROR_VALUE, "part 2; 0 to 1 expected");
    expect(rapt_data_parallel_part(p, 0, -1).number == -1, "no error");
    expect_error(RAPT_ERROR_VALUE, "-1 items");
    expect(rapt_data_parallel_count_parts(NULL) == 0, "no error");
    expect_error(RAPT_ERROR_NULL, "parallel is NULL");
    rapt_data_parallel_free(p);
    rapt_data_parallel_free(NULL);
    rapt_module_free(&model->module);
}

/* All items are in one part each, whatever their number. */
static void parts_are_the_batch(void)
{
    rapt_linear *model = linear(4);
    rapt_data_parallel *p = parallel_of(model, 2 * ranks, NULL);
    for (int64_t items = 0; items < 20; items++) {
        int64_t ends[2] = {0}, sum = 0;
        for (int own = 0; own < 2; own++) {
            const rapt_part part = rapt_data_parallel_part(p, own, items);
            expect(part.number == 2 * rank + own && part.first <= part.last, "part %d", part.number);
            const int64_t count = part.last - part.first;
            expect(count == items / (2 * ranks) || count == items / (2 * ranks) + 1, "%lld items", (long long)count);
            sum += count;
            if (own == 0) ends[0] = part.first;
            ends[1] = part.last;
        }
        expect(rank > 0 || ends[0] == 0, "begins at %lld", (long long)ends[0]);
        expect(rank < ranks - 1 || ends[1] == items, "ends at %lld", (long long)ends[1]);
        MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        expect(sum == items, "%lld of %lld", (long long)sum, (long long)items);
    }
    const rapt_part far = rapt_data_parallel_part(p, 1, INT64_MAX);
    expect(rank < ranks - 1 || far.last == INT64_MAX, "ends at %lld", (long long)far.last);
    rapt_data_parallel_free(p);
    rapt_module_free(&model->module);
}

static rapt_tensor *loss_of(rapt_linear *model, double value)
{
    rapt_tensor *x = rapt_full(RAPT_FLOAT32, RAPT_SHAPE(2, 4), value);
    return rapt_mean(rapt_linear_forward(model, x), RAPT_ALL_AXES, false);
}

/* One good step: the gradient of the bias is 1 / 3 each, the mean of all losses' weight what it is. */
static void expect_good_step(rapt_data_parallel *p, rapt_linear *model)
{
    RAPT_SCOPE;
    double loss;
    expect(rapt_data_parallel_backward(p, loss_of(model, rank), 2), "%s", rapt_error());
    expect(rapt_data_parallel_finish(p, &loss), "%s", rapt_error());
    rapt_tensor *gradient = rapt_gradient(model->bias);
    expect(gradient && rapt_at(gradient, (int64_t[]){1}) > 0.333 && rapt_at(gradient, (int64_t[]){1}) < 0.334, "bias");
    rapt_module_clear_gradients(&model->module);
}

/* Of a rank that clears its error, too, all are told why it failed. */
static void the_reason_is_told_when_its_error_was_cleared(void)
{
    RAPT_SCOPE;
    rapt_linear *model = linear(4);
    rapt_data_parallel *p = parallel_of(model, 0, NULL);
    expect(rapt_data_parallel_backward(p, rank == ranks - 1 ? NULL : loss_of(model, rank), 2) == (rank < ranks - 1),
           "no error");
    if (rank == ranks - 1) expect_error(RAPT_ERROR_NULL, "loss is NULL");
    expect(!rapt_data_parallel_finish(p, NULL), "no error");
    expect_of_last(RAPT_ERROR_RANK, "data_parallel_backward: loss is NULL", "data_parallel_backward: loss is NULL");
    expect_good_step(p, model);
    expect(rapt_data_parallel_backward(p, rank == ranks - 1 ? NULL : loss_of(model, rank), 2) == (rank < ranks - 1),
           "no error");
    rapt_clear_error();
    if (rank == ranks - 1) rapt_item(NULL); /* what fails behind it */
    expect(!rapt_data_parallel_finish(p, NULL), "no error");
    if (rank == ranks - 1)
        rapt_clear_error();
    else
        expect_error(RAPT_ERROR_RANK, "data_parallel_backward: loss is NULL");
    rapt_data_parallel_free(p);
    p = parallel_of(model, 2 * ranks, NULL); /* of two reasons the first */
    for (int own = 0; own < 2; own++) {
        const bool fails = rank == ranks - 1;
        rapt_tensor *loss = fails && own == 0 ? NULL : loss_of(model, rank);
        expect(rapt_data_parallel_backward(p, loss, fails && own == 1 ? -1 : 2) == !fails, "part %d", own);
        rapt_clear_error();
    }
    expect(!rapt_data_parallel_finish(p, NULL), "no error");
    expect_of_last(RAPT_ERROR_RANK, "data_parallel_backward: loss is NULL", "data_parallel_backward: loss is NULL");
    rapt_data_parallel_free(p);
    rapt_module_free(&model->module);
}

static void a_part_that_fails_ends_the_step_everywhere(void)
{
    rapt_linear *model = linear(4);
    rapt_data_parallel *p = parallel_of(model, 0, NULL);
    expect_good_step(p, model);
    for (int way = 0; way < 4; way++) {
        RAPT_SCOPE;
        const bool fails = rank == ranks - 1;
        rapt_tensor *loss = loss_of(model, rank);
        if (fails && way == 1) loss = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2));
        const double weight = fails && way == 2 ? -1 : 1;
        if (!fails || way < 3) {
            const bool good = rapt_data_parallel_backward(p, fails && way == 0 ? NULL : loss, weight);
            expect(good == !fails, "way %d", way);
        }
        expect(!rapt_data_parallel_finish(p, NULL), "way %d: no error", way);
        const char *const texts[] = {"loss is NULL", "the loss is float32 [2]", "the weight is -1",
                                     "0 of 1 own parts went backward"};
        const rapt_error_code codes[] = {RAPT_ERROR_NULL, RAPT_ERROR_SHAPE, RAPT_ERROR_VALUE, RAPT_ERROR_VALUE};
        char text[100];
        snprintf(text, sizeof text, "data_parallel_%s: %s", way < 3 ? "backward" : "finish", texts[way]);
        expect_of_last(codes[way], texts[way], text);
        expect(!rapt_gradient(model->bias), "way %d: a gradient", way);
        expect_good_step(p, model);
    }
    expect(rapt_data_parallel_backward(p, NULL, 0), "%s", rapt_error());
    expect(!rapt_data_parallel_backward(p, NULL, 0), "no error");
    expect_error(RAPT_ERROR_VALUE, "rapt_data_parallel_finish expected");
    expect(!rapt_data_parallel_finish(p, NULL), "no error");
    expect_error(RAPT_ERROR_VALUE, "no part of the batch has a weight above 0");
    expect_good_step(p, model);
    rapt_data_parallel_free(p);
    rapt_module_free(&model->module);
}

static void sharding_that_is_wrong_is_an_error(void)
{
    rapt_linear *model = linear(4);
    rapt_data_parallel *p = parallel_of(model, 0, NULL);
    rapt_optimizer *sgd = rapt_sgd_new(NULL, NULL);
    expect(!rapt_data_parallel_shard(NULL, sgd), "no error");
    expect_error(RAPT_ERROR_NULL, "parallel is NULL");
    expect(!rapt_data_parallel_step(NULL, 1, NULL), "no error");
    expect_error(RAPT_ERROR_NULL, "parallel is NULL");
    expect(!rapt_data_parallel_step(p, 1, NULL), "no error");
    expect_error(RAPT_ERROR_VALUE, "rapt_data_parallel_shard expected before it");
    expect(!rapt_data_parallel_shard(p, rank == ranks - 1 ? NULL : sgd), "no error");
    expect_of_last(RAPT_ERROR_NULL, "optimizer is NULL", "data_parallel_shard: optimizer is NULL");
    rapt_optimizer_free(sgd);
    sgd = rapt_sgd_new(NULL, NULL);
    expect(rapt_data_parallel_shard(p, sgd), "%s", rapt_error());
    expect(!rapt_data_parallel_shard(p, sgd), "no error");
    expect_error(RAPT_ERROR_VALUE, "there is a sharded optimizer already");
    expect(!rapt_data_parallel_step(p, 0, NULL), "no error");
    expect_error(RAPT_ERROR_VALUE, "the limit is 0; a number above 0 expected");
    rapt_data_parallel_free(p);
    rapt_optimizer_free(sgd);
    rapt_module_free(&model->module);
}

/* Where the last rank alone does it; of a piece that is stepped each number goes to all ranks as it was. */
static void a_cast_is_an_error(void)
{
    RAPT_SCOPE;
    rapt_linear *model = linear(4);
    rapt_data_parallel *p = parallel_of(model, 0, NULL);
    rapt_optimizer *sgd = rapt_sgd_new(NULL, NULL);
    const rapt_dtype other = rank == ranks - 1 ? RAPT_FLOAT64 : RAPT_FLOAT32;
    const char *own = "is float64, and was float32 in rapt_data_parallel_new";
    expect(rapt_module_cast(&model->module, other), "%s", rapt_error());
    expect(!rapt_data_parallel_shard(p, sgd), "no error");
    expect_of_last(RAPT_ERROR_DTYPE, own, "data_parallel_shard: ");
    expect(rapt_module_cast(&model->module, RAPT_FLOAT32), "%s", rapt_error());
    expect(rapt_data_parallel_shard(p, sgd), "%s", rapt_error());
    expect(rapt_data_parallel_backward(p, loss_of(model, rank), 2), "%s", rapt_error());
    expect(rapt_data_parallel_finish(p, NULL), "%s", rapt_error());
    expect(rapt_module_cast(&model->module, other), "%s", rapt_error());
    expect(!rapt_data_parallel_step(p, INFINITY, NULL), "no error");
    expect_of_last(RAPT_ERROR_DTYPE, own, "data_parallel_step: ");
    rapt_data_parallel_free(p);
    rapt_optimizer_free(sgd);
    rapt_module_free(&model->module);
}

static void expect_no_step(rapt_data_parallel *p, const rapt_linear *model, double bias)
{
    expect(!rapt_data_parallel_step(p, INFINITY, NULL), "no error");
    expect_error(RAPT_ERROR_VALUE, "rapt_data_parallel_finish expected before it");
    const double now = rapt_at(model->bias, (int64_t[]){0});
    expect(now == bias, "a bias of %.9g; %.9g expected", now, bias);
}

/* Each step of a sharded optimizer takes the gradients of its own finish, which went well. */
static void a_sharded_step_needs_a_finish(bool shards_gradients)
{
    RAPT_SCOPE;
    const double third = (float)(1.0 / 3);
    rapt_linear *model = linear(4);
    rapt_fill(model->bias, third);
    rapt_optimizer *sgd = rapt_sgd_new(NULL, &(rapt_sgd_config){.learning_rate = 1});
    rapt_data_parallel *p = rapt_data_parallel_new(MPI_COMM_WORLD, &model->module,
                                                   &(rapt_data_parallel_config){.shards_gradients = shards_gradients});
    expect(rapt_data_parallel_shard(p, sgd), "%s", rapt_error());
    expect_no_step(p, model, third);
    expect(rapt_data_parallel_backward(p, loss_of(model, rank), 2), "%s", rapt_error());
    expect_no_step(p, model, third);
    expect(rapt_data_parallel_finish(p, NULL) && rapt_data_parallel_step(p, INFINITY, NULL), "%s", rapt_error());
    const double stepped = rapt_at(model->bias, (int64_t[]){0});
    expect(stepped < 1e-6 && stepped > -1e-6, "a bias of %g; about 0 expected", stepped);
    expect_no_step(p, model, stepped);
    expect(rapt_data_parallel_backward(p, rank == ranks - 1 ? NULL : loss_of(model, rank), 2) == (rank < ranks - 1),
           "no error");
    expect(!rapt_data_parallel_finish(p, NULL), "no error");
    rapt_clear_error();
    expect_no_step(p, model, stepped);
    rapt_data_parallel_free(p);
    rapt_optimizer_free(sgd);
    rapt_module_free(&model->module);
}

static void expect_no_finish(rapt_data_parallel *p, rapt_linear *model, bool everywhere, const char *text)
{
    RAPT_SCOPE;
    char expected[100];
    snprintf(expected, sizeof expected, "data_parallel_finish: %s", text);
    expect(rapt_data_parallel_backward(p, loss_of(model, rank), 2), "%s", rapt_error());
    expect(!rapt_data_parallel_finish(p, NULL), "no error");
    if (everywhere)
        expect_error(RAPT_ERROR_VALUE, text);
    else
        expect_of_last(RAPT_ERROR_VALUE, text, expected);
    expect(!rapt_gradient(model->bias) && !rapt_gradient(model->weight), "a gradient");
}

/* Also where the last rank alone does it. */
static void what_is_trained_must_not_change(bool everywhere)
{
    rapt_linear *model = linear(4);
    rapt_data_parallel *p = parallel_of(model, 0, NULL);
    const bool changes = everywhere || rank == ranks - 1;
    if (changes) rapt_module_freeze(&model->module, "weight", true);
    expect_no_finish(p, model, everywhere, "weight is frozen, and was not in rapt_data_parallel_new");
    if (changes) rapt_module_freeze(&model->module, "weight", false);
    expect_good_step(p, model);
    rapt_data_parallel_free(p);
    rapt_module_freeze(&model->module, "weight", true);
    p = parallel_of(model, 0, NULL);
    expect_good_step(p, model);
    if (changes) rapt_module_freeze(&model->module, "weight", false);
    expect_no_finish(p, model, everywhere, "weight is trained, and was frozen in rapt_data_parallel_new");
    rapt_data_parallel_free(p);
    rapt_module_free(&model->module);
}

/* A parameter that only rank 0's loss reaches, or that of other ranks with weight 0 too, has a gradient everywhere, one
 * that none reaches has none. */
static void parameters_that_are_not_reached(void)
{
    RAPT_SCOPE;
    rapt_linear *model = linear(4);
    rapt_data_parallel *p = parallel_of(model, 0, NULL);
    for (int all = 0; all < 2; all++) {
        rapt_tensor *loss = rank == 0 || all ? rapt_sum(model->bias, RAPT_ALL_AXES, false) : NULL;
        expect(rapt_data_parallel_backward(p, loss, rank == 0), "%s", rapt_error());
        expect(rapt_data_parallel_finish(p, NULL), "%s", rapt_error());
        expect(rapt_gradient(model->bias) && rapt_at(rapt_gradient(model->bias), (int64_t[]){2}) == 1, "bias");
        expect(!rapt_gradient(model->weight), "the weight has a gradient");
        rapt_clear_gradient(model->bias);
    }
    rapt_data_parallel_free(p);
    rapt_module_free(&model->module);
}

int main(int argc, char **argv)
{
    library = library_of(dlsym(RTLD_DEFAULT, "rapt_data_parallel_new"));
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    models_that_differ_are_told_apart();
    joining_without_memory_is_an_error();
    bad_arguments_are_errors();
    parts_are_the_batch();
    a_part_that_fails_ends_the_step_everywhere();
    the_reason_is_told_when_its_error_was_cleared();
    for (int way = 0; way < 2; way++) what_is_trained_must_not_change(way), a_sharded_step_needs_a_finish(way);
    sharding_that_is_wrong_is_an_error();
    parameters_that_are_not_reached();
    a_cast_is_an_error();
    expect(!rapt_error(), "%s", rapt_error());
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
