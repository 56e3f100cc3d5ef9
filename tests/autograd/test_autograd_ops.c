/* Ops of one's own, and what the engine does when they are wrong. */
#include <criterion/criterion.h>
#include <math.h>

#include <rapt.h>

#include "expect.h"
#include "fenced.h"

static rapt_tensor *leaf(double value)
{
    return rapt_require_gradient(rapt_full(RAPT_FLOAT64, RAPT_SHAPE(3), value));
}

static rapt_tensor *total(rapt_tensor *x)
{
    return rapt_sum(x, RAPT_ALL_AXES, false);
}

static double first(const rapt_tensor *x)
{
    cr_assert(x, "%s", rapt_error());
    return rapt_at(x, (const int64_t[]){0, 0, 0});
}

/* y = factor · x · exp(b), b may be missing */
typedef struct scaled_options {
    double factor;
} scaled_options;

static rapt_tensor *scaled_forward(rapt_call *call)
{
    rapt_tensor *x = rapt_call_input(call, 0), *b = rapt_call_input(call, 1);
    const scaled_options *o = rapt_call_options(call);
    cr_expect_eq(rapt_call_count(call), 2);
    rapt_tensor *scale = b ? rapt_mul_scalar(rapt_exp(b), o->factor) : rapt_full(RAPT_FLOAT64, 0, NULL, o->factor);
    rapt_tensor *y = rapt_mul(x, scale);
    cr_expect_not(rapt_requires_gradient(y), "forward is not recorded");
    rapt_call_save(call, rapt_call_wants(call, 0) ? scale : NULL);
    rapt_call_save(call, y);
    return y;
}

static bool scaled_vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_call_gradient(call, 0);
    cr_expect_eq(((const scaled_options *)rapt_call_options(call))->factor, 5);
    if (rapt_call_wants(call, 0) && !rapt_call_give(call, 0, rapt_mul(g, rapt_call_saved(call, 0)))) return false;
    return !rapt_call_wants(call, 1) || rapt_call_give(call, 1, rapt_mul(g, rapt_call_saved(call, 1)));
}

static const rapt_op scaled = {.name = "scaled",
                               .forward = scaled_forward,
                               .vjp = scaled_vjp,
                               .options_size = sizeof(scaled_options),
                               .optional = 2};

Test(autograd_ops, an_op_of_ones_own)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(2), *b = leaf(0.5), *y;
    {
        scaled_options passing = {5};
        y = RAPT_APPLY(&scaled, &passing, x, b);
        passing.factor = 0; /* it was copied */
    }
    cr_expect_float_eq(first(y), 10 * exp(0.5), 1e-12);
    cr_expect(rapt_backward(total(y)), "%s", rapt_error());
    cr_expect_float_eq(first(rapt_gradient(x)), 5 * exp(0.5), 1e-12);
    cr_expect_float_eq(first(rapt_gradient(b)), 10 * exp(0.5), 1e-12);
    rapt_clear_gradient(x);
    cr_expect(rapt_backward(total(RAPT_APPLY(&scaled, &(scaled_options){5}, x, NULL))), "%s", rapt_error());
    cr_expect_float_eq(first(rapt_gradient(x)), 5, 1e-12);
    rapt_tensor *row = rapt_require_gradient(rapt_full(RAPT_FLOAT64, RAPT_SHAPE(2, 1), 1));
    cr_expect(rapt_backward(total(RAPT_APPLY(&scaled, &(scaled_options){5}, x, row))), "%s", rapt_error());
    cr_expect_float_eq(first(rapt_gradient(row)), 3 * 10 * exp(1), 1e-10, "broadcasting is undone by the engine");
    cr_expect_null(RAPT_APPLY(&scaled, &(scaled_options){5}, NULL, b));
    expect_error(RAPT_ERROR_NULL, "scaled: input 0 is NULL");
}

