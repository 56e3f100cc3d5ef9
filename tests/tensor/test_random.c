/* Random tensors: known numbers, moments, and the same numbers on any number of threads. */
#include "expect.h"

#include <float.h>
#include <math.h>

#include <rapt/ops.h>

#include "../tensor/kernels/philox.h"
#include "tensor/core.h"
#include "tensor/random.h"

/* The words of blocks 0, 1, 2 … of seed 1234, stream 0, as our Python model of the paper's algorithm gives them. */
static const uint32_t words[] = {0x2090b348, 0xda7cf0ab, 0x4401906f, 0xcbca470e, 0x9eeede35, 0x1cbe137c,
                                 0xfa277093, 0x147edd50, 0x3fc9c8d8, 0xfc06fa38, 0xcc170b27, 0x891d3b11};

Test(random, uniform_numbers_are_the_words)
{
    rapt_seed(1234);
    const float *single = rapt_data(rapt_rand(RAPT_FLOAT32, RAPT_SHAPE(11)));
    for (int i = 0; i < 11; i++) cr_expect_eq(single[i], (float)(words[i] >> 8) / 16777216.0f, "number %d", i);
    cr_expect_eq(rapt_random_get_state().offset, 3, "eleven numbers take three blocks");
    rapt_seed(1234);
    const double *numbers = rapt_data(rapt_rand(RAPT_FLOAT64, RAPT_SHAPE(3)));
    for (int i = 0; i < 3; i++) {
        const uint64_t bits = (uint64_t)(words[2 * i] >> 5) << 26 | words[2 * i + 1] >> 6;
        cr_expect_eq(numbers[i], ldexp((double)bits, -53), "number %d", i);
    }
    cr_expect_eq(rapt_random_get_state().offset, 2);
}

/* More than are made at once, an odd number, and the index carries into its high word on the way. */
Test(random, many_numbers_are_those_of_single_blocks)
{
    enum { count = 4099 };
    const rapt_random_state state = {.seed = 1234, .offset = UINT64_C(0xffffff00)};
    rapt_random_set_state(state);
    const float *numbers = rapt_data(rapt_rand(RAPT_FLOAT32, RAPT_SHAPE(count)));
    const float *ones = rapt_data(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(count)));
    float kept[count];
    rapt_random_dropout(state, RAPT_FLOAT32, count, kept, ones, 0.5, 2);
    for (int i = 0; i < count; i++) {
        const struct rapt_philox_block block = rapt_philox(state.seed, 0, state.offset + (uint64_t)i / 4);
        const uint32_t word = block.word[i % 4];
        cr_assert_eq(numbers[i], (float)(word >> 8) / 16777216.0f, "number %d", i);
        cr_assert_eq(kept[i], word < 0x80000000u ? 2.0f : 0.0f, "kept %d", i);
    }
}

Test(random, a_thread_starts_from_seed_0)
{
    cr_expect_eq(rapt_random_get_state().seed, 0);
    cr_expect_eq(rapt_random_get_state().offset, 0);
}

/* Of two seeds, two offsets and many numbers, all different. */
Test(random, branches_are_decided_by_state_and_number)
{
    enum { count = 400 };
    uint64_t seeds[count];
    for (int i = 0; i < count; i++) {
        const rapt_random_state state = {.seed = 3 + (uint64_t)i % 2, .offset = (uint64_t)(i / 2 % 2) << 40};
        const rapt_random_state branch = rapt_random_branch(state, (uint64_t)i / 4);
        cr_expect_eq(branch.offset, 0);
        cr_expect_eq(branch.seed, rapt_random_branch(state, (uint64_t)i / 4).seed);
        seeds[i] = branch.seed;
        for (int k = 0; k < i; k++) cr_expect_neq(seeds[k], seeds[i], "%d and %d", k, i);
    }
    /* 10 rounds by Python's integers, of the key 1234 and the counter (0, 0, 0xfffffffa, 0xffffffff) */
    cr_expect_eq(rapt_random_branch((rapt_random_state){.seed = 1234}, 5).seed, UINT64_C(0x5eeabf677edffe00));
}

