/* Checkpoints of ranks: checkpoints FOLDER saves in the middle of a training, and goes on from there with the same
 * ranks, with each smaller number of them, and alone; what is written in part never replaces what was whole. */
#include <dirent.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ranks.h"

int rank, ranks, failures;

enum { middle = 6, end = 12 };

static char path[4096];

static const rapt_adam_config config = {.learning_rate = 0.003};

/* A training from the first step, or from the checkpoint on, by the ranks of a communicator; saves in the middle.
 * Gradients are sharded where it is one that resumes, and has a sharded optimizer. */
static rapt_module *train(const learner *learns, MPI_Comm communicator, int parts, bool sharded, bool resumes)
{
    rapt_module *model = make_model(learns, RAPT_FLOAT64, resumes ? 77 : 5);
    const rapt_data_parallel_config cut = {.parts = parts,
                                           .bucket_bytes = 1000,
                                           .shards_gradients = sharded && resumes};
    rapt_data_parallel *parallel = rapt_data_parallel_new(communicator, model, &cut);
    expect(parallel, "%s", rapt_error());
    rapt_optimizer *optimizer = rapt_adamw_new(sharded ? NULL : model, &config);
    expect(!sharded || rapt_data_parallel_shard(parallel, optimizer), "%s", rapt_error());
    rapt_checkpoint run = {.module = model, .optimizer = optimizer, .note = "a test"};
    if (resumes) {
        expect(rapt_data_parallel_load(parallel, path, &run), "%s", rapt_error());
        expect(run.step == middle, "step %lld", (long long)run.step);
    }
    while (run.step < end) {
        step_together(learns, parallel, model, (int)run.step++, optimizer, sharded);
        if (run.step == middle) expect(rapt_data_parallel_save(parallel, path, &run), "%s", rapt_error());
    }
    rapt_optimizer_free(optimizer);
    rapt_data_parallel_free(parallel);
    return model;
}

/* The same checkpoint in a process that knows nothing of ranks. */
static rapt_module *train_alone(const learner *learns)
{
    rapt_module *model = make_model(learns, RAPT_FLOAT64, 78);
    rapt_optimizer *optimizer = rapt_adamw_new(model, &config);
    rapt_checkpoint run = {.module = model, .optimizer = optimizer, .note = "a test"};
    expect(rapt_checkpoint_load(path, &run), "%s", rapt_error());
    while (run.step < end) step_alone(learns, model, (int)run.step++, optimizer);
    rapt_optimizer_free(optimizer);
    return model;
}

static void expect_same(const learner *learns, rapt_module *model, const rapt_module *whole, double bound, int count)
{
    const double apart = difference(model, whole);
    expect(apart <= bound, "%s by %d: weights differ by %g", learns->name, count, apart);
    rapt_module_free(model);
}

