/* Conv1d and Conv2d. */
#include "modules.h"

#include <pthread.h>
#include <stdatomic.h>

#include "tensor/memory.h"

static const rapt_convolution padded = {.padding = {1, 1}, .groups = 2};

Test(convolution, of_sequences)
{
    RAPT_SCOPE;
    rapt_convolution_layer *layer = rapt_conv1d_layer_new(1, 1, 3, NULL, RAPT_BIAS);
    expect_parameter(layer, "weight", RAPT_SHAPE(1, 1, 3));
    expect_parameter(layer, "bias", RAPT_SHAPE(1));
    cr_expect(rapt_module_cast(&layer->module, RAPT_FLOAT64));
    set_values(layer, "weight", (double[]){1, 10, 100});
    set_values(layer, "bias", (double[]){0.5});
    rapt_tensor *x = doubles(RAPT_SHAPE(1, 1, 5), (double[]){1, 2, 3, 4, 5});
    rapt_tensor *y = rapt_convolution_layer_forward(layer, x);
    expect_shape(y, RAPT_SHAPE(1, 1, 3));
    expect_values("y", y, 3, (double[]){321.5, 432.5, 543.5}, 0);
    layer->options = (rapt_convolution){.stride = {2}, .padding = {2}, .dilation = {2}};
    y = rapt_convolution_layer_forward(layer, x); /* 0 1 3, 1 3 5, 3 5 0 */
    expect_values("of gaps", y, 3, (double[]){310.5, 531.5, 53.5}, 0);
    rapt_module_free(&layer->module);
    expect_no_error();
}

Test(convolution, of_images_in_groups)
{
    RAPT_SCOPE;
    rapt_convolution_layer *layer = rapt_conv2d_layer_new(2, 4, (int64_t[]){3, 1}, &padded, RAPT_NO_BIAS);
    expect_parameter(layer, "weight", RAPT_SHAPE(4, 1, 3, 1));
    cr_expect_null(rapt_module_find(&layer->module, "bias"));
    cr_expect(rapt_module_cast(&layer->module, RAPT_FLOAT64));
    set_values(layer, "weight", (double[]){1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1});
    rapt_tensor *x = doubles(RAPT_SHAPE(1, 2, 2, 1), (double[]){1, 2, 3, 4});
    rapt_tensor *y = rapt_convolution_layer_forward(layer, x);
    expect_shape(y, RAPT_SHAPE(1, 4, 2, 3));
    const double expected[] = {0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 2, 0, 0, 4, 0, 0, 0, 0, 0, 7, 0, 0, 7, 0};
    expect_values("y", y, 24, expected, 0);
    rapt_module_free(&layer->module);
    expect_no_error();
}

Test(convolution, starts_uniform)
{
    rapt_seed(7);
    rapt_convolution_layer *layer =
        rapt_conv2d_layer_new(8, 3000, (int64_t[]){5, 5}, &(rapt_convolution){.groups = 2}, RAPT_BIAS);
    expect_uniform(layer->weight, 0.1); /* 1 / √(4 · 25) */
    expect_uniform(layer->bias, 0.1);
    rapt_module_free(&layer->module);
}

Test(convolution, gradients_of_both_orders)
{
    for (int variant = 0; variant < 4; variant++) {
        RAPT_SCOPE;
        rapt_seed(5);
        const bool of_images = variant & 1;
        rapt_convolution_layer *layer =
            of_images ? rapt_conv2d_layer_new(2, 2, (int64_t[]){2, 3}, &padded, RAPT_BIAS)
                      : rapt_conv1d_layer_new(2, 4, 2, &(rapt_convolution){.stride = {2}, .padding = {1}}, RAPT_BIAS);
        cr_assert(layer && rapt_module_cast(&layer->module, RAPT_FLOAT64), "%s", rapt_error());
        rapt_tensor *x = rapt_require_gradient(of_images ? rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 2, 3, 2))
                                                         : rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 2, 5)));
        const rapt_gradcheck_result result =
            rapt_module_gradcheck(&layer->module, NULL, 1, &x, &(rapt_gradcheck_options){.second_order = variant & 2});
        cr_expect(result.passed, "variant %d: %s", variant, result.message);
        rapt_module_free(&layer->module);
    }
    expect_no_error();
}

