/* The backward walk: by sequence number, so that a node is visited after all that used its outputs, without
 * recursion. */
#include "walk.h"

#include <string.h>

#include <rapt/ops.h>

#include "observe.h"
#include "recording.h"
#include "tensor/debug.h"
#include "tensor/memory.h"

/* --- reaching nodes --- */

static bool append(rapt_node_list *list, rapt_node *node)
{
    const size_t used = (size_t)list->count * sizeof *list->nodes;
    if (used + sizeof *list->nodes > list->bytes) {
        rapt_node **nodes = rapt_block_grow("backward", list->nodes, &list->bytes, used, used + sizeof *nodes);
        if (!nodes) return false;
        list->nodes = nodes;
    }
    list->nodes[list->count++] = node;
    return true;
}

static bool push(rapt_node_list *heap, rapt_node *node)
{
    if (!append(heap, node)) return false;
    int64_t at = heap->count - 1;
    for (; at > 0 && heap->nodes[(at - 1) / 2]->sequence < node->sequence; at = (at - 1) / 2)
        heap->nodes[at] = heap->nodes[(at - 1) / 2];
    heap->nodes[at] = node;
    return true;
}

static rapt_node *pop(rapt_node_list *heap)
{
    rapt_node *top = heap->nodes[0], *last = heap->nodes[--heap->count];
    int64_t at = 0;
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= heap->count) break;
        if (child + 1 < heap->count && heap->nodes[child + 1]->sequence > heap->nodes[child]->sequence) child++;
        if (heap->nodes[child]->sequence <= last->sequence) break;
        heap->nodes[at] = heap->nodes[child];
        at = child;
    }
    heap->nodes[at] = last;
    return top;
}

static bool is_claimed(const rapt_walk *walk, const rapt_node *node)
{
    return atomic_load_explicit(&node->walk, memory_order_relaxed) == walk;
}

/* Takes over a share of a node: the walk has one of each that it still has to visit, unless an edge or a root has. */
static void hold(const rapt_walk *walk, rapt_node *node)
{
    if (node->op && is_claimed(walk, node) && !node->held)
        node->held = true;
    else
        rapt_node_release(node);
}

/* Gives a node back as it was found, but for what backward has used up. Those behind it are still to be visited. */
static void leave(rapt_walk *walk, rapt_node *node)
{
    const bool held = node->held;
    for (int k = 0; k < node->output_count; k++) {
        if (!node->outputs[k].gradient) continue;
        rapt_release(node->outputs[k].gradient);
        node->outputs[k].gradient = NULL;
    }
    for (int i = 0; held && !node->used && i < node->edge_count; i++)
        if (node->edges[i].node) hold(walk, rapt_node_retain(node->edges[i].node));
    node->held = false;
    atomic_store_explicit(&node->walk, NULL, memory_order_release);
    if (held) rapt_node_release(node);
}

/* A node of an op. */
static bool claim(rapt_walk *walk, rapt_node *node)
{
    rapt_walk *nobody = NULL;
    if (is_claimed(walk, node)) return true;
    if (!atomic_compare_exchange_strong_explicit(&node->walk, &nobody, walk, memory_order_acquire,
                                                 memory_order_relaxed))
        return rapt_fail(RAPT_ERROR_GRAPH, walk->op,
                         "another backward goes through the graph of %s at this moment; a graph takes one at a time",
                         node->op->name);
    if (push(&walk->heap, node)) return true;
    leave(walk, node);
    return false;
}

/* Leaves are shared: instead of claiming one, the walk has a place of its own for it. */
static bool reach(rapt_walk *walk, rapt_node *node, int output)
{
    bool is_new;
    return rapt_enters_node(&walk->places, node) ? claim(walk, node)
                                                 : rapt_places_add(&walk->places, node, output, &is_new) >= 0;
}

bool rapt_walk_add_root(rapt_walk *walk, rapt_node *node, int output)
{
    if (!reach(walk, node, output)) return false;
    if (node->op) hold(walk, rapt_node_retain(node));
    return true;
}