/* With one number of parts all bits are the same, but sharded the norm is summed by pieces. */
static void goes_on_with_any_number_of_ranks(const learner *learns, int parts, bool sharded)
{
    const double bound = parts && !sharded ? 0 : 1e-12;
    rapt_module *whole = train(learns, MPI_COMM_WORLD, parts, sharded, false);
    expect_same(learns, train(learns, MPI_COMM_WORLD, parts, sharded, true), whole, 0, ranks);
    for (int count = ranks - 1; count > 0; count--) {
        MPI_Comm some;
        const bool cuts = parts == 0 || parts % count == 0;
        MPI_Comm_split(MPI_COMM_WORLD, cuts && rank < count ? 0 : MPI_UNDEFINED, rank, &some);
        for (int other = 0; other < 2 && some != MPI_COMM_NULL; other++)
            expect_same(learns, train(learns, some, parts, other ? !sharded : sharded, true), whole,
                        other ? 1e-12 : bound, count);
        if (some != MPI_COMM_NULL) MPI_Comm_free(&some);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0) expect_same(learns, train_alone(learns), whole, 1e-12, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    rapt_module_free(whole);
}

static int count_files(const char *folder)
{
    int count = 0;
    DIR *directory = opendir(folder);
    expect(directory, "%s", folder);
    for (const struct dirent *entry; directory && (entry = readdir(directory));) count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

static int64_t saved_step(void)
{
    RAPT_SCOPE;
    rapt_archive *archive = rapt_load_safetensors(path);
    expect(archive, "%s", rapt_error());
    const int64_t step = archive ? (int64_t)rapt_item(rapt_archive_find(archive, "step")) : -1;
    rapt_archive_free(archive);
    return step;
}

/* Where one rank cannot write, all are told, and the older set is still there; the next one takes its place, whole. */
static void a_set_is_whole_or_not_there(const char *folder)
{
    rapt_module *model = make_model(&learners[0], RAPT_FLOAT32, 5);
    rapt_data_parallel *parallel = rapt_data_parallel_new(MPI_COMM_WORLD, model, NULL);
    rapt_checkpoint run = {.module = model, .step = 1};
    char blocked[4096 + 64];
    for (int i = 0; i < 3; i++, run.step++) expect(rapt_data_parallel_save(parallel, path, &run), "%s", rapt_error());
    if (rank == 0) expect(count_files(folder) == ranks + 1, "%d files", count_files(folder));
    snprintf(blocked, sizeof blocked, "%s/run-%05d-of-%05d-c.safetensors", folder, ranks, ranks);
    if (ranks > 1) { /* of one rank the first shard's name would be passed over */
        if (rank == 0) expect(mkdir(blocked, 0777) == 0, "%s", blocked);
        MPI_Barrier(MPI_COMM_WORLD);
        expect(!rapt_data_parallel_save(parallel, path, &run), "no error");
        expect_error(rank == ranks - 1 ? RAPT_ERROR_FILE : RAPT_ERROR_RANK, "regular file");
        expect(saved_step() == 3, "step %lld", (long long)saved_step());
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) expect(rmdir(blocked) == 0, "%s", blocked);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    expect(rapt_data_parallel_save(parallel, path, &run), "%s", rapt_error());
    expect(saved_step() == 4, "step %lld", (long long)saved_step());
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) expect(count_files(folder) == ranks + 1, "%d files", count_files(folder));
    rapt_data_parallel_free(parallel);
    rapt_module_free(model);
}

static void what_is_wrong_is_an_error(void)
{
    rapt_module *model = make_model(&learners[0], RAPT_FLOAT32, 5), *other = make_model(&learners[0], RAPT_FLOAT32, 5);
    rapt_data_parallel *parallel = rapt_data_parallel_new(MPI_COMM_WORLD, model, NULL);
    rapt_optimizer *adam = rapt_adam_new(NULL, NULL), *whole = rapt_adam_new(model, NULL);
    rapt_checkpoint run = {.module = model};
    expect(!rapt_data_parallel_save(NULL, path, &run), "no error");
    expect_error(RAPT_ERROR_NULL, "parallel is NULL");
    expect(!rapt_data_parallel_load(NULL, path, &run), "no error");
    expect_error(RAPT_ERROR_NULL, "parallel is NULL");
    expect(!rapt_data_parallel_save(parallel, NULL, &run), "no error");
    expect_error(RAPT_ERROR_NULL, "path is NULL");
    expect(!rapt_data_parallel_load(parallel, path, NULL), "no error");
    expect_error(RAPT_ERROR_NULL, "checkpoint is NULL");
    run.module = other;
    expect(!rapt_data_parallel_save(parallel, path, &run), "no error");
    expect_error(RAPT_ERROR_VALUE, "another module than the ranks train");
    run = (rapt_checkpoint){.module = model, .step = rank};
    expect(!rapt_data_parallel_save(parallel, path, &run) || ranks == 1, "no error");
    if (ranks > 1) expect_error(RAPT_ERROR_RANK, "there is something else to be saved here than on rank 0");
    expect(rapt_data_parallel_shard(parallel, adam), "%s", rapt_error());
    run = (rapt_checkpoint){.module = model, .optimizer = whole};
    expect(!rapt_data_parallel_save(parallel, path, &run), "no error");
    expect_error(RAPT_ERROR_VALUE, "another optimizer than the sharded one");
    expect(!rapt_data_parallel_load(parallel, "/there/is/none.safetensors.index.json", &run), "no error");
    expect_error(RAPT_ERROR_VALUE, "another optimizer than the sharded one");
    run.optimizer = adam;
    expect(!rapt_data_parallel_load(parallel, "/there/is/none.safetensors.index.json", &run), "no error");
    expect_error(RAPT_ERROR_FILE, "/there/is/none");
    rapt_data_parallel_free(parallel);
    rapt_optimizer_free(adam);
    rapt_optimizer_free(whole);
    rapt_module_free(model);
    rapt_module_free(other);
}

/* The last rank has another path than the others. */
static void all_have_one_file(const char *folder)
{
    rapt_module *model = make_model(&learners[0], RAPT_FLOAT32, 5);
    rapt_data_parallel *parallel = rapt_data_parallel_new(MPI_COMM_WORLD, model, NULL);
    rapt_checkpoint run = {.module = model};
    char own[4096], paths[2][4096];
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/step-%d.safetensors", folder, i);
        run.step = i;
        expect(rapt_data_parallel_save(parallel, paths[i], &run), "%s", rapt_error());
    }
    MPI_Barrier(MPI_COMM_WORLD);
    expect(!rapt_data_parallel_load(parallel, paths[rank == ranks - 1], &run) || ranks == 1, "no error");
    if (ranks > 1) expect_error(RAPT_ERROR_RANK, "there is something else to be loaded here than on rank 0");
    snprintf(own, sizeof own, "%s/%s", folder, rank == ranks - 1 ? "one.safetensors" : "all.safetensors.index.json");
    expect(!rapt_data_parallel_save(parallel, own, &run) || ranks == 1, "no error");
    if (ranks > 1) expect_error(RAPT_ERROR_RANK, "the path ends in another name here than on rank 0");
    rapt_data_parallel_free(parallel);
    rapt_module_free(model);
}

