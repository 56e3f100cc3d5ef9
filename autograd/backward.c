/* backward and gradients: where a walk starts and what becomes of what it finds. */
#include <rapt/graph.h>

#include "autograd/node.h"
#include "tensor/memory.h"
#include "walk.h"

static bool check_root(const char *op, const rapt_tensor *root, const rapt_tensor *gradient)
{
    if (!root) return rapt_fail_null(op, "root");
    char a[RAPT_SHAPE_TEXT], b[RAPT_SHAPE_TEXT];
    rapt_shape_text(root->rank, root->shape, a);
    if (!root->link)
        return rapt_fail(
            RAPT_ERROR_GRAPH, op,
            "the root (shape %s) does not depend on a tensor that requires a gradient, or was made while nothing "
            "was recorded",
            a);
    if (!gradient && root->count != 1)
        return rapt_fail(RAPT_ERROR_SHAPE, op,
                         "a root of shape %s needs a gradient given; only one element starts from 1", a);
    if (gradient && (gradient->dtype != root->dtype || !rapt_same_shape(root, gradient)))
        return rapt_fail(RAPT_ERROR_SHAPE, op, "the gradient is %s %s, its root %s %s",
                         rapt_dtype_name((rapt_dtype)gradient->dtype),
                         rapt_shape_text(gradient->rank, gradient->shape, b), rapt_dtype_name((rapt_dtype)root->dtype),
                         a);
    return true;
}

static bool start(const char *op, rapt_walk *walk, int count, rapt_tensor *const *roots, rapt_tensor *const *gradients)
{
    if (count > 0 && !roots) return rapt_fail_null(op, "roots");
    for (int i = 0; i < count; i++)
        if (!check_root(op, roots[i], gradients ? gradients[i] : NULL)) return false;
    for (int i = 0; i < count; i++) {
        rapt_tensor *gradient = gradients ? gradients[i] : NULL;
        if (!gradient) gradient = rapt_ones((rapt_dtype)roots[i]->dtype, roots[i]->rank, roots[i]->shape);
        if (!gradient || !rapt_walk_deliver(walk, rapt_node_of(roots[i]), roots[i]->output, gradient)) return false;
    }
    return true;
}

static rapt_walk walk_with(int flags, bool into_leaves)
{
    return (rapt_walk){
        .retain_graph = flags & (RAPT_RETAIN_GRAPH | RAPT_CREATE_GRAPH),
        .create_graph = flags & RAPT_CREATE_GRAPH,
        .into_leaves = into_leaves,
    };
}

bool rapt_backward_from(int count, rapt_tensor *const *roots, rapt_tensor *const *gradients, int flags)
{
    RAPT_SCOPE;
    rapt_walk walk = walk_with(flags, true);
    bool good = start("backward", &walk, count, roots, gradients) && rapt_walk_run(&walk);
    rapt_walk_end(&walk);
    return good;
}

bool rapt_backward(rapt_tensor *root)
{
    return rapt_backward_from(1, &root, NULL, 0);
}

static void set_capture(int count, rapt_tensor *const *inputs, bool capture)
{
    for (int i = 0; i < count; i++)
        if (inputs[i] && inputs[i]->link) rapt_node_of(inputs[i])->outputs[inputs[i]->output].capture = capture;
}

/* Moves what was captured for one input to the caller; an input named twice gets the same tensor twice. */
static rapt_tensor *take_captured(rapt_tensor *const *inputs, rapt_tensor **results, int i)
{
    if (!inputs[i]->link) return NULL;
    for (int earlier = 0; earlier < i; earlier++)
        if (inputs[earlier]->link == inputs[i]->link && inputs[earlier]->output == inputs[i]->output)
            return results[earlier];
    rapt_output *output = &rapt_node_of(inputs[i])->outputs[inputs[i]->output];
    rapt_tensor *captured = output->captured;
    output->captured = NULL;
    return captured ? rapt_scope_own(captured) : NULL;
}

bool rapt_gradients(int count, rapt_tensor *const *roots, rapt_tensor *const *gradients, int input_count,
                    rapt_tensor *const *inputs, rapt_tensor **results, int flags)
{
    const char *op = "gradients";
    if (input_count > 0 && (!inputs || !results)) return rapt_fail_null(op, inputs ? "results" : "inputs");
    for (int i = 0; i < input_count; i++) results[i] = NULL;
    for (int i = 0; i < input_count; i++)
        if (!inputs[i]) return rapt_fail(RAPT_ERROR_NULL, op, "input %d is NULL", i);
    rapt_walk walk = walk_with(flags, false);
    set_capture(input_count, inputs, true);
    rapt_scope scope = rapt_scope_begin();
    bool good = start(op, &walk, count, roots, gradients) && rapt_walk_run(&walk);
    rapt_walk_end(&walk);
    rapt_scope_end(scope);
    set_capture(input_count, inputs, false);
    for (int i = 0; i < input_count; i++) results[i] = take_captured(inputs, results, i);
    for (int i = 0; !good && i < input_count; i++) results[i] = NULL;
    return good;
}
