/* BatchNorm: by the batch and by running statistics. */
#include "modules.h"

#include "temporary_file.h"

static rapt_batch_norm *new_of_doubles(int64_t size)
{
    rapt_batch_norm *layer = rapt_batch_norm_new(size);
    cr_assert(layer && rapt_module_cast(&layer->module, RAPT_FLOAT64), "%s", rapt_error());
    return layer;
}

Test(batch_norm, of_vectors)
{
    RAPT_SCOPE;
    rapt_batch_norm *layer = rapt_batch_norm_new(2);
    expect_parameter(layer, "weight", RAPT_SHAPE(2));
    expect_parameter(layer, "bias", RAPT_SHAPE(2));
    expect_values("running mean", rapt_module_find(&layer->module, "running_mean"), 2, (double[]){0, 0}, 0);
    expect_values("running variance", rapt_module_find(&layer->module, "running_var"), 2, (double[]){1, 1}, 0);
    expect_values("batches", rapt_module_find(&layer->module, "num_batches_tracked"), 1, (double[]){0}, 0);
    cr_expect(layer->epsilon == 1e-5 && layer->momentum == 0.1);
    cr_expect_eq(rapt_module_parameter_count(&layer->module), 4, "buffers are not trained");
    cr_expect(rapt_module_cast(&layer->module, RAPT_FLOAT64));
    rapt_tensor *x = doubles(RAPT_SHAPE(2, 2), (double[]){1, 2, 2, 8});
    layer->epsilon = 0;
    expect_values("by column", rapt_batch_norm_forward(layer, x), 4, (double[]){-1, -1, 1, 1}, 1e-15);
    /* means 1.5 and 5, unbiased variances 0.5 and 18 */
    expect_values("running mean", layer->running_mean, 2, (double[]){0.15, 0.5}, 1e-15);
    expect_values("running variance", layer->running_var, 2, (double[]){0.95, 2.7}, 1e-15);
    expect_values("batches", layer->batches, 1, (double[]){1}, 0);
    rapt_module_train(&layer->module, false);
    set_values(layer, "running_mean", (double[]){1, 2});
    set_values(layer, "running_var", (double[]){4, 9});
    set_values(layer, "weight", (double[]){2, 3});
    set_values(layer, "bias", (double[]){10, 20});
    expect_values("in evaluation", rapt_batch_norm_forward(layer, x), 4, (double[]){10, 20, 11, 26}, 1e-14);
    expect_values("alone", rapt_batch_norm_forward(layer, rapt_slice(x, 0, 1, 2, 1)), 2, (double[]){11, 26}, 1e-14);
    expect_values("batches as before", layer->batches, 1, (double[]){1}, 0);
    expect_values("mean as before", layer->running_mean, 2, (double[]){1, 2}, 0);
    rapt_module_free(&layer->module);
    expect_no_error();
}

/* Images are so many more items of their channels. */
Test(batch_norm, of_images_is_that_of_their_pixels)
{
    RAPT_SCOPE;
    rapt_seed(3);
    for (int64_t size = 1; size < 20; size += 9) {
        rapt_batch_norm *layer = new_of_doubles(3), *flat = new_of_doubles(3);
        rapt_tensor *x = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 3, size, 2));
        rapt_tensor *pixels = rapt_reshape(rapt_permute(x, RAPT_AXES(0, 2, 3, 1)), RAPT_SHAPE(-1, 3));
        rapt_tensor *y = rapt_batch_norm_forward(layer, x), *z = rapt_batch_norm_forward(flat, pixels);
        expect_shape(y, RAPT_SHAPE(2, 3, size, 2));
        y = rapt_reshape(rapt_permute(y, RAPT_AXES(0, 2, 3, 1)), RAPT_SHAPE(-1, 3));
        cr_expect_lt(rapt_item(rapt_max(rapt_abs(rapt_sub(y, z)), RAPT_ALL_AXES, false)), 1e-14);
        rapt_tensor *distance = rapt_abs(rapt_sub(layer->running_var, flat->running_var));
        cr_expect_lt(rapt_item(rapt_max(distance, RAPT_ALL_AXES, false)), 1e-14);
        rapt_module_free(&layer->module);
        rapt_module_free(&flat->module);
    }
    expect_no_error();
}

