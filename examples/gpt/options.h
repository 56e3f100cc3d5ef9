/* What the language model can be told. */
#ifndef GPT_OPTIONS_H
#define GPT_OPTIONS_H

#include "text.h"

enum { default_steps = 400 };

/* Of each rapt_gpt_positions; closed by NULL. */
extern const char *const position_names[];

/* What blocks are made of: layer norm and GELU, or RMSNorm and SwiGLU. */
enum blocks { gpt2_blocks, llama_blocks };
extern const char *const block_names[];

struct options {
    const char *data;   /* NULL: sentences are made up */
    const char *prompt; /* NULL: the text's beginning */
    const char *weights, *save, *log, *checkpoint;
    bool resumes;
    int preset, positions, blocks;
    int64_t steps, batch, context, hidden, layers, heads, sample, top_k, seed, threads, parts, checkpoint_every;
    double learning_rate, dropout, temperature, top_p;
};

/* Reads the command line. -1: run; otherwise the program is to exit with that status, all is said. */
int options_parse(int argc, char **argv, struct options *options);

/* The options that decide the weights of a run, as a line: a run goes on only with the same. */
void options_note(const struct options *options, const struct text *text, char *note, size_t size);

#endif
