/* Memory for the time of one op: pieces for the tasks of a rapt_parallel, one for each thread, taken before it
 * starts, so that no task can fail; and lists. */
#ifndef RAPT_TENSOR_SCRATCH_H
#define RAPT_TENSOR_SCRATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rapt_scratch {
    char *block;
    size_t bytes, capacity; /* of a piece; of the block */
    int64_t count;          /* of pieces */
} rapt_scratch;

/* Pieces of so many bytes for `tasks` tasks, or for all threads if those are fewer; false and an error (under the op's
 * name) when there is no memory. */
bool rapt_scratch_take(const char *op, rapt_scratch *scratch, int64_t tasks, size_t bytes);
void rapt_scratch_give(rapt_scratch *scratch);

/* In a task: a piece that no other task has, on a cache line of its own; its contents are undefined. */
void *rapt_scratch_borrow(const rapt_scratch *scratch);
void rapt_scratch_return(const rapt_scratch *scratch, void *piece);

/* For the time of one call: zeroed memory for so many items, which the innermost scope gives back. NULL after an
 * error. */
void *rapt_scratch_list(const char *op, int64_t count, size_t item_bytes);

#endif
