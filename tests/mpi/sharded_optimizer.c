/* A sharded optimizer beside what else a program does: sharded_optimizer FOLDER changes the module between steps, calls
 * in the middle of one, and reads checkpoints that have other names and shapes. For two ranks or more. */
#include <math.h>

#include "ranks.h"

int rank, ranks, failures;

static char path[4096 + 64];

/* A linear map of 32 ones, sharded over all ranks. */
typedef struct run {
    rapt_linear *model;
    rapt_data_parallel *parallel;
    rapt_optimizer *optimizer;
} run;

static run begin(rapt_optimizer *optimizer)
{
    run r = {.model = rapt_linear_new(32, 1, RAPT_NO_BIAS), .optimizer = optimizer};
    rapt_fill(r.model->weight, 1);
    r.parallel = rapt_data_parallel_new(MPI_COMM_WORLD, &r.model->module, NULL);
    expect(rapt_data_parallel_shard(r.parallel, optimizer), "%s", rapt_error());
    return r;
}

static void end(run r)
{
    rapt_data_parallel_free(r.parallel);
    rapt_optimizer_free(r.optimizer);
    rapt_module_free(&r.model->module);
}

static rapt_optimizer *sgd(double learning_rate)
{
    return rapt_sgd_new(NULL, &(rapt_sgd_config){.learning_rate = learning_rate});
}

/* Each weight's gradient is the number. */
static void go_backward(rapt_data_parallel *parallel, rapt_linear *model, double number)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_full(RAPT_FLOAT32, RAPT_SHAPE(1, 32), number);
    rapt_tensor *loss = rapt_sum(rapt_linear_forward(model, x), RAPT_ALL_AXES, false);
    expect(rapt_data_parallel_backward(parallel, loss, 1), "%s", rapt_error());
}

static void step(rapt_data_parallel *parallel, rapt_linear *model)
{
    go_backward(parallel, model, 1);
    expect(rapt_data_parallel_finish(parallel, NULL), "%s", rapt_error());
    expect(rapt_data_parallel_step(parallel, INFINITY, NULL), "%s", rapt_error());
}

static void expect_weights(const rapt_linear *model, double expected)
{
    for (int64_t i = 0; i < 32; i++) {
        const double found = rapt_at(model->weight, (int64_t[]){0, i});
        expect(found == expected, "weight %lld is %g; %g expected", (long long)i, found, expected);
    }
}

/* Each step goes from what the parameters are, whoever made them that. */
static void a_change_of_the_module_is_stepped_from(void)
{
    run r = begin(sgd(0.5));
    rapt_archive *start = rapt_module_snapshot(&r.model->module);
    step(r.parallel, r.model);
    expect_weights(r.model, 0.5);
    expect(rapt_module_from_archive(&r.model->module, NULL, start), "%s", rapt_error());
    step(r.parallel, r.model);
    expect_weights(r.model, 0.5);
    rapt_fill(r.model->weight, 9);
    step(r.parallel, r.model);
    expect_weights(r.model, 8.5);
    go_backward(r.parallel, r.model, 1);
    expect(rapt_data_parallel_finish(r.parallel, NULL), "%s", rapt_error());
    rapt_fill(r.model->weight, 4); /* as late as it can be */
    expect(rapt_data_parallel_step(r.parallel, INFINITY, NULL), "%s", rapt_error());
    expect_weights(r.model, 3.5);
    rapt_archive_free(start);
    end(r);
}

static void two_optimizers_step_one_module(void)
{
    run r = begin(sgd(0.5));
    rapt_data_parallel *other = rapt_data_parallel_new(MPI_COMM_WORLD, &r.model->module, NULL);
    rapt_optimizer *slower = sgd(0.125);
    expect(rapt_data_parallel_shard(other, slower), "%s", rapt_error());
    step(r.parallel, r.model);
    step(other, r.model);
    expect_weights(r.model, 0.375);
    step(r.parallel, r.model);
    expect_weights(r.model, -0.125);
    rapt_data_parallel_free(other);
    rapt_optimizer_free(slower);
    end(r);
}

/* The norms of two ranks are finite, that of all is not. */
static void a_norm_that_overflows_is_an_error(double limit)
{
    RAPT_SCOPE;
    run r = {.model = rapt_linear_new(16 * ranks, 1, RAPT_NO_BIAS), .optimizer = sgd(1)};
    rapt_module_cast(&r.model->module, RAPT_FLOAT64);
    rapt_fill(r.model->weight, 1);
    r.parallel = rapt_data_parallel_new(MPI_COMM_WORLD, &r.model->module, NULL);
    expect(rapt_data_parallel_shard(r.parallel, r.optimizer), "%s", rapt_error());
    rapt_tensor *x = rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(1, 16 * ranks));
    for (int64_t i = 0; i < 2; i++) rapt_set_at(x, (int64_t[]){0, 16 * i}, 1.2e154);
    rapt_tensor *loss = rapt_sum(rapt_linear_forward(r.model, x), RAPT_ALL_AXES, false);
    expect(rapt_data_parallel_backward(r.parallel, loss, 1), "%s", rapt_error());
    expect(rapt_data_parallel_finish(r.parallel, NULL), "%s", rapt_error());
    expect(!rapt_data_parallel_step(r.parallel, limit, NULL), "no error");
    expect_error(RAPT_ERROR_VALUE, "the norm of all ranks' gradients is inf");
    expect(rapt_at(r.model->weight, (int64_t[]){0, 0}) == 1, "a weight was changed");
    end(r);
}

