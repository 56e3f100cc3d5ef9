/* The hunt for what is not finite: the op, forward or backward, the module and the element are named; what comes in
 * infinite is nobody's fault. */
#include "../gpt.h"
#include "../integers.h"

static rapt_tensor *total(rapt_tensor *x)
{
    return rapt_sum(x, RAPT_ALL_AXES, false);
}

Test(hunt, is_off_at_first)
{
    RAPT_SCOPE;
    cr_expect_not_null(rapt_log(rapt_full(RAPT_FLOAT32, RAPT_SHAPE(2), -1)));
    cr_expect_not(rapt_hunt_not_finite(true));
    cr_expect(rapt_hunt_not_finite(false));
    expect_no_error();
}

Test(hunt, names_the_op_and_the_element)
{
    RAPT_SCOPE;
    rapt_hunt_not_finite(true);
    rapt_tensor *x = rapt_require_gradient(doubles(RAPT_SHAPE(2, 3), (double[]){1, 4, 9, 1, 0, -1}));
    cr_expect_null(rapt_log(rapt_transpose(x, 0, 1)));
    expect_error(RAPT_ERROR_NOT_FINITE,
                 "log: in forward output 0, float64 [3, 2], is -inf at [1, 1], though its inputs");
    cr_expect_null(rapt_div(x, rapt_scalar(RAPT_FLOAT64, 0)));
    expect_error(RAPT_ERROR_NOT_FINITE, "div: in forward output 0, float64 [2, 3], is inf at [0, 0]");
    rapt_tensor *root = rapt_sqrt(rapt_abs(x));
    cr_expect_not(rapt_backward(total(root)));
    expect_error(RAPT_ERROR_NOT_FINITE, "sqrt: in backward the gradient of input 0, float64 [2, 3], is inf at [1, 1]");
    cr_expect_null(rapt_gradient(x));
    rapt_tensor *large = rapt_require_gradient(rapt_full(RAPT_FLOAT32, RAPT_SHAPE(1), 1));
    rapt_tensor *two[] = {rapt_mul_scalar(large, 3e38), rapt_mul_scalar(large, 2e38)};
    cr_expect_not(rapt_backward_from(2, two, NULL, 0));
    expect_error(RAPT_ERROR_NOT_FINITE, "is inf at [0]");
}

Test(hunt, lets_pass_what_comes_in)
{
    RAPT_SCOPE;
    rapt_hunt_not_finite(true);
    rapt_tensor *x = rapt_require_gradient(doubles(RAPT_SHAPE(2), (double[]){-(double)INFINITY, 1}));
    cr_expect(rapt_backward(total(rapt_exp(rapt_mul_scalar(x, 2)))), "%s", rapt_error());
    rapt_tensor *y = rapt_exp(x), *nan = doubles(RAPT_SHAPE(2), (double[]){NAN, 1});
    cr_expect(rapt_backward_from(1, &y, &nan, 0), "%s", rapt_error());
    expect_no_error();
}

Test(hunt, passes_over_integers_and_results_that_nobody_used)
{
    RAPT_SCOPE;
    rapt_hunt_not_finite(true);
    rapt_tensor *x = rapt_require_gradient(doubles(RAPT_SHAPE(2), (double[]){0, 1})), *pieces[2];
    cr_expect(rapt_argmax(x, 0, false), "%s", rapt_error());
    cr_expect(rapt_greater(x, rapt_scalar(RAPT_FLOAT64, 0)), "%s", rapt_error());
    expect_no_error();
    cr_assert(rapt_split(rapt_sqrt(x), 0, 2, (const int64_t[]){1, 1}, pieces));
    cr_expect_not(rapt_backward(total(pieces[0])));
    expect_error(RAPT_ERROR_NOT_FINITE, "sqrt: in backward the gradient of input 0, float64 [2], is inf at [0]");
}

/* √(x w) */
typedef struct root_layer {
    rapt_module module;
    rapt_tensor *weight;
    bool recompute;
} root_layer;

static rapt_tensor *root_of(rapt_tensor *const *inputs, void *layer)
{
    return rapt_sqrt(rapt_mul(inputs[0], ((root_layer *)layer)->weight));
}