Test(batch_norm, running_statistics_are_saved_copied_and_no_part_of_a_graph)
{
    RAPT_SCOPE;
    rapt_seed(4);
    rapt_batch_norm *layer = rapt_batch_norm_new(3), *other = rapt_batch_norm_new(3);
    rapt_tensor *x = rapt_require_gradient(rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(5, 3)));
    for (int i = 0; i < 3; i++) rapt_batch_norm_forward(layer, x);
    cr_expect(!rapt_requires_gradient(layer->running_mean) && !rapt_requires_gradient(layer->running_var));
    char path[32];
    write_temporary_file(path, "", 0);
    cr_expect(rapt_module_save(&layer->module, path) && rapt_module_load(&other->module, path));
    unlink(path);
    cr_expect(same_bits(layer->running_mean, other->running_mean) && same_bits(layer->running_var, other->running_var));
    expect_values("batches", other->batches, 1, (double[]){3}, 0);
    rapt_module_free(&other->module);
    other = rapt_batch_norm_new(3);
    cr_expect(rapt_module_copy(&other->module, &layer->module));
    cr_expect(same_bits(layer->running_var, other->running_var));
    rapt_module_free(&other->module);
    /* Frozen ones are no longer trained, but still follow. */
    cr_expect_eq(rapt_module_freeze(&layer->module, "*", true), 2);
    rapt_batch_norm_forward(layer, x);
    expect_values("batches", layer->batches, 1, (double[]){4}, 0);
    rapt_module_free(&layer->module);
    expect_no_error();
}

Test(batch_norm, gradients_of_both_orders)
{
    for (int variant = 0; variant < 8; variant++) {
        RAPT_SCOPE;
        rapt_seed(5);
        rapt_batch_norm *layer = new_of_doubles(2);
        rapt_module_train(&layer->module, variant & 1);
        rapt_tensor *x = rapt_require_gradient(variant & 2 ? rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 2, 3))
                                                           : rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(4, 2)));
        const rapt_gradcheck_result result =
            rapt_module_gradcheck(&layer->module, NULL, 1, &x, &(rapt_gradcheck_options){.second_order = variant & 4});
        cr_expect(result.passed, "variant %d: %s", variant, result.message);
        rapt_module_free(&layer->module);
    }
    expect_no_error();
}

Test(batch_norm, errors)
{
    RAPT_SCOPE;
    rapt_batch_norm *layer = rapt_batch_norm_new(3);
    rapt_tensor *bad[] = {rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3, 4)), rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3))};
    for (int training = 0; training < 2; training++) {
        rapt_module_train(&layer->module, training);
        for (int i = 0; i < 2; i++) {
            cr_expect_null(rapt_batch_norm_forward(layer, bad[i]));
            expect_error(RAPT_ERROR_SHAPE, i == 0 && training ? "[4], axis 1 of x" : i == 0 ? "[3, 4]" : "");
        }
        cr_expect_null(rapt_batch_norm_forward(layer, rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2, 3))));
        expect_error(RAPT_ERROR_DTYPE, "float64");
        cr_expect_null(rapt_batch_norm_forward(layer, NULL));
        expect_error(RAPT_ERROR_NULL, "BatchNorm");
    }
    for (int64_t items = 0; items < 2; items++) {
        cr_expect_null(rapt_batch_norm_forward(layer, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(items, 3))));
        expect_error(RAPT_ERROR_VALUE, items ? "1 numbers in each channel; 2 or more" : "0 numbers in each channel");
    }
    expect_values("batches", layer->batches, 1, (double[]){0}, 0);
    cr_expect_null(rapt_batch_norm_forward(NULL, bad[0]));
    expect_error(RAPT_ERROR_NULL, "NULL");
    rapt_module_free(&layer->module);
    cr_expect_null(rapt_batch_norm_new(-2));
    expect_error(RAPT_ERROR_VALUE, "-2");
}

