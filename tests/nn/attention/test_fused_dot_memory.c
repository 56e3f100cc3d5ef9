/* Fused dot-product attention on any number of threads, and what memory it takes. */
#include "attention_memory.h"

static const struct {
    int64_t heads, groups, queries, keys, size;
    rapt_mask mask;
} shapes[] = {
    {1, 1, 1, 3000, 16, {.causal = true, .offset = 2999}}, /* keys in parts */
    {1, 1, 700, 700, 8, {.causal = true}},                 /* backward in parts */
    {6, 2, 90, 130, 24, {.window = 50}},
    {8, 1, 4, 1500, 32, {.causal = false}},
};
enum { shape_count = sizeof shapes / sizeof *shapes };

static subject shaped(int i)
{
    subject s =
        new_subject(RAPT_FLOAT32, shapes[i].heads, shapes[i].groups, shapes[i].queries, shapes[i].keys, shapes[i].size);
    s.mask = shapes[i].mask;
    return s;
}

Test(fused_dot_memory, any_number_of_threads_gives_the_same_bits)
{
    for (int i = 0; i < shape_count; i++) {
        RAPT_SCOPE;
        subject s = shaped(i);
        rapt_set_threads(1);
        outcome one = differentiate(&s);
        for (int threads = 2; threads <= 7; threads += 1) {
            rapt_set_threads(threads);
            outcome many = differentiate(&s);
            expect_same_bits("threads", &one, &many);
        }
        s.attention->plain = true;
        outcome plain = differentiate(&s);
        expect_near("plain", &plain, &one, 2e-6);
        rapt_module_free(&s.attention->module);
    }
    expect_no_error();
}

Test(fused_dot_memory, nothing_as_large_as_the_scores_is_stored)
{
    RAPT_SCOPE;
    subject s = new_subject(RAPT_FLOAT32, 1, 1, 2048, 2048, 8);
    rapt_set_threads(2);
    const int64_t before = live_bytes();
    rapt_memory_reset_peak();
    differentiate(&s);
    const int64_t extra = rapt_memory_get_statistics().peak_bytes - before, scores = 2 * 2048 * 2048 * 4;
    cr_expect(extra < scores / 8, "%lld bytes; the scores are %lld", (long long)extra, (long long)scores);
    rapt_module_free(&s.attention->module);
}

Test(fused_dot_memory, a_steady_step_asks_the_system_for_nothing)
{
    rapt_set_threads(2);
    for (int i = 0; i < shape_count; i++) {
        RAPT_SCOPE;
        subject s = shaped(i);
        int64_t asked = 0;
        for (int step = 0; step < 6; step++) {
            RAPT_SCOPE;
            differentiate(&s);
            if (step == 1) asked = rapt_memory_get_statistics().system_allocations;
        }
        cr_expect(rapt_memory_get_statistics().system_allocations == asked);
        rapt_module_free(&s.attention->module);
    }
}

Test(fused_dot_memory, without_memory_it_is_an_error_and_nothing_leaks)
{
    for (int i = 0; i < shape_count; i++) {
        RAPT_SCOPE;
        subject s = shaped(i);
        s.attention->keep_weights = true;
        expect_errors_without_memory(&s, s.keys);
        rapt_module_free(&s.attention->module);
    }
    expect_no_error();
}

Test(fused_dot_memory, heads_are_joined_without_a_copy)
{
    RAPT_SCOPE;
    subject s = new_subject(RAPT_FLOAT32, 4, 2, 6, 7, 5);
    outcome o = {{pool(&s)}};
    rapt_tensor *joined = rapt_permute(o.tensors[0], RAPT_AXES(0, 2, 1, 3));
    cr_expect(rapt_is_contiguous(joined));
    cr_expect(rapt_data(rapt_reshape(joined, RAPT_SHAPE(2, 6, 20))) == rapt_data(o.tensors[0]));
    rapt_module_free(&s.attention->module);
}
