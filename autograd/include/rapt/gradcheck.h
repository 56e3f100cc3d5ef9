/* Is a gradient right? Compares the analytic derivative with central differences of fourth order, in float64. */
#ifndef RAPT_GRADCHECK_H
#define RAPT_GRADCHECK_H

#include <rapt/graph.h>

RAPT_BEGIN_DECLS

/* The function under test: the inputs to one tensor, made of ops. It must compute the same for the same inputs; at
 * each call it finds the random generator in one state, so that dropout in training is checked too. */
typedef rapt_tensor *rapt_gradcheck_function(rapt_tensor *const *inputs, void *context);

/* How it is checked; all zeros are the defaults. */
typedef struct rapt_gradcheck_options {
    void *context;             /* handed to the function */
    double step;               /* of the differences; 0 is 1e-4, times the element's size where that is over 1 */
    double relative_tolerance; /* 0 is 1e-6 */
    double absolute_tolerance; /* for derivatives near 0; 0 is 1e-9 */
    bool second_order;         /* check the gradient of the gradient instead */
    bool random_projection;    /* check one random direction of the Jacobian instead of all of it: four evaluations */
    uint64_t seed;             /* of the projection and of the gradient that second order starts from */
    const char *const *names;  /* of the inputs, for the message; NULL: "input 0" and so on */
} rapt_gradcheck_options;

/* What was found: how many derivatives were compared, and the worst of them. */
typedef struct rapt_gradcheck_result {
    bool passed;
    int64_t checked;    /* derivatives that were compared */
    double worst_error; /* the largest |analytic − numeric| seen, as a part of what is allowed there: above 1 fails */
    int input;          /* where that is: which input (−1: a projection, over all of them), */
    int64_t index;      /* which element of it, */
    int64_t output;     /* which element of the output (−1: all of them, in a projection or from mixed gradients), */
    double analytic;    /* and the two values */
    double numeric;
    double tolerance;   /* |analytic − numeric| allowed there */
    char message[1024]; /* all of it in words, and whether a kink or the end of a domain is near; "" when passed */
} rapt_gradcheck_result;

/* Checks d function / d input for every input that is a leaf requiring a gradient (which must be float64, not have
 * elements that share memory, and not lie in memory that may only be read). For second order the gradient that backward
 * starts from is one more input, after them: the message's "starting gradient". Each derivative is that of one element
 * of the output, where backward starts from 1; where all are right, it starts from gradients of mixed sign and size
 * too, of which it must be a linear function (not counted among the derivatives checked). First order looks whether the
 * gradient that backward starts from is part of the graph too: a vjp that is not made of recorded ops, or saves what
 * has lost its own derivative, makes the check fail, unless its op says no_second_gradient; so does a definition of
 * another function than forward's, and a vjp that gives something else where the gradient has other strides, or where
 * it may work in place (rapt_call_last_gradient and its like): in a graph of the function that is given up, with
 * gradients that nobody else holds. The inputs are changed while it runs and are as before when it returns. options may
 * be NULL. An error inside the function makes the check fail and stands as rapt_error(), unless one stood before, which
 * changes nothing else. name appears in the message. */
RAPT_API rapt_gradcheck_result rapt_gradcheck(const char *name, rapt_gradcheck_function *function, int count,
                                              rapt_tensor *const *inputs, const rapt_gradcheck_options *options);

RAPT_END_DECLS

#endif
