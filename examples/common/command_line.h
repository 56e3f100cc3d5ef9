/* Options of a program as a table: parsing, --help and complaints follow from it. */
#ifndef EXAMPLES_COMMAND_LINE_H
#define EXAMPLES_COMMAND_LINE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* One option, "--name". At most one of integer, real, string and choice is set and says what value the option takes;
   with flag alone it takes none. What they point to holds the default before, and the value after parsing; a default
   outside its range (a choice below 0) means "not given", and --help says nothing of it. A row without name is a
   heading (its help) in --help; a row with neither ends the table. */
struct command_option {
    const char *name;
    const char *metavar; /* what --help calls the value; NULL: VALUE, or the choices */
    const char *help;
    bool *flag;         /* true once the option was given */
    const char **among; /* of several options: the name of the first that was given */
    int64_t *integer;
    double *real;               /* finite */
    const char **string;        /* points into argv; NULL is a default that --help leaves out */
    int *choice;                /* index into choices */
    const char *const *choices; /* closed by NULL */
    int64_t integer_range[2];   /* smallest and largest; both 0: any */
    double real_range[2];
    bool is_optional; /* a string option that may come without value; needs flag */
};

struct command_line {
    const char *program;
    const char *summary;                  /* what it does: the first lines of --help */
    const struct command_option *options; /* NULL: none but --help */
    const char *epilogue;                 /* the last lines of --help, or NULL */
};

/* Rows that several programs have; the defaults as above. */
struct command_option command_line_seed(int64_t *seed);
struct command_option command_line_threads(int64_t *threads); /* 0: not given */
struct command_option command_line_parts(int64_t *parts);     /* 0: not given */

/* But for RUN they are what the program exits with. */
enum command_line_result { COMMAND_LINE_RUN = -1, COMMAND_LINE_HELP = 0, COMMAND_LINE_WRONG = 2 };

/* Complains of arguments: one sentence on stderr. Returns what the program is to exit with: WRONG. Of processes that
   mpirun has started together the first one speaks, and the others exit with 0, so that they do not end it before. */
int command_line_wrong(const char *program, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sets what the options point to, from "--name value" and "--name=value". A value that is an argument of its own and
   starts with '-' counts only for numbers; the others need "--name=-value". HELP: --help or -h was given and printed
   on stdout, or is by the first process, and nothing is set. WRONG: as above. From here on the program ends with
   EXIT_FAILURE and a sentence when what it printed on stdout could not be written, and no file gets the number of a
   standard stream that is closed. */
enum command_line_result command_line_parse(const struct command_line *line, int argc, char **argv);

/* --help: options in aligned columns with the defaults that their pointers hold. */
void command_line_help(const struct command_line *line, FILE *stream);

#endif
