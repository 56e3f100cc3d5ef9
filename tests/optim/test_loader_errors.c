/* The batch loader after failures and wrong uses: an error, no batch is lost, nothing stays behind. */
#include "loader_columns.h"

#include <unistd.h>

#include "tensor/debug.h"
#include "tensor/memory.h"

static bool make(void *context, rapt_batch *batch)
{
    int *fails = context;
    if (batch->first == 4 && (*fails)-- > 0) {
        if (*fails == 0) return false;
        return rapt_fail(RAPT_ERROR_FILE, "reader", "row %d is gone", 4);
    }
    batch->tensors[0] = rapt_full(RAPT_FLOAT32, RAPT_SHAPE(batch->count), 1);
    return batch->tensors[0];
}

/* A loader whose next batch fails so many times. */
static rapt_loader *loader_at_failure(int *fails, int prefetch)
{
    rapt_loader *loader = loader_of(
        (rapt_loader_config){.items = 7, .make = make, .context = fails, .batch_size = 2, .prefetch = prefetch});
    rapt_batch batch;
    for (int i = 0; i < 2; i++) cr_assert(rapt_loader_next(loader, &batch));
    return loader;
}

Test(loader_errors, errors_of_the_function_come_through_and_the_batch_is_tried_again)
{
    for (int prefetch = 0; prefetch < 3; prefetch++) {
        RAPT_SCOPE;
        int fails = 2;
        rapt_loader *loader = loader_at_failure(&fails, prefetch);
        rapt_batch batch;
        cr_expect_not(rapt_loader_next(loader, &batch));
        cr_expect_str_eq(rapt_error(), "reader: row 4 is gone");
        expect_error(RAPT_ERROR_FILE, "row 4");
        cr_expect_not(rapt_loader_next(loader, &batch));
        expect_error(RAPT_ERROR_VALUE, "the function that makes batches failed");
        cr_assert(rapt_loader_next(loader, &batch), "%s", rapt_error());
        cr_expect_eq(batch.first, 4);
        cr_assert(rapt_loader_next(loader, &batch));
        cr_expect_eq(batch.count, 1);
        cr_expect_not(rapt_loader_next(loader, &batch));
        expect_no_error();
        rapt_loader_free(loader);
    }
}

/* They say where memory is read. */
Test(loader_errors, starts_may_change_behind_the_loader)
{
    RAPT_SCOPE;
    rapt_tensor *values = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(6));
    rapt_tensor *starts = rapt_from(RAPT_INT64, RAPT_SHAPE(3), (int64_t[]){0, 2, 6});
    rapt_column columns[] = {{.values = values, .starts = starts}};
    rapt_loader *loader = loader_of((rapt_loader_config){.columns = columns, .column_count = 1, .batch_size = 2});
    cr_assert(rapt_set_at_int64(starts, (int64_t[]){2}, 100000000));
    rapt_batch batch;
    cr_assert(rapt_loader_next(loader, &batch), "%s", rapt_error());
    cr_expect_eq(rapt_shape(batch.tensors[0])[1], 4);
    rapt_loader_free(loader);
}

/* An op that fails, of which the function takes no notice. */
static bool make_in_part(void *context, rapt_batch *batch)
{
    (void)context;
    batch->tensors[0] = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1));
    batch->tensors[1] = rapt_reshape(batch->tensors[0], RAPT_SHAPE(batch->first == 1 ? 7 : 1));
    return true;
}

Test(loader_errors, an_error_left_behind_is_heard_of)
{
    for (int prefetch = 0; prefetch < 3; prefetch++) {
        RAPT_SCOPE;
        rapt_loader *loader =
            loader_of((rapt_loader_config){.items = 3, .make = make_in_part, .batch_size = 1, .prefetch = prefetch});
        rapt_batch batch;
        cr_assert(rapt_loader_next(loader, &batch) && batch.tensors[1], "%s", rapt_error());
        for (int i = 0; i < 2; i++) { /* it is tried again, and fails again */
            cr_expect_not(rapt_loader_next(loader, &batch));
            expect_error(RAPT_ERROR_SHAPE, "reshape: 1 elements");
        }
        rapt_loader_free(loader);
    }
}

static int handled;

static void count_errors(rapt_error_code code, const char *message)
{
    (void)code, (void)message;
    handled++;
}

