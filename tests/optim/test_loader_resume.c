/* The batch loader, resumed: the same batches and ends of epochs follow. */
#include "loader_columns.h"

#include <unistd.h>

#include "temporary_file.h"

/* Whatever was given before, the rest is the same in a loader that takes the state, with and without a thread. */
Test(loader_resume, resumes_at_every_batch)
{
    RAPT_SCOPE;
    rapt_column columns[] = {numbers(), sequences(false)};
    for (int seed = 0; seed < 2; seed++)
        for (int before = 0; before <= 6; before++) {
            rapt_loader_config config = {.columns = columns,
                                         .column_count = 2,
                                         .batch_size = 4,
                                         .bucket = 8,
                                         .shuffle = true,
                                         .seed = (uint64_t)seed,
                                         .prefetch = before % 3};
            rapt_loader *loader = loader_of(config);
            rapt_seed(4);
            rapt_batch batch;
            for (int i = 0; i < before; i++) cr_assert(rapt_loader_next(loader, &batch), "%s", rapt_error());
            rapt_loader_state state;
            cr_assert(rapt_loader_get_state(loader, &state));
            const rapt_random_state random = rapt_random_get_state();
            if (before == 6) cr_expect(state.epoch == 0 && state.next == items, "the end of the epoch comes next");
            if (before == 6) cr_expect_not(rapt_loader_next(loader, &batch));
            int64_t expected[2][2 * items], found[2 * items];
            int counts[2];
            for (int epoch = 0; epoch < 2; epoch++) counts[epoch] = rest_of_epoch(loader, expected[epoch]);
            rapt_loader_free(loader);

            config.prefetch = 2 - before % 3;
            loader = loader_of(config);
            rapt_random_set_state(random);
            if (before > 3) rapt_loader_next(loader, &batch); /* whose batches are then forgotten */
            rapt_random_set_state(random);
            cr_assert(rapt_loader_set_state(loader, state), "%s", rapt_error());
            if (before == 6) cr_expect_not(rapt_loader_next(loader, &batch));
            for (int epoch = 0; epoch < 2; epoch++) {
                cr_expect_eq(rest_of_epoch(loader, found), counts[epoch]);
                cr_expect_eq(memcmp(found, expected[epoch], (size_t)counts[epoch] * sizeof *found), 0,
                             "seed %d, after %d batches, epoch %d", seed, before, epoch);
            }
            rapt_loader_free(loader);
        }
    expect_no_error();
}

/* An epoch that was counted, or whose first batch failed, has its order, though none of its items was given. */
Test(loader_resume, resumes_before_the_first_batch)
{
    RAPT_SCOPE;
    rapt_column columns[] = {numbers(), sequences(false)};
    const rapt_loader_config config = {.columns = columns, .column_count = 2, .most_tokens = 20, .shuffle = true};
    for (int epoch = 0; epoch < 2; epoch++) {
        rapt_loader *loader = loader_of(config), *other = loader_of(config);
        int64_t expected[2][2 * items], found[2 * items];
        int counts[2];
        rapt_seed(6);
        if (epoch > 0) rest_of_epoch(loader, found);
        cr_expect_gt(rapt_loader_count_batches(loader), 1);
        rapt_loader_state state;
        cr_assert(rapt_loader_get_state(loader, &state));
        const rapt_random_state random = rapt_random_get_state();
        for (int i = 0; i < 2; i++) counts[i] = rest_of_epoch(loader, expected[i]);
        cr_assert(rapt_loader_set_state(other, state), "%s", rapt_error());
        rapt_random_set_state(random);
        for (int i = 0; i < 2; i++) {
            cr_expect_eq(rest_of_epoch(other, found), counts[i]);
            cr_expect_eq(memcmp(found, expected[i], (size_t)counts[i] * sizeof *found), 0, "epoch %d", epoch + i);
        }
        rapt_loader_free(loader);
        rapt_loader_free(other);
    }
    expect_no_error();
}

/* Kept behind the last batch, whose epoch may leave items out. */
Test(loader_resume, tells_the_end_of_an_epoch_after_resuming)
{
    RAPT_SCOPE;
    rapt_column columns[] = {numbers(), sequences(false)};
    for (int way = 0; way < 8; way++) {
        rapt_loader_config config = {.columns = columns,
                                     .column_count = 2,
                                     .batch_size = 4,
                                     .most_tokens = way & 1 ? 40 : 0,
                                     .bucket = way & 1 ? 6 : 0,
                                     .shuffle = true,
                                     .drop_last = way & 2,
                                     .seed = way & 4 ? 3 : 0,
                                     .prefetch = way % 3};
        rapt_loader *loader = loader_of(config), *other = loader_of(config);
        int64_t expected[2 * items], found[2 * items];
        rapt_batch batch;
        for (int64_t left = rapt_loader_count_batches(loader); left > 0; left--)
            cr_assert(rapt_loader_next(loader, &batch), "%s", rapt_error());
        rapt_loader_state state;
        cr_assert(rapt_loader_get_state(loader, &state));
        cr_assert(rapt_loader_set_state(other, state), "%s", rapt_error());
        cr_expect_not(rapt_loader_next(loader, &batch));
        cr_expect_not(rapt_loader_next(other, &batch), "way %d", way);
        const rapt_random_state random = rapt_random_get_state();
        const int count = rest_of_epoch(loader, expected);
        rapt_random_set_state(random);
        cr_expect_eq(rest_of_epoch(other, found), count);
        cr_expect_eq(memcmp(found, expected, (size_t)count * sizeof *found), 0, "way %d", way);
        rapt_loader_free(loader), rapt_loader_free(other);
    }
    expect_no_error();
}

