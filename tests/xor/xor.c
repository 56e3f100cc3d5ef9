/* Exclusive or in C: what the programs beside this one do in their languages, and the bits that all of them print. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rapt.h>

static void print_bits(double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    printf("%016" PRIX64 "\n", bits);
}

int main(void)
{
    rapt_on_error(rapt_exit_on_error);
    rapt_seed(1);
    rapt_tensor *x = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(4, 2), (float[]){0, 0, 0, 1, 1, 0, 1, 1});
    rapt_tensor *target = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(4, 1), (float[]){0, 1, 1, 0});
    rapt_sequential *model =
        RAPT_SEQUENTIAL((rapt_module *)rapt_linear_new(2, 16, RAPT_BIAS), rapt_activation_new("Tanh", rapt_tanh),
                        (rapt_module *)rapt_linear_new(16, 1, RAPT_BIAS));
    rapt_optimizer *adam = rapt_adam_new(&model->module, &(rapt_adam_config){.learning_rate = 1e-2});
    for (int step = 0; step < 300; step++) {
        RAPT_SCOPE;
        rapt_tensor *loss = rapt_mse_loss(rapt_sequential_forward(model, x), target, RAPT_REDUCE_MEAN);
        rapt_backward(loss);
        rapt_optimizer_step(adam);
        print_bits(rapt_item(loss));
    }
    rapt_tensor *y = rapt_sequential_forward(model, x);
    for (int64_t i = 0; i < 4; i++) print_bits(rapt_at(y, (int64_t[]){i, 0}));
    rapt_optimizer_free(adam);
    rapt_module_free(&model->module);
    return 0;
}
