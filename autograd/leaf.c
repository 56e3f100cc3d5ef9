/* Leaves: the tensors whose gradients backward accumulates. */
#include <rapt/ops.h>

#include "autograd/leaf.h"
#include "places.h"
#include "tensor/debug.h"
#include "tensor/lock.h"
#include "tensor/memory.h"

/* Backward of several threads may add to the same leaves. */
RAPT_LOCK(gradients_lock, GRADIENTS)

/* The leaf owns its gradient, the graph does not: a gradient with a graph of its own would otherwise hold the leaf's
 * node, which holds the gradient. Backward of another thread may be about to add to it. */
static void leaf_link_release(rapt_graph_link *link, rapt_tensor *tensor)
{
    rapt_node *node = (rapt_node *)link;
    if (node->leaf_header == tensor) {
        gradients_lock_take();
        rapt_tensor *gradient = node->gradient;
        node->leaf_header = NULL;
        node->gradient = NULL;
        gradients_lock_give();
        rapt_release(gradient);
    }
    rapt_node_release(node);
}

static const rapt_link_kind leaf_link = {.retain = rapt_link_retain, .release = leaf_link_release, .is_leaf = true};

rapt_tensor *rapt_require_gradient(rapt_tensor *tensor)
{
    const char *op = "require_gradient";
    if (!tensor) {
        rapt_fail_null(op, "tensor");
        return NULL;
    }
    if (!rapt_check_alive(op, "the tensor", tensor)) return NULL;
    if (!rapt_is_floating(tensor)) {
        rapt_fail(RAPT_ERROR_DTYPE, op, "%s cannot have a gradient; float32 or float64 expected",
                  rapt_dtype_name(tensor->dtype));
        return NULL;
    }
    if (tensor->link) {
        if (tensor->link->kind->is_leaf) return tensor;
        rapt_fail(RAPT_ERROR_GRAPH, op, "the tensor is the result of a recorded op, which has its gradient already");
        return NULL;
    }
    rapt_node *node = rapt_node_new(NULL, 0, 0, 1, 0);
    if (!node) return NULL;
    node->link.kind = &leaf_link;
    node->gradient = NULL;
    node->leaf_header = tensor;
    rapt_node_attach(node, &tensor);
    return tensor;
}

rapt_tensor *rapt_refuse_gradient(rapt_tensor *tensor)
{
    const char *op = "refuse_gradient";
    if (!tensor) {
        rapt_fail_null(op, "tensor");
        return NULL;
    }
    if (!rapt_check_alive(op, "the tensor", tensor)) return NULL;
    if (!tensor->link) return tensor;
    if (!tensor->link->kind->is_leaf) {
        rapt_fail(
            RAPT_ERROR_GRAPH, op,
            "the tensor is the result of a recorded op; a leaf expected (rapt_detach gives the values of a result "
            "outside the graph)");
        return NULL;
    }
    rapt_clear_gradient(tensor);
    rapt_graph_link *link = tensor->link;
    tensor->link = NULL;
    link->kind->release(link, tensor);
    return tensor;
}

bool rapt_requires_gradient(const rapt_tensor *tensor)
{
    return rapt_check_alive("requires_gradient", "the tensor", tensor) && tensor && tensor->link;
}

rapt_tensor *rapt_gradient(const rapt_tensor *leaf)
{
    if (!leaf) {
        rapt_fail_null("gradient", "leaf");
        return NULL;
    }
    if (!rapt_check_alive("gradient", "the leaf", leaf)) return NULL;
    return leaf->link && leaf->link->kind->is_leaf ? rapt_node_of(leaf)->gradient : NULL;
}

/* Exchanges the gradient of a leaf, share for share. */
static rapt_tensor *exchange(rapt_node *leaf, rapt_tensor *gradient)
{
    gradients_lock_take();
    rapt_tensor *before = leaf->gradient;
    leaf->gradient = gradient;
    gradients_lock_give();
    return before;
}

void rapt_clear_gradient(rapt_tensor *leaf)
{
    if (!rapt_check_alive("clear_gradient", "the leaf", leaf)) return;
    if (leaf && leaf->link && leaf->link->kind->is_leaf) rapt_release(exchange(rapt_node_of(leaf), NULL));
}

