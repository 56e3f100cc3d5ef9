/* Scopes, shares and the caching allocator. */
#include "expect.h"

#include <pthread.h>

#include "tensor/core.h"
#include "tensor/memory.h"

static int64_t live(void)
{
    return rapt_memory_get_statistics().live_bytes;
}

static int64_t references(const rapt_tensor *tensor)
{
    return atomic_load(&tensor->references);
}

static rapt_tensor *small(void)
{
    return rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(3));
}

Test(memory, scope_drops_its_tensors)
{
    const int64_t before = live();
    rapt_scope scope = rapt_scope_begin();
    cr_expect_geq(scope, 0);
    for (int i = 0; i < 1000; i++) cr_assert_not_null(small());
    cr_expect_gt(live(), before);
    rapt_scope_end(scope);
    cr_expect_eq(live(), before);
}

Test(memory, outer_end_ends_forgotten_inner_ones)
{
    const int64_t before = live();
    rapt_scope outer = rapt_scope_begin();
    small();
    rapt_scope_begin();
    small();
    rapt_scope inner = rapt_scope_begin();
    small();
    rapt_scope_end(outer);
    cr_expect_eq(live(), before);
    rapt_scope_end(inner); /* over already: nothing happens */
    rapt_scope_end(-1);
    expect_no_error();
    cr_expect_eq(rapt_scope_begin(), outer);
    rapt_scope_end(outer);
}

static rapt_tensor *leave_by_return(void)
{
    RAPT_SCOPE;
    small();
    return rapt_keep(small());
}

Test(memory, block_scopes_end_however_the_block_is_left)
{
    const int64_t before = live();
    for (int i = 0; i < 10; i++) {
        RAPT_SCOPE;
        small();
        if (i % 2) continue;
        if (i == 8) break;
    }
    cr_expect_eq(live(), before);
    rapt_scope scope = rapt_scope_begin();
    rapt_tensor *kept = leave_by_return();
    cr_assert_not_null(kept);
    cr_expect_eq(references(kept), 1);
    cr_expect_eq(rapt_at(kept, (int64_t[]){2}), 0);
    const int64_t with_kept = live();
    small();
    cr_expect_eq((live() - before), 2 * (with_kept - before), "only the kept tensor was there");
    rapt_scope_end(scope);
    cr_expect_eq(live(), before);
}

Test(memory, keep_moves_one_scope_out)
{
    rapt_scope outer = rapt_scope_begin();
    rapt_tensor *from_outer = small();
    rapt_scope middle = rapt_scope_begin();
    rapt_scope inner = rapt_scope_begin();
    rapt_tensor *tensor = rapt_retain(small());
    cr_expect_eq(rapt_keep(tensor), tensor);
    cr_expect_eq(rapt_keep(from_outer), from_outer, "not of this scope: stays where it is");
    rapt_scope_end(inner);
    cr_expect_eq(references(tensor), 2);
    rapt_scope_end(middle);
    cr_expect_eq(references(tensor), 1);
    cr_expect_eq(references(from_outer), 1);
    rapt_scope_end(outer);
    rapt_release(tensor);
    cr_expect_null(rapt_keep(NULL));
}

Test(memory, keep_outside_any_scope_changes_nothing)
{
    rapt_tensor *tensor = small();
    cr_expect_eq(rapt_keep(tensor), tensor);
    cr_expect_eq(references(tensor), 1);
}

Test(memory, retained_tensors_outlive_scopes)
{
    const int64_t before = live();
    rapt_tensor *tensor;
    {
        RAPT_SCOPE;
        tensor = rapt_retain(rapt_full(RAPT_INT32, RAPT_SHAPE(2), 7));
    }
    cr_expect_eq(references(tensor), 1);
    cr_expect_eq(rapt_at(tensor, (int64_t[]){1}), 7);
    rapt_release(tensor);
    cr_expect_eq(live(), before);
    rapt_release(NULL);
    cr_expect_null(rapt_retain(NULL));
}

