/* What graphs, derivatives and ops refuse, and what they print of the unusual, a row for each. */
#include "refused.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include <rapt.h>
#include <rapt/derivatives.h>
#include <rapt/op.h>
#include <rapt/profile.h>

#include "text_stream.h"

static rapt_tensor *ones(rapt_dtype dtype, int rank)
{
    static const int64_t shape[RAPT_MAX_RANK] = {2, 2, 2, 2, 2, 2, 2, 2};
    return rapt_ones(dtype, rank, shape);
}

static rapt_tensor *leaf(void)
{
    return rapt_require_gradient(ones(RAPT_FLOAT64, 1));
}

static rapt_tensor *total(rapt_tensor *x)
{
    return rapt_sum(x, RAPT_ALL_AXES, false);
}

/* --- shapes and dtypes of ops --- */

Test(autograd_refusals, joining_nothing)
{
    RAPT_SCOPE;
    rapt_tensor *one[] = {rapt_require_gradient(rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(1)))}, *pieces[1];
    cr_expect_null(rapt_concat(0, one, 0));
    expect_error(RAPT_ERROR_VALUE, "concat: ");
    cr_expect_null(rapt_concat(1, NULL, 0));
    expect_error(RAPT_ERROR_NULL, "concat: ");
    cr_expect_null(rapt_stack(0, one, 0));
    expect_error(RAPT_ERROR_VALUE, "stack: ");
    cr_expect_not(rapt_split(one[0], 0, 1, NULL, pieces));
    expect_error(RAPT_ERROR_NULL, "split: ");
    cr_expect_not(rapt_split(one[0], 0, 1, (const int64_t[]){1}, NULL));
    expect_error(RAPT_ERROR_NULL, "split: ");
    cr_expect_null(rapt_sum(one[0], 1, NULL, false));
    expect_error(RAPT_ERROR_NULL, "sum: ");
    cr_expect_null(rapt_permute(one[0], 1, NULL));
    expect_error(RAPT_ERROR_NULL, "permute: ");
    cr_expect(rapt_permute(rapt_scalar(RAPT_FLOAT32, 1), 0, NULL), "a scalar has no axes to name");
    cr_expect_null(rapt_flip(one[0], 1, NULL));
    expect_error(RAPT_ERROR_NULL, "flip: ");
}

Test(autograd_refusals, shapes_of_views)
{
    RAPT_SCOPE;
    rapt_tensor *x = ones(RAPT_FLOAT32, 2);
    BAD_SHAPE(rapt_expand(x, -1, NULL), "shape [2, 2] does not expand to rank -1, shape unknown");
    BAD_SHAPE(rapt_expand(x, INT_MIN, NULL), "shape [2, 2] does not expand to rank -2147483648, shape unknown");
    BAD_SHAPE(rapt_expand(x, 9, (int64_t[9]){1}), "rank 9, shape unknown");
    BAD_SHAPE(rapt_expand(x, 2, NULL), "rank 2, shape unknown");
    BAD_SHAPE(rapt_expand(x, RAPT_SHAPE(2)), "rank 1, shape [2]");
    NULL_IN(rapt_reshape(x, 2, NULL), "reshape: shape is NULL");
    BAD_SHAPE(rapt_reshape(x, -1, NULL), "reshape");
    BAD_SHAPE(rapt_reshape(x, 9, (int64_t[9]){4}), "reshape");
    REFUSED(rapt_pad(x, 0, INT64_MAX, 0, 0), RAPT_ERROR_MEMORY, "axis 0 would have more places");
    REFUSED(rapt_pad(x, 0, 0, INT64_MAX, 0), RAPT_ERROR_MEMORY, "axis 0 would have more places");
}

