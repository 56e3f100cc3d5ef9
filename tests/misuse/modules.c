/* Mistakes with modules: who owns them, and what goes in. */
#include <pthread.h>

#include "mistakes.h"

static rapt_tensor *rows(int64_t size)
{
    return ones(RAPT_SHAPE(4, size));
}

static rapt_linear *linear(void)
{
    return rapt_linear_new(3, 2, RAPT_BIAS);
}

static bool null_module(void)
{
    return !rapt_linear_forward(NULL, rows(3));
}

static bool constructor_failed(void)
{
    rapt_linear *wrong = rapt_linear_new(3, -2, RAPT_BIAS);
    return !rapt_linear_forward(wrong, rows(3));
}

static bool null_in_list(void)
{
    return !RAPT_SEQUENTIAL((rapt_module *)linear(), NULL);
}

static bool use_freed(void)
{
    rapt_linear *layer = linear();
    rapt_module_free(&layer->module);
    return !rapt_linear_forward(layer, rows(3));
}

static bool use_freed_gru(void)
{
    rapt_gru *gru = rapt_gru_new(3, 2, 1, 0);
    rapt_module_free((rapt_module *)gru);
    return !rapt_gru_forward(gru, ones(RAPT_SHAPE(5, 4, 3)), NULL, NULL);
}

static bool use_freed_attention(void)
{
    rapt_attention *attention = rapt_additive_attention_new(3, 3, 4, 0);
    rapt_tensor *x = ones(RAPT_SHAPE(1, 4, 3));
    rapt_module_free(&attention->module);
    return !rapt_attention_forward(attention, x, x, x, NULL);
}

static bool free_twice(void)
{
    rapt_linear *layer = linear();
    rapt_module_free(&layer->module);
    rapt_module_free(&layer->module);
    return true;
}

static bool free_child_after_parent(void)
{
    rapt_linear *layer = linear();
    rapt_sequential *parent = RAPT_SEQUENTIAL(&layer->module);
    rapt_module_free(&parent->module);
    rapt_module_free(&layer->module);
    return true;
}

static bool use_child_after_parent(void)
{
    rapt_linear *layer = linear();
    rapt_sequential *parent = RAPT_SEQUENTIAL(&layer->module);
    rapt_module_free(&parent->module);
    return !rapt_linear_forward(layer, rows(3));
}

static bool free_child_of_parent(void)
{
    rapt_linear *layer = linear();
    rapt_sequential *parent = RAPT_SEQUENTIAL(&layer->module);
    rapt_module_free(&layer->module);
    return rapt_sequential_forward(parent, rows(3)) != NULL;
}

static bool use_copy(void)
{
    rapt_linear *layer = linear(), copy = *layer;
    rapt_module_free(&layer->module);
    return !rapt_linear_forward(&copy, rows(3));
}

static bool share_layer(void)
{
    rapt_module *layer = (rapt_module *)rapt_linear_new(3, 3, RAPT_BIAS);
    rapt_sequential *twice = RAPT_SEQUENTIAL(layer, layer);
    const bool good = rapt_module_parameter_count(&twice->module) == 12 && rapt_sequential_forward(twice, rows(3));
    rapt_module_free(&twice->module);
    return good;
}

static const rapt_module_class own_kind = {.name = "Own"};

static bool inside_itself(void)
{
    rapt_module *module = rapt_module_new(sizeof(rapt_module), &own_kind);
    return !rapt_module_add_child(module, "self", module) && !rapt_module_finish(module);
}

static bool name_in_use(void)
{
    rapt_module *module = rapt_module_new(sizeof(rapt_module), &own_kind);
    rapt_module_add_parameter(module, "weight", rows(3));
    rapt_module_add_parameter(module, "weight", rows(3));
    return !rapt_module_finish(module);
}

static bool name_with_dot(void)
{
    rapt_module *module = rapt_module_new(sizeof(rapt_module), &own_kind);
    rapt_module_add_parameter(module, "layer.weight", rows(3));
    return !rapt_module_finish(module);
}

