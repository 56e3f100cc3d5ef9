/* Averages of a run's values, and gradients added over the parts of a batch. */
#include "optimizing.h"

#include <math.h>
#include <unistd.h>

#include "temporary_file.h"
#include "tensor/memory.h"

static const rapt_module_class model_class = {.name = "Model"};

static rapt_module *model_of(double value)
{
    rapt_module *module = rapt_module_new(sizeof *module, &model_class);
    rapt_module_add_parameter(module, "weight", rapt_full(RAPT_FLOAT64, RAPT_SHAPE(2, 3), value));
    rapt_module_add_buffer(module, "count", rapt_zeros(RAPT_INT64, RAPT_SHAPE(1)));
    return rapt_module_finish(module);
}

static double weight(const rapt_module *module)
{
    return rapt_at(rapt_module_find(module, "weight"), (int64_t[]){1, 2});
}

static void set_weight(const rapt_module *module, double value)
{
    rapt_fill(rapt_module_find(module, "weight"), value);
}

/* The average's value, by swapping it in and out. */
static double averaged(rapt_average *average, const rapt_module *module)
{
    cr_assert(rapt_average_swap(average), "%s", rapt_error());
    const double value = weight(module);
    cr_assert(rapt_average_swap(average), "%s", rapt_error());
    return value;
}

Test(average, exponential)
{
    RAPT_SCOPE;
    rapt_module *module = model_of(8);
    rapt_average *average = rapt_average_new(module, &(rapt_average_config){.decay = 0.5});
    cr_expect_eq(averaged(average, module), 8);
    const double values[] = {4, 2, 6}, expected[] = {4, 3, 4.5};
    for (int i = 0; i < 3; i++) {
        set_weight(module, values[i]);
        cr_assert(rapt_average_update(average), "%s", rapt_error());
        cr_expect_eq(averaged(average, module), expected[i]);
        cr_expect_eq(weight(module), values[i]);
    }
    cr_expect_eq(rapt_average_get_updates(average), 3);
    rapt_average_free(average);
    rapt_module_free(module);
    expect_no_error();
}

Test(average, equal_and_warming_up)
{
    RAPT_SCOPE;
    rapt_module *module = model_of(0);
    cr_expect_null(rapt_average_new(module, &(rapt_average_config){.equal = true, .warms_up = true}));
    expect_error(RAPT_ERROR_VALUE, "equal beside warms_up");
    rapt_average *equal = rapt_average_new(module, &(rapt_average_config){.equal = true});
    rapt_average *warm = rapt_average_new(module, &(rapt_average_config){.warms_up = true});
    double expected = 0;
    for (int i = 0; i < 4; i++) {
        set_weight(module, i + 1);
        cr_assert(rapt_average_update(equal) && rapt_average_update(warm), "%s", rapt_error());
        const double decay = i == 0 ? 0 : (1. + i) / (10 + i);
        expected = decay * expected + (1 - decay) * (i + 1);
    }
    cr_expect_float_eq(averaged(equal, module), 2.5, 1e-14);
    cr_expect_float_eq(averaged(warm, module), expected, 1e-14);
    rapt_average_free(equal);
    rapt_average_free(warm);
    rapt_module_free(module);
    expect_no_error();
}