Test(memory, views_hold_the_storage)
{
    const int64_t before = live();
    rapt_tensor *view;
    {
        RAPT_SCOPE;
        rapt_tensor *base = rapt_arange(RAPT_INT64, 0, 6, 1);
        view = rapt_retain(rapt_new_view(base, base->data + 8, 1, (int64_t[]){2}, (int64_t[]){2}));
        cr_expect_not(rapt_is_unique(base));
    }
    cr_expect(rapt_is_unique(view));
    cr_expect_eq(rapt_at(view, (int64_t[]){1}), 3);
    rapt_release(view);
    cr_expect_eq(live(), before);
}

/* Either of two tensors outlives the one whose block its elements are in. */
Test(memory, exchanged_tensors_outlive_each_other)
{
    const int64_t before = live();
    for (int first = 0; first < 2; first++) {
        rapt_tensor *pair[2];
        {
            RAPT_SCOPE;
            pair[0] = rapt_retain(rapt_full(RAPT_INT32, RAPT_SHAPE(3), 1));
            pair[1] = rapt_retain(rapt_full(RAPT_INT32, RAPT_SHAPE(3), 2));
            rapt_exchange(pair[0], pair[1]);
        }
        cr_expect(rapt_is_unique(pair[0]) && rapt_is_unique(pair[1]));
        rapt_release(pair[first]);
        {
            RAPT_SCOPE; /* what would overwrite a block that is gone */
            for (int i = 0; i < 4; i++) rapt_full(RAPT_INT32, RAPT_SHAPE(3), 9);
        }
        cr_expect_eq(rapt_at(pair[1 - first], (int64_t[]){2}), first + 1);
        rapt_release(pair[1 - first]);
        cr_expect_eq(live(), before);
    }
}

static int released;

static void count_release(void *owner)
{
    released += *(int *)owner;
}

Test(memory, foreign_memory_is_given_back_once)
{
    float numbers[] = {1, 2, 3, 4};
    int weight = 1;
    {
        RAPT_SCOPE;
        rapt_tensor *tensor = rapt_new_foreign("test", RAPT_FLOAT32, RAPT_SHAPE(2, 2), numbers, count_release, &weight);
        rapt_tensor *alias = rapt_new_alias(tensor, true);
        cr_expect_eq(rapt_at(alias, (int64_t[]){1, 0}), 3);
        cr_expect_eq(released, 0);
    }
    cr_expect_eq(released, 1);
}

static void make_tensors(void *owner)
{
    (void)owner;
    for (int i = 0; i < 200; i++) rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(100));
    released++;
}

Test(memory, what_is_made_while_a_scope_ends_goes_with_it)
{
    float number = 1;
    released = 0;
    for (int round = 0; round < 3; round++) {
        RAPT_SCOPE;
        rapt_tensor *kept;
        const int64_t before = rapt_memory_get_statistics().live_bytes;
        {
            RAPT_SCOPE;
            rapt_new_foreign("test", RAPT_FLOAT32, RAPT_SHAPE(1), &number, make_tensors, NULL);
            kept = rapt_keep(rapt_full(RAPT_FLOAT32, RAPT_SHAPE(1), 2));
            rapt_new_foreign("test", RAPT_FLOAT32, RAPT_SHAPE(1), &number, make_tensors, NULL);
        }
        cr_expect_eq(released, 2 * round + 2);
        cr_expect_eq(rapt_item(kept), 2);
        cr_expect_lt(rapt_memory_get_statistics().live_bytes - before, 100 * 4);
    }
}

/* What a training step does with memory, in small. */
static void step(void)
{
    RAPT_SCOPE;
    rapt_tensor *sum = rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(100, 100));
    for (int64_t i = 1; i < 40; i++) {
        RAPT_SCOPE;
        rapt_tensor *part = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(i, 1, 1));
        rapt_tensor *large = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(1 + i * i * 10, 3));
        rapt_add_in_place(large, rapt_clone(large), 1);
        rapt_add_in_place(sum, rapt_full(RAPT_FLOAT64, RAPT_SHAPE(100), rapt_at(part, (int64_t[]){0, 0, 0})), 2);
    }
}

