/* What one walk knows of leaves, which walks of other threads share, and of the outputs that its caller asked for. */
#ifndef RAPT_AUTOGRAD_PLACES_H
#define RAPT_AUTOGRAD_PLACES_H

#include "node.h"
#include "tensor/pointer_set.h"

/* One output of a node, and its gradient in this walk. */
typedef struct rapt_place {
    rapt_node *node;
    int output;
    int input;             /* which input of rapt_gradients it is first, −1: none */
    int64_t awaited;       /* rapt_backward_to: edges to it whose nodes are still to be visited */
    rapt_tensor *gradient; /* of a leaf the sum so far; of an op's output what arrived, once it was visited */
    rapt_tensor *replaced; /* what the gradient of a leaf was before it was joined to an older one, NULL: the same */
    bool grows;            /* the older one does, by the gradient, once nothing can fail any more */
} rapt_place;

typedef struct rapt_places {
    rapt_pointer_set outputs; /* of nodes, numbered as in the list */
    rapt_place *list;
    int64_t count;
    size_t bytes; /* the allocator's capacity */
    /* The walk stops at ops' nodes up to that sequence, as it does at leaves: they may be another walk's. */
    uint64_t outside;
} rapt_places;

/* Is that a node which the walk goes through? Others have places where it ends. */
static inline bool rapt_enters_node(const rapt_places *places, const rapt_node *node)
{
    return node->op && node->sequence > places->outside;
}

/* The index of that output's place, −1 when it has none. */
int64_t rapt_places_find(const rapt_places *places, const rapt_node *node, int output);

/* The same with a place made where there is none; *is_new tells. −1 after an error (no memory). */
int64_t rapt_places_add(rapt_places *places, rapt_node *node, int output, bool *is_new);

/* Where the gradient of that output, which was reached, is summed up while a walk goes on. */
static inline rapt_tensor **rapt_places_sum(const rapt_places *places, rapt_node *node, int output)
{
    return rapt_enters_node(places, node) ? &node->outputs[output].gradient
                                          : &places->list[rapt_places_find(places, node, output)].gradient;
}

/* Adds the gradients to those of the leaves: to all of them, or after an error (false, no memory) to none. Whether all
 * goes well is known, and told to `agree`, before the first is changed, and what that returns counts. */
bool rapt_leaves_add(rapt_places *places, bool create_graph, bool (*agree)(void *context, bool good), void *context);

/* Gives up all places and their gradients. */
void rapt_places_end(rapt_places *places);

#endif