Test(autograd_refusals, convolutions)
{
    RAPT_SCOPE;
    rapt_tensor *x = ones(RAPT_FLOAT32, 3), *weight = ones(RAPT_FLOAT32, 3), *bias = ones(RAPT_FLOAT32, 1);
    BAD_SHAPE(rapt_conv1d(ones(RAPT_FLOAT32, 2), weight, NULL, NULL), "x is [2, 2]");
    BAD_SHAPE(rapt_conv1d(x, ones(RAPT_FLOAT32, 4), NULL, NULL), "weight is [2, 2, 2, 2]");
    BAD_SHAPE(rapt_conv1d(x, weight, NULL, &(rapt_convolution){.groups = -1}), "in -1 groups");
    BAD_SHAPE(rapt_conv1d(x, weight, NULL, &(rapt_convolution){.groups = 2}), "in 2 groups");
    BAD_SHAPE(rapt_conv1d(x, weight, NULL, &(rapt_convolution){.groups = 3}), "in 3 groups");
    BAD_SHAPE(rapt_conv1d(x, weight, ones(RAPT_FLOAT32, 2), NULL), "bias is [2, 2]");
    BAD_SHAPE(rapt_conv1d(x, weight, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3)), NULL), "bias is [3]");
    BAD_DTYPE(rapt_conv1d(ones(RAPT_INT64, 3), ones(RAPT_INT64, 3), NULL, NULL), "x is int64");
    BAD_DTYPE(rapt_conv1d(x, ones(RAPT_FLOAT64, 3), NULL, NULL), "weight is float64, bias is NULL");
    BAD_DTYPE(rapt_conv1d(x, weight, ones(RAPT_FLOAT64, 1), NULL), "bias is float64");
    const int64_t half = (int64_t)1 << 62;
    BAD_SHAPE(rapt_conv1d(x, weight, bias, &(rapt_convolution){.padding = {half}}),
              "2 with padding 4611686018427387904 on each side is more");
    BAD_SHAPE(rapt_conv1d(x, weight, bias, &(rapt_convolution){.padding = {half - 1}}), "64 bits can count");
    BAD_SHAPE(rapt_conv1d(x, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 2, 4)), bias,
                          &(rapt_convolution){.dilation = {half}}),
              "a window of 4 with dilation");
}

Test(autograd_refusals, losses_of_classes)
{
    RAPT_SCOPE;
    rapt_tensor *x = ones(RAPT_FLOAT32, 2), *targets = rapt_zeros(RAPT_INT64, RAPT_SHAPE(2));
    rapt_tensor *weight = ones(RAPT_FLOAT32, 2), *bias = ones(RAPT_FLOAT32, 1);
    BAD_DTYPE(rapt_linear_cross_entropy(ones(RAPT_INT64, 2), weight, bias, targets, NULL), "int64");
    BAD_DTYPE(rapt_linear_cross_entropy(x, ones(RAPT_FLOAT64, 2), NULL, targets, NULL), "weight float64, bias NULL");
    BAD_DTYPE(rapt_linear_cross_entropy(x, weight, ones(RAPT_FLOAT64, 1), targets, NULL), "bias float64");
    BAD_SHAPE(rapt_linear_cross_entropy(ones(RAPT_FLOAT32, 0), weight, NULL, targets, NULL), "x [], weight [2, 2]");
    BAD_SHAPE(rapt_linear_cross_entropy(x, ones(RAPT_FLOAT32, 3), bias, targets, NULL), "weight [2, 2, 2]");
    BAD_SHAPE(rapt_linear_cross_entropy(x, weight, ones(RAPT_FLOAT32, 2), targets, NULL), "bias [2, 2]");
    BAD_SHAPE(rapt_linear_cross_entropy(x, weight, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3)), targets, NULL), "bias [3]");
    BAD_SHAPE(rapt_cross_entropy(ones(RAPT_FLOAT32, 3), targets, NULL), "targets of shape [2]; (");
    BAD_SHAPE(rapt_cross_entropy(ones(RAPT_FLOAT32, 3), rapt_zeros(RAPT_INT64, RAPT_SHAPE(3, 2)), NULL), "[3, 2]; (");
    BAD_SHAPE(rapt_cross_entropy(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 5, 4)), rapt_zeros(RAPT_INT64, RAPT_SHAPE(2, 4)),
                                 NULL),
              "the classes are axis 1");
    BAD_SHAPE(rapt_cross_entropy(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 5, 4)), rapt_zeros(RAPT_INT64, RAPT_SHAPE(2, 3)),
                                 NULL),
              "targets of shape [2, 3]; (");
}

