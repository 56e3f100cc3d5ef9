/* Values from module to module, to snapshots and into averages. */
#include "module_tree.h"

static rapt_module *seeded(uint64_t seed)
{
    rapt_seed(seed);
    return tree_new();
}

Test(module_copy, copies_all_values)
{
    RAPT_SCOPE;
    rapt_module *a = seeded(1), *b = seeded(2);
    rapt_tensor *inner = rapt_module_find(b, "inner");
    rapt_fill(rapt_module_find(a, "steps"), 7);
    cr_expect_not(same_module(a, b));
    cr_expect(rapt_module_copy(b, a), "%s", rapt_error());
    cr_expect(same_module(a, b));
    cr_expect_eq(rapt_module_find(b, "inner"), inner);
    cr_expect(rapt_module_copy(a, a));
    cr_expect(same_module(a, b));
    rapt_module_free(a);
    rapt_module_free(b);
    expect_no_error();
}

Test(module_copy, another_structure_is_an_error_and_changes_nothing)
{
    rapt_module *a = seeded(1), *same = seeded(1), *b = node_new(), *single = seeded(2);
    cr_expect_not(rapt_module_copy(a, b));
    expect_error(RAPT_ERROR_FORMAT, "module_copy: no tensor weight");
    cr_expect_not(rapt_module_copy(b, a));
    expect_error(RAPT_ERROR_FORMAT, "module_copy: there are 6 tensors that the module has not, such as ");
    rapt_module_cast(single, RAPT_FLOAT64);
    cr_expect_not(rapt_module_copy(a, single));
    expect_error(RAPT_ERROR_SHAPE, "float64");
    cr_expect_not(rapt_module_copy(NULL, b));
    expect_error(RAPT_ERROR_NULL, "target");
    cr_expect_not(rapt_module_copy(a, NULL));
    expect_error(RAPT_ERROR_NULL, "source");
    cr_expect(same_module(a, same));
    rapt_module_free(a);
    rapt_module_free(same);
    rapt_module_free(b);
    rapt_module_free(single);
}

Test(module_copy, a_snapshot_brings_the_best_weights_back)
{
    const int64_t before = live_bytes();
    rapt_module *a = seeded(1), *same = seeded(1);
    rapt_archive *best = rapt_module_snapshot(a);
    cr_assert_not_null(best, "%s", rapt_error());
    cr_expect_eq(rapt_archive_count(best), 6);
    for (int64_t i = 0; i < 6; i++) cr_expect_not(rapt_requires_gradient(rapt_archive_tensor(best, i)));
    draw_parameters(a);
    rapt_fill(rapt_module_find(a, "steps"), 3);
    cr_expect_not(same_module(a, same));
    cr_expect(rapt_module_from_archive(a, NULL, best));
    cr_expect(same_module(a, same));
    rapt_archive_free(best);
    cr_expect_null(rapt_module_snapshot(NULL));
    expect_error(RAPT_ERROR_NULL, "module");
    rapt_module_free(a);
    rapt_module_free(same);
    cr_expect_eq(live_bytes(), before);
}

/* Against the sum written out: average after n steps of a weight w_t = t is Σ (1 − d) d^(n − t) t, from 0. */
Test(module_copy, exponential_averages)
{
    RAPT_SCOPE;
    rapt_module *node = node_new();
    rapt_tensor *weight = rapt_module_add_parameter(node, "weight", rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(3)));
    rapt_tensor *steps = rapt_module_add_buffer(node, "steps", rapt_zeros(RAPT_INT64, RAPT_SHAPE(1)));
    rapt_archive *averages = rapt_module_snapshot(node);
    double expected = 0;
    for (int t = 1; t <= 10; t++) {
        rapt_fill(weight, t);
        rapt_fill(steps, t);
        cr_expect(rapt_module_average(node, averages, 0.9), "%s", rapt_error());
        expected += 0.1 * pow(0.9, 10 - t) * t;
    }
    expect_values("average", rapt_archive_find(averages, "weight"), 3, (double[]){expected, expected, expected}, 1e-15);
    cr_expect_eq(rapt_item(rapt_archive_find(averages, "steps")), 10, "what is not floating is copied");
    cr_expect_eq(rapt_at(weight, (int64_t[]){2}), 10, "the module is as it was");
    rapt_archive_free(averages);
    rapt_module_free(node);
    expect_no_error();
}

Test(module_copy, means_and_copies)
{
    RAPT_SCOPE;
    rapt_module *node = node_new();
    rapt_tensor *weight = rapt_module_add_parameter(node, "weight", rapt_full(RAPT_FLOAT64, 0, NULL, NAN));
    rapt_archive *averages = rapt_module_snapshot(node);
    const rapt_tensor *average = rapt_archive_find(averages, "weight");
    for (int n = 0; n < 4; n++) {
        rapt_fill(weight, n * n);
        cr_expect(rapt_module_average(node, averages, n / (n + 1.0)));
    }
    cr_expect_float_eq(rapt_item(average), (0 + 1 + 4 + 9) / 4.0, 1e-15);
    rapt_fill(weight, NAN);
    cr_expect(rapt_module_average(node, averages, 1));
    cr_expect_float_eq(rapt_item(average), 3.5, 1e-15, "nothing of the new values");
    rapt_archive_free(averages);
    rapt_module_free(node);
}

