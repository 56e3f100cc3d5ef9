/* The debugging mode: what is gone is named when it is used, and does not come back as something else. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <math.h>
#include <stdlib.h>

#include <rapt.h>
#include <rapt/derivatives.h>
#include <rapt/recompute.h>

#include "address_sanitizer.h"
#include "expect.h"
#include "tensor/debug.h"
#include "tensor/memory.h"

/* A tensor that left its scope without rapt_keep. */
static rapt_tensor *lost(void)
{
    RAPT_SCOPE;
    return rapt_exp(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3)));
}

#define GONE(expression, op)                                                                                           \
    do {                                                                                                               \
        (void)(expression);                                                                                            \
        expect_error(RAPT_ERROR_GONE, op ": ");                                                                        \
    } while (0)

static void begin(void)
{
    rapt_debugging = true;
}

TestSuite(debugging, .init = begin);

Test(debugging, a_tensor_that_is_gone_is_named)
{
    rapt_tensor *gone = lost(), *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3)), *result;
    cr_expect_null(rapt_mul(x, gone));
    expect_error(RAPT_ERROR_GONE, "mul: input 1 is gone: float32 [2, 3], made by exp; its scope has ended");
    GONE(rapt_data(gone), "data");
    GONE(rapt_item(gone), "item");
    GONE(rapt_at(gone, (int64_t[]){0, 0}), "at");
    GONE(rapt_rank(gone), "rank");
    GONE(rapt_shape(gone), "shape");
    GONE(rapt_same_shape(x, gone), "same_shape");
    GONE(rapt_clone(gone), "clone");
    GONE(rapt_copy(x, gone), "copy");
    GONE(rapt_copy(gone, x), "copy");
    GONE(rapt_fill(gone, 1), "fill");
    GONE(rapt_keep(gone), "keep");
    GONE(rapt_retain(gone), "retain");
    GONE(rapt_release(gone), "release");
    GONE(rapt_detach(gone), "detach");
    GONE(rapt_require_gradient(gone), "require_gradient");
    GONE(rapt_gradient(gone), "gradient");
    GONE(rapt_backward(gone), "backward");
    GONE(rapt_gradients(1, &gone, NULL, 0, NULL, NULL, 0), "gradients");
    rapt_tensor *leaf = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, 0, NULL)), *root = rapt_exp(leaf);
    GONE(rapt_gradients(1, &root, NULL, 1, &gone, &result, 0), "gradients");
    GONE(rapt_print_to(stdout, gone, NULL), "print");
    GONE(rapt_get_dtype(gone), "get_dtype");
    GONE(rapt_count(gone), "count");
    GONE(rapt_size(gone, 0), "size");
    GONE(rapt_stride(gone, 0), "stride");
    GONE(rapt_is_contiguous(gone), "is_contiguous");
    GONE(rapt_same_shape(gone, x), "same_shape");
    GONE(rapt_version(gone), "version");
    GONE(rapt_add_scalar(gone, 1), "add_scalar");
    GONE(rapt_masked_fill(gone, x, 1), "masked_fill");
    GONE(rapt_masked_fill(x, gone, 1), "masked_fill");
    GONE(rapt_save_npy("/nowhere/at/all", gone), "save_npy");
    GONE(rapt_to_dlpack(gone), "to_dlpack");
    rapt_archive *archive = rapt_archive_new();
    GONE(rapt_archive_add(archive, "gone", gone), "archive_add");
    rapt_archive_free(archive);
}

static rapt_tensor *first_input(rapt_tensor *const *inputs, void *context)
{
    (void)context;
    return inputs[0];
}

static rapt_tensor *lose(rapt_tensor *const *inputs, void *context)
{
    (void)inputs, (void)context;
    return lost();
}