Test(autograd_refusals, indices)
{
    RAPT_SCOPE;
    rapt_tensor *x = ones(RAPT_FLOAT32, 2), *indices = rapt_zeros(RAPT_INT64, RAPT_SHAPE(2, 2));
    BAD_SHAPE(rapt_embed(x, rapt_zeros(RAPT_INT64, 8, rapt_shape(ones(RAPT_FLOAT32, 8)))), "indices of rank 7 at most");
    BAD_SHAPE(rapt_embed(ones(RAPT_FLOAT32, 3), indices), "a table of rank 2");
    BAD_DTYPE(rapt_scatter_add(x, 0, indices, ones(RAPT_FLOAT64, 2)), "x is float32, source is float64");
    BAD_SHAPE(rapt_scatter_add(x, 0, rapt_zeros(RAPT_INT64, RAPT_SHAPE(2)), ones(RAPT_FLOAT32, 1)),
              "indices are [2], source is [2]");
    BAD_SHAPE(rapt_scatter_add(x, 0, indices, ones(RAPT_FLOAT32, 1)), "source is [2];");
    BAD_SHAPE(rapt_scatter_add(x, 0, rapt_zeros(RAPT_INT64, RAPT_SHAPE(2, 3)),
                               rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3))),
              "indices are [2, 3]");
}

/* --- lists and ops --- */

static rapt_tensor *same_twice(rapt_call *call)
{
    rapt_tensor *y = rapt_neg(rapt_call_input(call, 0));
    rapt_call_set_output(call, 1, y);
    return y;
}

static bool negated(rapt_call *call)
{
    rapt_tensor *a = rapt_call_gradient(call, 0), *b = rapt_call_gradient(call, 1);
    return rapt_call_give(call, 0, rapt_neg(a && b ? rapt_add(a, b) : a ? a : b));
}

/* One tensor as both outputs is two tensors to the graph. */
Test(autograd_refusals, one_tensor_may_be_two_outputs)
{
    RAPT_SCOPE;
    const rapt_op op = {.name = "same_twice", .forward = same_twice, .vjp = negated, .outputs = 2};
    rapt_tensor *x = leaf(), *y[2];
    cr_assert(rapt_apply_many(&op, NULL, 1, &x, y), "%s", rapt_error());
    cr_expect_neq(y[0], y[1]);
    cr_assert(rapt_backward(total(rapt_add(y[0], rapt_mul_scalar(y[1], 3)))), "%s", rapt_error());
    cr_expect_eq(rapt_at(rapt_gradient(x), (int64_t[]){1}), -4);
}

static rapt_tensor *asking(rapt_call *call)
{
    rapt_call_wants(call, rapt_call_count(call));
    return rapt_clone(rapt_call_input(call, 0));
}

static bool asking_so_far(rapt_call *call)
{
    rapt_call_gradient_so_far(call, -1);
    return rapt_call_give(call, 0, rapt_call_gradient(call, 0));
}

