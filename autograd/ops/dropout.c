/* Dropout. Its mask is never stored: backward makes it again from the state that the random generator was in. */
#include "dropout.h"

#include "tensor/core.h"
#include "tensor/random.h"

/* y = x · mask / (1 − probability): dx = dy · mask / (1 − probability), the same op */
static rapt_tensor *drop_forward(rapt_call *call)
{
    const rapt_drop_options *o = rapt_call_options(call);
    rapt_tensor *x = rapt_call_input(call, 0);
    if (!rapt_check_floating("drop", x)) return NULL;
    if (o->probability == 0) return rapt_new_alias(x, false);
    if (o->probability == 1) return rapt_zeros_like(x);
    double keep = 1 - o->probability;
    const rapt_tensor *dense = rapt_as_contiguous(x);
    rapt_tensor *y = rapt_new("drop", x->dtype, x->rank, x->shape);
    if (!dense || !y) return NULL;
    rapt_random_dropout(o->state, x->dtype, x->count, y->data, dense->data, keep, 1 / keep);
    return y;
}

static bool drop_vjp(rapt_call *call);

static const rapt_op drop = {.name = "drop",
                             .forward = drop_forward,
                             .vjp = drop_vjp,
                             .options_size = sizeof(rapt_drop_options)};

static bool drop_vjp(rapt_call *call)
{
    return rapt_call_give(call, 0, RAPT_APPLY(&drop, rapt_call_options(call), rapt_call_gradient(call, 0)));
}

rapt_tensor *rapt_drop_again(rapt_tensor *x, const rapt_drop_options *options)
{
    return RAPT_APPLY(&drop, options, x);
}

bool rapt_drop_draws(const rapt_drop_options *options)
{
    return options->probability > 0 && options->probability < 1;
}

rapt_tensor *rapt_drop(rapt_tensor *x, double probability)
{
    if (!rapt_check_probability("drop", "probability", probability)) return NULL;
    const rapt_drop_options options = {.probability = probability, .state = rapt_random_get_state()};
    rapt_tensor *y = rapt_drop_again(x, &options);
    if (y && rapt_drop_draws(&options)) rapt_random_reserve(x->count);
    return y;
}
