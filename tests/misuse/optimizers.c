/* Mistakes with optimizers: steps, rates, groups, and what they outlive. */
#include <math.h>

#include "mistakes.h"

static rapt_linear *linear(void)
{
    return rapt_linear_new(3, 2, RAPT_BIAS);
}

static bool run_backward(rapt_linear *layer)
{
    return rapt_backward(total(rapt_linear_forward(layer, ones(RAPT_SHAPE(4, 3)))));
}

static bool step_without_backward(void)
{
    return rapt_optimizer_step(rapt_sgd_new(&linear()->module, NULL));
}

static bool part_without_gradient(void)
{
    rapt_linear *used = linear(), *unused = linear();
    rapt_optimizer *sgd = rapt_sgd_new(&RAPT_SEQUENTIAL(&used->module, &unused->module)->module, NULL);
    return run_backward(used) && rapt_optimizer_step(sgd);
}

static bool outlives_module(void)
{
    rapt_linear *layer = linear();
    rapt_optimizer *adam = rapt_adam_new(&layer->module, NULL);
    const bool good = run_backward(layer);
    rapt_module_free(&layer->module);
    const bool stepped = rapt_optimizer_step(adam);
    rapt_optimizer_free(adam);
    return good && stepped;
}

static bool no_parameters(void)
{
    rapt_optimizer *sgd = rapt_sgd_new(&rapt_dropout_new(0.5)->module, NULL);
    return sgd && rapt_optimizer_step(sgd) && rapt_optimizer_get_steps(sgd) == 1;
}

static bool null_optimizer(void)
{
    return !rapt_optimizer_step(NULL);
}

static bool negative_rate(void)
{
    return !rapt_sgd_new(&linear()->module, &(rapt_sgd_config){.learning_rate = -0.1});
}

static bool nan_rate(void)
{
    return !rapt_optimizer_set_learning_rate(rapt_sgd_new(&linear()->module, NULL), (double)NAN);
}

static bool zero_rate(void)
{
    rapt_optimizer *sgd = rapt_sgd_new(&linear()->module, &(rapt_sgd_config){.learning_rate = 0});
    return rapt_optimizer_get_learning_rate(sgd) > 0;
}

static bool group_of_none(void)
{
    rapt_optimizer *sgd = rapt_sgd_new(&linear()->module, NULL);
    return !rapt_optimizer_group(sgd, "*.bias", &(rapt_group_config){.learning_rate = 0.1});
}

static bool added_twice(void)
{
    rapt_linear *layer = linear();
    return !rapt_optimizer_add(rapt_sgd_new(&layer->module, NULL), "again", layer->weight);
}

static bool result_added(void)
{
    rapt_linear *layer = linear();
    return !rapt_optimizer_add(rapt_sgd_new(&layer->module, NULL), "result", rapt_exp(layer->weight));
}

static bool step_after_free(void)
{
    rapt_optimizer *sgd = rapt_sgd_new(&linear()->module, NULL);
    rapt_optimizer_free(sgd);
    return !rapt_optimizer_step(sgd);
}

static bool freed_twice(void)
{
    rapt_optimizer *adam = rapt_adam_new(&linear()->module, NULL);
    rapt_optimizer_free(adam);
    rapt_optimizer_free(adam);
    return true;
}

static bool made_of_freed_module(void)
{
    rapt_linear *layer = linear();
    rapt_module_free(&layer->module);
    return !rapt_adam_new(&layer->module, NULL);
}

static bool cast_and_run_backward(rapt_linear *layer)
{
    return rapt_module_cast(&layer->module, RAPT_FLOAT64) &&
           rapt_backward(total(rapt_linear_forward(layer, rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(4, 3)))));
}

static bool cast_after_a_step(void)
{
    rapt_linear *layer = linear();
    rapt_optimizer *adam = rapt_adam_new(&layer->module, NULL);
    return run_backward(layer) && rapt_optimizer_step(adam) && cast_and_run_backward(layer) &&
           !rapt_optimizer_step(adam);
}

