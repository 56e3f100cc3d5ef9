/* Products over any axes. */
#include <rapt/ops.h>

#include "reduction.h"
#include "scan.h"

/* y = Π x: dx = dy · the product of all others */
static rapt_tensor *prod_forward(rapt_call *call)
{
    rapt_folding r;
    if (!rapt_folding_begin(&r, call, false)) return NULL;
    rapt_call_save(call, rapt_call_input(call, 0));
    const rapt_fold *product = &rapt_kernel.reduce.product;
    rapt_accumulator *results = rapt_folding_run(&r, product, product, NULL);
    return rapt_folding_end(&r, rapt_is_floating(r.x) ? r.x->dtype : RAPT_INT64, results);
}

/* For each element of x the product of all others that went into its result: in rows of the folded axes,
 * where these are several. */
static rapt_tensor *others(rapt_tensor *x, const rapt_reduction_options *o)
{
    rapt_reduction_shape shape;
    if (!x || !rapt_check_axes("prod", x, o->axis_count, o->axes, &shape)) return NULL;
    if (o->axis_count == 1) return rapt_product_of_others(x, o->axes[0]);
    int order[RAPT_MAX_RANK + 1], back[RAPT_MAX_RANK + 1], count = 0;
    for (int folded = 0; folded < 2; folded++)
        for (int axis = 0; axis < x->rank; axis++)
            if (shape.reduced[axis] == folded) order[count++] = axis;
    for (int i = 0; i < count; i++) back[order[i]] = i;
    int64_t rows[RAPT_MAX_RANK + 1];
    for (int i = 0; i < shape.rank; i++) rows[i] = shape.shape[i];
    rows[shape.rank] = shape.folded;
    rapt_tensor *turned = rapt_permute(x, count, order);
    rapt_tensor *product = rapt_product_of_others(rapt_reshape(turned, shape.rank + 1, rows), shape.rank);
    return turned ? rapt_permute(rapt_reshape(product, count, turned->shape), count, back) : NULL;
}

static bool prod_vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_reduction_unfold(call, rapt_call_gradient(call, 0));
    return rapt_call_give(call, 0, rapt_mul(g, others(rapt_call_saved(call, 0), rapt_call_options(call))));
}

static const rapt_op prod = {.name = "prod",
                             .forward = prod_forward,
                             .vjp = prod_vjp,
                             .options_size = sizeof(rapt_reduction_options)};

rapt_tensor *rapt_prod(rapt_tensor *x, int axis_count, const int *axes, bool keep)
{
    return rapt_reduction_apply(&prod, x, axis_count, axes, keep, 0);
}