/* Errors of batches that are made ahead are heard of when those are asked for, once. */
Test(loader_errors, a_handler_hears_of_an_error_when_its_batch_is_asked_for)
{
    for (int prefetch = 0; prefetch < 3; prefetch++) {
        int fails = 2;
        rapt_error_handler *before = rapt_on_error(count_errors);
        rapt_loader *loader = loader_at_failure(&fails, prefetch);
        rapt_batch batch;
        for (int i = 0; prefetch > 0 && i < 20; i++) usleep(1000);
        cr_expect_eq(handled, 0, "prefetch %d: %d", prefetch, handled);
        cr_expect_not(rapt_loader_next(loader, &batch));
        cr_expect_eq(handled, 1, "prefetch %d: %d", prefetch, handled);
        rapt_on_error(before);
        expect_error(RAPT_ERROR_FILE, "row 4");
        handled = 0;
        rapt_loader_free(loader);
    }
}

/* Not before, when the cause of the error may still be there. */
Test(loader_errors, what_failed_is_tried_again_when_it_is_asked_for)
{
    for (int prefetch = 0; prefetch < 3; prefetch++) {
        RAPT_SCOPE;
        int fails = 1000;
        rapt_loader *loader = loader_at_failure(&fails, prefetch);
        rapt_batch batch;
        cr_expect_not(rapt_loader_next(loader, &batch));
        for (int i = 0; prefetch > 0 && i < 20; i++) usleep(1000);
        fails = 0;
        cr_assert(rapt_loader_next(loader, &batch), "prefetch %d: %s", prefetch, rapt_error());
        cr_expect_eq(batch.first, 4);
        rapt_clear_error();
        rapt_loader_free(loader);
    }
}

/* Of two tensors the scope of one has ended. */
static bool make_one_in_a_scope(void *context, rapt_batch *batch)
{
    const int gone = *(const int *)context;
    batch->tensors[!gone] = rapt_full(RAPT_FLOAT32, RAPT_SHAPE(batch->count), 1);
    RAPT_SCOPE;
    batch->tensors[gone] = rapt_full(RAPT_FLOAT32, RAPT_SHAPE(batch->count), 2);
    return batch->tensors[gone];
}

Test(loader_errors, in_debug_mode_a_tensor_whose_scope_ended_is_an_error)
{
    rapt_debugging = true;
    const int64_t before = rapt_memory_get_statistics().live_bytes;
    for (int prefetch = 0; prefetch < 2; prefetch++)
        for (int gone = 0; gone < 2; gone++) {
            rapt_loader *loader = loader_of((rapt_loader_config){.items = 4,
                                                                 .make = make_one_in_a_scope,
                                                                 .context = &gone,
                                                                 .batch_size = 2,
                                                                 .prefetch = prefetch});
            for (int i = 0; i < 2; i++) {
                rapt_batch batch = {0};
                cr_expect_not(rapt_loader_next(loader, &batch));
                cr_expect_null(batch.items);
                expect_error(RAPT_ERROR_GONE, gone ? "loader: tensor 1 of the batch is gone: float32 [2], made by full"
                                                   : "loader: tensor 0 of the batch is gone");
            }
            rapt_loader_free(loader);
            cr_expect_eq(rapt_memory_get_statistics().live_bytes, before);
        }
}

static bool change_batch(void *context, rapt_batch *batch)
{
    batch->count += *(const int64_t *)context;
    batch->first = batch->epoch = -5;
    batch->items = NULL;
    batch->tensors[0] = rapt_scalar(RAPT_FLOAT32, 7);
    return true;
}

Test(loader_errors, the_function_gives_tensors_alone)
{
    for (int prefetch = 0; prefetch < 2; prefetch++)
        for (int64_t more = -2; more < 9; more += 5) {
            RAPT_SCOPE;
            rapt_loader *loader = loader_of((rapt_loader_config){.items = 5,
                                                                 .make = change_batch,
                                                                 .context = &more,
                                                                 .batch_size = 2,
                                                                 .prefetch = prefetch});
            rapt_batch batch;
            for (int i = 0; i < 3; i++) {
                cr_assert(rapt_loader_next(loader, &batch), "%s", rapt_error());
                cr_expect(batch.epoch == 0 && batch.first == 2 * i && batch.count == (i < 2 ? 2 : 1));
                cr_expect_eq(batch.items[0], 2 * i);
                cr_expect_eq(rapt_item(batch.tensors[0]), 7);
            }
            cr_expect_not(rapt_loader_next(loader, &batch));
            rapt_loader_free(loader);
        }
    expect_no_error();
}

