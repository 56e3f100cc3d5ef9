/* The batch loader: what comes in which order, padded and packed, ahead on a thread. */
#include "loader_columns.h"

#include <unistd.h>
#ifndef _WIN32
#include <sys/wait.h>
#endif

static bool has_every_item_once(const int64_t *list, int count)
{
    int seen[items] = {0};
    for (int i = 0; i < count; i++)
        if (list[i] >= 0) seen[list[i]]++;
    for (int i = 0; i < items; i++)
        if (seen[i] != 1) return false;
    return true;
}

Test(loader, in_order)
{
    RAPT_SCOPE;
    rapt_column column = numbers();
    rapt_loader *loader = loader_of((rapt_loader_config){.columns = &column, .column_count = 1, .batch_size = 5});
    int64_t list[2 * items];
    cr_expect_eq(rapt_loader_count_batches(loader), 5);
    for (int epoch = 0; epoch < 2; epoch++) {
        const int count = rest_of_epoch(loader, list);
        cr_expect_eq(count, items + 5);
        for (int i = 0; i < items; i++) cr_expect_eq(list[i + i / 5], i);
    }
    rapt_loader_free(loader);
    loader = loader_of(
        (rapt_loader_config){.columns = &column, .column_count = 1, .batch_size = 5, .drop_last = true, .prefetch = 2});
    cr_expect_eq(rapt_loader_count_batches(loader), 4);
    cr_expect_eq(rest_of_epoch(loader, list), 24);
    cr_expect_eq(rest_of_epoch(loader, list), 24);
    rapt_loader_free(loader);
    expect_no_error();
}

Test(loader, lets_go_of_its_columns)
{
    const int64_t before = rapt_memory_get_statistics().live_bytes;
    rapt_loader *loader;
    {
        RAPT_SCOPE;
        rapt_column columns[] = {numbers(), numbers()};
        loader = loader_of((rapt_loader_config){.columns = columns, .column_count = 2, .batch_size = 5});
    }
    cr_expect_gt(rapt_memory_get_statistics().live_bytes, before);
    rapt_loader_free(loader);
    cr_expect_eq(rapt_memory_get_statistics().live_bytes, before);
}

Test(loader, shuffled_by_seed)
{
    RAPT_SCOPE;
    rapt_column column = numbers();
    rapt_loader_config config = {.columns = &column, .column_count = 1, .batch_size = 4, .shuffle = true, .seed = 5};
    int64_t first[2][2 * items], again[2 * items];
    const rapt_random_state before = rapt_random_get_state();
    rapt_loader *loader = loader_of(config);
    for (int epoch = 0; epoch < 2; epoch++)
        cr_expect(has_every_item_once(first[epoch], rest_of_epoch(loader, first[epoch])));
    cr_expect_neq(memcmp(first[0], first[1], items * sizeof *again), 0);
    rapt_loader_free(loader);
    cr_expect_eq(rapt_random_get_state().offset, before.offset);
    for (config.prefetch = 0; config.prefetch < 4; config.prefetch += 3) {
        loader = loader_of(config);
        for (int epoch = 0; epoch < 2; epoch++) {
            const int count = rest_of_epoch(loader, again);
            cr_expect_eq(memcmp(first[epoch], again, (size_t)count * sizeof *again), 0, "epoch %d", epoch);
        }
        rapt_loader_free(loader);
    }
    config.seed = 6;
    loader = loader_of(config);
    rest_of_epoch(loader, again);
    cr_expect_neq(memcmp(first[0], again, items * sizeof *again), 0);
    rapt_loader_free(loader);
}