static bool cast_before_the_first_step(void)
{
    rapt_linear *layer = linear();
    rapt_optimizer *adam = rapt_adam_new(&layer->module, NULL);
    const double before = rapt_item(total(layer->weight));
    return cast_and_run_backward(layer) && rapt_optimizer_step(adam) && rapt_item(total(layer->weight)) < before;
}

static bool clip_nan(void)
{
    rapt_linear *layer = linear();
    rapt_optimizer *sgd = rapt_sgd_new(&layer->module, NULL);
    rapt_tensor *x = rapt_full(RAPT_FLOAT32, RAPT_SHAPE(4, 3), (double)NAN);
    return rapt_backward(total(rapt_linear_forward(layer, x))) && !rapt_clip_gradient_norm(sgd, 1, NULL);
}

static bool clip_to_zero(void)
{
    return !rapt_clip_gradient_norm(rapt_sgd_new(&linear()->module, NULL), 0, NULL);
}

static bool state_of_other_kind(void)
{
    rapt_linear *layer = linear();
    rapt_archive *archive = rapt_archive_new();
    return rapt_optimizer_to_archive(rapt_sgd_new(&layer->module, NULL), NULL, archive) &&
           !rapt_optimizer_from_archive(rapt_adam_new(&layer->module, NULL), NULL, archive);
}

static bool frozen_parameter(void)
{
    rapt_linear *layer = linear();
    rapt_optimizer *sgd = rapt_sgd_new(&layer->module, NULL);
    const double before = rapt_item(total(layer->weight));
    return rapt_module_freeze(&layer->module, "weight", true) == 1 && run_backward(layer) && rapt_optimizer_step(sgd) &&
           rapt_item(total(layer->weight)) == before;
}

static bool average_outlives_module(void)
{
    rapt_linear *layer = linear();
    rapt_average *average = rapt_average_new(&layer->module, NULL);
    rapt_module_free(&layer->module);
    return !rapt_average_update(average);
}

static bool update_while_swapped(void)
{
    rapt_average *average = rapt_average_new(&linear()->module, NULL);
    return rapt_average_swap(average) && !rapt_average_update(average);
}

static bool average_after_free(void)
{
    rapt_average *average = rapt_average_new(&linear()->module, NULL);
    rapt_average_free(average);
    return !rapt_average_update(average);
}

static bool weight_of_none(void)
{
    rapt_accumulation parts = {0};
    return !rapt_accumulate(&parts, total(leaf(RAPT_SHAPE(3))), 0);
}

/* Two parts of three rows each: the gradient of the bias is 6 where that of the mean is 1. */
static bool accumulation_without_end(void)
{
    rapt_linear *layer = linear();
    rapt_optimizer *sgd = rapt_sgd_new(&layer->module, &(rapt_sgd_config){.learning_rate = 1});
    rapt_accumulation parts = {0};
    const double before = rapt_item(total(layer->bias));
    for (int part = 0; part < 2; part++) {
        rapt_tensor *y = rapt_linear_forward(layer, ones(RAPT_SHAPE(3, 3)));
        if (!rapt_accumulate(&parts, rapt_mul_scalar(total(y), 1.0 / 3), 3)) return false;
    }
    const bool stepped = rapt_optimizer_step(sgd);
    const double step = before - rapt_item(total(layer->bias)); /* of two numbers */
    return stepped && fabs(step - 2 * 6) < 1e-4;
}

