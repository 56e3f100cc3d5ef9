/* A linear layer, its activation and dropout as one op: the latter two while the product is in the cache. */
#include "activation.h"
#include "affine.h"
#include "dropout.h"
#include "elementwise.h"
#include "tensor/random.h"

static const char name[] = "affine_activation";

typedef struct affine_options {
    rapt_activation activation;
    rapt_drop_options drop;
} affine_options;

static double scale_of(const affine_options *o)
{
    return 1 / (1 - o->drop.probability);
}

/* --- the gradient of relu and dropout together --- */

/* dz = g · scale where y > 0, else 0: what is dropped is 0 in y too */
static rapt_tensor *dropped_relu_backward_forward(rapt_call *call)
{
    rapt_call_save(call, rapt_call_input(call, 1));
    return rapt_elementwise_call(call, rapt_kernel.unary.scaled_relu_backward, 1);
}

static bool dropped_relu_backward_vjp(rapt_call *call);

static const rapt_op dropped_relu_backward = {.name = "dropped_relu_backward",
                                              .forward = dropped_relu_backward_forward,
                                              .vjp = dropped_relu_backward_vjp,
                                              .options_size = sizeof(double)};

static bool dropped_relu_backward_vjp(rapt_call *call)
{
    if (!rapt_call_wants(call, 0)) return true;
    return rapt_call_give(call, 0,
                          RAPT_APPLY(&dropped_relu_backward, rapt_call_options(call), rapt_call_gradient(call, 0),
                                     rapt_call_saved(call, 0)));
}

/* --- the op --- */

enum { saved_number = 2 }; /* y where the activation's gradient is a function of that, else z */

static bool is_recorded(const rapt_call *call)
{
    return rapt_call_wants(call, 0) || rapt_call_wants(call, 1) || rapt_call_wants(call, 2);
}

/* z = x Wᵀ + b, y = drop(f(z)). z is an output too where the gradient is a function of it: so the graph knows where it
 * comes from when that is differentiated. Where it is not needed, y takes its place. */
static rapt_tensor *forward(rapt_call *call)
{
    const affine_options *o = rapt_call_options(call);
    rapt_tensor *z = rapt_affine_output(call);
    if (!z) return NULL;
    const bool keeps_z = !rapt_activation_saves_output(o->activation) && is_recorded(call);
    rapt_tensor *y = keeps_z ? rapt_new_shaped(name, z->dtype, z) : z;
    if (!y) return NULL;
    const rapt_epilogue epilogue = {.function = rapt_activation_loop(o->activation, z->dtype),
                                    .c = z->data,
                                    .y = y->data,
                                    .dropout = o->drop.probability > 0 ? rapt_kernel.random.dropout[z->dtype] : NULL,
                                    .state = o->drop.state,
                                    .keep = 1 - o->drop.probability,
                                    .scale = scale_of(o)};
    if (!rapt_affine_into(call, z, &epilogue)) return NULL;
    rapt_call_save(call, z);
    if (rapt_call_output_count(call) > 1) rapt_call_set_output(call, 1, z);
    return y;
}

/* dz = f'(z) · drop(dy), and what comes to z itself */
static rapt_tensor *gradient_of_product(rapt_call *call)
{
    const affine_options *o = rapt_call_options(call);
    rapt_tensor *g = rapt_call_gradient(call, 0), *saved = rapt_call_saved(call, saved_number), *dz = NULL;
    rapt_tensor *more = rapt_call_output_count(call) > 1 ? rapt_call_gradient(call, 1) : NULL;
    const double scale = scale_of(o);
    if (!g) return more;
    if (o->drop.probability == 0)
        dz = rapt_activation_gradient(o->activation, g, saved);
    else if (o->activation == RAPT_ACTIVATION_RELU)
        dz = RAPT_APPLY(&dropped_relu_backward, &scale, g, saved);
    else
        dz = rapt_activation_gradient(o->activation, rapt_drop_again(g, &o->drop), saved);
    return more ? rapt_add(dz, more) : dz;
}

static bool vjp(rapt_call *call)
{
    return rapt_affine_give(call, gradient_of_product(call));
}

static const rapt_op affine_activation = {.name = name,
                                          .forward = forward,
                                          .vjp = vjp,
                                          .options_size = sizeof(affine_options),
                                          .optional = 1U << 2};

rapt_tensor *rapt_affine_activation(rapt_tensor *x, rapt_tensor *weight, rapt_tensor *bias, rapt_activation activation,
                                    double dropout)
{
    if (!rapt_check_activation(name, activation) || !rapt_check_probability(name, "dropout", dropout)) return NULL;
    RAPT_SCOPE;
    const affine_options options = {activation, {dropout, rapt_random_get_state()}};
    const int outputs = rapt_activation_saves_output(activation) ? 1 : 2;
    rapt_tensor *y_and_z[2];
    if (!rapt_apply_counted(&affine_activation, &options, 3, RAPT_ARRAY_OF(rapt_tensor *, x, weight, bias), outputs,
                            y_and_z))
        return NULL;
    if (rapt_drop_draws(&options.drop)) rapt_random_reserve(y_and_z[0]->count);
    return rapt_keep(y_and_z[0]);
}
