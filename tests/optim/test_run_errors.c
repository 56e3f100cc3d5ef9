/* Errors of loaders, averages, optimizers and checkpoints that nothing else in the tests provokes. */
#include "loader_columns.h"
#include "temporary_file.h"

Test(run_errors, columns_that_make_no_batch)
{
    RAPT_SCOPE;
    rapt_tensor *starts = rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){0, 1});
    rapt_column single = {.values = rapt_scalar(RAPT_FLOAT32, 1)};
    cr_expect_null(rapt_loader_new(&(rapt_loader_config){.columns = &single, .column_count = 1, .batch_size = 1}));
    expect_error(RAPT_ERROR_SHAPE, "column 0 is a single number; an axis of items expected");
    rapt_column many[RAPT_BATCH_TENSORS];
    for (int i = 0; i < RAPT_BATCH_TENSORS; i++)
        many[i] = (rapt_column){.values = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1)), .starts = starts};
    cr_expect_null(
        rapt_loader_new(&(rapt_loader_config){.columns = many, .column_count = RAPT_BATCH_TENSORS, .batch_size = 1}));
    expect_error(RAPT_ERROR_VALUE, "tensors in a batch; at most");
    rapt_column deep = {.values = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 1, 1, 1, 1, 1, 1, 1)), .starts = starts};
    rapt_loader *loader = loader_of((rapt_loader_config){.columns = &deep, .column_count = 1, .batch_size = 1});
    rapt_batch batch;
    cr_expect_not(rapt_loader_next(loader, &batch));
    expect_error(RAPT_ERROR_SHAPE, "padded, it would have 9 axes");
    rapt_loader_free(loader);
}

Test(run_errors, states_of_loaders)
{
    RAPT_SCOPE;
    rapt_column column = numbers();
    rapt_loader *loader = loader_of(
        (rapt_loader_config){.columns = &column, .column_count = 1, .batch_size = 4, .drop_last = true, .seed = 1});
    rapt_loader_state state;
    cr_expect_not(rapt_loader_get_state(NULL, &state));
    expect_error(RAPT_ERROR_NULL, "loader is NULL");
    cr_expect_not(rapt_loader_get_state(loader, NULL));
    expect_error(RAPT_ERROR_NULL, "state is NULL");
    cr_assert(rapt_loader_get_state(loader, &state));
    cr_expect_not(rapt_loader_set_state(NULL, state));
    expect_error(RAPT_ERROR_NULL, "loader is NULL");
    for (state.next = 0; state.next < items; state.next++) {
        const bool is_boundary = state.next % 4 == 0;
        cr_expect_eq(rapt_loader_set_state(loader, state), is_boundary, "item %d", (int)state.next);
        if (is_boundary)
            expect_no_error();
        else if (state.next < 20)
            expect_error(RAPT_ERROR_VALUE, "where no batch of 4 begins");
        else
            expect_error(RAPT_ERROR_VALUE, "an item from 0 to 20 expected");
    }
    rapt_loader_free(loader);
}

Test(run_errors, archives_of_optimizers_and_averages)
{
    RAPT_SCOPE;
    char prefix[4096];
    memset(prefix, 'x', sizeof prefix - 1);
    prefix[sizeof prefix - 1] = '\0';
    rapt_linear *linear = rapt_linear_new(2, 2, 0);
    rapt_archive *archive = rapt_archive_new();
    rapt_optimizer *adam = rapt_adam_new(&linear->module, NULL);
    rapt_average *average = rapt_average_new(&linear->module, NULL);
    cr_assert(adam && average, "%s", rapt_error());
    cr_expect_not(rapt_optimizer_to_archive(adam, prefix, archive));
    expect_error(RAPT_ERROR_VALUE, "is too long");
    cr_expect_not(rapt_average_to_archive(average, prefix, archive));
    expect_error(RAPT_ERROR_VALUE, "is too long");
    cr_expect_not(rapt_average_to_archive(average, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "average_to_archive: archive is NULL");
    cr_expect_not(rapt_average_from_archive(average, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "average_from_archive: archive is NULL");
    rapt_average_free(average);
    rapt_optimizer_free(adam);
    rapt_archive_free(archive);
    rapt_module_free(&linear->module);
}

Test(run_errors, counts_of_a_damaged_checkpoint)
{
    RAPT_SCOPE;
    char path[32];
    write_temporary_file(path, "", 0);
    rapt_linear *linear = rapt_linear_new(2, 2, 0);
    rapt_watch watch = {.patience = 3};
    rapt_checkpoint checkpoint = {.module = &linear->module, .watch = &watch};
    cr_assert(rapt_watch_take(&watch, 1) && rapt_checkpoint_save(path, &checkpoint), "%s", rapt_error());
    rapt_archive *archive = rapt_load_safetensors(path);
    cr_assert_not_null(archive, "%s", rapt_error());
    rapt_tensor *numbers = rapt_archive_find(archive, "watch");
    cr_assert_not_null(numbers);
    cr_assert(rapt_set_at(numbers, (int64_t[]){1}, 0.5), "%s", rapt_error());
    cr_assert(rapt_save_safetensors(path, archive), "%s", rapt_error());
    cr_expect_not(rapt_checkpoint_load(path, &checkpoint));
    expect_error(RAPT_ERROR_FORMAT, "watch.values is 0.5; a whole number from 0 to 2^53 expected");
    rapt_archive_free(archive);
    rapt_module_free(&linear->module);
    unlink(path);
}