/* The rate of one rank is no float32: no rank steps. */
static void a_rate_that_float32_has_not_is_an_error(void)
{
    run r = begin(sgd(0.5));
    expect(rapt_optimizer_set_learning_rate(r.optimizer, rank == ranks - 1 ? 1e39 : 0.5), "%s", rapt_error());
    go_backward(r.parallel, r.model, 1);
    expect(rapt_data_parallel_finish(r.parallel, NULL), "%s", rapt_error());
    expect(!rapt_data_parallel_step(r.parallel, INFINITY, NULL), "no error");
    expect_error_of_last(RAPT_ERROR_VALUE, "the learning rate of 'bucket.0' is 1e+39; 0 to 3.40282e+38 expected");
    expect_weights(r.model, 1);
    expect(rapt_optimizer_set_learning_rate(r.optimizer, 0.5), "%s", rapt_error());
    step(r.parallel, r.model);
    expect_weights(r.model, 0.5);
    end(r);
}

static void expect_under_way(void)
{
    expect_error(RAPT_ERROR_VALUE, "1 of 1 own parts went backward; rapt_data_parallel_finish expected before it");
}

/* The buckets' memory is full of gradients then, which go on as if nothing had been called. */
static void nothing_else_in_the_middle_of_a_step(void)
{
    run r = begin(sgd(0.5));
    go_backward(r.parallel, r.model, 1);
    const rapt_checkpoint present = {.module = &r.model->module, .optimizer = r.optimizer};
    expect(!rapt_data_parallel_save(r.parallel, path, &present), "no error");
    expect_under_way();
    expect(rapt_data_parallel_finish(r.parallel, NULL), "%s", rapt_error());
    expect(rapt_data_parallel_save(r.parallel, path, &present), "%s", rapt_error());
    expect(rapt_data_parallel_step(r.parallel, INFINITY, NULL), "%s", rapt_error());
    expect_weights(r.model, 0.5);
    end(r);
    r = (run){.model = rapt_linear_new(32, 1, RAPT_NO_BIAS), .optimizer = sgd(0.5)};
    r.parallel = rapt_data_parallel_new(MPI_COMM_WORLD, &r.model->module, NULL);
    go_backward(r.parallel, r.model, 1);
    expect(!rapt_data_parallel_shard(r.parallel, r.optimizer), "no error");
    expect_under_way();
    expect(rapt_data_parallel_finish(r.parallel, NULL), "%s", rapt_error());
    expect(rapt_gradient(r.model->weight), "no gradient");
    expect(rapt_data_parallel_shard(r.parallel, r.optimizer), "%s", rapt_error());
    end(r);
}

/* What one rank wrote of its sharded optimizer by rapt_checkpoint_save has the state of its pieces alone. */
static void pieces_of_one_rank_are_no_checkpoint_of_all(void)
{
    run r = begin(rapt_adam_new(NULL, NULL));
    step(r.parallel, r.model);
    rapt_checkpoint present = {.module = &r.model->module, .optimizer = r.optimizer, .step = 1};
    expect(rank > 0 || rapt_checkpoint_save(path, &present), "%s", rapt_error());
    MPI_Barrier(MPI_COMM_WORLD);
    expect(!rapt_data_parallel_load(r.parallel, path, &present), "no error");
    expect_error(RAPT_ERROR_FORMAT, "optimizer.bucket.0.step");
    MPI_Barrier(MPI_COMM_WORLD);
    end(r);
}

typedef struct pair {
    rapt_module module;
    rapt_tensor *first, *second;
} pair;

static const rapt_module_class pair_class = {.name = "Pair"}, numbers_class = {.name = "Numbers"};

/* With the parameters bucket.0 and bucket.1, which have the names of pieces. */
static pair *pair_new(void)
{
    RAPT_SCOPE;
    pair *p = rapt_module_new(sizeof *p, &pair_class);
    rapt_module *numbers = rapt_module_new(sizeof *numbers, &numbers_class);
    p->first = rapt_module_add_parameter(numbers, "0", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(16)));
    p->second = rapt_module_add_parameter(numbers, "1", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(16)));
    rapt_module_add_child(&p->module, "bucket", rapt_module_finish(numbers));
    return rapt_module_finish(&p->module);
}