Test(autograd_refusals, wrong_ops)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(), *inputs[40] = {NULL};
    NULL_IN(rapt_apply(&(rapt_op){.vjp = negated}, NULL, 0, NULL), "apply: the op's forward");
    for (int i = 0; i < 39; i++) inputs[i] = x;
    const rapt_op first = {.name = "first", .forward = asking, .optional = UINT32_MAX};
    NULL_IN(rapt_apply(&first, NULL, 40, inputs), "first: input 39 is NULL");
    NULL_IN(rapt_apply(&first, NULL, 1, NULL), "first: the list of inputs");
    cr_expect_null(RAPT_APPLY(&first, NULL, x));
    expect_error(RAPT_ERROR_VALUE, "first: input 1 asked for in its forward; there are 1");
    const rapt_op second = {.name = "second", .forward = same_twice, .outputs = 2, .vjp = asking_so_far};
    rapt_tensor *y[2];
    cr_assert(rapt_apply_many(&second, NULL, 1, &x, y));
    cr_expect_not(rapt_backward(total(y[0])));
    expect_error(RAPT_ERROR_VALUE, "second: the gradient so far of input -1 asked for in its vjp; there are 1");
}

static rapt_tensor *save_all(rapt_call *call)
{
    for (int i = 0; i < rapt_call_count(call); i++) rapt_call_save(call, rapt_call_input(call, i));
    return rapt_exp(rapt_call_input(call, 0));
}

static rapt_tensor *define_nothing(rapt_call *call)
{
    (void)call;
    return NULL;
}

static rapt_tensor *define_other_shape(rapt_call *call)
{
    return rapt_unsqueeze(rapt_exp(rapt_call_input(call, 0)), 0);
}

static rapt_tensor *define_other_dtype(rapt_call *call)
{
    return rapt_cast(rapt_exp(rapt_call_input(call, 0)), RAPT_FLOAT32);
}

static bool give_nothing_recorded(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_clone(rapt_call_gradient(call, 0)));
}

Test(autograd_refusals, definitions_that_are_not)
{
    const struct {
        rapt_tensor *(*definition)(rapt_call *call);
        rapt_error_code code;
        const char *text;
    } wrong[] = {{define_nothing, RAPT_ERROR_VALUE, "its definition failed without a reason"},
                 {define_other_shape, RAPT_ERROR_SHAPE,
                  "its definition gave float64 [1, 2] as output 0, which is float64 [2]"},
                 {define_other_dtype, RAPT_ERROR_SHAPE,
                  "its definition gave float32 [2] as output 0, which is float64 [2]"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        RAPT_SCOPE;
        const rapt_op op = {.name = "wrong",
                            .forward = save_all,
                            .vjp = give_nothing_recorded,
                            .definition = wrong[i].definition};
        rapt_tensor *x = leaf(), *y = total(RAPT_APPLY(&op, NULL, x)), *first;
        bool good = rapt_gradients(1, &y, NULL, 1, &x, &first, RAPT_CREATE_GRAPH);
        if (good) good = rapt_backward(total(first));
        REFUSED(good, wrong[i].code, wrong[i].text);
    }
}

static bool take_nothing(void *context, rapt_tensor *from, rapt_tensor *gradient)
{
    (void)context, (void)from, (void)gradient;
    return false;
}

Test(autograd_refusals, lists_of_derivatives)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(), *y = total(rapt_mul(x, x)), *other = ones(RAPT_FLOAT32, 1), *result;
    NULL_IN(rapt_jvp(1, &y, 1, &x, NULL, &result, 0), "jvp: tangents is NULL");
    NULL_IN(rapt_jvp(1, &y, 1, NULL, &x, &result, 0), "jvp: inputs is NULL");
    NULL_IN(rapt_jvp(1, &y, 1, &x, &x, NULL, 0), "jvp: results is NULL");
    NULL_IN(rapt_jvp(1, NULL, 1, &x, &x, &result, 0), "jvp: roots is NULL");
    BAD_VALUE(rapt_jvp(-1, &y, 1, &x, &x, &result, 0), "jvp: -1 roots");
    BAD_SHAPE(rapt_jvp(1, &y, 1, &x, &other, &result, 0), "jvp: tangents 0 is float32 [2]");
    NULL_IN(rapt_jacobian(y, NULL, 0), "jacobian: input is NULL");
    NULL_IN(rapt_jacobian(NULL, x, 0), "jacobian: root is NULL");
    static const char flags[] = "flags 4; RAPT_RETAIN_GRAPH, RAPT_CREATE_GRAPH, both or 0 expected";
    BAD_VALUE(rapt_backward_from(1, &y, NULL, 4), flags);
    BAD_VALUE(rapt_backward_to(1, &y, NULL, 4, take_nothing, NULL), flags);
    BAD_VALUE(rapt_gradients(1, &y, NULL, 1, &x, &result, 4), flags);
    BAD_VALUE(rapt_jvp(1, &y, 1, &x, &x, &result, 4), flags);
    BAD_VALUE(rapt_hvp(y, 1, &x, &x, &result, 4), flags);
    BAD_VALUE(rapt_jacobian(y, x, 4), flags);
    rapt_tensor *deep = rapt_require_gradient(ones(RAPT_FLOAT64, 8));
    BAD_SHAPE(rapt_jacobian(rapt_mul(deep, deep), deep, 0), "8 axes and 256 elements of the root");
}

