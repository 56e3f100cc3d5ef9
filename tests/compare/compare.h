/* Random programs that PyTorch has run, as random_programs.py writes them, and rapt's run of them. */
#ifndef RAPT_TESTS_COMPARE_H
#define RAPT_TESTS_COMPARE_H

#include <stdio.h>

#include "../ops.h"

/* One line of a program, "KIND NAME? KEY=VALUE ...", and the numbers that follow it if it has a shape. */
typedef struct record {
    char *line;
    array numbers;
} record;

/* Records in order: "program", then "input" (a tensor) and "step" (an op or layer, which makes values of earlier ones),
 * each of which adds to the list of values; then "root", "direction", "train" and "expect". */
typedef struct program {
    record *records;
    int count, capacity;
} program;

/* Reads the next program; false at the end of the stream. Ends the process when the stream is broken. */
bool program_read(FILE *stream, program *p);
void program_free(program *p);
void program_print(const program *p);

bool record_is(const record *r, const char *kind);
/* The word after the kind, into a buffer of 64 bytes. */
const char *record_name(const record *r, char name[64]);
/* The value of a key, up to the next space; NULL when there is none. */
const char *record_text(const record *r, const char *key);
bool record_says(const record *r, const char *key, const char *text);
/* Numbers; 0 when the key is missing. */
int64_t record_integer(const record *r, const char *key);
double record_real(const record *r, const char *key);
/* A list with commas, at most `most` of it; how many there are, 0 when the key is missing. */
int record_integers(const record *r, const char *key, int64_t *to, int most);

enum { most_values = 512, most_modules = 64 };

/* One run of a program in one dtype. */
typedef struct run {
    const program *program;
    rapt_dtype dtype;
    const record *step; /* that runs now */
    rapt_tensor *values[most_values];
    int count;
    rapt_module *modules[most_modules];
    int module_count;
} run;

/* For the functions of the layers. Input i of the step, NULL where it is absent. */
rapt_tensor *step_input(const run *r, int i);
int64_t step_integer(const run *r, const char *key);
double step_real(const run *r, const char *key);
/* The mask whose lengths, seen, bias and relative_bias are the inputs from `first` on; the keys of its other fields
 * begin with the prefix. */
rapt_mask step_mask(const run *r, int first, const char *prefix);
/* The run owns the module, in its dtype, with the values that the step names as weights; these values become the
 * module's parameters. NULL after an error. */
void *step_module(run *r, void *module);
/* Adds a value. */
void step_give(run *r, rapt_tensor *value);

/* A step that is no op of the op table. */
typedef struct step_row {
    const char *name;
    void (*run)(run *r);
} step_row;
extern const step_row steps_basic[], steps_attention[], steps_transformer[]; /* the last has no name */

/* Runs the inputs (unless they are there) and steps; false after an error that was not expected. */
bool run_forward(run *r, bool inputs_exist);
void run_end(run *r);
/* How many calls were made that had to fail. */
int64_t run_refusals(void);
/* rapt_backward_from all roots. */
bool run_backward(run *r, int flags);
/* Trains the inputs as the record "train" says; false after an error. */
bool run_training(run *r, const record *how);
/* The tensor of a "root" or "direction", in the dtype of the run. */
rapt_tensor *run_tensor(const run *r, const record *from);

/* Something is wrong with the step that runs. */
void report(const run *r, const char *what);

#endif
