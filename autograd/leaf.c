/* Leaves: the tensors whose gradients backward accumulates; and the recording mode. */
#include "autograd/node.h"
#include "tensor/memory.h"
#include "tensor/thread.h"

/* The leaf owns its gradient, the graph does not: a gradient with a graph of its own would otherwise hold the leaf's
 * node, which holds the gradient. */
static void leaf_link_release(rapt_graph_link *link, rapt_tensor *tensor)
{
    rapt_node *node = (rapt_node *)link;
    if (node->leaf_header == tensor) {
        node->leaf_header = NULL;
        rapt_release(node->gradient);
        node->gradient = NULL;
    }
    rapt_node_release(node);
}

rapt_tensor *rapt_require_gradient(rapt_tensor *tensor)
{
    const char *op = "require_gradient";
    if (!tensor) {
        rapt_fail_null(op, "tensor");
        return NULL;
    }
    if (!rapt_is_floating(tensor)) {
        rapt_fail(RAPT_ERROR_DTYPE, op, "%s cannot have a gradient; float32 or float64 expected",
                  rapt_dtype_name((rapt_dtype)tensor->dtype));
        return NULL;
    }
    if (tensor->link) {
        if (tensor->link->is_leaf) return tensor;
        rapt_fail(RAPT_ERROR_GRAPH, op, "the tensor is the result of a recorded op, which has its gradient already");
        return NULL;
    }
    rapt_node *node = rapt_node_new(NULL, 0, 0, 1);
    if (!node) return NULL;
    node->link.release = leaf_link_release;
    node->leaf_header = tensor;
    rapt_node_attach(node, 0, tensor);
    rapt_node_release(node);
    return tensor;
}

bool rapt_requires_gradient(const rapt_tensor *tensor)
{
    return tensor && tensor->link;
}

rapt_tensor *rapt_gradient(const rapt_tensor *leaf)
{
    if (!leaf) {
        rapt_fail_null("gradient", "leaf");
        return NULL;
    }
    return leaf->link && leaf->link->is_leaf ? rapt_node_of(leaf)->gradient : NULL;
}

void rapt_clear_gradient(rapt_tensor *leaf)
{
    if (!leaf || !leaf->link || !leaf->link->is_leaf) return;
    rapt_node *node = rapt_node_of(leaf);
    rapt_tensor *gradient = node->gradient;
    node->gradient = NULL;
    rapt_release(gradient);
}

bool rapt_own_gradient(rapt_tensor *leaf)
{
    rapt_tensor *gradient = rapt_gradient(leaf);
    if (!gradient || (rapt_is_unique(gradient) && !gradient->link)) return true;
    RAPT_SCOPE;
    rapt_tensor *copy = rapt_clone(gradient);
    if (!copy) return false;
    rapt_node_of(leaf)->gradient = rapt_retain(copy);
    rapt_release(gradient);
    return true;
}

rapt_tensor *rapt_detach(rapt_tensor *tensor)
{
    if (!tensor) {
        rapt_fail_null("detach", "tensor");
        return NULL;
    }
    return rapt_new_alias(tensor, false);
}

bool rapt_is_recording(void)
{
    rapt_thread *thread = rapt_this_thread();
    return thread && !thread->recording_off;
}

bool rapt_set_recording(bool recording)
{
    rapt_thread *thread = rapt_this_thread();
    if (!thread) return false;
    bool before = !thread->recording_off;
    thread->recording_off = !recording;
    return before;
}

void rapt_restore_recording(const bool *before)
{
    if (before) rapt_set_recording(*before);
}