static bool buffer_that_is_gone(void)
{
    rapt_tensor *buffer;
    {
        RAPT_SCOPE;
        buffer = rapt_exp(rows(3));
    }
    rapt_module *module = rapt_module_new(sizeof(rapt_module), &own_kind);
    rapt_module_add_buffer(module, "buffer", buffer);
    return !rapt_module_finish(module);
}

static bool add_freed_child(void)
{
    rapt_linear *layer = linear();
    rapt_module_free(&layer->module);
    return !RAPT_SEQUENTIAL(&layer->module);
}

static bool visit_freed(void)
{
    rapt_linear *layer = linear();
    rapt_module_free(&layer->module);
    return rapt_module_parameter_count(&layer->module) == 0;
}

static bool print_freed(void)
{
    rapt_linear *layer = linear();
    rapt_module_free(&layer->module);
    return !rapt_module_print(&layer->module, stdout);
}

static bool wrong_size(void)
{
    return !rapt_linear_forward(linear(), rows(5));
}

static bool wrong_dtype(void)
{
    return !rapt_linear_forward(linear(), rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(4, 3)));
}

static bool no_forward(void)
{
    return !rapt_module_forward((rapt_module *)rapt_dot_product_attention_new(0), rows(3));
}

static bool batch_of_one(void)
{
    return !rapt_batch_norm_forward(rapt_batch_norm_new(3), ones(RAPT_SHAPE(1, 3)));
}

static bool evaluation_left_on(void)
{
    rapt_dropout *dropout = rapt_dropout_new(0.5);
    rapt_module_train(&dropout->module, false);
    return is_all(rapt_dropout_forward(dropout, rows(100)), 1);
}

static bool batch_first(void)
{
    return !rapt_gru_forward(rapt_gru_new(3, 2, 1, 0), ones(RAPT_SHAPE(3, 4, 5)), NULL, NULL);
}

static bool state_of_other_batch(void)
{
    return !rapt_gru_forward(rapt_gru_new(3, 2, 1, 0), ones(RAPT_SHAPE(5, 4, 3)), ones(RAPT_SHAPE(1, 6, 2)), NULL);
}

static bool image_without_batch(void)
{
    return !rapt_convolution_layer_forward(rapt_conv2d_layer_new(3, 4, (int64_t[]){3, 3}, NULL, RAPT_BIAS),
                                           ones(RAPT_SHAPE(3, 8, 8)));
}

static void *train(void *layer)
{
    RAPT_SCOPE;
    for (int i = 0; i < 10; i++) rapt_backward(total(rapt_linear_forward(layer, rows(3))));
    return NULL;
}

static bool train_in_two_threads(void)
{
    rapt_linear *layer = linear();
    pthread_t other;
    if (pthread_create(&other, NULL, train, layer) != 0) return false;
    train(layer);
    pthread_join(other, NULL);
    return is_all(rapt_gradient(layer->bias), 80);
}