/* A model of one matrix, all of one number. */
static rapt_linear *matrix_of(double number)
{
    rapt_linear *model = rapt_linear_new(30, 30, RAPT_NO_BIAS);
    rapt_fill(model->weight, number);
    return model;
}

/* Of the same step, names, sizes and random state: those of the last rank have other weights. */
static void other_weights_are_another_checkpoint(const char *folder)
{
    rapt_linear *model = matrix_of(1);
    rapt_data_parallel *parallel = rapt_data_parallel_new(MPI_COMM_WORLD, &model->module, NULL);
    rapt_checkpoint run = {.module = &model->module, .step = 7};
    char own[4096 + 64];
    snprintf(own, sizeof own, "%s/weights-%d.safetensors", folder, rank);
    rapt_fill(model->weight, rank == ranks - 1 ? 2 : 3);
    rapt_seed(5);
    expect(rapt_checkpoint_save(own, &run), "%s", rapt_error());
    expect(!rapt_data_parallel_load(parallel, own, &run) || ranks == 1, "no error");
    if (ranks > 1) expect_error(RAPT_ERROR_RANK, "there is something else to be loaded here than on rank 0");
    rapt_data_parallel_free(parallel);
    rapt_module_free(&model->module);
}

/* Of ranks whose models went apart nothing is written, and what was there stays. */
static void models_that_went_apart_are_not_saved(const char *folder, bool shards)
{
    rapt_linear *model = matrix_of(1);
    rapt_data_parallel *parallel = rapt_data_parallel_new(MPI_COMM_WORLD, &model->module, NULL);
    rapt_optimizer *adam = rapt_adam_new(shards ? NULL : &model->module, NULL);
    if (shards) expect(rapt_data_parallel_shard(parallel, adam), "%s", rapt_error());
    rapt_checkpoint run = {.module = &model->module, .optimizer = adam};
    for (int whole = 0; whole < 2; whole++) {
        char all[4096 + 64];
        snprintf(all, sizeof all, "%s/apart.safetensors%s", folder, whole ? "" : ".index.json");
        rapt_fill(model->weight, 1);
        expect(rapt_data_parallel_save(parallel, all, &run), "%s", rapt_error());
        rapt_fill(model->weight, rank == ranks - 1 ? 2 : 3);
        expect(rapt_data_parallel_save(parallel, all, &run) == (ranks == 1), "no error");
        if (ranks == 1) continue;
        expect_error(RAPT_ERROR_RANK, "module.weight has other numbers here than on rank 0");
        expect(rapt_data_parallel_load(parallel, all, &run), "%s", rapt_error());
        expect(rapt_at(model->weight, (int64_t[]){3, 4}) == 1, "another checkpoint");
    }
    rapt_data_parallel_free(parallel);
    rapt_optimizer_free(adam);
    rapt_module_free(&model->module);
}

static bool random_state_is(rapt_random_state state)
{
    const rapt_random_state now = rapt_random_get_state();
    return now.seed == state.seed && now.offset == state.offset;
}

/* Ranks that seed by themselves may load files of their own, which differ in the random state alone, and go on from
 * it; what they save together has that of rank 0. */
static void random_states_may_differ(const char *folder)
{
    rapt_linear *model = matrix_of(1);
    rapt_data_parallel *parallel = rapt_data_parallel_new(MPI_COMM_WORLD, &model->module, NULL);
    rapt_checkpoint run = {.module = &model->module, .step = 7};
    char own[4096 + 64], all[4096 + 64];
    snprintf(own, sizeof own, "%s/random-%d.safetensors", folder, rank);
    snprintf(all, sizeof all, "%s/random.safetensors", folder);
    const rapt_random_state state = {.seed = (uint64_t)rank + 100, .offset = (uint64_t)rank + 3};
    rapt_random_set_state(state);
    expect(rapt_checkpoint_save(own, &run) && rapt_data_parallel_save(parallel, all, &run), "%s", rapt_error());
    rapt_seed(9);
    expect(rapt_data_parallel_load(parallel, own, &run), "%s", rapt_error());
    expect(random_state_is(state), "another random state");
    expect(rapt_data_parallel_load(parallel, all, &run), "%s", rapt_error());
    expect(random_state_is((rapt_random_state){.seed = 100, .offset = 3}), "not rank 0's random state");
    rapt_data_parallel_free(parallel);
    rapt_module_free(&model->module);
}

