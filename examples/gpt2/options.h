/* What the program can be told. */
#ifndef GPT2_OPTIONS_H
#define GPT2_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct options {
    const char *model;
    const char *prompt; /* "": none */
    bool shows_tokens;
    int64_t sample, top_k, seed, threads;
    double temperature, top_p;
};

/* Reads the command line. -1: run; otherwise the program is to exit with that status, all is said. */
int options_parse(int argc, char **argv, struct options *options);

#endif