Test(average, wrong_uses)
{
    RAPT_SCOPE;
    rapt_module *module = model_of(1);
    cr_expect_null(rapt_average_new(NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "module is NULL");
    cr_expect_null(rapt_average_new(module, &(rapt_average_config){.decay = 1}));
    expect_error(RAPT_ERROR_VALUE, "decay is 1");
    rapt_average *average = rapt_average_new(module, NULL);
    rapt_archive *archive = rapt_archive_new();
    cr_assert(rapt_average_swap(average));
    cr_expect_not(rapt_average_update(average));
    expect_error(RAPT_ERROR_VALUE, "the module has the averages now");
    cr_expect_not(rapt_average_to_archive(average, NULL, archive));
    expect_error(RAPT_ERROR_VALUE, "the module has the averages now");
    cr_assert(rapt_average_swap(average));
    cr_expect_not(rapt_average_from_archive(average, NULL, archive));
    expect_error(RAPT_ERROR_FORMAT, "updates is missing");
    cr_expect_not(rapt_average_update(NULL));
    expect_error(RAPT_ERROR_NULL, "average is NULL");
    cr_expect_not(rapt_average_swap(NULL));
    expect_error(RAPT_ERROR_NULL, "average is NULL");
    cr_expect_eq(rapt_average_get_updates(NULL), 0);
    expect_error(RAPT_ERROR_NULL, "average is NULL");
    rapt_archive_free(archive);
    rapt_average_free(average);
    rapt_average_free(NULL);
    rapt_module_free(module);
}

Test(average, out_of_memory_changes_nothing)
{
    RAPT_SCOPE;
    rapt_module *module = model_of(1);
    rapt_average *average = rapt_average_new(module, NULL);
    set_weight(module, 5);
    int failures = 0;
    for (;; failures++) {
        rapt_memory_fail_after(failures);
        const bool good = rapt_average_swap(average);
        rapt_memory_fail_after(-1);
        if (good) break;
        expect_error(RAPT_ERROR_MEMORY, "no memory");
        cr_expect_eq(weight(module), 5);
    }
    cr_expect_gt(failures, 0);
    cr_expect_eq(weight(module), 1);
    for (failures = 0;; failures++) {
        rapt_memory_fail_after(failures);
        const bool good = rapt_average_swap(average);
        rapt_memory_fail_after(-1);
        if (good) break;
        expect_error(RAPT_ERROR_MEMORY, "no memory");
        cr_expect_eq(weight(module), 1);
    }
    cr_expect_eq(weight(module), 5);
    rapt_average_free(average);
    rapt_module_free(module);
    expect_no_error();
}

/* Nothing gets lost, and nothing gets into the averages, where the module is not what it was when they came in. */
Test(average, swapped_back_from_what_was_swapped_in)
{
    RAPT_SCOPE;
    rapt_module *module = model_of(1);
    rapt_average *a = rapt_average_new(module, NULL);
    set_weight(module, 2);
    rapt_average *b = rapt_average_new(module, NULL);
    set_weight(module, 3);
    cr_assert(rapt_average_swap(a) && rapt_average_swap(b), "%s", rapt_error());
    cr_expect_eq(weight(module), 2);
    cr_expect_not(rapt_average_swap(a));
    expect_error(RAPT_ERROR_VALUE, "weight was changed since the averages were swapped in");
    cr_expect_eq(weight(module), 2);
    cr_assert(rapt_average_swap(b), "%s", rapt_error());
    cr_expect_eq(weight(module), 1);
    cr_assert(rapt_average_swap(a), "%s", rapt_error());
    cr_expect_eq(weight(module), 3);

    cr_assert(rapt_average_swap(a), "%s", rapt_error());
    set_weight(module, 9);
    cr_expect_not(rapt_average_swap(a));
    expect_error(RAPT_ERROR_VALUE, "weight was changed");
    cr_expect_eq(weight(module), 9);
    set_weight(module, 1);
    rapt_fill(rapt_module_find(module, "count"), 5); /* a buffer may change, and is the averages' */
    cr_assert(rapt_average_swap(a), "%s", rapt_error());
    cr_expect_eq(rapt_item(rapt_module_find(module, "count")), 0);
    cr_assert(rapt_average_swap(a), "%s", rapt_error());
    cr_expect_eq(rapt_item(rapt_module_find(module, "count")), 5);
    rapt_average_free(a); /* while swapped */
    rapt_average_free(b);
    rapt_module_free(module);
    expect_no_error();
}

Test(average, checkpoint_of_all_parts)
{
    RAPT_SCOPE;
    char path[32];
    write_temporary_file(path, "", 0);
    rapt_module *module = model_of(1), *fresh = model_of(0);
    rapt_average *average = rapt_average_new(module, NULL), *other = rapt_average_new(fresh, NULL);
    rapt_watch watch = {.patience = 3}, read_watch = {.patience = 4};
    rapt_plateau plateau = {.watch = {.patience = 0}}, read_plateau = {.cool_down = 7};
    for (int i = 0; i < 3; i++) {
        set_weight(module, i);
        rapt_average_update(average);
        rapt_watch_take(&watch, 2 + i);
        rapt_plateau_factor(&plateau, 2 + i);
    }
    const rapt_checkpoint saved = {.module = module, .average = average, .watch = &watch, .plateau = &plateau};
    cr_assert(rapt_checkpoint_save(path, &saved), "%s", rapt_error());
    rapt_checkpoint read = {.module = fresh, .average = other, .watch = &read_watch, .plateau = &read_plateau};
    cr_assert(rapt_checkpoint_load(path, &read), "%s", rapt_error());
    cr_expect_eq(weight(fresh), 2);
    cr_expect_eq(averaged(other, fresh), averaged(average, module));
    cr_expect_eq(rapt_average_get_updates(other), 3);
    cr_expect_eq(read_watch.patience, 4);
    cr_expect_eq(read_watch.best, 2);
    cr_expect_eq(read_watch.waited, 2);
    cr_expect_eq(read_plateau.cuts, 2);
    cr_expect_eq(read_plateau.cool_down, 7);
    expect_no_error();

    cr_assert(rapt_checkpoint_save(path, &(rapt_checkpoint){.module = module}), "%s", rapt_error());
    cr_expect_not(rapt_checkpoint_load(path, &read));
    expect_error(RAPT_ERROR_FORMAT, "average.updates is missing");
    read.average = NULL;
    cr_expect_not(rapt_checkpoint_load(path, &read));
    expect_error(RAPT_ERROR_FORMAT, "watch is missing");
    unlink(path);
    rapt_average_free(average), rapt_average_free(other);
    rapt_module_free(module), rapt_module_free(fresh);
}

/* --- accumulation --- */

/* The mean loss of the rows [first, last) */
static rapt_tensor *loss_of(rapt_tensor *weights, rapt_tensor *x, rapt_tensor *y, int64_t first, int64_t last)
{
    rapt_tensor *rows = rapt_slice(x, 0, first, last, 1), *targets = rapt_slice(y, 0, first, last, 1);
    return rapt_mse_loss(rapt_matmul(rows, weights), targets, RAPT_REDUCE_MEAN);
}

/* Two parts of 100 rows: the gradient of each number is 1, whichever of the optimizers have it. */
Test(average, several_optimizers_of_one_model)
{
    RAPT_SCOPE;
    rapt_optimizer *optimizers[] = {descent(0.5), descent(0.25)};
    rapt_tensor *first = add_number(optimizers[0], "first", 8), *second = add_number(optimizers[1], "second", 8),
                *shared = add_number(optimizers[0], "shared", 8);
    cr_assert(rapt_optimizer_add(optimizers[1], "shared", shared));
    rapt_tensor *const p[] = {first, second, shared};
    rapt_accumulation accumulation = {0};
    for (int part = 0; part < 2; part++)
        cr_assert(rapt_accumulate(&accumulation, rapt_sum(rapt_concat(3, p, 0), RAPT_ALL_AXES, false), 100));
    const rapt_accumulation before = accumulation;
    double loss = 0;
    rapt_optimizer *const one_missing[] = {optimizers[0], NULL};
    cr_expect_not(rapt_accumulation_end_many(&accumulation, 2, one_missing, &loss));
    expect_error(RAPT_ERROR_NULL, "optimizer is NULL");
    cr_expect(accumulation.weight == before.weight && accumulation.loss == before.loss && loss == 0);
    for (int i = 0; i < 3; i++) cr_expect_eq(element(rapt_gradient(p[i]), 0), 200);
    cr_expect(rapt_accumulation_end_many(&accumulation, 2, optimizers, &loss), "%s", rapt_error());
    cr_expect_eq(loss, 24);
    cr_expect_eq(accumulation.weight, 0);
    for (int i = 0; i < 3; i++) cr_expect_eq(element(rapt_gradient(p[i]), 0), 1, "parameter %d", i);
    for (int i = 0; i < 2; i++) rapt_optimizer_free(optimizers[i]);
    expect_no_error();
}

/* A weight is multiplied as a number of the loss's dtype, and counted as it is. */
Test(average, weights_are_numbers_of_the_losses_dtype)
{
    RAPT_SCOPE;
    rapt_tensor *p = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1)));
    rapt_accumulation accumulation = {0};
    const double weights[] = {1e39, 1e-40};
    for (int i = 0; i < 2; i++) {
        cr_expect_not(rapt_accumulate(&accumulation, p, weights[i]));
        expect_error(RAPT_ERROR_VALUE,
                     i ? "the weight is 1e-40; 1.17549e-38 to 8.50706e+37 expected for a loss of float32"
                       : "the weight is 1e+39; 1.17549e-38 to");
        cr_expect_null(rapt_gradient(p));
        cr_expect_eq(accumulation.weight, 0);
    }
    cr_expect(rapt_accumulate(&accumulation, p, 8e37), "%s", rapt_error());
    cr_expect_not(rapt_accumulate(&accumulation, p, 8e37));
    expect_error(RAPT_ERROR_VALUE, "the weights sum to 1.6e+38; at most 8.50706e+37 expected for a loss of float32");
    cr_expect_eq(accumulation.weight, 8e37);
    cr_expect_eq(rapt_item(rapt_gradient(p)), (double)8e37f);
    rapt_clear_gradient(p);
    p = rapt_require_gradient(rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(1)));
    for (int i = 0; i < 2; i++) cr_expect(rapt_accumulate(&accumulation, p, weights[i]), "%s", rapt_error());
}