/* a + b and a − b */
static rapt_tensor *both_forward(rapt_call *call)
{
    rapt_tensor *a = rapt_call_input(call, 0), *b = rapt_call_input(call, 1);
    rapt_call_set_output(call, 1, rapt_sub(a, b));
    return rapt_add(a, b);
}

static int missing_gradients;

static bool both_vjp(rapt_call *call)
{
    rapt_tensor *sum = rapt_call_gradient(call, 0), *difference = rapt_call_gradient(call, 1);
    missing_gradients = !sum + !difference;
    rapt_tensor *zero = rapt_scalar(RAPT_FLOAT64, 0);
    if (!sum) sum = zero;
    if (!difference) difference = zero;
    return rapt_call_give(call, 0, rapt_add(sum, difference)) && rapt_call_give(call, 1, rapt_sub(sum, difference));
}

static const rapt_op both = {.name = "both", .forward = both_forward, .vjp = both_vjp, .outputs = 2};

Test(autograd_ops, several_outputs_of_which_some_are_used)
{
    for (int used = 1; used < 4; used++) {
        RAPT_SCOPE;
        rapt_tensor *a = leaf(2), *b = leaf(3), *outputs[2];
        cr_assert(rapt_apply_many(&both, NULL, 2, (rapt_tensor *[]){a, b}, outputs));
        cr_expect(first(outputs[0]) == 5 && first(outputs[1]) == -1);
        rapt_tensor *root = used == 1   ? total(outputs[0])
                            : used == 2 ? total(outputs[1])
                                        : total(rapt_mul(outputs[0], outputs[1]));
        cr_expect(rapt_backward(root), "%s", rapt_error());
        cr_expect_eq(missing_gradients, used == 3 ? 0 : 1);
        cr_expect_eq(first(rapt_gradient(a)), used == 3 ? 4 : 1);
        cr_expect_eq(first(rapt_gradient(b)), used == 1 ? 1 : used == 2 ? -1 : -6);
    }
}

/* Copies its input; its vjp is wrong in one of several ways. */
enum { wrong_shape, wrong_dtype, gives_null, fails_with_reason, fails_without_reason, reads_beyond, wrongs };

static rapt_tensor *copy_forward(rapt_call *call)
{
    return rapt_clone(rapt_call_input(call, 0));
}

static bool wrong_vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_call_gradient(call, 0);
    switch (*(const int *)rapt_call_options(call)) {
    case wrong_shape:
        return rapt_call_give(call, 0, rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(4)));
    case wrong_dtype:
        return rapt_call_give(call, 0, rapt_cast(g, RAPT_FLOAT32));
    case gives_null:
        return rapt_call_give(call, 0, rapt_reshape(g, RAPT_SHAPE(99)));
    case fails_with_reason:
        return rapt_fail(RAPT_ERROR_VALUE, "wrong", "it is Monday");
    case reads_beyond:
        return rapt_call_give(call, 0, rapt_mul(g, rapt_call_saved(call, 7)));
    default:
        return false;
    }
}

static const rapt_op wrong = {.name = "wrong", .forward = copy_forward, .vjp = wrong_vjp, .options_size = sizeof(int)};