Test(batch_norm, a_momentum_that_is_no_share)
{
    RAPT_SCOPE;
    rapt_batch_norm *layer = rapt_batch_norm_new(2);
    const double bad[] = {-0.5, 1.5, (double)NAN, (double)INFINITY};
    for (int i = 0; i < 4; i++) {
        layer->momentum = bad[i];
        cr_expect_null(rapt_batch_norm_forward(layer, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3, 2))));
        expect_error(RAPT_ERROR_VALUE, "BatchNorm: momentum");
    }
    expect_values("mean as before", layer->running_mean, 2, (double[]){0, 0}, 0);
    expect_values("batches as before", layer->batches, 1, (double[]){0}, 0);
    rapt_module_free(&layer->module);
}

static rapt_tensor *run_layer(rapt_tensor *const *inputs, void *layer)
{
    return rapt_batch_norm_forward(layer, inputs[0]);
}

/* The statistics have seen a batch once, though its forward ran twice. */
Test(batch_norm, a_batch_that_is_recomputed_counts_once)
{
    RAPT_SCOPE;
    rapt_batch_norm *once = new_of_doubles(3), *again = new_of_doubles(3);
    rapt_tensor *x = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(5, 3)));
    for (int batch = 0; batch < 2; batch++) {
        cr_assert(rapt_backward(rapt_sum(run_layer(&x, once), RAPT_ALL_AXES, false)));
        cr_assert(rapt_backward(rapt_sum(rapt_recompute(run_layer, 1, &x, again, NULL), RAPT_ALL_AXES, false)));
    }
    cr_expect_eq(rapt_item(again->batches), 2);
    expect_values("mean", again->running_mean, 3, rapt_data(once->running_mean), 0);
    expect_values("variance", again->running_var, 3, rapt_data(once->running_var), 0);
    rapt_module_free(&once->module);
    rapt_module_free(&again->module);
}

/* Each request for memory fails in turn: the statistics move together, or not at all. */
Test(batch_norm, statistics_without_memory)
{
    RAPT_SCOPE;
    rapt_batch_norm *layer = rapt_batch_norm_new(3);
    rapt_tensor *x = rapt_add_scalar(rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(5, 3, 2)), 5);
    bool done = false;
    for (int64_t blocks = 0; !done && blocks < 100; blocks++) {
        RAPT_SCOPE;
        rapt_memory_fail_after(blocks);
        done = rapt_batch_norm_forward(layer, x) != NULL;
        rapt_memory_fail_after(-1);
        cr_expect(done || rapt_error(), "without block %lld", (long long)blocks);
        rapt_clear_error();
        const double count = done;
        expect_values("batches", layer->batches, 1, &count, 0);
        for (int64_t c = 0; c < 3; c++) {
            cr_expect_eq(rapt_at(layer->running_mean, &c) != 0, done, "without block %lld", (long long)blocks);
            cr_expect_eq(rapt_at(layer->running_var, &c) != 1, done, "without block %lld", (long long)blocks);
        }
    }
    cr_expect(done);
    rapt_module_free(&layer->module);
    expect_no_error();
}

/* 2⁵³ + 1 is no double. */
Test(batch_norm, batches_are_counted_in_integers)
{
    RAPT_SCOPE;
    const int64_t many = ((int64_t)1 << 53) + 1;
    rapt_batch_norm *layer = rapt_batch_norm_new(1);
    cr_assert(rapt_set_at_int64(layer->batches, NULL, many));
    cr_assert(rapt_batch_norm_forward(layer, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 1))), "%s", rapt_error());
    cr_expect_eq(rapt_item_int64(layer->batches), many + 1);
    rapt_module_free(&layer->module);
    expect_no_error();
}

