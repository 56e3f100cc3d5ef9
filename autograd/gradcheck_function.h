/* The function whose Jacobian gradcheck computes. */
#ifndef RAPT_AUTOGRAD_GRADCHECK_FUNCTION_H
#define RAPT_AUTOGRAD_GRADCHECK_FUNCTION_H

#include <rapt/gradcheck.h>

/* The function whose Jacobian is checked. First order: the user's. Second order: the gradients of <function,
 * cotangent>. */
typedef struct rapt_checker {
    const char *name;
    rapt_gradcheck_function *function;
    rapt_tensor *const *inputs;
    int count;
    rapt_gradcheck_options options;
    rapt_tensor **variables; /* what is perturbed */
    int *which;              /* its number among the inputs */
    uint64_t *versions;      /* before it was changed */
    uint64_t *sequences;     /* of its node, while a walk is to take it for younger */
    int variable_count;
    int differentiated; /* of the variables, those that second order takes the gradient of: all but the cotangent */
    rapt_tensor **outputs;
    int output_count;
    rapt_tensor **gradients; /* of the variables, in one walk, */
    rapt_tensor **others;    /* and in another */
    int64_t width, height;   /* elements of all variables and of all outputs */
    rapt_gradcheck_result *result;
    int worst;    /* the variable where the result's worst error is */
    bool is_kink; /* which may be no mistake there, but a place where differences are no derivative */
} rapt_checker;

/* Finds the variables: the inputs that require a gradient. False after an error; rapt_checker_end is called anyway,
 * when they have their values again: they then count as unchanged, for graphs of before. */
bool rapt_checker_prepare(rapt_checker *c);
void rapt_checker_end(rapt_checker *c);

/* Second order starts from a random gradient, which is a variable too: backward is linear in it. */
bool rapt_checker_add_cotangent(rapt_checker *c);

/* Calls the function of the user at the present values of the variables; NULL after an error. */
rapt_tensor *rapt_checker_call(const rapt_checker *c);

/* Computes c->outputs at the present values of the variables. */
bool rapt_checker_evaluate(rapt_checker *c);

/* Is each element a number, and not infinite? */
bool rapt_checker_is_finite(rapt_tensor *tensor);

/* What messages call an input. */
const char *rapt_checker_input_name(const rapt_checker *c, int input, char text[32]);

#endif
