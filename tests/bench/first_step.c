/* What a program does before its first trained step and in it, and nothing else: start_up measures its process. */
#include <rapt.h>

int main(void)
{
    rapt_on_error(rapt_exit_on_error);
    rapt_seed(1);
    rapt_tensor *x = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(4, 2), (float[]){0, 0, 0, 1, 1, 0, 1, 1});
    rapt_tensor *target = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(4, 1), (float[]){0, 1, 1, 0});
    rapt_linear *hidden = rapt_linear_new(2, 16, RAPT_BIAS);
    rapt_linear *output = rapt_linear_new(16, 1, RAPT_BIAS);
    rapt_sequential *model = RAPT_SEQUENTIAL(&hidden->module, rapt_activation_new("Tanh", rapt_tanh), &output->module);
    rapt_optimizer *adam = rapt_adam_new(&model->module, &(rapt_adam_config){.learning_rate = 1e-2});

    rapt_tensor *loss = rapt_mse_loss(rapt_sequential_forward(model, x), target, RAPT_REDUCE_MEAN);
    rapt_backward(loss);
    bool trained = rapt_optimizer_step(adam);
    rapt_optimizer_free(adam);
    rapt_module_free(&model->module);
    return !trained;
}