Test(autograd_refusals, a_function_that_takes_no_gradient)
{
    RAPT_SCOPE;
    rapt_tensor *y = total(leaf());
    BAD_VALUE(rapt_backward_to(1, &y, NULL, 0, take_nothing, NULL), "failed without a reason");
}

static rapt_tensor *call_square(rapt_tensor *const *inputs, void *context)
{
    (void)context;
    return rapt_mul(inputs[0], inputs[0]);
}

static rapt_tensor *call_half(rapt_tensor *const *inputs, void *context)
{
    (void)context;
    return rapt_mul(inputs[0], rapt_detach(inputs[0]));
}

/* A name that has no room in the message leaves what has. */
Test(autograd_refusals, names_in_gradcheck)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf();
    cr_expect(rapt_gradcheck(NULL, call_square, 1, &x, NULL).passed);
    const rapt_gradcheck_result result = rapt_gradcheck(NULL, call_half, 1, &x, NULL);
    cr_expect(!result.passed && strstr(result.message, "function"), "%s", result.message);
    char name[3000];
    for (size_t length = 900; length < sizeof name; length += length < 1100 ? 5 : 900) {
        memset(name, 'n', length);
        name[length] = '\0';
        const rapt_gradcheck_result cut = rapt_gradcheck(name, call_half, 1, &x, NULL);
        cr_expect(!cut.passed && strncmp(cut.message, "nnn", 3) == 0 && strlen(cut.message) < sizeof cut.message);
    }
}

/* --- what is printed --- */

static char *printed(rapt_tensor *root, bool as_graphviz)
{
    FILE *stream = open_text();
    cr_assert(rapt_print_graph(stream, root, as_graphviz), "%s", rapt_error());
    return close_text(stream);
}

Test(autograd_refusals, graphs_with_quotes_and_integers)
{
    RAPT_SCOPE;
    const rapt_op op = {.name = "a \"name\" \\ 2", .forward = same_twice, .vjp = negated, .outputs = 2};
    rapt_tensor *x = leaf(), *y[2], *indices;
    cr_assert(rapt_apply_many(&op, NULL, 1, &x, y));
    char *text = printed(y[0], true);
    cr_expect_not_null(strstr(text, "a \\\"name\\\" \\\\ 2"), "%s", text);
    free(text);
    text = printed(rapt_sort(x, 0, false, &indices), false);
    cr_expect_not_null(strstr(text, "float64 [2], int64"), "%s", text);
    free(text);
}

