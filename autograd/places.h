/* What one walk knows of leaves, which walks of other threads share, and of the outputs that its caller asked for. */
#ifndef RAPT_AUTOGRAD_PLACES_H
#define RAPT_AUTOGRAD_PLACES_H

#include "node.h"

/* One output of a node, and its gradient in this walk. */
typedef struct rapt_place {
    rapt_node *node;
    int output;
    int input;             /* which input of rapt_gradients it is first, −1: none */
    rapt_tensor *gradient; /* of a leaf the sum so far; of an op's output what arrived, once it was visited */
} rapt_place;

typedef struct rapt_places {
    rapt_place *list;
    int32_t *slots; /* a hash table of indices into the list, −1 where free */
    int32_t count, slot_count;
    size_t list_bytes, slots_bytes; /* the allocator's capacities */
} rapt_places;

/* The index of that output's place, −1 when it has none. */
int32_t rapt_places_find(const rapt_places *places, const rapt_node *node, int output);

/* The same with a place made where there is none; *is_new tells. −1 after an error (no memory). */
int32_t rapt_places_add(rapt_places *places, rapt_node *node, int output, bool *is_new);

/* Where the gradient of that output, which was reached, is summed up while a walk goes on. */
rapt_tensor **rapt_places_sum(const rapt_places *places, rapt_node *node, int output);

/* Adds the gradients to those of the leaves: to all of them, or after an error (false, no memory) to none. */
bool rapt_leaves_add(rapt_places *places, bool create_graph);

/* Gives up all places and their gradients. */
void rapt_places_end(rapt_places *places);

#endif
