/* A batch loader: the items of a data set in batches, epoch after epoch; shuffled, bucketed by length, padded or
 * packed, made ahead on a thread, resumed to the item. */
#ifndef RAPT_LOADER_H
#define RAPT_LOADER_H

#include <rapt/tensor.h>

RAPT_BEGIN_DECLS

/* What gives the batches of a data set. */
typedef struct rapt_loader rapt_loader;

/* An array of the data set, of any dtype. Without starts, values (items, …): a batch has the rows of its items. With
 * starts, int64 (items + 1) as rapt_packing_starts gives them, values (rows, …) are sequences behind one another; a
 * batch has those of its items padded to the longest, and then int64 (count) their lengths; or packed, and then int64
 * (count + 1) their starts. */
typedef struct rapt_column {
    rapt_tensor *values;
    rapt_tensor *starts; /* NULL: none */
    double padding;      /* what stands behind a sequence; a number of the dtype */
    bool packed;         /* needs starts */
} rapt_column;

/* The most tensors that a batch has. */
#define RAPT_BATCH_TENSORS 16

/* Items and tensors are the loader's, until its next call; rapt_retain keeps a tensor longer. */
typedef struct rapt_batch {
    int64_t epoch;        /* from 0 on */
    int64_t first;        /* how many items of the epoch came before */
    int64_t count;        /* of items, 1 or more */
    const int64_t *items; /* (count): their numbers, from 0 on */
    rapt_tensor *tensors[RAPT_BATCH_TENSORS];
} rapt_batch;

/* Makes the tensors of batch->items, into batch->tensors from 0 on, in a scope of the loader's. False after an error,
 * which rapt_loader_next then gives, as it does with an error that is left behind where none stood before, though true
 * was given. What else it changes of the batch is put back. Its random numbers begin anew for each batch: the seed,
 * epoch and first item decide them, with and without prefetch and after resuming, and the caller's generator stays
 * where it was. With prefetch it runs on another thread, where ops record whatever the caller's RAPT_NO_GRADIENT says:
 * what it reads must not change, and an error handler hears of its error from rapt_loader_next; and as several batches
 * are there at once, each has tensors of its own, not one that is filled again and again. */
typedef bool rapt_batch_function(void *context, rapt_batch *batch);

/* The data, and how batches are made of it. */
typedef struct rapt_loader_config {
    const rapt_column *columns; /* column_count of them, of as many items; of values shares are taken, no copies */
    int column_count;
    int64_t items;             /* instead of columns: how many there are, */
    rapt_batch_function *make; /* and what makes batches of them */
    void *context;
    int64_t batch_size; /* items of a batch; 0: as many as most_tokens allows */
    /* The most that a batch has of them, padding included (its items times the longest); an item that is longer is a
     * batch of its own; 0: any */
    int64_t most_tokens;
    const int64_t *lengths; /* (items), for buckets and most_tokens; copied. NULL: of the first column with starts */
    int64_t bucket;         /* so many items, one after another in the epoch's order, are sorted by length; 0: none */
    bool packed;            /* most_tokens counts no padding; of columns one must be packed */
    bool shuffle;           /* items, and the batches of sorted ones; an epoch's order has nothing of another's */
    bool drop_last;         /* leaves out a last batch of fewer items than batch_size */
    /* Of the orders, and of random numbers that make draws; 0: they come from the calling thread's generator as epochs
     * begin. Epoch 0 draws what follows rapt_seed of the same seed: choose another. */
    uint64_t seed;
    /* So many batches are made ahead, on a thread of the loader's. The batches are the same; in a forked child, too,
     * where they are made when they are asked for. */
    int prefetch;
} rapt_loader_config;

/* NULL after an error. Free it with rapt_loader_free. One thread may use it at a time. */
RAPT_API rapt_loader *rapt_loader_new(const rapt_loader_config *config);
RAPT_API void rapt_loader_free(rapt_loader *loader);

/* The next batch. False at the end of an epoch, from where the next call goes on with the next; and after an error
 * (rapt_error is set), from where it tries once more. */
RAPT_API bool rapt_loader_next(rapt_loader *loader, rapt_batch *batch);

/* Batches of a whole epoch; of one that is under way, of that one. With most_tokens it begins the epoch, where none is
 * under way, as rapt_loader_next would, which without a seed draws from the thread's generator. −1 and an error for
 * NULL, no memory, or a state at an item where no batch begins. */
RAPT_API int64_t rapt_loader_count_batches(rapt_loader *loader);

/* Where a loader stands: to be kept (checkpoints do) and set again, in a loader of the same data and options. Then the
 * same batches follow, and the same ends of epochs. */
typedef struct rapt_loader_state {
    int64_t epoch, next; /* the item that comes next in that epoch's order; behind the last one its end is to be told */
    rapt_random_state random_state; /* that order, and make's, come from it; 2⁶³ more of offset: no batch was given */
} rapt_loader_state;
RAPT_API bool rapt_loader_get_state(const rapt_loader *loader, rapt_loader_state *state);

/* False after an error: a state that cannot be one of this loader. */
RAPT_API bool rapt_loader_set_state(rapt_loader *loader, rapt_loader_state state);

RAPT_END_DECLS

#endif