Test(random, state_can_be_saved_and_set_again)
{
    rapt_seed(5);
    rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(17));
    const rapt_random_state state = rapt_random_get_state();
    cr_expect_eq(state.seed, 5);
    rapt_tensor *first = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(10));
    rapt_tensor *next = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(10));
    rapt_random_set_state(state);
    rapt_tensor *again = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(10));
    cr_expect_arr_eq(rapt_data(first), rapt_data(again), 80);
    cr_expect_arr_neq(rapt_data(first), rapt_data(next), 80);
}

static void check_moments(const rapt_tensor *tensor, double mean, double variance)
{
    rapt_tensor *numbers = rapt_empty(RAPT_FLOAT64, rapt_rank(tensor), rapt_shape(tensor));
    cr_assert(rapt_copy(numbers, tensor));
    const double *number = rapt_data(numbers);
    const int64_t count = rapt_count(tensor);
    double sum = 0, squares = 0, neighbours = 0;
    for (int64_t i = 0; i < count; i++) {
        const double from_mean = number[i] - mean;
        sum += from_mean;
        squares += from_mean * from_mean;
        if (i > 0) neighbours += from_mean * (number[i - 1] - mean);
    }
    const double deviations = 5 / sqrt((double)count);
    cr_expect_float_eq(sum / (double)count, 0, deviations * sqrt(variance));
    cr_expect_float_eq(squares / (double)count / variance, 1, deviations * sqrt(2));
    cr_expect_float_eq(neighbours / (double)count / variance, 0, deviations);
}

Test(random, moments)
{
    for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) {
        RAPT_SCOPE;
        rapt_tensor *tensor = rapt_empty(dtype, RAPT_SHAPE(1000, 333));
        check_moments(rapt_rand(dtype, RAPT_SHAPE(1000, 333)), 0.5, 1.0 / 12);
        check_moments(rapt_randn(dtype, RAPT_SHAPE(1000, 333)), 0, 1);
        cr_expect(rapt_fill_uniform(tensor, -3, 5));
        check_moments(tensor, 1, 64.0 / 12);
        cr_expect(rapt_fill_normal(tensor, 10, 0.25));
        check_moments(tensor, 10, 0.0625);
    }
    for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_BOOL; dtype++) {
        rapt_tensor *tensor = rapt_empty(dtype, RAPT_SHAPE(300001));
        cr_expect(rapt_fill_bernoulli(tensor, 0.3));
        check_moments(tensor, 0.3, 0.21);
    }
    check_moments(rapt_randint(-2, 5, RAPT_SHAPE(300001)), 1, 4);
    expect_no_error();
}

/* Where few numbers are between the ends, many sums are rounded up to the upper one. */
Test(random, the_upper_end_of_a_range_is_never_drawn)
{
    for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) {
        RAPT_SCOPE;
        const double high = 1 + 2 * (dtype == RAPT_FLOAT32 ? (double)FLT_EPSILON : DBL_EPSILON);
        rapt_tensor *x = rapt_empty(dtype, RAPT_SHAPE(1001));
        cr_assert(rapt_fill_uniform(x, 1, high), "%s", rapt_error());
        cr_expect_eq(rapt_item(rapt_min(x, RAPT_ALL_AXES, false)), 1);
        cr_expect_lt(rapt_item(rapt_max(x, RAPT_ALL_AXES, false)), high);
        cr_expect_gt(rapt_item(rapt_max(x, RAPT_ALL_AXES, false)), 1);
        cr_assert(rapt_fill_uniform(x, -2, -2), "%s", rapt_error());
        cr_expect_eq(rapt_item(rapt_max(x, RAPT_ALL_AXES, false)), -2);
        cr_expect_eq(rapt_item(rapt_min(x, RAPT_ALL_AXES, false)), -2);
    }
    expect_no_error();
}