Test(memory, steady_steps_ask_the_system_for_nothing)
{
    step();
    const int64_t allocations = rapt_memory_get_statistics().system_allocations;
    cr_expect_gt(allocations, 0);
    for (int i = 0; i < 20; i++) step();
    cr_expect_eq(rapt_memory_get_statistics().system_allocations, allocations);
    expect_no_error();
}

/* A step with a batch whose longest sequence has that length. */
static void step_of(int64_t length)
{
    RAPT_SCOPE;
    for (int64_t layer = 0; layer < 8; layer++) {
        cr_assert_not_null(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(8, length, 24)));
        cr_assert_not_null(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(8, length, length)));
    }
}

/* Else memory would grow whenever a batch comes whose sizes none had before. */
Test(memory, shorter_batches_find_room_in_what_longer_ones_gave_back)
{
    step_of(80);
    const int64_t allocations = rapt_memory_get_statistics().system_allocations;
    for (int64_t length = 79; length >= 60; length--) step_of(length);
    step_of(80);
    cr_expect_eq(rapt_memory_get_statistics().system_allocations, allocations);
    expect_no_error();
}

/* What is counted is what was asked for. */
Test(memory, blocks_that_are_larger_than_asked_for_come_back_whole)
{
    const int64_t before = live();
    size_t large, small, third, again;
    char *block = rapt_block_take("test", 100000, &large), *other = rapt_block_take("test", 40000, &small);
    const int64_t allocations = rapt_memory_get_statistics().system_allocations;
    rapt_block_give(block, large);
    char *part = rapt_block_take("test", 70000, &third);
    cr_expect_eq(part, block);
    cr_expect_geq(third, 70000);
    cr_expect_lt(live() - before - (int64_t)small, 90000);
    cr_expect_eq((size_t)(live() - before) / 64, (small + third) / 64);
    rapt_block_give(part, third);
    char *whole = rapt_block_take("test", 100000, &again);
    cr_expect(whole == block && again == large, "it is as large as it was");
    rapt_block_give(whole, again);
    cr_expect_eq(rapt_memory_get_statistics().system_allocations, allocations);
    char *tenth = rapt_block_take("test", 10000, &third);
    cr_expect(tenth != block, "what is a tenth as large leaves it alone");
    rapt_block_give(tenth, third);
    rapt_block_give(other, small);
    cr_expect_eq(live(), before);
}

Test(memory, counters)
{
    const int64_t before = live();
    rapt_memory_reset_peak();
    cr_expect_eq(rapt_memory_get_statistics().peak_bytes, before);
    rapt_scope scope = rapt_scope_begin();
    rapt_zeros(RAPT_UINT8, RAPT_SHAPE(1000000));
    const int64_t with = live();
    cr_expect_geq(with - before, 1000000);
    cr_expect_leq(with - before, 1400000);
    rapt_scope_end(scope);
    cr_expect_eq(live(), before);
    cr_expect_eq(rapt_memory_get_statistics().peak_bytes, with);
    cr_expect_geq(rapt_memory_get_statistics().cached_bytes, 1000000);
    rapt_memory_trim();
    cr_expect_eq(rapt_memory_get_statistics().cached_bytes, 0);
}

