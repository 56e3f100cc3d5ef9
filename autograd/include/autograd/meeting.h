/* Ops that go across processes: the others wait for this one, in backward too. So all of them meet at the end of a
 * backward pass through such ops, and one that fails on its way goes there at once: the others meet it there, or in the
 * next of these ops, and what failed on one is an error on all. */
#ifndef RAPT_AUTOGRAD_MEETING_H
#define RAPT_AUTOGRAD_MEETING_H

#include "tensor/core.h"
#include "tensor/thread.h"

/* Are all well? Called by all of the processes; false after an error, on all of them. */
typedef bool rapt_others_agree(void *others, const char *op, bool good);

/* The result of a recorded op, if it was, is of such an op, whose processes meet by that function; there is one. */
void rapt_result_meets(rapt_tensor *result, rapt_others_agree *meet, void *others);

/* One process failed where the others will come to these, and no meeting has failed since there were so many: it tells
 * them. others NULL: nobody waits. */
void rapt_tell_others(void *others, const char *op, int64_t failed_meetings);

/* How many meetings of this thread ended with an error. Who meets counts them. */
extern RAPT_THREAD_LOCAL int64_t rapt_failed_meetings;

#endif