void rapt_drop_linked_gradient(rapt_tensor *tensor)
{
    if (!tensor->link || !tensor->link->kind->is_leaf ||
        atomic_load_explicit(&tensor->references, memory_order_acquire) > 1)
        return;
    rapt_node *leaf = rapt_node_of(tensor);
    gradients_lock_take();
    rapt_tensor *gradient = leaf->gradient && leaf->gradient->link ? leaf->gradient : NULL;
    if (gradient) leaf->gradient = NULL;
    gradients_lock_give();
    rapt_release(gradient);
}

bool rapt_own_gradient(rapt_tensor *leaf)
{
    if (!leaf) return rapt_fail_null("own_gradient", "leaf");
    if (!rapt_check_alive("own_gradient", "the leaf", leaf)) return false;
    rapt_tensor *gradient = rapt_gradient(leaf);
    if (!gradient || rapt_grows_in_place(gradient, false)) return true;
    RAPT_SCOPE;
    rapt_tensor *copy = rapt_clone(gradient);
    if (!copy) return false;
    rapt_release(exchange(rapt_node_of(leaf), rapt_retain(copy)));
    return true;
}

/* Is it nobody else's? The result of a recorded op is changed by nobody, but by another that looks there. */
static bool is_own(const rapt_tensor *arrived, bool create_graph)
{
    if (!create_graph || !arrived->link) return rapt_grows_in_place(arrived, false);
    const rapt_storage *storage = arrived->storage;
    return !arrived->link->kind->is_leaf && !storage->is_foreign &&
           atomic_load_explicit(&storage->references, memory_order_acquire) == 1;
}

static rapt_tensor *copy_of(rapt_tensor *arrived, bool create_graph)
{
    return create_graph && arrived->link ? rapt_cast(arrived, arrived->dtype) : rapt_clone(arrived);
}

/* Makes what arrived what the leaf has from now on. The lock is held, which the functions that release wrapped memory
 * or an op's context may want: so nothing is released here. */
static bool join(rapt_place *place, bool create_graph)
{
    rapt_tensor *before = place->node->gradient, *arrived = place->gradient;
    if (!(before && create_graph) && is_own(arrived, create_graph))
        return !before || rapt_add_in_place(arrived, before, 1);
    place->grows = before && before->dtype == arrived->dtype && rapt_grows_in_place(before, create_graph);
    if (place->grows) return true;
    rapt_tensor *sum = rapt_retain(before ? rapt_add(before, arrived) : copy_of(arrived, create_graph));
    if (!sum) return false;
    place->replaced = arrived;
    place->gradient = sum;
    return true;
}

bool rapt_leaves_add(rapt_places *places, bool create_graph, bool (*agree)(void *context, bool good), void *context)
{
    bool before = rapt_set_recording(create_graph), good = true;
    rapt_error_hold(); /* its handler may ask for the lock */
    gradients_lock_take();
    for (int64_t i = 0; i < places->count && good; i++) {
        rapt_place *place = &places->list[i];
        if (!place->gradient || !place->node->leaf_header) continue;
        good = join(place, create_graph);
    }
    good = agree(context, good);
    for (int64_t i = 0; i < places->count && good; i++) {
        rapt_place *place = &places->list[i];
        if (!place->gradient || !place->node->leaf_header) continue;
        if (place->grows) {
            rapt_add_in_place(place->node->gradient, place->gradient, 1);
            continue;
        }
        rapt_tensor *old = place->node->gradient;
        place->node->gradient = place->gradient;
        place->gradient = old;
    }
    gradients_lock_give();
    rapt_set_recording(before);
    rapt_error_release();
    return good;
}

static void move(const rapt_tensor *from, rapt_tensor *to)
{
    rapt_node *node = to->link && to->link->kind->is_leaf ? rapt_node_of(to) : NULL;
    if (node && node->leaf_header == from) node->leaf_header = to;
}

void rapt_leaves_exchange(rapt_tensor *a, rapt_tensor *b)
{
    rapt_exchange(a, b);
    move(a, b);
    move(b, a);
}
