/* A set of pointers, numbered in the order in which they came: what a walk has met already. */
#ifndef RAPT_TENSOR_POINTER_SET_H
#define RAPT_TENSOR_POINTER_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A zeroed struct is empty. */
typedef struct rapt_pointer_set {
    const void **pointers; /* `count` of them, in a block with room for `capacity`, */
    int64_t *slots;        /* and behind them a hash table of their numbers, −1 where it is free */
    int64_t count, capacity;
    size_t block_capacity;
} rapt_pointer_set;

/* The pointer's number, or −1. */
int64_t rapt_pointer_set_find(const rapt_pointer_set *set, const void *pointer);

typedef enum rapt_set_result { RAPT_SET_NEW, RAPT_SET_KNOWN, RAPT_SET_NO_MEMORY } rapt_set_result;

/* Without memory the set stays as it was, and no error is recorded. */
rapt_set_result rapt_pointer_set_add(rapt_pointer_set *set, const void *pointer);

void rapt_pointer_set_free(rapt_pointer_set *set);

#endif