const mistake optimizer_mistakes[] = {
    {"A step without backward", step_without_backward, WARNS, RAPT_OK, "no parameter has a gradient at the first step",
     "Forward, backward, step."},
    {"A part of the model that the loss does not reach", part_without_gradient, WARNS, RAPT_OK,
     "2 of 4 parameters got no gradient by the first step: 1.weight, 1.bias", "Use it, or `rapt_module_freeze` it."},
    {"An optimizer outlives its module", outlives_module, WORKS, RAPT_OK, "it holds shares in the parameters",
     "None needed."},
    {"An optimizer of a module without parameters", no_parameters, WARNS, RAPT_OK,
     "there is no parameter at the first step",
     "`rapt_module_add_child`, not the struct alone, gives a module its layers; `rapt_optimizer_add` adds leaves of "
     "one's "
     "own."},
    {"A NULL optimizer", null_optimizer, FAILS, RAPT_ERROR_NULL, "optimizer_step: optimizer is NULL",
     "Look why its constructor failed."},
    {"A negative learning rate", negative_rate, FAILS, RAPT_ERROR_VALUE,
     "learning_rate is -0.1; a finite number from 0 on expected", "Steps go against the gradient by themselves."},
    {"A learning rate that is NaN", nan_rate, FAILS, RAPT_ERROR_VALUE, "a finite number from 0 on expected",
     "Look at the schedule."},
    {"A learning rate of 0 in a configuration", zero_rate, WORKS, RAPT_OK, "0 means the default", "`RAPT_ZERO`."},
    {"A group that no parameter is in", group_of_none, FAILS, RAPT_ERROR_VALUE,
     "no name of the 2 parameters matches '*.bias'", "`rapt_module_print` shows the names."},
    {"A parameter is added that is there", added_twice, FAILS, RAPT_ERROR_VALUE,
     "'again' is there already, as 'weight'", "The module's parameters come with it."},
    {"The result of an op is added", result_added, FAILS, RAPT_ERROR_GRAPH, "'result' is no leaf",
     "Add the leaf that it was made of."},
    {"A step after `rapt_optimizer_free`", step_after_free, GONE, RAPT_ERROR_GONE, "optimizer_step: the SGD is gone",
     "Free it last."},
    {"An optimizer is freed twice", freed_twice, GONE, RAPT_ERROR_GONE, "optimizer_free: the Adam is gone",
     "Set the pointer to NULL."},
    {"An optimizer is made of a freed module", made_of_freed_module, GONE, RAPT_ERROR_GONE, "the Linear is gone",
     "Free the module last."},
    {"The module is cast after the optimizer's first step", cast_after_a_step, FAILS, RAPT_ERROR_DTYPE,
     "an optimizer made after the cast expected", "Cast, then make the optimizer."},
    {"The module is cast between the optimizer's constructor and its first step", cast_before_the_first_step, WORKS,
     RAPT_OK, "what an optimizer keeps is made by its first step", "None needed."},
    {"Gradients are NaN", clip_nan, FAILS, RAPT_ERROR_VALUE, "from the gradient of 'weight' on; a finite one expected",
     "`rapt_hunt_not_finite(true)` finds the op."},
    {"Gradients are clipped to 0", clip_to_zero, FAILS, RAPT_ERROR_VALUE, "the limit is 0; a number above 0 expected",
     "A limit above 0; 1 is usual."},
    {"The state of another optimizer is loaded", state_of_other_kind, FAILS, RAPT_ERROR_FORMAT,
     "kind is 'SGD'; 'Adam: exp_avg, exp_avg_sq' expected", "Make the optimizer that was saved."},
    {"A parameter is frozen and has an optimizer", frozen_parameter, WORKS, RAPT_OK, "steps pass it over",
     "None needed."},
    {"An average outlives its module, and is updated", average_outlives_module, GONE, RAPT_ERROR_GONE,
     "the Linear is gone", "Free the average first."},
    {"An average is updated while it is swapped", update_while_swapped, FAILS, RAPT_ERROR_VALUE,
     "the module has the averages now", "`rapt_average_swap` once more after the evaluation."},
    {"An average is used after it was freed", average_after_free, GONE, RAPT_ERROR_GONE,
     "average_update: the average is gone", "Free it last."},
    {"Gradients of a part of weight 0 are accumulated", weight_of_none, FAILS, RAPT_ERROR_VALUE,
     "the weight is 0; a finite number above 0 expected", "Leave empty parts out."},
    {"`rapt_accumulate`, then a step without `rapt_accumulation_end`", accumulation_without_end, WORKS, RAPT_OK,
     "but the gradient is too large, by a factor of all weights together, and so is a step of SGD",
     "`rapt_accumulation_end(&parts, optimizer, &loss)` before the step."},
    {0},
};