Test(autograd_ops, a_wrong_vjp_is_a_clear_error_and_leaves_nothing_behind)
{
    static const struct {
        rapt_error_code code;
        const char *part;
    } expected[wrongs] = {
        {RAPT_ERROR_SHAPE, "wrong: its vjp gave float64 [4] as the gradient of input 0, which is float64 [3]"},
        {RAPT_ERROR_DTYPE, "wrong: its vjp gave float32 [3] as the gradient of input 0, which is float64 [3]"},
        {RAPT_ERROR_SHAPE, "reshape: "},
        {RAPT_ERROR_VALUE, "wrong: it is Monday"},
        {RAPT_ERROR_GRAPH, "wrong: its vjp failed without a reason"},
        {RAPT_ERROR_VALUE, "wrong: saved tensor 7 asked for in its vjp; there are 0"},
    };
    for (int kind = 0; kind < wrongs; kind++)
        for (int flags = 0; flags <= RAPT_CREATE_GRAPH; flags++) {
            int64_t live = rapt_memory_get_statistics().live_bytes;
            {
                RAPT_SCOPE;
                rapt_tensor *x = leaf(2), *y = rapt_exp(x),
                            *root = total(rapt_add(RAPT_APPLY(&wrong, &kind, y), rapt_mul(y, y))), *result;
                cr_expect_not(rapt_backward_from(1, &root, NULL, flags));
                expect_error(expected[kind].code, expected[kind].part);
                cr_expect_null(rapt_gradient(x));
                cr_expect_not(rapt_gradients(1, &root, NULL, 1, &y, &result, flags) || result);
                rapt_clear_error();
                cr_expect(rapt_is_recording(), "the mode is as before");
                rapt_tensor *right = total(rapt_exp(x));
                cr_expect(rapt_backward(right), "the engine works afterwards: %s", rapt_error());
            }
            cr_expect_eq(rapt_memory_get_statistics().live_bytes, live, "kind %d leaks", kind);
        }
}

/* After an error nothing of the failed walk is left in a graph that is walked again. */
static int failures_left;

static bool sometimes_vjp(rapt_call *call)
{
    if (failures_left-- > 0) return rapt_fail(RAPT_ERROR_VALUE, "sometimes", "not now");
    return rapt_call_give(call, 0, rapt_call_gradient(call, 0));
}

static const rapt_op sometimes = {.name = "sometimes", .forward = copy_forward, .vjp = sometimes_vjp};

Test(autograd_ops, a_retained_graph_can_be_walked_after_an_error)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(2), *early = rapt_exp(x), *late = RAPT_APPLY(&sometimes, NULL, early);
    rapt_tensor *root = total(rapt_add(rapt_mul(late, early), early));
    failures_left = 1;
    cr_expect_not(rapt_backward_from(1, &root, NULL, RAPT_RETAIN_GRAPH));
    expect_error(RAPT_ERROR_VALUE, "sometimes: not now");
    cr_expect(rapt_backward_from(1, &root, NULL, RAPT_RETAIN_GRAPH), "%s", rapt_error());
    cr_expect_float_eq(first(rapt_gradient(x)), 2 * exp(4) + exp(2), 1e-10);
}

static rapt_tensor *failing_forward(rapt_call *call)
{
    (void)call;
    rapt_fail(RAPT_ERROR_VALUE, "failing", "always");
    return NULL;
}

static rapt_tensor *greedy_forward(rapt_call *call)
{
    for (int i = 0; i <= RAPT_MAX_SAVED; i++) rapt_call_save(call, rapt_call_input(call, 0));
    return rapt_clone(rapt_call_input(call, 0));
}

/* Its input itself is what it gives. */
static rapt_tensor *same_forward(rapt_call *call)
{
    return rapt_call_input(call, 0);
}

static bool same_vjp(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_mul_scalar(rapt_call_gradient(call, 0), 7));
}

Test(autograd_ops, odd_forwards)
{
    RAPT_SCOPE;
    static const rapt_op failing = {.name = "failing", .forward = failing_forward},
                         greedy = {.name = "greedy", .forward = greedy_forward},
                         same = {.name = "same", .forward = same_forward, .vjp = same_vjp},
                         bare = {.name = "bare", .forward = copy_forward, .no_gradient = "it is only an example"};
    rapt_tensor *x = leaf(2);
    cr_expect_null(RAPT_APPLY(&failing, NULL, x));
    expect_error(RAPT_ERROR_VALUE, "failing: always");
    cr_expect_null(RAPT_APPLY(&greedy, NULL, x));
    expect_error(RAPT_ERROR_VALUE, "greedy: more than 32 tensors saved");
    rapt_tensor *y = RAPT_APPLY(&same, NULL, x);
    cr_expect(y != x && rapt_data(y) == rapt_data(x));
    cr_expect(rapt_backward(total(y)));
    cr_expect_eq(first(rapt_gradient(x)), 7);
    cr_expect_not(rapt_backward(total(RAPT_APPLY(&bare, NULL, x))));
    expect_error(RAPT_ERROR_UNSUPPORTED, "bare: has no gradient; it is only an example");
}