const mistake module_mistakes[] = {
    {"A NULL module", null_module, FAILS, RAPT_ERROR_NULL, "Linear: the layer is NULL",
     "Look why its constructor failed."},
    {"A constructor's NULL is not noticed", constructor_failed, FAILS, RAPT_ERROR_VALUE,
     "Linear: output size -2; 0 or more expected", "`rapt_error` has the first error, the constructor's."},
    {"A NULL among the layers of a list", null_in_list, FAILS, RAPT_ERROR_NULL, "member '1' is NULL",
     "The layers before it are freed with the list."},
    {"A module is used after `rapt_module_free`", use_freed, GONE, RAPT_ERROR_GONE,
     "forward: the Linear is gone: it was freed", "Free it last."},
    {"A recurrent layer is used after that", use_freed_gru, GONE, RAPT_ERROR_GONE, "the GRU is gone", "Free it last."},
    {"Attention is used after that", use_freed_attention, GONE, RAPT_ERROR_GONE, "the Attention is gone",
     "Free it last."},
    {"A module is freed twice", free_twice, GONE, RAPT_ERROR_GONE, "module_free: the Linear is gone",
     "Once for the constructor, once for each `rapt_module_retain`."},
    {"A child is freed after its parent", free_child_after_parent, GONE, RAPT_ERROR_GONE,
     "module_free: the Linear is gone", "The parent owns it: free the parent alone."},
    {"A child is used after its parent was freed", use_child_after_parent, GONE, RAPT_ERROR_GONE,
     "forward: the Linear is gone", "`rapt_module_retain` it before."},
    {"A child is freed, and its parent used", free_child_of_parent, WORKS, RAPT_OK,
     "nothing happens: the child is the parent's", "None needed."},
    {"A copy of a layer's struct is used after the layer was freed", use_copy, GONE, RAPT_ERROR_GONE,
     "affine: input 1 is gone", "Pass the pointer on; `rapt_module_copy` copies values between two layers."},
    {"One layer stands in two places", share_layer, WORKS, RAPT_OK, "its parameters are shared, and counted once",
     "None needed."},
    {"A module is added to itself", inside_itself, FAILS, RAPT_ERROR_VALUE, "is the module itself or has it below it",
     "A module has parts, not itself."},
    {"Two members of one name", name_in_use, FAILS, RAPT_ERROR_VALUE, "the name 'weight' is in use",
     "Name them apart."},
    {"A dot in a member's name", name_with_dot, FAILS, RAPT_ERROR_VALUE, "'layer.weight' cannot be a member's name",
     "Dots part the names of a path: add a child."},
    {"A tensor that is gone is registered", buffer_that_is_gone, GONE, RAPT_ERROR_GONE, "Own: the tensor is gone",
     "Register it in the scope that made it."},
    {"A freed layer is put into a list", add_freed_child, GONE, RAPT_ERROR_GONE, "the Linear is gone",
     "Free the list, which owns its layers."},
    {"The parameters of a freed module are counted or listed", visit_freed, GONE, RAPT_ERROR_GONE,
     "module_parameter_count: the Linear is gone", "Free it last."},
    {"A freed module is printed", print_freed, GONE, RAPT_ERROR_GONE, "the Linear is gone", "Free it last."},
    {"An input of another size than the layer's", wrong_size, FAILS, RAPT_ERROR_SHAPE,
     "affine: x [4, 5], weight [2, 3], bias [2]", "The last axis is what the layer was made for."},
    {"float64 into a float32 model", wrong_dtype, FAILS, RAPT_ERROR_DTYPE, "one floating dtype expected",
     "`rapt_cast` the data, or `rapt_module_cast` the model."},
    {"`rapt_module_forward` of what has several inputs", no_forward, FAILS, RAPT_ERROR_UNSUPPORTED,
     "call its own forward function", "`rapt_attention_forward`."},
    {"Batch normalisation of a batch of one, in training", batch_of_one, FAILS, RAPT_ERROR_VALUE,
     "2 or more expected in training", "Larger batches, or `rapt_module_train(module, false)`."},
    {"Evaluation mode is left on in training", evaluation_left_on, WORKS, RAPT_OK, "dropout drops nothing",
     "`rapt_module_train(module, true)` after each evaluation."},
    {"A recurrent layer gets the batch first", batch_first, FAILS, RAPT_ERROR_SHAPE,
     "input (T, B, 3) with T of 1 or more expected, not float32 [3, 4, 5]",
     "Time is the first axis: `rapt_transpose(x, 0, 1)`."},
    {"A state of another batch", state_of_other_batch, FAILS, RAPT_ERROR_SHAPE,
     "state [1, 4, 2] expected, not float32 [1, 6, 2]", "The last batch was smaller: begin with NULL."},
    {"An image without a batch axis", image_without_batch, FAILS, RAPT_ERROR_SHAPE, "conv2d: x is [3, 8, 8]",
     "`rapt_unsqueeze(x, 0)`."},
    {"Two threads run backward through one module at once", train_in_two_threads, WORKS, RAPT_OK,
     "the gradients of both are added", "Steps, casts and loading wait until both are done."},
    {0},
};