Test(average, parts_are_worth_the_whole_batch)
{
    RAPT_SCOPE;
    enum { rows = 12 };
    rapt_seed(3);
    rapt_tensor *x = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(rows, 4)), *y = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(rows, 2));
    rapt_tensor *start = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(4, 2));
    rapt_tensor *weights = rapt_require_gradient(rapt_clone(start));
    rapt_optimizer *optimizer = rapt_sgd_new(NULL, NULL);
    rapt_optimizer_add(optimizer, "weights", weights);
    rapt_tensor *whole = loss_of(weights, x, y, 0, rows);
    const double expected = rapt_item(whole);
    rapt_backward(whole);
    rapt_tensor *gradient = rapt_clone(rapt_gradient(weights));
    rapt_optimizer_clear_gradients(optimizer);

    static const int64_t cuts[] = {0, 5, 6, rows};
    rapt_accumulation accumulation = {0};
    for (int part = 0; part < 3; part++) {
        RAPT_SCOPE;
        rapt_tensor *loss = loss_of(weights, x, y, cuts[part], cuts[part + 1]);
        cr_assert(rapt_accumulate(&accumulation, loss, (double)(cuts[part + 1] - cuts[part])), "%s", rapt_error());
    }
    double loss = 0;
    cr_assert(rapt_accumulation_end(&accumulation, optimizer, &loss), "%s", rapt_error());
    cr_expect_float_eq(loss, expected, 1e-14);
    cr_expect_eq(accumulation.weight, 0);
    for (int64_t i = 0; i < 4; i++)
        for (int64_t j = 0; j < 2; j++)
            cr_expect_float_eq(rapt_at(rapt_gradient(weights), (int64_t[]){i, j}), rapt_at(gradient, (int64_t[]){i, j}),
                               1e-14);
    cr_expect_not(rapt_accumulation_end(&accumulation, optimizer, NULL));
    expect_error(RAPT_ERROR_VALUE, "there was no part");
    cr_expect_not(rapt_accumulate(&accumulation, weights, 1));
    expect_error(RAPT_ERROR_SHAPE, "float64 [4, 2]; one number expected");
    cr_expect_not(rapt_accumulate(&accumulation, rapt_scalar(RAPT_FLOAT64, 1), 0));
    expect_error(RAPT_ERROR_VALUE, "the weight is 0");
    cr_expect_not(rapt_accumulate(&accumulation, NULL, 1));
    expect_error(RAPT_ERROR_NULL, "loss is NULL");
    cr_expect_not(rapt_accumulation_end(&accumulation, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "optimizer is NULL");
    rapt_optimizer_free(optimizer);
}