Test(convolution, errors)
{
    RAPT_SCOPE;
    const int64_t before = live_bytes(), size[2] = {3, 3};
    cr_expect_null(rapt_conv1d_layer_new(4, 6, 3, &(rapt_convolution){.groups = 3}, RAPT_BIAS));
    expect_error(RAPT_ERROR_VALUE, "Conv1d: 4 to 6 channels in 3 groups");
    cr_expect_null(rapt_conv2d_layer_new(4, 6, size, &(rapt_convolution){.groups = -1}, RAPT_BIAS));
    expect_error(RAPT_ERROR_VALUE, "-1 groups");
    cr_expect_null(rapt_conv2d_layer_new(4, 6, NULL, NULL, RAPT_BIAS));
    expect_error(RAPT_ERROR_NULL, "Conv2d: size is NULL");
    cr_expect_null(rapt_conv1d_layer_new(-2, 6, 3, NULL, RAPT_BIAS));
    expect_error(RAPT_ERROR_VALUE, "-2");
    cr_expect_null(rapt_conv1d_layer_new(1, 1, 0, NULL, RAPT_BIAS));
    expect_error(RAPT_ERROR_VALUE, "Conv1d: size 0, stride 1, padding 0 and dilation 1; 1 or more expected");
    cr_expect_null(rapt_conv1d_layer_new(1, 1, 2, &(rapt_convolution){.stride = {-3}}, RAPT_BIAS));
    expect_error(RAPT_ERROR_VALUE, "Conv1d: size 2, stride -3");
    cr_expect_null(rapt_conv2d_layer_new(1, 1, size, &(rapt_convolution){.padding = {0, -1}}, RAPT_BIAS));
    expect_error(RAPT_ERROR_VALUE, "Conv2d: size 3, stride 1, padding -1");
    cr_expect_eq(live_bytes(), before);
    rapt_convolution_layer *layer = rapt_conv2d_layer_new(2, 3, size, NULL, RAPT_BIAS);
    cr_expect_null(rapt_convolution_layer_forward(layer, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 3, 4, 4))));
    expect_error(RAPT_ERROR_SHAPE, "x is [1, 3, 4, 4], weight is [3, 2, 3, 3]");
    cr_expect_null(rapt_convolution_layer_forward(layer, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 2, 2, 4))));
    expect_error(RAPT_ERROR_SHAPE, "does not fit into 2");
    cr_expect_null(rapt_convolution_layer_forward(layer, rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(1, 2, 4, 4))));
    expect_error(RAPT_ERROR_DTYPE, "float64");
    cr_expect_null(rapt_convolution_layer_forward(layer, NULL));
    expect_error(RAPT_ERROR_NULL, "Conv2d");
    cr_expect_null(rapt_convolution_layer_forward(NULL, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1))));
    expect_error(RAPT_ERROR_NULL, "NULL");
    rapt_module_free(&layer->module);
}

Test(convolution, images_and_channels_of_nothing_take_no_time)
{
    RAPT_SCOPE;
    rapt_tensor *images = rapt_require_gradient(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(SIZE_MAX / 32, 0, 1)));
    rapt_tensor *none = rapt_require_gradient(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(0, 0, 1)));
    cr_expect(rapt_backward(rapt_sum(rapt_conv1d(images, none, NULL, NULL), RAPT_ALL_AXES, false)));
    rapt_tensor *x = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 4)));
    rapt_tensor *no_outputs = rapt_require_gradient(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(0, 3, 1)));
    cr_expect(rapt_backward(rapt_sum(rapt_conv1d(x, no_outputs, NULL, NULL), RAPT_ALL_AXES, false)));
    cr_expect_eq(rapt_item(rapt_max(rapt_abs(rapt_gradient(x)), RAPT_ALL_AXES, false)), 0);
    expect_no_error();
}

Test(convolution, pools_without_a_description_are_errors)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 2, 4, 4));
    cr_expect_null(rapt_max_pool2d(x, NULL));
    expect_error(RAPT_ERROR_NULL, "max_pool2d: pool is NULL");
    cr_expect_null(rapt_avg_pool2d(x, NULL));
    expect_error(RAPT_ERROR_NULL, "avg_pool2d: pool is NULL");
}

