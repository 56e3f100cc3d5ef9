/* Dropout with a mask that is made anew. */
#ifndef RAPT_OPS_DROPOUT_H
#define RAPT_OPS_DROPOUT_H

#include <rapt/ops.h>
#include <rapt/random.h>

typedef struct rapt_drop_options {
    double probability;
    rapt_random_state state; /* that the mask is drawn from */
} rapt_drop_options;

/* rapt_drop with that mask, which takes nothing from the generator. */
rapt_tensor *rapt_drop_again(rapt_tensor *x, const rapt_drop_options *options);

/* Is there a mask? Else all elements are kept, or none. */
bool rapt_drop_draws(const rapt_drop_options *options);

#endif
