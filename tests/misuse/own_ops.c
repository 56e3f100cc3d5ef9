/* Mistakes in ops of one's own. */
#include "mistakes.h"

static rapt_tensor *fails_silently(rapt_call *call)
{
    (void)call;
    return NULL;
}

static rapt_tensor *copies(rapt_call *call)
{
    return rapt_clone(rapt_call_input(call, 0));
}

static rapt_tensor *saves_product(rapt_call *call)
{
    rapt_tensor *square = rapt_mul(rapt_call_input(call, 0), rapt_call_input(call, 0));
    rapt_call_save(call, square);
    return rapt_mul(square, rapt_call_input(call, 0));
}

static bool fails(rapt_call *call)
{
    (void)call;
    return false;
}

static bool gives_null(rapt_call *call)
{
    return rapt_call_give(call, 0, NULL);
}

static bool gives_other_shape(rapt_call *call)
{
    (void)rapt_call_gradient(call, 0);
    return rapt_call_give(call, 0, ones(RAPT_SHAPE(7)));
}

static bool gives_twice(rapt_call *call)
{
    rapt_tensor *g = rapt_call_gradient(call, 0);
    return rapt_call_give(call, 0, g) && rapt_call_give(call, 0, g);
}

static bool gives_of_own_scope(rapt_call *call)
{
    RAPT_SCOPE;
    return rapt_call_give(call, 0, rapt_mul_scalar(rapt_call_gradient(call, 0), 3));
}

static bool gives_what_is_gone(rapt_call *call)
{
    rapt_tensor *g;
    {
        RAPT_SCOPE;
        g = rapt_mul_scalar(rapt_call_gradient(call, 0), 3);
    }
    return rapt_call_give(call, 0, g);
}

static bool reads_input(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_mul(rapt_call_gradient(call, 0), rapt_call_input(call, 0)));
}

static bool reads_saved(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_mul(rapt_call_gradient(call, 0), rapt_call_saved(call, 0)));
}

static bool reads_options(rapt_call *call)
{
    const double factor = *(const double *)rapt_call_options(call);
    return rapt_call_give(call, 0, rapt_mul_scalar(rapt_call_gradient(call, 0), factor));
}

/* Backward through an op of copies with that vjp; true when it fails. */
static bool cannot_go_back(bool (*vjp)(rapt_call *call))
{
    static rapt_op op;
    op = (rapt_op){.name = "own", .forward = copies, .vjp = vjp};
    rapt_tensor *x = leaf(RAPT_SHAPE(3));
    return !rapt_backward(total(RAPT_APPLY(&op, NULL, x))) && !rapt_gradient(x);
}

static bool forward_without_reason(void)
{
    static const rapt_op op = {.name = "own", .forward = fails_silently};
    return !RAPT_APPLY(&op, NULL, leaf(RAPT_SHAPE(3)));
}

static bool vjp_without_reason(void)
{
    return cannot_go_back(fails);
}

static bool no_vjp(void)
{
    return cannot_go_back(NULL);
}

static bool null_gradient(void)
{
    return cannot_go_back(gives_null);
}

static bool gradient_of_other_shape(void)
{
    return cannot_go_back(gives_other_shape);
}

static bool gradient_twice(void)
{
    return cannot_go_back(gives_twice);
}

static bool gradient_of_own_scope(void)
{
    static const rapt_op op = {.name = "own", .forward = copies, .vjp = gives_of_own_scope};
    rapt_tensor *x = leaf(RAPT_SHAPE(3));
    return rapt_backward(total(RAPT_APPLY(&op, NULL, x))) && is_all(rapt_gradient(x), 3);
}

static bool gradient_that_is_gone(void)
{
    return cannot_go_back(gives_what_is_gone);
}

static bool input_in_vjp(void)
{
    return cannot_go_back(reads_input);
}

static bool nothing_saved(void)
{
    return cannot_go_back(reads_saved);
}

static bool options_that_go(void)
{
    static const rapt_op op = {.name = "own", .forward = copies, .vjp = reads_options, .options_size = sizeof(double)};
    rapt_tensor *x = leaf(RAPT_SHAPE(3)), *y;
    {
        double factor = 3;
        y = RAPT_APPLY(&op, &factor, x);
        factor = 5;
    }
    return rapt_backward(total(y)) && is_all(rapt_gradient(x), 3);
}

