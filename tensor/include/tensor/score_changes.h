/* Changes of scores as attention's loops carry them out, tile by tile, and the gradients of what they captured. */
#ifndef RAPT_TENSOR_SCORE_CHANGES_H
#define RAPT_TENSOR_SCORE_CHANGES_H

#include <stdbool.h>
#include <stddef.h>

#include <rapt/score_tile.h>

enum { rapt_most_changes = 4, rapt_most_captured = 6, rapt_change_options = 64 };

/* The code of one change. */
typedef struct rapt_score_change {
    const char *name;
    rapt_score_by_ops *by_ops; /* the plain way, or NULL */
    rapt_score_functions functions;
    bool reads_old, reads_new; /* does the derivative read the scores before it, or after? */
    int captured;              /* how many tensors */
    unsigned char options[rapt_change_options] __attribute__((aligned(16)));
} rapt_score_change;

/* One after the other. */
typedef struct rapt_score_changes {
    int count, captured; /* captured: of all */
    rapt_score_change each[rapt_most_changes];
} rapt_score_changes;

/* A captured tensor (items or 1, heads or 1, …), dense. */
typedef struct rapt_raw_captured {
    const char *data;
    int64_t items, heads, count, bytes; /* count: elements of an item and head; bytes: of one */
    void *gradient;                     /* of the scores' type, zeros before; NULL: not wanted */
    int64_t place;                      /* of its gradient among what a head gathers */
} rapt_raw_captured;

/* What the loops are told. The captured tensors are those of the first change, then of the second, … */
typedef struct rapt_raw_changes {
    const rapt_score_changes *changes;
    rapt_dtype dtype; /* of the scores */
    rapt_raw_captured captured[rapt_most_captured];
    int64_t gathered; /* doubles that a head gathers; 0: no gradient is wanted */
} rapt_raw_changes;

/* Tells each captured tensor the place of its gradient. */
void rapt_lay_out_gradients(rapt_raw_changes *changes);

/* How many copies of a tile differentiation needs: old ones and new ones of each change. */
static inline int rapt_kept_scores(const rapt_raw_changes *changes)
{
    return changes ? changes->changes->count + 1 : 0;
}

/* Changes the scores of a tile of one head, of which item, head, rows, columns, queries, first_key, stride and scores
 * are set. kept, if not NULL: rapt_kept_scores times so many elements, each laid out as the scores. */
void rapt_change_scores(const rapt_raw_changes *changes, const rapt_score_tile *tile, void *kept, int64_t elements);

/* The way back of such a tile, from what was kept: its gradient in place. gathered: the head's doubles, NULL if no
 * gradient of what was captured is wanted. */
void rapt_differentiate_scores(const rapt_raw_changes *changes, const rapt_score_tile *tile, const void *kept,
                               int64_t elements, double *gathered);

/* The gradients of captured tensors: each task gathers its own for each of its heads, and they are summed in the order
 * of the tasks, so that the number of threads changes no bit. */
typedef struct rapt_gathering {
    const rapt_raw_changes *changes;
    double *of_tasks, *sums; /* of_tasks: (tasks, heads, gathered); NULL: no gradient is wanted */
    int64_t tasks, heads;    /* heads: of a task, those that follow its first one */
    size_t of_tasks_capacity, sums_capacity;
} rapt_gathering;

/* Zeros; changes may be NULL. False and an error (under the op's name) when there is no memory. */
bool rapt_gathering_begin(const char *op, const rapt_raw_changes *changes, int64_t tasks, int64_t heads,
                          rapt_gathering *g);

/* Where a task gathers for its first head; NULL: no gradient is wanted. */
double *rapt_gathering_of_task(const rapt_gathering *g, int64_t task);

/* After the tasks, for each of them in their order: adds what it gathered for an item, from head `first` on, and makes
 * it zeros again. */
void rapt_gathering_add(const rapt_gathering *g, int64_t task, int64_t item, int64_t first);

/* Adds to the gradients, unless something failed, and gives the memory back. */
void rapt_gathering_end(rapt_gathering *g, bool adds);

/* Whole scores (batch, heads, queries, keys), dense, changed in place; and the way back of a gradient, in place, from
 * the scores before and after (where read; of one change only). Query i is at place i + offset, or where places
 * say, int64 (queries), from one item's to the next one's place_item elements on. False and an error when
 * there is no memory. */
typedef struct rapt_whole_scores {
    int64_t batch, heads, queries, keys, offset;
    const int64_t *places; /* NULL: at i + offset */
    int64_t place_item;
    void *scores, *gradient;
    const void *old_scores, *new_scores;
} rapt_whole_scores;

bool rapt_change_whole_scores(const char *op, const rapt_raw_changes *changes, const rapt_whole_scores *whole);
bool rapt_differentiate_whole_scores(const char *op, const rapt_raw_changes *changes, const rapt_whole_scores *whole);

#endif
