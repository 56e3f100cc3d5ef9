/* What a batch loader is inside: the data, the plan of an epoch, and the thread that makes batches ahead. */
#ifndef RAPT_OPTIM_LOADER_H
#define RAPT_OPTIM_LOADER_H

#include <rapt/loader.h>

/* The order of an epoch's items and where its batches end. */
typedef struct rapt_loader_plan {
    int64_t *order, *ends; /* (items) each */
    int64_t batches;
    int64_t items; /* in those batches */
} rapt_loader_plan;

/* A batch on its way to the caller. */
typedef struct rapt_made_batch {
    rapt_batch batch;
    rapt_error_code code; /* of making it */
    char error[512];
    char op[64];
} rapt_made_batch;

typedef struct rapt_prefetch rapt_prefetch;

struct rapt_loader {
    rapt_loader_config config;
    rapt_column *columns; /* with shares in their tensors, which are contiguous */
    int64_t items;
    int64_t *lengths; /* NULL: not known */
    rapt_loader_plan plan;
    bool is_planned; /* the plan is that of the state's epoch */
    rapt_loader_state state;
    rapt_made_batch present; /* the caller's, until the next call */
    rapt_prefetch *prefetch; /* NULL: none */
};

/* False and an error when the state cannot be one of this loader. */
bool rapt_loader_check_state(const char *op, const rapt_loader *loader, const rapt_loader_state *state);

/* Takes over columns, after checks, and lengths; false after an error. */
bool rapt_loader_take_columns(rapt_loader *loader);

/* A rapt_batch_function for columns; context is the loader. */
bool rapt_loader_make_columns(void *context, rapt_batch *batch);

/* Makes the plan of the epoch from the random state. False after an error. */
bool rapt_loader_plan_epoch(rapt_loader *loader);

/* Makes the batch of the plan that begins at that item, with shares in its tensors; a failure is in made->code. */
void rapt_loader_make(rapt_loader *loader, int64_t epoch, int64_t first, rapt_made_batch *made);

/* Gives the shares back. */
void rapt_loader_drop(rapt_made_batch *made);

/* The thread: NULL after an error. */
rapt_prefetch *rapt_prefetch_new(rapt_loader *loader, int count);
void rapt_prefetch_free(rapt_prefetch *prefetch);

/* False in a forked child, which threads do not come into. */
bool rapt_prefetch_is_here(const rapt_prefetch *prefetch);

/* Has the thread make the batches of the plan from that item on, until one fails. */
void rapt_prefetch_start(rapt_prefetch *prefetch, int64_t epoch, int64_t first);

/* Gives them one by one. That item is the next one, at which the thread starts where it rests. */
rapt_made_batch rapt_prefetch_take(rapt_prefetch *prefetch, int64_t epoch, int64_t first);

/* Waits until the thread rests, and drops what it made; the plan may change then. */
void rapt_prefetch_stop(rapt_prefetch *prefetch);

#endif