static bool second_of_saved_product(void)
{
    static const rapt_op op = {.name = "own", .forward = saves_product, .vjp = reads_saved};
    rapt_tensor *x = leaf(RAPT_SHAPE(3)), *y = total(RAPT_APPLY(&op, NULL, x)), *slope;
    return !rapt_gradients(1, &y, NULL, 1, &x, &slope, RAPT_CREATE_GRAPH);
}

static bool no_forward(void)
{
    static const rapt_op op = {.name = "own"};
    return !RAPT_APPLY(&op, NULL, leaf(RAPT_SHAPE(3)));
}

static bool no_name(void)
{
    static const rapt_op op = {.forward = copies};
    return !RAPT_APPLY(&op, NULL, leaf(RAPT_SHAPE(3)));
}

static rapt_tensor *ends_its_scope(rapt_call *call)
{
    RAPT_SCOPE;
    return rapt_mul_scalar(rapt_call_input(call, 0), 3);
}

static bool result_of_own_scope(void)
{
    static const rapt_op op = {.name = "own", .forward = ends_its_scope};
    return !RAPT_APPLY(&op, NULL, leaf(RAPT_SHAPE(3)));
}

const mistake own_op_mistakes[] = {
    {"`forward` gives NULL and does not say why", forward_without_reason, FAILS, RAPT_ERROR_VALUE,
     "own: its forward failed without a reason", "`rapt_fail` before it returns."},
    {"`forward` is missing", no_forward, FAILS, RAPT_ERROR_NULL, "own: the op's forward is NULL", "Write one."},
    {"The name is missing", no_name, FAILS, RAPT_ERROR_NULL, "apply: the op's name is NULL", "Give it one."},
    {"`forward` returns a tensor whose scope has ended", result_of_own_scope, GONE, RAPT_ERROR_GONE,
     "own: output 0 is gone: float32 [3], made by mul_scalar", "Hand it out by `rapt_keep`."},
    {"`vjp` is missing, and backward comes by", no_vjp, FAILS, RAPT_ERROR_UNSUPPORTED, "own: has no gradient",
     "Write one, or `rapt_detach`."},
    {"`vjp` gives false and does not say why", vjp_without_reason, FAILS, RAPT_ERROR_GRAPH,
     "own: its vjp failed without a reason", "`rapt_fail` before it returns."},
    {"`vjp` gives a NULL gradient", null_gradient, FAILS, RAPT_ERROR_NULL, "own: its vjp gave input 0 a NULL gradient",
     "Look which of its ops failed."},
    {"`vjp` gives a gradient of another shape", gradient_of_other_shape, FAILS, RAPT_ERROR_SHAPE,
     "own: its vjp gave float32 [7] as the gradient of input 0", "It has the input's shape, or one that sums to it."},
    {"`vjp` gives an input two gradients", gradient_twice, FAILS, RAPT_ERROR_GRAPH,
     "own: its vjp gave input 0 a gradient twice", "Give their sum."},
    {"`vjp` gives a gradient of a scope that it has opened", gradient_of_own_scope, WORKS, RAPT_OK,
     "the scope hands it out", "None needed."},
    {"`vjp` gives a gradient whose scope has ended", gradient_that_is_gone, GONE, RAPT_ERROR_GONE,
     "retain: the tensor is gone: float32 [3], made by mul_scalar", "Give it inside, or hand it out by `rapt_keep`."},
    {"`vjp` asks for an input", input_in_vjp, FAILS, RAPT_ERROR_GRAPH,
     "own: its vjp asked for input 0, which only forward has",
     "`rapt_call_save` in forward, `rapt_call_saved` in vjp."},
    {"`vjp` asks for what forward did not save", nothing_saved, FAILS, RAPT_ERROR_VALUE,
     "own: saved tensor 0 asked for in its vjp; there are 0", "`rapt_call_save` in forward."},
    {"The options change, or go, after the call", options_that_go, WORKS, RAPT_OK, "the graph has a copy of them",
     "Say their size in `options_size`."},
    {"A product is saved, and a second derivative asked for", second_of_saved_product, FAILS, RAPT_ERROR_GRAPH,
     "is neither an input nor an output", "Save inputs or outputs, and compute it again in the vjp."},
    {0},
};