static rapt_tensor *root_forward(rapt_module *module, rapt_tensor *x)
{
    return ((root_layer *)module)->recompute ? rapt_recompute(root_of, 1, &x, module, NULL) : root_of(&x, module);
}

static const rapt_module_class root_kind = {.name = "Root", .forward = root_forward};

static rapt_module *root_layer_new(double weight, bool recompute)
{
    root_layer *layer = rapt_module_new(sizeof *layer, &root_kind);
    layer->recompute = recompute;
    layer->weight = rapt_module_add_parameter(&layer->module, "weight", rapt_scalar(RAPT_FLOAT64, weight));
    return rapt_module_finish(&layer->module);
}

Test(hunt, names_the_module_in_either_run)
{
    RAPT_SCOPE;
    rapt_hunt_not_finite(true);
    for (int recompute = 0; recompute < 2; recompute++) {
        rapt_sequential *inner = RAPT_SEQUENTIAL(root_layer_new(2, recompute), root_layer_new(0, recompute));
        rapt_sequential *s = RAPT_SEQUENTIAL(root_layer_new(1, recompute), (rapt_module *)inner);
        rapt_tensor *loss = total(rapt_sequential_forward(s, doubles(RAPT_SHAPE(1), (double[]){4})));
        cr_expect_not(rapt_backward(loss));
        expect_error(RAPT_ERROR_NOT_FINITE, "sqrt: in backward");
        loss = total(rapt_sequential_forward(s, doubles(RAPT_SHAPE(1), (double[]){4})));
        cr_expect_not(rapt_backward(loss));
        expect_error(RAPT_ERROR_NOT_FINITE, "; in Sequential 1.1");
        cr_expect_null(rapt_sequential_forward(s, doubles(RAPT_SHAPE(1), (double[]){-4})));
        expect_error(RAPT_ERROR_NOT_FINITE, "sqrt: in forward");
        cr_expect_null(rapt_sequential_forward(s, doubles(RAPT_SHAPE(1), (double[]){-4})));
        expect_error(RAPT_ERROR_NOT_FINITE, "; in Sequential 0");
        rapt_module_free(&s->module);
    }
}

Test(hunt, names_the_module_of_a_gpt)
{
    RAPT_SCOPE;
    rapt_hunt_not_finite(true);
    for (int recompute = 0; recompute < 2; recompute++) {
        rapt_gpt_config c = tiny;
        c.recompute = recompute;
        rapt_gpt *gpt = drawn_gpt(&c);
        rapt_fill(rapt_module_find(&gpt->module, "transformer.h.1.mlp.c_fc.weight"), 1e308);
        rapt_tensor *tokens = random_tokens(2, 4);
        cr_expect_null(rapt_gpt_loss(gpt, tokens, tokens, NULL));
        expect_error(RAPT_ERROR_NOT_FINITE, "; in GPT transformer.h.1.mlp");
        rapt_module_free(&gpt->module);
    }
}

Test(hunt, finds_nothing_in_masks_and_dropout)
{
    RAPT_SCOPE;
    rapt_hunt_not_finite(true);
    rapt_seed(1);
    for (int number = 0; number < variants; number++) {
        rapt_gpt_config c = variant(number);
        c.dropout = 0.3;
        rapt_gpt *gpt = rapt_gpt_new(&c);
        rapt_tensor *tokens = random_tokens(2, 6);
        cr_expect(rapt_backward(rapt_gpt_loss(gpt, tokens, tokens, NULL)), "%s", rapt_error());
        rapt_module_free(&gpt->module);
    }
    for (int plain = 0; plain < 2; plain++) {
        rapt_encoder_layer *layer = in_float64(rapt_encoder_layer_new(&small));
        layer->self_attn->pooling->plain = plain;
        const double hidden = -(double)INFINITY;
        rapt_tensor *bias = doubles(RAPT_SHAPE(3, 3), (double[]){0, hidden, hidden, 0, 0, hidden, 0, 0, 0});
        rapt_mask mask = {.valid_lengths = lengths_of(3, 0), .bias = bias};
        rapt_tensor *y = rapt_encoder_layer_forward(layer, random_input(2, 3, 8), &mask, NULL);
        cr_expect(y && rapt_backward(total(rapt_mul(y, y))), "%s", rapt_error());
        rapt_module_free(&layer->module);
    }
    expect_no_error();
}

