/* The catalogue: each op and each layer, tried in every way that its arguments allow, and the worst error of each. */
#ifndef RAPT_TESTS_CATALOGUE_H
#define RAPT_TESTS_CATALOGUE_H

#include "layers.h"

/* What is measured. Errors are relative; what each is compared with stands in tests/README.md. */
typedef enum figure { of_values, of_gradients, of_second_order, of_forward_mode, of_float32, figure_count } figure;

/* What was found of one op or layer. */
typedef struct entry {
    const char *name;
    int64_t cases; /* that there are, */
    int64_t tried; /* and that were tried: some of them where it is brief */
    int64_t failures;
    double worst[figure_count]; /* below 0: nothing was compared */
} entry;

entry entry_new(const char *name);
void entry_note(entry *e, figure what, double error);

/* Counts a failure and says what it is, on standard error. */
void entry_fail(entry *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* How an input is given: in one of the layouts of memory, or turned round by rapt_flip, which stands for steps below
 * 0, since no tensor has such strides. Repeated and turned inputs are made so inside the function that is checked. */
enum { flipped = layout_count, way_count };

enum { most_leaves = 128, fewest_cases = 40 };

/* A function at its inputs: the leaves, of one floating dtype, that it reads: inputs of the case, then parameters. */
typedef struct subject {
    op_case c;
    int way;
    const layer_row *layer; /* NULL: an op */
    rapt_module *module;
    rapt_tensor_list *parameters;
    int count;
    rapt_tensor *leaves[most_leaves];
} subject;

/* A case with that draw of numbers, in tensors of the innermost scope; freed by subject_free. */
subject subject_of_op(const op_row *row, const op_sample *sample, rapt_dtype dtype, int way, int draw);

/* The same of a layer, whose parameters are moved at random from where they start; odd draws are in evaluation. */
subject subject_of_layer(const layer_row *layer, const op_sample *sample, rapt_dtype dtype, int way, int draw);
void subject_free(subject *s);

/* Would the sample be anything new in that way, or the same as it is dense? */
bool sample_has_way(const op_sample *sample, int way);

/* The function at the values that its leaves have; the random generator is in one state at each call. */
rapt_tensor *subject_call(const subject *s);

/* What the layer's definition gives there. */
rapt_tensor *subject_define(const subject *s);

int64_t subject_width(const subject *s); /* elements of all leaves */

/* Gradients, second order and forward mode against differences, in float64: all derivatives, or along a direction. */
void check_derivatives(const subject *s, bool whole, entry *e);

/* The result, all gradients and forward mode in float32 against those in float64. */
void check_float32(const subject *single, const subject *twice, entry *e);

/* What the catalogue lists, each name once: ops, then layers; NULL after the last. */
const char *catalogue_name(int i);
const char *catalogue_kind(int i); /* "op", "layer", "scoring", "modification" or "function" */

/* All cases of what is listed there; `brief`: some of them, in seconds for everything together. */
entry catalogue_check(int i, bool brief);

/* Those of the op of that name, of all of its rows; those of a layer. */
entry catalogue_op(const char *name, bool brief);
entry catalogue_layer(const layer_row *layer, bool brief);

#endif
