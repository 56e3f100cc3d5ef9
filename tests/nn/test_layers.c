/* The basic layers and the initial values of parameters. */
#include "modules.h"

static rapt_tensor *row_of(int64_t count, const double *values)
{
    return doubles(RAPT_SHAPE(1, count), values);
}

Test(layers, linear)
{
    RAPT_SCOPE;
    rapt_linear *linear = rapt_linear_new(3, 2, RAPT_BIAS);
    expect_parameter(linear, "weight", RAPT_SHAPE(2, 3));
    expect_parameter(linear, "bias", RAPT_SHAPE(2));
    cr_expect_eq(rapt_get_dtype(linear->weight), RAPT_FLOAT32);
    cr_expect(linear->in == 3 && linear->out == 2);
    cr_expect(rapt_module_cast(&linear->module, RAPT_FLOAT64));
    set_values(linear, "weight", (double[]){1, 2, 3, 4, 5, 6});
    set_values(linear, "bias", (double[]){0.5, -1});
    rapt_tensor *x = doubles(RAPT_SHAPE(2, 3), (double[]){1, 0, -1, 2, 2, 2}), *y = rapt_linear_forward(linear, x);
    expect_values("y", y, 4, (double[]){-1.5, -3, 12.5, 29}, 0);
    expect_shape(y, RAPT_SHAPE(2, 2));
    expect_values("of a vector", rapt_linear_forward(linear, rapt_select(x, 0, 0)), 2, (double[]){-1.5, -3}, 0);
    expect_shape(rapt_linear_forward(linear, rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(5, 1, 7, 3))), RAPT_SHAPE(5, 1, 7, 2));
    expect_shape(rapt_linear_forward(linear, rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(0, 3))), RAPT_SHAPE(0, 2));
    cr_expect(rapt_backward(rapt_sum(rapt_select(y, 1, 1), RAPT_ALL_AXES, false)));
    expect_values("weight's gradient", rapt_gradient(linear->weight), 6, (double[]){0, 0, 0, 3, 2, 1}, 0);
    expect_values("bias's gradient", rapt_gradient(linear->bias), 2, (double[]){0, 2}, 0);
    rapt_module_free(&linear->module);

    linear = rapt_linear_new(2, 1, RAPT_NO_BIAS);
    cr_expect_null(linear->bias);
    cr_expect_null(rapt_module_find(&linear->module, "bias"));
    cr_expect(rapt_module_cast(&linear->module, RAPT_FLOAT64));
    set_values(linear, "weight", (double[]){3, -2});
    expect_values("no bias", rapt_linear_forward(linear, row_of(2, (double[]){2, 5})), 1, (double[]){-4}, 0);
    rapt_module_free(&linear->module);
    expect_no_error();
}

Test(layers, linear_starts_uniform)
{
    rapt_seed(7);
    rapt_linear *linear = rapt_linear_new(100, 3000, RAPT_BIAS);
    expect_uniform(linear->weight, 0.1);
    expect_uniform(linear->bias, 0.1);
    rapt_module_free(&linear->module);
}

Test(layers, linear_errors)
{
    RAPT_SCOPE;
    const int64_t before = live_bytes();
    cr_expect_null(rapt_linear_new(-1, 2, RAPT_BIAS));
    expect_error(RAPT_ERROR_VALUE, "-1");
    cr_expect_null(rapt_linear_new(2, -3, RAPT_NO_BIAS));
    expect_error(RAPT_ERROR_VALUE, "-3");
    cr_expect_null(rapt_linear_new((int64_t)1 << 40, (int64_t)1 << 40, RAPT_BIAS));
    expect_error(RAPT_ERROR_MEMORY, "[1099511627776, 1099511627776]");
    cr_expect_eq(live_bytes(), before);
    rapt_linear *linear = rapt_linear_new(3, 2, RAPT_BIAS);
    cr_expect_null(rapt_linear_forward(linear, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3, 2))));
    expect_error(RAPT_ERROR_SHAPE, "[3, 2]");
    cr_expect_null(rapt_linear_forward(linear, rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2, 3))));
    expect_error(RAPT_ERROR_DTYPE, "float64");
    cr_expect_null(rapt_linear_forward(linear, NULL));
    expect_error(RAPT_ERROR_NULL, "Linear");
    cr_expect_null(rapt_linear_forward(NULL, rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2, 3))));
    expect_error(RAPT_ERROR_NULL, "NULL");
    rapt_module_free(&linear->module);
}

