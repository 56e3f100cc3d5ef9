/* Attention across processes: each has some rows of a sequence, and keys and values go round. librapt-mpi makes rings
 * of MPI's ranks; who has another way to send bytes fills in the functions. */
#ifndef RAPT_RING_H
#define RAPT_RING_H

#include <rapt/tensor.h>

RAPT_BEGIN_DECLS

/* What goes round at the same time: keys and values one way, and in backward their gradients behind them. */
typedef enum rapt_ring_channel { RAPT_RING_KEYS, RAPT_RING_GRADIENTS, RAPT_RING_CHANNELS } rapt_ring_channel;

/* Processes that share sequences of keys and values of one length. Such a sequence is cut into 2 · ranks neighbouring
 * blocks, whose sizes differ by 1 at most, and rank r has the blocks r, from the front, and 2 · ranks − 1 − r, from the
 * back: so that under a causal mask all have as many pairs of a query and a key. The functions are called by all ranks
 * in one order, and give false after an error. Threads of one process cannot be ranks: the last meeting of a backward
 * pass comes while the process's leaves wait for it. */
typedef struct rapt_ring rapt_ring;
struct rapt_ring {
    int rank, ranks;
    int64_t length;   /* of a sequence, on all ranks together; may be set anew between two calls */
    int64_t meetings; /* how often `agree` was called by attention and models, */
    int64_t failures; /* and how often there was an error then */
    /* Are all ranks well, and is the text the same on all? If not it is an error on all ranks, which names the first
     * one at fault. text NULL: there is none. It is called at the start and at the end of attention's forward and
     * backward, at the end of a model's forward, at the end of a backward pass that came through attention, and by a
     * rank that fails before one of these. */
    bool (*agree)(rapt_ring *ring, const char *op, bool good, const char *text);
    /* Begins to send `count` bytes to rank + 1, or to receive as many as it sends from rank − 1, modulo ranks. A
     * channel has one of each at a time. */
    bool (*send)(rapt_ring *ring, rapt_ring_channel channel, const void *bytes, int64_t count);
    bool (*receive)(rapt_ring *ring, rapt_ring_channel channel, void *bytes, int64_t count);
    /* Waits for both, so far as they were begun. */
    bool (*wait)(rapt_ring *ring, rapt_ring_channel channel);
    /* Lets what was begun go on; called now and then by a rank that computes. NULL: it goes on by itself. */
    void (*advance)(rapt_ring *ring);
};

/* How many rows of each sequence this rank has; 0 and an error for NULL. */
RAPT_API int64_t rapt_ring_count(const rapt_ring *ring);

/* int64 (rows): where in the sequence they stand, rising. So rapt_index_select(sequence, 1, rapt_ring_places(ring)) are
 * this rank's rows of a whole sequence (B, length, …). */
RAPT_API rapt_tensor *rapt_ring_places(const rapt_ring *ring);

RAPT_END_DECLS

#endif
