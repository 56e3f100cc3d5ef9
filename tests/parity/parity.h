/* The cases of the fixtures beside this file, made of rapt's layers: PyTorch's inputs and weights in, outputs and
 * gradients to compare with PyTorch's out. make_fixtures.py says what a fixture holds. */
#ifndef RAPT_TESTS_PARITY_H
#define RAPT_TESTS_PARITY_H

#include <rapt.h>

typedef struct parity_named {
    const char *name;
    rapt_tensor *tensor;
} parity_named;

/* One run of one case. */
typedef struct parity {
    const rapt_archive *fixture;
    const char *name;
    rapt_dtype dtype;
    const char *weights; /* the module gets new random weights, not the fixture's, and is saved there before it runs */
    int option;          /* of the case */
    rapt_module *module; /* the module of the case, or NULL; freed by parity_end */
    int input_count, output_count;
    parity_named inputs[8], outputs[16];
} parity;

/* One row of a table of cases; the last has no name. */
typedef struct parity_case {
    const char *name;
    void (*run)(parity *p);
    int option; /* what the function makes of it: a reduction, flags */
} parity_case;

/* Rows: a case of the function's name, and one of another name with an option. */
#define PARITY(function)                                                                                               \
    (parity_case)                                                                                                      \
    {                                                                                                                  \
        .name = #function, .run = (function)                                                                           \
    }
#define PARITY_AS(name_, function, option_)                                                                            \
    (parity_case)                                                                                                      \
    {                                                                                                                  \
        .name = #name_, .run = (function), .option = (option_)                                                         \
    }

/* The fixtures, and a table for each. */
#define PARITY_FIXTURES(X)                                                                                             \
    X(layers)                                                                                                          \
    X(recurrent)                                                                                                       \
    X(losses)                                                                                                          \
    X(attention)                                                                                                       \
    X(scoring)                                                                                                         \
    X(multi_head)                                                                                                      \
    X(positions)                                                                                                       \
    X(transformer)                                                                                                     \
    X(seq2seq)                                                                                                         \
    X(gpt)                                                                                                             \
    X(optimizers)
#define PARITY_DECLARE(fixture) extern const parity_case parity_##fixture[];
PARITY_FIXTURES(PARITY_DECLARE)

/* For the functions of the cases. The input of that name: a floating one in the dtype of the run, and a leaf if PyTorch
 * gave it a gradient. NULL and an error when the fixture has none. */
rapt_tensor *parity_input(parity *p, const char *name);

/* Loads the weights by name into the module, which the run owns from now on, and returns it; NULL after an error. */
void *parity_module(parity *p, void *module);

/* Hands in an output; NULL makes the run fail. */
void parity_output(parity *p, const char *name, rapt_tensor *output);

/* Runs the case in the caller's scope: forward, then backward from the seeds of the fixture. False after an error. */
bool parity_run(parity *p, const parity_case *of);

/* Calls the visitor for each output and gradient that the fixture or the run has, under its name in the fixture, with
 * the deviation: the largest difference as a part of the largest absolute value that PyTorch has in this tensor. It is
 * infinite when only one side has the tensor, or in another shape or dtype, or something in it is not finite. */
typedef void parity_visitor(const parity *p, const char *name, double deviation, void *context);
void parity_compare(const parity *p, parity_visitor *visitor, void *context);

void parity_end(parity *p);

#endif