Test(layers, embedding)
{
    RAPT_SCOPE;
    rapt_embedding *embedding = rapt_embedding_new(3, 2);
    expect_parameter(embedding, "weight", RAPT_SHAPE(3, 2));
    set_values(embedding, "weight", (double[]){1, 2, 3, 4, 5, 6});
    rapt_tensor *indices = rapt_from(RAPT_INT64, RAPT_SHAPE(2, 2), (int64_t[]){2, 0, 2, 1});
    rapt_tensor *y = rapt_embedding_forward(embedding, indices);
    expect_shape(y, RAPT_SHAPE(2, 2, 2));
    expect_values("rows", y, 8, (double[]){5, 6, 1, 2, 5, 6, 3, 4}, 0);
    cr_expect(rapt_backward(rapt_sum(y, RAPT_ALL_AXES, false)));
    expect_values("gradient", rapt_gradient(embedding->weight), 6, (double[]){1, 1, 1, 1, 2, 2}, 0);
    expect_no_error();
    cr_expect_null(rapt_embedding_forward(embedding, rapt_from(RAPT_INT32, RAPT_SHAPE(2), (int32_t[]){0, 3})));
    expect_error(RAPT_ERROR_VALUE, "3");
    cr_expect_null(rapt_embedding_forward(embedding, rapt_from(RAPT_INT64, RAPT_SHAPE(1), (int64_t[]){-1})));
    expect_error(RAPT_ERROR_VALUE, "-1");
    cr_expect_null(rapt_embedding_forward(embedding, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2))));
    expect_error(RAPT_ERROR_DTYPE, "float32");
    cr_expect_null(rapt_embedding_forward(embedding, NULL));
    expect_error(RAPT_ERROR_NULL, "Embedding");
    cr_expect_null(rapt_embedding_forward(NULL, indices));
    expect_error(RAPT_ERROR_NULL, "NULL");
    cr_expect_null(rapt_embedding_new(-1, 2));
    expect_error(RAPT_ERROR_VALUE, "-1");
    rapt_module_free(&embedding->module);
}

Test(layers, embedding_starts_normal)
{
    rapt_seed(8);
    rapt_embedding *embedding = rapt_embedding_new(500, 400);
    expect_moments(embedding->weight, 0, 1, 3);
    rapt_module_free(&embedding->module);
}

Test(layers, layer_norm)
{
    RAPT_SCOPE;
    rapt_layer_norm *layer = rapt_layer_norm_new(2, RAPT_BIAS);
    expect_parameter(layer, "weight", RAPT_SHAPE(2));
    expect_parameter(layer, "bias", RAPT_SHAPE(2));
    cr_expect_eq(layer->epsilon, 1e-5);
    cr_expect(rapt_module_cast(&layer->module, RAPT_FLOAT64));
    rapt_tensor *x = doubles(RAPT_SHAPE(2, 2), (double[]){1, 2, 2, 3});
    /* 0.5 / √(0.25 + 1e-5) */
    const double one = 0.99998000059998;
    expect_values("at first", rapt_layer_norm_forward(layer, x), 4, (double[]){-one, one, -one, one}, 1e-8);
    set_values(layer, "weight", (double[]){2, 10});
    set_values(layer, "bias", (double[]){0.5, -1});
    const double scaled[] = {0.5 - 2 * one, 10 * one - 1, 0.5 - 2 * one, 10 * one - 1};
    expect_values("scaled and shifted", rapt_layer_norm_forward(layer, x), 4, scaled, 1e-8);
    layer->epsilon = 0.75; /* 0.5 / √(0.25 + 0.75) */
    expect_values("epsilon", rapt_layer_norm_forward(layer, x), 4, (double[]){-0.5, 4, -0.5, 4}, 1e-12);
    rapt_layer_norm *scaling = rapt_layer_norm_new(2, RAPT_NO_BIAS);
    cr_expect(!scaling->bias && !rapt_module_find(&scaling->module, "bias"));
    cr_expect(rapt_module_cast(&scaling->module, RAPT_FLOAT64));
    expect_values("no bias", rapt_layer_norm_forward(scaling, x), 4, (double[]){-one, one, -one, one}, 1e-8);
    rapt_module_free(&scaling->module);
    expect_no_error();
    cr_expect_null(rapt_layer_norm_forward(layer, doubles(RAPT_SHAPE(1, 3), (double[]){1, 2, 3})));
    expect_error(RAPT_ERROR_SHAPE, "3");
    cr_expect_null(rapt_layer_norm_forward(layer, NULL));
    expect_error(RAPT_ERROR_NULL, "LayerNorm");
    cr_expect_null(rapt_layer_norm_forward(NULL, x));
    expect_error(RAPT_ERROR_NULL, "NULL");
    cr_expect_null(rapt_layer_norm_new(-2, RAPT_BIAS));
    expect_error(RAPT_ERROR_VALUE, "-2");
    rapt_module_free(&layer->module);
}

