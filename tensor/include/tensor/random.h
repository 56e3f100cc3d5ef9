/* Drawing from the calling thread's generator: an op reserves a range of blocks and may make its numbers twice. */
#ifndef RAPT_TENSOR_RANDOM_H
#define RAPT_TENSOR_RANDOM_H

#include <rapt/memory.h>
#include <rapt/random.h>

#include "tensor/thread.h"

/* Where this thread's generator stands. */
extern RAPT_THREAD_LOCAL rapt_random_state rapt_generator;

/* Takes the blocks for that many elements, four to a block, and returns the state in which they begin. Element i
 * belongs to word i % 4 of block offset + i / 4, which is how the kernels `dropout` and `bernoulli` read it. */
rapt_random_state rapt_random_reserve(int64_t elements);

/* The same for elements of 64 bits, two to a block. */
rapt_random_state rapt_random_reserve_pairs(int64_t elements);

/* The beginning of another sequence of random numbers, which the state and the number, below 2⁶³, alone decide; no
 * block of the state's own sequence is used. */
rapt_random_state rapt_random_branch(rapt_random_state state, uint64_t number);

/* `RAPT_UNDO_DRAWS;` at the top of a block: if something fails before it is left, and nobody has cleared the error, the
 * thread's generator is as it was. */
typedef struct rapt_draws {
    rapt_random_state before;
    uint64_t failures;
} rapt_draws;

rapt_draws rapt_draws_begin(void);
void rapt_draws_end(const rapt_draws *draws);

#define RAPT_UNDO_DRAWS                                                                                                \
    rapt_draws RAPT_JOIN(rapt_draws_, __COUNTER__) __attribute__((cleanup(rapt_draws_end), unused)) = rapt_draws_begin()

/* out = uniform(i) < keep ? in · scale : 0 over `count` dense elements of a floating dtype, on all threads. The same
 * state gives the same mask, so backward repeats forward's. */
void rapt_random_dropout(rapt_random_state state, rapt_dtype dtype, int64_t count, void *out, const void *in,
                         double keep, double scale);

#endif
