/* A walk down a graph: first every node behind the roots is reached, claimed and checked, then backward goes through
 * them. */
#ifndef RAPT_AUTOGRAD_WALK_H
#define RAPT_AUTOGRAD_WALK_H

#include <rapt/graph.h>

#include "node.h"
#include "places.h"

/* Nodes, without shares of them. */
typedef struct rapt_node_list {
    rapt_node **nodes;
    int64_t count;
    size_t bytes; /* the allocator's capacity */
} rapt_node_list;

typedef struct rapt_walk {
    const char *op; /* for errors */
    bool retain_graph;
    bool create_graph;
    rapt_gradient_function *take; /* what leaves' gradients are handed to when complete; NULL: nothing */
    void *take_context;
    bool has_requests; /* some output of an op has a place: its gradient is to be kept */
    /* Nodes of a smaller sequence are not visited, nor the one of the oldest input: nothing that is asked for is behind
     * them. */
    uint64_t oldest;
    rapt_node_list heap; /* reached, the latest recorded on top */
    /* those taken out of the heap: from the last recorded to the first, so that a node comes after all that used its
     * outputs */
    rapt_node_list order;
    int64_t done;       /* of `order` */
    bool is_not_finite; /* a gradient that is not was given to it: the hunt is over */
    rapt_places places;
} rapt_walk;

/* Does the walk go along that edge? */
static inline bool rapt_walk_wants(const rapt_walk *walk, const rapt_edge *edge)
{
    return edge->node && edge->node->sequence >= walk->oldest;
}

/* An output to start from. A node of an op belongs to one walk at a time: where another walk (of another thread, or
 * around this one) has it, that is an error. */
bool rapt_walk_add_root(rapt_walk *walk, rapt_node *node, int output);

/* Reaches all nodes behind the roots; an error likewise. Those of ops are then in `order`, where it ends in
 * `places`. */
bool rapt_walk_reach(rapt_walk *walk);

/* Could backward go through all of them? False and an error for a graph that was freed, an op without a gradient, a
 * saved tensor that was changed in place. */
bool rapt_walk_check(const rapt_walk *walk);

/* Adds a gradient, of that output's dtype and shape, for one output of a node that was reached. False after an
 * error. */
bool rapt_walk_deliver(rapt_walk *walk, rapt_node *node, int output, rapt_tensor *gradient);

/* Calls the vjp of a node that a gradient has reached, and delivers what it gives. False after an error. */
bool rapt_walk_visit(rapt_walk *walk, rapt_node *node);

/* Visits the nodes in order. Gradients of leaves and of requested outputs are then in their places. */
bool rapt_walk_run(rapt_walk *walk);

/* At the end of a walk of a graph that goes across processes: whether it went well on all of them. A walk that failed
 * goes to whom it would have met next; one inside another goes to nobody else, and ends with that. failed_meetings:
 * rapt_failed_meetings when it began. others_of_roots: who wait for the nodes that it began with, or NULL. */
bool rapt_walk_agree(const rapt_walk *walk, int64_t failed_meetings, void *others_of_roots, bool good);

/* Does this thread visit a node at this moment? */
bool rapt_walk_is_under_way(void);

/* Gives up what the walk holds and claims. */
void rapt_walk_end(rapt_walk *walk);

#endif
