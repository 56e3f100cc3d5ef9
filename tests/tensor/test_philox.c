// Philox4x32-10 against Random123's published vectors, and the uniform and normal numbers made from it.
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>

#include "../tensor/kernels/philox.h"

static void check_block(uint64_t seed, uint64_t stream, uint64_t index, const uint32_t expected[4])
{
    struct rapt_philox_block block = rapt_philox(seed, stream, index);
    for (int i = 0; i < 4; i++) {
        cr_expect(block.word[i] == expected[i], "word %d: expected %08x, got %08x", i, expected[i], block.word[i]);
    }
}

Test(philox, known_answers)
{
    check_block(0, 0, 0, (uint32_t[]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    check_block(UINT64_MAX, UINT64_MAX, UINT64_MAX, (uint32_t[]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    check_block(UINT64_C(0x299f31d0a4093822), UINT64_C(0x0370734413198a2e), UINT64_C(0x85a308d3243f6a88),
                (uint32_t[]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

Test(philox, vectorised_blocks_equal_single_ones)
{
    enum { BLOCKS = 1000 };
    static uint32_t words[4 * BLOCKS];
    uint64_t first = UINT64_C(0xfffffe00); // the index carries into its high word on the way
#pragma omp simd
    for (int i = 0; i < BLOCKS; i++) {
        struct rapt_philox_block block = rapt_philox(42, 7, first + (uint64_t)i);
        for (int j = 0; j < 4; j++) words[4 * i + j] = block.word[j];
    }
    for (int i = 0; i < BLOCKS; i++) check_block(42, 7, first + (uint64_t)i, words + 4 * i);
}

Test(philox, uniform_bounds)
{
    cr_expect(rapt_philox_uniform_float(0) == 0.0f);
    cr_expect(rapt_philox_uniform_float(UINT32_MAX) == 0x1.fffffep-1f);
    cr_expect(rapt_philox_uniform_float(0x80000000u) == 0.5f);
    cr_expect(rapt_philox_uniform_double(0, 0) == 0.0);
    cr_expect(rapt_philox_uniform_double(UINT32_MAX, UINT32_MAX) == 0x1.fffffffffffffp-1);
    cr_expect(rapt_philox_uniform_double(0x80000000u, 64) == 0.5 + 0x1p-53);
}

Test(philox, normal_float_is_box_muller)
{
    const double turn = 8.0 * atan(1.0);
    for (uint64_t i = 0; i < 100000; i++) {
        struct rapt_philox_block block = rapt_philox(1, 2, i);
        struct rapt_philox_pair_float pair = rapt_philox_normal_float(block.word[0], block.word[1]);
        double radius = sqrt(-2.0 * log((double)((float)block.word[0] + 0.5f) * 0x1p-32));
        double angle = turn * ((double)block.word[1] * 0x1p-32);
        cr_assert_float_eq((double)pair.first, radius * cos(angle), 1e-6);
        cr_assert_float_eq((double)pair.second, radius * sin(angle), 1e-6);
    }
}

Test(philox, normal_float_extremes)
{
    const uint32_t words[] = {0u, 1u, 0x1fffffffu, 0x20000000u, 0x7fffffffu, 0x80000000u, 0xe0000000u, UINT32_MAX};
    for (unsigned i = 0; i < 8; i++) {
        for (unsigned j = 0; j < 8; j++) {
            struct rapt_philox_pair_float pair = rapt_philox_normal_float(words[i], words[j]);
            cr_expect(fabsf(pair.first) < 6.8f && fabsf(pair.second) < 6.8f, "words %08x %08x", words[i], words[j]);
        }
    }
    cr_expect(rapt_philox_normal_float(0, 0).first > 6.7f);
}

// Mean 0, variance 1, skewness 0, kurtosis 3, no correlation within a pair; tolerances are five standard errors.
static void check_moments(const char *name, const double sums[5], double count)
{
    cr_expect(fabs(sums[0] / count) < 5.0 / sqrt(count), "%s: mean %g", name, sums[0] / count);
    cr_expect(fabs(sums[1] / count - 1.0) < 5.0 * sqrt(2.0 / count), "%s: variance %g", name, sums[1] / count);
    cr_expect(fabs(sums[2] / count) < 5.0 * sqrt(15.0 / count), "%s: third moment %g", name, sums[2] / count);
    cr_expect(fabs(sums[3] / count - 3.0) < 5.0 * sqrt(96.0 / count), "%s: fourth moment %g", name, sums[3] / count);
    cr_expect(fabs(sums[4] / count) < 5.0 / sqrt(count / 2.0), "%s: correlation %g", name, sums[4] / count);
}

static void add_moments(double sums[5], double first, double second)
{
    double power_first = 1.0, power_second = 1.0;
    for (int k = 0; k < 4; k++) {
        power_first *= first;
        power_second *= second;
        sums[k] += power_first + power_second;
    }
    sums[4] += first * second;
}

Test(philox, normal_moments)
{
    enum { BLOCKS = 500000 };
    double sums_float[5] = {0}, sums_double[5] = {0};
    for (uint64_t i = 0; i < BLOCKS; i++) {
        struct rapt_philox_block block = rapt_philox(2024, 0, i);
        struct rapt_philox_pair_float pair = rapt_philox_normal_float(block.word[0], block.word[1]);
        struct rapt_philox_pair_double pair_double = rapt_philox_normal_double(block);
        add_moments(sums_float, (double)pair.first, (double)pair.second);
        add_moments(sums_double, pair_double.first, pair_double.second);
    }
    check_moments("float", sums_float, 2.0 * BLOCKS);
    check_moments("double", sums_double, 2.0 * BLOCKS);
}