Test(layers, rms_norm)
{
    RAPT_SCOPE;
    rapt_rms_norm *layer = rapt_rms_norm_new(2);
    expect_parameter(layer, "weight", RAPT_SHAPE(2));
    cr_expect_null(rapt_module_find(&layer->module, "bias"));
    cr_expect_eq(layer->epsilon, 1e-6);
    cr_expect(rapt_module_cast(&layer->module, RAPT_FLOAT64));
    /* √((1² + 7²) / 2) = 5 */
    rapt_tensor *x = doubles(RAPT_SHAPE(2, 2), (double[]){1, 7, -7, 1});
    expect_values("at first", rapt_rms_norm_forward(layer, x), 4, (double[]){0.2, 1.4, -1.4, 0.2}, 1e-7);
    set_values(layer, "weight", (double[]){2, 10});
    layer->epsilon = 75; /* √(25 + 75) = 10 */
    expect_values("scaled", rapt_rms_norm_forward(layer, x), 4, (double[]){0.2, 7, -1.4, 1}, 1e-15);
    expect_no_error();
    cr_expect_null(rapt_rms_norm_forward(layer, doubles(RAPT_SHAPE(1, 3), (double[]){1, 2, 3})));
    expect_error(RAPT_ERROR_SHAPE, "3");
    cr_expect_null(rapt_rms_norm_forward(layer, NULL));
    expect_error(RAPT_ERROR_NULL, "RMSNorm");
    cr_expect_null(rapt_rms_norm_forward(NULL, x));
    expect_error(RAPT_ERROR_NULL, "NULL");
    rapt_module_free(&layer->module);
    cr_expect_null(rapt_rms_norm_new(-2));
    expect_error(RAPT_ERROR_VALUE, "-2");
}

/* The other axis: what batch normalisation would give, made of ops (Dive into Deep Learning, 11.7.3). */
Test(layers, normalisation_over_the_batch)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_from(RAPT_FLOAT64, RAPT_SHAPE(2, 2), (double[]){1, 2, 2, 3});
    rapt_tensor *centered = rapt_sub(x, rapt_mean(x, RAPT_AXES(0), true));
    rapt_tensor *variance = rapt_add_scalar(rapt_var(x, RAPT_AXES(0), true, 0), 1e-5);
    const double one = 0.5 / sqrt(0.25 + 1e-5); /* 0.99998 */
    expect_values("by column", rapt_mul(centered, rapt_rsqrt(variance)), 4, (double[]){-one, -one, one, one}, 1e-12);
    expect_no_error();
}

Test(layers, dropout)
{
    RAPT_SCOPE;
    rapt_seed(9);
    enum { n = 100000 };
    rapt_dropout *dropout = rapt_dropout_new(0.2);
    rapt_tensor *x = rapt_require_gradient(rapt_full(RAPT_FLOAT64, RAPT_SHAPE(n), 3));
    rapt_tensor *y = rapt_dropout_forward(dropout, x);
    const double *values = values_of(y);
    int zeros = 0;
    for (int i = 0; i < n; i++) {
        zeros += values[i] == 0;
        cr_assert(values[i] == 0 || fabs(values[i] - 3 / 0.8) < 1e-12, "%g", values[i]);
    }
    cr_expect(fabs(zeros - 0.2 * n) < 5 * sqrt(n * 0.2 * 0.8), "%d zeros", zeros);
    cr_expect(rapt_backward(rapt_sum(y, RAPT_ALL_AXES, false)));
    const double *gradient = values_of(rapt_gradient(x));
    for (int i = 0; i < n; i++)
        cr_assert(fabs(gradient[i] * 3 - values[i]) < 1e-12, "the gradient goes where the values went");
    cr_expect_not(same_bits(y, rapt_dropout_forward(dropout, x)), "each forward draws anew");
    rapt_module_train(&dropout->module, false);
    cr_expect(same_bits(x, rapt_dropout_forward(dropout, x)));
    rapt_module_train(&dropout->module, true);
    dropout->probability = 0;
    cr_expect(same_bits(x, rapt_dropout_forward(dropout, x)));
    dropout->probability = 1;
    cr_expect(same_bits(rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(n)), rapt_dropout_forward(dropout, x)));
    expect_no_error();
    cr_expect_null(rapt_dropout_forward(dropout, NULL));
    expect_error(RAPT_ERROR_NULL, "Dropout");
    cr_expect_null(rapt_dropout_forward(NULL, x));
    expect_error(RAPT_ERROR_NULL, "NULL");
    rapt_module_free(&dropout->module);
    const double bad[] = {-0.1, 1.1, (double)NAN};
    for (int i = 0; i < 3; i++) {
        cr_expect_null(rapt_dropout_new(bad[i]));
        expect_error(RAPT_ERROR_VALUE, "0 to 1");
    }
}

