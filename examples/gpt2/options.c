/* The command line. */
#include "options.h"

#include "command_line.h"

int options_parse(int argc, char **argv, struct options *o)
{
    *o = (struct options){.sample = 100, .top_k = -1, .seed = 1, .temperature = 0.8};
    const struct command_option table[] = {
        {"--model", .metavar = "FOLDER",
         .help = "config.json, model.safetensors, vocab.json and merges.txt, as they are published",
         .string = &o->model},
        {"--prompt", .metavar = "TEXT", .help = "what to continue; without it a new text", .string = &o->prompt},
        {"--tokens", .help = "print the numbers of the prompt's tokens, and end", .flag = &o->shows_tokens},
        {"--sample", .metavar = "N", .help = "tokens to write, or fewer where the text ends", .integer = &o->sample,
         .integer_range = {0, 1000000}},
        {"--temperature", .metavar = "X", .help = "0: always the likeliest token", .real = &o->temperature,
         .real_range = {0, 100}},
        {"--top-k", .metavar = "N", .help = "only the N likeliest; 0: all; without it and --top-p 40",
         .integer = &o->top_k, .integer_range = {0, INT32_MAX}},
        {"--top-p", .metavar = "X", .help = "only the likeliest that make up X; 0: all", .real = &o->top_p,
         .real_range = {0, 1}},
        command_line_seed(&o->seed),
        command_line_threads(&o->threads),
        {0},
    };
    const struct command_line line = {.program = "gpt2",
                                      .summary = "Continues a text by GPT-2, with the weights that were published.",
                                      .options = table};
    const enum command_line_result result = command_line_parse(&line, argc, argv);
    if (result != COMMAND_LINE_RUN) return result;
    if (!o->model) return command_line_wrong("gpt2", "--model FOLDER is needed: where the weights are");
    if (o->temperature == 0 && (o->top_k > 0 || o->top_p > 0))
        return command_line_wrong("gpt2", "%s chooses at random, which --temperature 0 does not",
                                  o->top_k > 0 ? "--top-k" : "--top-p");
    if (o->top_k < 0) o->top_k = o->temperature == 0 || o->top_p > 0 ? 0 : 40;
    if (!o->prompt) o->prompt = "";
    return COMMAND_LINE_RUN;
}
