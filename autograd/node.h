/* The graph's nodes: one for each recorded call of an op, one for each leaf. */
#ifndef RAPT_AUTOGRAD_NODE_H
#define RAPT_AUTOGRAD_NODE_H

#include <rapt/op.h>

#include "tensor/core.h"

typedef struct rapt_node rapt_node;
typedef struct rapt_walk rapt_walk;

/* From an input of a call to what produced it. */
typedef struct rapt_edge {
    rapt_node *node; /* NULL: the input wants no gradient */
    int32_t output;
} rapt_edge;

typedef struct rapt_saved_tensor {
    rapt_tensor *tensor; /* may be NULL */
    uint64_t version;
    int output;   /* which output of the node itself this is an unlinked view of, or −1 */
    bool is_lost; /* floating, but no input and no output: a derivative through it would be lost */
} rapt_saved_tensor;

/* What a node must know of an output: to sum broadcast gradients and to check given ones. */
typedef struct rapt_output {
    rapt_tensor *gradient; /* of an op: what has arrived so far in the walk that has claimed the node */
    rapt_dtype dtype;
    uint8_t rank;
    int64_t shape[RAPT_MAX_RANK];
} rapt_output;

/* In the order of use: a walk that only reaches a node reads the first cache line and the edges. */
struct rapt_node {
    rapt_graph_link link; /* first, so that a link is its node */
    _Atomic int64_t references;
    uint64_t sequence;         /* larger than of what made the inputs: walking downwards visits users before makers */
    const rapt_op *op;         /* NULL: a leaf */
    _Atomic(rapt_walk *) walk; /* of an op: who has claimed it. Leaves belong to all threads at once */
    int edge_count, output_count;
    uint8_t saved_count;
    bool used;       /* backward has freed what it needs */
    bool requested;  /* a gradient of an output is to be kept by the walk that has claimed the node */
    bool held;       /* that walk has a share of the node */
    bool meets;      /* the op, or the segment, itself goes across processes; else one before it does, or none */
    void *others;    /* who wait for it then (autograd/meeting.h); NULL: nobody */
    rapt_node *next; /* in the worklist of nodes to be freed */
    size_t capacity;
    const char *path; /* of the module that recorded it, or NULL */
    rapt_output *outputs;
    union {
        struct { /* of an op */
            rapt_saved_tensor *saved;
            void *options;
        };
        struct { /* of a leaf */
            rapt_tensor *gradient;
            rapt_tensor *_Atomic leaf_header; /* which owns the gradient, while it lives; no share */
        };
    };
    rapt_edge edges[];
};

/* The state of one application of an op, in forward (node is NULL) or in vjp. */
struct rapt_call {
    const rapt_op *op;
    const void *options;
    int count;
    rapt_tensor *const *inputs; /* in forward */
    bool recording;
    int saved_count;
    rapt_tensor *saved[RAPT_MAX_SAVED]; /* in forward a share of each, in vjp what rapt_call_saved gives */
    int saved_output[RAPT_MAX_SAVED];   /* in forward: the output that is to be saved in place of saved[k], or −1 */
    uint32_t constants;                 /* in forward: bit k set: saved[k] counts as a constant */
    int output_count;
    rapt_tensor **outputs; /* in forward */
    rapt_node *node;       /* in vjp */
    rapt_walk *walk;       /* in vjp */
    rapt_tensor **given;   /* in vjp: one for each input */
    int64_t scopes;        /* that were open when its function was called; in forward only of several outputs */
    bool failed;
};

/* A node for that many of each and bytes of options, later than all that this thread has recorded. Its edges lead
 * nowhere, nothing is saved and no gradient has arrived; what else is in its arrays is undefined. The share is the
 * caller's. NULL and an error when there is no memory. */
rapt_node *rapt_node_new(const rapt_op *op, int edges, int saved, int outputs, size_t options_size);

/* What this thread records from now on is later than that node. */
void rapt_nodes_follow(const rapt_node *node);

/* The sequence after which this thread records. */
uint64_t rapt_nodes_last(void);

/* A tensor's link takes another share of its node. */
void rapt_link_retain(rapt_graph_link *link);

/* Makes the edge of an input that wants a gradient. */
void rapt_node_connect(rapt_node *node, int input, const rapt_tensor *tensor);

/* The same to an output of a node. */
void rapt_node_connect_to(rapt_node *node, int input, rapt_node *maker, int output);

/* Fills in what a new node must know of its outputs, one of them floating at least, and links the floating ones to it.
 * Takes over the caller's share. */
void rapt_node_attach(rapt_node *node, rapt_tensor *const *outputs);

rapt_node *rapt_node_retain(rapt_node *node);
void rapt_node_release(rapt_node *node);

/* Drops what only a vjp needs besides the edges: the node is used. */
void rapt_node_drop_saved(rapt_node *node);

/* False and an error when a saved tensor was changed in place since, or for a vjp that is to be differentiated
 * itself, when a derivative would be lost. */
bool rapt_node_check_saved(const rapt_node *node, bool create_graph);

/* What was saved, as a vjp sees it: part of the graph where that is recorded. False after an error: no memory, or an
 * earlier vjp changed it in place. */
bool rapt_node_get_saved(rapt_node *node, rapt_tensor *saved[RAPT_MAX_SAVED]);

/* A share of a tensor for the graph to hold: of another header where it is a leaf, which goes when its owner lets go of
 * it. NULL after an error (no memory). */
rapt_tensor *rapt_node_share(rapt_tensor *tensor);

static inline rapt_node *rapt_node_of(const rapt_tensor *tensor)
{
    return (rapt_node *)tensor->link;
}

/* Makes what the vjp of a node gave for its inputs (NULL: nothing), each of that input's shape, part of the graph: the
 * op has a definition. Puts linked tensors of the innermost scope in their places. False after an error. */
bool rapt_record_vjp(const rapt_node *node, rapt_tensor **given);

/* May derivatives be asked for by that input of a call? It is part of a graph: a leaf, or the result of a recorded op.
 * False after an error, which names it. */
bool rapt_check_input(const char *op, int i, const rapt_tensor *input);

/* Are the flags those of backward? False and an error when not. */
bool rapt_check_walk_flags(const char *op, int flags);

/* rapt_gradients whose errors have the name of `op`. */
bool rapt_gradients_for(const char *op, int count, rapt_tensor *const *roots, rapt_tensor *const *gradients,
                        int input_count, rapt_tensor *const *inputs, rapt_tensor **results, int flags);

/* May a sum of gradients grow in place? Nobody else sees its elements, and each is there once. */
static inline bool rapt_grows_in_place(const rapt_tensor *sum, bool create_graph)
{
    return !create_graph && rapt_is_unique(sum) && sum->contiguous && !sum->link;
}

/* Does that shape broadcast to the gradient's? */
bool rapt_sums_to_shape(const rapt_tensor *gradient, int rank, const int64_t *shape);

/* The gradient summed over the axes along which that shape, which it sums to, was broadcast; NULL after an error. */
rapt_tensor *rapt_sum_to_shape(rapt_tensor *gradient, int rank, const int64_t *shape);

#endif