Test(random, ranges)
{
    const int64_t count = 100003;
    const float *single = rapt_data(rapt_rand(RAPT_FLOAT32, RAPT_SHAPE(count)));
    const double *numbers = rapt_data(rapt_rand(RAPT_FLOAT64, RAPT_SHAPE(count)));
    const int64_t *dice = rapt_data(rapt_randint(1, 7, RAPT_SHAPE(count)));
    int64_t faces[7] = {0};
    for (int64_t i = 0; i < count; i++) {
        cr_assert(single[i] >= 0 && single[i] < 1);
        cr_assert(numbers[i] >= 0 && numbers[i] < 1);
        cr_assert(dice[i] >= 1 && dice[i] <= 6);
        faces[dice[i]]++;
    }
    for (int face = 1; face <= 6; face++)
        cr_expect_float_eq((double)faces[face], (double)count / 6, 5 * sqrt((double)count * 5 / 36));
    const int64_t *all = rapt_data(rapt_randint(INT64_MIN, INT64_MAX, RAPT_SHAPE(1000)));
    int64_t negative = 0;
    for (int i = 0; i < 1000; i++) negative += all[i] < 0;
    cr_expect(negative > 400 && negative < 600);
    cr_expect_eq(rapt_item(rapt_randint(8, 9, 0, NULL)), 8);
}

/* A range of 3 · 2^62 numbers: multiplying without rejection would give every third one twice as often. */
Test(random, integers_have_no_bias)
{
    const int64_t third = (int64_t)1 << 62;
    const int64_t *numbers = rapt_data(rapt_randint(-third - (third - 1) - 1, third, RAPT_SHAPE(30000)));
    int64_t of_class[3] = {0};
    for (int i = 0; i < 30000; i++) of_class[(uint64_t)numbers[i] % 3]++;
    for (int i = 0; i < 3; i++) cr_expect_float_eq((double)of_class[i], 10000, 5 * sqrt(30000 * 2.0 / 9));
}

Test(random, permutations)
{
    int64_t firsts[4] = {0};
    for (int64_t count = 0; count < 50; count++) {
        const int64_t *order = rapt_data(rapt_randperm(count));
        bool seen[50] = {false};
        for (int64_t i = 0; i < count; i++) {
            cr_assert(order[i] >= 0 && order[i] < count && !seen[order[i]]);
            seen[order[i]] = true;
        }
    }
    for (int i = 0; i < 4000; i++) {
        RAPT_SCOPE;
        firsts[(int)rapt_at(rapt_randperm(4), (int64_t[]){i % 4})]++;
    }
    for (int i = 0; i < 4; i++) cr_expect_float_eq((double)firsts[i], 1000, 5 * sqrt(4000 * 3.0 / 16));
    rapt_seed(3);
    rapt_tensor *one = rapt_randperm(1000), *other = rapt_randperm(1000);
    cr_expect_arr_neq(rapt_data(one), rapt_data(other), 8000);
    rapt_seed(3);
    cr_expect_arr_eq(rapt_data(one), rapt_data(rapt_randperm(1000)), 8000);
}

/* A tensor for each kind of numbers, large enough for many pieces. */
enum { kinds = 8 };

static rapt_tensor *make(int kind)
{
    const int64_t count = 200003;
    const rapt_dtype dtype = kind % 2 ? RAPT_FLOAT64 : RAPT_FLOAT32;
    rapt_tensor *tensor;
    switch (kind) {
    case 0:
    case 1:
        return rapt_rand(dtype, RAPT_SHAPE(count));
    case 2:
    case 3:
        return rapt_randn(dtype, RAPT_SHAPE(count));
    case 4:
        return rapt_randint(0, 1000, RAPT_SHAPE(count));
    case 5:
        tensor = rapt_empty(RAPT_INT32, RAPT_SHAPE(count));
        return rapt_fill_bernoulli(tensor, 0.5) ? tensor : NULL;
    default:
        tensor = rapt_ones(dtype, RAPT_SHAPE(count));
        rapt_random_dropout(rapt_random_reserve(count), dtype, count, tensor->data, tensor->data, 0.9, 1 / 0.9);
        return tensor;
    }
}