/* x², whose forward computes 2x at once; the vjp takes that and changes it. */
static rapt_tensor *kept; /* what forward saved */

static rapt_tensor *prepared_forward(rapt_call *call)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_call_input(call, 0), *slope = rapt_mul_scalar(x, 2);
    rapt_call_save_constant(call, slope);
    if (*(const bool *)rapt_call_options(call)) kept = rapt_retain(slope);
    return rapt_keep(rapt_mul(x, x));
}

static bool prepared_vjp(rapt_call *call)
{
    rapt_tensor *slope = rapt_call_take_saved(call, 0);
    return slope && rapt_scale_in_place(slope, first(rapt_call_gradient(call, 0))) && rapt_call_give(call, 0, slope);
}

static rapt_tensor *early_forward(rapt_call *call)
{
    return rapt_call_take_saved(call, 0);
}

Test(autograd_ops, a_saved_tensor_can_be_taken_and_changed)
{
    static const rapt_op prepared = {.name = "prepared",
                                     .forward = prepared_forward,
                                     .vjp = prepared_vjp,
                                     .options_size = sizeof(bool)},
                         early = {.name = "early", .forward = early_forward};
    RAPT_SCOPE;
    rapt_tensor *x = leaf(3), *slope;
    for (int keeps = 0; keeps < 2; keeps++) {
        rapt_tensor *y = rapt_mul_scalar(total(RAPT_APPLY(&prepared, &(bool){keeps}, x)), 5);
        for (int round = 0; round < 3; round++) {
            cr_assert(rapt_gradients(1, &y, NULL, 1, &x, &slope, round < 2 ? RAPT_RETAIN_GRAPH : 0), "%s",
                      rapt_error());
            cr_expect_eq(first(slope), 30, "round %d", round);
            rapt_fill(slope, -1);
        }
    }
    cr_expect_eq(first(kept), 6, "others hold it");
    rapt_release(kept);
    cr_expect_null(RAPT_APPLY(&early, NULL, x));
    expect_error(RAPT_ERROR_GRAPH, "early: its forward asked for saved tensor 0");
}

/* Where there is nothing to be written, however many rows of it, nothing is done. */
Test(autograd_ops, rows_of_nothing_take_no_time)
{
    RAPT_SCOPE;
    const bool is_64 = sizeof(void *) == 8;
    const int64_t many = (int64_t)1 << (is_64 ? 40 : 26), copies = is_64 ? many >> 4 : 64;
    rapt_tensor *x = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(many, 0));
    rapt_tensor *(*const ops[])(rapt_tensor *, int) = {rapt_softmax, rapt_log_softmax, rapt_sparsemax, rapt_entmax15};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        for (int axis = 0; axis < 2; axis++) {
            rapt_tensor *y = ops[i](x, axis);
            cr_assert(y && rapt_count(y) == 0, "%s", rapt_error());
        }
    cr_expect(rapt_tril(x, 0) && rapt_triu(x, 0), "%s", rapt_error());
    rapt_tensor *tiled = rapt_tile(rapt_ones(RAPT_INT32, RAPT_SHAPE(1 << 20)), 3, (int64_t[]){0, copies, 4});
    cr_expect(tiled && rapt_rank(tiled) == 3 && rapt_shape(tiled)[2] == 4 << 20, "%s", rapt_error());
    const rapt_convolution padded = {.padding = {many}};
    rapt_tensor *none = rapt_conv1d(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(1, 1, 5)),
                                    rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(0, 1, 2)), NULL, &padded);
    cr_expect(none && rapt_count(none) == 0, "%s", rapt_error());
}