/* Behind the last batch of epoch 4 they have the state before the first one of epoch 5. */
Test(loader_resume, takes_checkpoints_of_older_versions)
{
    RAPT_SCOPE;
    rapt_linear *linear = rapt_linear_new(1, 1, 0);
    rapt_column column = numbers();
    const rapt_loader_config config = {.columns = &column,
                                       .column_count = 1,
                                       .batch_size = 4,
                                       .shuffle = true,
                                       .seed = 3};
    rapt_loader *loader = loader_of(config), *other = loader_of(config);
    int64_t expected[2 * items], found[2 * items];
    for (int epoch = 0; epoch < 5; epoch++) rest_of_epoch(loader, found);
    rapt_archive *archive = rapt_archive_new();
    rapt_checkpoint checkpoint = {.module = &linear->module, .loader = other};
    cr_assert(rapt_checkpoint_to_archive(&checkpoint, archive), "%s", rapt_error());
    rapt_tensor *state = rapt_from(RAPT_INT64, RAPT_SHAPE(4), (int64_t[]){5, 0, 3, INT64_C(4) << 40});
    cr_assert(rapt_copy(rapt_archive_find(archive, "loader"), state));
    cr_assert(rapt_checkpoint_from_archive(&checkpoint, archive), "%s", rapt_error());
    const int count = rest_of_epoch(loader, expected);
    cr_expect_eq(rest_of_epoch(other, found), count);
    cr_expect_eq(memcmp(found, expected, (size_t)count * sizeof *found), 0);
    rapt_archive_free(archive);
    rapt_loader_free(loader), rapt_loader_free(other);
    rapt_module_free(&linear->module);
    expect_no_error();
}

Test(loader_resume, checkpoint)
{
    RAPT_SCOPE;
    static const rapt_module_class kind = {.name = "Empty"};
    char path[32];
    write_temporary_file(path, "", 0);
    rapt_module *module = rapt_module_finish(rapt_module_new(sizeof *module, &kind));
    rapt_column column = numbers();
    const rapt_loader_config config = {.columns = &column, .column_count = 1, .batch_size = 4, .shuffle = true};
    rapt_loader *loader = loader_of(config), *fresh = loader_of(config);
    rapt_batch batch;
    for (int i = 0; i < 3; i++) cr_assert(rapt_loader_next(loader, &batch));
    cr_assert(rapt_checkpoint_save(path, &(rapt_checkpoint){.module = module, .loader = loader}), "%s", rapt_error());
    int64_t expected[2 * items], found[2 * items];
    const int count = rest_of_epoch(loader, expected);
    rapt_seed(99);
    rapt_checkpoint read = {.module = module, .loader = fresh};
    cr_assert(rapt_checkpoint_load(path, &read), "%s", rapt_error());
    cr_expect_eq(rest_of_epoch(fresh, found), count);
    cr_expect_eq(memcmp(found, expected, (size_t)count * sizeof *found), 0);
    rapt_loader_free(fresh);
    fresh = loader_of((rapt_loader_config){.items = 5, .make = (rapt_batch_function *)abort, .batch_size = 1});
    read.loader = fresh;
    cr_expect_not(rapt_checkpoint_load(path, &read));
    expect_error(RAPT_ERROR_VALUE, "item 12; an epoch from 0 to below 2^62 and an item from 0 to 5");
    unlink(path);
    rapt_loader_free(loader), rapt_loader_free(fresh);
    rapt_module_free(module);
}

/* Also those whose number does not fit beside the place in the seed's random numbers. */
Test(loader_resume, epochs_far_away_have_orders_of_their_own)
{
    RAPT_SCOPE;
    rapt_column columns[] = {numbers()};
    rapt_loader *loader = loader_of(
        (rapt_loader_config){.columns = columns, .column_count = 1, .batch_size = 4, .shuffle = true, .seed = 7});
    const int64_t epochs[] = {0, 1, INT64_C(1) << 24, (INT64_C(1) << 24) + 1, INT64_C(1) << 25, (INT64_C(1) << 62) - 2};
    enum { count = sizeof epochs / sizeof *epochs };
    int64_t orders[count][2 * items];
    for (int i = 0; i < count; i++) {
        rapt_batch batch;
        rapt_loader_state state = {.epoch = epochs[i]};
        cr_assert(rapt_loader_set_state(loader, state), "%s", rapt_error());
        const int length = rest_of_epoch(loader, orders[i]);
        for (int k = 0; k < i; k++) cr_expect(memcmp(orders[i], orders[k], (size_t)length * sizeof **orders) != 0);
        cr_assert(rapt_loader_set_state(loader, state) && rapt_loader_next(loader, &batch), "%s", rapt_error());
        cr_assert(rapt_loader_get_state(loader, &state) && rapt_loader_set_state(loader, state), "%s", rapt_error());
        int64_t rest[2 * items];
        const int behind = rest_of_epoch(loader, rest);
        cr_expect_eq(memcmp(rest, orders[i] + length - behind, (size_t)behind * sizeof *rest), 0, "epoch %d", i);
    }
    rapt_loader_free(loader);
    expect_no_error();
}
