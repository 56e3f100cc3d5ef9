/* One training in one process, or by all that mpirun has started (ranks): each goes backward from its part of a batch,
 * and all step with the gradients of the whole. The first of them speaks, and writes the files. */
#ifndef EXAMPLES_RANKS_H
#define EXAMPLES_RANKS_H

#include <rapt.h>

/* Joins the ranks, where mpirun has started this process or a number of parts is given (0: none). From then on only
 * the first rank's standard output is heard, and an error of any names it and ends all. False, after a sentence of the
 * program, for parts in a build without MPI. */
bool ranks_begin(const char *program, int64_t parts);

/* Whether this is the first rank, or the only process. */
bool ranks_is_first(void);

/* Shares the model, which has the first rank's values then. The note must be the same on all ranks. */
bool ranks_share(rapt_module *module, const char *note);

/* The loss of the items [first, last) of a batch, and what it is the mean of. NULL after an error. */
typedef rapt_tensor *ranks_loss(void *context, int64_t first, int64_t last, double *weight);

/* Goes backward from the loss of so many items, which *loss gets, for the step of that number. False after an error. */
bool ranks_backward(int64_t step, int64_t items, ranks_loss *loss_of, void *context, double *loss);

/* interrupt_signal of any rank, for all. */
int ranks_signal(void);

/* rapt_checkpoint_save and rapt_checkpoint_load, by all ranks; and whether saving can begin, false after a sentence. */
bool ranks_can_save(const char *program, const char *path);
bool ranks_save(const char *path, const rapt_checkpoint *checkpoint);
bool ranks_load(const char *path, rapt_checkpoint *checkpoint);

/* When all is done, and the module still there. A process that fails before just ends, and with it the others. */
void ranks_end(void);

#endif