Test(debugging, derivatives_of_what_is_gone)
{
    rapt_tensor *gone = lost(), *leaf = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2))), *result;
    rapt_tensor *root = rapt_exp(leaf);
    GONE(rapt_refuse_gradient(gone), "refuse_gradient");
    GONE(rapt_requires_gradient(gone), "requires_gradient");
    GONE(rapt_clear_gradient(gone), "clear_gradient");
    GONE(rapt_own_gradient(gone), "own_gradient");
    GONE(rapt_backward_from(1, &root, &gone, 0), "backward");
    GONE(rapt_jvp(1, &root, 1, &gone, &leaf, &result, 0), "jvp");
    GONE(rapt_jvp(1, &root, 1, &leaf, &gone, &result, 0), "jvp");
    GONE(rapt_jvp(1, &gone, 1, &leaf, &leaf, &result, 0), "jvp");
    GONE(rapt_jacobian(gone, leaf, 0), "jacobian");
    GONE(rapt_jacobian(root, gone, 0), "jacobian");
    GONE(rapt_recompute(first_input, 1, &gone, NULL, NULL), "recompute");
    GONE(rapt_recompute(lose, 1, &leaf, NULL, NULL), "recompute");
}

static rapt_tensor *saves_what_is_gone(rapt_call *call)
{
    const bool *is_constant = rapt_call_options(call);
    (*is_constant ? rapt_call_save_constant : rapt_call_save)(call, lost());
    return rapt_clone(rapt_call_input(call, 0));
}

static bool give_gradient(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_call_gradient(call, 0));
}

Test(debugging, what_saves_something_gone_has_no_result)
{
    const rapt_op saving = {.name = "saving",
                            .forward = saves_what_is_gone,
                            .vjp = give_gradient,
                            .options_size = sizeof(bool)};
    rapt_tensor *x = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2)));
    for (int constant = 0; constant < 2; constant++) {
        cr_expect_null(RAPT_APPLY(&saving, &(bool){constant}, x));
        expect_error(RAPT_ERROR_GONE, "saving: what it saves is gone: float32 [2, 3], made by exp");
    }
}

Test(debugging, its_elements_are_no_numbers)
{
    const float *elements;
    {
        RAPT_SCOPE;
        elements = rapt_data(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(8)));
        cr_expect_eq(elements[7], 1);
    }
#if !defined UNDER_ADDRESS_SANITIZER && !defined UNDER_MEMORY_SANITIZER /* they would say so themselves */
    cr_expect(isnan(elements[0]) && isnan(elements[7]));
#endif
}

Test(debugging, what_is_gone_does_not_come_back_at_once)
{
    rapt_tensor *gone = lost();
    for (int i = 0; i < 1000; i++) {
        RAPT_SCOPE;
        rapt_tensor *other = rapt_full(RAPT_FLOAT32, RAPT_SHAPE(2, 3), 42);
        cr_assert(other != gone);
    }
    GONE(rapt_data(gone), "data");
}

Test(debugging, masks_that_are_gone)
{
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 2, 3)), *lengths;
    {
        RAPT_SCOPE;
        lengths = rapt_ones(RAPT_INT64, RAPT_SHAPE(1));
    }
    rapt_attention *attention = rapt_dot_product_attention_new(0);
    GONE(rapt_attention_forward(attention, x, x, x, RAPT_MASK(.valid_lengths = lengths)), "Attention");
    GONE(rapt_attention_forward(attention, x, x, x, RAPT_MASK(.bias = lengths)), "Attention");
    rapt_module_free(&attention->module);
}

/* They ask the tensor itself, which no op is given. */
Test(debugging, starts_scores_and_graphs_that_are_gone)
{
    rapt_tensor *starts, *gone = lost(), *rows = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3, 2));
    {
        RAPT_SCOPE;
        starts = rapt_arange(RAPT_INT64, 0, 6, 3);
    }
    GONE(rapt_packing_positions(starts), "packing_positions");
    GONE(rapt_pack(rapt_unsqueeze(rows, 0), starts), "pack");
    GONE(rapt_unpack(rows, starts, 0, 0), "unpack");
    GONE(rapt_mask_seen(RAPT_MASK(.causal = true), gone), "mask_seen");
    GONE(rapt_print_graph(stdout, gone, false), "print_graph");
    rapt_linear *linear = rapt_linear_new(2, 2, RAPT_BIAS);
    GONE(rapt_module_print_graph(&linear->module, stdout, gone, false), "module_print_graph");
    rapt_optimizer *sgd = rapt_sgd_new(&linear->module, NULL);
    GONE(rapt_optimizer_add(sgd, "gone", gone), "SGD");
    rapt_optimizer_free(sgd);
    rapt_module_free(&linear->module);
}