static bool is_requested(const rapt_walk *walk, const rapt_node *node)
{
    for (int k = 0; walk->has_requests && k < node->output_count; k++)
        if (rapt_places_find(&walk->places, node, k) >= 0) return true;
    return false;
}

static bool reach_inputs(rapt_walk *walk, rapt_node *node)
{
    for (int i = 0; i < node->edge_count; i++)
        if (rapt_walk_wants(walk, &node->edges[i]) && !reach(walk, node->edges[i].node, node->edges[i].output))
            return false;
    return true;
}

bool rapt_walk_reach(rapt_walk *walk)
{
    while (walk->heap.count > 0) {
        rapt_node *node = walk->heap.nodes[0];
        if (!append(&walk->order, node)) return false;
        pop(&walk->heap);
        node->requested = is_requested(walk, node);
        if (!reach_inputs(walk, node)) return false;
    }
    return true;
}

static bool check_node(const rapt_walk *walk, const rapt_node *node)
{
    const rapt_op *op = node->op;
    if (node->used)
        return rapt_fail(RAPT_ERROR_GRAPH, walk->op,
                         "the graph of %s was freed by an earlier backward; RAPT_RETAIN_GRAPH there keeps it",
                         op->name);
    if (!op->vjp)
        return rapt_fail(RAPT_ERROR_UNSUPPORTED, op->name, "has no gradient%s%s", op->no_gradient ? "; " : "",
                         op->no_gradient ? op->no_gradient : "");
    if (walk->create_graph && op->no_second_gradient && !op->definition)
        return rapt_fail(RAPT_ERROR_UNSUPPORTED, op->name, "has no second derivative; %s", op->no_second_gradient);
    return rapt_node_check_saved(node, walk->create_graph && !op->definition);
}

bool rapt_walk_check(const rapt_walk *walk)
{
    for (int64_t i = 0; i < walk->order.count; i++)
        if (!check_node(walk, walk->order.nodes[i])) return false;
    return true;
}

/* --- gradients on their way --- */

/* sum + gradient: in place where nobody else can see the sum, else a new tensor. */
static bool add_to(rapt_tensor **sum, rapt_tensor *gradient, bool create_graph)
{
    if (rapt_grows_in_place(*sum, create_graph)) return rapt_add_in_place(*sum, gradient, 1);
    rapt_tensor *total = rapt_retain(rapt_add(*sum, gradient));
    if (!total) return false;
    rapt_release(*sum);
    *sum = total;
    return true;
}

bool rapt_walk_deliver(rapt_walk *walk, rapt_node *node, int output, rapt_tensor *gradient)
{
    rapt_tensor **sum = rapt_places_sum(&walk->places, node, output);
    if (*sum) return add_to(sum, gradient, walk->create_graph);
    *sum = rapt_retain(gradient);
    return true;
}

/* --- visiting nodes --- */

static __attribute__((noinline)) rapt_tensor *fit_another_shape(const rapt_op *op, int input, const rapt_output *output,
                                                                rapt_tensor *gradient)
{
    char a[RAPT_SHAPE_TEXT], b[RAPT_SHAPE_TEXT];
    if (gradient->dtype == output->dtype && rapt_sums_to_shape(gradient, output->rank, output->shape))
        return rapt_sum_to_shape(gradient, output->rank, output->shape);
    rapt_fail(gradient->dtype == output->dtype ? RAPT_ERROR_SHAPE : RAPT_ERROR_DTYPE, op->name,
              "its vjp gave %s %s as the gradient of input %d, which is %s %s", rapt_dtype_name(gradient->dtype),
              rapt_shape_text(gradient->rank, gradient->shape, a), input, rapt_dtype_name(output->dtype),
              rapt_shape_text(output->rank, output->shape, b));
    return NULL;
}

