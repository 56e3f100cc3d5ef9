/* How fused attention is cut into tasks: by the shape of its scores alone, never by the number of threads. */
#ifndef RAPT_TENSOR_ATTENTION_TASKS_H
#define RAPT_TENSOR_ATTENTION_TASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "tensor/parallel.h"
#include "tensor/raw_mask.h"

/* A task's share: rows [first_row, last_row) of one group of an item, and some keys. A group are the heads that read
 * the same keys, one after the other, query by query. */
typedef struct rapt_attention_piece {
    int64_t item, group, first_row, last_row, first_key, last_key;
    const struct rapt_attention_piece *next; /* what the thread is likely to do next, to be prefetched; or NULL */
} rapt_attention_piece;

typedef struct rapt_attention_tasks {
    int64_t items, groups;          /* groups: of an item */
    int64_t first_row, rows, chunk; /* of a group; chunk: rows of a task */
    int64_t first_key, keys;        /* keys: how many from the first on */
    int64_t part_keys;              /* of a task */
    int64_t chunks, parts, count;   /* of the rows of a group, of its keys, and all tasks */
} rapt_attention_tasks;

/* One task for each group. */
rapt_attention_tasks rapt_attention_tasks_of(int64_t items, int64_t groups, int64_t rows, int64_t keys);

/* A task for each `chunk` rows of a group. */
void rapt_attention_cut_rows(rapt_attention_tasks *tasks, int64_t chunk);

/* Fewer tasks than `enough` are cut further along the keys: into parts of whole steps, of least_keys each or more. */
void rapt_attention_cut_keys(rapt_attention_tasks *tasks, int64_t enough, int64_t least_keys, int64_t step);

/* The piece of a task. Chunks come first, the last one before the others, because of causal ones it is the longest;
 * then parts, groups, items. */
rapt_attention_piece rapt_attention_piece_of(const rapt_attention_tasks *tasks, int64_t task);

/* The piece of a task out of [first, last), and in *next a guess at what the thread does after it: other threads are as
 * fast, and took the tasks in between. */
rapt_attention_piece rapt_attention_piece_before(const rapt_attention_tasks *tasks, int64_t task, int64_t first,
                                                 int64_t last, rapt_attention_piece *next);

/* Tasks of a packed batch are those of the padded one, so that both give the same bits. Makes a piece of such a task
 * one of its sequence, seen as a batch of its own. repeats: the heads of a group. False when the sequence has no such
 * rows; one without any has a first piece all the same. */
bool rapt_attention_enter_sequence(const rapt_raw_place *sequence, int64_t repeats, rapt_attention_piece *piece);

/* The mask of such a batch of one sequence. bytes: of an element of the biases. */
rapt_raw_mask rapt_raw_mask_of_sequence(const rapt_raw_mask *mask, int64_t sequence, int64_t bytes);

/* The mask of some of a batch's queries, `first` of them left out, seen as a batch of their own: the rest of them lie
 * between two of its heads in dense tensors. Not of packed sequences, nor where a rule is asked. */
rapt_raw_mask rapt_raw_mask_of_queries(const rapt_raw_mask *mask, int64_t first, int64_t count, int64_t bytes);

/* Which of the parts has that piece? */
static inline int64_t rapt_attention_part_of(const rapt_attention_tasks *tasks, const rapt_attention_piece *piece)
{
    return tasks->parts > 1 ? (piece->first_key - tasks->first_key) / tasks->part_keys : 0;
}

#endif
