/* Layers of a user's, added to the catalogue by a line each: one that is right, and one whose derivative is not. */
#include <rapt.h>

#include "catalogue/layers.h"

static rapt_module *right_new(void)
{
    return (rapt_module *)RAPT_SEQUENTIAL((rapt_module *)rapt_linear_new(3, 4, RAPT_BIAS),
                                          rapt_activation_new("tanh", rapt_tanh));
}

static rapt_tensor *square(rapt_call *call)
{
    rapt_call_save(call, rapt_call_input(call, 0));
    return rapt_mul(rapt_call_input(call, 0), rapt_call_input(call, 0));
}

/* It should be 2 x. */
static bool wrong_derivative(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_mul(rapt_call_gradient(call, 0), rapt_call_saved(call, 0)));
}

static const rapt_op wrong_square = {.name = "wrong_square", .forward = square, .vjp = wrong_derivative};

static rapt_tensor *wrong_forward(rapt_tensor *x)
{
    return RAPT_APPLY(&wrong_square, NULL, x);
}

CATALOGUE_LAYER(right, right_new(), 2, 3)
CATALOGUE_LAYER(wrong, rapt_activation_new("wrong", wrong_forward), 5)