/* Without a seed the order is what rapt_randperm gives at the beginning of the epoch. */
Test(loader, shuffled_by_the_threads_generator)
{
    RAPT_SCOPE;
    rapt_column column = numbers();
    rapt_loader *loader =
        loader_of((rapt_loader_config){.columns = &column, .column_count = 1, .batch_size = items, .shuffle = true});
    rapt_seed(8);
    rapt_tensor *expected[] = {rapt_randperm(items), rapt_randperm(items)};
    rapt_seed(8);
    int64_t list[2 * items];
    for (int epoch = 0; epoch < 2; epoch++) {
        rest_of_epoch(loader, list);
        cr_expect_eq(memcmp(list, rapt_data(expected[epoch]), items * sizeof *list), 0);
    }
    rapt_loader_free(loader);
}

static void expect_sequence(const rapt_batch *batch, bool packed, int64_t i)
{
    const int64_t item = batch->items[i], length = 7 * item % 9, *numbers_of = rapt_data(batch->tensors[1]);
    const int64_t *rows = rapt_data(batch->tensors[0]), width = packed ? 0 : rapt_size(batch->tensors[0], 1);
    const int64_t first = packed ? numbers_of[i] : i * width;
    cr_expect_eq(packed ? numbers_of[i + 1] - first : numbers_of[i], length);
    for (int64_t j = 0; j < length; j++) cr_expect_eq(rows[first + j], item);
    for (int64_t j = length; j < width; j++) cr_expect_eq(rows[first + j], -1);
}

Test(loader, padded_and_packed)
{
    for (int packed = 0; packed < 2; packed++) {
        RAPT_SCOPE;
        rapt_column columns[] = {sequences(packed), numbers()};
        rapt_loader *loader = loader_of((rapt_loader_config){
            .columns = columns, .column_count = 2, .batch_size = 4, .shuffle = true, .seed = 1, .prefetch = packed});
        rapt_batch batch;
        int64_t seen = 0;
        for (; rapt_loader_next(loader, &batch); seen += batch.count) {
            cr_expect_eq(batch.first, seen);
            int64_t total = 0, longest = 0;
            for (int64_t i = 0; i < batch.count; i++) {
                const int64_t length = 7 * batch.items[i] % 9;
                total += length;
                longest = length > longest ? length : longest;
                expect_sequence(&batch, packed, i);
                cr_expect_eq(element(batch.tensors[2], i), (double)(10 * batch.items[i]));
            }
            cr_expect_eq(rapt_count(batch.tensors[0]), packed ? total : batch.count * longest);
            cr_expect_null(batch.tensors[3]);
        }
        cr_expect_eq(seen, items);
        rapt_loader_free(loader);
        expect_no_error();
    }
}

Test(loader, buckets_have_little_padding)
{
    RAPT_SCOPE;
    rapt_column columns[] = {sequences(false)};
    rapt_loader_config config = {.columns = columns, .column_count = 1, .batch_size = 4, .shuffle = true, .seed = 3};
    int64_t padded[2] = {0}, order[2][items];
    for (int sorted = 0; sorted < 2; sorted++) {
        config.bucket = sorted ? items : 0;
        rapt_loader *loader = loader_of(config);
        rapt_batch batch;
        int seen[items] = {0}, place = 0;
        while (rapt_loader_next(loader, &batch)) {
            padded[sorted] += rapt_count(batch.tensors[0]);
            for (int64_t i = 0; i < batch.count; i++) seen[order[sorted][place++] = batch.items[i]]++;
        }
        for (int i = 0; i < items; i++) cr_expect_eq(seen[i], 1);
        rapt_loader_free(loader);
    }
    cr_expect_lt(padded[1], 110); /* 92 numbers */
    cr_expect_gt(padded[0], 120);
    int64_t rises = 0; /* batches do not come by length */
    for (int i = 1; i < items; i++) rises += 7 * order[1][i] % 9 < 7 * order[1][i - 1] % 9;
    cr_expect_gt(rises, 0);
    expect_no_error();
}