Test(loader_errors, out_of_memory_loses_no_batch)
{
    for (int prefetch = 0; prefetch < 2; prefetch++) {
        RAPT_SCOPE;
        rapt_column columns[] = {numbers(), sequences(false)};
        rapt_loader *loader = loader_of((rapt_loader_config){
            .columns = columns, .column_count = 2, .batch_size = 4, .shuffle = true, .seed = 1, .prefetch = prefetch});
        rapt_batch batch;
        int64_t seen = 0, failures = 0;
        for (int64_t after = 0; seen < items; after++) {
            rapt_memory_fail_after(after);
            const bool good = rapt_loader_next(loader, &batch);
            rapt_memory_fail_after(-1);
            if (good) {
                cr_expect_eq(batch.first, seen);
                seen += batch.count;
                after = -1;
            } else {
                expect_error(RAPT_ERROR_MEMORY, "no memory");
                failures++;
            }
            cr_assert_lt(failures, 1000);
        }
        cr_expect_gt(failures, 0);
        rapt_loader_free(loader);
        expect_no_error();
    }
}

static rapt_loader *in_buckets(void)
{
    rapt_column columns[] = {numbers(), sequences(false)};
    return loader_of(
        (rapt_loader_config){.columns = columns, .column_count = 2, .batch_size = 4, .shuffle = true, .bucket = 8});
}

/* Both orders are drawn anew, that of the items and that of the batches. */
Test(loader_errors, out_of_memory_draws_no_numbers)
{
    RAPT_SCOPE;
    rapt_batch batch;
    rapt_loader *expected = in_buckets(), *loader = in_buckets();
    rapt_seed(8);
    int64_t order[4], failures = 0;
    cr_assert(rapt_loader_next(expected, &batch));
    memcpy(order, batch.items, sizeof order);
    rapt_seed(8);
    for (bool good = false; !good && failures < 1000; failures += !good) {
        rapt_memory_fail_after(failures);
        good = rapt_loader_next(loader, &batch);
        rapt_memory_fail_after(-1);
        if (!good) expect_error(RAPT_ERROR_MEMORY, "no memory");
    }
    cr_expect(failures >= 2 && memcmp(order, batch.items, sizeof order) == 0, "%lld failures", (long long)failures);
    rapt_loader_free(expected);
    rapt_loader_free(loader);
    expect_no_error();
}

Test(loader_errors, nothing_stays_behind)
{
    RAPT_SCOPE;
    rapt_column columns[] = {numbers(), sequences(true)};
    const int64_t before = rapt_memory_get_statistics().live_bytes;
    rapt_loader *loader = loader_of(
        (rapt_loader_config){.columns = columns, .column_count = 2, .batch_size = 2, .shuffle = true, .prefetch = 3});
    rapt_batch batch;
    for (int i = 0; i < 3; i++) cr_assert(rapt_loader_next(loader, &batch));
    rapt_tensor *kept = rapt_retain(batch.tensors[0]);
    rapt_loader_free(loader);
    cr_expect_eq(rapt_count(kept), 2);
    rapt_release(kept);
    cr_expect_lt(rapt_memory_get_statistics().live_bytes - before, 65536);
    expect_no_error();
}

static void expect_refusal(rapt_loader_config config, rapt_error_code code, const char *part)
{
    cr_expect_null(rapt_loader_new(&config), "%s", part);
    expect_error(code, part);
}

