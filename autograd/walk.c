/* The backward walk: by sequence number, so that a node is visited after all that used its outputs, without
 * recursion. */
#include "walk.h"

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

/* The place of the leaf that the edge leads to; NULL for an edge to an op's node. */
static rapt_place *place_behind(const rapt_walk *walk, const rapt_edge *edge)
{
    if (!rapt_walk_wants(walk, edge) || rapt_enters_node(&walk->places, edge->node)) return NULL;
    return &walk->places.list[rapt_places_find(&walk->places, edge->node, edge->output)];
}

static bool reach_inputs(rapt_walk *walk, rapt_node *node)
{
    for (int i = 0; i < node->edge_count; i++) {
        const rapt_edge *edge = &node->edges[i];
        if (rapt_walk_wants(walk, edge) && !reach(walk, edge->node, edge->output)) return false;
        rapt_place *place = walk->take ? place_behind(walk, edge) : NULL;
        if (place) place->awaited++;
    }
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

/* From here on this thread is where the node was recorded. */
static inline void enter_node(const rapt_node *node)
{
    rapt_running_place = (rapt_module_place){.path = node->path};
}

bool rapt_walk_check(const rapt_walk *walk)
{
    const rapt_module_place place = rapt_running_place;
    bool good = true;
    for (int64_t i = 0; i < walk->order.count && good; i++) {
        enter_node(walk->order.nodes[i]);
        good = check_node(walk, walk->order.nodes[i]);
    }
    rapt_running_place = place;
    return good;
}

/* --- visiting nodes --- */

static __attribute__((noinline, cold)) bool visit_observed(rapt_walk *walk, rapt_node *node)
{
    rapt_observation observation;
    rapt_observe_vjp(&observation, walk, node);
    return rapt_observe_vjp_done(&observation, walk, node, rapt_walk_visit(walk, node));
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
        if (!node->edges[i].node) continue;
        hold(walk, node->edges[i].node);
        node->edges[i].node = NULL;
    }
    rapt_node_drop_saved(node);
}

/* Hands over the gradient of a leaf that nothing more is added to. */
static bool hand_over(const rapt_walk *walk, rapt_place *place)
{
    rapt_tensor *leaf = place->node->leaf_header;
    if (!place->gradient || !leaf) return true;
    rapt_tensor *gradient = place->gradient;
    place->gradient = NULL;
    const bool off_before = rapt_recording_is_off;
    const bool good = walk->take(walk->take_context, leaf, gradient);
    rapt_recording_is_off = off_before;
    rapt_release(gradient);
    return good || rapt_fail(RAPT_ERROR_VALUE, walk->op, "the function that takes gradients failed without a reason");
}

/* Hands over those that wait for no other node. */
static bool hand_over_behind(const rapt_walk *walk, const rapt_node *node)
{
    bool good = true;
    for (int i = 0; i < node->edge_count && good; i++) {
        rapt_place *place = place_behind(walk, &node->edges[i]);
        if (place && --place->awaited == 0) good = hand_over(walk, place);
    }
    return good;
}

/* Leaves that are roots, and behind no node. */
static bool hand_over_roots(const rapt_walk *walk)
{
    bool good = true;
    for (int64_t i = 0; i < walk->places.count && good; i++)
        if (walk->places.list[i].awaited == 0) good = hand_over(walk, &walk->places.list[i]);
    return good;
}

static RAPT_THREAD_LOCAL int under_way; /* walks, inside each other */

bool rapt_walk_is_under_way(void)
{
    return under_way > 0;
}

bool rapt_walk_run(rapt_walk *walk)
{
    under_way++;
    const rapt_scope scope = rapt_scope_begin();
    const rapt_module_place place = rapt_running_place;
    bool before = rapt_set_recording(walk->create_graph), good = !walk->take || hand_over_roots(walk);
    while (good && walk->done < walk->order.count) {
        rapt_node *node = walk->order.nodes[walk->done];
        if (is_reached_by_gradient(node)) {
            if (node->requested) keep_requested(walk, node);
            const bool goes_on = wants_any(walk, node);
            enter_node(node);
            if (goes_on) good = rapt_observed() ? visit_observed(walk, node) : rapt_walk_visit(walk, node);
            rapt_running_place = place;
            rapt_scope_renew(scope);
            if (good && walk->take) good = hand_over_behind(walk, node);
            if (good && goes_on && !walk->retain_graph) use_up(walk, node);
        } else if (walk->take) {
            good = hand_over_behind(walk, node);
        }
        leave(walk, node);
        walk->done++;
    }
    rapt_set_recording(before);
    rapt_scope_end(scope);
    under_way--;
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