/* Memory is bounded, and counted as if nothing was kept back. */
Test(debugging, the_quarantine_has_an_end)
{
    const int64_t live = rapt_memory_get_statistics().live_bytes;
    for (int i = 0; i < 300; i++) {
        RAPT_SCOPE;
        cr_assert(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(1 << 18)));
    }
    const rapt_memory_statistics now = rapt_memory_get_statistics();
    cr_expect_eq(now.live_bytes, live);
    cr_expect_lt(now.cached_bytes, 80 << 20, "%lld bytes", (long long)now.cached_bytes);
    rapt_memory_trim();
    cr_expect_lt(rapt_memory_get_statistics().cached_bytes, 1 << 20);
}

Test(debugging, a_loop_without_a_scope_is_noticed_once)
{
    cr_redirect_stderr();
    for (int i = 0; i < 300000; i++) rapt_scalar(RAPT_FLOAT32, 1);
    cr_assert_stderr_eq_str(
        "rapt: scope: over 100,000 tensors belong to one scope and live until it ends. If a loop makes them, "
        "RAPT_SCOPE; at the top of its block drops them after each round. (Said once; RAPT_DEBUG=0 "
        "silences it.)\n");
}

Test(debugging, tensors_of_the_scopes_around_are_no_loop)
{
    cr_redirect_stderr();
    RAPT_SCOPE;
    for (int i = 0; i < 70000; i++) rapt_scalar(RAPT_FLOAT32, 1);
    {
        RAPT_SCOPE;
        for (int i = 0; i < 70000; i++) rapt_scalar(RAPT_FLOAT32, 1);
    }
    cr_assert_stderr_eq_str("");
}

/* --- what is not about debugging, but about scopes --- */

Test(scopes, two_on_one_line)
{
    const int64_t live = rapt_memory_get_statistics().live_bytes;
    {
        /* clang-format off */
        RAPT_SCOPE; rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(100)); RAPT_SCOPE; RAPT_NO_GRADIENT; RAPT_NO_GRADIENT;
        /* clang-format on */
        cr_expect_not(rapt_is_recording());
    }
    cr_expect(rapt_is_recording() && rapt_memory_get_statistics().live_bytes == live);
}

Test(scopes, a_state_is_carried_from_round_to_round)
{
    rapt_tensor *weight = rapt_require_gradient(rapt_full(RAPT_FLOAT64, 0, NULL, 2)), *state = NULL;
    int64_t live = 0;
    for (int round = 0; round < 20; round++) {
        RAPT_SCOPE;
        rapt_tensor *next = rapt_mul(weight, state ? state : rapt_scalar(RAPT_FLOAT64, 1));
        cr_assert(rapt_carry(&state, next), "%s", rapt_error());
        cr_assert_not(rapt_requires_gradient(state));
        if (round > 1) cr_expect_eq(rapt_memory_get_statistics().live_bytes, live);
        live = rapt_memory_get_statistics().live_bytes;
    }
    cr_expect_eq(rapt_item(state), 1 << 20);
    cr_expect_not(rapt_carry(&state, NULL));
    expect_error(RAPT_ERROR_NULL, "carry: next is NULL");
    cr_expect_eq(rapt_item(state), 1 << 20);
    cr_expect_not(rapt_carry(NULL, state));
    expect_error(RAPT_ERROR_NULL, "carry: state is NULL");
    rapt_release(state);
    RAPT_SCOPE;
    rapt_debugging = true;
    rapt_tensor *gone = state, *next = rapt_scalar(RAPT_FLOAT64, 1);
    {
        RAPT_SCOPE;
        gone = rapt_scalar(RAPT_FLOAT64, 1);
    }
    state = gone;
    cr_expect_not(rapt_carry(&state, next));
    expect_error(RAPT_ERROR_GONE, "carry: the state is gone");
    cr_expect_eq(state, gone);
}