/* Each block alone fails in turn: result, mean and variance come together, or none of them. */
Test(batch_norm, outputs_without_memory)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(5, 3)), *mean, *variance;
    for (int64_t block = 0, failed = 1; failed; block++) {
        RAPT_SCOPE;
        rapt_memory_fail_once(block);
        rapt_tensor *y = rapt_batch_normalize(x, NULL, NULL, 1e-5, &mean, &variance);
        failed = rapt_memory_fail_after(-1) < 0;
        cr_expect(!y == !mean && !y == !variance && !y == (rapt_error() != NULL), "without block %lld",
                  (long long)block);
        rapt_clear_error();
    }
}

/* Of no channel a batch still has its numbers. */
Test(batch_norm, of_no_channel)
{
    RAPT_SCOPE;
    rapt_batch_norm *layer = rapt_batch_norm_new(0);
    expect_shape(rapt_batch_norm_forward(layer, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 0, 4))), RAPT_SHAPE(2, 0, 4));
    expect_no_error();
    cr_expect_null(rapt_batch_norm_forward(layer, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 0))));
    expect_error(RAPT_ERROR_VALUE, "1 numbers in each channel");
    rapt_module_free(&layer->module);
}

Test(batch_norm, epsilon_is_checked_in_evaluation_too)
{
    RAPT_SCOPE;
    rapt_batch_norm *layer = rapt_batch_norm_new(2);
    layer->epsilon = -2;
    for (int training = 0; training < 2; training++) {
        rapt_module_train(&layer->module, training);
        cr_expect_null(rapt_batch_norm_forward(layer, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 2))));
        expect_error(RAPT_ERROR_VALUE, "epsilon -2; a finite number of at least 0 expected");
    }
    rapt_module_free(&layer->module);
}

static rapt_tensor *by_definition(rapt_tensor *x, rapt_tensor *weight, rapt_tensor *bias, double epsilon)
{
    const int64_t channels = rapt_size(x, 1);
    rapt_tensor *mean = rapt_mean(x, RAPT_AXES(0, 2), true), *centered = rapt_sub(x, mean);
    rapt_tensor *variance = rapt_mean(rapt_pow_scalar(centered, 2), RAPT_AXES(0, 2), true);
    rapt_tensor *y = rapt_mul(centered, rapt_rsqrt(rapt_add_scalar(variance, epsilon)));
    return rapt_add(rapt_mul(y, rapt_reshape(weight, RAPT_SHAPE(channels, 1))),
                    rapt_reshape(bias, RAPT_SHAPE(channels, 1)));
}

Test(batch_norm, of_more_numbers_than_are_worked_on_at_once)
{
    static const int64_t shapes[][3] = {{2, 3, 5000}, {3, 4099, 1}, {700, 2, 7}, {1, 2, 2049}};
    for (int i = 0; i < 4; i++) {
        RAPT_SCOPE;
        rapt_seed(11);
        const int64_t *shape = shapes[i];
        rapt_tensor *x = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, 3, shape)),
                    *weight = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, 1, shape + 1)),
                    *bias = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, 1, shape + 1));
        rapt_tensor *inputs[] = {x, weight, bias}, *got[3], *expected[3], *g = rapt_randn(RAPT_FLOAT64, 3, shape);
        rapt_tensor *y = rapt_batch_normalize(x, weight, bias, 1e-3, NULL, NULL),
                    *defined = by_definition(x, weight, bias, 1e-3);
        expect_values("y", y, rapt_count(y), rapt_data(rapt_contiguous(defined)), 1e-9);
        cr_assert(rapt_gradients(1, &y, &g, 3, inputs, got, 0) &&
                      rapt_gradients(1, &defined, &g, 3, inputs, expected, 0),
                  "%s", rapt_error());
        for (int k = 0; k < 3; k++)
            expect_values("gradient", got[k], rapt_count(got[k]), rapt_data(rapt_contiguous(expected[k])), 1e-9);
        expect_no_error();
    }
}