static double moment_of(const rapt_optimizer *optimizer)
{
    RAPT_SCOPE;
    rapt_archive *archive = rapt_archive_new();
    expect(rapt_optimizer_to_archive(optimizer, NULL, archive), "%s", rapt_error());
    const double found = rapt_at(rapt_archive_find(archive, "bucket.0.exp_avg"), (int64_t[]){0});
    rapt_archive_free(archive);
    return found;
}

/* Also with a leaf of one's own in the optimizer, called as a piece that there is not. */
static void parameters_may_have_the_names_of_pieces(void)
{
    RAPT_SCOPE;
    pair *models[2];
    rapt_data_parallel *parallels[2];
    rapt_optimizer *optimizers[2];
    for (int i = 0; i < 2; i++) {
        models[i] = pair_new();
        parallels[i] = rapt_data_parallel_new(MPI_COMM_WORLD, &models[i]->module, NULL);
        optimizers[i] = rapt_adam_new(NULL, NULL);
        expect(rapt_data_parallel_shard(parallels[i], optimizers[i]), "%s", rapt_error());
        rapt_tensor *leaf = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(4)));
        expect(rapt_optimizer_add(optimizers[i], "bucket.99", leaf), "%s", rapt_error());
    }
    rapt_tensor *twice = rapt_mul_scalar(models[0]->second, 2);
    rapt_tensor *loss = rapt_sum(rapt_add(models[0]->first, twice), RAPT_ALL_AXES, false);
    expect(rapt_data_parallel_backward(parallels[0], loss, 1), "%s", rapt_error());
    expect(rapt_data_parallel_finish(parallels[0], NULL), "%s", rapt_error());
    expect(rapt_data_parallel_step(parallels[0], INFINITY, NULL), "%s", rapt_error());
    rapt_checkpoint saved = {.module = &models[0]->module, .optimizer = optimizers[0]};
    rapt_checkpoint loaded = {.module = &models[1]->module, .optimizer = optimizers[1]};
    expect(rapt_data_parallel_save(parallels[0], path, &saved), "%s", rapt_error());
    expect(rapt_data_parallel_load(parallels[1], path, &loaded), "%s", rapt_error());
    expect(moment_of(optimizers[1]) == moment_of(optimizers[0]), "%g", moment_of(optimizers[1]));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 2; i++) {
        rapt_data_parallel_free(parallels[i]);
        rapt_optimizer_free(optimizers[i]);
        rapt_module_free(&models[i]->module);
    }
}

/* As one process says, too; way 0 turns a state, way 1 makes integers of it. */
static void states_have_shape_and_dtype_of_their_parameters(int way)
{
    RAPT_SCOPE;
    run r = begin(rapt_adam_new(NULL, NULL));
    step(r.parallel, r.model);
    rapt_checkpoint present = {.module = &r.model->module, .optimizer = r.optimizer};
    expect(rapt_data_parallel_save(r.parallel, path, &present), "%s", rapt_error());
    MPI_Barrier(MPI_COMM_WORLD);
    rapt_archive *good = rapt_load_safetensors(path), *bad = rapt_archive_new();
    const char *key;
    for (int64_t i = 0; (key = rapt_archive_key(good, i)); i++)
        rapt_archive_add_text(bad, key, rapt_archive_find_text(good, key));
    for (int64_t i = 0; i < rapt_archive_count(good); i++) {
        const char *name = rapt_archive_name(good, i);
        rapt_tensor *tensor = rapt_archive_tensor(good, i);
        if (strcmp(name, "optimizer.weight.exp_avg") == 0)
            tensor = way ? rapt_cast(tensor, RAPT_INT64) : rapt_transpose(tensor, 0, 1);
        expect(rapt_archive_add(bad, name, tensor), "%s", rapt_error());
    }
    MPI_Barrier(MPI_COMM_WORLD);
    expect(rank > 0 || rapt_save_safetensors(path, bad), "%s", rapt_error());
    MPI_Barrier(MPI_COMM_WORLD);
    expect(!rapt_data_parallel_load(r.parallel, path, &present), "no error");
    expect_error(RAPT_ERROR_FORMAT, "the file has no optimizer.weight.exp_avg of float32 [1, 32]");
    MPI_Barrier(MPI_COMM_WORLD);
    rapt_archive_free(good);
    rapt_archive_free(bad);
    end(r);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    snprintf(path, sizeof path, "%s/run.safetensors", argv[1]);
    a_change_of_the_module_is_stepped_from();
    two_optimizers_step_one_module();
    a_norm_that_overflows_is_an_error(1);
    a_norm_that_overflows_is_an_error(INFINITY);
    a_rate_that_float32_has_not_is_an_error();
    nothing_else_in_the_middle_of_a_step();
    pieces_of_one_rank_are_no_checkpoint_of_all();
    parameters_may_have_the_names_of_pieces();
    for (int way = 0; way < 2; way++) states_have_shape_and_dtype_of_their_parameters(way);
    expect(!rapt_error(), "%s", rapt_error());
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