Test(loader, most_tokens)
{
    for (int packed = 0; packed < 2; packed++) {
        RAPT_SCOPE;
        rapt_column columns[] = {sequences(packed)};
        rapt_loader *loader = loader_of((rapt_loader_config){.columns = columns,
                                                             .column_count = 1,
                                                             .most_tokens = 16,
                                                             .packed = packed,
                                                             .bucket = 8,
                                                             .shuffle = true,
                                                             .seed = 2});
        rapt_batch batch;
        int64_t seen = 0, batches = 0;
        for (; rapt_loader_next(loader, &batch); seen += batch.count, batches++)
            cr_expect(rapt_count(batch.tensors[0]) <= 16, "%d", (int)rapt_count(batch.tensors[0]));
        cr_expect_eq(seen, items);
        cr_expect_lt(batches, 12);
        rapt_loader_free(loader);
        expect_no_error();
    }
}

static bool make_numbers(void *context, rapt_batch *batch)
{
    (void)context;
    return (batch->tensors[0] = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(batch->count))) != NULL;
}

/* Lengths that sum to more than 64 bits count. */
Test(loader, most_tokens_of_the_longest_items)
{
    const int64_t lengths[] = {INT64_MAX, INT64_MAX, 1, INT64_MAX - 1};
    for (int packed = 0; packed < 2; packed++) {
        rapt_loader *loader = loader_of((rapt_loader_config){.items = 4,
                                                             .make = make_numbers,
                                                             .lengths = lengths,
                                                             .most_tokens = INT64_MAX,
                                                             .packed = packed});
        cr_expect_eq(rapt_loader_count_batches(loader), packed ? 3 : 4);
        rapt_loader_free(loader);
    }
    expect_no_error();
}

/* The item behind a batch would not have fitted. */
Test(loader, batches_of_most_tokens_are_full)
{
    enum { most = 16 };
    for (int packed = 0; packed < 2; packed++) {
        RAPT_SCOPE;
        rapt_column columns[] = {sequences(packed)};
        rapt_loader *loader = loader_of(
            (rapt_loader_config){.columns = columns, .column_count = 1, .most_tokens = most, .packed = packed});
        rapt_batch batch;
        int64_t count = 0, sum = 0, longest = 0;
        while (rapt_loader_next(loader, &batch)) {
            const int64_t next = 7 * batch.items[0] % 9, padded = (count + 1) * (next > longest ? next : longest);
            if (count > 0) cr_expect_gt(packed ? sum + next : padded, most, "before item %d", (int)batch.items[0]);
            count = batch.count;
            sum = longest = 0;
            for (int64_t i = 0; i < count; i++) {
                const int64_t length = 7 * batch.items[i] % 9;
                sum += length;
                longest = length > longest ? length : longest;
            }
        }
        rapt_loader_free(loader);
        expect_no_error();
    }
}

#ifndef _WIN32 /* which has no forks */
/* The child has no thread of the loader's, whatever that was doing at the fork. */
Test(loader, a_forked_child_gets_the_same_batches, .timeout = 60)
{
    RAPT_SCOPE;
    rapt_column column = numbers();
    rapt_loader *loader = loader_of((rapt_loader_config){
        .columns = &column, .column_count = 1, .batch_size = 2, .shuffle = true, .seed = 3, .prefetch = 2});
    int64_t expected[2 * items], found[2 * items];
    rapt_batch batch;
    cr_assert(rapt_loader_next(loader, &batch));
    const pid_t child = fork();
    cr_assert(child >= 0);
    if (child == 0) alarm(30);
    const int count = rest_of_epoch(loader, child == 0 ? found : expected);
    if (child == 0) {
        rapt_loader *alone = loader_of(
            (rapt_loader_config){.columns = &column, .column_count = 1, .batch_size = 2, .shuffle = true, .seed = 3});
        bool good = rapt_loader_next(alone, &batch) && rest_of_epoch(alone, expected) == count;
        for (int i = 0; i < count; i++) good = good && found[i] == expected[i];
        rapt_loader_free(alone);
        rapt_loader_free(loader);
        _exit(good ? 0 : 1);
    }
    int status = -1;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect_eq(status, 0);
    rapt_loader_free(loader);
}
#endif