Test(loader_errors, wrong_uses)
{
    RAPT_SCOPE;
    int fails = 0;
    rapt_column one[] = {numbers()}, two[] = {numbers(), {.values = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(3, 2))}};
    rapt_column bad[] = {sequences(false)};
    const rapt_loader_config good = {.columns = one, .column_count = 1, .batch_size = 2};
    rapt_loader_config c = good;
    cr_expect_null(rapt_loader_new(NULL));
    expect_error(RAPT_ERROR_NULL, "config is NULL");
    expect_refusal((rapt_loader_config){.items = 3, .batch_size = 1}, RAPT_ERROR_NULL,
                   "neither columns nor a function that makes batches");
    expect_refusal((rapt_loader_config){.make = make, .context = &fails, .batch_size = 1}, RAPT_ERROR_VALUE, "0 items");
    expect_refusal((rapt_loader_config){.items = INT64_MAX, .make = make, .context = &fails, .batch_size = 1},
                   RAPT_ERROR_VALUE, "9223372036854775807 items; 1 to 2^48 expected");
    c.make = make;
    expect_refusal(c, RAPT_ERROR_VALUE, "both columns and a function");
    c = good, c.batch_size = 0;
    expect_refusal(c, RAPT_ERROR_VALUE, "neither a batch size nor");
    c = good, c.batch_size = -1;
    expect_refusal(c, RAPT_ERROR_VALUE, "batch size -1");
    c = good, c.bucket = 4;
    expect_refusal(c, RAPT_ERROR_NULL, "need lengths");
    c = good, c.drop_last = true, c.batch_size = 24;
    expect_refusal(c, RAPT_ERROR_VALUE, "23 items are no batch of 24");
    c = good, c.lengths = (int64_t[items]){0, -3};
    expect_refusal(c, RAPT_ERROR_VALUE, "the length of item 1 is -3");
    c = good, c.columns = two, c.column_count = 2;
    expect_refusal(c, RAPT_ERROR_SHAPE, "column 1 has 3 items; 23 expected");
    c = good, c.column_count = 99;
    expect_refusal(c, RAPT_ERROR_VALUE, "99 columns");
    c = good, c.packed = true;
    expect_refusal(c, RAPT_ERROR_VALUE, "none of the 1 columns is packed");
    c = good, one->packed = true;
    expect_refusal(c, RAPT_ERROR_NULL, "column 0 is packed, which needs starts");
    one->packed = false;
    c = good, c.columns = bad, bad->padding = -0.5;
    expect_refusal(c, RAPT_ERROR_VALUE, "the padding of column 0, -0.5, is no int64");
    bad->padding = 0;
    bad->starts = rapt_from(RAPT_INT64, RAPT_SHAPE(3), (int64_t[]){0, 5, 4});
    expect_refusal(c, RAPT_ERROR_VALUE, "start 2 of column 0 is 4");
    bad->starts = rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){0, 5});
    expect_refusal(c, RAPT_ERROR_VALUE, "the last start of column 0 is 5");
    bad->starts = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2));
    expect_refusal(c, RAPT_ERROR_SHAPE, "int64 (items + 1) expected");
    bad->values = NULL;
    expect_refusal(c, RAPT_ERROR_NULL, "the values of column 0");
    rapt_loader *loader = loader_of(good);
    cr_expect_not(rapt_loader_set_state(loader, (rapt_loader_state){.next = items + 1}));
    expect_error(RAPT_ERROR_VALUE, "item 24");
    cr_expect_not(rapt_loader_next(loader, NULL));
    expect_error(RAPT_ERROR_NULL, "batch is NULL");
    cr_expect_not(rapt_loader_next(NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "loader is NULL");
    cr_expect_eq(rapt_loader_count_batches(NULL), -1);
    expect_error(RAPT_ERROR_NULL, "loader is NULL");
    rapt_loader_free(loader);
    rapt_loader_free(NULL);
}

/* It would give some items twice and others never. */
Test(loader_errors, a_state_within_an_epoch_of_another_seed_is_refused)
{
    RAPT_SCOPE;
    rapt_column column = numbers();
    rapt_loader_config config = {.columns = &column, .column_count = 1, .batch_size = 4, .shuffle = true, .seed = 5};
    rapt_loader *loader = loader_of(config);
    config.seed = 6;
    rapt_loader *other = loader_of(config);
    config.shuffle = false;
    rapt_loader *in_order = loader_of(config);
    rapt_batch batch;
    rapt_loader_state state, kept;
    cr_assert(rapt_loader_get_state(loader, &state));
    cr_expect(rapt_loader_set_state(other, state), "the order is not drawn yet");
    cr_assert(rapt_loader_next(loader, &batch) && rapt_loader_next(other, &batch));
    cr_assert(rapt_loader_get_state(loader, &state) && rapt_loader_get_state(other, &kept));
    cr_expect_not(rapt_loader_set_state(other, state));
    expect_error(RAPT_ERROR_VALUE, "drawn from seed 5 and offset 0; seed 6 and offset 0 expected");
    kept.epoch = 1;
    cr_expect_not(rapt_loader_set_state(other, kept));
    expect_error(RAPT_ERROR_VALUE, "seed 6 and offset 1099511627776 expected");
    cr_expect(rapt_loader_set_state(in_order, state), "which has one order alone");
    cr_assert(rapt_loader_next(other, &batch), "%s", rapt_error());
    cr_expect_eq(batch.first, 4, "nothing was changed");
    rapt_loader_free(loader), rapt_loader_free(other), rapt_loader_free(in_order);
    expect_no_error();
}