Test(autograd_refusals, traces_of_many_inputs_integers_and_errors)
{
    enum { many_inputs = 500 };
    RAPT_SCOPE;
    rapt_tensor *x = leaf(), *many[many_inputs], *indices;
    for (int i = 0; i < many_inputs; i++) many[i] = x;
    FILE *stream = open_text();
    rapt_trace(stream);
    cr_assert(rapt_backward(total(rapt_concat(many_inputs, many, 0))));
    cr_assert(rapt_backward(total(rapt_sort(x, 0, false, &indices))));
    BAD_DTYPE(rapt_mul(x, ones(RAPT_FLOAT32, 1)), "float32");
    rapt_trace(NULL);
    char *text = close_text(stream);
    cr_expect(strstr(text, "forward  concat: float64 [2], ") && strstr(text, " more -> float64 [1000]"), "%s", text);
    cr_expect_not_null(strstr(text, "backward concat: float64 [1000] -> float64 [2]"), "%s", text);
    cr_expect_not_null(strstr(text, "forward  mul: float64 [2], float32 [2] -> an error\n"), "%s", text);
    free(text);
}

/* Who has no gradient of its own loses none. */
Test(autograd_refusals, gradients_that_nobody_has)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(), *y = rapt_mul(x, x);
    cr_assert(rapt_backward(total(y)), "%s", rapt_error());
    rapt_clear_gradient(NULL);
    rapt_clear_gradient(y);
    rapt_clear_gradient(ones(RAPT_FLOAT64, 1));
    cr_expect_eq(rapt_at(rapt_gradient(x), (int64_t[]){0}), 2);
    cr_expect_null(rapt_gradient(y));
    cr_expect(rapt_own_gradient(y), "there is none that others see");
    cr_expect_null(rapt_error(), "%s", rapt_error());
}

/* False or NULL, and NULL in both places of the results, whatever was there. */
#define NOTHING_COMES(call)                                                                                            \
    do {                                                                                                               \
        rapt_tensor *garbage = (rapt_tensor *)(uintptr_t)1, *out[2] = {garbage, garbage};                              \
        cr_expect(!(call), "%s", #call);                                                                               \
        cr_expect_null(out[0], "%s", #call);                                                                           \
        if (!strstr(#call, "&out[0]")) cr_expect_null(out[1], "%s", #call);                                            \
        cr_expect_not_null(rapt_error(), "%s", #call);                                                                 \
        rapt_clear_error();                                                                                            \
    } while (0)

Test(autograd_refusals, nothing_comes_out_of_an_error)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(), *pair[] = {x, x}, *half[] = {x, NULL}, *root = total(x);
    const int64_t sizes[] = {1, 1}, bad[] = {1, 2};
    NOTHING_COMES(rapt_pack_sequences(0, pair, &out[0]));
    NOTHING_COMES(rapt_pack_sequences(2, NULL, &out[0]));
    NOTHING_COMES(rapt_pack_sequences(2, half, &out[0]));
    NOTHING_COMES(rapt_split(NULL, 0, 2, sizes, out));
    NOTHING_COMES(rapt_split(x, 0, 2, NULL, out));
    NOTHING_COMES(rapt_split(x, 0, 2, bad, out));
    NOTHING_COMES(rapt_sort(x, 5, false, &out[0]));
    NOTHING_COMES(rapt_topk(x, 0, 7, true, &out[0]));
    NOTHING_COMES(rapt_batch_normalize(NULL, NULL, NULL, 1e-5, &out[0], &out[1]));
    NOTHING_COMES(rapt_recompute_many(NULL, 1, &x, 2, out, NULL, NULL));
    NOTHING_COMES(rapt_gradients(1, &root, NULL, 2, NULL, out, 0));
    NOTHING_COMES(rapt_gradients(1, &root, NULL, 2, half, out, 0));
    NOTHING_COMES(rapt_gradients(1, NULL, NULL, 2, pair, out, 0));
    NOTHING_COMES(rapt_jvp(2, NULL, 1, &x, &x, out, 0));
    NOTHING_COMES(rapt_jvp(2, pair, 1, &x, NULL, out, 0));
    NOTHING_COMES(rapt_hvp(NULL, 2, pair, pair, out, 0));
    NOTHING_COMES(rapt_hvp(root, 2, NULL, pair, out, 0));
}
