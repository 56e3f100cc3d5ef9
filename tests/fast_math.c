/* A user's program under flags that change what floating-point constants and numbers are (-Ofast, -ffast-math and
 * others; linked with them too, so that the main thread flushes subnormal numbers to zero where the compiler does
 * that): RAPT_ZERO is a zero still, and training comes out right. */
#include <stdio.h>

#include <rapt.h>

static int failures;

static void expect(bool good, const char *what)
{
    if (good) return;
    fprintf(stderr, "fast_math: %s (%s)\n", what, rapt_error() ? rapt_error() : "no error");
    failures++;
}

static const rapt_sgd_config constant = {.learning_rate = RAPT_ZERO};
static double zero = RAPT_ZERO;
static volatile bool chosen = true; /* so that nothing is known when compiling */

/* How far one step with gradient 1 moves a parameter of 8, and frees the optimizer. */
static double moved(rapt_optimizer *optimizer, const rapt_group_config *group)
{
    RAPT_SCOPE;
    rapt_tensor *p = rapt_require_gradient(rapt_full(RAPT_FLOAT64, 0, NULL, 8));
    expect(rapt_optimizer_add(optimizer, "p", p), "adding a parameter");
    if (group) expect(rapt_optimizer_group(optimizer, "p", group), "making a group");
    expect(rapt_backward(rapt_mul_scalar(p, 1)) && rapt_optimizer_step(optimizer), "a step");
    double distance = rapt_item(p) - 8;
    rapt_optimizer_free(optimizer);
    return distance;
}

static void check_zero(void)
{
    const rapt_sgd_config expression = {.learning_rate = chosen ? RAPT_ZERO : 0.5};
    const rapt_sgd_config variable = {.learning_rate = zero}, standard = {.learning_rate = 0};
    expect(moved(rapt_sgd_new(NULL, &constant), NULL) == 0, "a static learning rate of RAPT_ZERO moves");
    expect(moved(rapt_sgd_new(NULL, &expression), NULL) == 0, "a learning rate that became RAPT_ZERO moves");
    expect(moved(rapt_sgd_new(NULL, &variable), NULL) == 0, "a variable that is RAPT_ZERO moves");
    expect(moved(rapt_sgd_new(NULL, &standard), NULL) < -0.009, "0 is not the default learning rate");

    const rapt_sgd_config decaying = {.learning_rate = 1, .weight_decay = 0.5};
    const rapt_group_config frozen = {.learning_rate = RAPT_ZERO}, plain = {.weight_decay = RAPT_ZERO};
    expect(moved(rapt_sgd_new(NULL, &decaying), &frozen) == 0, "a frozen group moves");
    expect(moved(rapt_sgd_new(NULL, &decaying), &plain) == -1, "weight decay of RAPT_ZERO decays");

    rapt_schedule schedule = {.kind = RAPT_SCHEDULE_STEP, .period = 1, .factor = RAPT_ZERO};
    expect(rapt_schedule_factor(&schedule, 1) == 0, "a factor of RAPT_ZERO is none");
}

/* Exclusive or, by two layers. */
static void check_training(void)
{
    rapt_seed(1);
    rapt_tensor *x = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(4, 2), (float[]){0, 0, 0, 1, 1, 0, 1, 1});
    rapt_tensor *target = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(4, 1), (float[]){0, 1, 1, 0});
    rapt_linear *hidden = rapt_linear_new(2, 16, RAPT_BIAS), *output = rapt_linear_new(16, 1, RAPT_BIAS);
    rapt_sequential *model = RAPT_SEQUENTIAL(&hidden->module, rapt_activation_new("Tanh", rapt_tanh), &output->module);
    rapt_optimizer *adam = rapt_adam_new(&model->module, &(rapt_adam_config){.learning_rate = 1e-2});
    double loss = 1;
    for (int step = 0; step < 500; step++) {
        RAPT_SCOPE;
        rapt_tensor *mean = rapt_bce_with_logits(rapt_sequential_forward(model, x), target, RAPT_REDUCE_MEAN);
        expect(rapt_backward(mean) && rapt_optimizer_step(adam), "a step of training");
        loss = rapt_item(mean);
    }
    expect(loss >= 0 && loss < 0.02, "exclusive or is not learnt");
    rapt_optimizer_free(adam);
    rapt_module_free(&model->module);
}

int main(void)
{
    check_zero();
    check_training();
    return failures > 0;
}
