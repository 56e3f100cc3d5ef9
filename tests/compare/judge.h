/* The verdict on what runs gave. */
#ifndef RAPT_TESTS_COMPARE_JUDGE_H
#define RAPT_TESTS_COMPARE_JUDGE_H

#include "compare.h"

/* Compares with what was expected; NULL counts as zeros. */
void judge(run *r, const record *expected, const rapt_tensor *got);

/* What became of a program's gradients. */
typedef enum outcome { agreed, wrong, refused } outcome; /* agreed: all was judged; refused: changed in place */

/* rapt_backward_from and rapt_gradient; rapt_gradients; and rapt_gradients of gradients that have a graph. */
outcome differentiate_into_leaves(run *r);
outcome differentiate(run *r);
outcome differentiate_twice(run *r);

int64_t judge_reports(void);  /* differences so far */
int64_t judge_compared(void); /* tensors that agreed */
/* Was a value of that op compared, and gradients of both orders? */
bool judge_saw(const char *name, bool derivatives);
void judge_print(void); /* a table of the ops */

#endif
