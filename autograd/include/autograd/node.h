/* The graph's nodes: one for each recorded call of an op, one for each leaf. */
#ifndef RAPT_AUTOGRAD_NODE_H
#define RAPT_AUTOGRAD_NODE_H

#include <rapt/op.h>

#include "tensor/core.h"

#define RAPT_MAX_SAVED 10

typedef struct rapt_node rapt_node;

/* From an input of a call to what produced it. */
typedef struct rapt_edge {
    rapt_node *node; /* NULL: the input wants no gradient */
    int output;
} rapt_edge;

typedef struct rapt_saved_tensor {
    rapt_tensor *tensor; /* may be NULL */
    uint64_t version;
    int output; /* which output of the node itself this is an unlinked view of, or −1 */
} rapt_saved_tensor;

/* What a node must know of an output: to sum broadcast gradients and to check given ones. */
typedef struct rapt_output {
    rapt_tensor *gradient; /* what has arrived so far in the current backward walk */
    rapt_tensor *captured; /* a walk of rapt_gradients leaves its result here */
    bool capture;
    uint8_t dtype;
    uint8_t rank;
    int64_t shape[RAPT_MAX_RANK];
} rapt_output;

struct rapt_node {
    rapt_graph_link link; /* first, so that a link is its node */
    _Atomic int64_t references;
    uint64_t sequence;        /* later ops have larger numbers: walking them downwards visits users before makers */
    const rapt_op *op;        /* NULL: a leaf */
    rapt_tensor *gradient;    /* of a leaf, */
    rapt_tensor *leaf_header; /* and the tensor that owns it, while it lives; no share */
    rapt_node *next;          /* in the worklist of nodes to be freed */
    size_t capacity;
    int edge_count, saved_count, output_count;
    bool used;   /* backward has freed what it needs */
    bool queued; /* in the heap of the current walk */
    void *options;
    rapt_edge *edges;
    rapt_saved_tensor *saved;
    rapt_output *outputs;
};

/* The state of one application of an op, in forward (node is NULL) or in vjp. */
struct rapt_call {
    const rapt_op *op;
    const void *options;
    int count;
    rapt_tensor *const *inputs; /* in forward */
    bool recording;
    int saved_count;
    rapt_tensor *saved[RAPT_MAX_SAVED];
    int output_count;
    rapt_tensor **outputs; /* in forward */
    rapt_node *node;       /* in vjp */
    rapt_tensor **given;   /* in vjp: one for each input, */
    bool create_graph;     /* and whether they are to have a graph */
    bool failed;
};

/* A node for that many of each; its arrays are zeroed. NULL and an error when there is no memory. */
rapt_node *rapt_node_new(const rapt_op *op, int edges, int saved, int outputs);
rapt_node *rapt_node_retain(rapt_node *node);
void rapt_node_release(rapt_node *node);

/* Drops what only a vjp needs: saved tensors and edges. */
void rapt_node_clear(rapt_node *node);

/* Fills in what the node must know of an output, and links the tensor to it. */
void rapt_node_attach(rapt_node *node, int output, rapt_tensor *tensor);

static inline rapt_node *rapt_node_of(const rapt_tensor *tensor)
{
    return (rapt_node *)tensor->link;
}

/* Makes a leaf's gradient, if it has one, a tensor that nobody else sees and that has no graph: safe to change in place. */
bool rapt_own_gradient(rapt_tensor *leaf);

/* rapt_apply_many for an op whose number of outputs is the caller's choice. */
bool rapt_apply_counted(const rapt_op *op, const void *options, int count, rapt_tensor *const *inputs, int output_count,
                        rapt_tensor **outputs);

/* In forward and vjp of such an op. */
int rapt_call_output_count(const rapt_call *call);

/* May a sum of gradients grow in place? Nobody else sees its elements, and each is there once. */
bool rapt_grows_in_place(const rapt_tensor *sum, bool create_graph);

/* The gradient summed over the axes along which the output was broadcast; NULL after an error. */
rapt_tensor *rapt_sum_to_shape(rapt_tensor *gradient, int rank, const int64_t *shape);

#endif
