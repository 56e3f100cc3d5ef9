/* Making, linking and freeing nodes. Freeing never recurses: a chain of a million ops must not touch the stack. */
#include "node.h"

#include <string.h>

#include "autograd/observe.h"
#include "recording.h"
#include "tensor/memory.h"
#include "tensor/thread.h"

/* Of the nodes that this thread made, and those that they use. */
static RAPT_THREAD_LOCAL uint64_t last_sequence;

void rapt_link_retain(rapt_graph_link *link)
{
    rapt_node_retain((rapt_node *)link);
}

static void link_release(rapt_graph_link *link, rapt_tensor *tensor)
{
    (void)tensor;
    rapt_node_release((rapt_node *)link);
}

static const rapt_link_kind op_link = {.retain = rapt_link_retain, .release = link_release};

static size_t round_up(size_t bytes)
{
    return (bytes + 15) & ~(size_t)15;
}

rapt_node *rapt_node_new(const rapt_op *op, int edges, int saved, int outputs, size_t options_size)
{
    const size_t saved_at = sizeof(rapt_node) + (size_t)edges * sizeof(rapt_edge);
    const size_t outputs_at = saved_at + (size_t)saved * sizeof(rapt_saved_tensor);
    const size_t options_at = round_up(outputs_at + (size_t)outputs * sizeof(rapt_output));
    size_t capacity;
    char *block = rapt_block_take(op ? op->name : "require_gradient", options_at + options_size, &capacity);
    if (!block) return NULL;
    rapt_node *node = (rapt_node *)(void *)block;
    node->link.kind = &op_link;
    atomic_init(&node->references, 1);
    node->sequence = ++last_sequence;
    node->op = op;
    node->capacity = capacity;
    node->path = rapt_running_place.path;
    node->edge_count = edges;
    node->saved_count = (uint8_t)saved;
    node->output_count = outputs;
    node->used = node->requested = node->held = node->meets = false;
    node->others = NULL;
    atomic_init(&node->walk, NULL);
    node->options = block + options_at;
    node->saved = (rapt_saved_tensor *)(void *)(block + saved_at);
    node->outputs = (rapt_output *)(void *)(block + outputs_at);
    memset(node->edges, 0, outputs_at - sizeof(rapt_node)); /* and what is saved */
    for (int k = 0; k < outputs; k++) node->outputs[k].gradient = NULL;
    return node;
}

void rapt_nodes_follow(const rapt_node *node)
{
    if (node->sequence > last_sequence) last_sequence = node->sequence;
}

uint64_t rapt_nodes_last(void)
{
    return last_sequence;
}

void rapt_node_connect(rapt_node *node, int input, const rapt_tensor *tensor)
{
    rapt_node_connect_to(node, input, rapt_node_of(tensor), tensor->output);
}

void rapt_node_connect_to(rapt_node *node, int input, rapt_node *maker, int output)
{
    node->edges[input] = (rapt_edge){rapt_node_retain(maker), output};
    if (maker->others) node->others = maker->others;
    if (maker->sequence >= node->sequence) node->sequence = last_sequence = maker->sequence + 1;
}

void rapt_node_attach(rapt_node *node, rapt_tensor *const *outputs)
{
    int64_t linked = 0;
    for (int k = 0; k < node->output_count; k++) {
        rapt_output *output = &node->outputs[k];
        rapt_tensor *tensor = outputs[k];
        output->dtype = tensor->dtype;
        if (!rapt_is_floating(tensor)) continue;
        output->rank = tensor->rank;
        memcpy(output->shape, tensor->shape, sizeof output->shape);
        tensor->link = &node->link;
        tensor->output = k;
        linked++;
    }
    atomic_store_explicit(&node->references, linked, memory_order_relaxed);
}

rapt_node *rapt_node_retain(rapt_node *node)
{
    if (node) atomic_fetch_add_explicit(&node->references, 1, memory_order_relaxed);
    return node;
}

void rapt_node_drop_saved(rapt_node *node)
{
    for (int k = 0; k < node->saved_count; k++) {
        if (node->saved[k].tensor) rapt_release(node->saved[k].tensor);
        node->saved[k].tensor = NULL;
    }
    node->used = true;
}

static void node_free(rapt_node *node)
{
    if (!node->op) rapt_release(node->gradient);
    if (node->op && !node->used) {
        rapt_node_drop_saved(node);
        for (int i = 0; i < node->edge_count; i++)
            if (node->edges[i].node) rapt_node_release(node->edges[i].node);
    }
    rapt_block_give(node, node->capacity);
}

/* Freeing a node releases others; those queue up here instead of nesting calls. */
void rapt_node_release(rapt_node *node)
{
    if (!node || !rapt_drop_reference(&node->references)) return;
    static RAPT_THREAD_LOCAL struct {
        rapt_node *head;
        bool running;
    } worklist;
    node->next = worklist.head;
    worklist.head = node;
    if (worklist.running) return;
    worklist.running = true;
    while (worklist.head) {
        rapt_node *first = worklist.head;
        worklist.head = first->next;
        node_free(first);
    }
    worklist.running = false;
}

rapt_tensor *rapt_node_share(rapt_tensor *tensor)
{
    return tensor->link && tensor->link->kind->is_leaf ? rapt_alias_share(tensor, true) : rapt_retain(tensor);
}

static inline bool check_version(const rapt_node *node, const rapt_saved_tensor *saved)
{
    const uint64_t version = rapt_version_of(saved->tensor);
    return version == saved->version ||
           rapt_fail(RAPT_ERROR_GRAPH, node->op->name,
                     "a tensor that its gradient needs was changed in place after the op ran (version %llu, "
                     "now %llu); change a clone, or do it after backward",
                     (unsigned long long)saved->version, (unsigned long long)version);
}

bool rapt_node_check_saved(const rapt_node *node, bool create_graph)
{
    for (int k = 0; k < node->saved_count; k++) {
        const rapt_saved_tensor *saved = &node->saved[k];
        char text[128];
        if (!saved->tensor) continue;
        if (!check_version(node, saved)) return false;
        if (create_graph && saved->is_lost)
            return rapt_fail(
                RAPT_ERROR_GRAPH, node->op->name,
                "no second derivative: saved tensor %d, %s, is neither an input nor an output, and its own "
                "derivative would be lost; save inputs or outputs and compute it again in the vjp, or use "
                "rapt_call_save_constant if nothing is lost",
                k, rapt_describe(saved->tensor, text, sizeof text));
    }
    return true;
}

bool rapt_node_get_saved(rapt_node *node, rapt_tensor *tensors[RAPT_MAX_SAVED])
{
    for (int k = 0; k < node->saved_count; k++) {
        const rapt_saved_tensor *saved = &node->saved[k];
        tensors[k] = saved->tensor;
        if (!saved->tensor) continue;
        if (!check_version(node, saved)) return false;
        if (saved->output < 0 || rapt_recording_is_off) continue;
        rapt_tensor *linked = tensors[k] = rapt_new_alias(saved->tensor, false);
        if (!linked) return false;
        linked->link = &rapt_node_retain(node)->link;
        linked->output = saved->output;
    }
    return true;
}