Test(layers, sequential)
{
    RAPT_SCOPE;
    rapt_linear *first = rapt_linear_new(2, 2, RAPT_BIAS), *last = rapt_linear_new(2, 1, RAPT_NO_BIAS);
    rapt_sequential *net = RAPT_SEQUENTIAL(&first->module, rapt_activation_new("relu", rapt_relu), &last->module);
    expect_parameter(net, "0.weight", RAPT_SHAPE(2, 2));
    expect_parameter(net, "2.weight", RAPT_SHAPE(1, 2));
    cr_expect(rapt_module_cast(&net->module, RAPT_FLOAT64));
    set_values(net, "0.weight", (double[]){1, 2, -1, 1});
    set_values(net, "0.bias", (double[]){0, 1});
    set_values(net, "2.weight", (double[]){10, 100});
    /* relu(1·1 + 2·2, −1 + 2 + 1) = (5, 2); relu(1·3 − 2·1, −3 − 1 + 1) = (1, 0) */
    rapt_tensor *x = doubles(RAPT_SHAPE(2, 2), (double[]){1, 2, 3, -1});
    expect_values("net", rapt_sequential_forward(net, x), 2, (double[]){250, 10}, 0);
    expect_values("as a module", rapt_module_forward(&net->module, x), 2, (double[]){250, 10}, 0);
    expect_no_error();
    cr_expect_null(rapt_sequential_forward(net, doubles(RAPT_SHAPE(1, 1), (double[]){1})));
    expect_error(RAPT_ERROR_SHAPE, "[1, 1]");
    cr_expect_null(rapt_sequential_forward(net, NULL));
    expect_error(RAPT_ERROR_NULL, "Sequential");
    cr_expect_null(rapt_sequential_forward(NULL, x));
    expect_error(RAPT_ERROR_NULL, "NULL");
    rapt_module_free(&net->module);

    rapt_sequential *empty = rapt_sequential_new(0, NULL);
    cr_expect_eq(rapt_sequential_forward(empty, x), x);
    rapt_module_free(&empty->module);
    expect_no_error();
}

Test(layers, sequential_of_a_failed_layer_frees_the_others)
{
    const int64_t before = live_bytes();
    cr_expect_null(RAPT_SEQUENTIAL((rapt_module *)rapt_linear_new(2, 2, RAPT_BIAS), (rapt_module *)rapt_dropout_new(2),
                                   (rapt_module *)rapt_linear_new(2, 2, RAPT_BIAS)));
    expect_error(RAPT_ERROR_VALUE, "Dropout: probability 2");
    cr_expect_null(RAPT_SEQUENTIAL((rapt_module *)rapt_linear_new(2, 2, RAPT_BIAS), NULL));
    expect_error(RAPT_ERROR_NULL, "Sequential: member '1' is NULL");
    cr_expect_eq(live_bytes(), before);
    cr_expect_null(rapt_sequential_new(2, NULL));
    expect_error(RAPT_ERROR_NULL, "layers");
    cr_expect_null(rapt_sequential_new(-1, NULL));
    expect_error(RAPT_ERROR_VALUE, "-1");
    cr_expect_null(rapt_activation_new(NULL, rapt_relu));
    expect_error(RAPT_ERROR_NULL, "name");
    cr_expect_null(rapt_activation_new("relu", NULL));
    expect_error(RAPT_ERROR_NULL, "function");
}