Test(hunt, finds_nothing_in_a_value_that_was_asked_for)
{
    RAPT_SCOPE;
    rapt_hunt_not_finite(true);
    rapt_tensor *x = rapt_require_gradient(random_input(2, 3, 4)), *starts = rapt_packing_starts(lengths_of(2, 3)),
                *hidden = rapt_greater_scalar(x, 0);
    const double values[] = {-(double)INFINITY, (double)INFINITY, (double)NAN};
    for (int i = 0; i < 3; i++) {
        rapt_tensor *results[] = {rapt_masked_fill(x, hidden, values[i]), rapt_pad(x, 1, 1, 2, values[i]),
                                  rapt_unpack(rapt_pack(x, starts), starts, 4, values[i])};
        for (int k = 0; k < 3; k++) cr_expect_not_null(results[k], "%g in %d: %s", values[i], k, rapt_error());
        if (i == 0) cr_expect(rapt_backward(total(rapt_softmax(results[1], 1))), "%s", rapt_error());
    }
    cr_expect_eq(rapt_at(rapt_pad(x, 0, 1, 0, values[0]), (int64_t[]){0, 0, 0}), values[0]);
    expect_no_error();
    cr_expect_null(rapt_log(rapt_pad(rapt_abs(x), 0, 1, 0, 0)));
    expect_error(RAPT_ERROR_NOT_FINITE, "log: in forward");
}

Test(hunt, finds_nothing_in_padding_that_a_mask_hides)
{
    for (int way = 0; way < 3; way++) {
        RAPT_SCOPE;
        rapt_hunt_not_finite(true);
        rapt_attention *attention = rapt_dot_product_attention_new(0);
        attention->plain = way == 1;
        if (way == 2) attention->normalizer = rapt_masked_sparsemax;
        rapt_tensor *keys = random_input(1, 3, 4), *values = random_input(1, 3, 4);
        cr_assert(rapt_fill(rapt_slice(keys, 1, 2, 3, 1), NAN) && rapt_fill(rapt_slice(values, 1, 2, 3, 1), NAN));
        rapt_tensor *query = rapt_require_gradient(random_input(1, 2, 4)), *lengths = int64_of(1, (int64_t[]){2});
        rapt_tensor *y = rapt_attention_forward(attention, query, rapt_require_gradient(keys),
                                                rapt_require_gradient(values), RAPT_MASK(.valid_lengths = lengths));
        rapt_tensor *loss = total(rapt_mul(y, y)), *slope;
        cr_expect(rapt_gradients(1, &loss, NULL, 1, &query, &slope, RAPT_CREATE_GRAPH) &&
                      rapt_backward(total(rapt_mul(slope, slope))),
                  "way %d: %s", way, rapt_error());
        rapt_module_free(&attention->module);
    }
    expect_no_error();
}

/* The order's power less 2 has an infinite slope there, which nothing may pass through. */
Test(hunt, finds_nothing_in_the_second_derivative_of_a_norm_of_zeros)
{
    const double orders[] = {2.2, 2.5, 2.9, 3, 4};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        RAPT_SCOPE;
        rapt_hunt_not_finite(true);
        rapt_tensor *x = rapt_require_gradient(rapt_from(RAPT_FLOAT64, RAPT_SHAPE(3), (double[]){0, 1, 2}));
        rapt_tensor *y = rapt_norm(x, orders[i], RAPT_ALL_AXES, false), *slope;
        cr_assert(rapt_gradients(1, &y, NULL, 1, &x, &slope, RAPT_CREATE_GRAPH), "%s", rapt_error());
        cr_expect(rapt_backward(total(rapt_mul(slope, slope))), "order %g: %s", orders[i], rapt_error());
    }
    expect_no_error();
}