Test(random, same_on_any_number_of_threads)
{
    for (int kind = 0; kind < kinds; kind++) {
        RAPT_SCOPE;
        rapt_set_threads(1);
        rapt_seed(99);
        rapt_tensor *expected = make(kind);
        const rapt_random_state state = rapt_random_get_state();
        for (int threads = 2; threads <= 4; threads++) {
            rapt_set_threads(threads);
            rapt_seed(99);
            rapt_tensor *tensor = make(kind);
            const size_t bytes = (size_t)rapt_count(tensor) * rapt_dtype_size(rapt_get_dtype(tensor));
            cr_expect_eq(memcmp(rapt_data(tensor), rapt_data(expected), bytes), 0, "kind %d, %d threads", kind,
                         threads);
            cr_expect_eq(rapt_random_get_state().offset, state.offset);
        }
    }
}

Test(random, same_for_any_strides)
{
    rapt_seed(7);
    rapt_tensor *dense = rapt_empty(RAPT_FLOAT32, RAPT_SHAPE(30, 50));
    cr_expect(rapt_fill_normal(dense, 0, 1));
    rapt_tensor *base = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(50, 60));
    rapt_tensor *view = rapt_new_view(base, base->data + 4, 2, (int64_t[]){30, 50}, (int64_t[]){2, 60});
    rapt_seed(7);
    cr_expect(rapt_fill_normal(view, 0, 1));
    cr_expect_arr_eq(rapt_data(rapt_clone(view)), rapt_data(dense), 30 * 50 * 4);
    cr_expect_eq(rapt_at(base, (int64_t[]){0, 0}), 0, "beside the view nothing changes");
    cr_expect_eq(rapt_at(base, (int64_t[]){49, 58}), 0);
}

Test(random, a_prefix_does_not_depend_on_the_length)
{
    for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) {
        rapt_seed(1);
        const char *all = rapt_data(rapt_randn(dtype, RAPT_SHAPE(100)));
        for (int64_t count = 1; count < 100; count++) {
            rapt_seed(1);
            cr_expect_eq(memcmp(rapt_data(rapt_randn(dtype, RAPT_SHAPE(count))), all,
                                (size_t)count * rapt_dtype_size(dtype)),
                         0, "%lld numbers", (long long)count);
        }
    }
}

Test(random, chances_0_and_1)
{
    rapt_tensor *tensor = rapt_empty(RAPT_UINT8, RAPT_SHAPE(100000));
    for (int chance = 0; chance <= 1; chance++) {
        cr_expect(rapt_fill_bernoulli(tensor, chance));
        const uint8_t *bytes = rapt_data(tensor);
        for (int i = 0; i < 100000; i++) cr_assert_eq(bytes[i], chance);
    }
    float numbers[5] = {(float)INFINITY, (float)NAN, 1, 2, 3}, out[5];
    rapt_random_dropout(rapt_random_reserve(5), RAPT_FLOAT32, 5, out, numbers, 0, 1);
    for (int i = 0; i < 5; i++) cr_expect_eq(out[i], 0, "dropped means 0, whatever it was");
    rapt_random_dropout(rapt_random_reserve(5), RAPT_FLOAT32, 5, out, numbers, 1, 2);
    cr_expect_eq(out[4], 6);
}