/* The next window would be beyond all numbers: there is one. */
Test(convolution, of_any_stride)
{
    RAPT_SCOPE;
    const int64_t strides[] = {4, 5, 1 << 20, INT64_MAX / 2, INT64_MAX - 1, INT64_MAX};
    for (int i = 0; i < 6; i++) {
        const int64_t stride = strides[i];
        rapt_tensor *x = rapt_require_gradient(rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(1, 1, 3, 4))),
                    *weight = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(1, 1, 2, 3));
        rapt_tensor *y = rapt_conv2d(x, weight, NULL, &(rapt_convolution){.stride = {stride, stride}});
        expect_values("convolution", y, 1, (double[]){6}, 0);
        cr_expect(rapt_backward(y));
        expect_values("gradient", rapt_gradient(x), 12, (double[]){1, 1, 1, 0, 1, 1, 1, 0, 0, 0, 0, 0}, 0);
        const rapt_pool pool = {.size = {2, 3}, .stride = {stride, stride}, .ceil = true};
        expect_values("mean", rapt_avg_pool2d(x, &pool), 1, (double[]){1}, 0);
        expect_values("largest", rapt_max_pool2d(x, &pool), 1, (double[]){1}, 0);
    }
    expect_no_error();
}

/* The values are PyTorch's (ceil_mode). */
Test(convolution, a_pool_of_one_window_that_is_larger_than_the_image)
{
    const struct {
        int64_t in, size, stride, padding, dilation;
        double largest, mean, without_padding;
    } cases[] = {{3, 4, 2, 0, 1, 3, 2, 2},     {3, 4, 5, 0, 1, 3, 2, 2},     {3, 6, 2, 1, 1, 3, 1.2, 2},
                 {4, 9, 6, 0, 1, 4, 2.5, 2.5}, {1, 4, 9, 0, 1, 1, 1, 1},     {4, 12, 5, 3, 1, 4, 1, 2.5},
                 {3, 2, 3, 0, 4, 1, NAN, NAN}, {3, 3, 2, 1, 2, 2, NAN, NAN}, {4, 2, 2, 0, 4, 1, NAN, NAN}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        RAPT_SCOPE;
        rapt_pool pool = {.size = {cases[i].size},
                          .stride = {cases[i].stride},
                          .padding = {cases[i].padding},
                          .dilation = {cases[i].dilation},
                          .ceil = true};
        rapt_tensor *numbers = rapt_arange(RAPT_FLOAT64, 1, (double)cases[i].in + 1, 1);
        rapt_tensor *x = rapt_require_gradient(rapt_reshape(numbers, RAPT_SHAPE(1, 1, cases[i].in)));
        expect_values("largest", rapt_max_pool1d(x, &pool), 1, &cases[i].largest, 0);
        if (cases[i].dilation > 1) continue;
        rapt_tensor *mean = rapt_avg_pool1d(x, &pool);
        expect_values("mean", mean, 1, &cases[i].mean, 1e-15);
        cr_expect(rapt_backward(mean), "%s", rapt_error());
        const double sum = (double)(cases[i].in * (cases[i].in + 1)) / 2, share = cases[i].mean / sum;
        expect_values("gradient", rapt_gradient(x), cases[i].in, (double[]){share, share, share, share}, 1e-15);
        pool.leaves_padding_out = true;
        expect_values("without padding", rapt_avg_pool1d(x, &pool), 1, &cases[i].without_padding, 1e-15);
    }
    expect_no_error();
    const int64_t strides[] = {1, 3, 5};
    for (int i = 0; i < 3; i++) {
        const rapt_pool pool = {.size = {2 * i + 4}, .stride = {strides[i]}, .ceil = true};
        cr_expect_null(rapt_max_pool1d(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 1, 3)), &pool));
        expect_error(RAPT_ERROR_SHAPE, "does not fit into 3");
    }
    const rapt_pool vast = {.size = {INT64_MAX, INT64_MAX}, .stride = {INT64_MAX, INT64_MAX}, .ceil = true};
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 1, 2, 3));
    expect_values("vast", rapt_max_pool2d(x, &vast), 1, (double[]){1}, 0);
    expect_values("vast", rapt_avg_pool2d(x, &vast), 1, (double[]){1}, 0);
    const int64_t side = (int64_t)1 << 32; /* squared it is no int64 */
    const rapt_pool square = {.size = {side, side}, .stride = {side, side}, .padding = {side / 2, side / 2}};
    x = rapt_require_gradient(rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(1, 1, 2, 2)));
    rapt_tensor *mean = rapt_avg_pool2d(x, &square);
    expect_values("square", mean, 1, (double[]){0x1p-62}, 0);
    cr_assert(rapt_backward(rapt_sum(mean, RAPT_ALL_AXES, false)), "%s", rapt_error());
    cr_expect_eq(rapt_at(rapt_gradient(x), (int64_t[]){0, 0, 1, 1}), 0x1p-64);
    expect_no_error();
}