/* What a vjp gave for an input, summed over the axes along which the input was broadcast. */
static inline rapt_tensor *fit(const rapt_op *op, int input, const rapt_edge *edge, rapt_tensor *gradient)
{
    const rapt_output *output = &edge->node->outputs[edge->output];
    const bool is_fit = gradient->dtype == output->dtype && rapt_has_shape(gradient, output->rank, output->shape);
    return is_fit ? gradient : fit_another_shape(op, input, output, gradient);
}

static bool is_zero(rapt_tensor *gradient)
{
    rapt_tensor *zero = rapt_scalar(gradient->dtype, 0);
    rapt_tensor *others = rapt_sum(rapt_not_equal(gradient, zero), RAPT_ALL_AXES, false);
    return others && rapt_item(others) == 0;
}

/* A gradient is linear in those of the outputs. Where they are part of a graph and it is not, it was not made of
 * recorded ops, and its own derivative would be lost. */
static bool check_linked(const rapt_node *node, int input, rapt_tensor *gradient)
{
    if (gradient->link) return true;
    for (int k = 0; k < node->output_count; k++)
        if (node->outputs[k].gradient && !node->outputs[k].gradient->link) return true;
    return is_zero(gradient) ||
           rapt_fail(
               RAPT_ERROR_GRAPH, node->op->name,
               "its vjp did not make the gradient of input %d of recorded ops, so that one has no derivative; write "
               "it with ops, give the op a definition, or say in no_second_gradient why not",
               input);
}

/* A share of what begins a sum: where nobody needs it again, that of the node or of the scope. */
static rapt_tensor *share_of(const rapt_walk *walk, rapt_node *node, int input, rapt_tensor **given,
                             rapt_tensor *gradient)
{
    for (int later = input + 1; later < node->edge_count; later++)
        if (given[later] == gradient) return rapt_retain(gradient);
    for (int k = 0; k < node->output_count && !walk->create_graph; k++) {
        if (node->outputs[k].gradient != gradient) continue;
        node->outputs[k].gradient = NULL;
        return gradient;
    }
    return rapt_scope_take(gradient);
}

/* A gradient so far is only to be added to by the vjp, and never given. */
static bool check_other(const rapt_walk *walk, const rapt_node *node, int input, const rapt_tensor *so_far,
                        const rapt_tensor *gradient)
{
    return gradient != so_far || !rapt_grows_in_place(so_far, walk->create_graph) ||
           rapt_fail(RAPT_ERROR_GRAPH, node->op->name,
                     "its vjp gave the gradient so far of input %d, which is only to be added to", input);
}

static bool deliver_given(rapt_walk *walk, rapt_node *node, rapt_tensor **given)
{
    for (int i = 0; i < node->edge_count; i++) {
        const rapt_edge *edge = &node->edges[i];
        if (!given[i]) continue;
        if (walk->create_graph && !check_linked(node, i, given[i])) return false;
        rapt_tensor *gradient = fit(node->op, i, edge, given[i]);
        if (!gradient) return false;
        rapt_tensor **sum = rapt_places_sum(&walk->places, edge->node, edge->output);
        if (!*sum)
            *sum = share_of(walk, node, i, given, gradient);
        else if (!check_other(walk, node, i, *sum, gradient) || !add_to(sum, gradient, walk->create_graph))
            return false;
    }
    return true;
}

static bool call_vjp(rapt_walk *walk, rapt_node *node, rapt_tensor **given)
{
    const rapt_op *op = node->op;
    rapt_call call;
    call.op = op;
    call.options = node->options;
    call.count = node->edge_count;
    call.output_count = node->output_count;
    call.node = node;
    call.given = given;
    call.walk = walk;
    call.failed = false;
    if (!rapt_node_get_saved(node, call.saved)) return false;
    const bool good = op->vjp(&call);
    rapt_spare_gradient = NULL;
    return (good && !call.failed) || rapt_fail(RAPT_ERROR_GRAPH, op->name, "its vjp failed without a reason");
}

