/* A walk down a graph: a heap of nodes that were reached (by a gradient, in backward), the latest recorded on top. */
#ifndef RAPT_AUTOGRAD_WALK_H
#define RAPT_AUTOGRAD_WALK_H

#include "autograd/node.h"

typedef struct rapt_walk {
    rapt_node **heap;
    size_t heap_bytes; /* the allocator's capacity */
    int64_t count;
    bool retain_graph;
    bool create_graph;
    bool into_leaves; /* leaves accumulate; otherwise only captured gradients are kept */
} rapt_walk;

/* Queues a node, unless it is queued already. False after an error. */
bool rapt_walk_push(rapt_walk *walk, rapt_node *node);

/* Takes the node with the largest sequence number, and the walk's share of it. There must be one. */
rapt_node *rapt_walk_pop(rapt_walk *walk);

/* Adds a gradient for one output of a node and queues the node. False after an error. */
bool rapt_walk_deliver(rapt_walk *walk, rapt_node *node, int output, rapt_tensor *gradient);

/* Visits nodes until none is left. After an error it frees what the walk holds and returns false. */
bool rapt_walk_run(rapt_walk *walk);

/* Drops a walk before or after it ran. */
void rapt_walk_end(rapt_walk *walk);

#endif