/* The error of a rank that is at fault, or what the others hear of it. */
static void expect_fault(bool is_own, rapt_error_code code, const char *text)
{
    expect_error(is_own ? code : RAPT_ERROR_RANK, text);
}

/* On all ranks, or the last alone. The state is in the old dtype, and no program could read it beside the weights. */
static void a_cast_run_is_an_error(const char *folder, bool everywhere, bool sharded)
{
    const bool casts = everywhere || rank == ranks - 1;
    const char *text = "weight is float64, and was float32 in rapt_data_parallel_new";
    rapt_linear *model = matrix_of(1);
    rapt_data_parallel *parallel = rapt_data_parallel_new(MPI_COMM_WORLD, &model->module, NULL);
    rapt_optimizer *optimizer = rapt_adam_new(sharded ? NULL : &model->module, NULL);
    expect(!sharded || rapt_data_parallel_shard(parallel, optimizer), "%s", rapt_error());
    rapt_checkpoint run = {.module = &model->module, .optimizer = optimizer, .step = 7};
    char whole[4096 + 64], cast[4096 + 64];
    snprintf(whole, sizeof whole, "%s/whole.safetensors", folder);
    snprintf(cast, sizeof cast, "%s/cast.safetensors", folder);
    expect(rapt_data_parallel_save(parallel, whole, &run), "%s", rapt_error());
    if (casts) rapt_module_cast(&model->module, RAPT_FLOAT64);
    expect(!rapt_data_parallel_save(parallel, cast, &run), "no error");
    expect_fault(casts, RAPT_ERROR_DTYPE, text);
    expect(access(cast, F_OK) != 0, "%s is there", cast);
    expect(!rapt_data_parallel_load(parallel, whole, &run), "no error");
    expect_fault(casts, RAPT_ERROR_DTYPE, text);
    run.optimizer = NULL;
    expect(!sharded || !rapt_data_parallel_load(parallel, whole, &run), "no error");
    if (sharded) expect_fault(casts, RAPT_ERROR_DTYPE, text);
    if (everywhere) expect(rapt_data_parallel_save(parallel, cast, &run), "%s", rapt_error());
    MPI_Barrier(MPI_COMM_WORLD);
    if (everywhere && rank == 0) expect(unlink(cast) == 0, "%s", cast);
    rapt_data_parallel_free(parallel);
    rapt_optimizer_free(optimizer);
    rapt_module_free(&model->module);
}

/* The pieces of a sharded optimizer are of what was trained when it was made. */
static void a_sharded_run_that_is_frozen_is_an_error(const char *folder)
{
    const bool freezes = rank == ranks - 1;
    rapt_linear *model = matrix_of(1);
    rapt_data_parallel *parallel = rapt_data_parallel_new(MPI_COMM_WORLD, &model->module, NULL);
    rapt_optimizer *optimizer = rapt_adam_new(NULL, NULL);
    expect(rapt_data_parallel_shard(parallel, optimizer), "%s", rapt_error());
    rapt_checkpoint run = {.module = &model->module, .optimizer = optimizer};
    char frozen[4096 + 64];
    snprintf(frozen, sizeof frozen, "%s/frozen.safetensors", folder);
    if (freezes) rapt_module_freeze(&model->module, "weight", true);
    expect(!rapt_data_parallel_save(parallel, frozen, &run), "no error");
    expect_fault(freezes, RAPT_ERROR_VALUE, "weight is frozen, and was not in rapt_data_parallel_new");
    rapt_data_parallel_free(parallel);
    rapt_optimizer_free(optimizer);
    rapt_module_free(&model->module);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    snprintf(path, sizeof path, "%s/run.safetensors.index.json", argv[1]);
    a_set_is_whole_or_not_there(argv[1]);
    what_is_wrong_is_an_error();
    all_have_one_file(argv[1]);
    other_weights_are_another_checkpoint(argv[1]);
    for (int shards = 0; shards < 2; shards++) models_that_went_apart_are_not_saved(argv[1], shards);
    random_states_may_differ(argv[1]);
    for (int way = 0; way < 4; way++) a_cast_run_is_an_error(argv[1], way & 1, way & 2);
    a_sharded_run_that_is_frozen_is_an_error(argv[1]);
    for (int i = 0; i < learner_count; i++)
        for (int sharded = 0; sharded < 2; sharded++) {
            goes_on_with_any_number_of_ranks(&learners[i], 0, sharded);
            if (ranks == 4) goes_on_with_any_number_of_ranks(&learners[i], 4, sharded);
        }
    snprintf(path, sizeof path, "%s/one.safetensors", argv[1]);
    for (int sharded = 0; sharded < 2; sharded++) goes_on_with_any_number_of_ranks(&learners[0], 0, sharded);
    expect(!rapt_error(), "%s", rapt_error());
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