Test(memory, every_size_class_holds_what_was_asked)
{
    for (size_t bytes = 0; bytes < 3000; bytes++) {
        size_t capacity, again;
        char *block = rapt_block_take("test", bytes, &capacity);
        cr_assert_not_null(block);
        cr_assert_eq((uintptr_t)block % 64, 0);
        cr_assert_geq(capacity, bytes);
        cr_assert_leq(capacity, bytes + bytes / 4 + 64);
        memset(block, 0xa5, capacity);
        rapt_block_give(block, capacity);
        char *same = rapt_block_take("test", capacity, &again);
        cr_assert_eq(same, block, "a block given back is the next one of its size");
        cr_assert_eq(again, capacity);
        rapt_block_give(same, again);
    }
    for (int bit = 12; bit < 30; bit++) {
        for (int64_t near = -1; near <= 1; near++) {
            size_t capacity;
            const size_t bytes = (size_t)(((int64_t)1 << bit) + near);
            void *block = rapt_block_take("test", bytes, &capacity);
            cr_assert_not_null(block);
            cr_assert_geq(capacity, bytes);
            cr_assert_leq(capacity, bytes + bytes / 4 + 64);
            rapt_block_give(block, capacity);
        }
        rapt_memory_trim();
    }
}

Test(memory, too_much_is_an_error)
{
    cr_expect_null(rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(SIZE_MAX / 32)));
    expect_error(RAPT_ERROR_MEMORY, "zeros: no memory for");
    cr_expect_null(rapt_empty(RAPT_FLOAT32, RAPT_SHAPE((int64_t)1 << 40, (int64_t)1 << 40)));
    expect_error(RAPT_ERROR_MEMORY, "[1099511627776, 1099511627776]");
}

/* Some calls that allocate; what they change in place starts at 1. */
static bool work(rapt_tensor *tensor)
{
    RAPT_SCOPE;
    rapt_tensor *scaled = rapt_clone(tensor);
    return scaled && rapt_scale_in_place(scaled, 2) && rapt_copy(scaled, rapt_eye(RAPT_FLOAT64, 3)) &&
           rapt_arange(RAPT_INT64, 0, 10, 1) && rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, 2)) && rapt_randperm(5) &&
           rapt_new_alias(tensor, true) && rapt_linspace(RAPT_FLOAT32, 0, 1, 7) && rapt_rand(RAPT_FLOAT64, 0, NULL);
}

Test(memory, running_out_leaves_things_as_they_were)
{
    rapt_tensor *tensor = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3, 3));
    const int64_t before = live();
    int64_t failures = 0;
    for (bool done = false; !done; failures++) {
        rapt_memory_fail_after(failures);
        done = work(tensor);
        rapt_memory_fail_after(-1);
        cr_assert_eq(live(), before, "after failure %lld", (long long)failures);
        cr_assert_eq(references(tensor), 1);
        if (!done) expect_error(RAPT_ERROR_MEMORY, "no memory");
    }
    expect_no_error();
    cr_expect_gt(failures, 8); /* each of them makes a tensor */
    cr_expect_eq(rapt_at(tensor, (int64_t[]){2, 2}), 1);
}

static void *run_steps(void *argument)
{
    for (int i = 0; i < 20; i++) step();
    *(rapt_tensor **)argument = rapt_retain(rapt_full(RAPT_FLOAT32, RAPT_SHAPE(1000), 5));
    small(); /* of no scope: goes with the thread */
    rapt_scope_begin();
    small(); /* of a forgotten scope */
    return rapt_error() ? NULL : argument;
}

Test(memory, threads)
{
    enum { count = 4 };
    const int64_t before = live();
    pthread_t threads[count];
    rapt_tensor *results[count];
    for (int i = 0; i < count; i++) cr_assert_eq(pthread_create(&threads[i], NULL, run_steps, &results[i]), 0);
    for (int i = 0; i < count; i++) {
        void *fine;
        pthread_join(threads[i], &fine);
        cr_expect_not_null(fine);
    }
    for (int i = 0; i < count; i++) {
        cr_expect_eq(rapt_at(results[i], (int64_t[]){999}), 5);
        rapt_release(results[i]);
    }
    cr_expect_eq(live(), before);
    rapt_memory_trim();
    cr_expect_eq(rapt_memory_get_statistics().cached_bytes, 0);
}