/* 2⁻¹⁰ · 2³⁰ + (1 − 2⁻¹⁰) · 1.5; of 1.5 nothing was left beside 2³⁰. */
Test(module_copy, averages_of_little_decay_keep_small_values)
{
    RAPT_SCOPE;
    rapt_module *node = node_new();
    rapt_tensor *weight = rapt_module_add_parameter(node, "weight", rapt_full(RAPT_FLOAT32, 0, NULL, 0x1p30));
    rapt_archive *averages = rapt_module_snapshot(node);
    rapt_fill(weight, 1.5);
    cr_expect(rapt_module_average(node, averages, 0x1p-10));
    cr_expect_eq(rapt_item(rapt_archive_find(averages, "weight")), (double)(float)(0x1p20 + 1.5 * (1 - 0x1p-10)));
    rapt_fill(weight, (double)INFINITY);
    cr_expect(rapt_module_average(node, averages, 0.5));
    cr_expect_eq(rapt_item(rapt_archive_find(averages, "weight")), (double)INFINITY);
    rapt_archive_free(averages);
    rapt_module_free(node);
}

Test(module_copy, averages_of_values_that_do_not_change_stay)
{
    RAPT_SCOPE;
    rapt_module *a = seeded(1);
    rapt_set_at(rapt_module_find(a, "weight"), (const int64_t[]){0, 0}, -(double)INFINITY);
    rapt_archive *averages = rapt_module_snapshot(a);
    for (int n = 1; n <= 100; n++)
        cr_expect(rapt_module_average(a, averages, 0.9) && rapt_module_average(a, averages, n / (n + 1.0)));
    cr_expect(same_bits(rapt_archive_find(averages, "weight"), rapt_module_find(a, "weight")));
    rapt_archive_free(averages);
    rapt_module_free(a);
}

Test(module_copy, averages_allocate_nothing_from_the_second_step_on)
{
    rapt_module *a = seeded(1);
    rapt_archive *averages = rapt_module_snapshot(a);
    cr_expect(rapt_module_average(a, averages, 0.5));
    const int64_t before = rapt_memory_get_statistics().system_allocations;
    for (int i = 0; i < 10; i++) cr_expect(rapt_module_average(a, averages, 0.5));
    cr_expect_eq(rapt_memory_get_statistics().system_allocations, before);
    rapt_archive_free(averages);
    rapt_module_free(a);
}

Test(module_copy, bad_averages_stay_as_they_were)
{
    RAPT_SCOPE;
    rapt_module *a = seeded(1);
    rapt_archive *averages = rapt_module_snapshot(a), *own = rapt_archive_new(), *none = rapt_archive_new();
    rapt_module_to_archive(a, NULL, own);
    draw_parameters(a);
    rapt_tensor *first = rapt_clone(rapt_archive_find(averages, "weight"));
    cr_expect_not(rapt_module_average(a, averages, 1.5));
    expect_error(RAPT_ERROR_VALUE, "1.5");
    cr_expect_not(rapt_module_average(a, averages, NAN));
    expect_error(RAPT_ERROR_VALUE, "decay");
    cr_expect_not(rapt_module_average(a, own, 0.5));
    expect_error(RAPT_ERROR_VALUE, "weight");
    cr_expect_not(rapt_module_average(a, none, 0.5));
    expect_error(RAPT_ERROR_FORMAT, "no tensor weight");
    cr_expect_not(rapt_module_average(NULL, averages, 0.5));
    expect_error(RAPT_ERROR_NULL, "module");
    cr_expect_not(rapt_module_average(a, NULL, 0.5));
    expect_error(RAPT_ERROR_NULL, "averages");
    for (int failures = 0;; failures++) {
        cr_expect(same_bits(rapt_archive_find(averages, "weight"), first));
        rapt_memory_fail_after(failures);
        const bool good = rapt_module_average(a, averages, 0.5);
        rapt_memory_fail_after(-1);
        if (good) break;
        expect_error(RAPT_ERROR_MEMORY, "memory");
        cr_assert_lt(failures, 100);
    }
    cr_expect_not(same_bits(rapt_archive_find(averages, "weight"), first));
    rapt_archive_free(averages);
    rapt_archive_free(own);
    rapt_archive_free(none);
    rapt_module_free(a);
}

/* Whichever of the two wraps the other's. */
Test(module_copy, averages_in_the_module_s_memory_are_an_error)
{
    for (int way = 0; way < 2; way++) {
        RAPT_SCOPE;
        rapt_module *node = (rapt_module *)RAPT_SEQUENTIAL(rapt_activation_new("ReLU", rapt_relu));
        rapt_archive *averages = rapt_archive_new();
        rapt_tensor *memory = rapt_full(RAPT_FLOAT32, RAPT_SHAPE(3), 5);
        float *data = rapt_data_for_writing(memory);
        rapt_tensor *view = rapt_wrap(RAPT_FLOAT32, RAPT_SHAPE(2), NULL, data, NULL, NULL);
        rapt_tensor *end = rapt_detach(rapt_slice(memory, 0, 1, 3, 1));
        rapt_module_add_parameter(node, "a", way == 0 ? end : view);
        rapt_archive_add(averages, "a", way == 0 ? view : end);
        cr_expect_not(rapt_module_average(node, averages, 0.5));
        expect_error(RAPT_ERROR_VALUE, "a is a tensor of something else too");
        rapt_archive_free(averages);
        rapt_module_free(node);
    }
}