Test(layers, initialisers)
{
    RAPT_SCOPE;
    rapt_seed(10);
    /* A convolution's weight: fan_in 20·3·5, fan_out 200·3·5. */
    rapt_tensor *tensor = rapt_empty(RAPT_FLOAT32, RAPT_SHAPE(200, 20, 3, 5));
    cr_expect(rapt_init_xavier_uniform(tensor, 2));
    expect_uniform(tensor, 2 * sqrt(6.0 / 3300));
    cr_expect(rapt_init_xavier_normal(tensor, 2));
    expect_moments(tensor, 0, 4 * 2.0 / 3300, 3);
    cr_expect(rapt_init_kaiming_uniform(tensor, sqrt(2)));
    expect_uniform(tensor, sqrt(6.0 / 300));
    cr_expect(rapt_init_kaiming_normal(tensor, sqrt(2)));
    expect_moments(tensor, 0, 2.0 / 300, 3);
    rapt_tensor *table = rapt_empty(RAPT_FLOAT64, RAPT_SHAPE(300, 200));
    cr_expect(rapt_init_xavier_uniform(table, 1));
    expect_uniform(table, sqrt(6.0 / 500));
    rapt_tensor *single = rapt_empty(RAPT_FLOAT64, RAPT_SHAPE(1, 1)),
                *alike = rapt_empty(RAPT_FLOAT64, RAPT_SHAPE(1, 1));
    rapt_seed(11);
    cr_expect(rapt_init_xavier_uniform(single, 1));
    rapt_seed(11);
    cr_expect(rapt_fill_uniform(alike, -sqrt(3.0), sqrt(3.0)));
    cr_expect_eq(rapt_item(single), rapt_item(alike), "a fan of 1 is no less");
    cr_expect(rapt_fill_uniform(table, -3, 3));
    expect_uniform(table, 3);
    cr_expect(rapt_fill_uniform(table, 2, 4));
    expect_moments(table, 3, 1.0 / 3, 1.8);
    cr_expect(rapt_fill_normal(table, -5, 0.5));
    expect_moments(table, -5, 0.25, 3);
    expect_no_error();
}

Test(layers, initialiser_errors)
{
    RAPT_SCOPE;
    bool (*const with_gain[])(rapt_tensor *, double) = {rapt_init_xavier_uniform, rapt_init_xavier_normal,
                                                        rapt_init_kaiming_uniform, rapt_init_kaiming_normal};
    for (int i = 0; i < 4; i++) {
        cr_expect_not(with_gain[i](NULL, 1));
        expect_error(RAPT_ERROR_NULL, "tensor");
        cr_expect_not(with_gain[i](rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3)), 1));
        expect_error(RAPT_ERROR_SHAPE, "rank 2");
        cr_expect_not(with_gain[i](rapt_ones(RAPT_INT64, RAPT_SHAPE(3, 3)), 1));
        expect_error(RAPT_ERROR_DTYPE, "init_");
        cr_expect(with_gain[i](rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3, 0)), 1));
        const double gains[] = {-1, (double)NAN, (double)INFINITY};
        const char *const said[] = {"gain is -1", "gain is nan", "gain is inf"};
        for (int k = 0; k < 3; k++) {
            cr_expect_not(with_gain[i](rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3, 3)), gains[k]));
            expect_error(RAPT_ERROR_VALUE, said[k]);
        }
        cr_expect(with_gain[i](rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3, 3)), 0));
    }
    cr_expect_not(rapt_init_kaiming_normal(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3, 3)), 1e300));
    expect_error(RAPT_ERROR_VALUE, "finite float32 numbers expected");
    cr_expect_not(rapt_fill_uniform(NULL, 0, 1));
    expect_error(RAPT_ERROR_NULL, "NULL");
    cr_expect_not(rapt_fill_normal(rapt_ones(RAPT_BOOL, RAPT_SHAPE(3)), 0, 1));
    expect_error(RAPT_ERROR_DTYPE, "bool");
}

/* A Sequential that was given tensors runs its layers alone. */
Test(layers, sequential_with_tensors_of_its_own)
{
    RAPT_SCOPE;
    rapt_sequential *s = RAPT_SEQUENTIAL(rapt_activation_new("Neg", rapt_neg));
    rapt_module_add_parameter(&s->module, "weight", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3)));
    rapt_module_add_buffer(&s->module, "seen", rapt_zeros(RAPT_INT64, 0, NULL));
    rapt_module_add_child(&s->module, "last", rapt_activation_new("Exp", rapt_exp));
    expect_values("layers", rapt_sequential_forward(s, rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(2))), 2, (double[]){1, 1},
                  0);
    rapt_module_free(&s->module);
    expect_no_error();
}