Test(random, dropout_repeats_its_mask_and_is_bernoullis)
{
    enum { count = 10007 };
    static double ones[count], first[count], second[count];
    for (int i = 0; i < count; i++) ones[i] = 1;
    rapt_seed(11);
    const rapt_random_state state = rapt_random_reserve(count);
    cr_expect_eq(state.offset, 0);
    cr_expect_eq(rapt_random_get_state().offset, (count + 3) / 4);
    rapt_random_dropout(state, RAPT_FLOAT64, count, first, ones, 0.75, 4.0 / 3);
    rapt_random_dropout(state, RAPT_FLOAT64, count, second, first, 0.75, 1);
    cr_expect_arr_eq(first, second, sizeof first, "the same state drops the same elements");
    rapt_seed(11);
    rapt_tensor *mask = rapt_empty(RAPT_BOOL, RAPT_SHAPE(count));
    cr_expect(rapt_fill_bernoulli(mask, 0.75));
    for (int i = 0; i < count; i++) cr_assert_eq(first[i], ((const uint8_t *)rapt_data(mask))[i] ? 4.0 / 3 : 0);
}

Test(random, bad_input)
{
    rapt_tensor *whole = rapt_zeros(RAPT_INT64, RAPT_SHAPE(2)), *single = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2));
    const rapt_random_state before = rapt_random_get_state();
    cr_expect_null(rapt_rand(RAPT_INT64, RAPT_SHAPE(2)));
    expect_error(RAPT_ERROR_DTYPE, "rand: dtype is int64; float32 or float64 expected");
    cr_expect_null(rapt_randn(RAPT_BOOL, RAPT_SHAPE(2)));
    expect_error(RAPT_ERROR_DTYPE, "randn: dtype is bool");
    cr_expect_null(rapt_rand(RAPT_FLOAT32, RAPT_SHAPE(-2)));
    expect_error(RAPT_ERROR_SHAPE, "rand: size -2");
    cr_expect_null(rapt_randint(3, 3, RAPT_SHAPE(2)));
    expect_error(RAPT_ERROR_VALUE, "low 3 is not below high 3");
    cr_expect_null(rapt_randperm(-1));
    expect_error(RAPT_ERROR_SHAPE, "randperm: size -1");
    cr_expect_not(rapt_fill_uniform(NULL, 0, 1));
    expect_error(RAPT_ERROR_NULL, "tensor is NULL");
    cr_expect_not(rapt_fill_normal(NULL, 0, 1));
    expect_error(RAPT_ERROR_NULL, "tensor is NULL");
    cr_expect_not(rapt_fill_bernoulli(NULL, 0.5));
    expect_error(RAPT_ERROR_NULL, "tensor is NULL");
    cr_expect_not(rapt_fill_uniform(whole, 0, 1));
    expect_error(RAPT_ERROR_DTYPE, "dtype is int64");
    cr_expect_not(rapt_fill_uniform(single, 1, 0));
    expect_error(RAPT_ERROR_VALUE, "from 1 to 0");
    cr_expect_not(rapt_fill_uniform(single, 0, (double)NAN));
    expect_error(RAPT_ERROR_VALUE, "nan");
    cr_expect_not(rapt_fill_uniform(single, -(double)FLT_MAX, (double)FLT_MAX));
    expect_error(RAPT_ERROR_VALUE, "their difference is too large a number for float32");
    cr_expect_not(rapt_fill_uniform(single, 0, 1e39));
    expect_error(RAPT_ERROR_VALUE, "finite float32 numbers in order expected");
    cr_expect_not(rapt_fill_normal(single, 0, -1));
    expect_error(RAPT_ERROR_VALUE, "deviation -1");
    cr_expect_not(rapt_fill_normal(single, (double)INFINITY, 1));
    expect_error(RAPT_ERROR_VALUE, "mean inf");
    cr_expect_not(rapt_fill_bernoulli(whole, 1.01));
    expect_error(RAPT_ERROR_VALUE, "probability 1.01; 0 to 1 expected");
    cr_expect_not(rapt_fill_bernoulli(whole, (double)NAN));
    expect_error(RAPT_ERROR_VALUE, "probability nan");
    cr_expect_eq(rapt_random_get_state().offset, before.offset, "what fails draws nothing");
    cr_expect_eq(rapt_count(rapt_rand(RAPT_FLOAT32, RAPT_SHAPE(3, 0))), 0);
    cr_expect_eq(rapt_random_get_state().offset, before.offset);
    expect_no_error();
}