Test(autograd_ops, sums_beyond_all_memory_are_errors)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_zeros(RAPT_BOOL, RAPT_SHAPE(SIZE_MAX / 8, 0));
    cr_expect_null(rapt_sum(x, RAPT_AXES(1), false));
    expect_error(RAPT_ERROR_MEMORY, "sum: no memory for");
    cr_expect_null(rapt_prod(x, RAPT_AXES(1), false));
    expect_error(RAPT_ERROR_MEMORY, "prod: no memory for");
}

Test(autograd_ops, of_many_indices_the_first_that_is_out_of_range_is_named)
{
    RAPT_SCOPE;
    enum { count = 70000, bad = 40000 };
    static int64_t indices[count];
    rapt_tensor *x = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(5));
    indices[count - 1] = INT64_MIN;
    cr_expect_null(rapt_index_select(x, 0, rapt_from(RAPT_INT64, RAPT_SHAPE(count), indices)));
    expect_error(RAPT_ERROR_VALUE, "index_select: index -9223372036854775808 at position [69999]");
    indices[bad] = 5;
    cr_expect_null(rapt_index_select(x, 0, rapt_from(RAPT_INT64, RAPT_SHAPE(count), indices)));
    expect_error(RAPT_ERROR_VALUE, "index_select: index 5 at position [40000]");
}

Test(autograd_ops, nothing_is_read_behind_the_last_truth_value)
{
    RAPT_SCOPE;
    enum { count = 5 };
    uint8_t *seen = fenced_take(count);
    seen[1] = seen[count - 1] = 1;
    const int64_t step = 1;
    rapt_tensor *places = rapt_flatnonzero(rapt_wrap(RAPT_BOOL, RAPT_SHAPE(count), &step, seen, NULL, NULL));
    cr_assert_eq(rapt_count(places), 2);
    cr_expect_eq(rapt_at(places, (int64_t[]){0}), 1);
    cr_expect_eq(rapt_at(places, (int64_t[]){1}), count - 1);
    fenced_give(seen, count);
}

/* As PyTorch takes a share of the mean first. */
Test(autograd_ops, a_large_error_has_the_gradient_of_its_share)
{
    RAPT_SCOPE;
    float errors[1000] = {2e38F};
    rapt_tensor *x = rapt_require_gradient(rapt_from(RAPT_FLOAT32, RAPT_SHAPE(1000), errors));
    cr_assert(rapt_backward(rapt_mse_loss(x, rapt_zeros_like(x), RAPT_REDUCE_MEAN)), "%s", rapt_error());
    const double gradient = rapt_at(rapt_gradient(x), (int64_t[]){0});
    cr_expect_lt(fabs(gradient - 4e35), 1e29, "%g", gradient);
}

/* The other way around: a small error, and much that follows it. */
Test(autograd_ops, a_small_error_has_the_gradient_that_a_large_one_brings)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_require_gradient(rapt_full(RAPT_FLOAT32, RAPT_SHAPE(2), 1e-3)), *gradient,
                *large = rapt_full(RAPT_FLOAT32, RAPT_SHAPE(2), 3e38),
                *squares = rapt_mse_loss(x, rapt_zeros_like(x), RAPT_REDUCE_NONE);
    cr_assert(rapt_gradients(1, &squares, &large, 1, &x, &gradient, 0), "%s", rapt_error());
    cr_expect_lt(fabs(rapt_at(gradient, (int64_t[]){1}) - 6e35), 1e29, "%g", rapt_at(gradient, (int64_t[]){1}));
}

Test(autograd_ops, elu_of_0_is_0_with_any_alpha)
{
    RAPT_SCOPE;
    for (int dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) {
        rapt_tensor *y = rapt_elu(rapt_zeros((rapt_dtype)dtype, RAPT_SHAPE(40)), INFINITY);
        cr_expect_eq(rapt_item(rapt_sum(y, RAPT_ALL_AXES, false)), 0);
    }
    expect_no_error();
}