/* What a vjp that cannot be differentiated gives, made part of the graph by the op's definition. */
static bool call_fused_vjp(rapt_walk *walk, rapt_node *node, rapt_tensor **given)
{
    RAPT_NO_GRADIENT;
    if (!call_vjp(walk, node, given)) return false;
    for (int i = 0; i < node->edge_count; i++)
        if (given[i] && !(given[i] = fit(node->op, i, &node->edges[i], given[i]))) return false;
    return rapt_record_vjp(node, given);
}

static bool run_vjp(rapt_walk *walk, rapt_node *node, rapt_tensor **given)
{
    const bool is_fused = walk->create_graph && node->op->definition;
    return (is_fused ? call_fused_vjp : call_vjp)(walk, node, given) && deliver_given(walk, node, given);
}

static bool visit(rapt_walk *walk, rapt_node *node)
{
    enum { few = 8 };
    if (node->edge_count <= few) {
        rapt_tensor *given[few] = {0};
        return run_vjp(walk, node, given);
    }
    size_t capacity, bytes = (size_t)node->edge_count * sizeof(rapt_tensor *);
    rapt_tensor **given = rapt_block_take(node->op->name, bytes, &capacity);
    if (!given) return false;
    memset(given, 0, bytes);
    bool good = run_vjp(walk, node, given);
    rapt_block_give(given, capacity);
    return good;
}

static __attribute__((noinline, cold)) bool visit_observed(rapt_walk *walk, rapt_node *node)
{
    rapt_observation observation;
    rapt_observe_vjp(&observation, walk, node);
    return rapt_observe_vjp_done(&observation, walk, node, visit(walk, node));
}

static bool is_reached_by_gradient(const rapt_node *node)
{
    for (int k = 0; k < node->output_count; k++)
        if (node->outputs[k].gradient) return true;
    return false;
}

static bool wants_any(const rapt_walk *walk, const rapt_node *node)
{
    for (int i = 0; i < node->edge_count; i++)
        if (rapt_walk_wants(walk, &node->edges[i])) return true;
    return false;
}

static void keep_requested(rapt_walk *walk, const rapt_node *node)
{
    for (int k = 0; k < node->output_count; k++) {
        const int64_t place = rapt_places_find(&walk->places, node, k);
        if (place >= 0) walk->places.list[place].gradient = rapt_retain(node->outputs[k].gradient);
    }
}

/* Drops what only the vjp needed. The shares of the nodes behind go to the walk, which is to visit them. */
static void use_up(const rapt_walk *walk, rapt_node *node)
{
    for (int i = 0; i < node->edge_count; i++) {
        if (node->edges[i].node) hold(walk, node->edges[i].node);
        node->edges[i].node = NULL;
    }
    rapt_node_clear(node);
}

bool rapt_walk_run(rapt_walk *walk)
{
    const rapt_scope scope = rapt_scope_begin();
    bool before = rapt_set_recording(walk->create_graph), good = scope >= 0;
    while (good && walk->done < walk->order.count) {
        rapt_node *node = walk->order.nodes[walk->done];
        if (is_reached_by_gradient(node)) {
            if (node->requested) keep_requested(walk, node);
            const bool goes_on = wants_any(walk, node);
            if (goes_on) good = rapt_observed() ? visit_observed(walk, node) : visit(walk, node);
            rapt_scope_renew(scope);
            if (good && goes_on && !walk->retain_graph) use_up(walk, node);
        }
        leave(walk, node);
        walk->done++;
    }
    rapt_set_recording(before);
    rapt_scope_end(scope);
    return good;
}

void rapt_walk_end(rapt_walk *walk)
{
    while (walk->heap.count > 0) leave(walk, walk->heap.nodes[--walk->heap.count]);
    for (; walk->done < walk->order.count; walk->done++) leave(walk, walk->order.nodes[walk->done]);
    rapt_block_give(walk->order.nodes, walk->order.bytes);
    rapt_block_give(walk->heap.nodes, walk->heap.bytes);
    rapt_places_end(&walk->places);
}
