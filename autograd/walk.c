/* The backward walk: by sequence number, so that a node is visited after all that used its outputs, without recursion. */
#include "walk.h"

#include <string.h>

#include <rapt/ops.h>

#include "tensor/memory.h"

static bool make_room(rapt_walk *walk)
{
    if ((size_t)(walk->count + 1) * sizeof *walk->heap <= walk->heap_bytes) return true;
    size_t bytes;
    size_t wanted = walk->heap_bytes ? walk->heap_bytes * 2 : 64 * sizeof *walk->heap;
    rapt_node **heap = rapt_block_take("backward", wanted, &bytes);
    if (!heap) return false;
    if (walk->count) memcpy(heap, walk->heap, (size_t)walk->count * sizeof *heap);
    rapt_block_give(walk->heap, walk->heap_bytes);
    walk->heap = heap;
    walk->heap_bytes = bytes;
    return true;
}

bool rapt_walk_push(rapt_walk *walk, rapt_node *node)
{
    if (node->queued) return true;
    if (!make_room(walk)) return false;
    int64_t at = walk->count++;
    for (; at > 0 && walk->heap[(at - 1) / 2]->sequence < node->sequence; at = (at - 1) / 2)
        walk->heap[at] = walk->heap[(at - 1) / 2];
    walk->heap[at] = rapt_node_retain(node);
    node->queued = true;
    return true;
}

rapt_node *rapt_walk_pop(rapt_walk *walk)
{
    rapt_node *top = walk->heap[0];
    rapt_node *last = walk->heap[--walk->count];
    int64_t at = 0;
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= walk->count) break;
        if (child + 1 < walk->count && walk->heap[child + 1]->sequence > walk->heap[child]->sequence) child++;
        if (walk->heap[child]->sequence <= last->sequence) break;
        walk->heap[at] = walk->heap[child];
        at = child;
    }
    walk->heap[at] = last;
    top->queued = false;
    return top;
}

bool rapt_grows_in_place(const rapt_tensor *sum, bool create_graph)
{
    return !create_graph && rapt_is_unique(sum) && sum->contiguous && !sum->link;
}

/* total + gradient: in place where nobody else can see total, else a new tensor. Takes over the share of total. */
static rapt_tensor *accumulate(rapt_tensor *total, rapt_tensor *gradient, bool create_graph)
{
    if (rapt_grows_in_place(total, create_graph)) return rapt_add_in_place(total, gradient, 1) ? total : NULL;
    rapt_tensor *sum = rapt_add(total, gradient);
    if (sum) rapt_release(total);
    return rapt_retain(sum);
}

static rapt_tensor *fit(const rapt_output *output, const rapt_node *node, rapt_tensor *gradient)
{
    if (gradient->dtype != output->dtype) {
        rapt_fail(RAPT_ERROR_DTYPE, "backward", "a gradient of dtype %s arrived for an output of %s, which is %s",
                  rapt_dtype_name((rapt_dtype)gradient->dtype), node->op ? node->op->name : "a leaf",
                  rapt_dtype_name((rapt_dtype)output->dtype));
        return NULL;
    }
    return rapt_sum_to_shape(gradient, output->rank, output->shape);
}

bool rapt_walk_deliver(rapt_walk *walk, rapt_node *node, int index, rapt_tensor *gradient)
{
    rapt_output *output = &node->outputs[index];
    gradient = fit(output, node, gradient);
    if (!gradient) return false;
    if (!output->gradient) {
        if (!rapt_walk_push(walk, node)) return false;
        output->gradient = rapt_retain(gradient);
        return true;
    }
    rapt_tensor *sum = accumulate(output->gradient, gradient, walk->create_graph);
    if (!sum) return false;
    output->gradient = sum;
    return true;
}

/* The first gradient is adopted, unless others see its elements or it repeats them. */
static bool visit_leaf(const rapt_walk *walk, rapt_node *node)
{
    rapt_tensor *arrived = node->outputs[0].gradient;
    if (!walk->into_leaves || !node->leaf_header) return true;
    if (node->gradient) {
        rapt_tensor *sum = accumulate(node->gradient, arrived, walk->create_graph);
        if (!sum) return false;
        node->gradient = sum;
        return true;
    }
    bool adopt = walk->create_graph || (rapt_is_unique(arrived) && arrived->contiguous);
    node->gradient = rapt_retain(adopt ? arrived : rapt_clone(arrived));
    return node->gradient != NULL;
}

static bool run_vjp(rapt_walk *walk, rapt_node *node, rapt_tensor **given)
{
    const rapt_op *op = node->op;
    rapt_call call = {.op = op, .options = node->options, .count = node->edge_count, .node = node, .given = given};
    call.output_count = node->output_count;
    call.create_graph = walk->create_graph;
    if (!op->vjp(&call) || call.failed) return rapt_fail(RAPT_ERROR_GRAPH, op->name, "its vjp failed without a reason");
    for (int i = 0; i < node->edge_count; i++)
        if (given[i] && !rapt_walk_deliver(walk, node->edges[i].node, node->edges[i].output, given[i])) return false;
    return true;
}

static bool visit_op(rapt_walk *walk, rapt_node *node)
{
    enum { few = 16 };
    const rapt_op *op = node->op;
    if (node->used)
        return rapt_fail(RAPT_ERROR_GRAPH, "backward",
                         "the graph of %s was freed by an earlier backward; RAPT_RETAIN_GRAPH there keeps it",
                         op->name);
    if (!op->vjp)
        return rapt_fail(RAPT_ERROR_UNSUPPORTED, op->name, "has no gradient%s%s", op->no_gradient ? "; " : "",
                         op->no_gradient ? op->no_gradient : "");
    RAPT_SCOPE;
    rapt_tensor *few_given[few] = {0};
    if (node->edge_count <= few) return run_vjp(walk, node, few_given);
    size_t capacity, bytes = (size_t)node->edge_count * sizeof(rapt_tensor *);
    rapt_tensor **given = rapt_block_take(op->name, bytes, &capacity);
    if (!given) return false;
    memset(given, 0, bytes);
    bool good = run_vjp(walk, node, given);
    rapt_block_give(given, capacity);
    return good;
}

static void drop_gradients(rapt_node *node)
{
    for (int k = 0; k < node->output_count; k++) {
        rapt_release(node->outputs[k].gradient);
        node->outputs[k].gradient = NULL;
    }
}

static bool visit(rapt_walk *walk, rapt_node *node)
{
    for (int k = 0; k < node->output_count; k++)
        if (node->outputs[k].capture) node->outputs[k].captured = rapt_retain(node->outputs[k].gradient);
    bool good = node->op ? visit_op(walk, node) : visit_leaf(walk, node);
    drop_gradients(node);
    if (node->op && !walk->retain_graph && good) rapt_node_clear(node);
    return good;
}

bool rapt_walk_run(rapt_walk *walk)
{
    bool before = rapt_set_recording(walk->create_graph);
    bool good = true;
    while (good && walk->count > 0) {
        rapt_node *node = rapt_walk_pop(walk);
        good = visit(walk, node);
        rapt_node_release(node);
    }
    rapt_set_recording(before);
    return good;
}

void rapt_walk_end(rapt_walk *walk)
{
    while (walk->count > 0) {
        rapt_node *node = rapt_walk_pop(walk);
        drop_gradients(node);
        rapt_node_release(node);
    }
    rapt_block_give(walk->heap, walk->heap_bytes);
    walk->heap = NULL;
    walk->heap_bytes = 0;
}