/* The second window begins at x's fourth number. */
Test(convolution, of_any_padding)
{
    RAPT_SCOPE;
    const rapt_convolution far = {.padding = {(INT64_C(1) << 62) - 3}, .stride = {INT64_C(1) << 62}};
    rapt_tensor *x = rapt_require_gradient(rapt_arange(RAPT_FLOAT64, 1, 6, 1)),
                *weight = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(1, 1, 2));
    rapt_tensor *y = rapt_conv1d(rapt_reshape(x, RAPT_SHAPE(1, 1, 5)), weight, NULL, &far);
    expect_values("convolution", y, 2, (double[]){0, 9}, 0);
    cr_expect(rapt_backward(rapt_sum(y, RAPT_ALL_AXES, false)));
    expect_values("gradient", rapt_gradient(x), 5, (double[]){0, 0, 0, 1, 1}, 0);
    expect_no_error();
}

static pthread_t caller;
static _Atomic int told, told_elsewhere;

static void count_told(rapt_error_code code, const char *message)
{
    cr_expect(code == RAPT_ERROR_MEMORY && strstr(message, "no memory for"), "%s", message);
    atomic_fetch_add(pthread_equal(pthread_self(), caller) ? &told : &told_elsewhere, 1);
}

/* Whichever product of whichever thread has no memory, the caller's handler hears of it once, in its own thread. */
Test(convolution, a_handler_hears_once_of_products_without_memory, .timeout = 120)
{
    RAPT_SCOPE;
    const int threads = rapt_get_threads();
    rapt_convolution_layer *layer = rapt_conv2d_layer_new(64, 64, (int64_t[]){3, 3}, NULL, RAPT_BIAS);
    rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(6, 64, 40, 40));
    caller = pthread_self();
    cr_assert(rapt_set_threads(3));
    bool good = false;
    int failures = 0;
    rapt_on_error(count_told);
    for (; !good && failures < 1000; failures += !good) {
        RAPT_SCOPE;
        told = told_elsewhere = 0;
        rapt_memory_fail_after(failures);
        rapt_tensor *y = rapt_convolution_layer_forward(layer, x);
        rapt_memory_fail_after(-1);
        good = y != NULL;
        cr_expect(told == !good && told_elsewhere == 0, "after %d blocks: told %d times, and %d elsewhere", failures,
                  told, told_elsewhere);
        cr_expect(good || strstr(rapt_error(), "no memory for"), "%s", rapt_error());
        rapt_clear_error();
    }
    rapt_on_error(NULL);
    rapt_set_threads(threads);
    cr_expect(failures > 5, "only %d failures", failures);
    rapt_module_free(&layer->module);
    expect_no_error();
}

/* The end of the second window is past all numbers, which the sanitizers would see. */
Test(convolution, of_the_largest_padding_and_stride)
{
    RAPT_SCOPE;
    const int64_t half = (int64_t)1 << 62;
    rapt_tensor *one = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 1, 1));
    expect_values("half a stride away",
                  rapt_conv1d(one, one, NULL, &(rapt_convolution){.stride = {half + 1}, .padding = {half - 1}}), 2,
                  (double[]){0, 0}, 0);
    expect_no_error();
}
